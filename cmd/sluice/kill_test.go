//go:build unix

package main_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/disbatchtest"
	"github.com/seed-1177d267/sluice/internal/hosttest"
	"github.com/seed-1177d267/sluice/internal/polltest"
	"github.com/seed-1177d267/sluice/internal/runner"
)

// These tests run the real binary, and kill it.

// binary is the program under test, built once.
var binary string

func TestMain(m *testing.M) {
	runner.GuardMain()
	hosttest.Main()
	if when := os.Getenv(diesVariable); when != "" {
		runDying(when)
	}
	if disbatchtest.Main() { // this process was to be a node of another program
		return
	}
	dir, err := os.MkdirTemp("", "sluice-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binary = filepath.Join(dir, "sluice")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		os.Exit(1)
	}
	// Most of these tests is waiting for processes: several of them keep the processors busy.
	flag.Parse()
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	if signal.Ignored(syscall.SIGHUP) { // as by nohup: nodes would inherit that, and tests wait for them for ever
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// onEachStore runs the test on SQLite and, if there is a server, on MongoDB.
func onEachStore(t *testing.T, test func(t *testing.T, s *site)) {
	t.Run("sqlite", func(t *testing.T) { test(t, newSite(t, "")) })
	server := os.Getenv("SLUICE_TEST_MONGODB")
	if server == "" {
		t.Log("SLUICE_TEST_MONGODB is not set: only on SQLite")
		return
	}
	t.Run("mongodb", func(t *testing.T) {
		test(t, newSite(t, fmt.Sprintf("%s/sluice-kill-%d-%d", strings.TrimSuffix(server, "/"), os.Getpid(), time.Now().UnixNano())))
	})
}

// A site is a folder with a plan file, its effects and a store.
type site struct {
	*testing.T
	dir   string
	store string
	dens  atomic.Int64 // that were started, and have a name each
	path  string       // of the program; "": binary
}

// newSite returns a site with the store of that URI; "" is a SQLite file, on which tests of MongoDB alone do nothing: make test runs them.
func newSite(t *testing.T, uri string) *site {
	if uri == "" && os.Getenv("SLUICE_TEST_STORES") == "mongodb" {
		t.Skip("make test runs this on SQLite")
	}
	s := &site{T: t, dir: t.TempDir(), store: uri}
	if uri == "" {
		s.store = "sqlite:" + filepath.Join(s.dir, "sluice.db")
	}
	if err := os.Mkdir(filepath.Join(s.dir, "effects"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if log, err := os.ReadFile(filepath.Join(s.dir, "den.log")); err == nil && t.Failed() {
			t.Logf("what the nodes said last:\n%s", log[max(0, len(log)-10_000):])
		}
	})
	return s
}

// layered is a plan of layers, each task needing three of the layer above.
type layered struct {
	layers, wide int
	sleep        time.Duration // that a task takes
	gate         int           // tasks of this layer and of those below it wait for the effect "go"; 0: none does
}

// write writes the plan file. Each attempt notes that it began and that it ended.
func (p layered) write(s *site) string {
	var b strings.Builder
	fmt.Fprintf(&b, "plan: layered\ndefaults: {max_rescues: 1000}\ntasks:\n")
	for l := range p.layers {
		for i := range p.wide {
			fmt.Fprintf(&b, "  t%d-%d:\n", l, i)
			if l > 0 {
				fmt.Fprintf(&b, "    needs: [t%d-%d, t%d-%d, t%d-%d]\n", l-1, i, l-1, (i+1)%p.wide, l-1, (i+2)%p.wide)
			}
			fmt.Fprintf(&b, "    run: |\n      echo \"began $SLUICE_ATTEMPT\" >> effects/$SLUICE_NAME\n")
			if p.sleep > 0 {
				fmt.Fprintf(&b, "      sleep %.3f\n", p.sleep.Seconds())
			}
			if p.gate > 0 && l >= p.gate {
				fmt.Fprintf(&b, "      until test -e effects/go; do sleep 0.05; done\n")
			}
			fmt.Fprintf(&b, "      echo \"ended $SLUICE_ATTEMPT\" >> effects/$SLUICE_NAME\n      echo $SLUICE_ATTEMPT > $SLUICE_OUTPUT\n")
		}
	}
	file := filepath.Join(s.dir, "plan.yaml")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		s.Fatal(err)
	}
	return file
}

func (s *site) command(args ...string) *exec.Cmd {
	c := exec.Command(cmp.Or(s.path, binary), args...)
	c.Env = append(os.Environ(), "SLUICE_STORE="+s.store, "XDG_STATE_HOME="+s.dir)
	return c
}

// sluice runs a command to its end and returns its output and its exit code.
func (s *site) sluice(args ...string) (string, int) {
	s.Helper()
	out, err := s.command(args...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.Fatal(err)
	}
	if exit != nil {
		return string(out), exit.ExitCode()
	}
	return string(out), 0
}

func (s *site) must(args ...string) string {
	s.Helper()
	out, code := s.sluice(args...)
	if code != 0 {
		s.Fatalf("sluice %s: exit %d\n%s", strings.Join(args, " "), code, out)
	}
	return out
}

// den starts a node. A node with a death kills itself.
func (s *site) den(threads int, d death) *exec.Cmd {
	s.Helper()
	args := []string{"den", "--threads", fmt.Sprint(threads), "--allow", "exec", "--lease", long, "--name", fmt.Sprint("n", s.dens.Add(1))}
	c := s.command(args...)
	if d.write > 0 {
		c = s.dies(d, args...)
	}
	log, err := os.OpenFile(filepath.Join(s.dir, "den.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.Error(err)
		return nil
	}
	defer log.Close()
	c.Stderr = log
	if err := c.Start(); err != nil {
		s.Error(err)
		return nil
	}
	return c
}

type task struct {
	Name    string
	State   string
	Attempt int
	Detail  string
	Output  json.RawMessage
}

func (s *site) tasks(n int) []task {
	s.Helper()
	var all []task
	out := s.must("task", "list", "--plan", "layered", "--limit", fmt.Sprint(n+1), "--output", "json")
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		s.Fatalf("task list: %v\n%s", err, out)
	}
	return all
}

// state returns the states of a plan's tasks.
func (s *site) state(plan string) map[string]string {
	s.Helper()
	var all []task
	out := s.must("task", "list", "--plan", plan, "--limit", "1000", "--output", "json")
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		s.Fatalf("task list: %v\n%s", err, out)
	}
	states := map[string]string{}
	for _, t := range all {
		states[t.Name] = t.State
	}
	return states
}

