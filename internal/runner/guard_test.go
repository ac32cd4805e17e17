//go:build unix

package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-1177d267/sluice/internal/polltest"
	"github.com/seed-1177d267/sluice/internal/runner/procid"
)

// nodeVariable, in its environment, makes the tests' program a node. The node does what nodeActs
// has under the value, prints the pid of its guardian, and waits to be killed.
const nodeVariable = "SLUICE_RUNNER_TEST_NODE"

func TestMain(m *testing.M) {
	dying = patience // before GuardMain, which may not return
	if does := os.Getenv(firstVariable); does != "" && os.Getenv(guardVariable) == "" {
		InitMain()
		GuardMain()
		runFirst(does)
	}
	GuardMain()
	if act := os.Getenv(nodeVariable); act != "" {
		nodeActs[act](os.Args[1])
		fmt.Println(guardianOf())
		select {}
	}
	os.Exit(m.Run())
}

// The commands of nodes. Each process holds the FIFO $1 open, and writes a line to it when it is
// ready.
const (
	family  = `exec 9>"$1"; sh -c 'echo >&9; sleep 1000' & (sh -c 'echo >&9; sleep 1000' & echo >&9; sleep 1000) & echo >&9; wait` // 4
	deaf    = `exec 9>"$1"; trap '' TERM; sh -c 'echo >&9; while :; do sleep 0.1; done' & echo >&9; while :; do sleep 0.1; done`   // 2
	halted  = `exec 9>"$1"; echo >&9; kill -STOP $$; sleep 1000`                                                                   // 1
	parting = `exec 9>"$1"; sleep 1000 & echo >&9; exec 9>&-; exit`                                                                // 1
	orderly = `exec 9>"$1" 2>/dev/null; trap 'sleep 0.1; echo cleaned >&9; exit' TERM; echo >&9; while :; do sleep 0.01; done`     // 1
)

func background(ctx context.Context, cmd Command) { go Run(ctx, cmd, NewOutput(0)) }

// guardianOf waits until this process has a guardian that is none of those, and returns its pid; 0 if none came.
func guardianOf(no ...int) (pid int) {
	polltest.Holds(patience, func() bool {
		guardian.mu.Lock()
		defer guardian.mu.Unlock()
		if p := guardian.process; p != nil && !slices.Contains(no, p.Pid) {
			pid = p.Pid
		}
		return pid != 0
	})
	return pid
}

// unread returns how much of what this process told its guardian the guardian has not read.
func unread() (n int) {
	guardian.mu.Lock()
	defer guardian.mu.Unlock()
	pipe, err := guardian.pipe.SyscallConn()
	if err == nil {
		err = pipe.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), fionread) })
	}
	if err != nil {
		panic(err)
	}
	return n
}

// patience is how long a test waits for what has to become true, also on a busy machine.
const patience = time.Minute

var nodeActs = map[string]func(fifo string){
	"it runs a family":         func(fifo string) { background(context.Background(), sh(family, fifo)) },
	"it runs what is deaf":     func(fifo string) { background(context.Background(), sh(deaf, fifo)) },
	"it runs a halted command": func(fifo string) { background(context.Background(), sh(halted, fifo)) },
	"it runs what cleans up":   func(fifo string) { background(context.Background(), sh(orderly, fifo)) },
	"it waits for an orphan": func(fifo string) {
		cmd := sh(parting, fifo)
		cmd.Linger = time.Hour
		background(context.Background(), cmd)
	},
	"it has stopped a command whose grace is long": func(fifo string) {
		ctx, cancel := context.WithCancel(context.Background())
		cmd, out := sh(`trap '' TERM; echo; `+deaf, fifo), NewOutput(0)
		cmd.Grace = time.Hour
		go Run(ctx, cmd, out)
		polltest.Holds(patience, func() bool { return len(out.Drain()) > 0 }) // it is deaf
		cancel()
	},
	"it runs many commands": func(fifo string) {
		for range 50 {
			background(context.Background(), sh(`exec 9>"$1"; echo >&9; sleep 1000`, fifo))
		}
	},
	"its guardian got the signals of a terminal": func(fifo string) {
		background(context.Background(), sh(family, fifo))
		g := guardianOf()
		polltest.Holds(patience, func() bool { return unread() == 0 }) // it is one: before, they would end it, and another one be started
		for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGTSTP} {
			syscall.Kill(g, s)
		}
	},
	"its guardian was killed, and a command started since": func(fifo string) {
		background(context.Background(), sh(family, fifo))
		g := guardianOf()
		syscall.Kill(g, syscall.SIGKILL)
		background(context.Background(), sh(deaf, fifo))
		guardianOf(g)
	},
	"its guardian was killed, and nothing started since": func(fifo string) {
		background(context.Background(), sh(family, fifo))
		g := guardianOf()
		syscall.Kill(g, syscall.SIGKILL)
		guardianOf(g)
	},
	"it beats": func(fifo string) {
		go func() {
			for range time.Tick(beatenLease / 50) {
				Lease(beatenLease)
			}
		}()
		background(context.Background(), sh(family, fifo))
	},
	"its guardian was killed, and it beats no more": func(fifo string) {
		background(context.Background(), sh(family, fifo))
		g := guardianOf()
		Lease(4 * shortLease) // the next guardian comes after a second
		syscall.Kill(g, syscall.SIGKILL)
		guardianOf(g)
	},
	"its guardian hangs": func(fifo string) {
		guardian.patience = 100 * time.Millisecond
		background(context.Background(), sh(family, fifo))
		g := guardianOf()
		syscall.Kill(g, syscall.SIGSTOP)
		for guardianOf() == g { // each adds two messages to those that nobody reads
			Run(context.Background(), Command{Args: []string{"true"}}, NewOutput(0))
		}
	},
}

