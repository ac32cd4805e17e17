//go:build unix

package main_test

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/disbatchtest"
)

// config writes Disbatch's file for the shared database, and returns its path.
func (s *shared) config(more string) string {
	s.Helper()
	u, err := url.Parse(s.uri)
	s.no(err)
	u.Path = ""
	path := filepath.Join(s.dir, "config.json")
	s.no(os.WriteFile(path, []byte(fmt.Sprintf(`{"mongohost": %q, "database": %q, "plugins": ["effect"], %s}`, u.String(), s.database, more)), 0o600))
	return path
}

// script writes a task runner that is another program: a script, as sites have one, by which the fixture runs.
func (s *shared) script(r disbatchtest.Settings) string {
	s.Helper()
	r.URI, r.Database, r.Dir, r.Runner = s.uri, s.database, s.dir, true
	path := filepath.Join(s.dir, "task_runner")
	name, setting, _ := strings.Cut(r.Environment(), "=")
	s.program(path, fmt.Appendf(nil, "#!/bin/sh\n%s='%s'\nexport %s\necho task runner of $$\necho $$ >> effects/pids\nexec %s \"$@\"\n", name, setting, name, os.Args[0]))
	return path
}

// configured starts a node that has its store and its task runner from Disbatch's file.
func (s *shared) configured(runner string, more ...string) *daemon {
	s.Helper()
	file := s.config(fmt.Sprintf(`"task_runner": %q, "log4perl": {"level": "DEBUG", "appenders": {}}`, runner))
	c := s.command(append([]string{"den", "--config", file, "--name", "sl1", "--runner-ignores-name", "--threads", "3", "--lease", long}, more...)...)
	c.Env = slices.DeleteFunc(c.Env, func(e string) bool { return strings.HasPrefix(e, "SLUICE_STORE=") })
	c.Dir = s.dir
	log, err := os.OpenFile(filepath.Join(s.dir, "den.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	s.no(err)
	defer log.Close()
	return s.runNode(c, log)
}

func (s *shared) add(name string) bson.ObjectID {
	s.Helper()
	id, err := s.AddTask(s.Context(), s.queue, bson.M{"name": name}, nil)
	s.no(err)
	return id
}

func (s *shared) task(id bson.ObjectID) disbatchtest.Task {
	s.Helper()
	t, err := s.Task(s.Context(), id)
	s.no(err)
	return t
}

// A script that follows the contract of Disbatch's task runner runs the tasks of a node of Sluice, plain ones and a plan's.
func TestAScriptIsTheTaskRunner(t *testing.T) {
	t.Parallel()
	s := share(t, 4)
	d := s.configured(s.script(disbatchtest.Settings{Pause: 100 * time.Millisecond}))
	var plain []bson.ObjectID
	for i := range 6 {
		plain = append(plain, s.add(fmt.Sprint("plain", i)))
	}
	s.submit("layered", map[string][]string{"a": nil, "b": nil, "c": {"a", "b"}, "d": {"c"}})
	s.must("plan", "wait", "layered", "--timeout", "5m")
	s.until("the plain tasks have ended", func() bool {
		return !slices.ContainsFunc(plain, func(id bson.ObjectID) bool { return s.task(id).Status <= 0 })
	})
	for i, id := range plain {
		if is := s.task(id); is.Status != disbatchtest.Succeeded || is.Node != "sl1" || is.Stdout == nil {
			t.Errorf("plain task %d is %d at %v with %v printed", i, is.Status, is.Node, is.Stdout)
		}
	}
	for _, name := range []string{"plain0", "plain5", "a", "b", "c", "d"} {
		if ran := s.ran(name); !slices.Equal(ran, []string{"sl1"}) {
			t.Errorf("%s ran at %q, want it once at sl1", name, ran)
		}
	}
	if needs, args := s.got("c"); string(needs["a"]) != `{"of":"a"}` || len(args) != 2 {
		t.Errorf("c got %s and %s of what it needs", needs, args)
	}
	_ = d.Process.Signal(syscall.SIGTERM)
	if code := s.ends(d); code != 0 || strings.Contains(d.said(), "level=ERROR") {
		t.Errorf("the node ended with %d:\n%s", code, d.said())
	}
}

// Outputs that Sluice's own tasks read by reference are among the params for another program. That
// holds for a runner that a node of Sluice starts, and for a node of that program.
func TestAnotherProgramFindsLargeOutputsInParams(t *testing.T) {
	t.Parallel()
	const plan = `plan: large
tasks:
  a: {run: 'printf "\"%0100000d\"" 0 > $SLUICE_OUTPUT'}
  b: {run: 'printf "\"%07000000d\"" 0 > $SLUICE_OUTPUT'}
  child: {needs: [a], queue: shared, plugin: effect, params: {name: child}}
  late: {needs: [b], queue: shared, plugin: effect, params: {name: late}}
`
	for _, c := range []struct {
		name  string
		start func(s *shared) // who runs what
	}{
		{"runner", func(s *shared) {
			s.daemon(nil, "--name", "sl1", "--runner-ignores-name", "--config", s.config(`"gfs": "auto"`), "--allow", "exec,effect", "--task-runner", "shared="+s.script(disbatchtest.Settings{}))
		}},
		{"node", func(s *shared) {
			s.disbatchDen(disbatchtest.Settings{Name: "perl", Nobody: nobody, Threads: 2})
			s.until("it is registered", func() bool { n, err := s.Nodes(s.Context()); s.no(err); return n == 1 })
			s.daemon(nil, "--name", "sl1")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := share(t, 4)
			c.start(s)
			s.site.submit(plan)
			if out, code := s.sluice("plan", "wait", "large", "--timeout", "5m"); code != 1 || !strings.Contains(out, "is given at most 12582912") {
				t.Errorf("plan wait ended with %d, and said\n%s", code, out)
			}
			want := fmt.Sprintf(`"%0100000d"`, 0)
			if needs, args := s.got("child"); string(needs["a"]) != want || len(args) != 1 || string(args[0]) != want {
				t.Errorf("it got %d bytes, and %d args", len(needs["a"]), len(args))
			}
			s.once("child")
			if ran := s.ran("late"); len(ran) > 0 {
				t.Errorf("what has no room for its parent's output ran at %q", ran)
			}
		})
	}
}

func TestAnotherProgramsRunnerOutlivesTheNodeAndIsNotForgotten(t *testing.T) {
	t.Parallel()
	s := share(t, 4)
	end := filepath.Join(s.dir, "end")
	runner := s.script(disbatchtest.Settings{Until: end})
	d := s.configured(runner)
	plain := s.add("plain")
	s.submit("long", map[string][]string{"a": nil, "b": {"a"}})
	s.until("both began", func() bool { return len(s.ran("plain")) == 1 && len(s.ran("a")) == 1 })
	_ = d.Process.Kill()
	<-d.done
	s.says(s.configured(runner), "node started")
	s.until("what the runner printed itself is told apart", func() bool {
		return strings.Contains(s.must("task", "logs", "--runner", plain.Hex()), "[task runner]\ntask runner of ")
	})
	s.no(os.WriteFile(end, nil, 0o600))
	s.must("plan", "wait", "long", "--timeout", "5m")
	s.until("the plain task has ended", func() bool { return s.task(plain).Status > 0 })
	if log := s.must("task", "logs", plain.Hex()); strings.Contains(log, "task runner of") || !strings.Contains(log, `{"of": "plain"}`) {
		t.Errorf("the log is not what the task printed:\n%s", log)
	}
	for _, name := range []string{"plain", "a", "b"} {
		if ran := s.ran(name); !slices.Equal(ran, []string{"sl1"}) {
			t.Errorf("%s ran at %q, want it once", name, ran)
		}
	}
}

func TestATaskWhoseForeignRunnerDiesIsLost(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"claimed", "running"} { // before it said that it began, and after
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			s := share(t, 4)
			d := s.configured(s.script(disbatchtest.Settings{Dies: when}))
			plain := s.add("plain")
			s.submit("p", map[string][]string{"a": nil})
			s.says(d, "task_runner ended with exit status 9")
			s.until("the plain task is orphaned", func() bool { return s.task(plain).Status == disbatchtest.Orphaned })
			if log := s.must("task", "logs", plain.Hex()); !strings.Contains(log, "task runner of ") || !strings.Contains(log, "exit status 9") {
				t.Errorf("its log is\n%s", log)
			}
			s.script(disbatchtest.Settings{}) // it is mended
			s.must("plan", "wait", "p", "--timeout", "5m")
			if ran := s.ran("a"); !slices.Equal(ran, []string{"sl1"}) {
				t.Errorf("the plan's task ran at %q, want it once at sl1", ran)
			}
		})
	}
}

