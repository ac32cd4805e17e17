package view

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

var start = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// ran is a task that runs, started so many seconds after the start by the store's clock.
func ran(n, attempt int, started float64) plan.Task {
	return plan.Task{
		ID: plan.TaskID{ID: plan.ID{byte(n), 1}}, Name: fmt.Sprint("t", n), Status: plan.Running, Attempt: attempt, Started: at(started),
	}
}

func at(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }

func TestModelKnowsHowLongTasksRun(t *testing.T) {
	m := NewModel("p#1", start)
	for _, c := range []struct {
		name  string
		at    float64
		tasks []plan.Task
		want  string
	}{
		{"what ran before anybody looked began when the store says", 0, []plan.Task{ran(1, 1, -60)}, "t1 1m0s"},
		{"a task that began since", 3, []plan.Task{ran(1, 1, -60), ran(2, 1, 2)}, "t1 1m3s, t2 1s"},
		{"one that began before the last look by a clock that is behind", 5, []plan.Task{ran(2, 1, 2), ran(3, 1, -600)}, "t2 3s, t3 2s"},
		{"one that has not begun by a clock that is ahead", 6, []plan.Task{ran(3, 1, -600), ran(4, 1, 600)}, "t3 3s, t4 0s"},
		{"a second attempt begins anew", 9, []plan.Task{ran(3, 2, 8), ran(4, 1, 600)}, "t4 3s, t3 1s"},
		{"nothing runs", 10, nil, ""},
	} {
		m.SetRunning(c.tasks, false, at(c.at))
		got := ""
		for i, r := range m.Frame(at(c.at)).Running {
			if i > 0 {
				got += ", "
			}
			got += fmt.Sprint(r.Name, " ", r.For)
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestTimeLeftIsByThePaceSinceTheFirstCounts(t *testing.T) {
	m := NewModel("p#1", start.Add(-time.Hour))
	m.SetCounts(plan.Counts{Succeeded: 100, Held: 20}, start)
	if got := m.Frame(start).Left; got >= 0 {
		t.Errorf("left %v before anything ended", got)
	}
	c := plan.Counts{Succeeded: 110, Running: 2, Queued: 8}
	m.SetCounts(c, at(10))
	want, _ := rules.TimeLeft(plan.Counts{Succeeded: 100}, c, 10*time.Second)
	if got := m.Frame(at(10)).Left; got != want {
		t.Errorf("left %v, want %v", got, want)
	}
}
