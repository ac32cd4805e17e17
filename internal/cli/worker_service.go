package cli

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// A service is the node as its service manager sees it, by systemd's sd_notify(3). Without one, where NOTIFY_SOCKET is not set, it says
// nothing; what cannot be sent is nobody's error.
type service struct {
	watched bool // the manager waits for a sign of life

	mu    sync.Mutex // held while something is told, and not while files are read: they may be where nothing answers
	begun bool       // the node is ready
	reads bool       // it was told that the node reads its configuration
	ended bool       // or that it stops: that is the last word on its state
}

// newService looks what the manager wants. A beat is how often the node can give a sign of life.
func newService(log *slog.Logger, beat time.Duration) *service {
	within, err := daemon.SdWatchdogEnabled(false)
	switch {
	case err != nil:
		log.Warn("the service manager's watchdog is not served", "error", err)
	case within > 0 && within < 3*beat:
		log.Warn("the service manager's watchdog is too short for a node: make WatchdogSec longer", "is", within, "beats_each", beat)
	}
	return &service{watched: within > 0}
}

func (s *service) tell(state string) { _, _ = daemon.SdNotify(false, state) }

// ready says that the node is registered. A later session, after one that was lost, says it again, which changes nothing. While the
// configuration is read that is left to the end of it: it would say that it was read.
func (s *service) ready() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun = true; !s.ended && !s.reads {
		s.tell(daemon.SdNotifyReady)
	}
}

// beaten is called when a beat got through: a node whose store does not answer gives no sign of life.
func (s *service) beaten() {
	if s.watched {
		s.tell(daemon.SdNotifyWatchdog)
	}
}

// stopsWith says that the node stops when ctx ends. Once the node has ended, over makes sure that
// this was said if it had to be: the process may end before the goroutine runs.
func (s *service) stopsWith(ctx context.Context) (over func()) {
	unneeded := context.AfterFunc(ctx, s.stopping)
	return func() {
		if !unneeded() {
			s.stopping()
		}
	}
}

func (s *service) stopping() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.ended = true
		s.tell(daemon.SdNotifyStopping)
	}
}

// reload says that the node reads its configuration while it does. One goroutine calls it.
func (s *service) reload(do func()) {
	s.mu.Lock()
	if s.reads = s.begun && !s.ended; s.reads {
		s.tell(daemon.SdNotifyReloading + "\n" + daemon.SdNotifyMonotonicUsec()) // the time is for Type=notify-reload
	}
	s.mu.Unlock()
	do()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reads && !s.ended {
		s.tell(daemon.SdNotifyReady)
	}
	s.reads = false
}

// onHangup calls do for each SIGHUP until the returned function is called.
func onHangup(do func()) (stop func()) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP) // to the end of the process, which a late one is not to kill
	return beside(context.Background(), func(over context.Context) {
		for {
			select {
			case <-hangups:
				do()
			case <-over.Done():
				return
			}
		}
	})
}
