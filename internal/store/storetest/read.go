package storetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func titles(plans []plan.Plan) []string {
	out := make([]string, len(plans))
	for i := range plans {
		out[i] = plans[i].Title()
	}
	return out
}

func taskNames(tasks []plan.Task) []string {
	out := make([]string, len(tasks))
	for i := range tasks {
		out[i] = tasks[i].Name
	}
	return out
}

var readCases = []testCase{
	{"the store's clock is that of what is in it", func(w *world) {
		before := must(w.s.Now(w.ctx))(w)
		p := must(w.s.CreatePlan(w.ctx, plan.Plan{ID: plan.PlanID{ID: plan.NewID(time.Now())}, Name: "nightly"}))(w)
		after := must(w.s.Now(w.ctx))(w)
		created := must(w.s.Plan(w.ctx, p.ID))(w).Created
		// A clock that is asked anew in between may differ by some milliseconds from one that is carried on.
		const drift = 50 * time.Millisecond
		if created.Before(before.Add(-drift)) || created.After(after.Add(drift)) {
			w.Errorf("the store's clock says %v and then %v; a plan that was made in between is of %v", before, after, created)
		}
	}},
	{"plans are found by name, run, prefix, source and state, newest first", func(w *world) {
		var plans []plan.Plan
		for i, name := range []string{"nightly", "weekly", "nightly", "nightly"} {
			p := plan.Plan{ID: plan.PlanID{ID: plan.NewID(time.Now())}, Name: name, Source: fmt.Sprintf("/plans/%d.yaml", i%2)}
			plans = append(plans, must(w.s.CreatePlan(w.ctx, p))(w))
		}
		w.no(w.s.Ready(w.ctx, plans[0].ID))
		w.no(w.s.CancelPlan(w.ctx, plans[2].ID, false))
		w.node("n1").sweep()
		find := func(q store.PlanQuery) []string { return titles(must(w.s.Plans(w.ctx, q))(w)) }
		submitting, succeeded, cancelled := plan.PlanSubmitting, plan.PlanSucceeded, plan.PlanCancelled
		for _, c := range []struct {
			what string
			q    store.PlanQuery
			want string
		}{
			{"all", store.PlanQuery{}, "[nightly#3 nightly#2 weekly#1 nightly#1]"},
			{"by name", store.PlanQuery{Name: "nightly"}, "[nightly#3 nightly#2 nightly#1]"},
			{"the latest of a name", store.PlanQuery{Name: "nightly", Limit: 1}, "[nightly#3]"},
			{"by run", store.PlanQuery{Name: "nightly", Run: 2}, "[nightly#2]"},
			{"by a name that is not there", store.PlanQuery{Name: "night"}, "[]"},
			{"by prefix", store.PlanQuery{Prefix: plans[1].ID.String()[:24]}, "[weekly#1]"},
			{"by a short prefix", store.PlanQuery{Prefix: plans[1].ID.String()[:2]}, "[nightly#3 nightly#2 weekly#1 nightly#1]"},
			{"by a prefix of none", store.PlanQuery{Prefix: "ffffff"}, "[]"},
			{"by source", store.PlanQuery{Source: "/plans/1.yaml"}, "[nightly#3 weekly#1]"},
			{"submitting", store.PlanQuery{State: &submitting}, "[nightly#3 weekly#1]"},
			{"succeeded", store.PlanQuery{State: &succeeded}, "[nightly#1]"},
			{"cancelled", store.PlanQuery{State: &cancelled, Name: "nightly"}, "[nightly#2]"},
			{"older", store.PlanQuery{Before: plans[2].ID}, "[weekly#1 nightly#1]"},
			{"some of the older", store.PlanQuery{Before: plans[3].ID, Limit: 2}, "[nightly#2 weekly#1]"},
		} {
			w.equal(c.what, find(c.q), c.want)
		}
	}},
	{"the newest plan is that which was made last, whatever its id", func(w *world) {
		var ids []plan.PlanID
		for range 6 {
			ids = append(ids, plan.PlanID{ID: plan.NewID(time.Now())})
		}
		slices.Reverse(ids) // as another process may mint them within a second
		for i, name := range []string{"nightly", "weekly", "nightly", "daily", "nightly"} {
			must(w.s.CreatePlan(w.ctx, plan.Plan{ID: ids[i], Name: name, Created: time.Unix(int64(1_000_000-i), 0)}))(w)
			if w.d.Pass == nil {
				w.pass(time.Millisecond)
			} else {
				time.Sleep(2 * time.Millisecond) // of the server's clock
			}
		}
		find := func(q store.PlanQuery) []string { return titles(must(w.s.Plans(w.ctx, q))(w)) }
		w.equal("the latest", find(store.PlanQuery{Limit: 1}), "[nightly#3]")
		w.equal("all", find(store.PlanQuery{}), "[nightly#3 daily#1 nightly#2 weekly#1 nightly#1]")
		w.equal("of a name", find(store.PlanQuery{Name: "nightly"}), "[nightly#3 nightly#2 nightly#1]")
		w.equal("the latest of a name", find(store.PlanQuery{Name: "nightly", Limit: 1}), "[nightly#3]")
		w.equal("before", find(store.PlanQuery{Before: ids[3], Limit: 2}), "[nightly#2 weekly#1]")
		w.equal("of a name before", find(store.PlanQuery{Name: "nightly", Before: ids[4], Limit: 1}), "[nightly#2]")
		w.equal("of a name before another's", find(store.PlanQuery{Name: "nightly", Before: ids[3]}), "[nightly#2 nightly#1]")
		w.equal("before one that is not there", len(find(store.PlanQuery{Before: ids[5]})), 0) // its id is the smallest
		if at := w.plan(ids[0]).Created; w.d.Pass == nil && !at.Equal(w.clock.Now().Add(-5*time.Millisecond)) || time.Since(at) > 24*time.Hour {
			w.Errorf("created %v, want it of the store's clock", at)
		}
	}},
	{"plans come with their counts", func(w *world) {
		p := w.submit(task("a"), task("b", "a"), task("c"))
		got := must(w.s.Plans(w.ctx, store.PlanQuery{Name: p.Name}))(w)
		w.equal("counts", []int{got[0].Counts.Queued, got[0].Counts.Held}, "[2 1]")
	}},
	{"a hundred are returned where no limit is given", func(w *world) {
		var tasks []plan.TaskSpec
		for i := range 120 {
			must(w.s.CreatePlan(w.ctx, plan.Plan{Name: "many"}))(w)
			tasks = append(tasks, task(fmt.Sprint("t", i)))
		}
		p := w.submit(tasks...)
		w.equal("plans", len(must(w.s.Plans(w.ctx, store.PlanQuery{}))(w)), 100)
		w.equal("tasks", len(must(w.s.Tasks(w.ctx, store.TaskQuery{Plan: p.ID}))(w)), 100)
	}},
	{"tasks are found by plan, name, prefix, queue, status, ids and place, oldest or newest first", func(w *world) {
		w.queue("narrow", 1)
		p := w.submit(task("a"), task("b", "a"), in("narrow", "c"), each("copy", list(1, 2)))
		q := w.queue("exec", 0)
		w.add(plan.PlanID{}, w.newTask(q, "a"), w.newTask(q, "plain"))
		n := w.node("n1")
		n.end()
		n.turn(protocol.Turn{Slots: 9, Plan: p.ID, Start: true})
		for _, c := range n.holding {
			if c.Name == "a" {
				n.end(succeed(c, "1"))
			}
		}
		a, b, c := w.named(p, "a").ID, w.named(p, "b").ID, w.named(p, "c").ID
		copied := w.named(p, "copy").ID
		for _, c := range []struct {
			what string
			q    store.TaskQuery
			want string
		}{
			{"of a plan, without items", store.TaskQuery{Plan: p.ID, NoItems: true}, "[a b c copy]"},
			{"newest first", store.TaskQuery{Plan: p.ID, NoItems: true, Newest: true}, "[copy c b a]"},
			{"after", store.TaskQuery{Plan: p.ID, NoItems: true, After: a, Limit: 2}, "[b c]"},
			{"after, newest first", store.TaskQuery{Plan: p.ID, NoItems: true, After: c, Newest: true}, "[b a]"},
			{"items", store.TaskQuery{Of: copied}, "[copy[0] copy[1]]"},
			{"the items after one", store.TaskQuery{Of: copied, After: rules.ItemID(copied, 0)}, "[copy[1]]"},
			{"of no plan", store.TaskQuery{NoPlan: true}, "[a plain]"},
			{"by name", store.TaskQuery{Plan: p.ID, Name: "b"}, "[b]"},
			{"by prefix", store.TaskQuery{Prefix: b.String()}, "[b]"},
			{"by queue", store.TaskQuery{Queue: w.queueNamed("narrow").ID}, "[c]"},
			{"by status", store.TaskQuery{Plan: p.ID, Statuses: []plan.Status{plan.Held, plan.Succeeded}, NoItems: true}, "[a copy]"},
			{"by ids", store.TaskQuery{IDs: []plan.TaskID{c, a, {ID: plan.NewID(time.Now())}}}, "[a c]"},
			{"by what they need", store.TaskQuery{Plan: p.ID, Parent: a}, "[b]"},
			{"by what they need and how they stand", store.TaskQuery{Plan: p.ID, Parent: a, Statuses: []plan.Status{plan.Held}}, "[]"},
			{"by what they need and their name", store.TaskQuery{Plan: p.ID, Parent: a, Name: "b"}, "[b]"},
			{"by what they need, newest first", store.TaskQuery{Plan: p.ID, Parent: a, Newest: true, After: c}, "[b]"},
			{"by what they need, of another plan", store.TaskQuery{Plan: plan.PlanID{ID: plan.NewID(time.Now())}, Parent: a}, "[]"},
			{"by what nothing needs", store.TaskQuery{Plan: p.ID, Parent: b}, "[]"},
			{"by what is not there", store.TaskQuery{Plan: p.ID, Parent: plan.TaskID{ID: plan.NewID(time.Now())}}, "[]"},
			{"of a plan that is not there", store.TaskQuery{Plan: plan.PlanID{ID: plan.NewID(time.Now())}}, "[]"},
		} {
			w.equal(c.what, taskNames(must(w.s.Tasks(w.ctx, c.q))(w)), c.want)
		}
	}},
	{"a brief read tells where a task belongs and how it ran as any other does", func(w *world) {
		p := w.submit(task("a"), task("b", "a"), task("c", "b"), each("copy", list(1, 2)), task("after", "copy", "a"),
			plan.TaskSpec{Name: "anyway", Needs: []string{"copy"}, When: plan.AllDone, ContinueOnError: true})
		q := w.queue("exec", 0)
		w.add(plan.PlanID{}, w.newTask(q, "plain"))
		n := w.node("n1")
		for _, c := range n.turn(protocol.Turn{Slots: 9, Start: true}).Claimed {
			if c.Name == "a" {
				n.end(fail(c))
			}
		}
		for _, needs := range []bool{false, true} {
			for _, q := range []store.TaskQuery{{Plan: p.ID}, {NoPlan: true}, {Plan: p.ID, Newest: true}, {Of: w.named(p, "copy").ID}, {Plan: p.ID, Statuses: []plan.Status{plan.Cancelled}}} {
				q.Needs = needs
				brief := q
				brief.Brief = true
				all, some := w.all(q), w.all(brief)
				if len(all) == 0 || len(all) != len(some) {
					w.Fatalf("%+v: %d tasks, and %d briefly", q, len(all), len(some))
				}
				for i := range all {
					told := func(t *plan.Task) plan.Task {
						var d plan.Definition
						if needs {
							d.When, d.ContinueOnError = t.When, t.ContinueOnError
						}
						return plan.Task{
							Definition: d,

							ID: t.ID, Plan: t.Plan, Of: t.Of, Index: t.Index, Name: t.Name, Status: t.Status, Reason: t.Reason, Started: t.Started, Ended: t.Ended, Needs: t.Needs,
						}
					}
					w.equal("briefly", told(&some[i]), told(&all[i]))
				}
			}
		}
	}},
	{"the children of a task are found whatever has become of them, a page at a time, and among their many parents", func(w *world) {
		var names []string
		tasks := []plan.TaskSpec{task("root")}
		for i := range 600 {
			names = append(names, fmt.Sprint("t", i))
			tasks = append(tasks, task(names[i], "root"))
		}
		p := w.submit(append(tasks, task("all", names...), task("few", "t7", "t599"))...)
		n := w.node("n1")
		n.end(ok(n.one()))
		over := n.claim(1)[0]
		n.end(ok(over))
		root := w.named(p, "root").ID
		children := w.all(store.TaskQuery{Plan: p.ID, Parent: root})
		w.equal("of the root", taskNames(children), names)
		w.equal("the first of them", taskNames(must(w.s.Tasks(w.ctx, store.TaskQuery{Plan: p.ID, Parent: root, Limit: 2}))(w)), "[t0 t1]")
		w.equal("the last of them", taskNames(must(w.s.Tasks(w.ctx, store.TaskQuery{Plan: p.ID, Parent: root, Newest: true, Limit: 2}))(w)), "[t599 t598]")
		w.equal("of one", taskNames(w.all(store.TaskQuery{Plan: p.ID, Parent: w.named(p, "t7").ID})), "[all few]")
		w.equal("of one that is over", taskNames(w.all(store.TaskQuery{Plan: p.ID, Parent: over.Task})), "[all]")
		w.add(p.ID, plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: "late", Queue: children[0].Queue, Needs: []plan.TaskID{children[3].ID, children[3].ID}})
		w.equal("of one to which a child was added late, twice", taskNames(w.all(store.TaskQuery{Plan: p.ID, Parent: children[3].ID})), "[all late]")
	}},
	{"a failure is found by its own code, and by that which stands for all", func(w *world) {
		w.submit(task("ok"), task("two"), task("three"), task("four"), task("waits", "ok"))
		n := w.node("n1")
		for i, c := range n.take("ok", "two", "three", "four") {
			n.end(protocol.Ending{Claim: c.Claim, Status: plan.Succeeded + plan.Status(i)})
		}
		for _, c := range []struct {
			statuses []plan.Status
			want     string
		}{
			{[]plan.Status{plan.Failed}, "[two three four]"},
			{[]plan.Status{3}, "[three]"},
			{[]plan.Status{3, plan.Succeeded}, "[ok three]"},
			{[]plan.Status{plan.Failed, plan.Queued}, "[two three four waits]"},
			{[]plan.Status{4, plan.Failed}, "[two three four]"},
			{[]plan.Status{5}, "[]"},
		} {
			w.equal(fmt.Sprint("of ", c.statuses), taskNames(w.all(store.TaskQuery{Statuses: c.statuses})), c.want)
		}
	}},
	{"pages hold every task once", func(w *world) {
		p := w.submit(numbered(57)...)
		for _, newest := range []bool{false, true} {
			var got []string
			q := store.TaskQuery{Plan: p.ID, Limit: 10, Newest: newest}
			for {
				page := must(w.s.Tasks(w.ctx, q))(w)
				if len(page) == 0 {
					break
				}
				got = append(got, taskNames(page)...)
				q.After = page[len(page)-1].ID
			}
			if newest {
				slices.Reverse(got)
			}
			w.equal("tasks", len(got), 57)
			w.equal("first and last", []string{got[0], got[len(got)-1]}, "[t0 t56]")
		}
	}},
	{"params, needs and output come with tasks only where they are asked for", func(w *world) {
		p := w.submit(task("a"), plan.TaskSpec{Name: "b", Needs: []string{"a"}, Params: json.RawMessage(`{"run":"x"}`)})
		n := w.node("n1")
		n.end(succeed(n.one(), `"out"`))
		for _, t := range must(w.s.Tasks(w.ctx, store.TaskQuery{Plan: p.ID}))(w) {
			if t.Params != nil || t.Needs != nil || t.Output != nil {
				w.Errorf("task %q comes with params %s, needs %v, output %s", t.Name, t.Params, t.Needs, t.Output)
			}
		}
		full := must(w.s.Tasks(w.ctx, store.TaskQuery{Plan: p.ID, Params: true, Needs: true, Output: true}))(w)
		w.equalJSON("output", full[0].Output, `"out"`)
		w.equalJSON("params", full[1].Params, `{"run":"x","needs":{"a":"out"},"args":["out"]}`)
		w.equal("needs", full[1].Needs, []plan.TaskID{full[0].ID})
	}},
	{"JSON keeps its value: large numbers, texts, and what a database might take for its own", func(w *world) {
		for _, out := range []string{
			`9007199254740993`, `12345678901234567890`, `-1`, `0.1`, `"\u0000\ud83d\ude00\""`, `{"$oid":"x","$date":1,"a.b":{"":[]}}`,
			`{"$numberLong":"1"}`, `[[],{},null,true,false]`, `""`, `"<&>"`, `"$x"`,
		} {
			p := w.submit(task("a"), plan.TaskSpec{Name: "b", Needs: []string{"a"}, Params: json.RawMessage(`{"own":` + out + `}`)})
			n := w.node("n1")
			n.end(succeed(n.one(), out))
			w.equalJSON("output", w.named(p, "a").Output, out)
			b := n.one()
			w.equalJSON("params", b.Params, `{"own":`+out+`,"needs":{"a":`+out+`},"args":[`+out+`]}`)
			n.end(ok(b))
		}
	}},
	{"the log of a task that is not there is empty, or not found", func(w *world) {
		entries, _, err := w.s.Log(w.ctx, plan.TaskID{ID: plan.NewID(time.Now())}, 0, 10)
		if err != nil {
			w.is(err, plan.ErrNotFound)
		}
		w.equal("entries", len(entries), 0)
	}},
	{"the log keeps what every attempt printed, of any length", func(w *world) {
		p := w.submit(task("a"), task("b"))
		n := w.node("n1")
		c := n.take("a", "b")
		var lines []plan.LogEntry
		for i := range 500 {
			lines = append(lines, plan.LogEntry{At: time.Now(), Attempt: 1, Stream: plan.Stdout, Text: fmt.Sprintf("%d %s\n", i, string(make([]byte, 1000)))})
		}
		w.no(n.s.AppendLog(w.ctx, c[0].Claim, lines))
		e := later(c[0], time.Second)
		e.Log = []plan.LogEntry{{At: time.Now(), Attempt: 1, Stream: plan.System, Text: "again in 1s\n"}}
		n.end(e)
		w.pass(time.Minute)
		n.sweep()
		again := n.one()
		e = ok(again)
		e.Log = []plan.LogEntry{{At: time.Now(), Attempt: 2, Stream: plan.Stdout, Text: "done\n"}}
		n.end(e)
		var got []plan.LogEntry
		for cursor := int64(0); ; {
			page, next, err := w.s.Log(w.ctx, c[0].Task, cursor, 100)
			w.no(err)
			if next < cursor+int64(len(page)) {
				w.Errorf("%d entries after cursor %d end at %d: an entry raises it by one at least", len(page), cursor, next)
			}
			back := max(0, cursor-30)
			looked, upTo, err := w.s.Log(w.ctx, c[0].Task, back, int(cursor-back))
			w.no(err)
			w.equal("the end of what is looked back at", upTo <= cursor && len(looked) > 0, cursor > 0)
			for i, e := range looked {
				w.equal("looked back", e.Text, got[len(got)-len(looked)+i].Text)
			}
			if cursor = next; len(page) == 0 {
				break
			}
			got = append(got, page...)
		}
		w.equal("entries", len(got), 502)
		w.equal("last", []any{got[500].Stream, got[500].Text, got[501].Attempt, got[501].Text}, []any{plan.System, "again in 1s\n", 2, "done\n"})
		w.equal("text", got[499].Text, lines[499].Text)
		other, _, err := w.s.Log(w.ctx, w.named(p, "b").ID, 0, 10)
		w.no(err)
		w.equal("of another task", len(other), 0)
	}},
}
