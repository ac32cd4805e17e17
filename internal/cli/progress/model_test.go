package progress

import (
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

var start = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

func id(n int) plan.TaskID { return plan.TaskID{ID: plan.ID{byte(n >> 8), byte(n), 1}} }

// change is a task's change to a status, that many seconds after the start.
func change(n int, s plan.Status, seconds float64) store.Change {
	return store.Change{Task: id(n), Name: "t", Status: s, Attempt: 1, At: start.Add(time.Duration(seconds * float64(time.Second)))}
}

func (m *Model) apply(cs ...store.Change) (took time.Duration) {
	for _, c := range cs {
		took = m.Apply(c, time.Time{}, c.At)
	}
	return took
}

// many returns n tasks, each with the estimate and as the rank how many such tasks in a row follow from it on.
func many(n int, estimate time.Duration, row int) []plan.Task {
	tasks := make([]plan.Task, n)
	for i := range tasks {
		tasks[i] = plan.Task{ID: id(i), Name: "t", Status: plan.Held}
		tasks[i].Estimate = estimate
		tasks[i].Rank = int64(row) * max(estimate, guess).Microseconds()
	}
	return tasks
}

func TestModelKnowsWhatRuns(t *testing.T) {
	m := New("p#1", start, 4)
	m.apply(change(1, plan.Running, 0), change(2, plan.Running, 1))
	if took := m.apply(change(1, plan.Succeeded, 3)); took != 3*time.Second {
		t.Errorf("the first task took %v, want 3s", took)
	}
	again := change(2, plan.Running, 5)
	again.Attempt = 2
	m.apply(change(2, plan.Held, 4), again)
	v := m.View(start.Add(6 * time.Second))
	if len(v.Running) != 1 || v.Running[0].For != time.Second || v.Running[0].Attempt != 2 {
		t.Errorf("running: %+v, want the second attempt for 1s", v.Running)
	}
	if took := m.apply(change(3, plan.Succeeded, 7)); took >= 0 {
		t.Errorf("a task that nobody saw start took %v", took)
	}
	if took := m.Apply(change(4, plan.Succeeded, 7), start, start); took != 7*time.Second {
		t.Errorf("a task that started at the start took %v, want 7s", took)
	}
}

func TestModelLoadsWhatRunsAlready(t *testing.T) {
	m := New("p#1", start, 4)
	m.apply(change(2, plan.Succeeded, 0))
	tasks := many(3, 0, 1)
	for i := range tasks {
		tasks[i].Status, tasks[i].Started = plan.Running, start.Add(-time.Minute)
	}
	m.Load(tasks) // read before the second task ended
	if got := m.View(start).Running; len(got) != 2 || got[0].For != time.Minute {
		t.Errorf("running: %+v, want two tasks for a minute", got)
	}
}

func TestTimeLeft(t *testing.T) {
	const unknown = -1
	for _, c := range []struct {
		name    string
		tasks   []plan.Task
		threads int
		counts  plan.Counts
		changes []store.Change
		at      float64 // seconds
		want    time.Duration
	}{
		{
			name: "nothing is known before tasks have ended", tasks: many(10, 0, 1), threads: 2,
			counts: plan.Counts{Held: 10}, want: unknown,
		},
		{
			name: "estimates count from the start", tasks: many(10, 6*time.Second, 1), threads: 2,
			counts: plan.Counts{Held: 10}, want: 30 * time.Second,
		},
		{
			name: "what tasks took scales the rest", tasks: many(10, 0, 1), threads: 2,
			counts:  plan.Counts{Held: 6, Succeeded: 4},
			changes: ended(4, 2), at: 4, want: 6 * time.Second,
		},
		{
			name: "of the last few, seconds are not guessed from what others took", tasks: many(10, 0, 1), threads: 2,
			counts:  plan.Counts{Held: 2, Succeeded: 8},
			changes: ended(8, 2), at: 16, want: unknown,
		},
		{
			name: "but longer times are", tasks: many(10, 0, 1), threads: 2,
			counts:  plan.Counts{Held: 2, Succeeded: 8},
			changes: ended(8, 30), at: 240, want: 30 * time.Second,
		},
		{
			name: "and what a person estimated holds to the end", tasks: many(10, time.Second, 1), threads: 1,
			counts:  plan.Counts{Held: 2, Succeeded: 8},
			changes: ended(8, 1), at: 8, want: 2 * time.Second,
		},
		{
			name: "tasks faster than their estimates scale the rest", tasks: many(10, time.Minute, 1), threads: 2,
			counts:  plan.Counts{Held: 6, Succeeded: 4},
			changes: ended(4, 30), at: 60, want: 90 * time.Second,
		},
		{
			name: "a chain takes its length, whatever the threads", tasks: many(4, 10*time.Second, 4), threads: 64,
			counts:  plan.Counts{Running: 1, Held: 3},
			changes: []store.Change{change(0, plan.Running, 0)}, at: 5, want: 35 * time.Second,
		},
		{
			name: "a queue's limit shows in what runs while others wait", tasks: many(9, 10*time.Second, 1), threads: 64,
			counts:  plan.Counts{Running: 1, Queued: 8},
			changes: []store.Change{change(0, plan.Running, 0)}, at: 0, want: 90 * time.Second,
		},
		{
			name: "items count in place of their foreach task", tasks: many(1, 10*time.Second, 1), threads: 1,
			counts:  plan.Counts{Held: 1, Running: 1, Queued: 2},
			changes: items(0, 3), at: 0, want: 30 * time.Second,
		},
		{
			name: "skipped tasks are not left to do", tasks: many(10, time.Second, 1), threads: 1,
			counts:  plan.Counts{Held: 2, Skipped: 8},
			changes: skipped(8), want: 2 * time.Second,
		},
		{
			name: "nothing is left at the end", tasks: many(2, time.Second, 1), threads: 1,
			counts: plan.Counts{Succeeded: 2}, changes: ended(2, 1), at: 2, want: 0,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := New("p#1", start, c.threads)
			m.Load(c.tasks)
			m.apply(c.changes...)
			m.SetCounts(c.counts)
			now := start.Add(time.Duration(c.at * float64(time.Second)))
			if got := m.View(now).Left; got != c.want {
				t.Errorf("left %v, want %v", got, c.want)
			}
		})
	}
}

