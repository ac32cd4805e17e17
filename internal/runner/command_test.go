//go:build unix

package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/polltest"
)

// environment is that of the commands of the tests.
var environment = []string{"PATH=/usr/local/bin:/usr/bin:/bin"}

// sh returns a command for a shell's line, in which the words are $1, $2, …
func sh(line string, words ...string) Command {
	return Command{Args: append([]string{"/bin/sh", "-c", line, "sh"}, words...), Env: environment}
}

// run runs a command that must start, and returns its output too.
func run(t *testing.T, ctx context.Context, cmd Command, secrets ...string) (Result, []Entry) {
	t.Helper()
	out := NewOutput(0, secrets...)
	r, err := Run(ctx, cmd, out)
	if err != nil {
		t.Fatal(err)
	}
	return r, out.Drain()
}

// said returns what was printed to one stream.
func said(entries []Entry, s Stream) string {
	var b strings.Builder
	for _, e := range entries {
		if e.Stream == s {
			b.WriteString(e.Text)
		}
	}
	return b.String()
}

// living is a FIFO that processes hold open: reading it comes to its end when none of them is left, whichever they are.
type living struct {
	path string
	file *os.File
}

func newLiving(t *testing.T) *living {
	t.Helper()
	l := &living{path: filepath.Join(t.TempDir(), "living")}
	if err := syscall.Mkfifo(l.path, 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if l.file, err = os.OpenFile(l.path, os.O_RDONLY|syscall.O_NONBLOCK, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.file.Close() })
	return l
}

// lines waits until so many lines were written to it.
func (l *living) lines(t *testing.T, n int) {
	t.Helper()
	got := 0
	l.file.SetReadDeadline(time.Now().Add(patience))
	polltest.Until(t, patience, "so many processes have begun", func() bool {
		for b := make([]byte, 1); got < n; {
			switch c, err := l.file.Read(b); {
			case c == 1 && b[0] == '\n':
				got++
			case errors.Is(err, io.EOF): // nobody has it open yet
				return false
			case err != nil:
				t.Fatalf("waiting for processes: %v after %d of %d", err, got, n)
			}
		}
		return true
	})
}

// control gives the file's descriptor, for reads that do not wait: such a read ends at once if nobody has the FIFO open.
func (l *living) control(t *testing.T, do func(fd int)) {
	t.Helper()
	conn, err := l.file.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Control(func(fd uintptr) { do(int(fd)) }); err != nil {
		t.Fatal(err)
	}
}

// some reports whether any process has it open, if nothing is written to it.
func (l *living) some(t *testing.T) bool {
	t.Helper()
	var err error
	l.control(t, func(fd int) { _, err = syscall.Read(fd, make([]byte, 1)) })
	return errors.Is(err, syscall.EAGAIN)
}

// none fails the test if any process still has it open after that time. It returns what else was written to it.
func (l *living) none(t *testing.T, within time.Duration) string {
	t.Helper()
	var said []byte
	var readErr error
	if !polltest.Holds(within, func() bool {
		var n int
		var buf [1024]byte
		l.control(t, func(fd int) { n, readErr = syscall.Read(fd, buf[:]) })
		said = append(said, buf[:max(n, 0)]...)
		return n == 0 && readErr == nil
	}) {
		t.Errorf("processes are left: %v", readErr)
	}
	return string(said)
}

func TestHowACommandEnds(t *testing.T) {
	for _, c := range []struct {
		name   string
		line   string
		code   int
		signal string
	}{
		{"success", "exit 0", 0, ""},
		{"an exit status", "exit 3", 3, ""},
		{"the highest exit status", "exit 255", 255, ""},
		{"a signal of its own", "kill -KILL $$", -1, "SIGKILL"},
		{"another signal of its own", "kill -TERM $$", -1, "SIGTERM"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := time.Now()
			r, _ := run(t, t.Context(), sh(c.line))
			if r.Code != c.code || r.Signal != c.signal || r.Stopped != nil {
				t.Errorf("got %+v, want code %d, signal %q", r, c.code, c.signal)
			}
			if r.Started.Before(before) || r.Ended.Before(r.Started) || r.Ended.After(time.Now()) {
				t.Errorf("from %v to %v: want times within the test's, which began at %v", r.Started, r.Ended, before)
			}
		})
	}
}

