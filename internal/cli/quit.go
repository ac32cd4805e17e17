package cli

import (
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// quitting makes SIGQUIT (Ctrl-\) end the process at once, without the stacks of all goroutines
// that Go programs print; SIGABRT still prints these. A command that runs tasks handles the signal
// itself. An ignored SIGQUIT stays ignored.
type quitting struct {
	heeds atomic.Pointer[chan struct{}] // where a signal goes in place of the end; nil: nowhere
}

// start lets the signal end the process wherever nothing heeds it.
func (q *quitting) start() {
	if signal.Ignored(syscall.SIGQUIT) {
		return
	}
	quits := make(chan os.Signal, 1)
	signal.Notify(quits, syscall.SIGQUIT)
	go func() {
		for range quits { // one goroutine decides, so that no signal counts twice
			to := q.heeds.Load()
			if to == nil {
				os.Exit(exitQuit)
			}
			select {
			case *to <- struct{}{}:
			default:
			}
		}
	}()
}

// heed returns where the signal comes from now on, until leave.
func (q *quitting) heed() <-chan struct{} {
	to := make(chan struct{}, 1)
	q.heeds.Store(&to)
	return to
}

func (q *quitting) leave() { q.heeds.Store(nil) }
