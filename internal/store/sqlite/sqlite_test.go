package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/storetest"
	"github.com/seed-1177d267/sluice/plan"
)

// openTest opens a store on a file of its own, which a test cleans up.
func openTest(t testing.TB, o Options) *Store {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "sluice.db"), o)
}

func openAt(t testing.TB, path string, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStore(t *testing.T) {
	r := &recorder{texts: map[string]bool{}}
	if os.Getenv("SLUICE_TEST_WHOLE") != "" {
		sizes = storetest.Sizes{}
	}
	storetest.Run(t, storetest.Driver{
		Open: func(t testing.TB, o storetest.Options) store.Store {
			return &recorded{openTest(t, Options{Now: o.Now, Hook: o.Hook, retrySize: fewRetries(t)}), r}
		},
		Reopen: func(t testing.TB, s store.Store, o storetest.Options) store.Store {
			return &recorded{openAt(t, s.(*recorded).path, Options{Now: o.Now, Hook: o.Hook, retrySize: fewRetries(t)}), r}
		},
		Left:      func(t testing.TB, s store.Store) map[string]int { return left(t, s.(*recorded).Store) },
		Keep:      defaultKeep,
		OneWriter: true,
		Only:      only,
		Sizes:     sizes,
	})
	t.Run("no statement of a writer reads a table as a whole", func(t *testing.T) { checkStatements(t, r.texts) })
}

// fewRetries has retries take many transactions, but where cases measure what they cost.
func fewRetries(t testing.TB) int {
	if strings.Contains(t.Name(), "/scale/") {
		return 0
	}
	return 2
}

// left counts what is kept of work that is to be done, and what belongs to nothing that is there.
func left(t testing.TB, s *Store) map[string]int {
	t.Helper()
	found := map[string]int{}
	err := s.read(t.Context(), func(c *conn) error {
		count := func(what, from string) {
			if r := c.query("SELECT count(*) FROM " + from); r.one() {
				found[what] = int(r.int(0))
			}
		}
		count("jobs", "jobs")
		count("retries", "retries")
		count("tasks of retries", "retried")
		count("plans with a retry", "plans WHERE retry <> 0")
		count("items", "tasks WHERE of <> 0 AND of NOT IN (SELECT n FROM tasks)")
		count("tasks of plans", "tasks WHERE plan <> 0 AND plan NOT IN (SELECT n FROM plans)")
		count("foreachs that wait", "foreachs WHERE undone > 0 OR made < items")
		for _, of := range []string{"lists.of", "bodies.n", "outputs.n", "gates.n", "frozen.n", "foreachs.n", "logs.task", "kids.child"} {
			table, column, _ := strings.Cut(of, ".")
			count(table+" of no task", table+" WHERE "+column+" NOT IN (SELECT n FROM tasks)")
		}
		count("results of nothing", "results WHERE task NOT IN (SELECT n FROM tasks UNION SELECT -n FROM plans)")
		count("lists", "lists")
		count("edges from tasks that are gone", "kids WHERE parent NOT IN (SELECT n FROM tasks)")
		count("claims of others", "tasks WHERE status IN (-1, 0) AND instance NOT IN (SELECT n FROM instances WHERE gone = 0)")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func closeStore(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// task is what a test says of a task.
type task struct {
	name  string
	needs []string
	spec  plan.TaskSpec // what else
}

func manyTasks(n int) []task {
	tasks := make([]task, n)
	for i := range tasks {
		tasks[i].name = fmt.Sprint("task-", i)
	}
	return tasks
}

// compile makes a plan of the tasks, of plugin "demo", that nobody has submitted yet.
func compile(t testing.TB, s *Store, name string, tasks ...task) (plan.Plan, []plan.Task) {
	t.Helper()
	spec := plan.New(name)
	for _, x := range tasks {
		x.spec.Name, x.spec.Needs, x.spec.Plugin = x.name, x.needs, "demo"
		spec.Add(x.spec)
	}
	p, compiled, err := compiler.Compile(spec, time.Now(), func(n compiler.QueueNeed) (plan.QueueID, error) {
		q, err := s.EnsureQueue(t.Context(), plan.Queue{Name: n.Name, Plugin: n.Plugin, Unlimited: true})
		return q.ID, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return p, compiled
}

// newPlan submits a plan and makes it ready, unless it has no tasks.
func newPlan(t testing.TB, s *Store, name string, tasks ...task) plan.PlanID {
	t.Helper()
	p, compiled := compile(t, s, name, tasks...)
	if _, err := s.CreatePlan(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if len(tasks) == 0 {
		return p.ID
	}
	if err := s.AddTasks(t.Context(), p.ID, compiled); err != nil {
		t.Fatal(err)
	}
	if err := s.Ready(t.Context(), p.ID); err != nil {
		t.Fatal(err)
	}
	return p.ID
}

func register(t testing.TB, s *Store, node plan.NodeName) plan.InstanceID {
	t.Helper()
	i := plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: node}
	if err := s.Register(t.Context(), i); err != nil {
		t.Fatal(err)
	}
	return i.ID
}

// turn takes a turn that serves the plugin "demo".
func turn(t testing.TB, s *Store, x protocol.Turn) protocol.Turned {
	t.Helper()
	x.Plugins = []string{"demo"}
	did, err := s.Turn(t.Context(), x)
	if err != nil {
		t.Fatal(err)
	}
	return did
}

// runAll claims and ends tasks until there is nothing to claim; how says how each ends.
func runAll(t testing.TB, s *Store, i plan.InstanceID, how func(c protocol.ClaimedTask) protocol.Ending) (ran []string) {
	t.Helper()
	x := protocol.Turn{Instance: i, Slots: 100, Start: true}
	for {
		did := turn(t, s, x)
		x.Ended = nil
		for _, c := range did.Claimed {
			ran = append(ran, c.Name)
			e := how(c)
			e.Claim = c.Claim
			x.Ended = append(x.Ended, e)
		}
		if len(x.Ended) == 0 && !did.More {
			return ran
		}
	}
}

func named(t testing.TB, s *Store, p plan.PlanID, name string) plan.Task {
	t.Helper()
	found, err := s.Tasks(t.Context(), store.TaskQuery{Plan: p, Name: name, Params: true, Output: true, Needs: true})
	if err != nil || len(found) != 1 {
		t.Fatalf("tasks named %q: %v, %v; want one", name, found, err)
	}
	return found[0]
}