func TestWhatACommandSees(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("SLUICE_RUNNER_TEST_INHERITED", "yes")
	for _, c := range []struct {
		name string
		cmd  Command
		want string
	}{
		{"its arguments", sh(`printf '%s|' "$@"`, "a b", "", "*"), "a b||*|"},
		{"its environment and no other", sh("env | grep -v -e ^PWD= -e ^_= -e ^OLDPWD= | sed 's/^SLUICE_COMMAND=.*/its mark/' | sort"), "PATH=/usr/local/bin:/usr/bin:/bin\nits mark\n"},
		{"its folder", Command{Args: []string{"pwd"}, Env: environment, Dir: dir}, dir + "\n"},
		{"nothing to read", sh("wc -c | tr -d ' '"), "0\n"},
		{"what it is given to read", Command{Args: []string{"cat"}, Env: environment, Stdin: []byte("some\ninput")}, "some\ninput"},
		{"no terminal", sh("(: < /dev/tty) 2>/dev/null || echo none"), "none\n"},
		{"a session and a group of its own", sh("set -- $(ps -o sid= -o pgid= -p $$); test $1 = $$ && test $2 = $$ && echo own"), "own\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, out := run(t, t.Context(), c.cmd)
			if got := said(out, Stdout); got != c.want || r.Code != 0 {
				t.Errorf("stdout %q, want %q; stderr %q; %+v", got, c.want, said(out, Stderr), r)
			}
		})
	}
}

func TestMoreInputThanAPipeHolds(t *testing.T) {
	input := bytes.Repeat([]byte("0123456789abcde\n"), 1<<16) // 1 MiB
	cmd := sh("wc -c | tr -d ' '")
	cmd.Stdin = input
	if _, out := run(t, t.Context(), cmd); said(out, Stdout) != fmt.Sprintln(len(input)) {
		t.Errorf("it read %q bytes of %d", said(out, Stdout), len(input))
	}
	cmd = sh("exit 4")
	cmd.Stdin = input
	if r, _ := run(t, t.Context(), cmd); r.Code != 4 {
		t.Errorf("a command that reads nothing of it: %+v, want code 4", r)
	}
}

// The command prints a line each time that the one before it was read: a busy machine would read both streams late, and in another order.
func TestOutputHasItsStreamsAndItsOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "read")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	out, ended := NewOutput(0), make(chan error, 1)
	go func() {
		_, err := Run(t.Context(), sh(`exec 3<"$1"; for i in 1 2 3; do echo out $i; read on <&3; echo err $i >&2; read on <&3; done; printf end`, path), out)
		ended <- err
	}()
	read, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	var got []Entry
	var since time.Time // when the command was let print the next line
	for k := range 6 {
		if !polltest.Holds(patience, func() bool { got = append(got, out.Drain()...); return len(got) > k }) {
			t.Fatalf("after %v only this was captured: %v", patience, got)
		}
		if at := got[k].At; at.Before(since) || at.After(time.Now()) {
			t.Errorf("%q was printed from %v to %v, and is said to be of %v", got[k].Text, since, time.Now(), at)
		}
		since = time.Now()
		if _, err := read.WriteString("\n"); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	got = append(got, out.Drain()...)
	want := []Entry{
		{Stream: Stdout, Text: "out 1\n"}, {Stream: Stderr, Text: "err 1\n"}, {Stream: Stdout, Text: "out 2\n"},
		{Stream: Stderr, Text: "err 2\n"}, {Stream: Stdout, Text: "out 3\n"}, {Stream: Stderr, Text: "err 3\n"}, {Stream: Stdout, Text: "end"},
	}
	if !slices.EqualFunc(got, want, func(a, b Entry) bool { return a.Stream == b.Stream && a.Text == b.Text }) {
		t.Fatalf("got %v, want %v", got, want)
	}
	if !slices.IsSortedFunc(got, func(a, b Entry) int { return a.At.Compare(b.At) }) {
		t.Errorf("the times are not in order: %v", got)
	}
}

