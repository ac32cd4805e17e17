package runner

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// fionread asks how many bytes of a pipe nobody has read yet.
const fionread = unix.TIOCINQ

// A node may die after it started a command and before it told which group that is. The command may have children by then.
func TestACommandWhoseGroupTheNodeDidNotComeToTell(t *testing.T) {
	for _, c := range []struct {
		name, line string
		ready      int
	}{
		{"a family", family, 4},
		{"deaf to SIGTERM", deaf, 2},
		{"a leader that has exited", `exec 9>"$1"; sleep 1000 & echo >&9`, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, bystander := newLiving(t), newLiving(t)
			start := func(line, fifo string, command uint64) {
				cmd := exec.Command("/bin/sh", "-c", line, "sh", fifo)
				cmd.Env = append(environment, mark("token", command))
				cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
					cmd.Wait()
				})
			}
			start(c.line, l.path, 7)
			start(family, bystander.path, 70) // of another number, which begins with the same digit
			l.lines(t, c.ready)
			bystander.lines(t, 4)
			r := remains{token: "token", commands: map[uint64]group{7: {}}}
			r.end()
			l.none(t, 0)
			var lives bool
			bystander.control(t, func(fd int) { _, err := syscall.Read(fd, make([]byte, 1)); lives = err == syscall.EAGAIN })
			if !lives {
				t.Error("it ended another command too")
			}
		})
	}
}

func TestAGuardianKeepsNothingOfItsNode(t *testing.T) {
	run(t, t.Context(), Command{Args: []string{"true"}})
	pid := guardianOf()
	for fd := range 3 {
		if to, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", pid, fd)); err != nil || to != os.DevNull {
			t.Errorf("its file %d is %q, %v; want %s", fd, to, err, os.DevNull)
		}
	}
	if sid, err := unix.Getsid(pid); err != nil || sid != pid {
		t.Errorf("it is in session %d, %v; want one of its own", sid, err)
	}
	if dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid)); err != nil || dir != "/" {
		t.Errorf("it keeps folder %q, %v; want /", dir, err)
	}
}
