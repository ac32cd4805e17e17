package runner

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// InitMain does the work of an init, and then does not return, if this process is the first one of
// its container. It starts the program once more and passes signals on to it. It reaps the
// processes that commands leave behind, which the kernel hands to the first process. It exits as
// the program does. A program that calls Run may call InitMain first in main, before GuardMain.
//
// The program itself cannot reap them: a wait for any child would take exit codes from package
// os/exec.
func InitMain() {
	if os.Getpid() != 1 {
		return
	}
	signals := make(chan os.Signal, 64)
	signal.Notify(signals)
	pid, err := again()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error: start the program below process 1:", err)
		os.Exit(1)
	}
	go func() {
		for s := range signals {
			if n, ok := s.(syscall.Signal); ok && passed(n) {
				_ = syscall.Kill(pid, n) // it may have ended
			}
		}
	}()
	os.Exit(reap(pid))
}

// passed reports whether a signal is for the program. A Go program sends itself SIGURG, and the
// other two tell of children and pipes of this process.
func passed(s syscall.Signal) bool {
	return s != syscall.SIGCHLD && s != syscall.SIGURG && s != syscall.SIGPIPE
}

// again starts the program once more, in a process group of its own. A terminal sends its signals
// to that group only: with two of each, the program would not stop gently.
func again() (pid int, err error) {
	path, err := os.Executable()
	if err != nil {
		return 0, err
	}
	attr := &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setpgid: true}}
	if _, err := unix.IoctlGetInt(0, unix.TIOCGPGRP); err == nil {
		attr.Sys.Foreground, attr.Sys.Ctty = true, 0
	}
	return syscall.ForkExec(path, os.Args, attr)
}

// reap waits for every process until the program has ended, and returns its exit code, as shells
// have it.
func reap(program int) int {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil: // it has no child, and so not the program either
			return 1
		case pid != program:
		case status.Signaled():
			return 128 + int(status.Signal())
		default:
			return status.ExitStatus()
		}
	}
}
