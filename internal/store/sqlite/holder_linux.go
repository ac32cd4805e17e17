package sqlite

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// holder returns the process that has the turn, 0 if that cannot be told. The file is proc(5)'s locks.
func (t *turnstile) holder() (pid int) {
	var stat unix.Stat_t
	if unix.Fstat(int(t.turn.Fd()), &stat) != nil {
		return 0
	}
	file := fmt.Sprintf("%02x:%02x:%d", unix.Major(uint64(stat.Dev)), unix.Minor(uint64(stat.Dev)), stat.Ino)
	f, err := os.Open("/proc/locks")
	if err != nil {
		return 0
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var n, kind, mode, access, what string
		_, err := fmt.Sscan(lines.Text(), &n, &kind, &mode, &access, &pid, &what) // those that wait have an arrow before the kind
		if err == nil && kind == "FLOCK" && what == file && pid > 0 {
			return pid
		}
	}
	return 0
}

// stopped reports whether a process is, by a signal or a debugger.
func stopped(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(b[strings.LastIndexByte(string(b), ')')+1:]), " ")
	return strings.HasPrefix(state, "T") || strings.HasPrefix(state, "t")
}
