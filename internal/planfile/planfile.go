// Package planfile reads plan files into package plan's Spec. A plan file is YAML, and so may be
// JSON. The reader reports every mistake of a file at once, with file, line, column, the line
// itself and the nearest known word. The package owns the words of a plan file, their JSON Schema
// for editors, and the import of other tools' workflows.
//
// Relative paths in a plan file (dir, from_file, the files of foreach) are relative to the folder that the file is in.
package planfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"unicode/utf8"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/internal/textfile"
	"github.com/seed-1177d267/sluice/plan"
)

// Longest plan file that is read, in bytes.
const maxFile = 256 << 20

// Options are what a plan file is read with.
type Options struct {
	// Params are values for the plan's params by name, as a person gives them. A value is a text,
	// unless the file's default has another type; then it is JSON of that type. A param that is
	// null in the file has no default.
	Params map[string]string
	// Secrets are further names of secret params, in addition to the names in the file. Queues of a
	// store may name them, for example. No error shows their values, and Declared marks them as
	// secret.
	Secrets secret.Names
	// Given is how errors begin what is given for a param, before its NAME or NAME=VALUE; default: "--param ".
	Given string
	// Defaults, if it is given, gets the defaults of the plan's params by name, whatever Params says, of those that have one.
	Defaults map[string]json.RawMessage
	// Declared, if it is given, gets the params that the file has, in its order.
	Declared *[]Param
	// Draft says that the plan is read and not run: a param without a value is no mistake, and
	// counts as an empty text.
	Draft bool
	// Check, if it is given, is asked of a plan that is valid what else is wrong with it, as where it is to run. A problem with a variable
	// of a task's env has the key env and the variable's name as its word. One with a param has the key params, and the param's name.
	Check func(*plan.Spec) plan.Problems
	// Notes, if it is given, returns what is valid in the plan and probably not meant. Note gets
	// these problems with their places, in the order of the file. A variable that a command uses
	// has the key run, and as its word $NAME with the rest of its line.
	Notes func(*plan.Spec) plan.Problems
	Note  func(Error)
	// Dir is the absolute path of the folder that relative paths start from.
	Dir string
	// Unplaced says that nobody chose Dir. With Notes, it is noted once, where the first path stands that starts from it.
	Unplaced string
}

// A Param is what a plan file says of a param.
type Param struct {
	Name    string
	Default json.RawMessage // nil: it must be given
	Choices rules.Choices   // nil: it may have any value
	About   string          // a text for people, or ""
	Secret  bool            // it is not to be shown, and so its default is not
}

// Load reads the plan file at path. Mistakes in the file are returned as Errors. Without an error
// the plan is valid.
func Load(path string, params map[string]string) (*plan.Spec, error) {
	return LoadWith(path, Options{Params: params})
}

// LoadWith is Load with all options but Dir, which is the file's folder.
func LoadWith(path string, o Options) (*plan.Spec, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("plan file %q: %w", path, err)
	}
	data, err := Read(path)
	if err != nil {
		return nil, err
	}
	if !IsStream(path) {
		o.Dir = filepath.Dir(abs)
	} else if o.Dir, err = os.Getwd(); err != nil {
		return nil, fmt.Errorf("plan file %q: %w", path, err)
	}
	if !utf8.ValidString(o.Dir) {
		return nil, fmt.Errorf("plan file %q: the name of its folder is not UTF-8, and a store keeps texts; rename the folder", path)
	}
	s, err := Parse(path, data, o)
	if err != nil {
		return nil, err
	}
	if !IsStream(path) {
		s.Source = abs
	}
	return s, nil
}

// streams matches the names of what a process has open, as systems and shells write them.
var streams = regexp.MustCompile(`^(-|/dev/(stdin|fd/\d+)|/proc/(self|thread-self|\d+)/fd/\d+)$`)

// IsStream reports whether a path names no file but what the process has open: -, /dev/stdin, and
// what a shell passes for <(…). Such a plan has no folder. Its commands run in the current one, and
// nobody can read it again.
func IsStream(path string) bool { return streams.MatchString(path) }

// Read reads the file at path for Parse, or standard input if that is -. A pipe can be read only once, and a caller may parse its
// text several times.
func Read(path string) ([]byte, error) {
	f, err := os.Stdin, error(nil)
	if path != "-" {
		if f, err = os.Open(path); err == nil {
			defer f.Close()
		}
	}
	var data []byte
	if err == nil {
		data, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("plan file %q is not there; check the path: %w", path, fs.ErrNotExist)
	case err != nil:
		if info, statErr := os.Stat(path); statErr == nil && info.IsDir() {
			return nil, fmt.Errorf("plan file %q is a folder; name a file in it", path)
		}
		return nil, fmt.Errorf("plan file %q cannot be read: %w", path, err)
	case len(data) > maxFile:
		return nil, fmt.Errorf("plan file %q has more than %d MiB; make several plans of it", path, maxFile>>20)
	}
	return data, nil
}

// Parse reads a plan file that was read already; name is what errors call it. It returns Errors if something is wrong.
func Parse(name string, data []byte, o Options) (*plan.Spec, error) {
	s, err := parseFile(name, data, o)
	if err == nil {
		s.File = rules.KeepFile(data, o.Dir)
	}
	return s, err
}

func parseFile(name string, data []byte, o Options) (*plan.Spec, error) {
	data = fromJSON(textfile.WithoutMark(data))
	if len(data) >= streamFrom {
		if s := stream(name, data, o, partSize); s != nil {
			return s, nil
		}
	}
	return newReader(name, data, o).load()
}

func (r *reader) load() (*plan.Spec, error) {
	root := parse(&r.faults)
	if root == nil || !sound(&r.faults, root, 0) {
		return nil, r.err()
	}
	r.readPlan(root)
	r.validate()
	if r.check != nil && len(r.list) == 0 {
		r.note(r.check(r.spec))
	}
	if err := r.err(); err != nil {
		return nil, r.withoutSecrets(root, err)
	}
	r.tell()
	return r.spec, nil
}