// lives reports whether there is a process that has not exited: one that nobody took note of does not live.
func (s *shared) lives(pid string) bool {
	out, _ := exec.Command("ps", "-o", "stat=", "-p", pid).Output()
	return len(out) > 0 && out[0] != 'Z'
}

// A `sluice runner` that watches over another program's runner and stands still loses the task. The
// program has ended before the task is given out again, because its end would be taken for that of
// the next attempt.
func TestAForeignRunnerEndsBeforeItsTaskRunsAgainWhereItsWatcherStandsStill(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		killed bool // the node is, and started again: it knows nothing of the runner
	}{{"the node that started it lives", false}, {"that node was killed before", true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := share(t, 4)
			s.must("queue", "set", "shared", "--on-lost", "retry")
			end := filepath.Join(s.dir, "end")
			runner := s.script(disbatchtest.Settings{Until: end})
			s.place(binary)
			d := s.configured(runner)
			s.says(d, "node started")
			s.leaseOfRunners("10s") // that of a watcher, which has to beat until it is stopped
			id := s.add("plain")
			s.until("it began", func() bool { return len(s.ran("plain")) == 1 })
			watcher := s.runner()
			if watcher == 0 {
				t.Fatal("nobody watches over the runner")
			}
			s.leaseOfRunners(long)
			if c.killed {
				_ = d.Process.Kill()
				<-d.done
				d = s.configured(runner)
				s.says(d, "node started")
			}
			s.no(syscall.Kill(watcher, syscall.SIGSTOP))
			t.Cleanup(func() { _ = syscall.Kill(watcher, syscall.SIGKILL) })
			s.until("it began again", func() bool { return len(s.ran("pids")) == 2 })
			if first := s.ran("pids")[0]; s.lives(first) {
				t.Errorf("the first runner, process %s, goes on beside the second one; the log:\n%s", first, d.said())
			}
			if log := d.said(); !c.killed && (!strings.Contains(log, "its runner hung") || !strings.Contains(log, "process_gone=true")) {
				t.Errorf("the node did not end its runner before the task was given out again; the log:\n%s", log)
			}
			s.until("the second attempt runs", func() bool { return len(s.ran("plain")) == 2 })
			s.no(os.WriteFile(end, nil, 0o600))
			s.until("it has ended", func() bool { return s.task(id).Status > 0 })
			if is := s.task(id); is.Status != disbatchtest.Succeeded || len(s.ran("plain")) != 2 {
				t.Errorf("it is %d, and ran at %q", is.Status, s.ran("plain"))
			}
		})
	}
}

