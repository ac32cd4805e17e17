package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// A world is what a case acts in: a store, the clock that it reads, and shorthands that fail the test when something goes wrong.
type world struct {
	*testing.T
	ctx   context.Context
	d     *Driver
	s     store.Store
	clock *clock
	ids   *plan.IDs // of what the test makes; nil: those of the process
	// caught gets what is wrong, where the test is to go on and to say more about it; nil: it goes to the test.
	caught *[]string
}

// caughtFatal is panicked with where something fatal was caught.
type caughtFatal struct{}

// Errorf fails the test, or is caught.
func (w *world) Errorf(format string, args ...any) {
	w.Helper()
	if w.caught == nil {
		w.T.Errorf(format, args...)
		return
	}
	*w.caught = append(*w.caught, fmt.Sprintf(format, args...))
}

// Fatalf fails and ends the test, or what catches that.
func (w *world) Fatalf(format string, args ...any) {
	w.Helper()
	if w.caught == nil {
		w.T.Fatalf(format, args...)
	}
	w.Errorf(format, args...)
	panic(caughtFatal{})
}

func newWorld(t *testing.T, d *Driver) *world {
	w := &world{T: t, ctx: t.Context(), d: d, clock: &clock{now: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)}}
	if d.Pass != nil { // the server's clock is what the store goes by, and near this one
		w.clock.now = time.Now().UTC()
	}
	w.s = d.Open(t, Options{Now: w.clock.Now})
	t.Cleanup(func() { w.no(w.s.Close()) })
	return w
}

// newID mints an id.
func (w *world) newID() plan.ID {
	if w.ids == nil {
		return plan.NewID(time.Now())
	}
	return w.ids.Next()
}

// reopen returns another handle.
func (w *world) reopen(h store.Hook) store.Store {
	s := w.d.Reopen(w.T, w.s, Options{Now: w.clock.Now, Hook: h})
	w.Cleanup(func() { w.no(s.Close()) })
	return s
}

// A clock stands still until it is told that time passes.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// pass lets time pass by the store's clock.
func (w *world) pass(d time.Duration) {
	w.Helper()
	if w.d.Pass != nil {
		w.d.Pass(w.T, w.s, d)
		return
	}
	w.clock.mu.Lock()
	defer w.clock.mu.Unlock()
	w.clock.now = w.clock.now.Add(d)
}

// no fails the test if there is an error.
func (w *world) no(err error) {
	w.Helper()
	if err != nil {
		w.Fatalf("%v", err)
	}
}

func must[T any](v T, err error) func(w *world) T {
	return func(w *world) T {
		w.Helper()
		w.no(err)
		return v
	}
}

// queue makes a queue of the plugin "exec", which is what nodes of the suite serve; threads 0: unlimited.
func (w *world) queue(name string, threads int) plan.Queue {
	w.Helper()
	q := plan.Queue{ID: plan.QueueID{ID: w.newID()}, Name: name, Plugin: "exec", Threads: threads, Unlimited: threads == 0}
	return must(w.s.EnsureQueue(w.ctx, q))(w)
}

// compile makes a plan of the tasks, which nobody has submitted yet. Tasks without a queue go to the unlimited queue "exec".
func (w *world) compile(s *plan.Spec) (plan.Plan, []plan.Task) {
	w.Helper()
	w.no(compiler.Validate(s))
	p, tasks, err := compiler.Compile(s, time.Now(), func(n compiler.QueueNeed) (plan.QueueID, error) { return w.queue(n.Name, 0).ID, nil })
	w.no(err)
	return p, tasks
}

// submit makes a plan of the tasks and makes it ready.
func (w *world) submit(tasks ...plan.TaskSpec) plan.Plan {
	w.Helper()
	return w.submitSpec(&plan.Spec{Name: "nightly", Tasks: tasks})
}

func (w *world) submitSpec(s *plan.Spec) plan.Plan {
	w.Helper()
	p := w.submitUnready(s)
	w.no(w.s.Ready(w.ctx, p.ID))
	return p
}

