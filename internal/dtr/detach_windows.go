package dtr

import (
	"io/fs"
	"os/exec"
	"syscall"
)

// detach gives a process a group of its own, which Ctrl-C of the node's console does not reach.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

func executable(fs.FileInfo) bool { return true }
