// Package procid owns the identity of a process: which pid, started when, since which boot of which machine. A pid alone
// comes back for another process; an [ID] does not, so one process can tell for certain that another is gone.
package procid

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
)

// An ID names one process for ever. It is comparable, and its text form ([ID.String], [Parse]) is what a store keeps. The
// zero ID names no process.
type ID struct {
	PID       int
	Start     uint64 // when it started, in a unit of the system's own; see Now
	Boot      string // which boot of the machine; empty where Start counts from the calendar's beginning
	Namespace string // Linux: the namespace that PID counts in, so that the pids of two containers do not meet
	Machine   string // which machine, as far as the system says; empty if it does not
}

// Self returns the identity of this process. It fails where the system does not say enough, for instance without /proc.
var Self = sync.OnceValues(func() (ID, error) {
	self, err := here()
	if err != nil {
		return ID{}, fmt.Errorf("identity of this process: %w", err)
	}
	self.PID = os.Getpid()
	if self.Start, err = Start(self.PID); err != nil {
		return ID{}, fmt.Errorf("identity of this process: %w", err)
	}
	return self, nil
})

// Alive reports whether the very process that id names still lives, and whether that can be known.
// It is unknown for a process of another machine or container, for an empty id, and where the
// system does not tell. A process that has exited and only waits for its parent to take note (a
// zombie) does not live.
func Alive(id ID) (alive, known bool) {
	self, err := Self()
	if err != nil {
		return false, false
	}
	return judge(self, id, look)
}

// judge is Alive for the process self. find looks up a running process by its pid: when it started,
// whether it exists, and an error if that is unknown.
func judge(self, id ID, find func(pid int) (start uint64, exists bool, err error)) (alive, known bool) {
	switch {
	case id.PID <= 0 || id.Start == 0:
		return false, false
	case id.Boot != self.Boot:
		// Another machine, or this one before it was booted again. A container may carry the machine's id of its image to
		// another host, so only processes outside of containers are told apart by it.
		rebooted := id.Machine != "" && id.Machine == self.Machine && onHost(id) && onHost(self)
		return false, rebooted
	case id.Boot == "" && (id.Machine == "" || id.Machine != self.Machine):
		return false, false
	case id.Namespace != self.Namespace:
		return false, false
	}
	start, exists, err := find(id.PID)
	if err != nil {
		return false, false
	}
	return exists && start == id.Start, true
}

// onHost reports whether the process is in the first pid namespace of its machine, and so in no
// container that has pids of its own. That namespace has the same number on every Linux.
func onHost(id ID) bool { return id.Namespace == "pid:[4026531836]" }

// String returns the text form, such as 4711/109612/83eea007-…/pid:[4026531836]/3d1219c7….
func (id ID) String() string {
	return strings.Join([]string{strconv.Itoa(id.PID), strconv.FormatUint(id.Start, 10), id.Boot, id.Namespace, id.Machine}, "/")
}

// Parse reads the text form. The empty text is the zero ID.
func Parse(text string) (ID, error) {
	if text == "" {
		return ID{}, nil
	}
	f := strings.Split(text, "/")
	if len(f) != 5 {
		return ID{}, fmt.Errorf("process identity %q: it has %d parts instead of 5", text, len(f))
	}
	pid, err := strconv.Atoi(f[0])
	if err != nil || pid < 0 {
		return ID{}, fmt.Errorf("process identity %q: %q is not a pid", text, f[0])
	}
	start, err := strconv.ParseUint(f[1], 10, 64)
	if err != nil {
		return ID{}, fmt.Errorf("process identity %q: %q is not a start time", text, f[1])
	}
	return ID{PID: pid, Start: start, Boot: f[2], Namespace: f[3], Machine: f[4]}, nil
}
