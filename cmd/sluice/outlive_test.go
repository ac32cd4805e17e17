//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/disbatchtest"
)

// These tests show what happens to running tasks when their node stands still, dies, or is started
// again as a newer version. docs/runners.md has it as a table.

// A way is one in which tasks run, and what one of them notes.
type way struct {
	name   string // of the plan's task
	inside bool   // in the node's own process
	plan   bool
	onLost string // what its queue says
	id     string // of one of no plan
}

// ways is a node with tasks that run in each way there is, as long as the file "go" is not there.
type ways struct {
	*site
	foreign bool // another program's runner is one of them
	args    []string
	all     []*way
}

// setUp makes the queues, and the plan "ways" with a task in each way, and another one that needs it.
func (w *ways) setUp() {
	w.Helper()
	w.must("queue", "create", "out", "--plugin", "exec", "--threads", "unlimited")
	w.must("queue", "create", "again", "--plugin", "exec", "--threads", "unlimited", "--on-lost", "retry")
	w.args = append(w.args, "--threads", "9", "--grace", "1s", "--task-runner", "out=sluice")
	w.all = []*way{
		{name: "inside", inside: true, plan: true}, {name: "outside", plan: true},
		{name: "plain-inside", inside: true}, {name: "plain-again", inside: true, onLost: "retry"}, {name: "plain-outside"},
	}
	queues := map[string]string{"outside": "out", "plain-again": "again", "plain-outside": "out"}
	script := func(name string) string {
		return fmt.Sprintf("cd %s; echo $SLUICE_ATTEMPT >> effects/%s; until test -e effects/go; do sleep 0.05; done; echo $SLUICE_ATTEMPT >> effects/%[2]s.ended", w.dir, name)
	}
	var b strings.Builder
	b.WriteString("plan: ways\ntasks:\n")
	if w.foreign {
		w.all = append(w.all, &way{name: "foreign", plan: true})
		b.WriteString("  foreign: {queue: shared, plugin: effect, params: {name: foreign}}\n")
	}
	for _, t := range w.all {
		queue := queues[t.name]
		if queue == "" {
			queue = "exec"
		}
		switch {
		case !t.plan:
			params, _ := json.Marshal(map[string]string{"run": script(t.name)})
			t.id = strings.TrimSpace(w.must("task", "add", queue, "--params", string(params)))
		case t.name != "foreign":
			fmt.Fprintf(&b, "  %s: {queue: %s, run: %q}\n", t.name, queue, script(t.name))
		}
		if t.plan {
			fmt.Fprintf(&b, "  after-%s: {needs: [%[1]s], run: echo >> effects/after-%[1]s}\n", t.name)
		}
	}
	w.submit(b.String())
}

// began returns how often attempts at the task have begun.
func (w *ways) began(t *way) int { return len(strings.Fields(w.effect(t.name))) }

func (w *ways) stateOf(t *way) string {
	w.Helper()
	if t.plan {
		return w.state("ways")[t.name]
	}
	var is task
	if err := json.Unmarshal([]byte(w.must("task", "show", t.id, "-o", "json")), &is); err != nil {
		w.Fatal(err)
	}
	return is.State
}

// lost reports whether a task that ran inside the node is orphaned when that is lost.
func (t *way) lost() bool { return t.inside && !t.plan && t.onLost == "" }

// taken waits until what ran inside the node is run again elsewhere, or orphaned, and sees that nothing else is.
func (w *ways) taken() {
	w.Helper()
	for _, t := range w.all {
		switch {
		case t.lost():
			w.until(t.name+" is orphaned", func() bool { return w.stateOf(t) == "orphaned" })
		case t.inside:
			w.until(t.name+" runs again", func() bool { return w.began(t) == 2 })
		}
	}
	w.stay("while the node is not there")
}

// stay sees that each task is where it has to be.
func (w *ways) stay(when string) {
	w.Helper()
	for _, t := range w.all {
		attempts, state := 1, "running"
		switch {
		case t.lost():
			state = "orphaned"
		case t.inside:
			attempts = 2
		}
		if n, is := w.began(t), w.stateOf(t); n != attempts || is != state {
			w.Errorf("%s, %s is %s, and has begun %d times; want it %s, and %d", when, t.name, is, n, state, attempts)
		}
	}
}

