//go:build unix && !race

// In Go 1.26 a synctest bubble and the race detector do not work together. Timers that fire in a
// bubble now and then crash the detector (golang.org/issue/78156). Tests for the detector run in
// real time, in race_test.go.

package den_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// A slow store gives no inputs before nobody waits for them, and then it does.
type slow struct{ Store }

func (s *slow) Inputs(ctx context.Context, id plan.TaskID) ([]plan.Input, error) {
	<-ctx.Done()
	return s.Store.Inputs(context.WithoutCancel(ctx), id)
}

// A late result is dropped: a file whose lines are read after the attempt makes no items.
func TestWhyTheReadingOfItemsWasStoppedSaysWhatFollows(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "lines"), []byte("one\ntwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name    string
		task    plan.TaskSpec
		act     func(w *world, p plan.Plan, stop func())
		state   string
		reason  plan.Reason
		attempt int
		plan    plan.Lifecycle
	}{
		{"its node stops", plan.TaskSpec{}, func(_ *world, _ plan.Plan, stop func()) { stop() }, "queued", "", 0, plan.PlanRunning},
		{"its node stops, and it is not to run twice", plan.TaskSpec{OnLost: plan.OnLostFail}, func(_ *world, _ plan.Plan, stop func()) { stop() }, "queued", "", 0, plan.PlanRunning},
		{"a person cancels it", plan.TaskSpec{}, func(w *world, p plan.Plan, _ func()) {
			if err := w.store.CancelTask(w.Context(), w.task(p, "each").ID); err != nil {
				w.Error(err)
			}
		}, "terminated", plan.ReasonCancelled, 1, plan.PlanFailed},
		{"its time is over", plan.TaskSpec{Timeout: 20 * time.Second}, func(*world, plan.Plan, func()) {}, "failed", plan.ReasonTimeout, 1, plan.PlanFailed},
		{"its time is over, and it has another attempt", plan.TaskSpec{Timeout: 20 * time.Second, Retry: plan.Retry{Attempts: 2}}, func(*world, plan.Plan, func()) {},
			"failed", plan.ReasonTimeout, 2, plan.PlanFailed},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.register("large", func(context.Context, *plugins.Task) (any, error) {
					return map[string]string{"dir": dir, "rest": strings.Repeat("x", plan.MaxCopiedOne)}, nil
				})
				s := plan.New("files")
				s.Add(plan.TaskSpec{Name: "where", Plugin: "large"})
				each := test.task
				each.Name, each.Plugin, each.Needs, each.Foreach = "each", "echo", []string{"where"}, &plan.Foreach{Lines: "lines"}
				each.Params = params(`{"dir": "${{ needs.where.dir }}"}`)
				s.Add(each)
				p := w.submit(s)
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				time.AfterFunc(10*time.Second, func() { test.act(w, p, stop) })
				time.AfterFunc(50*time.Second, stop)
				if err := w.on(&slow{w.store}, den.Config{Grace: time.Second}).Run(ctx); err != nil {
					t.Error(err)
				}
				got := w.task(p, "each")
				if got.State() != test.state || got.Reason != test.reason || got.Attempt != test.attempt || got.Items != 0 {
					t.Errorf("it is %s (%q, %q) after attempt %d with %d items, want %s (%q) after %d without",
						got.State(), got.Reason, got.Detail, got.Attempt, got.Items, test.state, test.reason, test.attempt)
				}
				w.wantEnd(p, test.plan)
			})
		})
	}
}

func TestOfAFileNoMoreIsReadThanItemsAreMade(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, text string, size int64) {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, max(int64(len(text)), size)); err != nil {
			t.Fatal(err)
		}
	}
	const huge = 1 << 40 // without room on the disk, and far too much to read
	write("many", strings.Repeat("x\n", plan.MaxItems+1), huge)
	write("large", strings.Repeat(strings.Repeat("\x01", 1<<20-2)+"\n", plan.MaxInputs/(6<<20)+1), huge) // in JSON six times as much
	write("long", "x\n", huge)
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, detail := range map[string]string{
		"many": "at most 100000 are made", "large": "more than 64 MiB", "long": "has more than 1024 KiB", "fifo": "not a file", ".": "not a file", "/dev/zero": "not a file",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				if !filepath.IsAbs(name) {
					name = filepath.Join(dir, name)
				}
				s := plan.New("files")
				s.Add(plan.TaskSpec{Name: "a", Plugin: "echo", Foreach: &plan.Foreach{Lines: name}, Retry: plan.Retry{Attempts: 3}})
				p := w.submit(s)
				if err := w.node(den.Config{Plan: p.ID}).Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				if a := w.task(p, "a"); a.State() != "failed" || a.Reason != plan.ReasonInput || a.Attempt != 1 || !strings.Contains(a.Detail, detail) {
					t.Errorf("it is %s (%q, %q) after %d attempts, want failed, …%s…, and once", a.State(), a.Reason, a.Detail, a.Attempt, detail)
				}
			})
		})
	}
}
