//go:build !race

// In Go 1.26 a synctest bubble and the race detector do not work together. Timers that fire in a
// bubble now and then crash the detector (golang.org/issue/78156). Tests for the detector run in
// real time, in race_test.go.

package den

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// A slow store takes a while to append a log.
type slow struct {
	taskStore
	took time.Duration
}

func (s *slow) AppendLog(context.Context, protocol.Claim, []plan.LogEntry) error {
	time.Sleep(s.took)
	return nil
}

func TestAnAttemptThatIsOverAppendsNoLog(t *testing.T) {
	for name, length := range map[string]time.Duration{
		"it ends before the first flush": logEvery / 2, "between two": 5 * logEvery / 2, "while one is under way": 2*logEvery + logEvery/4,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &attempt{store: &slow{took: logEvery / 10}, log: slog.New(slog.DiscardHandler)}
				a.plugin = plugins.Func(func(_ context.Context, task *plugins.Task) (any, error) {
					for began := time.Now(); time.Since(began) < length; time.Sleep(length / 10) {
						task.Log.Print("on")
					}
					return nil, nil
				})
				var e protocol.Ending
				if ok := a.run(t.Context(), t.Context(), &e); !ok || e.Status != plan.Succeeded {
					t.Fatalf("it ended with %+v, %v", e, ok)
				}
				if a.next.Stop() {
					t.Error("the timer of the next flush goes on")
				}
			})
		})
	}
}
