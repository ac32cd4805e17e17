//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

type faultyTask struct {
	Name, State, Node, Detail string
	Attempt                   int
}

// A node that cannot begin tasks is the fastest of all, and would drain the queue.
func TestANodeThatCannotBeginTasksLeavesThemToOthers(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, s *site) {
		bad := s.daemon([]string{"TMPDIR=/nonexistent"}, "--name", "bad", "--threads", "4")
		good := s.daemon([]string{"FAULT_TEST_TOKEN=secret"}, "--name", "good", "--threads", "1")
		s.says(bad, "node started")
		s.says(good, "node started")
		file := filepath.Join(s.dir, "plan.yaml")
		text := fmt.Sprintf(`plan: faults
tasks:
  item:
    foreach: [%s1]
    retry: {attempts: 3}
    env: {TOKEN: {from_env: FAULT_TEST_TOKEN}}
    run: test "$TOKEN" = secret && until test -e effects/go; do sleep 0.05; done
`, strings.Repeat("1, ", 19))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s.must("plan", "submit", file)
		s.until("the bad node says that it leaves the queue alone", func() bool {
			list := s.must("node", "list")
			return strings.Contains(list, "node bad leaves queue exec to other nodes") && strings.Contains(list, "/nonexistent")
		})
		s.says(bad, "leaves a queue to other nodes")
		s.makeEffect("go")
		s.must("plan", "wait", "faults")
		var tasks []faultyTask
		if err := json.Unmarshal([]byte(s.must("task", "list", "--plan", "faults", "-o", "json")), &tasks); err != nil {
			t.Fatal(err)
		}
		tasks = slices.DeleteFunc(tasks, func(t faultyTask) bool { return t.Name == "item" })
		if len(tasks) != 20 {
			t.Errorf("%d items, want 20", len(tasks))
		}
		for _, task := range tasks {
			if task.State != "succeeded" || task.Attempt != 1 || task.Node != "good" || task.Detail != "" {
				t.Errorf("%+v, want it to have succeeded with the first attempt on good", task)
			}
		}
	})
}
