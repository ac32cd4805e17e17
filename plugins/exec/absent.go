package exec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/seed-1177d267/sluice/plugins"
)

// local matches commands that begin with a program in a folder below dir, as in ./copy and bin/copy, or with an interpreter and its file.
// A shell's line and a list of words begin alike, but for the quotes.
var local = regexp.MustCompile(`"run":(?:\["|")(?:((?:\.{1,2}/|[\w-][\w.-]*/)[\w./-]+)|(?:sh|bash|dash|ksh|zsh|python3?|perl|ruby|node|php)(?:","| )(\w[\w./-]*))(?:["; &|)]|\\n)`)

// absent returns a note of a program, or of the file of an interpreter, that is not in the folder where the command runs.
func absent(params json.RawMessage) []plugins.Note {
	m := local.FindSubmatch(params)
	if m == nil {
		return nil
	}
	var s struct{ Dir string }
	if json.Unmarshal(params, &s) != nil || !filepath.IsAbs(s.Dir) {
		return nil
	}
	file := string(m[1]) + string(m[2])
	if _, err := os.Stat(filepath.Join(s.Dir, file)); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, err := os.Stat(s.Dir); err != nil { // a task may make it
		return nil
	}
	item := -1
	if bytes.Contains(m[0], []byte("[")) {
		item = min(len(m[2]), 1)
	}
	return []plugins.Note{{Key: "run", Item: item, Word: file, File: filepath.Base(file), Text: fmt.Sprintf(
		"%s is not in %s, where the command runs: correct the path, or add the file", file, strings.TrimSuffix(s.Dir, "/"))}}
}
