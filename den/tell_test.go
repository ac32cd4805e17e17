//go:build !race

// In Go 1.26 a synctest bubble and the race detector do not work together. Timers that fire in a
// bubble now and then crash the detector (golang.org/issue/78156). Tests for the detector run in
// real time, in race_test.go.

package den_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// The parts that differ from run to run are left out when a log is compared.
func logged(b *bytes.Buffer, level slog.Level) *slog.Logger {
	ids := map[string]bool{"instance": true, "task": true, "plan_id": true}
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch {
		case a.Key == "time", a.Key == "node", a.Key == "instance":
			return slog.Attr{}
		case ids[a.Key] && len(a.Value.String()) == 24:
			return slog.String(a.Key, "ID")
		case a.Key == "delay" && a.Value.Duration() > 0:
			return slog.String(a.Key, "SOME")
		}
		return a
	}}))
}

func TestANodeLogsWhatFails(t *testing.T) {
	const (
		started   = "level=INFO msg=\"node started\" threads=1\n"
		stopped   = "level=INFO msg=stopping running=0 grace=10s\nlevel=INFO msg=\"node stopped\"\n"
		ended     = "level=INFO msg=\"plan ended\" plan=p#1 plan_id=ID state=succeeded succeeded=1\n"
		unlucky   = "level=INFO msg=\"plan ended\" plan=p#1 plan_id=ID state=failed failed=1\n"
		stopped2  = "level=INFO msg=\"plan ended\" plan=p#1 plan_id=ID state=cancelled terminated=1\n"
		ended1    = "level=DEBUG msg=\"plan ended\" plan=p#1 plan_id=ID state=failed failed=1\n"
		stopped1  = "level=INFO msg=\"node stopped\"\n"
		cancelled = "level=INFO msg=\"cancelled by a person\" plan=p#1 task_name=a attempt=1 task=ID\n"
	)
	line := func(level, msg, attempt, more string) string {
		return "level=" + level + " msg=\"" + msg + "\" plan=p#1 task_name=a attempt=" + attempt + " task=ID" + more + "\n"
	}
	begin := func(attempt string) string { return line("DEBUG", "task started", attempt, "") }
	again := func(level string) string {
		return line(level, "attempt failed; the task is tried again", "1", " delay=SOME detail=\"no luck\"")
	}
	failed := func(level string) string { return line(level, "task failed", "2", " detail=\"no luck\"") }
	twice := plan.TaskSpec{Plugin: "fail", Retry: plan.Retry{Attempts: 2, Delay: time.Minute}}
	for _, test := range []struct {
		name  string
		task  plan.TaskSpec
		level slog.Level
		own   bool // the node is the plan's own
		want  string
	}{
		{"nothing of a task that succeeds", plan.TaskSpec{Plugin: "echo"}, slog.LevelInfo, false, started + ended + stopped},
		{"its start and end, to who looks closely", plan.TaskSpec{Plugin: "echo"}, slog.LevelDebug, false,
			started + begin("1") + line("DEBUG", "task succeeded", "1", "") + ended + stopped},
		{"attempts that fail", twice, slog.LevelInfo, false, started + again("WARN") + failed("WARN") + unlucky + stopped},
		{"nothing of them with a plan's own node", twice, slog.LevelInfo, true, started + stopped1},
		{"but to who looks closely", twice, slog.LevelDebug, true,
			started + begin("1") + again("DEBUG") + begin("2") + failed("DEBUG") + ended1 + stopped1},
		{"who cancelled it", plan.TaskSpec{Plugin: "sleep", Params: params(`{"for": "3h"}`)}, slog.LevelInfo, false, started + cancelled + stopped2 + stopped},
		{"that once, however long it takes to end", plan.TaskSpec{Plugin: "reluctant"}, slog.LevelInfo, false, started + cancelled + stopped2 + stopped},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.register("fail", func(context.Context, *plugins.Task) (any, error) { return nil, errors.New("no luck") })
				w.register("reluctant", func(ctx context.Context, _ *plugins.Task) (any, error) {
					<-ctx.Done()
					time.Sleep(5 * time.Second)
					return nil, ctx.Err()
				})
				s := plan.New("p")
				test.task.Name = "a"
				s.Add(test.task)
				p := w.submit(s)
				var b bytes.Buffer
				cfg := den.Config{Threads: 1, Logger: logged(&b, test.level)}
				if test.own {
					cfg.Plan = p.ID
				}
				ctx, stop := context.WithCancel(t.Context())
				time.AfterFunc(time.Hour, func() { _ = w.store.CancelPlan(t.Context(), p.ID, false) })
				time.AfterFunc(2*time.Hour, stop)
				if err := w.node(cfg).Run(ctx); err != nil {
					t.Fatal(err)
				}
				stop()
				if got := b.String(); strings.ReplaceAll(got, " \n", "\n") != test.want {
					t.Errorf("the log is\n%swant\n%s", got, test.want)
				}
			})
		})
	}
}
