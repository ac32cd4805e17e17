//go:build unix

package hosttest

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// The variables of a process that plays a case.
const (
	caseVariable   = "HOSTTEST_CASE"
	reportVariable = "HOSTTEST_REPORT"
)

// Environ returns the variables with which Main plays the case. A reply that is not the wanted one is
// told in a file of that name, and the pids of the worker and of its child are in files beside it,
// with .pid and .child at the end.
func Environ(number int, report string) []string {
	return []string{caseVariable + "=" + strconv.Itoa(number), reportVariable + "=" + report}
}

// Main plays the case that the environment names, and does not return then. A test program that is
// its own worker calls it first.
func Main() {
	number, err := strconv.Atoi(os.Getenv(caseVariable))
	if err != nil {
		return
	}
	report := os.Getenv(reportVariable)
	tell := func(end, text string) {
		if err := os.WriteFile(report+end, []byte(text), 0o600); err != nil {
			panic(err)
		}
	}
	tell(".pid", strconv.Itoa(os.Getpid()))
	for _, c := range Cases() {
		if c.Number == number {
			within := c.Settings().Within
			c.Play(&Worker{Within: within, Process: self{func(pid int) { tell(".child", strconv.Itoa(pid)) }}, In: os.Stdin, Out: os.Stdout, Failed: func(text string) { tell("", text) }})
			tell("", "the play ended")
		}
	}
	os.Exit(98)
}

// self is this process.
type self struct{ child func(pid int) }

func (self) Exit(code int) { os.Exit(code) }

func (s self) Kill() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	s.Stay()
}

func (self) Stay() {
	for {
		time.Sleep(time.Hour)
	}
}

func (self) IgnoreTerm()           { signal.Ignore(syscall.SIGTERM) }
func (self) Pause(d time.Duration) { time.Sleep(d) }

func (s self) Child() {
	c := exec.Command("/bin/sh", "-c", `trap "" TERM; while :; do sleep 1000; done`)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := c.Start(); err != nil {
		panic(err)
	}
	s.child(c.Process.Pid)
}

func (self) WriteFile(name, text string) {
	err := os.MkdirAll(filepath.Dir(name), 0o700)
	if err == nil {
		err = os.WriteFile(name, []byte(text), 0o600)
	}
	if err != nil {
		panic(err)
	}
}

// Left returns what is alive of the processes of a case that was played with the report.
func Left(report string) (left []string) {
	for _, end := range []string{".pid", ".child"} {
		text, err := os.ReadFile(report + end)
		if err != nil {
			continue // there was none
		}
		pid, err := strconv.Atoi(string(text))
		if err == nil && alive(pid) {
			left = append(left, fmt.Sprintf("%s %d", end[1:], pid))
		}
	}
	return left
}

// alive reports whether a process runs. A process that has exited, and that nobody waits for, does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && len(out) > 0 && out[0] != 'Z'
}
