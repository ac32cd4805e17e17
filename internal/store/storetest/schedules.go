package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// Scheduling is a store that keeps schedules.
type Scheduling interface {
	store.Store
	store.Schedules
}

// Schedules tests store.Schedules on two handles of one empty database.
func Schedules(t *testing.T, s, other Scheduling) {
	w := scheduling{s, other}
	t.Run("a schedule is written for who read its revision", w.revisions)
	t.Run("schedules are found by name and by when they are due", w.queries)
	t.Run("tasks start in the write of their schedule", w.starts)
	t.Run("a heartbeat tells when the first schedule is due", w.beat)
}

type scheduling struct{ s, other Scheduling }

func newSchedule(name string, due time.Time) plan.Schedule {
	s := plan.Schedule{ID: plan.ScheduleID{ID: plan.NewID(time.Now())}, Name: name, Next: due, Created: due, Modified: due, Cursor: due}
	s.Cron, s.Plan = "* * * * *", &plan.ScheduledPlan{File: plan.File{Text: "tasks: {a: {run: 'true'}} # " + name, Dir: "/srv"}}
	return s
}

// put writes one schedule, and returns the store's word on it.
func (w *scheduling) put(t *testing.T, on Scheduling, s plan.Schedule) error {
	t.Helper()
	refused, err := on.PutSchedules(t.Context(), []plan.Schedule{s})
	if err != nil || len(refused) != 1 {
		t.Fatalf("put schedule %q: %d answers, %v", s.Name, len(refused), err)
	}
	return refused[0]
}

func (w *scheduling) read(t *testing.T, on Scheduling, q store.ScheduleQuery) []plan.Schedule {
	t.Helper()
	found, err := on.Schedules(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func (w *scheduling) revisions(t *testing.T) {
	at := time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
	s := newSchedule("nightly", at)
	want := func(err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Fatalf("got %v, want %v", err, want)
		}
	}
	want(w.put(t, w.s, s), nil)
	want(w.put(t, w.other, s), nil) // the same once more: an answer was lost
	want(w.put(t, w.other, newSchedule("nightly", at)), plan.ErrExists)
	got := w.read(t, w.other, store.ScheduleQuery{Name: "nightly", Files: true})
	if len(got) != 1 || got[0].Revision != 1 || got[0].Plan.File != s.Plan.File || !got[0].Next.Equal(at) || got[0].ID != s.ID {
		t.Fatalf("it is %+v", got)
	}
	a, b := got[0], got[0]
	a.Overlap, b.Overlap = plan.OverlapQueue, plan.OverlapAllow
	a.Plan, b.Plan = &plan.ScheduledPlan{File: plan.File{Dir: "/other"}}, nil
	want(w.put(t, w.s, a), nil)
	want(w.put(t, w.s, a), nil)
	want(w.put(t, w.other, b), plan.ErrConflict)
	got = w.read(t, w.s, store.ScheduleQuery{Name: "nightly", Files: true})
	if len(got) != 1 || got[0].Revision != 2 || got[0].Overlap != plan.OverlapQueue || got[0].Plan.File.Text != s.Plan.File.Text || got[0].Plan.File.Dir != "/other" {
		t.Fatalf("it is %+v, with the plan %+v", got, got[0].Plan)
	}
	if got := w.read(t, w.s, store.ScheduleQuery{Name: "nightly"}); got[0].Plan.File.Text != "" {
		t.Errorf("a query without files has %q", got[0].Plan.File.Text)
	}
	missing := newSchedule("gone", at)
	missing.Revision = 3
	want(w.put(t, w.s, missing), plan.ErrNotFound)

	// Many are written apart from each other.
	c := got[0]
	c.Overlap = plan.OverlapSkip
	refused, err := w.other.PutSchedules(t.Context(), []plan.Schedule{newSchedule("new", at), missing, b, c})
	if err != nil || len(refused) != 4 {
		t.Fatal(refused, err)
	}
	want(refused[0], nil)
	want(refused[1], plan.ErrNotFound)
	want(refused[2], plan.ErrConflict)
	want(refused[3], nil)
	for _, s := range w.read(t, w.s, store.ScheduleQuery{}) {
		if err := w.s.DeleteSchedule(t.Context(), s.ID); err != nil {
			t.Fatal(err)
		}
		if err := w.other.DeleteSchedule(t.Context(), s.ID); !errors.Is(err, plan.ErrNotFound) {
			t.Errorf("a second deletion: %v", err)
		}
	}
}

func (w *scheduling) starts(t *testing.T) {
	s, ok := w.s.(store.Starter)
	if !ok {
		return // it is without transactions
	}
	q, err := w.s.EnsureQueue(t.Context(), plan.Queue{Name: "q", Plugin: "exec", Unlimited: true})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
	newTask := func(name string) plan.Task {
		return plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: name, Queue: q.ID}
	}
	start := func(schedules []plan.Schedule, tasks ...[]plan.Task) []error {
		t.Helper()
		refused, err := s.StartTasks(t.Context(), schedules, tasks)
		if err != nil {
			t.Fatal(err)
		}
		return refused
	}
	want := func(want ...string) {
		t.Helper()
		var names []string
		for _, x := range w.plain(t) {
			names = append(names, x.Name)
		}
		if slices.Sort(names); !slices.Equal(names, want) {
			t.Errorf("there are the tasks %v, want %v", names, want)
		}
	}
	a, b := newSchedule("s-a", at), newSchedule("s-b", at)
	stale := b
	stale.Revision = 7
	tasks := [][]plan.Task{{newTask("a1"), newTask("a2")}, {newTask("b1")}}
	if refused := start([]plan.Schedule{a, stale}, tasks...); refused[0] != nil || !errors.Is(refused[1], plan.ErrNotFound) {
		t.Errorf("the store says %v", refused)
	}
	want("a1", "a2")
	start([]plan.Schedule{a, b}, tasks...) // the first one again
	want("a1", "a2", "b1")
	lost := newTask("lost")
	lost.Queue = plan.QueueID{ID: plan.NewID(time.Now())}
	a.Revision, a.Next = 1, at.Add(time.Hour)
	if _, err := s.StartTasks(t.Context(), []plan.Schedule{a}, [][]plan.Task{{newTask("a3"), lost}}); !errors.Is(err, plan.ErrNotFound) {
		t.Errorf("a queue that is not there: %v", err)
	}
	want("a1", "a2", "b1")
	if is := w.read(t, w.other, store.ScheduleQuery{Name: "s-a"}); len(is) != 1 || is[0].Revision != 1 {
		t.Errorf("then the schedule is %+v", is)
	}
	for _, x := range []plan.Schedule{a, b} {
		if err := w.s.DeleteSchedule(t.Context(), x.ID); err != nil {
			t.Fatal(err)
		}
	}
}

