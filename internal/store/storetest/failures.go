package storetest

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
)

// failures reads what a task is told of failures, one line for each.
func (w *world) failures(p plan.Plan, name string) (lines []string) {
	w.Helper()
	list, err := w.s.Failures(w.ctx, w.named(p, name).ID)
	w.no(err)
	var all []plan.Failure
	w.no(json.Unmarshal(list, &all))
	for _, f := range all {
		line := fmt.Sprintf("%s %s %d", f.Task, f.Detail, f.Attempt)
		if f.Exit != nil {
			line += fmt.Sprintf(" exit %d", f.Exit.Code)
		}
		if f.Item != nil {
			line += fmt.Sprintf(" item %s key %s", f.Item, f.Key)
		}
		lines = append(lines, line+" "+strings.Join(f.Lines, "|"))
	}
	return lines
}

// failureCases are about what tasks are told of the failures of those that they need.
var failureCases = []testCase{
	{"a task is told how tasks that it needs failed, and of a foreach task how its items did", func(w *world) {
		p := w.submit(task("good"), task("bad"), task("below", "bad"),
			each("copy", plan.Foreach{List: json.RawMessage(`[{"n":"a"},{"n":"b"},{"n":"c"}]`), Key: "${{ item.n }}"}),
			plan.TaskSpec{Name: "tell", When: plan.AllDone, Needs: []string{"copy", "good", "below", "bad"}})
		n := w.node("n1")
		n.end()
		for _, c := range n.claim(10) {
			if c.Name == "good" || c.Name == "copy[1]" {
				n.end(ok(c))
				continue
			}
			e := fail(c)
			e.Detail, e.Exit = "broke", &plan.Exit{Code: 7}
			e.Log = []plan.LogEntry{{Stream: plan.Stdout, Text: c.Name + "\nla"}, {Stream: plan.Stderr, Text: "st\n"}}
			n.end(e)
		}
		n.end()
		w.want(p, "below skipped", "copy failed", "tell queued")
		w.equal("failures", w.failures(p, "tell"), []string{
			"bad broke 1 exit 7 bad|last", `copy[0] broke 1 exit 7 item {"n":"a"} key a copy[0]|last`, `copy[2] broke 1 exit 7 item {"n":"c"} key c copy[2]|last`,
		})
		w.equal("of a task that needs nothing", w.failures(p, "good"), []string(nil))
	}},
	{"failures that the plan allows are told, and so are those that max_failures allows", func(w *world) {
		some := each("some", plan.Foreach{List: ordinals(3)})
		some.MaxFailures = "2"
		p := w.submit(plan.TaskSpec{Name: "may", ContinueOnError: true}, some, plan.TaskSpec{Name: "tell", When: plan.AllDone, Needs: []string{"may", "some"}})
		n := w.node("n1")
		n.end()
		n.run(failing("may", "some[2]"))
		w.want(p, "some succeeded", "tell succeeded")
		w.equal("failures", len(w.failures(p, "tell")), 2)
	}},
	{"what a secret is among failures is hidden", func(w *world) {
		s := plan.New("p")
		s.Params, s.Secrets = map[string]json.RawMessage{"password": json.RawMessage(`"hunter-22"`)}, []string{"password"}
		s.Add(task("bad"))
		s.Add(plan.TaskSpec{Name: "tell", When: plan.AllDone, Needs: []string{"bad"}})
		p := w.submitSpec(s)
		n := w.node("n1")
		e := fail(n.claim(1)[0])
		e.Detail, e.Log = "no hunter-22", []plan.LogEntry{{Stream: plan.Stdout, Text: "it is hunt"}, {Stream: plan.Stdout, Text: "er-22\n"}}
		n.end(e)
		w.equal("failures", w.failures(p, "tell"), []string{"bad no *** 1 it is ***"})
	}},
	{"only the last attempt counts, and its log", func(w *world) {
		p := w.submit(plan.TaskSpec{Name: "bad", Retry: plan.Retry{Attempts: 2}}, plan.TaskSpec{Name: "tell", When: plan.AnyFailed, Needs: []string{"bad"}})
		n := w.node("n1")
		for range 2 {
			c := n.claim(1)[0]
			e := protocol.Ending{Claim: c.Claim, Status: plan.Held}
			if c.Attempt == 2 {
				e = fail(c)
			}
			e.Log = []plan.LogEntry{{Attempt: c.Attempt, Stream: plan.Stdout, Text: fmt.Sprintf("attempt %d\n", c.Attempt)}}
			n.end(e)
		}
		w.equal("failures", w.failures(p, "tell"), []string{"bad it failed 2 attempt 2"})
	}},
}
