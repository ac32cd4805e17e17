package bulk_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/bulk"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/storetest/model"
	"github.com/seed-1177d267/sluice/plan"
)

// A world is a store with a queue of many tasks of no plan.
type world struct {
	*testing.T
	s *model.Store
	q plan.Queue
}

func newWorld(t *testing.T, tasks int) *world {
	w := &world{T: t, s: model.New(model.Options{})}
	var err error
	if w.q, err = w.s.EnsureQueue(t.Context(), plan.Queue{Name: "q", Plugin: "x", Unlimited: true}); err != nil {
		t.Fatal(err)
	}
	w.add(tasks)
	return w
}

func (w *world) add(n int) {
	w.Helper()
	tasks := make([]plan.Task, n)
	for i := range tasks {
		tasks[i] = plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Queue: w.q.ID}
	}
	w.no(w.s.AddTasks(w.Context(), plan.PlanID{}, tasks))
}

func (w *world) no(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// claim has a node claim some tasks.
func (w *world) claim(n int) []protocol.ClaimedTask {
	w.Helper()
	id := plan.InstanceID{ID: plan.NewID(time.Now())}
	w.no(w.s.Register(w.Context(), plan.Instance{ID: id, Node: "n1", Plugins: []string{"x"}}))
	did, err := w.s.Turn(w.Context(), protocol.Turn{Instance: id, Slots: n, Plugins: []string{"x"}, Start: true})
	w.no(err)
	if len(did.Claimed) != n {
		w.Fatalf("%d tasks were claimed, want %d", len(did.Claimed), n)
	}
	return did.Claimed
}

func (w *world) count(s plan.Status) int {
	w.Helper()
	tasks, err := store.AllTasks(w.Context(), w.s, store.TaskQuery{Statuses: []plan.Status{s}})
	w.no(err)
	return len(tasks)
}

func (w *world) wantSum(what string, got, want bulk.Portion) {
	w.Helper()
	if got != want {
		w.Errorf("%s: %+v, want %+v", what, got, want)
	}
}

func TestAllIsDoneInPortionsAndWhatIsAddedMeanwhileStays(t *testing.T) {
	w := newWorld(t, 2*bulk.MostTasks+5)
	o := bulk.Order{What: rules.BulkCancel, Filter: rules.TaskFilter{Queue: w.q.ID}}
	var sizes []int
	for more := true; more; more = o.After != "" {
		p, err := bulk.Do(t.Context(), w.s, &o)
		w.no(err)
		sizes = append(sizes, p.Changed)
		o.After = p.Next
		w.add(bulk.MostTasks) // more than a portion, each time
	}
	if got := fmt.Sprint(sizes); got != "[1000 1000 5]" {
		t.Errorf("the portions were of %s", got)
	}
	if n, q := w.count(plan.Cancelled), w.count(plan.Queued); n != 2005 || q != 3000 {
		t.Errorf("%d tasks are cancelled and %d queued, want 2005 and 3000", n, q)
	}
}

func TestAPortionThatIsFullToTheLastTaskIsFollowedByAnEmptyOne(t *testing.T) {
	w := newWorld(t, bulk.MostTasks)
	o := bulk.Order{What: rules.BulkCancel, Filter: rules.TaskFilter{Queue: w.q.ID}, Check: true}
	p, err := bulk.Do(t.Context(), w.s, &o)
	w.no(err)
	o.After = p.Next
	w.add(3)
	end, err := bulk.Do(t.Context(), w.s, &o)
	w.no(err)
	w.wantSum("the last one", end, bulk.Portion{})
	if p.Matched != bulk.MostTasks || p.Next == "" {
		t.Errorf("the first one: %+v", p)
	}
}

func TestAFilterThatTakesFewReadsALimitedNumberOfTasks(t *testing.T) {
	w := newWorld(t, 21*bulk.MostTasks)
	o := bulk.Order{What: rules.BulkCancel, Filter: rules.TaskFilter{Queue: w.q.ID, Reasons: []string{"lost"}}}
	p, err := bulk.Do(t.Context(), w.s, &o)
	w.no(err)
	if p.Matched != 0 || p.Next == "" {
		t.Errorf("the first portion is %+v, want none matched, and a next one", p)
	}
	sum, err := bulk.All(t.Context(), w.s, o)
	w.no(err)
	w.wantSum("all", sum, bulk.Portion{})
}

func TestACheckCountsAndChangesNothing(t *testing.T) {
	w := newWorld(t, bulk.MostTasks+1)
	for _, c := range []struct {
		what rules.Bulk
		want int
	}{{rules.BulkCancel, 1001}, {rules.BulkSet, 1001}, {rules.BulkRetry, 0}} {
		sum, err := bulk.All(t.Context(), w.s, bulk.Order{What: c.what, Filter: rules.TaskFilter{Queue: w.q.ID}, Check: true})
		w.no(err)
		w.wantSum(string(c.what), sum, bulk.Portion{Matched: c.want})
	}
	if n := w.count(plan.Queued); n != 1001 {
		t.Errorf("%d tasks are queued, want all 1001", n)
	}
}

// late is a store in which a node claims tasks after they were listed.
type late struct {
	*model.Store
	claim func()
	once  atomic.Bool
}

func (l *late) SetTask(ctx context.Context, id plan.TaskID, c rules.TaskChange) error {
	if l.once.CompareAndSwap(false, true) {
		l.claim()
	}
	return l.Store.SetTask(ctx, id, c)
}

func TestATaskThatIsClaimedMeanwhileIsLeftOutAndCounted(t *testing.T) {
	w := newWorld(t, 20)
	claimed := map[plan.TaskID]bool{}
	s := &late{Store: w.s, claim: func() {
		for _, c := range w.claim(7) {
			claimed[c.Task] = true
		}
	}}
	// The first call of SetTask claims before any other call is done with its task, as only that one changes
	// anything: the others may have come first.
	sum, err := bulk.All(t.Context(), s, bulk.Order{What: rules.BulkSet, Filter: rules.TaskFilter{Queue: w.q.ID}, Change: rules.TaskChange{Attempts: 5}})
	w.no(err)
	if sum.Matched != 20 || sum.Changed+sum.LeftOut != 20 || sum.LeftOut == 0 || sum.LeftOut > 7 {
		t.Errorf("got %+v, want 20 tasks, of which up to 7 were left out", sum)
	}
	tasks, err := store.AllTasks(t.Context(), w.s, store.TaskQuery{NoPlan: true})
	w.no(err)
	unchanged := 0
	for i := range tasks {
		if tasks[i].Retry.Attempts != 5 {
			if unchanged++; !claimed[tasks[i].ID] {
				t.Errorf("task %s was neither changed nor claimed", tasks[i].ID)
			}
		}
	}
	if unchanged != sum.LeftOut {
		t.Errorf("%d tasks did not change, and %d are said to be left out", unchanged, sum.LeftOut)
	}
}

func TestACancellationTellsWhatNodesHave(t *testing.T) {
	w := newWorld(t, 10)
	w.claim(3)
	sum, err := bulk.All(t.Context(), w.s, bulk.Order{What: rules.BulkCancel, Filter: rules.TaskFilter{Queue: w.q.ID}})
	w.no(err)
	w.wantSum("cancel", sum, bulk.Portion{Matched: 10, Changed: 10, Active: 3})
}

// again is a store in which somebody else retries a task just before.
type again struct {
	*model.Store
	first atomic.Bool
}

func (a *again) Retry(ctx context.Context, p plan.PlanID, ask rules.Ask) ([]rules.Retried, error) {
	if a.first.CompareAndSwap(false, true) {
		if _, err := a.Store.Retry(ctx, p, rules.Ask{Tasks: ask.Tasks[:1]}); err != nil {
			return nil, err
		}
	}
	return a.Store.Retry(ctx, p, ask)
}

func TestARetryLeavesOutWhatWaitsAlready(t *testing.T) {
	w := newWorld(t, 12)
	filter := rules.TaskFilter{Queue: w.q.ID}
	_, err := bulk.All(t.Context(), w.s, bulk.Order{What: rules.BulkCancel, Filter: filter})
	w.no(err)
	filter.States = []string{"cancelled"}
	var told int
	sum, err := bulk.All(t.Context(), &again{Store: w.s}, bulk.Order{What: rules.BulkRetry, Filter: filter, Changed: func(plan.TaskID) { told++ }})
	w.no(err)
	w.wantSum("retry", sum, bulk.Portion{Matched: 12, Changed: 11, LeftOut: 1})
	if n := w.count(plan.Queued); n != 12 || told != 11 {
		t.Errorf("%d tasks are queued, and %d were told, want 12 and 11", n, told)
	}
}

func TestWhatIsRefusedChangesNothing(t *testing.T) {
	w := newWorld(t, 3)
	no := errors.New("no")
	long := fmt.Sprintf("%0201d", 0)
	for _, c := range []struct {
		name string
		o    bulk.Order
	}{
		{"no condition", bulk.Order{What: rules.BulkCancel}},
		{"a place that is none", bulk.Order{What: rules.BulkCancel, Filter: rules.TaskFilter{Queue: w.q.ID}, After: "x"}},
		{"half a place", bulk.Order{What: rules.BulkCancel, Filter: rules.TaskFilter{Queue: w.q.ID}, After: w.q.ID.String()}},
		{"a change that no task takes", bulk.Order{What: rules.BulkSet, Filter: rules.TaskFilter{Queue: w.q.ID}, Change: rules.TaskChange{Subject: &long}}},
		{"tasks that are not accepted", bulk.Order{What: rules.BulkCancel, Filter: rules.TaskFilter{Queue: w.q.ID}, Accept: func(context.Context, []plan.Task) error { return no }}},
	} {
		if sum, err := bulk.All(t.Context(), w.s, c.o); err == nil || sum.Changed != 0 {
			t.Errorf("%s: %+v, %v; want an error, and nothing changed", c.name, sum, err)
		}
	}
	if n := w.count(plan.Queued); n != 3 {
		t.Errorf("%d tasks are queued, want 3", n)
	}
}
