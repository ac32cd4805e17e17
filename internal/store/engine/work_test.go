package engine_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/seed-1177d267/sluice/internal/store/engine"
)

// worker is a unit with so many children of ended tasks, kept children and documents of jobs. It
// notes what it does, and with which budget.
type worker struct {
	budget            int
	ended, kept, jobs int
	portion           int
	yields            bool
	did               []string
}

func (w *worker) Budget() *int { return &w.budget }

func (w *worker) Remembered(context.Context) (children, jobs bool, err error) {
	return w.kept > 0, w.jobs > 0, nil
}

// use changes as many of these documents as the budget allows.
func (w *worker) use(what string, some *int) {
	n := min(*some, w.budget)
	*some, w.budget = *some-n, w.budget-n
	if n > 0 {
		w.did = append(w.did, fmt.Sprint(what, " ", n))
	}
}

func (w *worker) Release(context.Context) error {
	w.use("ended", &w.ended)
	return nil
}

func (w *worker) ReleaseKept(context.Context) (more bool, err error) {
	w.use("kept", &w.kept)
	return w.kept > 0, nil
}

func (w *worker) Job(context.Context) (was bool, err error) {
	was = w.jobs > 0
	w.use("job", &w.jobs)
	return was, nil
}

func (w *worker) Portion() int { return w.portion }

func (w *worker) Yield() bool { return w.yields }

func (w *worker) Keep(context.Context) (more bool, err error) {
	return w.ended+w.kept+w.jobs > 0, nil
}

func TestWork(t *testing.T) {
	for _, c := range []struct {
		name string
		w    worker
		want []string
		more bool
	}{
		{"nothing is left", worker{budget: 100, ended: 30, portion: 100}, []string{"ended 30"}, false},
		{"children that ended now go first", worker{budget: 100, ended: 30, kept: 20, jobs: 10, portion: 100}, []string{"ended 30", "kept 20", "job 10"}, false},
		{"each kind of remembered work gets a quarter",
			worker{budget: 100, ended: 1000, kept: 1000, jobs: 1000, portion: 100}, []string{"ended 50", "kept 25", "job 25"}, true},
		{"one kind leaves three quarters to what ended now", worker{budget: 100, ended: 1000, jobs: 1000, portion: 100}, []string{"ended 75", "job 25"}, true},
		{"portions double", worker{budget: 100, kept: 1000, portion: 10}, []string{"kept 10", "kept 20", "kept 40", "kept 30"}, true},
		{"a unit yields after a portion", worker{budget: 100, kept: 1000, jobs: 1000, portion: 10, yields: true}, []string{"kept 10", "job 20"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			more, err := engine.Work(t.Context(), &c.w)
			if err != nil || more != c.more || !slices.Equal(c.w.did, c.want) {
				t.Errorf("did %q, more %v, %v; want %q, more %v", c.w.did, more, err, c.want, c.more)
			}
		})
	}
}
