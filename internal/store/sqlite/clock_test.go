package sqlite

import (
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
)

func TestAJumpIsWhatTheClockWasSetBy(t *testing.T) {
	for _, c := range []struct {
		name       string
		since, now lead
		want       time.Duration
	}{
		{"time goes by", lead{1, time.Hour}, lead{1, time.Hour}, 0},
		{"a clock that is corrected as it runs", lead{1, time.Hour}, lead{1, time.Hour + 900*time.Millisecond}, 0},
		{"it was set forward", lead{1, time.Hour}, lead{1, 3 * time.Hour}, 2 * time.Hour},
		{"it was set back", lead{1, time.Hour}, lead{1, 0}, -time.Hour},
		{"nothing is known of before", lead{}, lead{1, time.Hour}, 0},
		{"the system was started again", lead{1, time.Hour}, lead{2, 3 * time.Hour}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.now.jump(c.since); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

func TestAClockThatStoodBetweenTwoLooksSaysNothing(t *testing.T) {
	up := time.Hour
	c := &clock{func() time.Time { up += time.Minute; return time.Unix(1e9, 0) }, func() (int64, time.Duration, bool) { return 1, up, true }}
	if _, l, ok := c.read(); ok {
		t.Errorf("a stop of a minute is taken for %+v", l)
	}
}

// A machine has a clock that is set, and a time since its start, which all its stores see.
type machine struct {
	wall time.Time
	up   time.Duration
}

func (m *machine) pass(d time.Duration) { m.wall, m.up = m.wall.Add(d), m.up+d }

func (m *machine) open(t *testing.T, path string) *Store {
	t.Helper()
	s := openAt(t, path, Options{Now: func() time.Time { return m.wall }})
	s.clock.boot = func() (int64, time.Duration, bool) { return 7, m.up, true }
	t.Cleanup(func() { s.Close() })
	return s
}

func TestAClockThatIsSetDecidesNothing(t *testing.T) {
	const month = 31 * 24 * time.Hour
	for _, c := range []struct {
		name  string
		steps []time.Duration // by which the clock is set
		other bool            // another process writes first after that
	}{
		{name: "not at all"},
		{name: "back by an hour", steps: []time.Duration{-time.Hour}},
		{name: "forward by an hour", steps: []time.Duration{time.Hour}},
		{name: "forward by a month", steps: []time.Duration{month}},
		{name: "forward by a month, noticed by another process", steps: []time.Duration{month}, other: true},
		{name: "forward by a month, and back", steps: []time.Duration{month, -month}},
		{name: "back by a month, and forward", steps: []time.Duration{-month, month}},
		{name: "forward twice", steps: []time.Duration{month, month}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &machine{wall: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC), up: time.Hour}
			path := t.TempDir() + "/sluice.db"
			s, other := m.open(t, path), m.open(t, path)
			no := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			i := register(t, s, "n1")
			ended := newPlan(t, s, "ended", task{name: "a"})
			runAll(t, s, i, func(protocol.ClaimedTask) protocol.Ending { return protocol.Ending{Status: plan.Succeeded} })
			submitting, err := s.CreatePlan(t.Context(), plan.Plan{Name: "submitting"})
			no(err)
			kept, err := s.CreatePlan(t.Context(), plan.Plan{Name: "kept", Keep: 20 * 24 * time.Hour})
			no(err)
			no(s.Ready(t.Context(), kept.ID))
			later := newPlan(t, s, "later", task{name: "a"})
			claimed := turn(t, s, protocol.Turn{Instance: i, Slots: 1, Start: true}).Claimed
			turn(t, s, protocol.Turn{Instance: i, Ended: []protocol.Ending{{Claim: claimed[0].Claim, Status: plan.Held, Delay: 10 * time.Second}}})
			sweep := func() protocol.Swept {
				t.Helper()
				did, err := s.Sweep(t.Context(), protocol.Sweep{Instance: i})
				no(err)
				return did
			}
			for _, by := range c.steps {
				m.wall = m.wall.Add(by)
				if m.pass(time.Second); c.other {
					_, err := other.EnsureQueue(t.Context(), plan.Queue{Name: "other", Plugin: "exec"})
					no(err)
				}
				sweep()
			}
			m.pass(time.Duration(9-len(c.steps))*time.Second - time.Millisecond)
			if sweep(); named(t, s, later, "a").Status != plan.Held {
				t.Error("a delay of 10 s is over after 9")
			}
			m.pass(2 * time.Second)
			if sweep(); named(t, s, later, "a").Status != plan.Queued {
				t.Error("a delay of 10 s is not over after 11")
			}
			expired := func() int {
				t.Helper()
				gone, err := s.Expire(t.Context(), 1000)
				no(err)
				return gone.Plans
			}
			state := func() plan.Lifecycle {
				t.Helper()
				p, err := s.Plan(t.Context(), submitting.ID)
				no(err)
				return p.State
			}
			if n := expired(); n != 0 {
				t.Errorf("%d plans that have just ended are deleted", n)
			}
			if m.pass(58 * time.Minute); state() != plan.PlanSubmitting {
				t.Error("a submission is abandoned after 58 minutes")
			}
			sweep()
			if p, err := s.Plan(t.Context(), ended); err != nil || p.Ended.Sub(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)).Abs() > time.Second {
				t.Errorf("the plan is shown to have ended at %v (%v)", p.Ended, err)
			}
			if state() != plan.PlanSubmitting {
				t.Error("a submission is abandoned after 58 minutes")
			}
			m.pass(2*month + 2*month) // what looked younger than it was goes as well
			if sweep(); state() != plan.PlanAbandoned {
				t.Error("a submission is never abandoned")
			}
			if n := expired(); n != 2 {
				t.Errorf("%d plans are deleted in the end, want 2", n)
			}
		})
	}
}