// startNode starts a node and waits for so many lines that say that its commands are ready. It
// returns the node and its guardian's pid. The end of the test kills the node at the latest.
func startNode(t *testing.T, l *living, act string, ready int) (node *exec.Cmd, guardian int) {
	t.Helper()
	node = exec.Command(os.Args[0], l.path)
	node.Env = append(environment, nodeVariable+"="+act)
	stdout, err := node.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		node.Process.Kill()
		node.Wait()
	})
	l.lines(t, ready)
	if _, err := fmt.Fscan(stdout, &guardian); err != nil {
		t.Fatal(err)
	}
	return node, guardian
}

func TestNoCommandOutlivesItsNode(t *testing.T) {
	for _, c := range []struct {
		act    string
		ready  int // lines until all is ready
		signal syscall.Signal
		said   string // by commands, before they are gone
	}{
		{"it runs a family", 4, syscall.SIGKILL, ""},
		{"it runs a family", 4, syscall.SIGTERM, ""},
		{"it runs a family", 4, syscall.SIGABRT, ""},
		{"it runs what is deaf", 2, syscall.SIGKILL, ""},
		{"it runs a halted command", 1, syscall.SIGKILL, ""},
		{"it runs what cleans up", 1, syscall.SIGKILL, "cleaned\n"},
		{"it waits for an orphan", 1, syscall.SIGKILL, ""},
		{"it has stopped a command whose grace is long", 2, syscall.SIGKILL, ""},
		{"it runs many commands", 50, syscall.SIGKILL, ""},
		{"its guardian got the signals of a terminal", 4, syscall.SIGKILL, ""},
		{"its guardian was killed, and a command started since", 6, syscall.SIGKILL, ""},
		{"its guardian was killed, and nothing started since", 4, syscall.SIGKILL, ""},
		{"its guardian hangs", 4, syscall.SIGKILL, ""},
	} {
		t.Run(fmt.Sprintf("%s; %v", c.act, c.signal), func(t *testing.T) {
			t.Parallel()
			l := newLiving(t)
			node, guardian := startNode(t, l, c.act, c.ready)
			if err := node.Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			node.Wait()
			if got := l.none(t, GuardGrace+patience); got != c.said {
				t.Errorf("commands said %q, want %q", got, c.said)
			}
			polltest.Until(t, GuardGrace+2*patience, "its guardian has ended", func() bool {
				_, err := procid.Start(guardian)
				return errors.Is(err, fs.ErrNotExist)
			})
		})
	}
}

// A process that is to beat gets the longer lease: a busy machine may hold up the process for some
// of its beats.
const shortLease, beatenLease = 500 * time.Millisecond, 5 * time.Second

