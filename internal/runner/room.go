//go:build unix

package runner

import (
	"fmt"
	"syscall"
)

// A crowd is what is known of one limit of processes, and of this process under it. Each thread of a process takes a place.
type crowd struct {
	most, taken int   // places, by the limit, and by all that it counts
	processors  int   // for which Go's runtime has threads
	threads     int   // of this process
	guardian    int   // threads of the guardian
	commands    []int // the places of each command with all that it began; 0: it is being started, or is to be, as the last one
}

const (
	// placesOfCommand are kept free for a command that has not begun as much by now: a shell, and two programs in a pipe.
	// A shell that cannot begin a program fails, which nobody can tell from a fault of the task.
	placesOfCommand = 3

	// placesOfOnly are kept for the only command: a shell, and a program. It has what the others would have.
	placesOfOnly = 2

	// threadsOfRuntime are the threads of this process that run no Go code and wait for no command: of timers, signals, the
	// network, the guardian and the disk. (With two processors and 16 commands, a node came to 11 threads of all kinds; with one
	// and three commands, on a machine with six other programs to run, to 14.)
	threadsOfRuntime = 12

	// spareThreads are kept free for threads of this process beyond those: of attempts that begin and end on a slow disk.
	spareThreads = 3

	threadsOfGuardian = 5
)

// wants returns how many threads this process may come to. Go's runtime ends the program if it cannot have another one,
// which it wants when goroutines wait for the system. So they are made while there is room.
func (c *crowd) wants() int { return threadsOfRuntime + c.processors + len(c.commands) }

// more returns how many places all that runs may come to take, beyond those that it has.
func (c *crowd) more() int {
	each := placesOfCommand
	if len(c.commands) == 1 {
		each = placesOfOnly
	}
	n := max(spareThreads, c.wants()-c.threads) + max(0, threadsOfGuardian-c.guardian)
	for _, has := range c.commands {
		n += max(0, each-has)
	}
	return n
}

// full reports whether the last command has no room.
func (c *crowd) full() bool { return c.taken+c.more() > c.most }

// ahead returns how many further commands have room without another count, if they begin soon: a few of those for which
// places are free, since other programs take places as well.
func (c *crowd) ahead() int { return max(0, c.most-c.taken-c.more()) / (8 * placesOfCommand) }

// A fullError says that a command was not started, so that what runs has the places that it needs.
type fullError struct {
	crowd
	whose, where string // the limit is
}

func (e *fullError) Error() string {
	return fmt.Sprintf("the node has no room for another process: %s has %d of at most %d processes and threads, and %d more may be needed: raise the limit (%s), or run fewer tasks at once",
		e.whose, e.taken, e.most, e.more(), e.where)
}

// Unwrap returns the error of a system that has no room.
func (e *fullError) Unwrap() error { return syscall.EAGAIN }
