package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// A testCase is a sentence and what shows it. It gets a world with an empty store.
type testCase struct {
	name string
	run  func(w *world)
}

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

// catch returns what is wrong with what do does. It ends do at the first fatal fault, or at a panic.
func (w *world) catch(do func()) (wrong []string) {
	w.caught = &wrong
	defer func() {
		w.caught = nil
		if p := recover(); p != nil && p != any(caughtFatal{}) {
			wrong = append(wrong, fmt.Sprint("panic: ", p))
		}
	}()
	do()
	return wrong
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

// numbered are n tasks: t0, t1 and so on.
func numbered(n int) []plan.TaskSpec {
	tasks := make([]plan.TaskSpec, n)
	for i := range tasks {
		tasks[i] = task(fmt.Sprint("t", i))
	}
	return tasks
}

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

// is fails the test unless the error is the one that is wanted.
func (w *world) is(err, want error) {
	w.Helper()
	if !errors.Is(err, want) {
		w.Errorf("got error %v, want %v", err, want)
	}
}

// refused wants a plan.ErrConflict that says what is in the way, and not that something changed where nothing did.
func (w *world) refused(err error, why string) {
	w.Helper()
	if w.is(err, plan.ErrConflict); err != nil && (!strings.Contains(err.Error(), why) || strings.Contains(err.Error(), plan.ErrConflict.Error())) {
		w.Errorf("got error %q, want one that says %q", err, why)
	}
}

// newTask makes a task that nobody has added yet.
func (w *world) newTask(q plan.Queue, name string, needs ...plan.TaskID) plan.Task {
	return plan.Task{ID: plan.TaskID{ID: w.newID()}, Name: name, Queue: q.ID, Needs: needs}
}

// add adds tasks to a plan, or to none.
func (w *world) add(p plan.PlanID, tasks ...plan.Task) {
	w.Helper()
	w.no(w.s.AddTasks(w.ctx, p, tasks))
}

// in puts a task into a queue.
func in(queue, name string, needs ...string) plan.TaskSpec {
	return plan.TaskSpec{Name: name, Queue: queue, Needs: needs}
}

// queueNamed returns the queue of that name with its counts.
func (w *world) queueNamed(name string) plan.Queue {
	w.Helper()
	queues := must(w.s.Queues(w.ctx))(w)
	k := slices.IndexFunc(queues, func(q plan.Queue) bool { return q.Name == name })
	if k < 0 {
		w.Fatalf("there is no queue %q", name)
	}
	w.no(w.s.CountQueues(w.ctx, queues[k:k+1]))
	return queues[k]
}

// lookup returns a field of a JSON object.
func lookup(w *world, object json.RawMessage, key string) json.RawMessage {
	w.Helper()
	var m map[string]json.RawMessage
	w.no(json.Unmarshal(object, &m))
	return m[key]
}

// ended submits and runs a plan with so many tasks, and a log for the first.
func (w *world) ended(spec plan.Spec, tasks int) plan.Plan {
	w.Helper()
	spec.Tasks = append(spec.Tasks, numbered(tasks)...)
	p := w.submitSpec(&spec)
	w.node("n1").run(func(c protocol.ClaimedTask) protocol.Ending {
		e := ok(c)
		e.Log = []plan.LogEntry{{At: time.Now(), Attempt: 1, Stream: plan.Stdout, Text: "x\n"}}
		return e
	})
	w.wantPlan(p, plan.PlanSucceeded)
	return p
}

func (w *world) gone(p plan.Plan, first plan.TaskID) {
	w.Helper()
	_, err := w.s.Plan(w.ctx, p.ID)
	w.is(err, plan.ErrNotFound)
	w.equal("tasks left", len(w.all(store.TaskQuery{Plan: p.ID})), 0)
	_, err = w.s.Task(w.ctx, first)
	w.is(err, plan.ErrNotFound)
	entries, _, err := w.s.Log(w.ctx, first, 0, 10)
	if err != nil {
		w.is(err, plan.ErrNotFound)
	}
	w.equal("log entries left", len(entries), 0)
}

// askRetry asks for the named tasks to run again, or for all that did not succeed.
func (w *world) askRetry(p plan.Plan, downstream bool, names ...string) rules.Ask {
	w.Helper()
	ask := rules.Ask{Downstream: downstream}
	for _, t := range w.all(store.TaskQuery{Plan: p.ID}) {
		if slices.Contains(names, t.Name) {
			ask.Tasks = append(ask.Tasks, t.ID)
		}
	}
	return ask
}

// retry makes a retry, which takes what rules.SelectRetry chooses.
func (w *world) retry(p plan.Plan, downstream bool, names ...string) {
	w.Helper()
	ask := w.askRetry(p, downstream, names...)
	want := must(rules.SelectRetry(w.all(store.TaskQuery{Plan: p.ID, Needs: true}), ask.Tasks, downstream))(w)
	w.equal("retried", must(w.s.Retry(w.ctx, p.ID, ask))(w), fmt.Sprint(want))
}

// tryRetry returns the error of a retry.
func (w *world) tryRetry(p plan.PlanID, ask rules.Ask) error {
	_, err := w.s.Retry(w.ctx, p, ask)
	return err
}
