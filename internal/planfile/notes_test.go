package planfile

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/textfile"
	"github.com/seed-1177d267/sluice/plan"
)

// Notes have their places, also in a file that is read in parts. There, a note on a default is
// placed at the name of the task.
func TestNotesHaveTheirPlaces(t *testing.T) {
	const file = "plan: x\nparams: {A: a}\ndefaults:\n  run: echo $A\ntasks:\n  one: {description: x}\n  two: {description: x}\n  three:\n    run: |\n      # $A\n\n      echo $A then\n" +
		"  four: {run: [sh, -c, 'echo ${A}']}\n  five: {run: \"echo \\\"$A\\\"\"}\n  six: {needs: one, when: any_failed, run: make}\n  seven: {run: make}\n"
	uses := map[string]string{"one": "$A", "two": "$A", "three": "$A then", "four": "${A}", "five": `$A"`}
	notes := func(s *plan.Spec) (found plan.Problems) {
		for i := range s.Tasks {
			name := s.Tasks[i].Name
			if use := uses[name]; use != "" {
				item := -1
				if name == "four" {
					item = 2
				}
				found = append(found, plan.Problem{Task: i, Key: "run", Item: item, Word: use, Message: name})
			}
			if s.Tasks[i].When != "" {
				found = append(plan.Problems{{Task: i, Key: "when", Item: -1, Word: "any_failed", Message: name}}, found...)
			}
		}
		return found
	}
	read := func(read func(o Options) *plan.Spec) string {
		var got []string
		o := Options{Notes: notes, Note: func(e Error) { got = append(got, fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Message)) }}
		if s := read(o); s == nil || len(s.Tasks) != 7 {
			t.Fatalf("the file was not read: %+v", s)
		}
		return strings.Join(got, "\n")
	}
	const own = "12:12: three\n13:30: four\n14:23: five\n15:27: six"
	const want = "4:13: one; so it is with another task\n" + own
	if got := read(func(o Options) *plan.Spec { s, _ := Parse("f", []byte(file), o); return s }); got != want {
		t.Errorf("as a whole:\n%s\nwant\n%s", got, want)
	}
	const inParts = "6:3: one\n7:3: two\n" + own
	for _, size := range []int{1, 100, 10_000} {
		if got := read(func(o Options) *plan.Spec { return stream("f", []byte(file), o, size) }); got != inParts {
			t.Errorf("in parts of %d bytes:\n%s\nwant\n%s", size, got, inParts)
		}
	}
}

func TestOfManyNotesTheFirstAreTold(t *testing.T) {
	var file strings.Builder
	file.WriteString("plan: x\ntasks:\n")
	for i := range textfile.MaxShown + 7 {
		fmt.Fprintf(&file, "  t%d: {run: echo $A}\n", i)
	}
	notes := func(s *plan.Spec) (found plan.Problems) {
		for i := range s.Tasks {
			var params struct{ Run string }
			if json.Unmarshal(s.Tasks[i].Params.(json.RawMessage), &params) == nil {
				found = append(found, plan.Problem{Task: i, Key: "run", Item: -1, Word: "$A", Message: params.Run})
			}
		}
		return found
	}
	for name, read := range map[string]func(o Options) *plan.Spec{
		"as a whole": func(o Options) *plan.Spec { s, _ := Parse("f", []byte(file.String()), o); return s },
		"in parts":   func(o Options) *plan.Spec { return stream("f", []byte(file.String()), o, 100) },
	} {
		var got []Error
		if read(Options{Notes: notes, Note: func(e Error) { got = append(got, e) }}) == nil {
			t.Fatal("the file was not read")
		}
		if len(got) != textfile.MaxShown+1 || got[textfile.MaxShown].Error() != "f: there are 7 more such places" || got[textfile.MaxShown-1].Line != textfile.MaxShown+2 {
			t.Errorf("%s: %d notes are told, the last two %q", name, len(got), got[len(got)-2:])
		}
	}
}

func TestANameThatNothingHasIsNotedWhereItStands(t *testing.T) {
	for file, want := range map[string]string{
		"plan: x\nparams: {password: abcd}\nsecrets: [password, pasword]\ntasks:\n  one: {run: make}\n":                              "3:21",
		"plan: x\nparams: {password: abcd}\ntasks:\n  one: {run: make}\n\n  two: {run: make}\nsecrets:\n  - password\n  - pasword\n": "9:5",
	} {
		notes := func(o Options) Options {
			o.Notes = compiler.Notes
			return o
		}
		for name, read := range map[string]func(Options) (*plan.Spec, error){
			"as a whole": func(o Options) (*plan.Spec, error) { return Parse("f", []byte(file), notes(o)) },
			"in parts":   func(o Options) (*plan.Spec, error) { return stream("f", []byte(file), notes(o), 1), nil },
		} {
			var got []string
			s, err := read(Options{Note: func(e Error) {
				got = append(got, fmt.Sprintf("%d:%d %t", e.Line, e.Column, strings.Contains(e.Message, `called "pasword"`)))
			}})
			if err != nil || s == nil || fmt.Sprint(got) != "["+want+" true]" {
				t.Errorf("%s: %v (%v), want it at %s, of\n%s", name, got, err, want, file)
			}
		}
	}
}
