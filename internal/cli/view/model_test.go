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
	m.SetRunning([]plan.Task{ran(1, 1, -60), ran(2, 2, 2), ran(3, 1, 600)}, false)
	got := ""
	for _, r := range m.Frame(at(5)).Running {
		got += fmt.Sprint(r.Name, " ", r.For, " ")
	}
	if want := "t1 1m5s t2 3s t3 0s "; got != want { // the last one has not begun by a clock that is ahead
		t.Errorf("got %q, want %q", got, want)
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
