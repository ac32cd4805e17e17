package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// retryItemCases are the cases of retries about foreach tasks and their items.
var retryItemCases = []testCase{
	{"a retry of a foreach task runs its items that failed, and gathers all", func(w *world) {
		p := w.submit(each("copy", list(0, 1, 2, 3)), task("after", "copy"))
		n := w.node("n1")
		n.run(failing("copy[1]", "copy[3]"))
		w.want(p, "copy failed", "after skipped")
		w.equal("counts", w.plan(p.ID).Counts, plan.Counts{Succeeded: 2, Failed: 2, Skipped: 1, Gathered: 1})
		w.retry(p, false)
		w.equal("counts", w.plan(p.ID).Counts, plan.Counts{Held: 1, Queued: 2, Succeeded: 2, Gathering: 1})
		w.want(p, "copy held", "copy[0] succeeded", "copy[1] queued", "copy[2] succeeded", "copy[3] queued", "after held")
		w.equal("ran", n.run(failing("copy[3]")), "[copy[1] copy[3]]")
		w.equalJSON("output", w.named(p, "copy").Output, `[0,2,4,null]`)
		w.want(p, "copy failed")
		w.equal("detail", w.named(p, "copy").Detail, "1 of 4 items failed")
		w.retry(p, false, "copy")
		n.run(failing())
		w.equalJSON("output", w.named(p, "copy").Output, `[0,2,4,6]`)
		w.want(p, "copy succeeded", "after succeeded")
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a retry may bring new definitions and params of items, each by its own id, and leaves the others as they were", func(w *world) {
		spec := each("copy", list(0, 1, 2))
		spec.Params = json.RawMessage(`{"how":"badly"}`)
		p := w.submit(spec)
		n := w.node("n1")
		n.run(failing("copy[0]", "copy[1]"))
		better := w.named(p, "copy")
		better.Params, better.Timeout = json.RawMessage(`{"how":"well"}`), time.Hour
		first := rules.ItemTask(&better, 0, json.RawMessage("0"), better.Params, w.clock.Now())
		first.Queue = w.queue("narrow", 1).ID
		w.no(w.tryRetry(p.ID, rules.Ask{Replace: []plan.Task{better, first}}))
		var got []string
		n.run(func(c protocol.ClaimedTask) protocol.Ending {
			got = append(got, fmt.Sprint(c.Name, " ", c.QueueName, " ", c.Timeout))
			return succeed(c, string(c.Params))
		})
		slices.Sort(got)
		w.equal("ran", got, "[copy[0] narrow 1h0m0s copy[1] exec 0s]")
		w.equalJSON("output", w.named(p, "copy").Output, `[{"how":"well","item":0},{"how":"badly","item":1},4]`)
		w.equal("the foreach task", w.named(p, "copy").Timeout, time.Hour)
		w.equal("an item that succeeded", w.named(p, "copy[2]").Timeout, time.Duration(0))
	}},
	{"a plain retry keeps the items below a failure that the plan allows", func(w *world) {
		allowed := task("a")
		allowed.ContinueOnError = true
		p := w.submit(allowed, task("list"), each("copy", plan.Foreach{Value: "needs.list"}, "a", "list"))
		n := w.node("n1")
		for _, c := range n.claim(2) {
			if c.Name == "a" {
				n.end(fail(c))
			} else {
				n.end(succeed(c, `[0,1,2]`))
			}
		}
		items := n.claim(3)
		for i := range items {
			w.no(n.s.AppendLog(w.ctx, items[i].Claim, []plan.LogEntry{{At: w.clock.Now(), Attempt: 1, Stream: plan.Stdout, Text: "of the first run\n"}}))
		}
		n.end(ok(items[0]), fail(items[1]), ok(items[2]))
		w.want(p, "a failed", "copy failed", "copy[0] succeeded", "copy[1] failed", "copy[2] succeeded")
		w.retry(p, false)
		w.want(p, "a failed", "list succeeded", "copy held", "copy[0] succeeded", "copy[1] queued", "copy[2] succeeded")
		for _, name := range []string{"copy[0]", "copy[2]"} {
			log, _, err := w.s.Log(w.ctx, w.named(p, name).ID, 0, 10)
			if w.no(err); len(log) != 1 || log[0].Text != "of the first run\n" {
				w.Errorf("the log of %s is %v, want what it printed", name, log)
			}
		}
		w.equal("ran", n.run(failing()), "[copy[1]]")
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a retry of a parent that did not make the list leaves a task of which an item was cancelled, and its items", func(w *world) {
		allowed := task("a")
		allowed.ContinueOnError = true
		p := w.submit(allowed, task("list"), each("copy", plan.Foreach{Value: "needs.list"}, "a", "list"))
		n := w.node("n1")
		for _, c := range n.claim(2) {
			if c.Name == "a" {
				n.end(fail(c))
			} else {
				n.end(succeed(c, `[0,1]`))
			}
		}
		n.end()
		w.no(w.s.CancelTask(w.ctx, w.named(p, "copy[1]").ID))
		n.end(succeed(n.one(), `"kept"`))
		w.want(p, "a failed", "list succeeded", "copy cancelled", "copy[0] succeeded", "copy[1] cancelled")
		w.retry(p, false, "a")
		w.equal("ran", n.run(failing()), "[a]")
		w.equalJSON("what an item made", w.named(p, "copy[0]").Output, `"kept"`)
		w.retry(p, false, "copy")
		w.equal("then ran", n.run(failing()), "[copy[1]]")
		w.equalJSON("what both made", w.named(p, "copy").Output, `["kept",2]`)
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a retry of one item gathers its task again, and leaves the other items", func(w *world) {
		p := w.submit(each("copy", list(0, 1, 2)), task("after", "copy"))
		n := w.node("n1")
		n.run(failing("copy[0]", "copy[1]"))
		w.retry(p, false, "copy[0]")
		w.want(p, "copy held", "copy[0] queued", "copy[1] failed", "copy[2] succeeded", "after held")
		w.equal("ran", n.run(failing()), "[copy[0]]")
		w.want(p, "copy failed", "after skipped")
		w.equalJSON("output", w.named(p, "copy").Output, `[0,null,4]`)
		w.wantPlan(p, plan.PlanFailed)
	}},
	{"a retry of one item takes along those that wait, with their task", func(w *world) {
		p := w.submit(each("copy", list(0, 1, 2)), task("after", "copy"))
		w.no(w.s.CancelTask(w.ctx, w.named(p, "copy[1]").ID))
		w.want(p, "copy held", "copy[0] queued", "copy[1] cancelled", "copy[2] queued")
		w.retry(p, false, "copy[1]")
		w.want(p, "copy held", "copy[0] queued", "copy[1] queued", "copy[2] queued", "after held")
		n := w.node("n1")
		w.equal("ran", n.run(failing()), "[copy[0] copy[1] copy[2] after]")
		w.equalJSON("output", w.named(p, "copy").Output, `[0,2,4]`)
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a foreach task whose items could not be made makes them after a retry of its parent", func(w *world) {
		p := w.submit(task("list"), each("copy", plan.Foreach{Value: "needs.list"}, "list"))
		n := w.node("n1")
		n.end(succeed(n.one(), `"not a list"`))
		w.want(p, "copy failed")
		w.retry(p, true, "list")
		w.want(p, "list queued", "copy held")
		n.end(succeed(n.one(), `[5,6]`))
		w.equal("ran", n.run(failing()), "[copy[0] copy[1]]")
		w.equalJSON("output", w.named(p, "copy").Output, `[0,2]`)
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"when the parent that its list comes from runs again, a foreach task makes its items anew", func(w *world) {
		for _, c := range []struct{ name, first, then, params, output string }{
			{"fewer items", `[1,2,3]`, `[4,5]`, `{"needs":{"list":null},"args":[null],"item":4}`, `[0,2]`},
			{"more items", `[1]`, `[4,5,6]`, `{"needs":{"list":null},"args":[null],"item":4}`, `[0,2,4]`},
			{"other items", `["a","b"]`, `["c","a"]`, `{"needs":{"list":null},"args":[null],"item":"c"}`, `[0,2]`},
			{"no items", `[1,2]`, `[]`, ``, `[]`},
			{"items after none", `[]`, `[7]`, `{"needs":{"list":null},"args":[null],"item":7}`, `[0]`},
			{"as many as several joins have, and a few", string(ordinals(600)), `[1,2]`, `{"needs":{"list":null},"args":[null],"item":1}`, `[0,2]`},
		} {
			p := w.submit(task("list"), each("copy", plan.Foreach{Value: "needs.list"}, "list"), task("after", "copy"))
			n := w.node("n1")
			run := func(list string) []string {
				return n.run(func(c protocol.ClaimedTask) protocol.Ending {
					if c.Name == "list" {
						return succeed(c, list)
					}
					e := withOutput(c)
					e.Log = []plan.LogEntry{{At: w.clock.Now(), Attempt: c.Attempt, Stream: plan.Stdout, Text: list}}
					return e
				})
			}
			run(c.first)
			w.wantPlan(p, plan.PlanSucceeded)
			w.retry(p, true, "list")
			w.want(p, "list queued", "copy held", "after held")
			copied := w.named(p, "copy")
			w.equal(c.name+": copy", []any{copied.Items, copied.Expanded, copied.Expanding, w.plan(p.ID).Counts.Total()}, []any{0, false, false, 3})
			run(c.then)
			w.wantPlan(p, plan.PlanSucceeded)
			var items []json.RawMessage
			w.no(json.Unmarshal([]byte(c.then), &items))
			w.equal(c.name+": tasks", w.plan(p.ID).Counts.Succeeded, max(3, 2+len(items)))
			w.equalJSON(c.name+": output", w.named(p, "copy").Output, c.output)
			w.equalJSON(c.name+": params", w.named(p, "after").Params, `{"needs":{"copy":`+c.output+`},"args":[`+c.output+`]}`)
			if len(items) > 0 {
				first := w.named(p, "copy[0]")
				w.equalJSON(c.name+": params", first.Params, c.params)
				entries, _, err := w.s.Log(w.ctx, first.ID, 0, 10)
				w.no(err)
				w.equal(c.name+": log", []any{len(entries), entries[len(entries)-1].Text, first.Attempt}, []any{1, c.then, 1})
			}
		}
	}},
	{"of several reasons to refuse a retry each store gives the same one", func(w *world) {
		p := w.submit(task("a"), task("b"), task("c", "a"))
		n := w.node("n1")
		held := n.take("a", "b")
		n.end(fail(held[0]))
		a, nobody := w.named(p, "a"), plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}}
		other := a
		other.Queue = plan.QueueID{ID: plan.NewID(time.Now())}
		refused := func(kind error, why string, replace []plan.Task, named ...string) {
			w.Helper()
			ask := w.askRetry(p, false, named...)
			ask.Replace = replace
			if slices.Contains(named, "nobody") {
				ask.Tasks = append(ask.Tasks, nobody.ID)
			}
			if err := w.tryRetry(p.ID, ask); !errors.Is(err, kind) || !strings.Contains(err.Error(), why) {
				w.Errorf("got error %v, want %v that says %q", err, kind, why)
			}
		}
		refused(plan.ErrConflict, `task "b" is running: only what has finished`, []plan.Task{other}, "a", "b", "nobody")
		refused(plan.ErrNotFound, nobody.ID.String(), []plan.Task{other}, "a", "nobody")
		refused(plan.ErrNotFound, other.Queue.String(), []plan.Task{other, nobody}, "a")
		refused(plan.ErrConflict, "has a new definition", []plan.Task{nobody}, "a")
		w.want(p, "a failed", "b running", "c skipped")
	}},
	{"items that succeeded are made anew too, when the parent of a foreach task that failed runs again", func(w *world) {
		p := w.submit(task("list"), each("copy", plan.Foreach{Value: "needs.list"}, "list"), task("after", "copy"))
		n := w.node("n1")
		n.end(succeed(n.one(), `[1,2,3]`))
		n.run(failing("copy[1]"))
		w.want(p, "copy failed", "copy[0] succeeded", "after skipped")
		w.retry(p, true, "list")
		n.end(succeed(n.one(), `[4,5,6]`))
		w.equal("ran", n.run(failing()), "[copy[0] copy[1] copy[2] after]")
		w.equalJSON("params", w.named(p, "copy[2]").Params, `{"needs":{"list":null},"args":[null],"item":6}`)
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a foreach task whose parent runs again while its items are being made makes only the new ones", func(w *world) {
		p := w.submit(task("list"), task("fails"), each("copy", plan.Foreach{Value: "needs.list"}, "list"), task("after", "copy"))
		n := w.node("n1")
		c := n.take("list", "fails")
		n.end(fail(c[1]))
		n.turn(protocol.Turn{Ended: []protocol.Ending{succeed(c[0], string(ordinals(250)))}, Budget: 100})
		w.equal("expanding", w.named(p, "copy").Expanding, true)
		w.retry(p, true, "list")
		n.end(succeed(n.one(), `[4,5]`))
		n.run(failing())
		w.equalJSON("output", w.named(p, "copy").Output, `[0,2]`)
		w.want(p, "after succeeded")
		w.equal("tasks", w.plan(p.ID).Counts.Total(), 5)
		w.checkSettledAfter(n)
		w.wantPlan(p, plan.PlanFailed)
	}},
	{"a task of many parents that is retried with another rule is decided by that one", func(w *world) {
		var names []string
		var tasks []plan.TaskSpec
		for i := range 260 {
			names = append(names, fmt.Sprint("t", i))
			tasks = append(tasks, task(names[i]))
		}
		join := task("join", names...)
		join.When = plan.AllDone
		p := w.submit(append(tasks, join)...)
		n := w.node("n1")
		w.equal("tasks that ran", len(n.run(failing(append(names, "join")...))), 261)
		again := w.named(p, "join")
		again.When = plan.AllSucceeded
		w.no(w.tryRetry(p.ID, rules.Ask{Replace: []plan.Task{again}}))
		n.end(fail(n.claim(1)[0]))
		again = w.named(p, "join")
		w.equal("join", []any{again.Status, again.Reason}, []any{plan.Cancelled, plan.ReasonSkipped})
	}},
	{"a foreach task over files that is named with downstream reads them again, and without runs what failed", func(w *world) {
		p := w.submit(each("copy", plan.Foreach{Lines: "/tmp/list"}), task("after", "copy"))
		n := w.node("n1")
		n.end(expand(n.one(), `"a"`, `"b"`, `"c"`))
		n.run(failing("copy[1]"))
		w.retry(p, false, "copy")
		w.equal("ran", n.run(failing("copy[1]")), "[copy[1]]")
		w.retry(p, true, "copy")
		w.want(p, "copy queued", "after held")
		w.equal("tasks", w.plan(p.ID).Counts.Total(), 2)
		c := n.one()
		w.equal("claim", []any{c.Name, c.Attempt}, "[copy 1]")
		n.end(expand(c, `"d"`, `"b"`))
		n.run(failing())
		w.wantPlan(p, plan.PlanSucceeded)
		w.retry(p, true, "copy[1]")
		w.equal("ran", n.run(failing()), "[copy[1] after]")
		w.retry(p, true, "copy")
		n.end(expand(n.one(), `"e"`))
		n.run(failing())
		w.equalJSON("params", w.named(p, "copy[0]").Params, `{"item":"e"}`)
		w.equalJSON("output", w.named(p, "copy").Output, `[0]`)
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a foreach task over files reads them again when its parent has run again", func(w *world) {
		p := w.submit(task("z"), each("copy", plan.Foreach{Glob: "*"}, "z"))
		n := w.node("n1")
		n.end(succeed(n.one(), `1`))
		n.end(expand(n.one(), `"a"`, `"b"`))
		n.run(failing())
		w.retry(p, true, "z")
		w.want(p, "z queued", "copy held")
		n.end(succeed(n.one(), `2`))
		n.end(expand(n.one(), `"c"`))
		w.equalJSON("params", w.named(p, "copy[0]").Params, `{"needs":{"z":2},"args":[2],"item":"c"}`)
		w.equal("ran", n.run(failing()), "[copy[0]]")
		w.equal("tasks", w.plan(p.ID).Counts.Succeeded, 2)
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a foreach task that was cancelled runs its items again", func(w *world) {
		p := w.submit(each("copy", list(0, 1, 2)))
		n := w.node("n1")
		n.end()
		n.end(withOutput(n.claim(1)[0]))
		w.no(w.s.CancelPlan(w.ctx, p.ID, false))
		n.sweep()
		w.wantPlan(p, plan.PlanCancelled)
		w.retry(p, false)
		w.equal("ran", n.run(failing()), "[copy[1] copy[2]]")
		w.equalJSON("output", w.named(p, "copy").Output, `[0,2,4]`)
		w.wantPlan(p, plan.PlanSucceeded)
	}},
}
