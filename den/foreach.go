package den

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/textfile"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// maxLine bounds a line of a file that a foreach goes over.
const maxLine = 1 << 20

// items returns the items of a foreach task over files, or how it fails.
func (a *attempt) items(ctx context.Context, f *plan.Foreach) ([]json.RawMessage, plan.Result) {
	dir, err := a.folder(ctx, f)
	var items []json.RawMessage
	if err == nil {
		items, err = plugins.Within(ctx, func() ([]json.RawMessage, error) { return itemsOf(ctx, f, dir) })
	}
	if err == nil {
		err = rules.CheckKeys(f, items)
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		err = plugins.NotBegun(err) // another node may have the files
	}
	if err != nil {
		return nil, noInput(fmt.Errorf("foreach: %w", err))
	}
	r := plan.Result{Status: plan.Succeeded}
	if len(items) == 0 {
		r.Detail = rules.NoItemsDetail(f, dir)
		a.out.Append(plan.System, r.Detail)
	}
	return items, r
}

// folder returns the task's dir, where relative paths of its foreach start. Without a dir, or with
// a plugin whose dir means something else, they start in the node's folder.
func (a *attempt) folder(ctx context.Context, f *plan.Foreach) (string, error) {
	if filepath.IsAbs(f.Lines + f.Glob) {
		return "", nil
	}
	var own struct {
		Dir   string          `json:"dir"`
		Needs json.RawMessage `json:"needs,omitempty"`
	}
	_ = json.Unmarshal(a.task.Params, &own)
	if !a.task.Template || !strings.Contains(own.Dir, "${{") {
		return own.Dir, nil
	}
	params, _, err := a.delivered(ctx)
	if err != nil {
		return "", err
	}
	_ = json.Unmarshal(params, &own)
	if params, err = json.Marshal(own); err == nil { // without the params that are over an item, which there is none of yet
		params, err = compiler.Resolve(&a.task, params)
	}
	_ = json.Unmarshal(params, &own)
	return own.Dir, err
}

func itemsOf(ctx context.Context, f *plan.Foreach, dir string) ([]json.RawMessage, error) {
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
