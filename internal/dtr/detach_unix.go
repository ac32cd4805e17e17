//go:build unix

package dtr

import (
	"io/fs"
	"os/exec"
	"syscall"
)

// detach gives a process a session of its own.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

func executable(info fs.FileInfo) bool { return info.Mode()&0o111 != 0 }
