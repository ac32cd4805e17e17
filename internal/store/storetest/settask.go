package storetest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// plain adds a task of no plan, and returns it as it is then.
func (w *world) plain(t plan.Task) plan.Task {
	w.Helper()
	w.add(plan.PlanID{}, t)
	return w.task(t.ID)
}

// in returns an instant in so long, by the store's clock.
func (w *world) in(d time.Duration) *time.Time {
	at := w.clock.Now().Add(d).Truncate(time.Millisecond)
	return &at
}

// set changes a task of no plan, twice: the second call finds the task as it is to be.
func (w *world) set(id plan.TaskID, c rules.TaskChange) plan.Task {
	w.Helper()
	w.no(w.s.SetTask(w.ctx, id, c))
	t := w.task(id)
	w.no(w.s.SetTask(w.ctx, id, c))
	if again := w.task(id); !again.Modified.Equal(t.Modified) {
		w.Errorf("the same change again changed task %q, at %v and %v", t.Name, t.Modified, again.Modified)
	}
	return t
}

// heldUntil fails the test unless the task is held until the instant.
func (w *world) heldUntil(t plan.Task, at *time.Time) {
	w.Helper()
	if t.Status != plan.Held || !t.NotBefore.Equal(*at) {
		w.Errorf("task %q is %v, not before %v; want held until %v", t.Name, t.Status, t.NotBefore, at)
	}
}

