package auth

import (
	"fmt"
	"slices"
	"strings"
)

// A Scope is a permission that a request needs and a caller may have. Scopes are a set without an
// order. A CI job may submit without being able to cancel other plans. A person on call may operate
// without being able to run commands. So no scope contains another, not even Read: a token has
// exactly the scopes in the file.
//
// Scopes are in files and in JSON; they are never renamed.
type Scope string

// The scopes. The zero Scope is none of them: a request without a scope is refused.
const (
	Read    Scope = "read"    // look at plans, tasks, logs, queues and nodes; their params and outputs too
	Operate Scope = "operate" // cancel, retry as it is, pause; limits of queues and nodes, the balance
	Approve Scope = "approve" // answer the questions of tasks
	Submit  Scope = "submit"  // plans and tasks, and changes to what they do: it is to run commands where nodes let plans do so
	Admin   Scope = "admin"   // what cannot be undone or gives rights to others: delete, prune

	// Public is what everybody may do, with or without a name: the login page, its style sheet. No file gives it, and no caller has it.
	Public Scope = "public"
)

var scopes = []Scope{Read, Operate, Approve, Submit, Admin}

// Scopes is what a caller may do, in the order of the constants.
type Scopes []Scope

// Has reports whether what needs the scope may be done.
func (s Scopes) Has(need Scope) bool { return need == Public || slices.Contains(s, need) }

func (s Scopes) String() string {
	words := make([]string, len(s))
	for i := range s {
		words[i] = string(s[i])
	}
	return strings.Join(words, ",")
}

// ParseScopes reads scopes that are parted by commas, as in "read,submit".
func ParseScopes(text string) (Scopes, error) {
	var out Scopes
	for word := range strings.SplitSeq(text, ",") {
		out = append(out, Scope(strings.TrimSpace(word)))
	}
	return out.check()
}

// check returns the scopes in their order, each once, and refuses what is none.
func (s Scopes) check() (Scopes, error) {
	if len(s) == 0 {
		return nil, fmt.Errorf("no scope was given; give some of %v", Scopes(scopes))
	}
	for _, word := range s {
		if !slices.Contains(scopes, word) {
			return nil, fmt.Errorf("%q is no scope; there are %v", word, Scopes(scopes))
		}
	}
	var out Scopes
	for _, known := range scopes {
		if slices.Contains(s, known) {
			out = append(out, known)
		}
	}
	return out, nil
}

// A Role is a set of scopes by a name, for people. A role that is not known has none.
type Role string

// The roles that there are. They are in files, and are never renamed.
const (
	Viewer   Role = "viewer"   // read
	Operator Role = "operator" // read, operate, approve
	Editor   Role = "editor"   // read, operate, approve, submit
	Admins   Role = "admin"    // all
)

// Roles returns all roles, those that may do least first.
func Roles() []Role { return []Role{Viewer, Operator, Editor, Admins} }

// Scopes returns what the role may do.
func (r Role) Scopes() Scopes {
	last, ok := map[Role]Scope{Viewer: Read, Operator: Approve, Editor: Submit, Admins: Admin}[r]
	if !ok {
		return nil
	}
	return slices.Clone(scopes[:slices.Index(scopes, last)+1])
}

func (r Role) check() error {
	if r.Scopes() == nil {
		return fmt.Errorf("%q is no role; there are %s, %s, %s and %s", r, Viewer, Operator, Editor, Admins)
	}
	return nil
}
