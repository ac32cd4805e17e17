//go:build unix

package disbatch

import (
	"os/exec"
	"syscall"
)

// inGroup has a command run in a process group of its own, which is killed with it.
func inGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