// finish lets the tasks end, and sees that each did once.
func (w *ways) finish() {
	w.Helper()
	w.stay("before the tasks may end")
	w.makeEffect("go")
	w.must("plan", "wait", "ways", "--timeout", "5m")
	w.until("the tasks of no plan have ended", func() bool {
		for _, t := range w.all {
			if is := w.stateOf(t); is != "succeeded" && is != "orphaned" {
				return false
			}
		}
		return true
	})
	w.until("no runner is left", func() bool { return w.runner() == 0 })
	for _, t := range w.all {
		ended, attempts := 1, 1
		if t.lost() {
			ended = 0
		} else if t.inside {
			attempts = 2
		}
		if t.name == "foreign" { // the fixture notes no end
			ended = 0
		}
		if n := len(strings.Fields(w.effect(t.name + ".ended"))); n != ended || w.began(t) != attempts {
			w.Errorf("%s began %d times, and ended %d; want %d and %d", t.name, w.began(t), n, attempts, ended)
		}
		if is := w.stateOf(t); (is == "orphaned") != t.lost() {
			w.Errorf("%s is %s", t.name, is)
		}
		if n := strings.Count(w.effect("after-"+t.name), "\n"); t.plan && n != 1 {
			w.Errorf("what needs %s ran %d times, want once", t.name, n)
		}
	}
}

// long is a lease that no test waits for, and that nothing loses which a busy machine holds up.
const long = "10m"

// newer is the program as another version of it, built once.
var newer = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(binary), "newer")
	out, err := exec.Command("go", "build", "-ldflags", "-X main.version=newer", "-o", path, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return path, nil
})

// place puts a program where a site has it, as an upgrade does. Running processes of the old one
// continue.
func (s *site) place(program string) {
	s.Helper()
	text, err := os.ReadFile(program)
	if err != nil {
		s.Fatal(err)
	}
	s.path = filepath.Join(s.dir, "sluice")
	s.program(s.path+".new", text)
	if err := os.Rename(s.path+".new", s.path); err != nil {
		s.Fatal(err)
	}
}

// program writes a program that can be started at once. No test forks meanwhile: a child would hold
// the file open for writing until it executes its own program, and "text file busy" would answer
// whoever starts this one.
func (s *site) program(path string, text []byte) {
	s.Helper()
	syscall.ForkLock.RLock()
	err := os.WriteFile(path, text, 0o700)
	syscall.ForkLock.RUnlock()
	if err != nil {
		s.Fatal(err)
	}
}

func TestWhatBecomesOfTasksWhoseNodeIsNotThere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		lease string // of the first node: others wait for its end only while its process exists and stands still
		run   func(w *ways, first *daemon, start func(name string) *daemon)
	}{
		{"it is stopped for longer than its lease, and goes on", "10s", func(w *ways, first *daemon, start func(string) *daemon) {
			w.pause(first.Process)
			second := start("n2")
			w.taken()
			if err := first.Process.Signal(syscall.SIGCONT); err != nil {
				w.Fatal(err)
			}
			w.says(first, "start again")
			w.beats(first.Process.Pid, 2)
			w.beats(second.Process.Pid, 2)
			w.finish()
			for _, d := range []*daemon{first, second} {
				_ = d.Process.Signal(syscall.SIGTERM)
				if code := w.ends(d); code != 0 || strings.Contains(d.said(), "level=ERROR") {
					w.Errorf("a node ended with %d:\n%s", code, d.said())
				}
			}
		}},
		{"it is killed, and started again", long, func(w *ways, first *daemon, start func(string) *daemon) {
			start("n2")
			_ = first.Process.Kill()
			<-first.done
			w.taken()
			again := start("n1")
			w.says(again, "node started")
			w.beats(again.Process.Pid, 2)
			w.finish()
		}},
		{"it is upgraded while its runners go on", long, func(w *ways, first *daemon, start func(string) *daemon) {
			start("n2")
			program, err := newer()
			if err != nil {
				w.Fatal(err)
			}
			w.place(program)
			_ = first.Process.Signal(syscall.SIGTERM)
			if code := w.ends(first); code != 0 {
				w.Errorf("the node ended with %d:\n%s", code, first.said())
			}
			w.taken()
			again := start("n1")
			w.says(again, "node started")
			w.beats(again.Process.Pid, 2)
			old, young := 0, 0
			for _, n := range w.nodes() {
				switch {
				case n.Runner && n.Version != "newer":
					old++
				case n.PID == again.Process.Pid && n.Version == "newer":
					young++
				}
			}
			if old == 0 || young != 1 {
				w.Errorf("%d runners of the old version and %d nodes of the new one, want some and one", old, young)
			}
			w.submit("plan: next\ntasks:\n  a: {queue: out, run: '\"" + w.path + "\" version > effects/version'}\n")
			w.must("plan", "wait", "next", "--timeout", "5m")
			w.finish()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			run := func(w *ways) {
				w.place(binary)
				w.setUp()
				with := func(name, lease string) *daemon {
					w.Helper()
					return w.daemon(nil, append([]string{"--name", name, "--lease", lease}, w.args...)...)
				}
				start := func(name string) *daemon { w.Helper(); return with(name, long) }
				first := with("n1", c.lease)
				w.until("all tasks have begun", func() bool {
					for _, t := range w.all {
						if w.began(t) == 0 {
							return false
						}
					}
					return true
				})
				c.run(w, first, start)
			}
			t.Run("sqlite", func(t *testing.T) {
				t.Parallel()
				run(&ways{site: newSite(t, "")})
			})
			t.Run("mongodb", func(t *testing.T) {
				t.Parallel()
				s := share(t, 9)
				w := &ways{site: s.site, foreign: true}
				runner := s.script(disbatchtest.Settings{Until: filepath.Join(s.dir, "effects", "go")})
				w.args = []string{"--config", s.config(`"gfs": "auto"`), "--allow", "effect", "--runner-ignores-name", "--task-runner", "shared=" + runner}
				run(w)
			})
		})
	}
}

