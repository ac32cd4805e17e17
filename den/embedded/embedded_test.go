package embedded

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// engine opens the store in the file with the plugins "pass", which waits until it may, and "flaky", whose first attempt fails.
func engine(t *testing.T, path string, may <-chan struct{}) *Engine {
	t.Helper()
	e, err := Open(t.Context(), Options{Store: "sqlite:" + path, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	e.Plugins.Register("pass", plugins.Func(func(ctx context.Context, task *plugins.Task) (any, error) {
		select {
		case <-may:
			return task.Name, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}))
	e.Plugins.Register("flaky", plugins.Func(func(_ context.Context, task *plugins.Task) (any, error) {
		if task.Attempt == 1 {
			return nil, errors.New("not yet")
		}
		return nil, nil
	}))
	return e
}

// An outcome is what Run or Resume returned.
type outcome struct {
	plan.Plan
	err error
}

func TestRunReturnsWhoeverEndsThePlan(t *testing.T) {
	type program func(ctx context.Context, t *testing.T, e *Engine, p plan.PlanID, may chan<- struct{})
	resumes := func(ctx context.Context, t *testing.T, e *Engine, p plan.PlanID, may chan<- struct{}) {
		time.AfterFunc(300*time.Millisecond, func() { close(may) })
		if got, err := e.Resume(ctx, p); err != nil || got.State != plan.PlanSucceeded {
			t.Errorf("the other program got %v, %v, want that the plan succeeded", got.State, err)
		}
	}
	cancels := func(ctx context.Context, t *testing.T, e *Engine, p plan.PlanID, _ chan<- struct{}) {
		if err := e.store.CancelPlan(ctx, p); err != nil {
			t.Error(err)
		}
	}
	tests := []struct {
		name  string
		task  plan.TaskSpec // of which there are two
		other program       // what another program does when the plan runs
		state plan.Lifecycle
	}{
		{"a program that runs it too", plan.TaskSpec{Plugin: "pass"}, resumes, plan.PlanSucceeded},
		{"one that cancels it between two attempts",
			plan.TaskSpec{Plugin: "flaky", Retry: plan.Retry{Attempts: 2, Delay: time.Hour, Max: time.Hour}}, cancels, plan.PlanCancelled},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
			defer stop()
			may := make(chan struct{})
			path := filepath.Join(t.TempDir(), "plans.db")
			e, other := engine(t, path, may), engine(t, path, may)
			spec := plan.New("shared")
			for _, name := range []string{"a", "b"} {
				test.task.Name = name
				spec.Add(test.task)
			}
			ended := make(chan outcome, 1)
			go func() {
				p, err := e.Run(ctx, spec)
				ended <- outcome{p, err}
			}()
			var p plan.Plan
			for p.ID.IsZero() {
				time.Sleep(10 * time.Millisecond)
				found, err := other.Unfinished(ctx, "shared")
				if err != nil {
					t.Fatal(err)
				}
				if len(found) > 0 {
					p = found[0]
				}
			}
			test.other(ctx, t, other, p.ID, may)
			got := <-ended
			if ctx.Err() != nil {
				t.Error("Run returned only when it was stopped, 30 s later")
			}
			if got.err != nil || got.State != test.state {
				t.Errorf("Run returned a plan that is %v, %v; want %v", got.State, got.err, test.state)
			}
		})
	}
}

func TestAPlanThatWasStoppedIsFoundAndResumed(t *testing.T) {
	path, may := filepath.Join(t.TempDir(), "plans.db"), make(chan struct{})
	e := engine(t, path, may)
	s := plan.New("nightly")
	s.Add(plan.TaskSpec{Name: "a", Plugin: "pass"})
	ctx, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer stop()
	if p, err := e.Run(ctx, s); !errors.Is(err, ErrInterrupted) {
		t.Fatalf("a run that was stopped returned %v, %v", p.State, err)
	}
	close(may)
	left, err := e.Unfinished(t.Context(), "nightly")
	if err != nil || len(left) != 1 {
		t.Fatalf("unfinished are %v, %v; want the one that was stopped", left, err)
	}
	p, err := e.Resume(t.Context(), left[0].ID)
	if err != nil || p.State != plan.PlanSucceeded {
		t.Fatalf("resumed it ended as %v, %v", p.State, err)
	}
	if out, err := e.Output(t.Context(), p.ID, "a"); err != nil || string(out) != `"a"` {
		t.Errorf("its output is %s, %v", out, err)
	}
	if left, err := e.Unfinished(t.Context(), "nightly"); err != nil || len(left) != 0 {
		t.Errorf("unfinished are %v, %v; want none", left, err)
	}
}

func TestAPlanThatIsNotSubmittedToItsEndIsNotResumed(t *testing.T) {
	e := engine(t, filepath.Join(t.TempDir(), "plans.db"), nil)
	p, err := e.store.CreatePlan(t.Context(), plan.Plan{ID: plan.PlanID{ID: plan.NewID(time.Now())}, Name: "half", Size: 2})
	if err != nil {
		t.Fatal(err)
	}
	if left, err := e.Unfinished(t.Context(), "half"); err != nil || len(left) != 0 {
		t.Errorf("unfinished are %v, %v; want none that never began", left, err)
	}
	if _, err := e.Resume(t.Context(), p.ID); !errors.Is(err, plan.ErrPlanNotReady) {
		t.Errorf("resumed it returned %v, want ErrPlanNotReady", err)
	}
}