func TestAllOfALotOfOutputIsCounted(t *testing.T) {
	const size = 20 << 20
	out := NewOutput(0)
	if r, err := Run(t.Context(), sh(fmt.Sprintf("yes | head -c %d; echo the end", size)), out); err != nil || r.Code != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	entries := out.Drain()
	dropped := 0
	for _, e := range entries {
		if e.Stream == Note {
			fmt.Sscanf(e.Text, "[%d bytes dropped here]", &dropped)
		}
	}
	if kept := len(said(entries, Stdout)); kept+dropped != size+len("the end\n") {
		t.Errorf("%d bytes kept and %d dropped are not %d", kept, dropped, size+len("the end\n"))
	}
	if last := entries[len(entries)-1].Text; last != "the end\n" {
		t.Errorf("it ends in %q", last)
	}
}

func TestSecretsCutAcrossWrites(t *testing.T) {
	_, out := run(t, t.Context(), sh(`printf 'is hun'; sleep 0.1; printf 'ter2\n'; printf 'is hunt' >&2; sleep 0.1; echo 'er2' >&2`), "hunter2")
	if o, e := said(out, Stdout), said(out, Stderr); o != "is ***\n" || e != "is ***\n" {
		t.Errorf("stdout %q, stderr %q; want the secret masked in both", o, e)
	}
}

func TestOutputIsThereWhileTheCommandRuns(t *testing.T) {
	dir := t.TempDir()
	goOn := filepath.Join(dir, "go-on")
	if err := syscall.Mkfifo(goOn, 0o600); err != nil {
		t.Fatal(err)
	}
	out := NewOutput(0)
	ended := make(chan error)
	go func() {
		_, err := Run(t.Context(), sh(`echo first; read word < "$1"; echo $word`, goOn), out)
		ended <- err
	}()
	var got []Entry
	polltest.Until(t, patience, "something was captured while the command runs", func() bool { got = out.Drain(); return len(got) > 0 })
	if err := os.WriteFile(goOn, []byte("second\n"), 0); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if got = append(got, out.Drain()...); said(got, Stdout) != "first\nsecond\n" {
		t.Errorf("got %q", texts(got))
	}
}

