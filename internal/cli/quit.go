package cli

import (
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// quitting is what SIGQUIT (Ctrl-\) does: it ends the process at once, and not with all its goroutines on the terminal, as in Go programs;
// those SIGABRT still shows. A command that runs tasks heeds it itself. One that the process was started to ignore stays ignored.
type quitting struct {
	heeded atomic.Bool
}

// start lets the signal end the process wherever nothing heeds it.
func (q *quitting) start() {
	if signal.Ignored(syscall.SIGQUIT) {
		return
	}
	quits := make(chan os.Signal, 1)
	signal.Notify(quits, syscall.SIGQUIT)
	go func() {
		for range quits {
			if !q.heeded.Load() {
				os.Exit(exitQuit)
			}
		}
	}()
}

// heed returns where the signal comes from now on, until leave.
func (q *quitting) heed() chan os.Signal {
	quits := make(chan os.Signal, 1)
	if !signal.Ignored(syscall.SIGQUIT) {
		q.heeded.Store(true)
		signal.Notify(quits, syscall.SIGQUIT)
	}
	return quits
}

func (q *quitting) leave(quits chan os.Signal) {
	signal.Stop(quits)
	q.heeded.Store(false)
}
