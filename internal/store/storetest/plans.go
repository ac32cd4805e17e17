package storetest

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

var planCases = []testCase{
	{"a plan is created as submitting and gets the next run of its name", func(w *world) {
		first := must(w.s.CreatePlan(w.ctx, plan.Plan{Name: "nightly"}))(w)
		other := must(w.s.CreatePlan(w.ctx, plan.Plan{Name: "weekly"}))(w)
		second := must(w.s.CreatePlan(w.ctx, plan.Plan{Name: "nightly", ID: plan.PlanID{ID: plan.NewID(time.Now())}}))(w)
		w.equal("runs", []int{first.Run, other.Run, second.Run}, []int{1, 1, 2})
		if first.ID.IsZero() {
			w.Error("a plan without an id got none")
		}
		w.wantPlan(second, plan.PlanSubmitting)
	}},
	{"creating a plan again under its id changes nothing", func(w *world) {
		p := plan.Plan{Name: "nightly", ID: plan.PlanID{ID: plan.NewID(time.Now())}}
		first := must(w.s.CreatePlan(w.ctx, p))(w)
		again := must(w.s.CreatePlan(w.ctx, p))(w)
		w.equal("run", again.Run, first.Run)
		w.equal("plans", len(must(w.s.Plans(w.ctx, store.PlanQuery{}))(w)), 1)
	}},
	{"plans are listed without their params for who wants none", func(w *world) {
		must(w.s.CreatePlan(w.ctx, plan.Plan{Name: "nightly", Params: json.RawMessage(`{"x":1}`), Secrets: []string{"pw"}}))(w)
		for noParams, want := range map[bool]string{false: `{"x":1}`, true: ""} {
			listed := must(w.s.Plans(w.ctx, store.PlanQuery{NoParams: noParams}))(w)
			w.equal("plans", len(listed), 1)
			w.equal("params", string(listed[0].Params), want)
			w.equal("the rest", []any{listed[0].Name, listed[0].Secrets}, []any{"nightly", []string{"pw"}})
		}
	}},
	{"a plan has params of a MiB at most", func(w *world) {
		text := func(n int) json.RawMessage {
			return json.RawMessage(`{"x":"` + strings.Repeat("x", n-len(`{"x":""}`)) + `"}`)
		}
		p := must(w.s.CreatePlan(w.ctx, plan.Plan{Name: "large", Params: text(plan.MaxPlanParams)}))(w)
		w.equal("bytes", len(w.plan(p.ID).Params), plan.MaxPlanParams)
		if _, err := w.s.CreatePlan(w.ctx, plan.Plan{Name: "larger", Params: text(plan.MaxPlanParams + 1)}); !errors.Is(err, plan.ErrTooLarge) {
			w.Errorf("a byte more: %v, want an ErrTooLarge", err)
		}
		w.equal("plans", len(must(w.s.Plans(w.ctx, store.PlanQuery{}))(w)), 1)
	}},
	{"of the plans with one key there is one, however many create it at once", func(w *world) {
		const creators = 6
		made := make([]plan.Plan, creators)
		var wg sync.WaitGroup
		for i := range creators {
			s := w.reopen(nil)
			wg.Go(func() {
				p, err := s.CreatePlan(w.ctx, plan.Plan{ID: plan.PlanID{ID: plan.NewID(time.Now())}, Name: "nightly", Key: "asked once"})
				if err != nil {
					w.Errorf("creator %d: %v", i, err)
				}
				made[i] = p
			})
		}
		wg.Wait()
		for _, p := range made {
			w.equal("plan and run", []any{p.ID, p.Run}, []any{made[0].ID, 1})
		}
		other := must(w.s.CreatePlan(w.ctx, plan.Plan{Name: "nightly", Key: "asked again"}))(w)
		plain := must(w.s.CreatePlan(w.ctx, plan.Plan{Name: "nightly"}))(w)
		w.equal("runs", []int{other.Run, plain.Run}, []int{2, 3})
		w.equal("plans", len(must(w.s.Plans(w.ctx, store.PlanQuery{}))(w)), 3)
	}},
	{"a plan is kept as it was given", func(w *world) {
		p := must(w.s.CreatePlan(w.ctx, plan.Plan{
			ID: plan.PlanID{ID: plan.NewID(time.Now())}, Name: "nightly", OnFailure: plan.Stop, Params: json.RawMessage(`{"domain":"example.com"}`),
			Source: "/home/me/nightly.yaml", Own: true, Keep: 30 * 24 * time.Hour, Size: 6001, Secrets: []string{"*_key", "password"}, By: "ann", Key: "k", Request: "1:2",
		}))(w)
		got := w.plan(p.ID)
		listed := must(w.s.Plans(w.ctx, store.PlanQuery{}))(w)
		again := must(w.s.CreatePlan(w.ctx, plan.Plan{ID: p.ID, Name: "nightly"}))(w)
		w.equal("secrets", [][]string{p.Secrets, got.Secrets, listed[0].Secrets, again.Secrets}, "[[*_key password] [*_key password] [*_key password] [*_key password]]")
		if who := []string{p.By, got.By, listed[0].By, again.By}; w.d.Served {
			w.equal("who", who, "[   ]")
			w.equal("request", again.Request, "")
		} else {
			w.equal("who", who, "[ann ann ann ann]")
			w.equal("request", []string{p.Request, got.Request, again.Request}, "[1:2 1:2 1:2]")
		}
		w.equalJSON("params", got.Params, `{"domain":"example.com"}`)
		got.Params, p.Params = nil, nil
		w.equal("plan", []any{got.ID, got.Name, got.Run, got.OnFailure, got.Source, got.Own, got.Keep, got.Size, got.State},
			[]any{p.ID, "nightly", 1, plan.Stop, "/home/me/nightly.yaml", true, 720 * time.Hour, 6001, plan.PlanSubmitting})
		if got.Created.IsZero() || got.Created.Location() != time.UTC {
			w.Errorf("created %v, want an instant in UTC", got.Created)
		}
	}},
	{"the file of a plan is kept as it was given, and read by PlanFile alone", func(w *world) {
		file := plan.File{Text: "plan: nightly\ntasks:\n  a: {run: \"echo ä 𝄞\"}\n", Dir: "/home/me"}
		p := must(w.s.CreatePlan(w.ctx, plan.Plan{ID: plan.PlanID{ID: plan.NewID(time.Now())}, Name: "nightly", Key: "k", File: file}))(w)
		again := must(w.s.CreatePlan(w.ctx, plan.Plan{ID: p.ID, Name: "nightly", File: plan.File{Text: "plan: other"}}))(w)
		byKey := must(w.s.CreatePlan(w.ctx, plan.Plan{Name: "nightly", Key: "k"}))(w)
		listed := must(w.s.Plans(w.ctx, store.PlanQuery{}))(w)
		w.equal("files of plans", []plan.File{p.File, again.File, byKey.File, w.plan(p.ID).File, listed[0].File}, make([]plan.File, 5))
		w.equal("file", must(w.s.PlanFile(w.ctx, p.ID))(w), file)
		none := must(w.s.CreatePlan(w.ctx, plan.Plan{Name: "built"}))(w)
		w.equal("file of a plan that was built", must(w.s.PlanFile(w.ctx, none.ID))(w), plan.File{})

		text := strings.Repeat("#", plan.MaxFile)
		large := must(w.s.CreatePlan(w.ctx, plan.Plan{Name: "large", File: plan.File{Text: text}}))(w)
		w.equal("bytes of the largest file", len(must(w.s.PlanFile(w.ctx, large.ID))(w).Text), plan.MaxFile)
		_, err := w.s.CreatePlan(w.ctx, plan.Plan{Name: "too-large", File: plan.File{Text: text + "#"}})
		w.is(err, plan.ErrTooLarge)

		gone := w.ended(plan.Spec{Name: "gone", File: file}, 1)
		w.equal("file of a plan that ran", must(w.s.PlanFile(w.ctx, gone.ID))(w), file)
		for more := true; more; {
			more = must(w.s.DeletePlan(w.ctx, gone.ID, 100))(w)
		}
		_, err = w.s.PlanFile(w.ctx, gone.ID)
		w.is(err, plan.ErrNotFound)
	}},
	{"invariant 1: nothing of a plan that is not ready is queued", func(w *world) {
		p := w.submitUnready(&plan.Spec{Name: "nightly", Tasks: []plan.TaskSpec{task("a"), task("b", "a")}})
		n := w.node("n1")
		n.sweep()
		w.equal("claimed", len(n.claim(9)), 0)
		w.want(p, "a held", "b held")
	}},
	{"ready releases the tasks without needs, and doing it again changes nothing", func(w *world) {
		p := w.submit(task("a"), task("b", "a"), task("c"))
		w.wantPlan(p, plan.PlanRunning)
		w.want(p, "a queued", "b held", "c queued")
		n := w.node("n1")
		n.end(ok(n.claim(1)[0]))
		w.no(w.s.Ready(w.ctx, p.ID))
		w.want(p, "a succeeded", "b queued", "c queued")
		n.run(ok)
		ended := w.plan(p.ID).Ended
		w.pass(time.Minute)
		if w.d.Pass != nil {
			ended = w.plan(p.ID).Ended // which is older now
		}
		w.no(w.s.Ready(w.ctx, p.ID))
		w.equal("plan", []any{w.plan(p.ID).State, w.plan(p.ID).Ended.Equal(ended)}, []any{plan.PlanSucceeded, true})
	}},
	{"a plan is not ready before all tasks are in that it is submitted with", func(w *world) {
		p, tasks := w.compile(&plan.Spec{Name: "nightly", Tasks: []plan.TaskSpec{task("a"), task("b", "a"), task("c")}})
		p = must(w.s.CreatePlan(w.ctx, p))(w)
		n := w.node("n1")
		refused := func(text string) {
			w.Helper()
			err := w.s.Ready(w.ctx, p.ID)
			w.is(err, plan.ErrConflict)
			if err != nil && !strings.HasPrefix(err.Error(), text) {
				w.Errorf("got error %v, want one that says %q", err, text)
			}
			w.wantPlan(p, plan.PlanSubmitting)
			n.sweep()
			w.equal("claimed", len(n.claim(9)), 0)
		}
		refused("nightly#1 has 0 of its 3 tasks: ")
		w.no(w.s.AddTasks(w.ctx, p.ID, tasks[:2]))
		refused("nightly#1 has 2 of its 3 tasks: ")
		w.no(w.s.AddTasks(w.ctx, p.ID, tasks[:2]))
		refused("nightly#1 has 2 of its 3 tasks: ")
		w.want(p, "a held", "b held")
		w.no(w.s.AddTasks(w.ctx, p.ID, tasks[1:]))
		w.no(w.s.CancelTask(w.ctx, tasks[2].ID)) // it is in all the same
		w.no(w.s.Ready(w.ctx, p.ID))
		w.want(p, "a queued", "b held", "c cancelled")
		w.add(p.ID, w.newTask(w.queue("exec", 0), "late"))
		w.no(w.s.Ready(w.ctx, p.ID)) // as it is already, with whatever number
		n.run(ok)
		w.want(p, "a succeeded", "b succeeded", "late succeeded")
		w.no(w.s.Ready(w.ctx, p.ID))
		w.wantPlan(p, plan.PlanCancelled)
	}},
	{"a plan with more tasks than it is submitted with is not ready either", func(w *world) {
		p := w.submitUnready(&plan.Spec{Name: "nightly", Tasks: []plan.TaskSpec{task("a")}})
		w.add(p.ID, w.newTask(w.queue("exec", 0), "other"))
		w.is(w.s.Ready(w.ctx, p.ID), plan.ErrConflict)
		w.wantPlan(p, plan.PlanSubmitting)
		w.no(w.s.CancelPlan(w.ctx, p.ID, false))
		w.wantPlan(p, plan.PlanCancelled)
	}},
	{"a plan that does not say with how many tasks it is submitted is ready with any", func(w *world) {
		p, tasks := w.compile(&plan.Spec{Name: "nightly", Tasks: []plan.TaskSpec{task("a"), task("b", "a")}})
		p.Size = 0
		p = must(w.s.CreatePlan(w.ctx, p))(w)
		w.no(w.s.AddTasks(w.ctx, p.ID, tasks[:1]))
		w.no(w.s.Ready(w.ctx, p.ID))
		w.want(p, "a queued")
	}},
	{"a plan without tasks ends at once", func(w *world) {
		p := must(w.s.CreatePlan(w.ctx, plan.Plan{Name: "nightly"}))(w)
		w.no(w.s.Ready(w.ctx, p.ID))
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"what is not there is not found", func(w *world) {
		_, err := w.s.Plan(w.ctx, plan.PlanID{ID: plan.NewID(time.Now())})
		w.is(err, plan.ErrNotFound)
		_, err = w.s.Task(w.ctx, plan.TaskID{ID: plan.NewID(time.Now())})
		w.is(err, plan.ErrNotFound)
		w.is(w.s.Ready(w.ctx, plan.PlanID{ID: plan.NewID(time.Now())}), plan.ErrNotFound)
		w.is(w.s.CancelPlan(w.ctx, plan.PlanID{ID: plan.NewID(time.Now())}, false), plan.ErrNotFound)
		w.is(w.s.CancelTask(w.ctx, plan.TaskID{ID: plan.NewID(time.Now())}), plan.ErrNotFound)
		w.is(w.s.Adopt(w.ctx, plan.PlanID{ID: plan.NewID(time.Now())}), plan.ErrNotFound)
		_, err = w.s.DeletePlan(w.ctx, plan.PlanID{ID: plan.NewID(time.Now())}, 100)
		w.is(err, plan.ErrNotFound)
		w.is(w.s.SetQueue(w.ctx, plan.Queue{ID: plan.QueueID{ID: plan.NewID(time.Now())}, Name: "q"}), plan.ErrNotFound)
		w.is(w.s.AddTasks(w.ctx, plan.PlanID{ID: plan.NewID(time.Now())}, nil), plan.ErrNotFound)
	}},
	{"a plan whose tasks all succeed succeeds", func(w *world) {
		p := w.submit(task("a"), task("b", "a"), task("c", "a"), task("d", "b", "c"))
		n := w.node("n1")
		w.equal("ran", n.run(ok), "[a b c d]")
		w.want(p, "a succeeded", "b succeeded", "c succeeded", "d succeeded")
		w.wantPlan(p, plan.PlanSucceeded)
		if got := w.plan(p.ID); got.Ended.IsZero() || got.Counts.Succeeded != 4 || got.Counts.Total() != 4 {
			w.Errorf("ended %v with %+v, want 4 succeeded", got.Ended, got.Counts)
		}
	}},
	{"a failed task skips what needs it, and its plan fails", func(w *world) {
		p := w.submit(task("a"), task("b", "a"), task("c", "b"), task("d"))
		n := w.node("n1")
		n.run(failing("a"))
		w.want(p, "a failed", "b skipped", "c skipped", "d succeeded")
		w.wantPlan(p, plan.PlanFailed)
	}},
}