func TestStopping(t *testing.T) {
	why := errors.New("a person wants it")
	for _, c := range []struct {
		name    string
		line    string // it writes one line to $1 when it is to be stopped, and its processes keep it open as 9
		ready   int
		grace   time.Duration
		timeout bool
		code    int
		signal  string
		stdout  string
	}{
		{"SIGTERM ends it", `exec 9>"$1"; echo >&9; exec sleep 100`, 1, time.Minute, false, -1, "SIGTERM", ""},
		{"it cleans up and says how it went", `exec 9>"$1"; trap 'echo bye; exit 7' TERM; echo >&9; while :; do sleep 0.01; done`, 1, time.Minute, false, 7, "", "bye\n"},
		{"SIGTERM is ignored, SIGKILL is not", `exec 9>"$1"; trap '' TERM; echo >&9; while :; do sleep 0.01; done`, 1, 100 * time.Millisecond, false, -1, "SIGKILL", ""},
		{"at once, without SIGTERM", `exec 9>"$1"; trap 'exit 7' TERM; echo >&9; while :; do sleep 0.01; done`, 1, -1, false, -1, "SIGKILL", ""},
		{"a stopped command", `exec 9>"$1"; echo >&9; kill -STOP $$`, 1, time.Minute, false, -1, "SIGTERM", ""},
		{"all of its group", `exec 9>"$1"; sleep 100 & (sleep 100 & sleep 100) & echo >&9; sleep 100`, 1, time.Minute, false, -1, "SIGTERM", ""},
		{"children that ignore SIGTERM", `exec 9>"$1"; sh -c 'trap "" TERM; echo >&9; sleep 100' & echo >&9; wait`, 2, 100 * time.Millisecond, false, -1, "SIGTERM", ""},
		{"children clean up longer than their parent", `exec 9>"$1"; sh -c 'trap "sleep 0.3; echo cleaned; exit" TERM; echo >&9; while :; do sleep 0.01; done' & echo >&9; wait`, 2, time.Minute, false, -1, "SIGTERM", "cleaned\n"},
		{"a timeout", `exec 9>"$1"; exec sleep 100`, 0, time.Minute, true, -1, "SIGTERM", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLiving(t)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			cmd := sh(c.line, l.path)
			cmd.Grace = c.grace
			if c.timeout {
				cmd.Timeout = 50 * time.Millisecond
			}
			out := NewOutput(0)
			var r Result
			var err error
			var wg sync.WaitGroup
			wg.Go(func() { r, err = Run(ctx, cmd, out) })
			if !c.timeout {
				l.lines(t, c.ready)
				cancel(why)
			}
			wg.Wait()
			if err != nil {
				t.Fatal(err)
			}
			if r.Code != c.code || r.Signal != c.signal {
				t.Errorf("code %d, signal %q; want %d, %q", r.Code, r.Signal, c.code, c.signal)
			}
			if want := map[bool]error{false: why, true: ErrTimeout}[c.timeout]; !errors.Is(r.Stopped, want) {
				t.Errorf("stopped for %v, want %v", r.Stopped, want)
			}
			if got := said(out.Drain(), Stdout); got != c.stdout {
				t.Errorf("stdout %q, want %q", got, c.stdout)
			}
			l.none(t, 0)
		})
	}
}

func TestNothingIsStartedWhenTheContextHasEnded(t *testing.T) {
	why := errors.New("too late")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	file := filepath.Join(t.TempDir(), "started")
	r, _ := run(t, ctx, sh(`: > "$1"`, file))
	if !errors.Is(r.Stopped, why) || r.Code != -1 || !r.Started.IsZero() {
		t.Errorf("got %+v, want stopped for %v, never started", r, why)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("it was started")
	}
}

func TestBackgroundProcesses(t *testing.T) {
	for _, c := range []struct {
		name   string
		line   string
		linger time.Duration
		least  time.Duration // how long Run takes at least
		most   time.Duration
		stdout string
	}{
		{"they end by themselves soon and are heard", `exec 9>"$1"; (sleep 0.1; echo late) & echo early`, time.Minute, 100 * time.Millisecond, time.Minute, "early\nlate\n"},
		{"they hold the output open: killed after a while", `exec 9>"$1"; sleep 100 & echo early`, 200 * time.Millisecond, 200 * time.Millisecond, time.Minute, "early\n"},
		{"they hold nothing open: killed at once", `exec 9>"$1"; sleep 100 >/dev/null 2>&1 & echo early`, time.Minute, 0, time.Minute, "early\n"},
		{"they ignore SIGTERM and SIGHUP", `exec 9>"$1"; (trap '' TERM HUP; sleep 100) & echo early`, 100 * time.Millisecond, 0, time.Minute, "early\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLiving(t)
			cmd := sh(c.line, l.path)
			cmd.Linger = c.linger
			start := time.Now()
			r, out := run(t, t.Context(), cmd)
			if d := time.Since(start); d < c.least || d > c.most {
				t.Errorf("it took %v, want from %v to %v", d, c.least, c.most)
			}
			if r.Code != 0 || r.Stopped != nil {
				t.Errorf("got %+v, want code 0: the command itself ended well", r)
			}
			if got := said(out, Stdout); got != c.stdout {
				t.Errorf("stdout %q, want %q", got, c.stdout)
			}
			l.none(t, 0)
		})
	}
}

