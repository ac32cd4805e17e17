package procid

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
)

// here returns what all processes of this machine have in common. No boot: a start is an instant of the calendar.
func here() (ID, error) {
	k, err := registry.OpenKey(registry.LOCAL_MACHINE, `SOFTWARE\Microsoft\Cryptography`, registry.QUERY_VALUE|registry.WOW64_64KEY)
	if err != nil {
		return ID{}, err
	}
	defer k.Close()
	machine, _, err := k.GetStringValue("MachineGuid")
	return ID{Machine: machine}, err
}

// Now returns what [Start] says of a process that starts at this moment: a clock for telling whether a process is older than
// an instant. The unit is a nanosecond of the calendar.
func Now() uint64 { return uint64(time.Now().UnixNano()) }

// Start returns when the process started, as Now counts. A process that has exited is fs.ErrNotExist, even while others hold
// a handle of it.
func Start(pid int) (uint64, error) {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION|windows.SYNCHRONIZE, false, uint32(pid))
	if errors.Is(err, windows.ERROR_INVALID_PARAMETER) {
		return 0, fmt.Errorf("process %d: %w", pid, fs.ErrNotExist)
	}
	if err != nil {
		return 0, fmt.Errorf("process %d: %w", pid, err)
	}
	defer windows.CloseHandle(h)
	switch state, err := windows.WaitForSingleObject(h, 0); {
	case err != nil:
		return 0, fmt.Errorf("process %d: %w", pid, err)
	case state == windows.WAIT_OBJECT_0:
		return 0, fmt.Errorf("process %d: %w", pid, fs.ErrNotExist)
	}
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(h, &created, &exited, &kernel, &user); err != nil {
		return 0, fmt.Errorf("process %d: %w", pid, err)
	}
	return uint64(created.Nanoseconds()), nil
}

func look(pid int) (start uint64, exists bool, err error) {
	start, err = Start(pid)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	return start, err == nil, err
}
