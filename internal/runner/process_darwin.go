package runner

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// heedLimit does nothing: the system's limits are not low.
func heedLimit() {}

// announce tells the guardian of a command that is to be started.
func announce() (command uint64, err error) { return guardian.starting() }

// fork starts the program in a session of its own.
func (p *process) fork(program string, args []string, attr *syscall.ProcAttr) (err error) {
	attr.Sys = &syscall.SysProcAttr{Setsid: true}
	p.pid, err = syscall.ForkExec(program, args, attr)
	return err
}

// await returns when the process has exited. It is not reaped: its pid, and so its group's number, stays its own.
func (p *process) await() {
	queue, err := unix.Kqueue()
	for err != nil { // too many files are open
		time.Sleep(100 * time.Millisecond)
		queue, err = unix.Kqueue()
	}
	defer unix.Close(queue)
	unix.CloseOnExec(queue)
	var event [1]unix.Kevent_t
	unix.SetKevent(&event[0], p.pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	event[0].Fflags = unix.NOTE_EXIT
	for { // one that has exited already is ESRCH, which is an answer too
		if _, err := unix.Kevent(queue, event[:], event[:], nil); err != unix.EINTR {
			return
		}
	}
}

// pipe returns the two ends of a pipe.
func pipe() (r, w *os.File, err error) { return os.Pipe() }

// groupLives reports whether any process of the group lives. Processes that have exited are soon
// gone, because launchd waits for them.
func groupLives(group int, _ time.Time) bool { return syscall.Kill(-group, 0) != syscall.ESRCH }

// marked returns the groups of processes with one of the marks in their environment: none, since the system does not show those.
func marked([]string) []int { return nil }
