package runner

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// fork starts the program in a session of its own. The kernel sends it SIGTERM when this process dies.
func (p *process) fork(program string, args []string, attr *syscall.ProcAttr) (err error) {
	attr.Sys = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGTERM}
	p.pid, err = forker().fork(program, args, attr)
	return err
}

// forker starts processes from threads that never end. Pdeathsig acts on the death of the thread
// that forked, and a Go program's threads may end before the program: see runtime.LockOSThread. One
// thread is best while it is fast enough, because no other one has to be woken for each command. On
// a busy machine this thread waits for its turn to run, and on a large machine several threads
// start more. In both cases other threads help for a while. (2,000 commands by a shell, 8 at once,
// on two processors: with one thread 0.99 s and with two 1.08 s; beside much other work 4.9 and 3.4
// s.)
var forker = sync.OnceValue(func() *forks {
	f := &forks{one: make(chan *forkRequest), any: make(chan *forkRequest)}
	go f.serve(f.one)
	for range min(max(2, runtime.GOMAXPROCS(0)), 8) - 1 {
		go f.serve(nil)
	}
	return f
})

const (
	slowFork = time.Millisecond       // after one that took longer,
	longWait = 8 * time.Millisecond   // or was over so long after it was asked for,
	slowFor  = 100 * time.Millisecond // all threads fork for so long
)

type forks struct {
	one, any chan *forkRequest // to the first thread, and to all
	slow     atomic.Int64      // until when all of them fork, in nanoseconds since epoch
}

type forkRequest struct {
	program string
	args    []string
	attr    *syscall.ProcAttr
	at      time.Duration // since epoch
	pid     int
	err     error
	done    chan struct{}
}

var epoch = time.Now()

func (f *forks) fork(program string, args []string, attr *syscall.ProcAttr) (pid int, err error) {
	r := &forkRequest{program: program, args: args, attr: attr, at: time.Since(epoch), done: make(chan struct{})}
	to := f.one
	if f.slow.Load() > int64(r.at) {
		to = f.any
	}
	to <- r
	<-r.done
	return r.pid, r.err
}

// serve forks for those who ask all, and one.
func (f *forks) serve(one <-chan *forkRequest) {
	runtime.LockOSThread()
	for {
		var r *forkRequest
		select {
		case r = <-one:
		case r = <-f.any:
		}
		at := time.Since(epoch)
		r.pid, r.err = syscall.ForkExec(r.program, r.args, r.attr)
		close(r.done)
		if now := time.Since(epoch); now-at > slowFork || now-r.at > longWait {
			f.slow.Store(int64(now + slowFor))
		}
	}
}

// await returns when the process has exited. It is not reaped: its pid, and so its group's number, stays its own. Go's poller watches a
// pidfd of the process, so that no thread waits for each command; on kernels without, one does.
func (p *process) await() {
	if p.hasExited() {
		return
	}
	if pidfd, err := unix.PidfdOpen(p.pid, unix.PIDFD_NONBLOCK); err == nil {
		f := os.NewFile(uintptr(pidfd), "pidfd")
		defer f.Close()
		conn, err := f.SyscallConn()
		if err == nil && conn.Read(func(uintptr) bool { return p.hasExited() }) == nil {
			return
		}
	}
	p.exited(0)
}

// hasExited reports whether the process has exited, and does not wait.
func (p *process) hasExited() bool { return p.exited(unix.WNOHANG) }

// exited reports whether the process has exited. Without unix.WNOHANG it waits until then.
func (p *process) exited(options int) bool {
	for {
		var info unix.Siginfo
		switch err := unix.Waitid(unix.P_PID, p.pid, &info, unix.WEXITED|unix.WNOWAIT|options, nil); err {
		case nil:
			return info.Signo != 0
		case unix.EINTR:
		default: // it is not our child any more: reap will say so
			return true
		}
	}
}

// pipe returns the two ends of a pipe. Only the end that we read from is for Go's poller; the other is for a command.
func pipe() (r, w *os.File, err error) {
	var fd [2]int
	if err := unix.Pipe2(fd[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, os.NewSyscallError("pipe2", err)
	}
	unix.FcntlInt(uintptr(fd[0]), unix.F_SETFL, unix.O_NONBLOCK)
	return os.NewFile(uintptr(fd[0]), "pipe"), os.NewFile(uintptr(fd[1]), "pipe"), nil
}
