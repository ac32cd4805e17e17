//go:build unix

package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/polltest"
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

// patience is how long a test waits for what has to become true, also on a machine that has other things to do. Nothing is measured by it.
const patience = 2 * time.Minute

// until waits for what has to become true.
func (s *site) until(what string, true func() bool) {
	s.Helper()
	polltest.Until(s, patience, what, true)
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

// leaseOfRunners has the runners that nodes of the site's own program start from now on keep another lease than their node.
func (s *site) leaseOfRunners(lease string) {
	s.Helper()
	script := filepath.Join(s.dir, "with-lease")
	s.program(script, fmt.Appendf(nil, "#!/bin/sh\nexec %s \"$@\" --lease %s\n", binary, lease))
	s.place(script)
	s.path = "" // commands have no lease
}

func TestARunnerGoesOnWhileItsNodeIsStoppedOrKilledAndStartedAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		signal syscall.Signal
	}{{"stopped", syscall.SIGTERM}, {"killed", syscall.SIGKILL}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			onEachStore(t, func(t *testing.T, s *site) {
				args := []string{"--name", "n1", "--lease", long, "--grace", "1h", "--task-runner", "sluice", "--threads", "1"}
				first := s.daemon(nil, args...)
				s.submit(waiting)
				s.until("the task began", func() bool { return s.effect("a") == "1\n" })
				_ = first.Process.Signal(c.signal)
				s.ends(first) // without the grace of an hour, which is not for runners
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
				s.must("plan", "wait", "waiting", "--timeout", "5m")
				s.must("plan", "wait", "other", "--timeout", "5m")
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

func TestATaskWhoseRunnerDiesRunsAgainBeforeItsLeaseIsOver(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, s *site) {
		d := s.daemon(nil, "--name", "n1", "--lease", long, "--task-runner", "sluice")
		s.submit(waiting)
		s.until("the task began", func() bool { return s.effect("a") == "1\n" })
		pid := s.runner()
		if pid == 0 {
			t.Fatal("there is no runner")
		}
		_ = syscall.Kill(pid, syscall.SIGKILL)
		s.until("it began again, long before the lease is over", func() bool { return s.effect("a") == "1\n2\n" })
		s.makeEffect("go")
		s.must("plan", "wait", "waiting", "--timeout", "5m")
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
		out, code := s.sluice("plan", "wait", "waiting", "--timeout", "5m")
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
		d := s.daemon(nil, "--name", "n1", "--threads", "3", "--task-runner", "sluice")
		s.submit("plan: many\ntasks:\n  each: {foreach: [1, 2, 3, 4, 5, 6], run: 'echo >> effects/began; until test -e effects/go; do sleep 0.05; done'}\n")
		running := func() (n int) {
			s.Helper()
			for _, i := range s.nodes() {
				if i.Runner {
					n++
				}
			}
			return n
		}
		s.until("three run", func() bool { return running() == 3 && strings.Count(s.effect("began"), "\n") == 3 })
		_ = syscall.Kill(s.runner(), syscall.SIGKILL)
		s.until("a fourth attempt begins", func() bool { return strings.Count(s.effect("began"), "\n") >= 4 })
		s.beats(d.Process.Pid, 5) // with which it would claim what else there is
		if n, began := running(), strings.Count(s.effect("began"), "\n"); n > 3 || began != 4 {
			t.Errorf("%d runners at once, and %d attempts; want the node's three threads, and a fourth attempt in place of the one that died", n, began)
		}
		s.makeEffect("go")
		s.must("plan", "wait", "many", "--timeout", "5m")
	})
}

func TestARunnerThatHangsIsEnded(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, s *site) {
		s.place(binary)
		d := s.daemon(nil, "--name", "n1", "--threads", "1", "--lease", long, "--task-runner", "sluice")
		s.says(d, "node started")
		s.leaseOfRunners("3s")
		s.submit("defaults: {max_rescues: 1000}\n" + waiting)
		s.until("the task began", func() bool { return s.effect("a") == "1\n" })
		// The task is lost when the lease of its runner is over. A runner that hangs would hold the node's only thread. A busy store may
		// make a runner give up before it is stopped: then the next one is.
		stopped := 0
		s.until("a runner that hangs is ended", func() bool {
			if pid := s.runner(); pid != 0 && pid != stopped {
				if p, err := os.FindProcess(pid); err == nil && s.paused(p) {
					stopped = pid
				}
			}
			return strings.Contains(d.said(), "its runner hung, and was ended")
		})
		s.leaseOfRunners(long)
		s.until("the task began again", func() bool { return strings.Count(s.effect("a"), "\n") > 1 })
		s.makeEffect("go")
		s.must("plan", "wait", "waiting", "--timeout", "5m")
	})
}
