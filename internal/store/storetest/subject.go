package storetest

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// unfinished are the statuses for which stores have an index of subjects.
var unfinished = []plan.Status{plan.Held, plan.Queued, plan.Claimed, plan.Running}

// about returns the names of the tasks with a subject: those that have not finished, and all. Another
// handle reads them.
func (w *world) about(subject string) string {
	w.Helper()
	r := w.reopen(nil)
	var names [2][]string
	for i, statuses := range [][]plan.Status{unfinished, nil} {
		names[i] = taskNames(must(r.Tasks(w.ctx, store.TaskQuery{Subject: subject, Statuses: statuses}))(w))
	}
	return fmt.Sprint(names[0], names[1])
}

var subjectCases = []testCase{
	{"tasks are found by their subject, with other conditions too, whatever becomes of them", func(w *world) {
		each := each("each", list(map[string]any{"n": "7"}, map[string]any{"n": 8}, map[string]any{}))
		each.Subject = "item ${{ item.n }}"
		first, second := task("first"), task("second", "first")
		first.Subject, second.Subject = "order 7", "order 7"
		p := w.submit(first, second, each, task("other"))
		q, narrow := w.queue("exec", 0), w.queue("narrow", 0)
		for _, queue := range []plan.Queue{q, narrow} {
			t := w.newTask(queue, "in-"+queue.Name)
			t.Subject = "order 7"
			w.plain(t)
		}
		n := w.node("n1")
		n.sweep()
		w.equal("at first", w.about("order 7"), "[first second in-exec in-narrow] [first second in-exec in-narrow]")
		w.equal("an item with a text", w.about("item 7"), "[each[0]] [each[0]]")
		w.equal("an item with a number", w.about("item 8"), "[each[1]] [each[1]]")
		w.equal("an item without a subject", w.named(p, "each[2]").Subject, "")
		w.equal("part of a subject", w.about("order"), "[] []")
		for _, c := range []struct {
			what string
			q    store.TaskQuery
			want string
		}{
			{"newest first", store.TaskQuery{Newest: true, Limit: 2}, "[in-narrow in-exec]"},
			{"of no plan", store.TaskQuery{NoPlan: true}, "[in-exec in-narrow]"},
			{"of a plan", store.TaskQuery{Plan: p.ID, NoItems: true}, "[first second]"},
			{"of a queue", store.TaskQuery{Queue: narrow.ID}, "[in-narrow]"},
			{"after one", store.TaskQuery{NoPlan: true, After: w.all(store.TaskQuery{Queue: q.ID, NoPlan: true})[0].ID}, "[in-narrow]"},
			{"by a name", store.TaskQuery{Plan: p.ID, Name: "second"}, "[second]"},
			{"by ids", store.TaskQuery{IDs: []plan.TaskID{w.named(p, "first").ID, w.named(p, "other").ID}}, "[first]"},
			{"that are held", store.TaskQuery{Statuses: []plan.Status{plan.Held}}, "[second]"},
			{"that have finished or are held", store.TaskQuery{Statuses: []plan.Status{plan.Held, plan.Succeeded}}, "[second]"},
			{"briefly", store.TaskQuery{Plan: p.ID, NoItems: true, Brief: true}, "[first second]"},
		} {
			c.q.Subject = "order 7"
			if c.q.Statuses == nil {
				c.q.Statuses = unfinished
			}
			w.equal(c.what, taskNames(must(w.s.Tasks(w.ctx, c.q))(w)), c.want)
		}
		var ended []protocol.Ending
		for _, c := range n.claim(9) {
			w.equal("subject of the claim of "+c.Name, c.Subject, w.task(c.Task).Subject)
			switch c.Name {
			case "first":
				ended = append(ended, fail(c))
			case "in-exec":
				ended = append(ended, ok(c))
			}
		}
		w.equal("of claimed tasks", w.about("order 7"), "[first second in-exec in-narrow] [first second in-exec in-narrow]")
		n.end(ended...)
		n.sweep()
		w.equal("of tasks that ended", w.about("order 7"), "[in-narrow] [first second in-exec in-narrow]")
	}},
	{"a subject stays over a retry, and changes with a new definition and by a change", func(w *world) {
		a := task("a")
		a.Subject = "one"
		p := w.submit(a, task("b", "a"))
		n := w.node("n1")
		n.end(fail(n.one()))
		n.sweep()
		w.no(w.tryRetry(p.ID, rules.Ask{}))
		w.equal("after a retry", w.about("one"), "[a] [a]")
		n.end(fail(n.one()))
		n.sweep()
		t := w.named(p, "a")
		d := t.Definition
		d.Subject = "two"
		w.no(w.tryRetry(p.ID, rules.Ask{Replace: []plan.Task{{ID: t.ID, Name: t.Name, Queue: t.Queue, Params: json.RawMessage(`{}`), Definition: d}}}))
		w.equal("the old one after a retry with another", w.about("one"), "[] []")
		w.equal("the new one", w.about("two"), "[a] [a]")

		plain := w.newTask(w.queue("exec", 0), "plain")
		plain.NotBefore = *w.in(time.Hour)
		w.plain(plain)
		for _, to := range []string{"two", "Bestellung 4711 – ☕", ""} {
			w.equal("subject", w.set(plain.ID, rules.TaskChange{Subject: &to}).Subject, to)
		}
		w.equal("after it was taken away", w.about("two"), "[a] [a]")
		to := "three"
		w.set(plain.ID, rules.TaskChange{Subject: &to})
		w.no(w.s.CancelTask(w.ctx, plain.ID))
		w.equal("of a cancelled task", w.about("three"), "[] [plain]")
		w.no(w.tryRetry(plan.PlanID{}, rules.Ask{Tasks: []plan.TaskID{plain.ID}}))
		w.equal("of a task of no plan that was retried", w.about("three"), "[plain] [plain]")
		long := fmt.Sprintf("%0201d", 0)
		if err := w.s.SetTask(w.ctx, plain.ID, rules.TaskChange{Subject: &long}); err == nil {
			w.Errorf("a subject of %d bytes was accepted", len(long))
		}
		w.equal("after a change that was refused", w.about("three"), "[plain] [plain]")
	}},
}
