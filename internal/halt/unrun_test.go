package halt_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/halt"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/storetest/model"
	"github.com/seed-1177d267/sluice/plan"
)

// Plans of every shape are stopped at random instants in every way. The clean-ups that Unrun names
// before the stop are those that it names after the plan has ended, and a retry of them runs each. So
// does it with clean-ups that ran and were stopped.
// A retry of any other clean-up, also with them, skips that.
func TestARetryRunsTheCleanUpsThatAreNamedAndNoOthers(t *testing.T) {
	named, half, others := 0, 0, 0
	for seed := range uint64(4000) {
		r := stopped(t, seed)
		named += len(r.named)
		half += len(r.tasks(func(t *plan.Task) bool { return t.Status == plan.Terminated && slices.Contains(r.named, t.Name) }))
		chosen, other := r.named, ""
		left := r.tasks(func(t *plan.Task) bool {
			return t.Status == plan.Cancelled && rules.TellsResults(t.When) && t.Of.IsZero() && !slices.Contains(r.named, t.Name)
		})
		if len(left) > 0 && seed%2 == 0 {
			others++
			other = left[int(seed/2)%len(left)].Name
			chosen = append(slices.Clone(chosen), other)
		}
		if len(chosen) == 0 {
			continue
		}
		before := states(r.tasks(all))
		if ran := r.retry(chosen); other == "" && !contains(ran, r.named) || slices.Contains(ran, other) {
			t.Fatalf("seed %d: %v are named, and a retry of %v ran %v\n%s%v", seed, r.named, chosen, ran, r.shape, before)
		}
	}
	if named < 500 || half < 100 || others < 300 {
		t.Errorf("%d clean-ups were named in all, %d of them stopped half-way, and %d others tried: the shapes show too little", named, half, others)
	}
}

// Plans that were stopped are retried, and stopped again before any task begins. Unrun then names
// each clean-up of a failure that it named before: none of them has run since.
func TestAStopAfterARetryNamesTheCleanUpsOfBefore(t *testing.T) {
	named := 0
	for seed := range uint64(1500) {
		r := stopped(t, seed)
		tasks := r.tasks(all)
		before := slices.DeleteFunc(slices.Clone(r.named), func(name string) bool {
			i := slices.IndexFunc(tasks, func(t plan.Task) bool { return t.Name == name })
			return tasks[i].When != plan.AnyFailed && tasks[i].When != plan.AllFailed && tasks[i].When != plan.AllDone
		})
		for round := range 2 {
			ended := states(r.tasks(all))
			if len(before) == 0 {
				break // a plan that succeeded
			}
			if _, err := r.st.Retry(t.Context(), r.id, rules.Ask{}); err != nil {
				break // so did this one
			}
			named += len(before)
			for range int(seed) % 3 {
				for _, c := range r.turn(protocol.Turn{Slots: 1 + round}) {
					r.turn(protocol.Turn{Ended: []protocol.Ending{{Claim: c.Claim, Status: plan.Queued}}})
				}
			}
			if now := r.left(); !contains(now, before) {
				t.Fatalf("seed %d: %v are named, and after a retry %v\n%s%v\n%v", seed, before, now, r.shape, ended, states(r.tasks(all)))
			}
			r.no(r.st.CancelPlan(t.Context(), r.id, false))
			for more := true; more; {
				did, err := r.st.Sweep(t.Context(), protocol.Sweep{Instance: r.node})
				r.no(err)
				more = did.More
			}
			if now := r.left(); !contains(now, before) {
				t.Fatalf("seed %d: %v are named, and after a retry and a stop %v\n%s%v\n%v", seed, before, now, r.shape, ended, states(r.tasks(all)))
			}
		}
	}
	if named < 300 {
		t.Errorf("%d clean-ups were named in all: the shapes show too little", named)
	}
}

// A run is a plan on a store of its own.
type run struct {
	t     *testing.T
	st    *model.Store
	id    plan.PlanID
	node  plan.InstanceID
	shape string
	named []string
}

