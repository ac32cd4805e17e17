//go:build unix

package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAnotherNodeBalancesWhenOneIsKilled is about the role of one node at a time, on real stores and processes.
func TestAnotherNodeBalancesWhenOneIsKilled(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, s *site) {
		write := func(name, text string) string {
			t.Helper()
			path := filepath.Join(s.dir, name)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}
		config := write("config.json", `{"mongohost": "127.0.0.1:1", "database": "x", "balance": {"enabled": true, "log": true}}`)
		s.must("queue", "create", "bulk", "--plugin", "demo", "--threads", "0")
		s.must("plan", "submit", write("plan.yaml", "plan: p\ndefaults: {queue: bulk, plugin: demo}\ntasks: {a: {}, b: {}, c: {}, d: {}}\n"))
		s.must("balance", "set", write("balance.json", `{"queues": [["bulk"]], "max_tasks": {"* 00:00": 3}}`))
		start := func(name string) *exec.Cmd {
			t.Helper()
			log, err := os.Create(filepath.Join(s.dir, name+".log"))
			if err != nil {
				t.Fatal(err)
			}
			defer log.Close()
			c := s.command("den", "--name", name, "--config", config, "--store", s.store, "--allow", "exec", "--lease", long) // it runs none of these tasks
			c.Stderr, c.Dir = log, s.dir
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = c.Process.Kill()
				_ = c.Wait()
				if text, err := os.ReadFile(log.Name()); t.Failed() && err == nil {
					t.Logf("%s said\n%s", name, text)
				}
			})
			return c
		}
		balances := func(name string) bool {
			text, err := os.ReadFile(filepath.Join(s.dir, name+".log"))
			if err != nil {
				t.Fatal(err)
			}
			return strings.Contains(string(text), "this node balances the queues")
		}
		threads := func(want string) {
			t.Helper()
			s.until("the queue has "+want+" threads", func() bool {
				return strings.Contains(s.must("queue", "list", "-o", "json"), `"threads": `+want+",")
			})
		}
		first := start("first")
		threads("3")
		second := start("second")
		s.beats(second.Process.Pid, 3) // with each of them it asks for the role
		if !balances("first") || balances("second") {
			t.Fatalf("the first node balances: %v, the second one: %v; want the first one alone", balances("first"), balances("second"))
		}
		if err := first.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		s.must("balance", "set", write("balance.json", `{"queues": [["bulk"]], "max_tasks": {"* 00:00": 2}}`))
		threads("2")
		if !balances("second") {
			t.Error("the second node does not say that it balances")
		}
	})
}