// effects returns, for a task, the attempts that began and those that ended.
func (s *site) effects(name string) (began, ended []string) {
	text, err := os.ReadFile(filepath.Join(s.dir, "effects", name))
	if err != nil {
		return nil, nil
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if attempt, ok := strings.CutPrefix(line, "began "); ok {
			began = append(began, attempt)
		} else if attempt, ok := strings.CutPrefix(line, "ended "); ok {
			ended = append(ended, attempt)
		}
	}
	return began, ended
}

// check demands that each of n tasks succeeded, with the effect of the very attempt that was accepted, and, with once, that none ran twice.
func (s *site) check(n int, once bool) {
	s.Helper()
	all := s.tasks(n)
	if len(all) != n {
		s.Fatalf("%d tasks, want %d", len(all), n)
	}
	twice := 0
	for _, t := range all {
		began, ended := s.effects(t.Name)
		switch {
		case t.State != "succeeded":
			s.Errorf("%s is %s: %s", t.Name, t.State, t.Detail)
		case len(ended) == 0 || ended[len(ended)-1] != fmt.Sprint(t.Attempt):
			s.Errorf("%s succeeded with attempt %d; the attempts that ended are %v", t.Name, t.Attempt, ended)
		case len(began) > 1:
			twice++
			if once {
				s.Errorf("%s began %d times, want once", t.Name, len(began))
			}
		}
	}
	s.Logf("%d tasks, %d of them ran more than once", n, twice)
}

// noneLeft demands that no command of the site runs any more.
func (s *site) noneLeft() {
	s.Helper()
	var left string
	if !polltest.Holds(patience, func() bool {
		out, _ := exec.Command("sh", "-c", "for p in /proc/[0-9]*; do [ \"$(readlink $p/cwd)\" = '"+s.dir+"' ] && tr '\\0' ' ' < $p/cmdline; done; true").Output()
		left = strings.TrimSpace(string(out))
		return left == ""
	}) {
		s.Errorf("commands outlived their node: %s", left)
	}
}

func kill(c *exec.Cmd) {
	_ = c.Process.Signal(syscall.SIGKILL)
	_ = c.Wait()
}

