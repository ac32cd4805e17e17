//go:build unix

package main_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A daemon is a `sluice den` that runs, with what it logs.
type daemon struct {
	*exec.Cmd
	log  string // path
	done chan struct{}
}

func (s *site) daemon(env []string, args ...string) *daemon {
	s.Helper()
	log, err := os.CreateTemp(s.dir, "daemon-*.log")
	if err != nil {
		s.Fatal(err)
	}
	defer log.Close()
	d := &daemon{s.command(append([]string{"den", "--threads", "2", "--allow", "exec"}, args...)...), log.Name(), make(chan struct{})}
	d.Env = append(d.Env, env...)
	d.Stdout, d.Stderr = log, log
	if err := d.Start(); err != nil {
		s.Fatal(err)
	}
	go func() {
		_ = d.Wait()
		close(d.done)
	}()
	s.Cleanup(func() {
		_ = d.Process.Kill()
		<-d.done
	})
	return d
}

func (d *daemon) said() string {
	text, _ := os.ReadFile(d.log)
	return string(text)
}

// says waits until the log has the text.
func (s *site) says(d *daemon, text string) {
	s.Helper()
	if !await(20*time.Second, func() bool { return strings.Contains(d.said(), text) }) {
		s.Fatalf("the log has no %q:\n%s", text, d.said())
	}
}

// ends waits for the end and returns the exit code.
func (s *site) ends(d *daemon) int {
	s.Helper()
	select {
	case <-d.done:
	case <-time.After(30 * time.Second):
		s.Fatalf("the node does not end; its log:\n%s", d.said())
	}
	return d.ProcessState.ExitCode()
}

func (s *site) nodes() (all []struct {
	Name, State string
	PID         int
}) {
	s.Helper()
	if err := json.Unmarshal([]byte(s.must("node", "list", "-o", "json")), &all); err != nil {
		s.Fatal(err)
	}
	return all
}

func TestANodesNameBelongsToOneProcess(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		// Of several that start at once one gets it, and the others say which.
		const many = 4
		dens := make([]*daemon, many)
		for i := range dens {
			dens[i] = s.daemon(nil, "--name", "n1", "--lease", "6s")
		}
		over := func() (n int) {
			for _, d := range dens {
				select {
				case <-d.done:
					n++
				default:
				}
			}
			return n
		}
		if !await(20*time.Second, func() bool { return over() >= many-1 }) {
			t.Fatalf("%d of %d ended, want all but one", over(), many)
		}
		var first *daemon
		for _, d := range dens {
			select {
			case <-d.done:
			default:
				first = d
			}
		}
		if first == nil {
			t.Fatal("none has the name")
		}
		for _, d := range dens {
			if d == first {
				continue
			}
			if code := s.ends(d); code != 2 || !strings.Contains(d.said(), "a node named n1 runs already: process ") || !strings.Contains(d.said(), "another name with --name") {
				t.Errorf("ended with %d:\n%s", code, d.said())
			}
		}
		if all := s.nodes(); len(all) != 1 || all[0].PID != first.Process.Pid {
			t.Errorf("the nodes are %+v, want the one of process %d", all, first.Process.Pid)
		}

		file := filepath.Join(s.dir, "plan.yaml")
		if err := os.WriteFile(file, []byte("plan: long\ntasks:\n  a:\n    run: echo $SLUICE_ATTEMPT >> effects/a; [ $SLUICE_ATTEMPT != 1 ] || sleep 60\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		s.must("plan", "submit", file)
		began := func(attempts string) func() bool {
			return func() bool {
				text, _ := os.ReadFile(filepath.Join(s.dir, "effects", "a"))
				return string(text) == attempts
			}
		}
		if !await(20*time.Second, began("1\n")) {
			t.Fatal("the task does not begin")
		}

		// One that was killed is followed at once, and what it ran runs again. The one after it waits for one that is stopped.
		_ = first.Process.Kill()
		<-first.done
		killed := time.Now()
		second := s.daemon(nil, "--name", "n1", "--lease", "6s")
		if !await(20*time.Second, began("1\n2\n")) {
			t.Fatalf("the task does not run again; the log:\n%s", second.said())
		}
		if took := time.Since(killed); took > 5*time.Second {
			t.Errorf("it ran again after %v, want long before the lease of 6 s", took)
		}
		s.says(second, "rescued what an earlier process of this name had claimed")
		s.must("plan", "wait", "long", "--timeout", "20s")
		if err := second.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		stopped := time.Now()
		third := s.daemon(nil, "--name", "n1", "--lease", "6s")
		s.says(third, "waiting until it is known whether it lives")
		s.says(third, "node started")
		if took := time.Since(stopped); took < 4*time.Second {
			t.Errorf("the name of one that was stopped was taken after %v, want its lease of 6 s", took)
		}
		if err := second.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		if code := s.ends(second); code != 2 || !strings.Contains(second.said(), "a node named n1 runs already") {
			t.Errorf("the one that was stopped ended with %d:\n%s", code, second.said())
		}
		_ = third.Process.Signal(syscall.SIGTERM)
		if code := s.ends(third); code != 0 || strings.Contains(third.said(), "level=WARN") {
			t.Errorf("the last one ended with %d:\n%s", code, third.said())
		}
	})
}
