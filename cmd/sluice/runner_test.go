//go:build unix

package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// waiting is a plan of a task that notes each attempt and waits until its file is there, and of one that needs it.
const waiting = `plan: waiting
tasks:
  a:
    run: |
      echo $SLUICE_ATTEMPT >> effects/a
      until test -e effects/go; do sleep 0.05; done
      echo '"it went"' > $SLUICE_OUTPUT
  b: {needs: [a], run: 'cat $SLUICE_PARAMS > effects/b'}
`

func (s *site) submit(text string) {
	s.Helper()
	file := filepath.Join(s.dir, "plan.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
	s.must("plan", "submit", file)
}

func (s *site) effect(name string) string {
	text, _ := os.ReadFile(filepath.Join(s.dir, "effects", name))
	return string(text)
}

func (s *site) makeEffect(name string) {
	s.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, "effects", name), nil, 0o600); err != nil {
		s.Fatal(err)
	}
}

// until waits for what has to become true.
func (s *site) until(what string, true func() bool) {
	s.Helper()
	if !await(time.Minute, true) {
		s.Fatalf("within a minute it was not true that %s", what)
	}
}

// runner returns the process of the only runner there is, 0 if there is none.
func (s *site) runner() (pid int) {
	s.Helper()
	for _, n := range s.nodes() {
		if n.Runner {
			pid = n.PID
		}
	}
	return pid
}

func TestARunnerGoesOnWhileItsNodeIsStoppedOrKilledAndStartedAgain(t *testing.T) {
	for _, c := range []struct {
		name   string
		signal syscall.Signal
	}{{"stopped", syscall.SIGTERM}, {"killed", syscall.SIGKILL}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			onEachStore(t, func(t *testing.T, s *site) {
				args := []string{"--name", "n1", "--lease", "20s", "--task-runner", "sluice", "--threads", "1"}
				first := s.daemon(nil, args...)
				s.submit(waiting)
				s.until("the task began", func() bool { return s.effect("a") == "1\n" })
				signalled := time.Now()
				_ = first.Process.Signal(c.signal)
				<-first.done
				if took := time.Since(signalled); took > 8*time.Second {
					t.Errorf("the node ended after %v, want it not to give its runner the grace of 10 s", took)
				}
				second := s.daemon(nil, args...)
				s.says(second, "node started")
				runner := s.runner()
				if runner == 0 {
					t.Fatal("its runner has ended")
				}
				s.beats(runner, 2) // it keeps its lease itself
				s.beats(second.Process.Pid, 2)
				if got := s.effect("a"); got != "1\n" {
					t.Fatalf("its attempts are %q, want the first alone: its runner lives", got)
				}
				s.submit("plan: other\ntasks:\n  c: {run: touch effects/c}\n")
				s.beats(second.Process.Pid, 3) // which tell it that there is work
				if state := s.state("other")["c"]; state != "queued" {
					t.Errorf("a second task is %s at a node of one thread, beside the one of a runner that its predecessor left", state)
				}
				s.makeEffect("go")
				s.must("plan", "wait", "waiting", "--timeout", "30s")
				s.must("plan", "wait", "other", "--timeout", "30s")
				if got := s.effect("a"); got != "1\n" {
					t.Errorf("its attempts are %q, want the first alone", got)
				}
				if got := s.effect("b"); !strings.Contains(got, "it went") {
					t.Errorf("the task after it got %q", got)
				}
				s.until("no runner is left", func() bool { return s.runner() == 0 })
				_ = second.Process.Signal(syscall.SIGTERM)
				if code := s.ends(second); code != 0 || strings.Contains(second.said(), "claim was lost") {
					t.Errorf("the node ended with %d:\n%s", code, second.said())
				}
			})
		})
	}
}

func TestATaskWhoseRunnerDiesRunsAgainWithinSeconds(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, s *site) {
		d := s.daemon(nil, "--name", "n1", "--lease", "20s", "--task-runner", "sluice")
		s.submit(waiting)
		s.until("the task began", func() bool { return s.effect("a") == "1\n" })
		pid := s.runner()
		if pid == 0 {
			t.Fatal("there is no runner")
		}
		_ = syscall.Kill(pid, syscall.SIGKILL)
		killed := time.Now()
		s.until("it began again", func() bool { return s.effect("a") == "1\n2\n" })
		if took := time.Since(killed); took > 15*time.Second {
			t.Errorf("it ran again after %v, want it within seconds, and long before the lease of 20 s", took)
		}
		s.makeEffect("go")
		s.must("plan", "wait", "waiting", "--timeout", "30s")
		_ = d.Process.Signal(syscall.SIGTERM)
		s.ends(d)
	})
}

func TestATaskOfARunnerIsCancelled(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, s *site) {
		s.daemon(nil, "--name", "n1", "--task-runner", "exec=sluice")
		s.submit(waiting)
		s.until("the task began", func() bool { return s.effect("a") == "1\n" })
		s.must("plan", "cancel", "waiting")
		out, code := s.sluice("plan", "wait", "waiting", "--timeout", "30s")
		if code != 5 || !strings.Contains(out, "cancelled") {
			t.Errorf("plan wait ended with %d, and said\n%s", code, out)
		}
		s.until("no runner is left", func() bool { return s.runner() == 0 })
	})
}

// A node counts what runs under it by attempts: it may claim a task again while the runner of an earlier attempt is not gone yet.
func TestALimitHoldsWhereRunnersDie(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, s *site) {
		s.daemon(nil, "--name", "n1", "--threads", "3", "--task-runner", "sluice")
		s.submit("plan: many\ntasks:\n  each: {foreach: [1, 2, 3, 4, 5, 6], run: 'until test -e effects/go; do sleep 0.05; done'}\n")
		running := func() (n int) {
			s.Helper()
			for _, i := range s.nodes() {
				if i.Runner {
					n++
				}
			}
			return n
		}
		s.until("three run", func() bool { return running() == 3 })
		_ = syscall.Kill(s.runner(), syscall.SIGKILL)
		most := 0
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			most = max(most, running())
		}
		if most > 3 {
			t.Errorf("%d runners at once, want the node's three threads", most)
		}
		s.makeEffect("go")
		s.must("plan", "wait", "many", "--timeout", "30s")
	})
}

func TestARunnerThatHangsIsEnded(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, s *site) {
		d := s.daemon(nil, "--name", "n1", "--threads", "1", "--lease", "3s", "--task-runner", "sluice")
		s.submit(waiting)
		s.until("the task began", func() bool { return s.effect("a") == "1\n" })
		_ = syscall.Kill(s.runner(), syscall.SIGSTOP) // its task is lost when its lease is over, and it would hold the node's only thread
		s.says(d, "its runner hung, and was ended")
		s.until("it began again", func() bool { return s.effect("a") == "1\n2\n" })
		s.makeEffect("go")
		s.must("plan", "wait", "waiting", "--timeout", "30s")
	})
}
