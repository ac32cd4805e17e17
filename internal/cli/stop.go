package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/seed-1177d267/sluice/internal/runner"
)

// stopping is how a person stops a command that runs tasks: ctx ends with the first signal, again is closed by the second.
type stopping struct {
	ctx   context.Context
	again <-chan struct{}
}

// stoppable lets Ctrl-C, SIGTERM and SIGHUP stop what runs. A third signal kills the process, as the first one does without this. Call
// release when nothing runs any more.
//
// A closed terminal sends SIGHUP, and the shell in it may send another. SIGHUP counts as the first
// signal, and never as the second. An ignored signal, as by nohup, stays ignored. SIGQUIT (Ctrl-\)
// is both signals at once. Without hangup, the caller has a meaning of its own for SIGHUP.
func (a *app) stoppable(parent context.Context, hangup bool) (s stopping, release func()) {
	ctx, cancel := context.WithCancelCause(parent)
	again, over := make(chan struct{}), make(chan struct{})
	signals, hangups := make(chan os.Signal, 2), make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if hangup && !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(hangups, syscall.SIGHUP) // to the end of the process, which the second one is not to kill either
	}
	quits := a.quit.heed()
	var wg sync.WaitGroup
	wg.Go(func() {
		defer a.quit.leave()
		defer signal.Stop(signals)
		first := hangups
		for _, act := range []func(){func() { cancel(errInterrupted) }, func() { close(again) }} {
			select {
			case <-signals:
			case <-first:
			case <-quits:
				cancel(errInterrupted)
				close(again)
				return
			case <-over:
				return
			}
			act()
			first = nil
		}
	})
	return stopping{ctx, again}, func() {
		close(over)
		wg.Wait()
		cancel(nil)
	}
}

// beside runs do on a goroutine of its own. The caller calls stop, which ends the context of do, and waits for it.
func beside(ctx context.Context, do func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { do(ctx) })
	return func() { cancel(); wg.Wait() }
}

// outlivePipes lets the process continue when the reader of its output is gone, as tee is after
// Ctrl-C. Running tasks keep their grace period, and a run does not end because of "head -1". From
// then on a write to such a pipe fails, as a write to a full disk does. Commands are not affected,
// as they would be by an ignored signal. It lasts as long as the process, whose last words may go
// to that pipe too.
func outlivePipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// grace is how long running tasks may continue after the first Ctrl-C.
const grace = 10 * time.Second

// afterGrace says what comes then.
var afterGrace = fmt.Sprintf("a command then gets SIGTERM, and SIGKILL %v later", runner.DefaultGrace)

// atLeast is the grace period for a node: a period of zero would mean the node's default, so
// atLeast makes it the shortest one.
func atLeast(grace time.Duration) time.Duration { return max(grace, time.Nanosecond) }
