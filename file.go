package sluice

import (
	"errors"
	"path/filepath"

	"github.com/seed-1177d267/sluice/internal/planfile"
	"github.com/seed-1177d267/sluice/plan"
)

// FileOptions say how a plan file is read. The zero value of a field means its default.
type FileOptions struct {
	// Params are values for params of the plan, as texts. A param whose default in the file is not a text
	// takes the JSON of a value of that kind. Default: the file's own values.
	Params map[string]string
	// Dir is the folder that the relative paths of the plan start from, and that its commands run in.
	// Default: the folder of the file; of ParseFile, the current folder.
	Dir string
}

// LoadFile reads a plan file. It returns FileErrors for a file that is not valid, and the error of the
// system, as fs.ErrNotExist, for one that cannot be read.
func LoadFile(path string, o FileOptions) (*plan.Spec, error) {
	text, err := planfile.Read(path)
	if err != nil {
		return nil, err
	}
	source, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if o.Dir == "" {
		o.Dir = filepath.Dir(source)
	}
	spec, err := ParseFile(path, text, o)
	if err != nil {
		return nil, err
	}
	spec.Source = source
	return spec, nil
}

// ParseFile reads the text of a plan file, as LoadFile does. name is what errors call the file.
func ParseFile(name string, text []byte, o FileOptions) (*plan.Spec, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	spec, err := planfile.Parse(name, text, planfile.Options{Params: o.Params, Dir: dir, Given: "param "})
	return spec, fileErrors(err)
}

// fileErrors returns FileErrors for the mistakes of a plan file. It returns any other error as it is.
func fileErrors(err error) error {
	var found planfile.Errors
	if !errors.As(err, &found) {
		return err
	}
	errs := make(FileErrors, len(found))
	for i, e := range found {
		errs[i] = FileError{File: e.File, Line: e.Line, Column: e.Column, Message: e.Message, text: e.Error()}
	}
	return errs
}

// A FileError is one mistake in a plan file.
type FileError struct {
	File    string
	Line    int    // from 1; 0 for a mistake that has no place in the file
	Column  int    // from 1, in characters
	Message string // what is wrong, and what to do
	text    string
}

// Error returns the mistake with its place, and the line with a mark below the place.
func (e FileError) Error() string { return e.text }

// FileErrors are the mistakes in a plan file, in the order of the file.
type FileErrors []FileError

// Error returns all mistakes, one after the other.
func (e FileErrors) Error() string {
	text := ""
	for i := range e {
		if i > 0 {
			text += "\n"
		}
		text += e[i].text
	}
	return text
}

// Unwrap returns the mistakes.
func (e FileErrors) Unwrap() []error {
	all := make([]error, len(e))
	for i := range e {
		all[i] = e[i]
	}
	return all
}