func (w *scheduling) queries(t *testing.T) {
	at := time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
	names := func(found []plan.Schedule) (names []string) {
		for _, s := range found {
			names = append(names, s.Name)
		}
		return names
	}
	var all []plan.Schedule
	for i := range 5 {
		all = append(all, newSchedule(fmt.Sprintf("q%d", i), at.Add(time.Duration(5-i)*time.Second)))
	}
	all[0].Next = time.Time{}               // it is never due,
	all[1].Look = at.Add(-time.Second)      // and this one earlier than its next instant
	all[4].Next = at.Add(time.Hour).Local() // whatever its zone is
	if refused, err := w.s.PutSchedules(t.Context(), all); err != nil || slices.ContainsFunc(refused, func(err error) bool { return err != nil }) {
		t.Fatal(refused, err)
	}
	for _, c := range []struct {
		q    store.ScheduleQuery
		want string
	}{
		{store.ScheduleQuery{}, "[q0 q1 q2 q3 q4]"},
		{store.ScheduleQuery{Limit: 2}, "[q0 q1]"},
		{store.ScheduleQuery{After: "q1", Limit: 2}, "[q2 q3]"},
		{store.ScheduleQuery{Name: "q3"}, "[q3]"},
		{store.ScheduleQuery{Name: "q"}, "[]"},
		{store.ScheduleQuery{Due: at.Add(2 * time.Second)}, "[q1 q3]"},
		{store.ScheduleQuery{Due: at.Add(3 * time.Second)}, "[q1 q3 q2]"},
		{store.ScheduleQuery{Due: at.Add(time.Hour), Limit: 3}, "[q1 q3 q2]"},
		{store.ScheduleQuery{Due: at.Add(time.Hour)}, "[q1 q3 q2 q4]"},
		{store.ScheduleQuery{Due: at.Add(-time.Hour)}, "[]"},
	} {
		if got := fmt.Sprint(names(w.read(t, w.other, c.q))); got != c.want {
			t.Errorf("%+v finds %s, want %s", c.q, got, c.want)
		}
	}
	for _, s := range all {
		if err := w.s.DeleteSchedule(t.Context(), s.ID); err != nil {
			t.Fatal(err)
		}
	}
}

func (w *scheduling) beat(t *testing.T) {
	ctx := t.Context()
	i := plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: "n", Lease: time.Minute}
	if err := w.s.Register(ctx, i); err != nil {
		t.Fatal(err)
	}
	due := func() *time.Duration {
		t.Helper()
		told, err := w.s.Beat(ctx, protocol.Beat{Instance: i.ID})
		if err != nil {
			t.Fatal(err)
		}
		return told.Due
	}
	if in := due(); in != nil {
		t.Errorf("without schedules one is due in %s", *in)
	}
	now, err := w.s.Now(ctx)
	if err != nil {
		t.Fatal(err)
	}
	never, later, sooner := newSchedule("never", time.Time{}), newSchedule("later", now.Add(2*time.Hour)), newSchedule("sooner", now.Add(-time.Hour))
	for _, c := range []struct {
		s        *plan.Schedule
		from, to time.Duration // 0: none
	}{{&never, 0, 0}, {&later, time.Hour, 3 * time.Hour}, {&sooner, -2 * time.Hour, -time.Minute}} {
		if err := w.put(t, w.other, *c.s); err != nil {
			t.Fatal(err)
		}
		switch in := due(); {
		case c.to == 0 && in != nil:
			t.Errorf("after %q one is due in %s, want none", c.s.Name, *in)
		case c.to != 0 && (in == nil || *in < c.from || *in > c.to):
			t.Errorf("after %q one is due in %v, want %s to %s", c.s.Name, in, c.from, c.to)
		}
	}
	for _, s := range []*plan.Schedule{&never, &later, &sooner} {
		if err := w.s.DeleteSchedule(ctx, s.ID); err != nil {
			t.Fatal(err)
		}
	}
}

// plain returns the tasks of no plan.
func (w *scheduling) plain(t *testing.T) []plan.Task {
	t.Helper()
	found, err := w.s.Tasks(t.Context(), store.TaskQuery{NoPlan: true})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
