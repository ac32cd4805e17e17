package procid

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// ticksPerSecond is USER_HZ, the unit of a process's start in /proc; it is 100 on every architecture that Go runs on.
const ticksPerSecond = 100

// here returns what all processes of this pid namespace have in common.
func here() (ID, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ID{}, err
	}
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ID{}, err
	}
	machine, err := os.ReadFile("/etc/machine-id")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return ID{}, err
	}
	return ID{
		Boot:      strings.TrimSpace(string(boot)),
		Namespace: namespace,
		Machine:   strings.TrimSpace(string(machine)),
	}, nil
}

// Now returns what [Start] says of a process that starts at this moment: a clock for telling whether a process is older than
// an instant. The unit is 1/100 s since boot.
func Now() uint64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic("procid: no CLOCK_BOOTTIME: " + err.Error()) // Linux has it since 2.6.39, and Go needs 3.2
	}
	return uint64(t.Nano()) / (1e9 / ticksPerSecond)
}

// Start returns when the process started, as Now counts. A process that has exited is fs.ErrNotExist, even while its parent
// has not taken note.
func Start(pid int) (uint64, error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, syscall.ESRCH) { // it went between open and read
		return 0, fmt.Errorf("process %d: %w", pid, fs.ErrNotExist)
	}
	if err != nil {
		return 0, err
	}
	// The name, second of the fields, may itself hold blanks and brackets: count from its end.
	_, rest, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " ")
	f := strings.Fields(rest) // f[0] is the third field, the state; the 22nd is the start
	if len(f) < 20 {
		return 0, fmt.Errorf("/proc/%d/stat has only %d fields", pid, len(f)+2)
	}
	if f[0] == "Z" || f[0] == "X" {
		return 0, fmt.Errorf("process %d: %w", pid, fs.ErrNotExist)
	}
	return strconv.ParseUint(f[19], 10, 64)
}

func look(pid int) (start uint64, exists bool, err error) {
	// The signal comes first: a /proc mounted with hidepid shows no processes of other users, which then look gone.
	if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
		return 0, false, nil
	}
	start, err = Start(pid)
	if !errors.Is(err, fs.ErrNotExist) {
		return start, err == nil, err
	}
	// It went just now, is a zombie, or is hidden; a zombie is what its own entry in /proc still shows.
	if _, err := os.Stat("/proc/" + strconv.Itoa(pid)); err == nil {
		return 0, false, nil
	}
	if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
		return 0, false, nil
	}
	return 0, false, fmt.Errorf("process %d is hidden", pid)
}
