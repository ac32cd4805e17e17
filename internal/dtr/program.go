package dtr

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-1177d267/sluice/internal/runner"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// A Program is another program's task runner. Its arguments are `--config FILE --task ID` and the
// flags below. It takes the task to running, and writes the end and the output of the task into the
// database itself. Its own output goes to the task's log.
type Program struct {
	Path    string
	Config  string        // Disbatch's file; "": it is not told of one
	GFS     string        // "auto" or "true"; else nothing is said of it
	Quiet   bool          // it gets --quiet
	Testing bool          // it gets --testing
	Grace   time.Duration // from SIGTERM to SIGKILL, when it is stopped

	// Task reads the stored task. Run calls it each second. If it returns plan.ErrNotFound, or a
	// task that is no longer the claim of the instance As, Run ends the program at once. If the
	// program has not begun its task within Begin, Run stops it. With a nil Task, Run checks
	// nothing.
	Task  func(context.Context, plan.TaskID) (plan.Task, error)
	As    plan.InstanceID
	Begin time.Duration
}

// Run implements plugins.Plugin, for den.Config.Foreign: how the task ended is in the database unless it was stopped here.
func (p *Program) Run(ctx context.Context, t *plugins.Task) plan.Result {
	out := runner.NewOutput(0)
	t.Log.Attach(func() []plan.LogEntry { return itsOwn(out.Entries()) })
	ctx, stop := context.WithCancelCause(ctx)
	lost, hurry, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { p.watch(ctx, t, stop, lost) })
	wg.Go(func() {
		select {
		case <-t.Hurry:
		case <-lost:
		case <-over:
			return
		}
		close(hurry)
	})
	ended, err := runner.Run(ctx, runner.Command{Args: p.args(t.ID), Env: Environ(), Grace: p.Grace, Hurry: hurry}, out)
	stop(nil)
	close(over)
	wg.Wait()
	switch {
	case err != nil:
		return plan.Result{Status: plan.Failed, Reason: plan.ReasonError, Detail: err.Error()}
	case ended.Stopped != nil:
		return plan.Result{Status: plan.Terminated, Detail: ended.Stopped.Error()}
	case ended.Signal != "":
		return plan.Result{Status: plan.Failed, Reason: plan.ReasonError, Detail: fmt.Sprintf("%s was ended by %s", p.Path, ended.Signal)}
	case ended.Code != 0:
		return plan.Result{Status: plan.Failed, Reason: plan.ReasonError, Detail: fmt.Sprintf("%s ended with exit status %d", p.Path, ended.Code)}
	}
	return plan.Result{Status: plan.Succeeded}
}

// watchEvery is how often the task of a program is read.
const watchEvery = time.Second

var errNotIts = errors.New("it has lost its task: the task was ended by another program, or claimed again")

// watch stops the program if its claim is lost, and then closes lost, or if it does not begin its task.
func (p *Program) watch(ctx context.Context, t *plugins.Task, stop context.CancelCauseFunc, lost chan<- struct{}) {
	if p.Task == nil {
		return
	}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for began := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		waited := time.Since(began)
		switch is, err := p.Task(ctx, t.ID); {
		case errors.Is(err, plan.ErrNotFound), err == nil && !p.has(&is, t.Attempt):
			close(lost)
			stop(errNotIts)
			return
		case err == nil && is.Status == plan.Claimed && waited > p.Begin:
			stop(fmt.Errorf("it had not begun its task after %v", p.Begin))
			return
		}
	}
}

// has reports whether the task is the program's still, or has a status that the program may have given it.
func (p *Program) has(is *plan.Task, attempt int) bool {
	return is.Attempt == attempt && (is.Status > 0 || is.Status.Active() && is.Instance == p.As)
}

// itsOwn marks what a task runner printed, which is not what its task printed: that it puts into the database.
func itsOwn(entries []plan.LogEntry) []plan.LogEntry {
	for i := range entries {
		if e := &entries[i]; e.Stream != plan.System {
			e.Stream = plan.Runner
		}
	}
	return entries
}

// Lease implements plugins.Tenant.
func (p *Program) Lease(left time.Duration) { runner.Lease(left) }

func (p *Program) args(id plan.TaskID) []string {
	args := []string{p.Path}
	if p.Config != "" {
		args = append(args, "--config", p.Config)
	}
	args = append(args, "--task", id.String())
	switch p.GFS {
	case "auto":
		args = append(args, "--gfs", "auto")
	case "true":
		args = append(args, "--gfs", "1")
	}
	if p.Quiet {
		args = append(args, "--quiet")
	}
	if p.Testing {
		args = append(args, "--testing")
	}
	return args
}

// Environ is what a runner inherits: all that this process has but what is between it and its service manager.
func Environ() []string {
	return slices.DeleteFunc(os.Environ(), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return slices.Contains(runner.OfServiceManager, name)
	})
}

// Check says what is wrong with the path of a task runner, if anything is.
func Check(path string) error {
	switch info, err := os.Stat(path); {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("task runner %s is not there; check the path", path)
	case err != nil:
		return fmt.Errorf("task runner %s: %w", path, err)
	case info.IsDir():
		return fmt.Errorf("task runner %s is a folder; name the program in it", path)
	case !executable(info):
		return fmt.Errorf("task runner %s cannot be run; make it executable: chmod +x", path)
	}
	return nil
}
