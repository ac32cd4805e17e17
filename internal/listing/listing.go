// Package listing reads the lists of foreach tasks whose items are lines of a file, or files.
package listing

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/textfile"
	"github.com/seed-1177d267/sluice/plan"
)

// maxLine bounds a line of a file that a foreach goes over.
const maxLine = 1 << 20

// Read returns the items of a foreach with Lines or Glob, as JSON texts. A relative path starts in dir, and
// in the folder of the process if dir is empty. Read ends when ctx does. An error of a folder that a glob
// begins with, and that does not exist, is one of plugins.NotBegun.
func Read(ctx context.Context, f *plan.Foreach, dir string) ([]json.RawMessage, error) {
	under := func(path string) string {
		if dir != "" && !filepath.IsAbs(path) {
			return filepath.Join(dir, path)
		}
		return path
	}
	if f.Lines != "" {
		return linesOf(ctx, under(f.Lines))
	}
	paths, err := pathsOf(ctx, f.Glob, dir)
	if err != nil {
		return nil, fmt.Errorf("glob %q: %w", f.Glob, err)
	}
	if err := rules.CheckItems(len(paths)); err != nil {
		return nil, err
	}
	items := make([]json.RawMessage, len(paths))
	for i, path := range paths {
		if items[i], err = itemOf(path); err != nil {
			return nil, fmt.Errorf("glob %q: %w", f.Glob, err)
		}
	}
	return items, context.Cause(ctx)
}

// itemOf makes an item of a text, or refuses the text. It never changes the text: a command that
// gets another name than the file has would not find the file.
func itemOf(text string) (json.RawMessage, error) {
	if !utf8.ValidString(text) {
		return nil, fmt.Errorf("%q is not UTF-8, as an item has to be", text)
	}
	return json.Marshal(text)
}

// linesOf returns the lines of a file. It reads no further than it takes to see that they are too many or too much.
func linesOf(ctx context.Context, path string) ([]json.RawMessage, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() { // opening a FIFO might never end, nor reading a device
		err = fmt.Errorf("%s is not a file; write the lines to one", path)
	}
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var items []json.RawMessage
	size := 0
	s := bufio.NewScanner(textfile.Reader(file))
	s.Buffer(nil, maxLine)
	number := 1
	for ; s.Scan(); number++ {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		line := strings.TrimSuffix(s.Text(), "\r")
		if strings.TrimSpace(line) == "" {
			continue
		}
		item, err := itemOf(line)
		if err != nil {
			return nil, fmt.Errorf("line %d of %s: %w", number, path, err)
		}
		items = append(items, item)
		size += len(item)
		if err := rules.CheckItems(len(items)); err != nil {
			return nil, err
		}
		if size > plan.MaxInputs {
			return nil, fmt.Errorf("the lines of %s have more than %d MiB: write files, and let a line be the path of one", path, plan.MaxInputs>>20)
		}
	}
	switch err := s.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("line %d of %s has more than %d KiB: write a file, and let the line be its path", number, path, maxLine>>10)
	case err != nil:
		return nil, fmt.Errorf("lines of %s: %w", path, err)
	}
	return items, nil
}
