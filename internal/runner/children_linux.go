package runner

import (
	"syscall"
	"unsafe"
)

// QuietChildren tells the system that no signal is to wake this process when a child exits. A
// program calls it first in main. Go installs a handler for SIGCHLD that does nothing unless somebody
// asked for the signal, and then a thread wakes for each command. Children are still waited for as
// before. After the call [os/signal.Notify] does not deliver SIGCHLD.
func QuietChildren() {
	var byDefault [4]uint64 // struct sigaction of the kernel: SIG_DFL, no flags, no mask
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGCHLD), uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0)
}
