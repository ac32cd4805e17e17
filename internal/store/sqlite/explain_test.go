package sqlite

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// recorder keeps which statements the writers of some stores ran.
type recorder struct {
	mu    sync.Mutex
	texts map[string]bool
}

// recorded is a store that, as it closes, has its writer's statements kept.
type recorded struct {
	*Store
	by *recorder
}

func (s *recorded) Close() error {
	s.by.mu.Lock()
	for text := range s.w.stmts {
		s.by.texts[text] = true
	}
	s.by.mu.Unlock()
	return s.Store.Close()
}

// explain returns the steps of SQLite's query plan.
func explain(t *testing.T, c *conn, statement string) []string {
	t.Helper()
	var steps []string
	for r := c.query("EXPLAIN QUERY PLAN " + statement); r.next(); { // its parameters are NULL
		steps = append(steps, r.text(3))
	}
	if err := c.clear(); err != nil {
		t.Fatalf("%v in %s", err, statement)
	}
	return steps
}

// A writer may scan these: the list of numbers that a statement was given; the rows that another
// part of it found, within a limit; partial indexes of tasks in flight; the oldest changes, within
// a limit; and, for a person's request, more.
var mayScan = []string{
	"j", "l", "json_each", "CONSTANT", "w", "(subquery-1)", "tasks USING INDEX tasks_mine", "plans USING INDEX plans_closed", "plans USING INDEX plans_leaving", "changes",
	"plans USING INDEX plans_retry", "p USING INDEX plans_retry", // plans that are being retried
	"retries",                                // a row for each retry that is being made
	"jumps",                                  // a row for each time that the clock was set forward
	"instances",                              // Expire, and Prune
	"queues",                                 // Expire
	"t USING INDEX tasks_mine",               // Sweep, for claims of instances that are gone
	"tasks USING COVERING INDEX tasks_ready", // SetQueue
	"whole",                                  // DeleteQueue, and AddTasks of tasks that are there
}

func checkStatements(t *testing.T, texts map[string]bool) {
	s := openTest(t, Options{})
	defer s.Close()
	for _, text := range slices.Sorted(maps.Keys(texts)) {
		switch word, _, _ := strings.Cut(text, " "); word {
		case "BEGIN", "COMMIT", "ROLLBACK", "PRAGMA", "INSERT", "REPLACE":
			continue
		}
		if strings.Contains(text, "sqlite_schema") || text == outside { // as the file is opened, or migrated
			continue
		}
		if bareLimit.MatchString(text) {
			t.Errorf("SQLite plans it anew for each new limit, see conn: %s", text)
		}
		steps := explain(t, s.w, text)
		for _, step := range steps {
			what, scan := strings.CutPrefix(step, "SCAN ")
			if scan && !slices.ContainsFunc(mayScan, func(may string) bool { return what == may || strings.HasPrefix(what, may+" ") }) {
				t.Errorf("%s\nin %s\nall of it:\n%s", step, text, strings.Join(steps, "\n"))
			}
		}
	}
}

var bareLimit = regexp.MustCompile(`LIMIT \?\d*($|[^\d +]| [^+])`)

