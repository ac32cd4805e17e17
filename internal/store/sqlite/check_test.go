package sqlite

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/invariants"
	"github.com/seed-1177d267/sluice/plan"
)

// TestACheckFindsWhatIsDamaged damages one counter at a time of a store in which plans run.
func TestACheckFindsWhatIsDamaged(t *testing.T) {
	for _, c := range []struct{ name, damage, want string }{
		{"nothing", "SELECT 1", ""},
		{"the counts of a plan", "UPDATE plans SET held = held + 1", "the counts of plan nightly#1: Held is 2, not 1"},
		{"the counts of a queue", "UPDATE queues SET queued = 7", `queue "demo" says that it has 7 queued`},
		{"the parents that a task waits for", "UPDATE gates SET waits = waits + 256 WHERE n IN (SELECT n FROM tasks WHERE name = 'last')",
			"it is said to wait for 2, and waits for 1"},
		{"the items that have finished", "UPDATE foreachs SET undone = 0", "the counts of its items: undone is 0, not 2"},
		{"what a task waits for", "UPDATE tasks SET gate = 4 WHERE name = 'last'", "it is said to wait for the other items, and waits for its parents"},
		{"the place in a queue", "UPDATE tasks SET prio = prio + 5 WHERE status = -2", "is queued in another place"},
		{"a task that runs too early", "UPDATE tasks SET status = -2 WHERE name = 'last'", `invariant 1: its parent "copy" is held`},
		{"an index that is dropped", "DROP INDEX plans_retry", "the index plans_retry is not there"},
		{"a table that is dropped", "DROP TABLE logs", "the table logs is not there"},
		{"a definition", "DELETE FROM bodies WHERE n IN (SELECT n FROM tasks WHERE name = 'last')", "its definition and params are not there"},
		{"an edge", "DELETE FROM kids", "it needs 1 tasks, and 0 of them know it"},
		{"an output", "UPDATE tasks SET out_len = 5000 WHERE name = 'copy[0]'", "its output is not there"},
		{"a batch of a task of a plan", "INSERT INTO rolled (task, batch) SELECT n, x'65a1b2c3d4e5f60718293a4b' FROM tasks WHERE name = 'last'",
			"batch 65a1b2c3d4e5f60718293a4b is to hand over a task of the row"},
		{"an index", "PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = 'tasks_name'; PRAGMA writable_schema = RESET",
			"the database file: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := openTest(t, Options{})
			defer s.Close()
			newPlan(t, s, "nightly", task{name: "copy", spec: plan.TaskSpec{Foreach: &plan.Foreach{List: []byte(`[1,2]`)}}}, task{name: "last", needs: []string{"copy"}})
			i := register(t, s, "n1")
			turn(t, s, protocol.Turn{Instance: i, Slots: 1, Start: true})
			s.w.script(c.damage)
			if err := s.w.clear(); err != nil {
				t.Fatal(err)
			}
			faults, err := invariants.Check(t.Context(), s, true)
			if err != nil {
				t.Fatal(err)
			}
			if c.want == "" && len(faults) > 0 || c.want != "" && !slices.ContainsFunc(faults, func(f invariants.Fault) bool { return strings.Contains(f.Text, c.want) }) {
				t.Errorf("the faults are %+v, want one with %q", faults, c.want)
			}
		})
	}
}

// Versions before 21 repaired wrong counters as nodes swept. The migration counts all of them anew. Versions before 22 had a column for each
// setting of a queue.
func TestMigrationsCountAnewAndGatherSettings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice.db")
	s := openAt(t, path, Options{})
	newPlan(t, s, "nightly", task{name: "copy", spec: plan.TaskSpec{Foreach: &plan.Foreach{List: []byte(`[1,2]`)}}}, task{name: "last", needs: []string{"copy"}})
	s.w.script(`UPDATE plans SET held = 9, queued = 0; UPDATE queues SET queued = 7, active = 1; UPDATE gates SET waits = waits + 512;
		UPDATE foreachs SET undone = 1, items = 5; CREATE INDEX plans_open ON plans (n); CREATE INDEX plans_abandoned ON plans (n);
		CREATE INDEX tasks_apart ON tasks (n); ` + asSchema21 + `;
		UPDATE queues SET on_lost = 'fail', secrets = '["password","*_key"]', keep = '{"succeeded":3600000000000,"failed":-1}';
		INSERT INTO queues (id, name, plugin, threads, unlimited, sort, keep) VALUES (x'65a1b2c3d4e5f60718293a4b', 'a', 'exec', 1, 0, '', '{}'),
			(x'65a1b2c3d4e5f60718293a4c', 'b', 'exec', 1, 0, '', '');
		PRAGMA user_version = 20`)
	if err := s.w.clear(); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	s = openAt(t, path, Options{})
	defer closeStore(t, s)
	if faults, err := invariants.Check(t.Context(), s, true); err != nil || len(faults) > 0 {
		t.Errorf("after the migration: %+v, %v", faults, err)
	}
	queues, err := s.Queues(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for i := range queues {
		texts = append(texts, queues[i].Text())
	}
	if want := []string{"", "", `{"on_lost":"fail","secrets":["password","*_key"],"keep":{"succeeded":"1h0m0s","failed":"-1ns"}}`}; !slices.Equal(texts, want) {
		t.Errorf("the settings are %q, want %q", texts, want)
	}
}