var setTaskCases = []testCase{
	{"each field of a waiting task of no plan can be changed, and the others stay", func(w *world) {
		q := w.queue("exec", 0)
		first := plan.Definition{Description: "first", Subject: "order 1", Timeout: time.Minute, Retry: plan.Retry{Attempts: 2, Delay: time.Second}, Rank: 7, Secrets: []string{"token"}}
		hour := 5 * time.Minute
		for _, held := range []bool{true, false} {
			t := w.newTask(q, "t")
			t.Definition, t.Params = first, json.RawMessage(`{"run":"a","n":1.50}`)
			if held {
				t.NotBefore = *w.in(time.Hour)
			}
			was := w.plain(t)
			want := was.Definition
			check := func(what string, got plan.Task, params string) {
				w.Helper()
				w.equal(what+": definition", fmt.Sprintf("%+v", got.Definition), fmt.Sprintf("%+v", want))
				w.equalJSON(what+": params", got.Params, params)
				w.equal(what+": the rest", []any{got.Status, got.NotBefore.Equal(was.NotBefore), got.Attempt, got.Created.Equal(was.Created)}, []any{was.Status, true, 0, true})
			}
			want.Retry.Attempts = 5
			check("attempts", w.set(t.ID, rules.TaskChange{Attempts: 5}), `{"run":"a","n":1.50}`)
			want.Timeout = hour
			check("timeout", w.set(t.ID, rules.TaskChange{Timeout: &hour}), `{"run":"a","n":1.50}`)
			want.Timeout = 0
			check("no timeout", w.set(t.ID, rules.TaskChange{Timeout: new(time.Duration)}), `{"run":"a","n":1.50}`)
			want.Subject = "order 2"
			check("subject", w.set(t.ID, rules.TaskChange{Subject: &want.Subject}), `{"run":"a","n":1.50}`)
			want.Template = true
			check("params", w.set(t.ID, rules.TaskChange{Params: json.RawMessage(`{"$run":{"a.b":12345678901234567890}}`), Template: true}), `{"$run":{"a.b":12345678901234567890}}`)
			want.Template, want.Retry.Attempts = false, 3
			check("all", w.set(t.ID, rules.TaskChange{Params: json.RawMessage(`{"run":"b"}`), Attempts: 3}), `{"run":"b"}`)
			w.pass(2 * time.Hour)
			n := w.node("n1")
			n.sweep()
			c := n.one()
			w.equalJSON("claimed params", c.Params, `{"run":"b"}`)
			w.equal("claimed definition", fmt.Sprintf("%+v", c.Definition), fmt.Sprintf("%+v", want))
			n.end(ok(c))
		}
	}},
	{"a held task runs at its new instant, and not at the old one", func(w *world) {
		q := w.queue("exec", 0)
		t := w.newTask(q, "t")
		t.NotBefore = *w.in(time.Hour)
		w.plain(t)
		at := w.in(3 * time.Hour)
		w.heldUntil(w.set(t.ID, rules.TaskChange{NotBefore: at}), at)
		n := w.node("n1")
		w.pass(2 * time.Hour)
		n.sweep()
		w.equal("ran at the old instant", len(n.claim(1)), 0)
		w.pass(2 * time.Hour)
		n.sweep()
		c := n.one()
		w.equal("not before", w.task(t.ID).NotBefore.IsZero(), true)
		n.end(ok(c))

		// Earlier than before.
		t = w.newTask(q, "earlier")
		t.NotBefore = *w.in(9 * time.Hour)
		w.plain(t)
		at = w.in(time.Hour)
		w.heldUntil(w.set(t.ID, rules.TaskChange{NotBefore: at}), at)
		w.pass(2 * time.Hour)
		n.sweep()
		w.equal("ran", n.run(ok), "[earlier]")
	}},
	{"a queued task is held until its new instant, and a held task is queued without one", func(w *world) {
		q := w.queue("exec", 0)
		n := w.node("n1")
		t := w.newTask(q, "t")
		w.equal("status", w.plain(t).Status, plan.Queued)
		f := w.feed()
		at := w.in(time.Hour)
		w.heldUntil(w.set(t.ID, rules.TaskChange{NotBefore: at}), at)
		f.read(100)
		w.equal("feed", f.tasks[t.ID].Status, plan.Held)
		w.equal("queued tasks of the queue", w.queueNamed("exec").Queued, 0)
		n.sweep()
		w.equal("claimed", len(n.claim(1)), 0)
		now := w.set(t.ID, rules.TaskChange{NotBefore: w.in(-time.Hour)})
		w.equal("task", []any{now.Status, now.NotBefore.IsZero()}, []any{plan.Queued, true})
		f.read(100)
		w.equal("feed", f.tasks[t.ID].Status, plan.Queued)
		w.equal("queued tasks of the queue", w.queueNamed("exec").Queued, 1)
		w.heldUntil(w.set(t.ID, rules.TaskChange{NotBefore: at}), at)
		w.equal("without an instant", w.set(t.ID, rules.TaskChange{NotBefore: new(time.Time)}).Status, plan.Queued)
		w.equal("ran", n.run(ok), "[t]")
	}},
	{"a change that is no new status is in the feed", func(w *world) {
		t := w.plain(w.newTask(w.queue("exec", 0), "t"))
		from := must(w.s.Latest(w.ctx))(w)
		w.pass(time.Second)
		w.set(t.ID, rules.TaskChange{Attempts: 4})
		changes, _, err := w.s.Changes(w.ctx, from, 100)
		w.no(err)
		if len(changes) == 0 || changes[len(changes)-1].Task != t.ID {
			w.Errorf("the feed has %+v, want a change of task %s", changes, t.ID)
		}
	}},
	{"a task that waits for its parents takes an instant and params, and then its inputs", func(w *world) {
		q := w.queue("exec", 0)
		n := w.node("n1")
		a := w.newTask(q, "a")
		many := []plan.Task{a}
		child := w.newTask(q, "child", a.ID)
		for i := range 70 { // more than a document of MongoDB names
			p := w.newTask(q, fmt.Sprint("p", i))
			many, child.Needs = append(many, p), append(child.Needs, p.ID)
		}
		few := w.newTask(q, "few", a.ID)
		w.add(plan.PlanID{}, append(many, child, few)...)
		for _, t := range []plan.Task{child, few} {
			at := w.in(time.Hour)
			w.heldUntil(w.set(t.ID, rules.TaskChange{NotBefore: at}), at)
			w.equal("without the instant", w.set(t.ID, rules.TaskChange{NotBefore: w.in(-time.Minute)}).Status, plan.Held)
			w.heldUntil(w.set(t.ID, rules.TaskChange{NotBefore: at, Params: json.RawMessage(`{"run":"b"}`)}), at)
		}
		n.run(func(c protocol.ClaimedTask) protocol.Ending { return succeed(c, "1") })
		w.equal("status", w.task(few.ID).Status, plan.Held)
		w.equal("status", w.set(few.ID, rules.TaskChange{NotBefore: new(time.Time)}).Status, plan.Queued)
		w.equalJSON("params", n.one().Params, `{"run":"b","needs":{"a":1},"args":[1]}`)
		w.set(child.ID, rules.TaskChange{NotBefore: new(time.Time)})
		n.end()
		got := n.one()
		w.equalJSON("params", lookup(w, got.Params, "run"), `"b"`)
		w.equal("args", strings.Count(string(lookup(w, got.Params, "args")), "1"), len(child.Needs))
	}},
	{"a queued task keeps its inputs when its params change, and when it is held again", func(w *world) {
		q := w.queue("exec", 0)
		n := w.node("n1")
		a := w.newTask(q, "a")
		child := w.newTask(q, "child", a.ID)
		child.Params = json.RawMessage(`{"run":"a","needs":"mine"}`)
		w.add(plan.PlanID{}, a, child)
		n.end(succeed(n.one(), `{"x":1.0}`))
		w.equal("status", w.task(child.ID).Status, plan.Queued)
		inputs := `"needs":{"a":{"x":1.0}},"args":[{"x":1.0}]`
		w.equalJSON("params", w.set(child.ID, rules.TaskChange{Params: json.RawMessage(`{"run":"b","args":"mine"}`)}).Params, `{"run":"b",`+inputs+`}`)
		at := w.in(time.Hour)
		held := w.set(child.ID, rules.TaskChange{NotBefore: at})
		w.heldUntil(held, at)
		w.equalJSON("params", held.Params, `{"run":"b",`+inputs+`}`)
		w.equalJSON("params", w.set(child.ID, rules.TaskChange{Params: json.RawMessage(`{"run":"c"}`)}).Params, `{"run":"c",`+inputs+`}`)
		w.is(w.tryRetry(plan.PlanID{}, rules.Ask{Tasks: []plan.TaskID{a.ID}, Downstream: true}), plan.ErrConflict)
		w.pass(2 * time.Hour)
		n.sweep()
		w.equalJSON("params", n.one().Params, `{"run":"c",`+inputs+`}`)
	}},
	{"a task with inputs by reference takes new params", func(w *world) {
		q := w.queue("exec", 0)
		n := w.node("n1")
		a := w.newTask(q, "a")
		child := w.newTask(q, "child", a.ID)
		w.add(plan.PlanID{}, a, child)
		n.end(succeed(n.one(), fmt.Sprintf("%q", make([]byte, plan.MaxCopiedOne))))
		w.equalJSON("params", w.set(child.ID, rules.TaskChange{Params: json.RawMessage(`{"run":"b"}`)}).Params, `{"run":"b"}`)
		at := w.in(time.Hour)
		w.heldUntil(w.set(child.ID, rules.TaskChange{NotBefore: at}), at)
		w.equal("status", w.set(child.ID, rules.TaskChange{NotBefore: new(time.Time)}).Status, plan.Queued)
		c := n.one()
		w.equalJSON("params", c.Params, `{"run":"b"}`)
		w.equal("by reference", c.ByReference, true)
	}},
	{"a task that waits for its next attempt can be changed, and keeps what it ran", func(w *world) {
		q := w.queue("exec", 0)
		n := w.node("n1")
		a := w.newTask(q, "a")
		t := w.newTask(q, "t", a.ID)
		w.add(plan.PlanID{}, a, t)
		n.end(succeed(n.one(), "1"))
		n.end(later(n.one(), time.Hour))
		at := w.in(3 * time.Hour)
		got := w.set(t.ID, rules.TaskChange{NotBefore: at, Params: json.RawMessage(`{"run":"b"}`), Attempts: 9})
		w.heldUntil(got, at)
		w.equalJSON("params", got.Params, `{"run":"b","needs":{"a":1},"args":[1]}`)
		w.equal("ran", []any{got.Attempt, got.Ran}, []any{1, true})
		w.pass(2 * time.Hour)
		n.sweep()
		w.equal("status", w.task(t.ID).Status, plan.Held)
		w.equal("status", w.set(t.ID, rules.TaskChange{NotBefore: new(time.Time)}).Status, plan.Queued)
		at = w.in(3 * time.Hour)
		w.heldUntil(w.set(t.ID, rules.TaskChange{NotBefore: at}), at)
		w.pass(4 * time.Hour)
		n.sweep()
		c := n.one()
		w.equal("attempt", []any{c.Attempt, c.Retry.Attempts}, []any{2, 9})
		w.equalJSON("params", c.Params, `{"run":"b","needs":{"a":1},"args":[1]}`)
	}},
	{"what cannot be changed is refused with its state, and nothing changes", func(w *world) {
		q := w.queue("exec", 0)
		n := w.node("n1")
		of := w.named(w.submit(task("planned")), "planned")
		w.refused(w.s.SetTask(w.ctx, of.ID, rules.TaskChange{Attempts: 2}), "task planned is of a plan: a task of a plan changes by a retry of the plan with a mended file: sluice plan retry PLAN --with FILE")
		n.run(ok)
		t := w.plain(w.newTask(q, "t"))
		refuse := func(state string) {
			w.Helper()
			was := w.task(t.ID)
			for _, c := range []rules.TaskChange{{Attempts: 2}, {NotBefore: w.in(time.Hour)}, {Params: json.RawMessage(`{"x":1}`)}, {}} {
				w.refused(w.s.SetTask(w.ctx, t.ID, c), "task t is "+state+": only a task that waits can be changed")
			}
			w.equal(state, fmt.Sprintf("%+v", w.task(t.ID)), fmt.Sprintf("%+v", was))
		}
		c := n.turn(protocol.Turn{Slots: 1}).Claimed
		refuse("starting")
		must(w.s.Start(w.ctx, []protocol.Claim{c[0].Claim}))(w)
		refuse("running")
		n.end(ok(c[0]))
		refuse("succeeded")
		t = w.plain(w.newTask(q, "t"))
		w.no(w.s.CancelTask(w.ctx, t.ID))
		refuse("cancelled")
		w.is(w.s.SetTask(w.ctx, plan.TaskID{ID: plan.NewID(time.Now())}, rules.TaskChange{Attempts: 2}), plan.ErrNotFound)

		t = w.plain(w.newTask(q, "t"))
		negative := -time.Second
		for _, c := range []rules.TaskChange{
			{Attempts: -1}, {Timeout: &negative}, {Params: json.RawMessage(`[1]`)}, {Params: json.RawMessage(`null`)}, {Params: json.RawMessage(`{"x":`)},
		} {
			if err := w.s.SetTask(w.ctx, t.ID, c); err == nil || errors.Is(err, plan.ErrUnavailable) {
				w.Errorf("%+v: error %v, want one that says what is wrong", c, err)
			}
		}
		w.equal("task", fmt.Sprintf("%+v", w.task(t.ID)), fmt.Sprintf("%+v", t))
	}},
	{"a task is changed only as it was read, and by one of many who read the same", func(w *world) {
		t := w.newTask(w.queue("exec", 0), "t")
		t.NotBefore = *w.in(time.Hour)
		was := w.plain(t)
		w.pass(time.Second)
		was = w.task(t.ID)
		c := rules.TaskChange{Attempts: 2, Modified: was.Modified}
		w.no(w.s.SetTask(w.ctx, t.ID, c))
		w.no(w.s.SetTask(w.ctx, t.ID, c)) // as after an answer that was lost
		w.pass(time.Second)
		w.refused(w.s.SetTask(w.ctx, t.ID, rules.TaskChange{Attempts: 3, Modified: was.Modified}), "task t was changed since it was read: read it again")
		w.equal("attempts", w.task(t.ID).Retry.Attempts, 2)

		handles := []store.Store{w.s, w.reopen(nil)}
		for round := range 5 {
			w.pass(time.Second)
			was := w.task(t.ID)
			var mu sync.Mutex
			var made []int
			var wg sync.WaitGroup
			for i := range 4 {
				wg.Go(func() {
					attempts := 10*(round+1) + i
					err := handles[i%2].SetTask(w.ctx, t.ID, rules.TaskChange{Attempts: attempts, Modified: was.Modified})
					mu.Lock()
					defer mu.Unlock()
					if err == nil {
						made = append(made, attempts)
					} else if !errors.Is(err, plan.ErrConflict) {
						w.Error(err)
					}
				})
			}
			wg.Wait()
			if got := w.task(t.ID).Retry.Attempts; len(made) != 1 || got != made[0] {
				w.Fatalf("attempts %v were set, and the task has %d; want one of them", made, got)
			}
		}
	}},
	{"a change meets a claim at the same instant: one of them wins, and never half of both", func(w *world) {
		const batch = 10
		q := w.queue("exec", 0)
		n, other := w.node("n1"), w.reopen(nil)
		rounds := min(cmp.Or(w.d.Tasks, 2000)/20, 100)
		won, lost := 0, 0
		for round := range rounds {
			tasks := make([]plan.Task, batch)
			for i := range tasks {
				tasks[i] = w.newTask(q, "t")
				tasks[i].Params, tasks[i].Timeout = json.RawMessage(`{"v":1}`), time.Minute
			}
			w.add(plan.PlanID{}, tasks...)
			errs := make([]error, batch)
			var claimed []protocol.ClaimedTask
			var wg sync.WaitGroup
			wg.Go(func() { claimed = n.turn(protocol.Turn{Slots: batch, Start: true}).Claimed })
			wg.Go(func() {
				timeout := 2 * time.Minute
				for k := range tasks {
					i := (k + round) % batch
					errs[i] = other.SetTask(w.ctx, tasks[i].ID, rules.TaskChange{Params: json.RawMessage(`{"v":2}`), Timeout: &timeout})
				}
			})
			wg.Wait()
			has := map[plan.TaskID]string{}
			note := func(all []protocol.ClaimedTask) {
				for _, c := range all {
					has[c.Task] = fmt.Sprint(string(c.Params), c.Timeout)
				}
			}
			note(claimed)
			for len(has) < batch {
				more := n.claim(batch)
				if len(more) == 0 {
					w.Fatalf("%d of %d tasks were claimed", len(has), batch)
				}
				claimed = append(claimed, more...)
				note(more)
			}
			for i, t := range tasks {
				want := `{"v":2}2m0s`
				switch {
				case errs[i] == nil:
					won++
				case errors.Is(errs[i], plan.ErrConflict):
					want, lost = `{"v":1}1m0s`, lost+1
				default:
					w.Fatalf("%v", errs[i])
				}
				if has[t.ID] != want {
					w.Errorf("the change answered %v, and the claim has %s; want %s", errs[i], has[t.ID], want)
				}
				now := w.task(t.ID)
				if got := fmt.Sprint(string(now.Params), now.Timeout); got != want {
					w.Errorf("the change answered %v, and the task has %s; want %s", errs[i], got, want)
				}
			}
			var ended []protocol.Ending
			for _, c := range claimed {
				ended = append(ended, ok(c))
			}
			n.end(ended...)
		}
		w.Logf("of %d changes, %d were made and %d met a claim", rounds*batch, won, lost)
	}},
}
