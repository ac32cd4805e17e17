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
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// relistCases are about retries that compare the lists of foreach tasks with their items.
var relistCases = []testCase{
	{"items that come are added behind the others, those that are gone are skipped, and what is below runs again", func(w *world) {
		p := w.submit(each("copy", list("a", "b", "c")), along("check", "", "copy"), task("total", "check"), task("beside"))
		n := w.node("n1")
		n.run(withOutput)
		w.wantPlan(p, plan.PlanSucceeded)
		ask := rules.Ask{Lists: rules.ListsCompared, Replace: w.overList(p, "copy", `["d","c","a"]`), Check: true}
		edits := w.plan(p.ID).Edits
		retried := must(w.s.Retry(w.ctx, p.ID, ask))(w)
		w.equal("after a check", []any{w.plan(p.ID).Edits, w.plan(p.ID).Counts}, []any{edits, plan.Counts{Succeeded: 8, Gathered: 2}})
		w.equal("copy", w.counts(p, retried)["copy"], rules.RelistCounts{Added: 1, Gone: 1, Kept: 2})
		w.equal("check", w.counts(p, retried)["check"], rules.RelistCounts{Added: 1, Gone: 1, Kept: 2})
		ask.Check = false
		w.equal("retried", len(must(w.s.Retry(w.ctx, p.ID, ask))(w)), len(retried))
		w.equal("ran", n.run(withOutput), "[copy[3] check[3] total]")
		w.want(p, "copy succeeded", "copy[0] succeeded", "copy[1] skipped", "copy[2] succeeded", "copy[3] succeeded",
			"check succeeded", "check[0] succeeded", "check[1] skipped", "check[2] succeeded", "check[3] succeeded", "total succeeded", "beside succeeded")
		gone := w.named(p, "copy[1]")
		w.equal("the item that is gone", []any{gone.Reason, gone.Detail, gone.Attempt}, []any{plan.ReasonGone, rules.ByGone, 0})
		w.equalJSON("output", w.named(p, "copy").Output, "[0,null,4,6]")
		w.equalJSON("item", rules.ItemOf(must(w.s.Task(w.ctx, w.named(p, "copy[3]").ID))(w).Params), `"d"`)
		w.equal("needs", w.named(p, "check[3]").Needs, []plan.TaskID{w.named(p, "copy[3]").ID})
		w.equal("counts", w.plan(p.ID).Counts, plan.Counts{Succeeded: 8, Skipped: 2, Gathered: 2})
		w.wantPlan(p, plan.PlanSucceeded)

		w.is(w.tryRetry(p.ID, rules.Ask{Lists: rules.ListsCompared}), plan.ErrConflict) // nothing comes or goes
		w.is(w.tryRetry(p.ID, rules.Ask{Tasks: []plan.TaskID{gone.ID}}), plan.ErrConflict)
		w.no(w.tryRetry(p.ID, rules.Ask{Lists: rules.ListsCompared, Replace: w.overList(p, "copy", `["a","b","c","d"]`)}))
		w.equal("ran when it was back", n.run(withOutput), "[copy[1] check[1] total]")
		w.equalJSON("output", w.named(p, "check").Output, "[0,2,4,6]")
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a retry that is to make lists again leaves a plan as it ended if no task makes one", func(w *world) { // walk 608182767
		p := w.submit(task("first"), each("copy", list("a", "b")))
		w.node("n1").end() // the items are made
		w.no(w.s.CancelPlan(w.ctx, p.ID, false))
		before := w.plan(p.ID)
		w.equal("taken", len(must(w.s.Retry(w.ctx, p.ID, rules.Ask{Lists: rules.ListsAgain}))(w)), 0)
		after := w.plan(p.ID)
		w.equal("state", after.State, plan.PlanCancelled)
		w.equal("ended", after.Ended, before.Ended)
	}},
	{"a retry compares the items that a node found in files with those that the caller finds there", func(w *world) {
		p := w.submit(each("copy", plan.Foreach{Lines: "/tmp/list"}), along("check", "", "copy"), task("total", "check"))
		n := w.node("n1")
		n.run(func(c protocol.ClaimedTask) protocol.Ending {
			if c.Name == "copy" {
				return expand(c, `"a"`, `"b"`)
			}
			return withOutput(c)
		})
		w.wantPlan(p, plan.PlanSucceeded)
		w.is(w.tryRetry(p.ID, rules.Ask{Lists: rules.ListsCompared}), plan.ErrConflict) // nobody has read the files
		found := map[plan.TaskID][]json.RawMessage{w.named(p, "copy").ID: {json.RawMessage(`"b"`), json.RawMessage(`"c"`)}}
		retried := must(w.s.Retry(w.ctx, p.ID, rules.Ask{Lists: rules.ListsCompared, Found: found}))(w)
		w.equal("copy", w.counts(p, retried)["copy"], rules.RelistCounts{Added: 1, Gone: 1, Kept: 1})
		w.equal("ran", n.run(withOutput), "[copy[2] check[2] total]")
		w.want(p, "copy succeeded", "copy[0] skipped", "copy[1] succeeded", "copy[2] succeeded",
			"check succeeded", "check[0] skipped", "check[1] succeeded", "check[2] succeeded", "total succeeded")
		w.equalJSON("item", rules.ItemOf(must(w.s.Task(w.ctx, w.named(p, "copy[2]").ID))(w).Params), `"c"`)
		w.is(w.tryRetry(p.ID, rules.Ask{Lists: rules.ListsCompared, Found: found}), plan.ErrConflict) // nothing comes or goes
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a retry runs the parent again that prints the list, and nothing else, and then compares", func(w *world) {
		p := w.submit(task("list"), each("copy", plan.Foreach{Value: "needs.list", Key: "${{ item.id }}"}, "list"), task("total", "copy"))
		n := w.node("n1")
		run := func(list string, fails ...string) []string {
			return n.run(func(c protocol.ClaimedTask) protocol.Ending {
				switch {
				case c.Name == "list":
					return succeed(c, list)
				case slices.Contains(fails, c.Name):
					return fail(c)
				}
				return withOutput(c)
			})
		}
		run(`[{"id":"x","v":1},{"id":"y","v":1},{"id":"z","v":1}]`, "copy[1]")
		again := func(list string) {
			w.no(w.tryRetry(p.ID, rules.Ask{Lists: rules.ListsAgain}))
			w.equal("ran to print "+list, run(list), "[list]")
		}
		again(`"none"`)
		w.is(w.tryRetry(p.ID, rules.Ask{Lists: rules.ListsCompared}), plan.ErrConflict)
		again(`[{"id":"x"},{"id":"x"}]`)
		w.is(w.tryRetry(p.ID, rules.Ask{Lists: rules.ListsCompared}), plan.ErrConflict)
		w.want(p, "list succeeded", "copy failed", "copy[0] succeeded", "copy[1] failed", "copy[2] succeeded", "total skipped")
		again(`[{"id":"z","v":2},{"id":"y","v":1},{"id":"new","v":1}]`)
		retried := must(w.s.Retry(w.ctx, p.ID, rules.Ask{Lists: rules.ListsCompared}))(w)
		w.equal("copy", w.counts(p, retried)["copy"], rules.RelistCounts{Added: 1, Gone: 1, Kept: 2, Changed: 1})
		w.equal("ran", run(""), "[copy[1] copy[3] total]")
		w.equalJSON("output", w.named(p, "copy").Output, "[null,2,4,6]")
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"lists that follow from others are compared after them, and what is gone is no item", func(w *world) {
		load := each("load", plan.Foreach{Value: "needs.copy"}, "copy")
		p := w.submitSpec(release(each("copy", list("a", "b")), along("check", "", "copy"), load, task("total", "copy", "load"), task("beside")))
		n := w.node("n1")
		n.run(withOutput)
		w.wantPlan(p, plan.PlanSucceeded)
		first := rules.Ask{Lists: rules.ListsFirst, Replace: w.overList(p, "copy", `["a","c"]`)}
		compare := rules.Ask{Lists: rules.ListsCompared, Replace: first.Replace}
		w.refused(w.tryRetry(p.ID, compare), "its list comes from copy, which runs again")
		retried := must(w.s.Retry(w.ctx, p.ID, first))(w)
		w.equal("copy", w.counts(p, retried)["copy"], rules.RelistCounts{Added: 1, Gone: 1, Kept: 1})
		w.want(p, "load succeeded", "total succeeded", "tell succeeded")
		w.equal("runs first", n.run(withOutput), "[copy[2] check[2]]")
		w.equalJSON("output", w.named(p, "copy").Output, "[0,null,4]")
		w.wantPlan(p, plan.PlanSucceeded)
		first.Replace = nil
		w.equal("nothing else comes first", len(must(w.s.Retry(w.ctx, p.ID, first))(w)), 0)
		retried = must(w.s.Retry(w.ctx, p.ID, rules.Ask{Lists: rules.ListsCompared}))(w)
		w.equal("load", w.counts(p, retried)["load"], rules.RelistCounts{Added: 1, Gone: 1, Kept: 1})
		w.equal("runs then", n.run(withOutput), "[load[2] total tell]")
		w.equalJSON("item", rules.ItemOf(must(w.s.Task(w.ctx, w.named(p, "load[2]").ID))(w).Params), `4`)
		w.wantPlan(p, plan.PlanSucceeded)
		w.is(w.tryRetry(p.ID, rules.Ask{Lists: rules.ListsCompared}), plan.ErrConflict) // nothing comes or goes
	}},
	{"the run that makes lists leaves tasks of finally as they ended, and the comparison asks them again", func(w *world) {
		for _, fails := range []string{"tell", "list", ""} {
			p := w.submitSpec(release(task("list"), each("copy", plan.Foreach{Value: "needs.list"}, "list")))
			n := w.node("n1")
			run := func(list, fails string) string {
				return fmt.Sprint(n.run(func(c protocol.ClaimedTask) protocol.Ending {
					switch c.Name {
					case fails:
						return fail(c)
					case "list":
						return succeed(c, list)
					}
					return ok(c)
				}))
			}
			failed := func(name string) string { // which of them fails
				if name == fails {
					return name
				}
				return ""
			}
			w.equal("runs", run("[1]", failed("tell")), "[list copy[0] tell]")
			w.no(w.tryRetry(p.ID, rules.Ask{Lists: rules.ListsAgain}))
			w.want(p, "list queued", "copy succeeded", "rollback skipped")
			w.equal("ending", w.plan(p.ID).Ending, plan.PlanRunning)
			w.equal("makes the list", run("[1,2]", failed("list")), "[list]")
			now, ending := w.plan(p.ID), plan.PlanSucceeded
			if fails == "list" {
				ending = plan.PlanFailed
			}
			w.equal("ending with "+fails, now.Ending, ending)
			w.equal("ended", now.State == plan.PlanFailed, fails != "")
			if fails == "list" {
				w.equal("runs again", run("[1,2]", ""), "[]")
				w.retry(p, false)
				w.equal("asks them again", run("[1,2]", ""), "[list tell]")
				continue
			}
			w.no(w.tryRetry(p.ID, rules.Ask{Lists: rules.ListsCompared}))
			w.want(p, "list succeeded", "rollback held", "tell held")
			w.equal("compares", run("", ""), "[copy[1] tell]")
			w.wantPlan(p, plan.PlanSucceeded)
		}
	}},
	{"a retry that died at any of its writes is made whole by the next one", func(w *world) {
		for at, made := 1, false; !made; at += max(1, w.d.Halfway) {
			p := w.submit(each("copy", list("a", "b", "c")), along("check", "", "copy"), task("total", "check"))
			w.node("n1").run(withOutput)
			ask := rules.Ask{Lists: rules.ListsCompared, Replace: w.overList(p, "copy", `["c","a","d"]`)}
			writes := 0
			s := w.d.Reopen(w.T, w.s, Options{Now: w.clock.Now, Hook: func(written bool) error {
				if !written {
					writes++
				}
				if writes >= at {
					return errKilled
				}
				return nil
			}})
			_, err := s.Retry(w.ctx, p.ID, ask)
			made = err == nil
			w.no(s.Close())
			w.check()
			w.pass(20 * time.Minute)
			n := w.node("after")
			n.sweep()
			n.run(withOutput)
			if _, err := w.s.Retry(w.ctx, p.ID, ask); err != nil && !errors.Is(err, plan.ErrConflict) {
				w.Errorf("after a death at write %d: %v", at, err)
			}
			n.run(withOutput)
			w.want(p, "copy succeeded", "copy[0] succeeded", "copy[1] skipped", "copy[2] succeeded", "copy[3] succeeded",
				"check succeeded", "check[1] skipped", "check[3] succeeded", "total succeeded")
			w.equalJSON(fmt.Sprintf("output after a death at write %d", at), w.named(p, "check").Output, "[0,null,4,6]")
			w.wantPlan(p, plan.PlanSucceeded)
			w.check()
		}
	}},
	{"what comes to more items than one join counts", func(w *world) {
		p := w.submit(each("copy", plan.Foreach{List: ordinals(400)}), task("total", "copy"))
		n := w.node("n1")
		n.run(withOutput)
		some := []string{}
		for i := range 900 {
			if i%10 != 3 || i > 400 {
				some = append(some, fmt.Sprint(i))
			}
		}
		w.no(w.tryRetry(p.ID, rules.Ask{Lists: rules.ListsCompared, Replace: w.overList(p, "copy", "["+strings.Join(some, ",")+"]")}))
		w.equal("ran", len(n.run(withOutput)), 501)
		var out []any
		w.no(json.Unmarshal(w.named(p, "copy").Output, &out))
		w.equal("output", []any{len(out), out[3], out[899]}, []any{900, nil, 1798})
		w.equal("counts", w.plan(p.ID).Counts, plan.Counts{Succeeded: 861, Skipped: 40, Gathered: 1})
		w.wantPlan(p, plan.PlanSucceeded)
	}},
}

// overList replaces a foreach task by one over another list.
func (w *world) overList(p plan.Plan, name, items string) []plan.Task {
	w.Helper()
	t := w.named(p, name)
	f := *t.Foreach
	f.List, t.Foreach = json.RawMessage(items), &f
	return []plan.Task{t}
}

// counts returns what a retry says of lists, by the names of their tasks.
func (w *world) counts(p plan.Plan, retried []rules.Retried) map[string]rules.RelistCounts {
	w.Helper()
	names, found := map[plan.TaskID]string{}, map[string]rules.RelistCounts{}
	for _, t := range w.all(store.TaskQuery{Plan: p.ID}) {
		names[t.ID] = t.Name
	}
	for _, r := range retried {
		if r.Items != nil {
			found[names[r.ID]] = *r.Items
		}
	}
	return found
}
