package dtr

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

func TestAProgramIsStoppedThatHasNotBegunOrHasLostItsTask(t *testing.T) {
	id, me := plan.TaskID{ID: plan.ID{1}}, plan.InstanceID{ID: plan.ID{2}}
	its := plan.Task{ID: id, Attempt: 3, Instance: me, Status: plan.Claimed}
	with := func(change func(*plan.Task)) plan.Task {
		other := its
		change(&other)
		return other
	}
	for _, c := range []struct {
		name string
		is   plan.Task
		err  error
		says string // the cause, "" if it is not stopped
		lost bool
	}{
		{"it has not begun its task", its, nil, "it had not begun its task after 1m", false},
		{"it runs its task", with(func(t *plan.Task) { t.Status = plan.Running }), nil, "", false},
		{"it has ended its task", with(func(t *plan.Task) { t.Status, t.Instance = plan.Succeeded, plan.InstanceID{} }), nil, "", false},
		{"its task was claimed again", with(func(t *plan.Task) { t.Attempt++ }), nil, "it has lost its task", true},
		{"its task is another instance's", with(func(t *plan.Task) { t.Instance.ID[0]++ }), nil, "it has lost its task", true},
		{"its task was orphaned", with(func(t *plan.Task) { t.Status = plan.Orphaned }), nil, "it has lost its task", true},
		{"its task is not there", its, plan.ErrNotFound, "it has lost its task", true},
		{"the store does not answer", its, plan.ErrUnavailable, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancelCause(t.Context())
				lost := make(chan struct{})
				p := &Program{As: me, Begin: time.Minute, Task: func(context.Context, plan.TaskID) (plan.Task, error) { return c.is, c.err }}
				go p.watch(ctx, &plugins.Task{ID: id, Attempt: 3}, stop, lost)
				over := errors.New("an hour is over")
				time.AfterFunc(time.Hour, func() { stop(over) })
				began := time.Now()
				<-ctx.Done()
				synctest.Wait()
				isLost := false
				select {
				case <-lost:
					isLost = true
				default:
				}
				switch cause := context.Cause(ctx); {
				case c.says == "" && cause != over, c.says != "" && !strings.HasPrefix(cause.Error(), c.says):
					t.Errorf("it was stopped after %v since %v, want %q", time.Since(began), cause, c.says)
				case isLost != c.lost:
					t.Errorf("its task is lost: %v, want %v", isLost, c.lost)
				}
			})
		})
	}
}
