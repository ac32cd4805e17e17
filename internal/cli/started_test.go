package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

func TestWhenATaskBeganThatAnotherProgramRanIsNotKnown(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		name    string
		task    plan.Task
		took    string
		started string // in JSON; "": it is not there
	}{
		{"our own", plan.Task{Status: plan.Succeeded, Node: "n1", Started: now.Add(-time.Second), Ended: now}, "1.0s", `"`},
		{"another program's that has ended", plan.Task{Status: plan.Failed, Node: "perl1", Ended: now}, "-", "null"},
		{"another program's that runs", plan.Task{Status: plan.Running, Node: "perl1"}, "-", "null"},
		{"one that nobody began", plan.Task{Status: plan.Claimed, Node: "perl1"}, "", ""},
		{"one that was skipped", plan.Task{Status: plan.Cancelled, Ended: now}, "", ""},
		{"a foreach task, whose items alone run", plan.Task{Status: plan.Succeeded, Items: 3, Expanded: true, Ended: now}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := tookTask(&c.task, now); got != c.took {
				t.Errorf("it took %q, want %q", got, c.took)
			}
			e := entryOfTask(&c.task, nil)
			text, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			_, after, there := strings.Cut(string(text), `"started":`)
			if there != (c.started != "") || !strings.HasPrefix(after, c.started) {
				t.Errorf("in JSON it is %s, want started to begin with %q", text, c.started)
			}
		})
	}
}
