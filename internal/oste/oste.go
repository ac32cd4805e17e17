// Package oste owns the mapping between the resources of the Open Scheduled Task Engine and Sluice. A
// company is a group, and a solution is a group in it. An activity type is a queue of the plugin http
// in the group of its solution. A point-in-time activity is a task of no plan, and a recurring one is a
// schedule of such tasks. Names of groups and queues are made of the names of the document, so that
// nothing else has to be stored. The package reads no store.
package oste

import (
	"fmt"
	"strings"

	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/plan"
)

// Plugin is the plugin of the queues that are activity types.
const Plugin = "http"

// A Mistake is what is wrong with one field of a resource.
type Mistake struct {
	Field string // as the document spells it; a further part follows a dot
	Err   error
}

// Error implements error.
func (m *Mistake) Error() string { return m.Field + ": " + m.Err.Error() }

// Unwrap returns what is wrong.
func (m *Mistake) Unwrap() error { return m.Err }

func mistake(field, format string, args ...any) error {
	return &Mistake{field, fmt.Errorf(format, args...)}
}

// id joins the names of a company, a solution and a type. A name has no dot, so that each id leads back
// to its names.
func id(names ...string) string { return strings.Join(names, ".") }

// split returns the id of what a resource is in, and its name there. It reports false for an id of
// another depth, or of names that no resource has.
func split(of string, depth int) (in, name string, ok bool) {
	names := strings.Split(of, ".")
	if len(names) != depth {
		return "", "", false
	}
	for _, n := range names {
		if compiler.CheckName("name", n) != nil {
			return "", "", false
		}
	}
	last := len(names) - 1
	return id(names[:last]...), names[last], true
}

// The depths of ids.
const (
	companyDepth  = 1
	solutionDepth = 2
	typeDepth     = 3
)

// checkName refuses a name that no resource can have, alone or with the id of what it is in.
func checkName(what, name, of string) error {
	if err := compiler.CheckName(what, name); err != nil {
		return &Mistake{"Name", err}
	}
	if err := plan.CheckGroupName(of); err != nil {
		return mistake("Name", "%s %q is %q among groups and queues: %v", what, name, of, err)
	}
	return nil
}

// same refuses a field that differs from what the resource is.
func same(field, given, is string) error {
	if given != "" && given != is {
		return mistake(field, "it is %q, and cannot become %q; make another one, and delete this one", is, given)
	}
	return nil
}
