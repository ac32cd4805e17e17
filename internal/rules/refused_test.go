package rules_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// Refusals name what is wrong, and what to do.
func TestWhatIsRefusedSaysWhy(t *testing.T) {
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	asked := plan.Task{Name: "go", Status: plan.Held, Reason: plan.ReasonApproval, Started: at, NotBefore: at.Add(time.Hour), Definition: plan.Definition{Approve: &plan.Approval{Question: "Go?", NotSubmitter: true}}}
	key := func(value string) error {
		_, err := rules.KeyOf(&plan.Foreach{Key: "${{ item }}"}, json.RawMessage(value))
		return err
	}
	relisted := func(t plan.Task) error {
		t.ID = plan.TaskID{ID: plan.NewID(at)}
		_, err := rules.Relisted([]plan.Task{t}, []plan.TaskID{t.ID})
		return err
	}
	_, stranger := rules.Relisted(nil, []plan.TaskID{{ID: plan.NewID(at)}})
	_, choice := rules.CheckChosen(map[string]rules.Choices{"a": nil}, nil, json.RawMessage("{"))
	for _, c := range []struct {
		err  error
		want string
	}{
		{rules.CheckQuestion("one\ntwo"), "approve has several lines; a question is one line"},
		{rules.CheckQuestion(strings.Repeat("x", plan.MaxSubject+1)), "approve has 201 bytes; a question has at most 200"},
		{rules.CheckAnswer(&asked, &rules.Answer{At: at.Add(2 * time.Hour), Asked: at}), `task "go" was to be answered until 2026-01-01T13:00:00Z: that is over`},
		{rules.CheckApprover(&asked, &plan.Plan{}, &rules.Answer{Note: strings.Repeat("x", rules.MaxNote+1)}), "the note has 1001 bytes; a note has at most 1000"},
		{rules.CheckApprover(&asked, &plan.Plan{By: "anna"}, &rules.Answer{}), `task "go" is for somebody else than who submitted the plan, and nobody knows who you are`},
		{key(`""`), "the key ${{ item }} is empty"},
		{key(`"a\nb"`), "and a key is a line of at most 200 bytes"},
		{rules.CheckFile(plan.File{Text: "plan: \x00"}), "the file of the plan is not UTF-8, or has a NUL: leave it out"},
		{rules.CheckFile(plan.File{Text: strings.Repeat("#", plan.MaxFile+1)}), "the file of the plan has 262145 bytes; at most 262144 (256 KiB) are kept with a plan: leave it out"},
		{relisted(plan.Task{Name: "one"}), `task "one" has no list of items; name the foreach task, or leave the name out`},
		{relisted(plan.Task{Name: "each", Definition: plan.Definition{Foreach: &plan.Foreach{Each: []string{"copy", "check"}}}}), `task "each" has the items of copy, check: name that`},
		{relisted(plan.Task{Name: "tell", Definition: plan.Definition{Finally: true, Foreach: &plan.Foreach{Lines: "people"}}}), `task "tell" is one of finally, whose items each retry makes anew`},
		{relisted(plan.Task{Name: "copy", Status: plan.Succeeded, Expanded: true, Items: 2, Definition: plan.Definition{Foreach: &plan.Foreach{Group: "group_label"}}}), `task "copy" makes its items of groups of inputs, which are not compared with them`},
		{relisted(plan.Task{Name: "copy", Status: plan.Running, Expanded: true, Items: 2, Definition: plan.Definition{Foreach: &plan.Foreach{Lines: "people"}}}), `task "copy" is running: its list can be compared once it has finished`},
		{rules.CheckFinally(&plan.Task{Name: "ask", Definition: plan.Definition{Finally: true, Approve: &plan.Approval{}}}), `task "ask" is one of finally, and has approve: ask in a task that finally waits for`},
		{rules.CheckNULIn("params", json.RawMessage(`{"a":"\u0000"`)), "params: unexpected end of JSON input"},
		{stranger, "is not in the plan"},
		{choice, "unexpected end of JSON input"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("got  %v\nwant %s", c.err, c.want)
		}
	}
}

func TestWhatPeopleReadOfListsAndNodes(t *testing.T) {
	for got, want := range map[string]string{
		rules.RelistCounts{Added: 1, Gone: 2, Kept: 3, Changed: 1}.String(): "+1, −2, 3 kept; 1 of them has another value in the list, and keeps its own",
		rules.NoItemsDetail(&plan.Foreach{Glob: "*.csv"}, "/in"):            "no items: nothing matches *.csv in /in",
		rules.StrayEnd(true) + "; " + rules.StrayEnd(false):                 "a sweep of any node takes it back; no node is there to take it back",
	} {
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
