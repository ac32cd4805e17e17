package procid

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// zombie is SZOMB of <sys/proc.h>.
const zombie = 5

// here returns what all processes of this machine have in common.
func here() (ID, error) {
	boot, err := unix.Sysctl("kern.bootsessionuuid")
	return ID{Boot: boot}, err
}

// Now returns what [Start] says of a process that starts at this moment: a clock for telling whether a process is older than
// an instant. The unit is a microsecond of the calendar.
func Now() uint64 { return uint64(time.Now().UnixMicro()) }

// Start returns when the process started, as Now counts. A process that has exited is fs.ErrNotExist, even while its parent
// has not taken note.
func Start(pid int) (uint64, error) {
	p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		if syscall.Kill(pid, 0) == syscall.ESRCH {
			return 0, fmt.Errorf("process %d: %w", pid, fs.ErrNotExist)
		}
		return 0, fmt.Errorf("process %d: %w", pid, err)
	}
	if p.Proc.P_stat == zombie {
		return 0, fmt.Errorf("process %d: %w", pid, fs.ErrNotExist)
	}
	return uint64(p.Proc.P_starttime.Sec)*1e6 + uint64(p.Proc.P_starttime.Usec), nil
}

func look(pid int) (start uint64, exists bool, err error) {
	start, err = Start(pid)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	return start, err == nil, err
}