func TestCommandsOfANodeThatIsStoppedEndWithItsLease(t *testing.T) {
	for _, c := range []struct {
		act  string
		goes bool // its commands continue while the node is not stopped
	}{{"it beats", true}, {"its guardian was killed, and it beats no more", false}} {
		t.Run(c.act, func(t *testing.T) {
			t.Parallel()
			l := newLiving(t)
			node, _ := startNode(t, l, c.act, 4)
			if c.goes {
				time.Sleep(beatenLease * 3 / 2) // the guardian has a clock of its own: only its time shows that it lets them continue
				if !l.some(t) {
					t.Error("its commands are gone though it beats")
				}
			}
			for _, s := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
				if err := node.Process.Signal(s); err != nil {
					t.Fatal(err)
				}
				if s == syscall.SIGSTOP {
					l.none(t, beatenLease+GuardGrace+patience)
				}
			}
		})
	}
}

func TestWhatAGuardianTakesForAGroupThatIsLeft(t *testing.T) {
	// leader starts a process that leads a group, and ends it when the test does.
	leader := func(t *testing.T, line string) *exec.Cmd {
		cmd := exec.Command("/bin/sh", "-c", line)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			cmd.Wait()
		})
		if _, err := stdout.Read(make([]byte, 1)); err != nil { // it is ready
			t.Fatal(err)
		}
		return cmd
	}
	t.Run("a leader", func(t *testing.T) {
		if cmd := leader(t, "echo; exec sleep 1000"); !(group{cmd.Process.Pid, procid.Now()}).left(time.Now()) {
			t.Error("it is not left")
		}
	})
	t.Run("a leader that is younger has its number by chance", func(t *testing.T) {
		cmd := leader(t, "echo; exec sleep 1000")
		start, err := procid.Start(cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		if (group{cmd.Process.Pid, start - 1}).left(time.Now()) {
			t.Error("it is left")
		}
	})
	t.Run("only the child of a leader", func(t *testing.T) {
		cmd := leader(t, "sleep 1000 >/dev/null & echo")
		cmd.Process.Wait()
		if !(group{cmd.Process.Pid, procid.Now()}).left(time.Now()) {
			t.Error("it is not left")
		}
	})
	t.Run("nothing", func(t *testing.T) {
		cmd := leader(t, "echo")
		cmd.Process.Wait()
		if (group{cmd.Process.Pid, procid.Now()}).left(time.Now()) {
			t.Error("it is left")
		}
	})
}

func TestAGuardianKnowsWhatRunsHoweverItReads(t *testing.T) {
	var said bytes.Buffer
	for _, m := range []struct {
		command uint64
		what    group
	}{
		{1, group{}}, {1, group{100, 1}}, {2, group{}}, {3, group{}}, {2, group{200, 2}}, {1, ended}, // one after the other
		{4, group{}}, {4, ended}, // could not be started
		{5, group{}}, {5, group{100, 9}}, // a group's number that another command had before
		{6, ended}, // nobody knows of it
	} {
		b := message(m.command, m.what)
		said.Write(b[:])
	}
	said.WriteString("cut off") // by the death of the node
	for _, size := range []int{17, 24, 60, 1000} {
		w := ward{commands: map[uint64]group{}}
		w.listen(&inPieces{said.Bytes(), size})
		if want := (map[uint64]group{2: {200, 2}, 3: {}, 5: {100, 9}}); !reflect.DeepEqual(w.commands, want) {
			t.Errorf("in pieces of %d: %v, want %v", size, w.commands, want)
		}
	}
}

// inPieces reads so many bytes at once.
type inPieces struct {
	rest []byte
	size int
}

func (r *inPieces) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.rest[:min(r.size, len(r.rest))])
	r.rest = r.rest[n:]
	return n, nil
}

func TestWithoutGuardMainNothingIsStarted(t *testing.T) {
	mainCalled.Store(false)
	defer mainCalled.Store(true)
	var g guard
	if _, err := g.starting(); !errors.Is(err, errNoGuard) {
		t.Errorf("got %v, want an error that is errNoGuard", err)
	}
}

// On a busy machine one look at the remaining groups can take longer than the grace period.
func TestEachGroupGetsItsSignalHoweverLongItTakesToLook(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", "trap '' TERM; echo; exec sleep 1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	r := remains{groups: map[int]uint64{cmd.Process.Pid: procid.Now()}}
	r.signal(syscall.SIGKILL, 0)
	select {
	case <-ended:
	case <-time.After(patience):
		cmd.Process.Kill()
		t.Error("a command got no signal, and outlives its node")
	}
}