func TestAForeignRunnerThatDoesNotBeginItsTaskIsEnded(t *testing.T) {
	t.Parallel()
	if os.Getenv("SLUICE_TEST_WHOLE") == "" {
		t.Skip("it waits for six leases; SLUICE_TEST_WHOLE=1 runs it, and internal/dtr tests the rule on a fake clock")
	}
	s := share(t, 4)
	d := s.configured(s.script(disbatchtest.Settings{Stuck: true}), "--lease", "4s")
	id := s.add("plain")
	s.until("its runner was started", func() bool { return len(s.ran("pids")) == 1 })
	s.until("it is orphaned", func() bool { return s.task(id).Status == disbatchtest.Orphaned })
	if pid := s.ran("pids")[0]; s.lives(pid) {
		t.Errorf("its runner, process %s, goes on", pid)
	}
	s.says(d, "it had not begun its task after 24s")
}

// Disbatch's node gives up what was claimed under its name and not begun.
func TestAForeignRunnerWhoseTaskSomebodyElseEndedIsEnded(t *testing.T) {
	t.Parallel()
	s := share(t, 4)
	s.configured(s.script(disbatchtest.Settings{Stuck: true}))
	s.add("plain")
	s.until("its runner was started", func() bool { return len(s.ran("pids")) == 1 })
	if n, err := s.node("sl1", disbatchtest.FindOneAndUpdate).Orphan(s.Context(), 0); n != 1 || err != nil {
		t.Fatalf("%d tasks were given up, %v", n, err)
	}
	s.until("its runner has ended, long before its node gives up on it", func() bool { return !s.lives(s.ran("pids")[0]) })
}