func TestTimeLeftIsTheSameInWhateverOrderTasksAreLoaded(t *testing.T) {
	tasks := many(3, 10*time.Second, 1)
	tasks[1].Of, tasks[2].Of = tasks[0].ID, tasks[0].ID
	for _, order := range [][]plan.Task{{tasks[0], tasks[1], tasks[2]}, {tasks[1], tasks[0], tasks[2]}, {tasks[2], tasks[1], tasks[0]}} {
		m := New("p#1", start, 1)
		m.apply(change(2, plan.Succeeded, 0)) // before it was loaded
		m.Load(order[:1])
		m.Load(order)
		m.SetCounts(plan.Counts{Held: 2, Succeeded: 1})
		if got := m.View(start).Left; got != 10*time.Second {
			t.Errorf("left %v, want 10s", got)
		}
	}
}

func TestTimeLeftStandsStillForASecond(t *testing.T) {
	m := New("p#1", start, 1)
	m.Load(many(10, 10*time.Second, 1))
	m.SetCounts(plan.Counts{Held: 10})
	m.View(start)
	m.apply(change(0, plan.Succeeded, 0.5))
	if got := m.View(start.Add(500 * time.Millisecond)).Left; got != 99500*time.Millisecond {
		t.Errorf("left %v after half a second, want 99.5s", got)
	}
	if got := m.View(start.Add(time.Second)).Left; got != 90*time.Second {
		t.Errorf("left %v after a second, want 90s", got)
	}
}

func ended(n int, took float64) []store.Change {
	var cs []store.Change
	for i := range n {
		cs = append(cs, change(i, plan.Running, 0), change(i, plan.Succeeded, took))
	}
	return cs
}

func items(of, n int) []store.Change {
	var cs []store.Change
	for i := range n {
		c := change(100+i, plan.Queued, 0)
		if i == 0 {
			c.Status = plan.Running
		}
		c.Of = id(of)
		cs = append(cs, c)
	}
	return cs
}

func skipped(n int) []store.Change {
	var cs []store.Change
	for i := range n {
		cs = append(cs, change(i, plan.Cancelled, 0))
	}
	return cs
}