func TestAProcessThatLeftTheGroupDoesNotHangRun(t *testing.T) {
	for _, c := range []struct {
		name    string
		holds   string // redirections of what it does not hold
		stdin   int    // bytes
		timeout time.Duration
	}{
		{"though it holds the output", "", 0, 0},
		{"though it holds the input and reads nothing", ">/dev/null 2>&1", 1 << 20, 0}, // more than a pipe takes
		{"though it holds both, and the command is stopped", "", 1 << 20, 5 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLiving(t)
			pidFile := filepath.Join(t.TempDir(), "pid")
			// With job control a shell gives each background job a group of its own; bash does that without a terminal too.
			const line = `exec 8<&0; set -m; sh -c 'exec 9>"$1"; echo $$ > "$2"; exec sleep 300' sh "$1" "$2" <&8 %s & until test -s "$2"; do sleep 0.01; done; echo early; %s`
			then := ":"
			if c.timeout > 0 {
				then = "sleep 100"
			}
			cmd := Command{
				Args: []string{"bash", "-c", fmt.Sprintf(line, c.holds, then), "bash", l.path, pidFile}, Env: environment,
				Stdin: make([]byte, c.stdin), Timeout: c.timeout, Linger: 100 * time.Millisecond, Grace: 100 * time.Millisecond,
			}
			begin := time.Now()
			r, out := run(t, t.Context(), cmd)
			if took := time.Since(begin); took > time.Minute {
				t.Errorf("it took %v", took)
			}
			if (r.Stopped != nil) != (c.timeout > 0) || said(out, Stdout) != "early\n" {
				t.Errorf("got %+v, %q", r, texts(out))
			}
			if !l.some(t) {
				t.Error("the process in the other group is dead; it should have been left alone")
			}
			text, err := os.ReadFile(pidFile)
			if err != nil {
				t.Fatal(err)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
			if err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
			l.none(t, 10*time.Second)
		})
	}
}

func TestManyCommandsAtOnce(t *testing.T) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, 32)
	for i := range 500 {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			out := NewOutput(0)
			r, err := Run(t.Context(), sh(`echo "$1"; echo "$1" >&2; exit $(($1 % 200))`, fmt.Sprint(i)), out)
			if err != nil || r.Code != i%200 || r.Stopped != nil {
				t.Errorf("command %d: %+v, %v", i, r, err)
			}
			got := out.Drain()
			if want := fmt.Sprintln(i); said(got, Stdout) != want || said(got, Stderr) != want {
				t.Errorf("command %d printed %q", i, texts(got))
			}
		})
	}
	wg.Wait()
	guardian.mu.Lock()
	defer guardian.mu.Unlock()
	if len(guardian.commands) != 0 {
		t.Errorf("the guardian still has %d commands", len(guardian.commands))
	}
}

func TestHurryCutsTheGraceOfWhatIsStopped(t *testing.T) {
	for _, c := range []struct {
		name, line string
	}{
		{"of a command that does not heed SIGTERM", "trap '' TERM; echo ready; while :; do sleep 1; done"},
		{"of what it leaves in its group", "(trap '' TERM; echo ready; while :; do sleep 1; done) & wait"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, stop := context.WithCancelCause(t.Context())
			hurry := make(chan struct{})
			cmd := sh(c.line)
			cmd.Grace, cmd.Hurry = time.Hour, hurry
			out := NewOutput(0)
			go func() {
				polltest.Holds(patience, func() bool { return len(out.Drain()) > 0 }) // the trap is set
				stop(errors.New("enough"))
				close(hurry)
			}()
			begin := time.Now()
			r, err := Run(ctx, cmd, out)
			if err != nil || r.Stopped == nil {
				t.Errorf("ended with %+v, %v, want that it was stopped", r, err)
			}
			if took := time.Since(begin); took > time.Minute {
				t.Errorf("it took %v, want a good quarter of a second, and not an hour", took)
			}
		})
	}
}