// TestAJumpOfTheClockWritesNoTask has many tasks wait for an instant while the clock is set.
func TestAJumpOfTheClockWritesNoTask(t *testing.T) {
	const tasks = 3000
	m := &machine{wall: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC), up: time.Hour}
	s := m.open(t, t.TempDir()+"/sluice.db")
	i := register(t, s, "n1")
	q, err := s.EnsureQueue(t.Context(), plan.Queue{Name: "q", Plugin: "demo", Unlimited: true})
	if err != nil {
		t.Fatal(err)
	}
	before := m.wall.Add(time.Minute)
	delayed := make([]plan.Task, tasks)
	for k := range delayed {
		delayed[k] = plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Queue: q.ID, NotBefore: before}
	}
	if err := s.AddTasks(t.Context(), plan.PlanID{}, delayed); err != nil {
		t.Fatal(err)
	}
	rows := int64(0)
	s.watch = func(x *tx) { rows = max(rows, x.rows) }
	for _, by := range []time.Duration{time.Hour, -3 * time.Hour} {
		m.wall = m.wall.Add(by)
		if _, err := s.Sweep(t.Context(), protocol.Sweep{Instance: i}); err != nil {
			t.Fatal(err)
		}
		before = before.Add(by)
		if got, err := s.Task(t.Context(), delayed[0].ID); err != nil || !got.NotBefore.Equal(before) || got.Status != plan.Held {
			t.Errorf("after a jump by %v the task is %v until %v (%v), want held until %v", by, got.Status, got.NotBefore, err, before)
		}
	}
	if rows > 20 {
		t.Errorf("a transaction changed %d rows, want no task's", rows)
	}
	m.pass(59 * time.Second)
	if n := len(runAll(t, s, i, func(protocol.ClaimedTask) protocol.Ending { return protocol.Ending{Status: plan.Succeeded} })); n != 0 {
		t.Errorf("%d tasks ran before their instant", n)
	}
	m.pass(2 * time.Second)
	if n := len(runAll(t, s, i, func(protocol.ClaimedTask) protocol.Ending { return protocol.Ending{Status: plan.Succeeded} })); n != tasks {
		t.Errorf("%d tasks ran after their instant, want %d", n, tasks)
	}
}