// follow follows a task's log. Its output so far is in the file; ended is closed when it has ended.
func (s *site) follow(args ...string) (c *exec.Cmd, said func() string, ended chan struct{}) {
	s.Helper()
	c = s.command(append([]string{"task", "logs", "-f"}, args...)...)
	out, err := os.CreateTemp(s.dir, "follow-*")
	if err != nil {
		s.Fatal(err)
	}
	defer out.Close()
	c.Stdout, ended = out, make(chan struct{})
	if err := c.Start(); err != nil {
		s.Fatal(err)
	}
	go func() {
		_ = c.Wait()
		close(ended)
	}()
	s.Cleanup(func() {
		_ = c.Process.Kill()
		<-ended
	})
	return c, func() string {
		text, _ := os.ReadFile(out.Name())
		return string(text)
	}, ended
}

// followed demands that following ends by itself, without an error.
func (s *site) followed(c *exec.Cmd, said func() string, ended chan struct{}) {
	s.Helper()
	select {
	case <-ended:
	case <-time.After(patience):
		s.Fatalf("it is followed still, though the task has ended; so far:\n%s", said())
	}
	if code := c.ProcessState.ExitCode(); code != 0 {
		s.Errorf("following ended with %d:\n%s", code, said())
	}
}

func TestTheLogOfARunnersTaskIsFollowedWhileItsNodeIsStartedAnew(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, s *site) {
		args := []string{"--name", "n1", "--lease", long, "--task-runner", "sluice"}
		first := s.daemon(nil, args...)
		s.submit(`plan: told
tasks:
  a:
    run: |
      echo one
      until test -e effects/two; do sleep 0.05; done
      echo two >&2
      until test -e effects/go; do sleep 0.05; done
      echo three
`)
		s.until("the task runs", func() bool { return s.state("told")["a"] == "running" })
		c, said, ended := s.follow("told", "a")
		s.until("its first line is there", func() bool { return said() == "one\n" })
		_ = first.Process.Signal(syscall.SIGTERM)
		s.ends(first)
		s.makeEffect("two")
		s.until("a line is there that it printed while there was no node", func() bool { return said() == "one\ntwo\n" })
		s.says(s.daemon(nil, args...), "node started")
		select {
		case <-ended:
			t.Fatalf("following ended before the task:\n%s", said())
		default:
		}
		s.makeEffect("go")
		s.followed(c, said, ended)
		if said() != "one\ntwo\nthree\n" {
			t.Errorf("it printed\n%s", said())
		}
	})
}

// The output of such a task is in the database when it has ended. Until then a follower can only
// wait for the end.
func TestATaskOfAnotherProgramsRunnerIsFollowedToItsEnd(t *testing.T) {
	t.Parallel()
	s := share(t, 4)
	s.configured(s.script(disbatchtest.Settings{Until: filepath.Join(s.dir, "effects", "go")}))
	plain := s.add("plain")
	s.runs("plain")
	c, said, ended := s.follow(plain.Hex())
	for range 2 { // following outlasts beats of the runner
		s.beats(s.runner(), 1)
	}
	select {
	case <-ended:
		t.Fatalf("following ended before the task:\n%s", said())
	default:
	}
	s.makeEffect("go")
	s.followed(c, said, ended)
	if is := s.task(plain); is.Status != disbatchtest.Succeeded {
		t.Errorf("following ended while the task is %d", is.Status)
	}
}
