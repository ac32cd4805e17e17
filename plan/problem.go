package plan

import "strings"

// A Problem is one mistake in a Spec. Task is the index of the task in Spec.Tasks, or -1 for the
// plan itself. Key is the word of the plan file with the mistake. Item is the element if Key is a
// list, else -1.
type Problem struct {
	Task    int
	Key     string
	Item    int
	Message string
	Word    string   // the word that is to blame, if one is
	Known   []string // words that it could have been; of a need also the task's own name
	Expr    string   // the path of the expression that is to blame, if one is
}

// Error returns the message. A caller that has the file adds the place.
func (p Problem) Error() string { return p.Message }

// Problems is everything that Validate found, in the order of the file.
type Problems []Problem

// Error returns the messages, a line each.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i := range p {
		lines[i] = p[i].Message
	}
	return strings.Join(lines, "\n")
}