// sluice runner does for another program's node what that one's own task runner does.
func TestSluiceRunsWhatAnotherProgramsNodeHasClaimed(t *testing.T) {
	t.Parallel()
	s := share(t, 4)
	file := s.config(`"gfs": "auto"`)
	link := filepath.Join(s.dir, "task_runner")
	s.no(os.Symlink(binary, link))
	run := func(id bson.ObjectID, gfs ...string) (string, error) {
		args := append([]string{"--config", file, "--task", id.Hex(), "--quiet", "--plugin-dir", filepath.Join(s.dir, "plugins")}, gfs...)
		c := exec.Command(link, args...)
		c.Dir = s.dir
		c.Env = slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "SLUICE_STORE=") })
		out, err := c.CombinedOutput()
		return string(out), err
	}
	n := s.node("perl1", disbatchtest.FindOneAndUpdate)
	plain := s.add("plain")
	if out, err := run(plain); err == nil || !strings.Contains(out, "is queued: a runner runs what a node has claimed") {
		t.Errorf("it ran what nobody had claimed: %v, %s", err, out)
	}
	s.submit("p", map[string][]string{"a": nil, "b": {"a"}})
	var got []string
	for range 3 { // b once a has ended: that it is released is the runner's work
		id := s.claim(n)
		if out, err := run(id, "--gfs", "auto"); err != nil || out != "" {
			t.Errorf("the runner ended with %v: %s", err, out)
		}
		is := s.task(id)
		if is.Status != disbatchtest.Succeeded || is.Node != "perl1" {
			t.Errorf("the task is %d at %v", is.Status, is.Node)
		}
		got = append(got, is.Name)
		if out, err := run(id); err == nil {
			t.Errorf("it ran a task again that had ended: %s", out)
		}
	}
	slices.Sort(got) // of one second, tasks of two makers are in any order
	if !slices.Equal(got, []string{"", "a", "b"}) {
		t.Errorf("it ran %q", got)
	}
	s.must("plan", "wait", "p", "--timeout", "5m")
	for _, name := range []string{"plain", "a", "b"} {
		if ran := s.ran(name); !slices.Equal(ran, []string{"perl1"}) {
			t.Errorf("%s ran at %q, want it once at perl1", name, ran)
		}
	}
	s.gave("b", `{"of":"a"}`)

	// The output of a plain task is where Disbatch's node, or its file, says.
	for _, c := range []struct {
		gfs  []string
		file bool
	}{{nil, false}, {[]string{"--gfs", "auto"}, false}, {[]string{"--gfs", "1"}, true}, {[]string{"--gfs", "0"}, false}} {
		s.add("printing")
		id := s.claim(n)
		if out, err := run(id, c.gfs...); err != nil || out != "" {
			t.Errorf("with %q the runner ended with %v: %s", c.gfs, err, out)
		}
		const want = "{\"of\": \"printing\"}\n"
		is := s.task(id)
		if _, inFile := is.Stdout.(bson.ObjectID); inFile != c.file || !inFile && is.Stdout != want || !is.Complete {
			t.Errorf("with %q what it printed is %v, complete: %v; in a file: %v", c.gfs, is.Stdout, is.Complete, c.file)
		}
		if log := s.must("task", "logs", id.Hex()); log != want {
			t.Errorf("with %q its log is %q", c.gfs, log)
		}
	}
}