func TestEachHotStatementUsesItsIndex(t *testing.T) {
	s := openTest(t, Options{})
	defer s.Close()
	children, _ := taskQuery(&store.TaskQuery{Plan: plan.PlanID{ID: plan.ID{1}}, Parent: plan.TaskID{ID: plan.ID{1}}})
	about, in := taskQuery(&store.TaskQuery{NoPlan: true, Subject: "order 7", Statuses: []plan.Status{plan.Held, plan.Running}, After: plan.TaskID{ID: plan.ID{1}}})
	for _, c := range []struct {
		name, statement string
		want            []string
	}{
		{"a reader finds unfinished tasks by their subject, in the order of their ids", "SELECT t.name FROM tasks AS t" + in + about.String() + " ORDER BY t.id LIMIT ? + 0",
			[]string{"SEARCH t USING INDEX tasks_subject (subject=? AND id>?)"}},
		{"a reader finds children by their parent", "SELECT t.name FROM tasks AS t" + children.String() + " ORDER BY t.id LIMIT ? + 0", []string{
			"SEARCH t USING INTEGER PRIMARY KEY (rowid=?)", "LIST SUBQUERY 3", "SEARCH kids USING PRIMARY KEY (parent=?)", "SCALAR SUBQUERY 2",
			"SEARCH tasks USING COVERING INDEX tasks_id (id=?)", "SCALAR SUBQUERY 1", "SEARCH plans USING COVERING INDEX sqlite_autoindex_plans_1 (id=?)",
			"USE TEMP B-TREE FOR ORDER BY",
		}},
		{"a claim reads the index of what is queued, in its order", ofLane + queuedUp, []string{"SEARCH tasks USING COVERING INDEX tasks_ready (queue=? AND lane=?)"}},
		{"so does one that begins with the newest", ofPlan + compared + queuedDown, []string{"SEARCH tasks USING INDEX tasks_ready (queue=? AND lane=?)"}},
		{"and finds the next plan that has work in a queue", nextLane, []string{"SEARCH tasks USING COVERING INDEX tasks_ready (queue=? AND lane>?)"}},
		{"and whether queues have work, and shares of their own", beforeClaim, []string{
			"SCAN CONSTANT ROW", "SCALAR SUBQUERY 1", "SCAN queues USING INDEX queues_open", "SCALAR SUBQUERY 2", "SCAN queues USING INDEX queues_weighted",
			"SCALAR SUBQUERY 3", "SEARCH nodes USING PRIMARY KEY (name=?)",
		}},
		{"release finds children by their parent", kidsOfMany, []string{
			"SCAN j VIRTUAL TABLE INDEX 1:", "SEARCH k USING PRIMARY KEY (parent=?)", "SEARCH g USING INTEGER PRIMARY KEY (rowid=?)",
		}},
		{"and goes on behind the last one", kidsOfOne, []string{
			"SEARCH k USING PRIMARY KEY (parent=? AND child>?)", "SEARCH g USING INTEGER PRIMARY KEY (rowid=?)",
		}},
		{"a sweep finds delays that are over by their instant", dueDelays, []string{"SEARCH t USING INDEX tasks_delay (not_before<?)"}},
		{"and the next one that will be", nextDelay, []string{"SEARCH tasks USING COVERING INDEX tasks_delay"}},
		{"what is to be deleted is found without a look at what is kept", "SELECT " + planColumns + " FROM plans " + overPlans,
			[]string{"SEARCH plans USING INDEX plans_over (<expr><?)", "CORRELATED SCALAR SUBQUERY 1", "SCAN jumps"}},
		{"also where the plan does not say how long", "SELECT " + planColumns + " FROM plans " + oldPlans,
			[]string{"SEARCH plans USING INDEX plans_old (ended>? AND ended<?)", "CORRELATED SCALAR SUBQUERY 1", "SCAN jumps"}},
		{"and tasks of no plan, of the queues and statuses that are not kept for ever", overTasks, []string{
			"SCAN j VIRTUAL TABLE INDEX 1:", "SEARCH t USING INDEX tasks_over (queue=? AND <expr>=? AND ended>? AND ended<?)",
			"CORRELATED SCALAR SUBQUERY 2", "SEARCH k USING PRIMARY KEY (parent=?)", "CORRELATED SCALAR SUBQUERY 3", "SEARCH r USING INTEGER PRIMARY KEY (rowid=?)",
			"CORRELATED SCALAR SUBQUERY 4", "SCAN jumps", "CORRELATED SCALAR SUBQUERY 1", "SEARCH logs USING PRIMARY KEY (task=?)",
		}},
		{"and tasks that are handed over, in the order of their ends", tasksToRoll, []string{
			"SEARCH t USING INDEX tasks_over (queue=? AND <expr>=? AND ended>? AND ended<?)",
			"CORRELATED SCALAR SUBQUERY 1", "SEARCH k USING PRIMARY KEY (parent=?)", "CORRELATED SCALAR SUBQUERY 2", "SEARCH r USING INTEGER PRIMARY KEY (rowid=?)",
			"CORRELATED SCALAR SUBQUERY 3", "SCAN jumps",
		}},
		{"and tasks of batches that were received", receivedTasks, []string{
			"SEARCH r USING COVERING INDEX rolled_batch (batch=?)", "SEARCH t USING INTEGER PRIMARY KEY (rowid=?)",
			"CORRELATED SCALAR SUBQUERY 1", "SEARCH logs USING PRIMARY KEY (task=?)",
		}},
		{"and deletions that were left half-way", "SELECT " + planColumns + " FROM plans " + deletingPlans, []string{"SCAN plans USING INDEX plans_leaving"}},
		{"and the claims of an instance", activeOf, []string{"SEARCH t USING INDEX tasks_mine (instance=?)"}},
		{"and who has claims among all that is claimed", claimants, []string{
			"SCAN t USING INDEX tasks_mine", "SEARCH i USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN", "USE TEMP B-TREE FOR DISTINCT",
		}},
		{"and those of a limited node among all that is claimed", activeOn, []string{
			"SCAN tasks USING INDEX tasks_mine", "SEARCH instances USING INTEGER PRIMARY KEY (rowid=?)",
		}},
		{"tasks of finally are found by their plan", finallyOf, []string{
			"SEARCH t USING INDEX tasks_finally (plan=?)", "SEARCH g USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN",
		}},
		{"roots are found by their plan", rootsOf, []string{
			"SEARCH t USING INDEX tasks_root (plan=?)", "SEARCH g USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN",
		}},
		{"queues that offer nothing are not read", openQueues, []string{"SEARCH queues USING INDEX queues_open (n>?)"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := explain(t, s.w, c.statement); !slices.Equal(got, c.want) {
				t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}