func (w *world) submitUnready(s *plan.Spec) plan.Plan {
	w.Helper()
	p, tasks := w.compile(s)
	p = must(w.s.CreatePlan(w.ctx, p))(w)
	w.no(w.s.AddTasks(w.ctx, p.ID, tasks))
	return p
}

// task is a task that needs others, as in task("c", "a", "b").
func task(name string, needs ...string) plan.TaskSpec { return plan.TaskSpec{Name: name, Needs: needs} }

func each(name string, f plan.Foreach, needs ...string) plan.TaskSpec {
	return plan.TaskSpec{Name: name, Needs: needs, Foreach: &f}
}

func list(items ...any) plan.Foreach {
	raw, _ := json.Marshal(append([]any{}, items...)) // of what tests write down
	return plan.Foreach{List: raw}
}

// plan returns the plan as it is now.
func (w *world) plan(id plan.PlanID) plan.Plan {
	w.Helper()
	return must(w.s.Plan(w.ctx, id))(w)
}

// named returns the task of that name as it is now.
func (w *world) named(p plan.Plan, name string) plan.Task {
	w.Helper()
	tasks := must(w.s.Tasks(w.ctx, store.TaskQuery{Plan: p.ID, Name: name}))(w)
	if len(tasks) != 1 {
		w.Fatalf("there are %d tasks named %q, want 1", len(tasks), name)
	}
	return w.task(tasks[0].ID)
}

func (w *world) task(id plan.TaskID) plan.Task {
	w.Helper()
	return must(w.s.Task(w.ctx, id))(w)
}

func (w *world) all(q store.TaskQuery) []plan.Task {
	w.Helper()
	if q.Limit == 0 {
		q.Limit = 1_000_000
	}
	return must(w.s.Tasks(w.ctx, q))(w)
}

// want compares the states of a plan's tasks: "a succeeded", "b queued". Tasks that are not mentioned do not count.
func (w *world) want(p plan.Plan, states ...string) {
	w.Helper()
	now := map[string]string{}
	for _, t := range w.all(store.TaskQuery{Plan: p.ID}) {
		now[t.Name] = t.State()
	}
	for _, s := range states {
		name, state, _ := strings.Cut(s, " ")
		if now[name] != state {
			w.Errorf("task %q is %q, want %q; all: %s", name, now[name], state, sentence(now))
		}
	}
}

func sentence(states map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(states)) {
		if parts = append(parts, name+" "+states[name]); len(parts) == 30 {
			return strings.Join(parts, ", ") + fmt.Sprintf(", … (%d)", len(states))
		}
	}
	return strings.Join(parts, ", ")
}

func (w *world) wantPlan(p plan.Plan, want plan.Lifecycle) {
	w.Helper()
	if got := w.plan(p.ID); got.State != want {
		w.Errorf("plan %s is %v, want %v; its tasks: %+v", p.Title(), got.State, want, got.Counts)
	}
}

// equal compares by what is printed.
func (w *world) equal(what string, got, want any) {
	w.Helper()
	g, x := fmt.Sprint(got), fmt.Sprint(want)
	if g != x {
		w.Errorf("%s: got %s, want %s", what, g, x)
	}
}

// equalJSON compares JSON values, whatever the order of their keys; a number is what its digits say.
func (w *world) equalJSON(what string, got json.RawMessage, want string) {
	w.Helper()
	if len(got) == 0 {
		got = json.RawMessage("null")
	}
	g, err := canonical(got)
	if err != nil {
		w.Errorf("%s: %.200q is not JSON: %v", what, got, err)
		return
	}
	if x := must(canonical([]byte(want)))(w); g != x {
		w.Errorf("%s: got %.500s, want %.500s", what, g, x)
	}
}

func canonical(j []byte) (string, error) {
	dec := json.NewDecoder(bytes.NewReader(j))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return "", err
	}
	out, err := json.Marshal(v)
	return string(out), err
}