// stopped runs a plan for a while, stops it, and sees it end.
func stopped(t *testing.T, seed uint64) *run {
	rng := rand.New(rand.NewPCG(seed, 1))
	r := &run{t: t, st: model.New(model.Options{}), node: plan.InstanceID{ID: plan.NewID(time.Now())}}
	t.Cleanup(func() { r.no(r.st.Close()) })
	spec := &plan.Spec{Name: "shape"}
	byFailure := rng.IntN(3) == 0
	if byFailure || rng.IntN(4) == 0 {
		spec.OnFailure = plan.Stop
	}
	whens := rules.Whens()
	for i := range 3 + rng.IntN(7) {
		s := plan.TaskSpec{Name: fmt.Sprintf("t%d", i)}
		s.ContinueOnError = rng.IntN(5) == 0
		for k := range i {
			if rng.IntN(3) == 0 {
				s.Needs = append(s.Needs, fmt.Sprintf("t%d", k))
			}
		}
		if len(s.Needs) > 0 && rng.IntN(2) == 0 {
			s.When = whens[rng.IntN(len(whens))]
		}
		if rng.IntN(4) == 0 {
			s.Foreach = &plan.Foreach{List: json.RawMessage("[1,2,3]"[:2*(1+rng.IntN(3))] + "]")}
		}
		spec.Add(s)
		r.shape += fmt.Sprintf("%s needs %v when %q allowed %v foreach %v\n", s.Name, s.Needs, s.When, s.ContinueOnError, s.Foreach)
	}
	r.submit(spec)
	held := map[string]protocol.ClaimedTask{}
	for range 2 + rng.IntN(8) {
		start := rng.IntN(4) > 0
		for _, c := range r.turn(protocol.Turn{Slots: rng.IntN(4), Start: start}) {
			if held[c.Name] = c; !start && rng.IntN(2) == 0 {
				_, err := r.st.Start(t.Context(), []protocol.Claim{c.Claim})
				r.no(err)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(held)) {
			if c := held[name]; rng.IntN(2) == 0 {
				delete(held, name)
				ends := []protocol.Ending{{Status: plan.Succeeded}, {Status: plan.Succeeded}, {Status: plan.Queued}, {Status: plan.Held, Delay: time.Hour}, {Status: plan.Failed}}
				e := ends[rng.IntN(len(ends)-map[bool]int{true: 1}[spec.OnFailure == plan.Stop])]
				if e.Claim = c.Claim; r.task(c.Task).Status == plan.Claimed {
					e.Status, e.Delay = plan.Queued, 0
				}
				r.turn(protocol.Turn{Ended: []protocol.Ending{e}})
			}
		}
	}
	if rng.IntN(3) == 0 { // a run that is over gives back what runs
		for name, c := range held {
			delete(held, name)
			r.turn(protocol.Turn{Ended: []protocol.Ending{{Claim: c.Claim, Status: plan.Queued}}})
		}
	}
	before := r.left()
	p, err := r.st.Plan(t.Context(), r.id)
	if r.no(err); p.State.Ended() {
		return r
	}
	failed := ""
	if names := slices.Sorted(maps.Keys(held)); byFailure && len(names) > 0 {
		failed = names[0]
		_, err := r.st.Start(t.Context(), []protocol.Claim{held[failed].Claim})
		r.no(err)
		r.turn(protocol.Turn{Ended: []protocol.Ending{{Claim: held[failed].Claim, Status: plan.Failed}}})
		delete(held, failed)
	}
	if p, err = r.st.Plan(t.Context(), r.id); err == nil && p.Closing == plan.Open && p.State.Ended() {
		return r
	} else if p.Closing == plan.Open {
		before = r.left() // the plan allows that failure
		r.no(r.st.CancelPlan(t.Context(), r.id, false))
	}
	for _, c := range held {
		r.turn(protocol.Turn{Ended: []protocol.Ending{{Claim: c.Claim, Status: plan.Queued}}})
	}
	for more := true; more; {
		did, err := r.st.Sweep(t.Context(), protocol.Sweep{Instance: r.node})
		r.no(err)
		more = did.More
	}
	if p, err = r.st.Plan(t.Context(), r.id); err != nil || !p.State.Ended() {
		t.Fatalf("seed %d: the plan is %v, %v\n%s", seed, p.State, err, r.shape)
	}
	if r.named = r.left(); p.Closing == plan.ClosedByPerson && !slices.Equal(before, r.named) {
		t.Fatalf("seed %d: a cancellation names %v, and the plan that ended %v\n%s%v", seed, before, r.named, r.shape, states(r.tasks(all)))
	}
	return r
}

func (r *run) submit(spec *plan.Spec) {
	ctx := r.t.Context()
	r.no(r.st.Register(ctx, plan.Instance{ID: r.node, Node: "n", Lease: time.Hour, Threads: 9, Plugins: []string{"exec"}}))
	p, tasks, err := compiler.Compile(spec, time.Now(), func(n compiler.QueueNeed) (plan.QueueID, error) {
		q, err := r.st.EnsureQueue(ctx, plan.Queue{ID: plan.QueueID{ID: plan.NewID(time.Now())}, Name: n.Name, Plugin: "exec", Unlimited: true})
		return q.ID, err
	})
	r.no(err)
	p, err = r.st.CreatePlan(ctx, p)
	r.no(err)
	r.id = p.ID
	r.no(r.st.AddTasks(ctx, p.ID, tasks))
	r.no(r.st.Ready(ctx, p.ID))
}

// turn makes turns until nothing is left to release, and returns what they claimed.
func (r *run) turn(t protocol.Turn) (claimed []protocol.ClaimedTask) {
	for more := true; more; t.Ended = nil {
		t.Instance, t.Plugins = r.node, []string{"exec"}
		did, err := r.st.Turn(r.t.Context(), t)
		r.no(err)
		claimed, more = append(claimed, did.Claimed...), did.More
	}
	return claimed
}

// retry retries the tasks, and returns the names of those that ran then and succeeded.
func (r *run) retry(names []string) (ran []string) {
	tasks := r.tasks(all)
	var chosen []plan.TaskID
	for i := range tasks {
		if slices.Contains(names, tasks[i].Name) {
			chosen = append(chosen, tasks[i].ID)
		}
	}
	selected, err := r.st.Retry(r.t.Context(), r.id, rules.Ask{Tasks: chosen})
	r.no(err)
	taken := map[plan.TaskID]bool{}
	for _, s := range selected {
		taken[s.ID] = true
	}
	for {
		claimed := r.turn(protocol.Turn{Slots: 99, Start: true})
		if len(claimed) == 0 {
			break
		}
		var ended []protocol.Ending
		for _, c := range claimed {
			ended = append(ended, protocol.Ending{Claim: c.Claim, Status: plan.Succeeded})
		}
		r.turn(protocol.Turn{Ended: ended})
	}
	for _, t := range r.tasks(func(t *plan.Task) bool { return taken[t.ID] && t.Status == plan.Succeeded }) {
		ran = append(ran, t.Name)
	}
	return ran
}

// left names the clean-ups that a cancellation leaves out.
func (r *run) left() (names []string) {
	p, err := r.st.Plan(r.t.Context(), r.id)
	r.no(err)
	unrun, _, err := halt.Left(r.t.Context(), r.st, p)
	r.no(err)
	for i := range unrun {
		names = append(names, unrun[i].Name)
	}
	return names
}

func (r *run) tasks(some func(*plan.Task) bool) (tasks []plan.Task) {
	r.no(store.EachTask(r.t.Context(), r.st, store.TaskQuery{Plan: r.id, Needs: true}, func(t *plan.Task) error {
		if some(t) {
			tasks = append(tasks, *t)
		}
		return nil
	}))
	return tasks
}

func (r *run) task(id plan.TaskID) plan.Task {
	t, err := r.st.Task(r.t.Context(), id)
	r.no(err)
	return t
}

func (r *run) no(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func all(*plan.Task) bool { return true }

func states(tasks []plan.Task) (lines []string) {
	for i := range tasks {
		lines = append(lines, tasks[i].Name+" "+tasks[i].State())
	}
	return lines
}

func contains(list, all []string) bool {
	return !slices.ContainsFunc(all, func(name string) bool { return !slices.Contains(list, name) })
}