func TestAKilledRunIsResumed(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, s *site) {
		file := layered{layers: 5, wide: 8, gate: 2}.write(s)
		run := s.command("plan", "run", file, "--threads", "4")
		if err := run.Start(); err != nil {
			t.Fatal(err)
		}
		finished := func() map[string]bool {
			names := map[string]bool{}
			for _, task := range s.tasks(40) {
				names[task.Name] = task.State == "succeeded"
			}
			maps.DeleteFunc(names, func(_ string, succeeded bool) bool { return !succeeded })
			return names
		}
		began := func() (n int) {
			for i := range 8 {
				attempts, _ := s.effects(fmt.Sprint("t2-", i))
				n += len(attempts)
			}
			return n
		}
		s.until("two layers have ended, and four tasks of the next one run", func() bool {
			return began() == 4 && len(finished()) == 16 // in that order: the store has the plan once something began
		})
		kill(run)
		s.noneLeft()
		before := finished()
		if len(before) != 16 {
			t.Errorf("%d tasks had finished when the run was killed, want two layers of 8", len(before))
		}
		s.makeEffect("go")
		s.must("plan", "run", "--resume", "layered", "--threads", "4")
		s.check(40, false)
		for name := range before {
			if began, _ := s.effects(name); len(began) != 1 {
				t.Errorf("%s had finished before the kill and ran again", name)
			}
		}
	})
}

// TestAKilledSubmissionIsGoneOnWithAndNeverRunsHalf kills a submission before each of its writes.
func TestAKilledSubmissionIsGoneOnWithAndNeverRunsHalf(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, s *site) {
		const n = 2001 // in three parts
		var b strings.Builder
		b.WriteString("plan: large\ntasks:\n")
		for i := range n {
			fmt.Fprintf(&b, "  t%d: {plugin: demo}\n", i)
		}
		file, away := filepath.Join(s.dir, "large.yaml"), filepath.Join(s.dir, "away.yaml")
		if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		s.must("plan", "create", "first") // makes the store
		type listed struct {
			Name, State string
			Run, Size   int
			Counts      struct{ Held, Queued, Succeeded int }
		}
		latest := func() (p listed) {
			t.Helper()
			var plans []listed
			out, err := s.command("plan", "list", "--limit", "1", "--output", "json").Output()
			if err = errors.Join(err, json.Unmarshal(out, &plans)); err != nil || len(plans) != 1 {
				t.Fatalf("%v\n%s", err, out)
			}
			return plans[0]
		}
		halfway := func(p listed) bool { return p.State == "submitting" && p.Counts.Held > 0 && p.Counts.Held < n }
		submit := func(write int64) (died bool) {
			t.Helper()
			c := s.dies(death{write: write}, "plan", "submit", file)
			out, err := c.CombinedOutput()
			if died = killed(c); !died && err != nil {
				t.Fatalf("the submission that was to die before write %d: %v\n%s", write, err, out)
			}
			return died
		}
		half := int64(0) // a write before which a submission died half-way
		for write, plans := int64(1), map[int]bool{}; submit(write); write++ {
			p := latest()
			if p.Name != "large" || plans[p.Run] {
				continue // it died before it made its plan
			}
			plans[p.Run] = true
			switch c := p.Counts; {
			case p.State == "submitting" && c.Queued+c.Succeeded == 0 && c.Held <= n:
			case p.State == "running" && c.Succeeded == 0 && c.Held+c.Queued == n:
			default:
				t.Errorf("dead before write %d: the plan is %s with %+v, want %d tasks, or nothing that may run", write, p.State, c, n)
			}
			if halfway(p) {
				half = write
			}
		}
		if half == 0 || !submit(half) {
			t.Fatalf("no write was found before which a submission is half-way; the test needs one")
		}
		p := latest()
		if !halfway(p) {
			t.Fatalf("dead before write %d once more, the plan is %s with %+v, want it half-way", half, p.State, p.Counts)
		}
		title := fmt.Sprintf("%s#%d", p.Name, p.Run)
		t.Logf("%s was killed before write %d, with %d of %d tasks", title, half, p.Counts.Held, p.Size)
		if err := os.Rename(file, away); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"plan", "ready", title}, {"plan", "run", "--resume", title}} {
			if out, code := s.sluice(args...); code != 1 || !strings.Contains(out, fmt.Sprintf(" of its %d tasks: ", n)) {
				t.Errorf("sluice %s: exit %d\n%s", strings.Join(args, " "), code, out)
			}
		}
		if err := os.Rename(away, file); err != nil {
			t.Fatal(err)
		}
		s.must("plan", "ready", title)
		// How many of them are queued by now is the store's affair: other submissions of this test may be before them.
		if p := latest(); p.State != "running" || p.Counts.Held+p.Counts.Queued != n {
			t.Errorf("%s is %s with %+v, want it running with %d held and queued", title, p.State, p.Counts, n)
		}
		s.must("plan", "run", "--resume", title, "--threads", "64")
		if p := latest(); p.State != "succeeded" || p.Counts.Succeeded != n {
			t.Errorf("%s is %s with %+v, want %d succeeded", title, p.State, p.Counts, n)
		}
	})
}

