//go:build unix

package runner

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/seed-1177d267/sluice/internal/runner/procid"
)

const (
	// guardVariable, in its environment, makes this program a guardian; its value is the node's token.
	guardVariable = "SLUICE_GUARDIAN"

	// markVariable is in the environment of each command: the node's token and the command's number. By it a guardian finds a command
	// whose node died before it could tell the group.
	markVariable = "SLUICE_COMMAND"
)

// errNoGuard means that a command was not started since nothing would end it if this process died.
var errNoGuard = errors.New("no guardian for commands")

// mainCalled says that GuardMain was called, and so that this program, started again, becomes a guardian.
var mainCalled atomic.Bool

// guardian is the guardian of this process's commands.
var guardian = guard{patience: 5 * time.Second, token: rand.Text()}

// guard starts the guardian, tells it of commands, and starts another one if it dies.
type guard struct {
	patience time.Duration // how long a guardian may leave its pipe full before it counts as stuck
	token    string        // tells this process's commands from those of others

	mu       sync.Mutex
	process  *os.Process // nil: none runs
	pipe     *os.File    // to it
	since    time.Time   // when it was started
	last     uint64      // number of the last command
	lease    time.Time   // when it is over; the zero time: there is none
	commands map[uint64]group
}

// group is what is known of a command: of one that is being started, nothing; later its process group.
type group struct {
	id int    // the number of the group
	at uint64 // when the group was surely there, as procid.Now says
}

// ended marks a command that has ended, or that could not be started.
var ended = group{id: -1}

// leased is a number in place of a command's: the group's at is then the nanoseconds for which the
// node may be silent.
const leased = 0

// A message tells a guardian that a command is being started, has become a group, or has ended, or of a lease. It is small enough to be
// written in one piece.
const messageSize = 24

func message(command uint64, g group) (m [messageSize]byte) {
	binary.LittleEndian.PutUint64(m[:8], command)
	binary.LittleEndian.PutUint64(m[8:16], uint64(g.id))
	binary.LittleEndian.PutUint64(m[16:], g.at)
	return m
}

func parseMessage(m []byte) (command uint64, g group) {
	return binary.LittleEndian.Uint64(m), group{int(int64(binary.LittleEndian.Uint64(m[8:]))), binary.LittleEndian.Uint64(m[16:])}
}

// mark returns the variable for a command's environment.
func mark(token string, command uint64) string {
	return markVariable + "=" + token + "-" + strconv.FormatUint(command, 10)
}

// starting announces a command and returns its number. It makes sure that there is a guardian.
func (g *guard) starting() (command uint64, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last++
	return g.last, g.know(g.last, group{})
}

// started says which process leads the command's group. It must not have been reaped.
func (g *guard) started(command uint64, pid int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.know(command, group{pid, procid.Now()})
}

// ended says that the command has ended, or could not be started.
func (g *guard) ended(command uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.commands, command)
	g.tell(command, ended) // a guardian that cannot be told is replaced by watch
}

// extend says when the commands are to be ended if nothing more is said. It does not wait: who beats has no time for a guardian that
// hangs, and says so again soon.
func (g *guard) extend(left time.Duration) {
	for range 20 {
		if g.mu.TryLock() {
			defer g.mu.Unlock()
			g.lease = time.Now().Add(left)
			if g.process != nil {
				m := message(leased, group{at: uint64(left)})
				g.pipe.SetWriteDeadline(time.Now().Add(time.Millisecond))
				g.pipe.Write(m[:])
			}
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// know keeps what is known of a command and makes sure that a guardian knows it too.
func (g *guard) know(command uint64, what group) error {
	if g.commands == nil {
		g.commands = map[uint64]group{}
	}
	g.commands[command] = what
	if g.tell(command, what) {
		return nil
	}
	g.stop()
	err := g.start() // which tells it everything
	if err != nil {
		delete(g.commands, command)
	}
	return err
}

func (g *guard) tell(command uint64, what group) bool {
	if g.process == nil {
		return false
	}
	m := message(command, what)
	g.pipe.SetWriteDeadline(time.Now().Add(g.patience))
	_, err := g.pipe.Write(m[:])
	return err == nil
}

// stop ends a guardian that is of no use any more.
func (g *guard) stop() {
	if g.process != nil {
		g.process.Kill()
		g.pipe.Close()
		g.process = nil
	}
}

// start starts a guardian and tells it of all commands.
func (g *guard) start() error {
	if !mainCalled.Load() {
		return fmt.Errorf("%w: this program has to call GuardMain first thing in main", errNoGuard)
	}
	program, err := thisProgram()
	if err != nil {
		return fmt.Errorf("%w: %w", errNoGuard, err)
	}
	null, err := nothing()
	if err != nil {
		return fmt.Errorf("%w: %w", errNoGuard, err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("%w: %w", errNoGuard, err)
	}
	defer r.Close()
	p, err := os.StartProcess(program, []string{"sluice-guardian"}, &os.ProcAttr{
		Dir:   "/",
		Env:   []string{guardVariable + "=" + g.token, "GOMAXPROCS=1"},
		Files: []*os.File{null, null, null, r}, // it keeps nothing of this process open
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		w.Close()
		return fmt.Errorf("%w: %w", errNoGuard, err)
	}
	g.process, g.pipe, g.since = p, w, time.Now()
	go g.watch(p)
	if !g.lease.IsZero() {
		g.tell(leased, group{at: uint64(max(0, time.Until(g.lease)))})
	}
	for command, what := range g.commands {
		if !g.tell(command, what) {
			g.stop()
			return fmt.Errorf("%w: it does not listen", errNoGuard)
		}
	}
	return nil
}

// watch starts another guardian when this one has died, as long as anything runs. After one that died young it waits a second, since
// the next may not live longer.
func (g *guard) watch(p *os.Process) {
	p.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.process != p {
		return
	}
	g.pipe.Close()
	g.process = nil
	wait := time.Since(g.since) < time.Second
	for len(g.commands) > 0 && g.process == nil {
		if wait {
			g.mu.Unlock()
			time.Sleep(time.Second)
			g.mu.Lock()
		}
		if g.process == nil && len(g.commands) > 0 {
			g.start()
		}
		wait = true
	}
}
