//go:build unix

package runner

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// nothing is what a command without input reads.
var nothing = sync.OnceValues(func() (*os.File, error) { return os.Open(os.DevNull) })

// process is a command that was started, and its process group, which has its pid as number. While the process itself is not reaped,
// and while anything of the group lives, that number belongs to nobody else.
type process struct {
	command uint64 // its number for the guardian
	pid     int
	reaped  bool
}

// start starts the program with those files as its standard streams, and tells the guardian. A nil stdin reads nothing.
func start(cmd *Command, program string, files [3]*os.File) (*process, error) {
	if files[0] == nil {
		var err error
		if files[0], err = nothing(); err != nil {
			return nil, err
		}
	}
	command, err := announce()
	if err != nil {
		return nil, err
	}
	p := &process{command: command}
	err = p.fork(program, cmd.Args, &syscall.ProcAttr{
		Dir:   cmd.Dir,
		Env:   append(slices.Clip(cmd.Env), mark(guardian.token, command)),
		Files: []uintptr{files[0].Fd(), files[1].Fd(), files[2].Fd()},
	})
	if err != nil {
		guardian.ended(command)
		return nil, err
	}
	if err := guardian.started(command, p.pid); err != nil {
		p.kill()
		p.await()
		p.reap()
		p.release()
		return nil, err
	}
	return p, nil
}

// terminate asks the group to end. A stopped process cannot receive SIGTERM, so terminate also
// sends SIGCONT.
func (p *process) terminate() {
	syscall.Kill(-p.pid, syscall.SIGTERM)
	syscall.Kill(-p.pid, syscall.SIGCONT)
}

// kill ends the group.
func (p *process) kill() {
	if !p.reaped || p.left() {
		syscall.Kill(-p.pid, syscall.SIGKILL)
	}
}

// left reports, after reap, whether anything may be left of the group. A process with the group's
// number is another one, which got the number when nothing of the group was left.
func (p *process) left() bool {
	return syscall.Kill(-p.pid, 0) != syscall.ESRCH && syscall.Kill(p.pid, 0) == syscall.ESRCH
}

// reap takes note that the process has exited, after await, and says how.
func (p *process) reap() (code int, signal string, err error) {
	var status syscall.WaitStatus
	for {
		_, err = syscall.Wait4(p.pid, &status, 0, nil)
		if err != syscall.EINTR {
			break
		}
	}
	p.reaped = true
	switch {
	case err != nil:
		return -1, "", fmt.Errorf("how process %d ended is not known: %w; something else in this program waits for children", p.pid, err)
	case status.Signaled():
		return -1, unix.SignalName(status.Signal()), nil
	}
	return status.ExitStatus(), "", nil
}

// gone waits, after reap, until nothing of the group lives, at most for d, and reports whether that is so.
func (p *process) gone(d time.Duration) bool {
	deadline := time.Now().Add(d)
	for pause := time.Millisecond; ; pause = min(2*pause, 250*time.Millisecond) {
		if !p.left() || !groupLives(p.pid, time.Now()) {
			return true
		}
		left := time.Until(deadline)
		if left <= 0 {
			return false
		}
		time.Sleep(min(pause, left))
	}
}

// release forgets the process after everything else.
func (p *process) release() { guardian.ended(p.command) }