func TestThreeNodesShareAPlan(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, s *site) {
		file := layered{layers: 10, wide: 100}.write(s)
		for range 3 {
			den := s.den(4, death{})
			defer func() {
				_ = den.Process.Signal(syscall.SIGTERM)
				if err := den.Wait(); err != nil {
					t.Errorf("den: %v", err)
				}
			}()
		}
		s.must("plan", "submit", file)
		s.must("plan", "wait", "layered", "--timeout", "10m")
		s.check(1000, true)
	})
}

// TestNodesDieAtEachOfTheirWritesUntilThePlanEnds has three nodes at a time. Each kills itself at a
// later write than the one before it, before the write or after it. The last three live.
func TestNodesDieAtEachOfTheirWritesUntilThePlanEnds(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, s *site) {
		file := layered{layers: 10, wide: 30, sleep: 50 * time.Millisecond}.write(s)
		s.must("plan", "submit", file)
		const deaths = 30
		var next atomic.Int64
		var nodes sync.WaitGroup
		last := make(chan *exec.Cmd, 3)
		for range 3 {
			nodes.Go(func() {
				for {
					n := next.Add(1)
					if n > deaths {
						last <- s.den(3, death{})
						return
					}
					d := death{write: (n + 1) / 2, after: n%2 == 0}
					den := s.den(3, d)
					if den == nil {
						return
					}
					if _ = den.Wait(); !killed(den) {
						t.Errorf("the node that was to die %v ended with %v", d, den.ProcessState)
					}
				}
			})
		}
		nodes.Wait()
		close(last)
		out, code := s.sluice("plan", "wait", "layered", "--timeout", "10m")
		for den := range last {
			if den != nil {
				kill(den)
			}
		}
		if code != 0 {
			t.Errorf("plan wait: exit %d\n%s", code, out)
		}
		s.noneLeft()
		s.check(300, false)
	})
}

// TestATaskOfAStoppedNodeIsNotRunTwiceAtOnce stops a node as Ctrl-Z does, for longer than its
// lease, while its command continues.
func TestATaskOfAStoppedNodeIsNotRunTwiceAtOnce(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, s *site) {
		file := filepath.Join(s.dir, "plan.yaml")
		const text = `plan: long
tasks:
  a:
    run: |
      while :; do
        date +%s%N >> effects/$SLUICE_ATTEMPT
        if [ $SLUICE_ATTEMPT != 1 ] && [ $(wc -l < effects/$SLUICE_ATTEMPT) -ge 20 ]; then exit 0; fi
        sleep 0.05
      done
`
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		instants := func(attempt int) []string {
			text, _ := os.ReadFile(filepath.Join(s.dir, "effects", fmt.Sprint(attempt)))
			return strings.Fields(string(text))
		}
		start := func(name, lease string) *exec.Cmd {
			den := s.command("den", "--threads", "1", "--allow", "exec", "--lease", lease, "--name", name)
			if err := den.Start(); err != nil {
				t.Fatal(err)
			}
			return den
		}
		s.must("plan", "submit", file)
		first := start("first", "4s")
		defer kill(first)
		s.until("the task begins", func() bool { return len(instants(1)) > 0 })
		s.pause(first.Process)
		second := start("second", long)
		defer kill(second)
		s.must("plan", "wait", "long", "--timeout", "5m")
		one, two := instants(1), instants(2)
		if len(two) == 0 || one[len(one)-1] >= two[0] {
			t.Errorf("the first attempt ran until %s, the second from %v on", one[len(one)-1], two)
		}
	})
}
