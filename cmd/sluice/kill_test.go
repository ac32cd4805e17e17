//go:build unix

package main_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/disbatchtest"
)

// These tests run the real binary, and kill it.

// binary is the program under test, built once.
var binary string

func TestMain(m *testing.M) {
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
	dens  int    // that were started, and have a name each
	path  string // of the program; "": binary
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

// plan writes a plan of layers, each task needing three of the layer above. Each attempt notes that it began and that it ended.
func (s *site) plan(layers, wide int, sleep time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "plan: layered\ntasks:\n")
	for l := range layers {
		for i := range wide {
			fmt.Fprintf(&b, "  t%d-%d:\n", l, i)
			if l > 0 {
				fmt.Fprintf(&b, "    needs: [t%d-%d, t%d-%d, t%d-%d]\n", l-1, i, l-1, (i+1)%wide, l-1, (i+2)%wide)
			}
			fmt.Fprintf(&b, "    run: |\n      echo \"began $SLUICE_ATTEMPT\" >> effects/$SLUICE_NAME\n")
			if sleep > 0 {
				fmt.Fprintf(&b, "      sleep %.3f\n", sleep.Seconds())
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

// sluice runs a command to its end and returns what it printed and its exit code.
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

func (s *site) den(threads int) *exec.Cmd {
	s.Helper()
	s.dens++
	c := s.command("den", "--threads", fmt.Sprint(threads), "--allow", "exec", "--name", fmt.Sprint("n", s.dens))
	log, err := os.OpenFile(filepath.Join(s.dir, "den.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.Fatal(err)
	}
	defer log.Close()
	c.Stderr = log
	if err := c.Start(); err != nil {
		s.Fatal(err)
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
	for range 50 {
		out, _ := exec.Command("sh", "-c", "for p in /proc/[0-9]*; do [ \"$(readlink $p/cwd)\" = '"+s.dir+"' ] && tr '\\0' ' ' < $p/cmdline; done; true").Output()
		if left = strings.TrimSpace(string(out)); left == "" {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	s.Errorf("commands outlived their node: %s", left)
}

// attempts returns how many attempts have begun, and how many have ended.
func (s *site) attempts() (began, ended int) {
	s.Helper()
	all, err := os.ReadDir(filepath.Join(s.dir, "effects"))
	if err != nil {
		s.Fatal(err)
	}
	for _, f := range all {
		b, e := s.effects(f.Name())
		began, ended = began+len(b), ended+len(e)
	}
	return began, ended
}

// await waits until something is so, for a time at most, and reports whether it is.
func await(most time.Duration, is func() bool) bool {
	for end := time.Now().Add(most); !is(); {
		if time.Now().After(end) {
			return false
		}
		time.Sleep(20 * time.Millisecond)
	}
	return true
}

func kill(c *exec.Cmd) {
	_ = c.Process.Signal(syscall.SIGKILL)
	_ = c.Wait()
}

func TestAKilledRunIsResumed(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		file := s.plan(5, 8, 100*time.Millisecond)
		run := s.command("plan", "run", file, "--threads", "4")
		if err := run.Start(); err != nil {
			t.Fatal(err)
		}
		// With 4 threads and 8 tasks that have ended, the end of 4 is in the store at least: others have their threads.
		await(time.Minute, func() bool { _, ended := s.attempts(); return ended >= 8 })
		kill(run)
		s.noneLeft()
		before := map[string]int{}
		for _, task := range s.tasks(40) {
			if task.State == "succeeded" {
				began, _ := s.effects(task.Name)
				before[task.Name] = len(began)
			}
		}
		if len(before) == 0 || len(before) == 40 {
			t.Fatalf("%d of 40 tasks had finished when the run was killed; the test needs some", len(before))
		}
		s.must("plan", "run", "--resume", "layered", "--threads", "4")
		s.check(40, false)
		for name, n := range before {
			if began, _ := s.effects(name); len(began) != n {
				t.Errorf("%s had finished before the kill and ran again", name)
			}
		}
	})
}

func TestAKilledSubmissionIsGoneOnWithAndNeverRunsHalf(t *testing.T) {
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
		start := time.Now()
		s.must("plan", "submit", file)
		whole := time.Since(start)
		type listed struct {
			Name, State string
			Run, Size   int
			Counts      struct{ Held, Queued, Succeeded int }
		}
		latest := func() (p listed) {
			var plans []listed
			out, err := s.command("plan", "list", "--limit", "1", "--output", "json").Output()
			if err = errors.Join(err, json.Unmarshal(out, &plans)); err != nil || len(plans) != 1 {
				t.Fatalf("%v\n%s", err, out)
			}
			return plans[0]
		}
		title := ""
		for tries := 1; title == ""; tries++ {
			if tries > 100 {
				t.Fatalf("of %d submissions that were killed within %v none was half-way; the test needs one", tries, whole)
			}
			submit := s.command("plan", "submit", file)
			if err := submit.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(rand.N(whole))
			kill(submit)
			halfway := func(p listed) bool { return p.State == "submitting" && p.Counts.Held > 0 && p.Counts.Held < n }
			if !halfway(latest()) {
				continue
			}
			time.Sleep(inFlight)
			if p := latest(); halfway(p) {
				title = fmt.Sprintf("%s#%d", p.Name, p.Run)
				t.Logf("%s was killed with %d of %d tasks, after %d tries", title, p.Counts.Held, p.Size, tries)
			}
		}
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

// inFlight is how long a server may take to write what a process had sent it before it was killed.
const inFlight = 3 * time.Second

func TestThreeNodesShareAPlan(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		file := s.plan(10, 100, 0)
		for range 3 {
			den := s.den(4)
			defer func() {
				_ = den.Process.Signal(syscall.SIGTERM)
				if err := den.Wait(); err != nil {
					t.Errorf("den: %v", err)
				}
			}()
		}
		s.must("plan", "submit", file)
		s.must("plan", "wait", "layered", "--timeout", "3m")
		s.check(1000, true)
	})
}

func TestNodesAreKilledEachSecondUntilThePlanEnds(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		file := s.plan(10, 30, 150*time.Millisecond)
		dens := make([]*exec.Cmd, 3)
		for i := range dens {
			dens[i] = s.den(3)
		}
		s.must("plan", "submit", file)
		killed := 0
		for end := time.Now().Add(3 * time.Minute); ; {
			before, _ := s.attempts()
			time.Sleep(time.Second)
			// On a machine so busy that nodes live shorter than it takes them to start, nothing would ever happen.
			await(10*time.Second, func() bool { began, ended := s.attempts(); return began > before || ended >= 300 })
			if _, code := s.sluice("plan", "check", "layered"); code != 3 {
				break
			}
			if time.Now().After(end) {
				t.Error("the plan has not ended in three minutes")
				break
			}
			i := rand.IntN(len(dens))
			kill(dens[i])
			killed++
			dens[i] = s.den(3)
		}
		for _, den := range dens {
			kill(den)
		}
		t.Logf("%d kills", killed)
		s.noneLeft()
		s.check(300, false)
	})
}

// TestATaskOfAStoppedNodeIsNotRunTwiceAtOnce stops a node as Ctrl-Z does, for longer than its lease, while its command goes on.
func TestATaskOfAStoppedNodeIsNotRunTwiceAtOnce(t *testing.T) {
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
		start := func(name string) *exec.Cmd {
			den := s.command("den", "--threads", "1", "--allow", "exec", "--lease", "4s", "--name", name)
			if err := den.Start(); err != nil {
				t.Fatal(err)
			}
			return den
		}
		s.must("plan", "submit", file)
		first := start("first")
		defer kill(first)
		if !await(20*time.Second, func() bool { return len(instants(1)) > 0 }) {
			t.Fatal("the task does not begin")
		}
		s.pause(first.Process)
		second := start("second")
		defer kill(second)
		s.must("plan", "wait", "long", "--timeout", "1m")
		one, two := instants(1), instants(2)
		if len(two) == 0 || one[len(one)-1] >= two[0] {
			t.Errorf("the first attempt ran until %s, the second from %v on", one[len(one)-1], two)
		}
	})
}
