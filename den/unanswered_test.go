//go:build !race

// In Go 1.26 a synctest bubble and the race detector do not work together. Timers that fire in a
// bubble now and then crash the detector (golang.org/issue/78156). Tests for the detector run in
// real time, in race_test.go.

package den_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// An unanswered store takes the first entries of a log, and its answer is lost. A batch that it has it knows again, as one that names each
// by what is in it.
type unanswered struct {
	Store
	hang bool // the answer does not come, rather than that it is lost at once
	has  map[string]bool
}

func (u *unanswered) AppendLog(ctx context.Context, c protocol.Claim, entries []plan.LogEntry) error {
	batch := fmt.Sprint(entries)
	if u.has[batch] {
		return nil
	}
	first := len(u.has) == 0
	u.has[batch] = true
	if err := u.Store.AppendLog(ctx, c, entries); err != nil || !first {
		return err
	}
	if u.hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return plan.ErrUnavailable
}

func TestALogWhoseAnswerWasLostStandsOnce(t *testing.T) {
	tests := []struct {
		name   string
		cancel bool
		takes  time.Duration
		state  string
	}{
		{"of a task that then ends", false, 700 * time.Millisecond, "succeeded"},
		{"of a task that goes on", false, 5 * time.Second, "succeeded"},
		{"of a task that is cancelled meanwhile", true, time.Hour, "terminated"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.register("print", func(ctx context.Context, task *plugins.Task) (any, error) {
					task.Log.Print("one")
					task.Log.Print("two")
					select {
					case <-ctx.Done():
					case <-time.After(test.takes):
					}
					task.Log.Print("three")
					return nil, ctx.Err()
				})
				s := plan.New("p")
				s.Add(plan.TaskSpec{Name: "a", Plugin: "print"})
				p := w.submit(s)
				if test.cancel {
					time.AfterFunc(700*time.Millisecond, func() {
						if err := w.store.CancelTask(t.Context(), w.task(p, "a").ID); err != nil {
							t.Error(err)
						}
					})
				}
				u := &unanswered{Store: w.store, hang: test.cancel, has: map[string]bool{}}
				if err := w.on(u, den.Config{Plan: p.ID}).Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				w.wantState(p, map[string]string{"a": test.state})
				log, _, err := w.store.Log(t.Context(), w.task(p, "a").ID, 0, 100)
				if err != nil {
					t.Fatal(err)
				}
				var got strings.Builder
				for _, e := range log {
					got.WriteString(e.Text)
				}
				if want := "one\ntwo\nthree\n"; got.String() != want {
					t.Errorf("its log is\n%swant\n%s", got.String(), want)
				}
			})
		})
	}
}
