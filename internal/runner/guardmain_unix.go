//go:build unix

package runner

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/seed-1177d267/sluice/internal/runner/procid"
)

const (
	// GuardGrace is how long the commands of a node that died have between SIGTERM and SIGKILL.
	// It is short, since others do not run the node's tasks again before it is over.
	GuardGrace = 500 * time.Millisecond

	// guardNap is how long a guardian ignores its pipe after a look. So a node that starts many
	// commands does not pay for waking it each time. The pipe has room for 2730 messages meanwhile.
	guardNap = 10 * time.Millisecond
)

// GuardMain makes this process a guardian, and then does not return, if it was started as one. A program that calls Run calls
// GuardMain first thing in main (in a test: in TestMain), before it does anything that can be seen.
func GuardMain() {
	token := os.Getenv(guardVariable)
	if token == "" {
		mainCalled.Store(true)
		heedLimit()
		return
	}
	// It ends when the node does: signals that a terminal or a supervisor sends to all of a node's processes are not for it.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGTSTP)
	w := ward{token: token, commands: map[uint64]group{}}
	w.listen(os.NewFile(3, "node"))
	w.end()
	os.Exit(0)
}

// Guarded reports whether GuardMain was called.
func Guarded() bool { return mainCalled.Load() }

// Lease says how long the commands of this process may continue if it is silent from now on. After
// that its guardian ends them. Any goroutine may call it. It does not wait.
func Lease(left time.Duration) { guardian.extend(left) }

// A ward is what a guardian knows of its node.
type ward struct {
	token string

	mu       sync.Mutex
	commands map[uint64]group
	lease    *time.Timer // ends commands; nil: the node has said of none
}

// listen reads what the node says until the node is gone.
func (w *ward) listen(node io.Reader) {
	buf := make([]byte, 64<<10)
	have := 0
	for {
		n, err := node.Read(buf[have:])
		have += n
		used := 0
		for ; have-used >= messageSize; used += messageSize {
			w.hear(parseMessage(buf[used:]))
		}
		have = copy(buf, buf[used:have])
		if err != nil {
			return
		}
		time.Sleep(guardNap)
	}
}

func (w *ward) hear(command uint64, g group) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case command == leased && w.lease == nil:
		w.lease = time.AfterFunc(time.Duration(g.at), w.end)
	case command == leased:
		w.lease.Reset(time.Duration(g.at))
	case g == ended:
		delete(w.commands, command)
	default:
		w.commands[command] = g
	}
}

// end ends the remaining commands. The node is gone, or has been silent for so long that others may
// run its tasks again, as a stopped node is. If the node continues, it reports each command as
// ended.
func (w *ward) end() {
	w.mu.Lock()
	l := remains{token: w.token, commands: maps.Clone(w.commands)}
	w.mu.Unlock()
	l.end()
}

// remains is what a node left behind.
type remains struct {
	token    string
	commands map[uint64]group
	marks    []string       // of commands whose groups the node did not come to tell
	groups   map[int]uint64 // by number, and when each was surely there
}

// end ends all of it: SIGTERM, and SIGKILL when the grace is over.
func (r *remains) end() {
	r.groups = map[int]uint64{}
	for command, g := range r.commands {
		if g != (group{}) {
			r.groups[g.id] = g.at
		} else {
			r.marks = append(r.marks, mark(r.token, command))
		}
	}
	r.signal(syscall.SIGTERM, GuardGrace)
	r.signal(syscall.SIGKILL, dying)
}

// signal sends the signal to each group once, and waits until none lives, for at most d after the
// first signals. Every group gets its signal, even if the looks take long on a busy machine.
func (r *remains) signal(s syscall.Signal, d time.Duration) {
	sent := map[int]bool{}
	var deadline time.Time
	for pause := guardNap; r.look(); pause = min(2*pause, 100*time.Millisecond) {
		for id := range r.groups {
			if !sent[id] {
				syscall.Kill(-id, s)
				syscall.Kill(-id, syscall.SIGCONT) // a stopped process cannot receive SIGTERM
				sent[id] = true
			}
		}
		switch now := time.Now(); {
		case deadline.IsZero():
			deadline = now.Add(d)
		case now.After(deadline):
			return
		}
		time.Sleep(pause)
	}
}

// look updates the groups and reports whether any is left. It finds the groups of commands that
// were just being started by their marks. It looks repeatedly, because a process of such a group
// may be about to start another.
func (r *remains) look() bool {
	if len(r.marks) > 0 {
		for _, id := range marked(r.marks) {
			if _, known := r.groups[id]; !known {
				r.groups[id] = procid.Now()
			}
		}
	}
	now := time.Now()
	maps.DeleteFunc(r.groups, func(id int, at uint64) bool { return !group{id, at}.left(now) })
	return len(r.groups) > 0
}

// left reports whether the group has any living process left, or had at some instant after the one given. If its leader is younger than
// the group the number is another group's by now.
func (g group) left(after time.Time) bool {
	if !groupLives(g.id, after) {
		return false
	}
	start, err := procid.Start(g.id)
	if err == nil {
		return start <= g.at
	}
	return errors.Is(err, fs.ErrNotExist) // without a leader a group keeps its number; if that cannot be told, better not
}
