//go:build unix

package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/disbatchtest"
	"github.com/seed-1177d267/sluice/internal/polltest"
)

// These tests share a database between nodes of Sluice, which are real processes, and programs that do what Disbatch's do.

// The values that the real programs take for a free task, whatever the documents say.
var nobody = bson.A{nil, -1}

// shared is a site whose database other programs were at first: they made its indexes and its queue.
type shared struct {
	*site
	*disbatchtest.Database
	uri, database string
	queue         disbatchtest.Queue
}

// share makes a database with a queue "shared", whose plugin both makers' nodes have.
func share(t *testing.T, threads int) *shared {
	server := os.Getenv("SLUICE_TEST_MONGODB")
	if server == "" {
		t.Skip("SLUICE_TEST_MONGODB names no server: this did not run")
	}
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	s := &shared{uri: server, database: fmt.Sprintf("sluice-disbatch-%d-%d", os.Getpid(), time.Now().UnixNano())}
	u.Path = "/" + s.database
	s.site = newSite(t, u.String())
	if s.Database, err = disbatchtest.Open(server, s.database); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background() // the test's has ended when it is cleaned up
	t.Cleanup(func() {
		if err := s.Drop(ctx); err != nil {
			t.Error(err)
		}
		_ = s.Close(ctx)
	})
	s.no(s.EnsureIndexes(ctx))
	s.queue, err = s.AddQueue(ctx, "shared", "effect", threads)
	s.no(err)
	for _, folder := range []string{"got", "running", "plugins"} {
		s.no(os.Mkdir(filepath.Join(s.dir, folder), 0o700))
	}
	s.program(filepath.Join(s.dir, "plugins", "effect"), []byte(disbatchtest.Plugin))
	return s
}

func (s *shared) no(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// start starts a process whose last words are logged if the test fails, and returns what stops it; a second call does nothing.
func (s *shared) start(c *exec.Cmd, stop func()) func() {
	s.Helper()
	log, err := os.OpenFile(filepath.Join(s.dir, "den.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	s.no(err)
	defer log.Close()
	c.Stderr, c.Dir = log, s.dir
	s.no(c.Start())
	end := sync.OnceFunc(func() {
		stop()
		if err := c.Wait(); err != nil {
			s.Errorf("%s: %v", strings.Join(c.Args, " "), err)
		}
	})
	s.Cleanup(end)
	return end
}

// sluiceDen starts a node of Sluice, and returns what stops it.
func (s *shared) sluiceDen(name string, threads int) (stop func()) {
	s.Helper()
	c := s.command("den", "--name", name, "--threads", fmt.Sprint(threads), "--allow", "effect", "--plugin-dir", filepath.Join(s.dir, "plugins"))
	return s.start(c, func() { _ = c.Process.Signal(syscall.SIGTERM) })
}

// disbatchDen starts a node of another program, and returns what stops it.
func (s *shared) disbatchDen(n disbatchtest.Settings) (stop func()) {
	s.Helper()
	n.URI, n.Database, n.Queue, n.Dir = s.uri, s.database, "shared", s.dir
	if n.Lost == 0 {
		n.Lost = 5 * time.Minute
	}
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), n.Environment())
	in, err := c.StdinPipe()
	s.no(err)
	return s.start(c, func() { _ = in.Close() })
}

// node is another program's node that the test takes step by step.
func (s *shared) node(name, claims string) *disbatchtest.Node {
	return &disbatchtest.Node{Database: s.Database, Name: name, Claims: claims, Nobody: nobody}
}

// claim has another program's node claim a task, which there has to be.
func (s *shared) claim(n *disbatchtest.Node) bson.ObjectID {
	s.Helper()
	id, some, err := n.Claim(s.Context(), s.queue)
	s.no(err)
	if !some {
		s.Fatalf("there is nothing for %s to claim", n.Name)
	}
	return id
}

// run has another program's node claim and start a task.
func (s *shared) run(n *disbatchtest.Node) bson.ObjectID {
	s.Helper()
	id := s.claim(n)
	s.is("started", n.Start, id)
	return id
}

// is demands that a write of another program's finds its task.
func (s *shared) is(what string, write func(context.Context, bson.ObjectID) (bool, error), id bson.ObjectID) {
	s.Helper()
	is, err := write(s.Context(), id)
	s.no(err)
	if !is {
		s.Fatalf("the task could not be %s", what)
	}
}

// submit submits a plan of tasks of the shared queue. needs has the parents of each task.
func (s *shared) submit(plan string, needs map[string][]string, more ...string) {
	s.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "plan: %s\nqueue: shared\ntasks:\n", plan)
	for _, name := range slices.Sorted(maps.Keys(needs)) {
		fmt.Fprintf(&b, "  %s:\n    plugin: effect\n    params: {%s}\n", name, strings.Join(append([]string{"name: " + name}, more...), ", "))
		if len(needs[name]) > 0 {
			fmt.Fprintf(&b, "    needs: [%s]\n", strings.Join(needs[name], ", "))
		}
	}
	file := filepath.Join(s.dir, plan+".yaml")
	s.no(os.WriteFile(file, []byte(b.String()), 0o600))
	s.must("plan", "submit", file)
}

// ran returns the nodes that a task ran on.
func (s *shared) ran(name string) []string {
	text, err := os.ReadFile(filepath.Join(s.dir, "effects", name))
	if err != nil {
		return nil
	}
	return strings.Fields(string(text))
}

// got returns the inputs of a task by the names of its parents.
func (s *shared) got(name string) (needs map[string]json.RawMessage, args []json.RawMessage) {
	s.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "got", name))
	s.no(err)
	var params struct {
		Needs map[string]json.RawMessage
		Args  []json.RawMessage
	}
	if err := json.Unmarshal(text, &params); err != nil {
		s.Fatalf("params of %s: %v\n%s", name, err, text)
	}
	return params.Needs, params.Args
}

// runs waits until a task has begun on some node. It asks no process, so that it learns that soon.
func (s *shared) runs(name string) {
	s.Helper()
	s.until(name+" runs", func() bool { return len(s.ran(name)) > 0 })
}

// becomes waits until a task of a plan is in a state.
func (s *shared) becomes(plan, name, state string) {
	s.Helper()
	if !polltest.Holds(patience, func() bool { return s.state(plan)[name] == state }) {
		s.Fatalf("task %s is %s, want %s", name, s.state(plan)[name], state)
	}
}

// sample counts the running tasks until it is stopped. Then it returns the largest count.
func (s *shared) sample() (most func() int) {
	seen := 0
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			running, err := os.ReadDir(filepath.Join(s.dir, "running"))
			if err != nil {
				s.Error(err)
			}
			seen = max(seen, len(running))
			select {
			case <-end:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	stop := sync.OnceFunc(func() {
		close(end)
		<-ended
	})
	s.Cleanup(stop)
	return func() int {
		stop()
		return seen
	}
}

// TestNodesOfBothMakersShareAQueueAndAPlan has two nodes of Sluice and two of others, which claim
// in the two ways of their documents. All work on plain tasks and on a plan, in one queue.
func TestNodesOfBothMakersShareAQueueAndAPlan(t *testing.T) {
	t.Parallel()
	const (
		threads      = 6
		layers, wide = 6, 8
		work         = 50 * time.Millisecond
	)
	s := share(t, threads)
	ctx := t.Context()
	plain := 0
	add := func(n int) {
		for range n {
			_, err := s.AddTask(ctx, s.queue, bson.M{"name": fmt.Sprint("plain", plain), "work": work.Seconds()}, nobody[plain%2])
			s.no(err)
			plain++
		}
	}
	needs := map[string][]string{}
	for l := range layers {
		for i := range wide {
			var parents []string
			for k := range min(l, 1) * 3 {
				parents = append(parents, fmt.Sprintf("t%d-%d", l-1, (i+k)%wide))
			}
			needs[fmt.Sprintf("t%d-%d", l, i)] = parents
		}
	}
	most := s.sample()
	names := []string{"sluice1", "sluice2", "perl4", "perl1"}
	var stops []func()
	for _, name := range names[:2] {
		stops = append(stops, s.sluiceDen(name, 4))
	}
	for i, name := range names[2:] {
		stops = append(stops, s.disbatchDen(disbatchtest.Settings{
			Name: name, Claims: []string{disbatchtest.FindOneAndUpdate, disbatchtest.Update}[i], Nobody: nobody, Threads: 4, Work: work, Pause: 300 * time.Millisecond,
		}))
	}
	// The last node to start must get its share too: the plan comes when each node has begun a
	// task.
	some := map[string]bool{}
	if !polltest.Holds(time.Minute, func() bool {
		add(1)
		for i := range plain {
			for _, on := range s.ran(fmt.Sprint("plain", i)) {
				some[on] = true
			}
		}
		return len(some) == len(names)
	}) {
		t.Fatalf("of %d tasks nodes %v have run some, want each of %v", plain, slices.Sorted(maps.Keys(some)), names)
	}
	s.submit("layered", needs, fmt.Sprintf("work: %v", work.Seconds()))
	add(150)
	s.must("plan", "wait", "layered", "--timeout", "5m")
	left := 0
	if !polltest.Holds(3*time.Minute, func() bool {
		all, err := s.Tasks(ctx, s.queue)
		s.no(err)
		left = len(slices.DeleteFunc(all, func(t disbatchtest.Task) bool { return t.Status > 0 }))
		return left == 0
	}) {
		t.Fatalf("%d tasks have not finished", left)
	}
	for _, stop := range stops {
		stop()
	}
	// Each of the others' nodes counts, and then claims: by then somebody else may have taken the last thread.
	if n := most(); n > threads+2 {
		t.Errorf("%d tasks ran at once; the queue has %d threads, and two nodes count before they claim", n, threads)
	} else {
		t.Logf("at most %d tasks ran at once, with %d threads", n, threads)
	}

	all, err := s.Tasks(ctx, s.queue)
	s.no(err)
	if len(all) != plain+layers*wide {
		t.Errorf("there are %d tasks, want %d", len(all), plain+layers*wide)
	}
	by, parents := map[string]int{}, map[string]int{}
	for _, task := range all {
		name := task.Params.Lookup("name").StringValue()
		ran := s.ran(name)
		if len(ran) != 1 || task.Status != disbatchtest.Succeeded || task.Node != ran[0] {
			t.Errorf("%s ran on %v, and ended with %d on %v", name, ran, task.Status, task.Node)
			continue
		}
		by[ran[0]]++
		if task.Name == "" {
			continue
		}
		given, args := s.got(name)
		for k, p := range needs[name] {
			want := fmt.Sprintf(`{"of":%q}`, p)
			if k >= len(args) || !same(given[p], want) || !same(args[k], want) {
				t.Errorf("%s got %s and %s of %s, want %s", name, given[p], args, p, want)
			}
			if on := s.ran(p); len(on) == 1 {
				parents[on[0]]++
			}
		}
	}
	for _, name := range names {
		if by[name] == 0 {
			t.Errorf("%s ran no task: the test needs some", name)
		}
	}
	if ours, theirs := parents[names[0]]+parents[names[1]], parents[names[2]]+parents[names[3]]; ours == 0 || theirs == 0 {
		t.Errorf("nodes of Sluice ran parents of %d tasks, the others of %d: the test needs some", ours, theirs)
	}
	t.Logf("tasks: %v; parents: %v", by, parents)
}

// same compares JSON values.
func same(got json.RawMessage, want string) bool {
	var g, w any
	return json.Unmarshal(got, &g) == nil && json.Unmarshal([]byte(want), &w) == nil && reflect.DeepEqual(g, w)
}

// TestOddHabitsOfOtherNodes takes other programs' nodes step by step, with a node of Sluice on the
// same database.
func TestOddHabitsOfOtherNodes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		threads int
		run     func(s *shared)
	}{
		{"a status comes before its output, which the children wait for", 9, func(s *shared) {
			s.submit("p", map[string][]string{"a": nil, "b": {"a"}, "c": nil, "d": {"c"}})
			perl := s.node("perl", disbatchtest.FindOneAndUpdate)
			a, c := s.run(perl), s.run(perl)
			defer s.sluiceDen("n1", 2)()
			s.submit("first", map[string][]string{"up": nil})
			s.runs("up")
			s.is("ended", succeeds(perl), a) // its output has to follow within ten seconds
			s.is("ended", succeeds(perl), c)
			s.no(perl.Output(s.Context(), c, `{"of": "c, by perl"}`, ""))
			s.runs("d") // so that a sweep has seen both
			all, err := s.Tasks(s.Context(), s.queue)
			s.no(err)
			for _, t := range all {
				if t.Name == "b" && t.Status != disbatchtest.Held {
					s.Errorf("b has status %d before the output of a is there", t.Status)
				}
			}
			s.no(perl.Output(s.Context(), a, `{"of": "a, by perl"}`, ""))
			s.must("plan", "wait", "p", "--timeout", "5m")
			s.gave("b", `{"of":"a, by perl"}`)
		}},
		{"DEN 1.1 writes status and output at once, and never that it is complete", 9, func(s *shared) {
			s.submit("p", map[string][]string{"a": nil, "b": {"a"}})
			perl := s.node("perl", disbatchtest.Update)
			a := s.run(perl)
			s.no(perl.Conclude(s.Context(), a, disbatchtest.Succeeded, "a line\n", ""))
			defer s.sluiceDen("n1", 2)()
			s.must("plan", "wait", "p", "--timeout", "5m")
			s.gave("b", `"a line\n"`)
		}},
		{"DEN 1.1 by the letter takes only tasks whose node is -1, and none of a plan", 9, func(s *shared) {
			s.submit("p", map[string][]string{"a": nil})
			letter := s.node("perl", disbatchtest.Update)
			letter.Nobody = bson.A{-1}
			want := map[bson.ObjectID]bool{}
			for i := range 10 {
				id, err := s.AddTask(s.Context(), s.queue, bson.M{"name": fmt.Sprint("plain", i)}, nobody[i%2])
				s.no(err)
				want[id] = i%2 == 1
			}
			for range 5 {
				if id := s.claim(letter); !want[id] {
					s.Errorf("it claimed task %s, whose node was null, or twice", id.Hex())
				} else {
					want[id] = false
					s.no(letter.Conclude(s.Context(), id, disbatchtest.Succeeded, "", ""))
				}
			}
			if _, some, err := letter.Claim(s.Context(), s.queue); err != nil || some {
				s.Errorf("it claimed another task (%v)", err)
			}
			defer s.sluiceDen("n1", 2)()
			s.must("plan", "wait", "p", "--timeout", "5m")
			for i := range 10 {
				name, n := fmt.Sprint("plain", i), 1-i%2
				if !polltest.Holds(patience, func() bool { return len(s.ran(name)) == n }) {
					s.Errorf("%s ran on %v, want %d nodes of Sluice", name, s.ran(name), n)
				}
			}
		}},
		{"a node gives up what it had claimed, by its name, and its runner comes too late", 9, func(s *shared) {
			s.submit("p", map[string][]string{"a": nil, "b": {"a"}})
			stop := s.disbatchDen(disbatchtest.Settings{Name: "perl", Nobody: nobody, Threads: 1, Stuck: true})
			s.becomes("p", "a", "claimed")
			stop()
			all, err := s.Tasks(s.Context(), s.queue)
			s.no(err)
			a := all[slices.IndexFunc(all, func(t disbatchtest.Task) bool { return t.Name == "a" })].ID
			// The same node once more: it finds its old claims, waits for the time that would be
			// five minutes, and gives them up.
			stop = s.disbatchDen(disbatchtest.Settings{Name: "perl", Nobody: nobody, Threads: 1, Stuck: true, Lost: time.Second})
			s.becomes("p", "a", "orphaned")
			stop()
			defer s.sluiceDen("n1", 2)()
			s.must("plan", "wait", "p", "--timeout", "5m")
			late := s.node("perl", disbatchtest.FindOneAndUpdate)
			for what, write := range map[string]func(context.Context, bson.ObjectID) (bool, error){"started": late.Start, "ended": succeeds(late)} {
				if is, err := write(s.Context(), a); err != nil || is {
					s.Errorf("a task that another node ran was %s once more (%v)", what, err)
				}
			}
			s.gave("b", `{"of":"a"}`)
			s.once("a", "b")
		}},
		{"a late end that names the task alone stands, and what runs meanwhile is refused", 9, func(s *shared) {
			s.submit("p", map[string][]string{"a": nil, "b": {"a"}}, "until: effects/go")
			perl := s.node("perl", disbatchtest.Update)
			a := s.claim(perl)
			s.until("it gives the task up", func() bool { // which it does only of what was claimed before this millisecond
				n, err := perl.Orphan(s.Context(), 0)
				s.no(err)
				return n == 1
			})
			defer s.sluiceDen("n1", 2)()
			s.runs("a")
			s.no(perl.Conclude(s.Context(), a, disbatchtest.Succeeded, `"late"`, ""))
			s.makeEffect("go") // for who runs a meanwhile
			s.must("plan", "wait", "p", "--timeout", "5m")
			s.gave("b", `"late"`)
			s.once("a", "b")
			if log, err := os.ReadFile(filepath.Join(s.dir, "den.log")); err != nil || !strings.Contains(string(log), a.Hex()) {
				s.Errorf("the node does not say that it lost task %s (%v)", a.Hex(), err)
			}
		}},
		{"a node that counts before it claims exceeds a limit by one, and Sluice claims nothing then", 2, func(s *shared) {
			needs := map[string][]string{}
			for i := range 12 {
				needs[fmt.Sprint("t", i)] = nil
			}
			perl := s.node("perl", disbatchtest.FindOneAndUpdate)
			if room, err := perl.Room(s.Context(), s.queue); err != nil || !room {
				s.Fatalf("there is no room before anything runs (%v)", err)
			}
			defer s.sluiceDen("n1", 4)()
			s.submit("p", needs, "work: 0.7")
			begun := func() int {
				effects, err := os.ReadDir(filepath.Join(s.dir, "effects"))
				s.no(err)
				return len(effects)
			}
			s.until("the node of Sluice fills the queue", func() bool { return begun() >= 2 })
			id := s.run(perl) // it has counted, and now it claims: three run
			active := func() map[bson.ObjectID]bool {
				all, err := s.Tasks(s.Context(), s.queue)
				s.no(err)
				active := map[bson.ObjectID]bool{}
				for _, t := range all {
					active[t.ID] = t.ID != id && (t.Status == disbatchtest.Claimed || t.Status == disbatchtest.Running)
				}
				return active
			}
			before := active()
			s.until("what Sluice had claimed before has ended", func() bool {
				for id, is := range active() {
					if is && before[id] {
						return false
					}
				}
				return true
			})
			most, first := s.sample(), begun() // the one of the other program has no effect
			s.until("the node of Sluice claims two more, beside another program's", func() bool { return begun() >= first+2 })
			if n := most(); n != 1 {
				s.Errorf("Sluice ran %d tasks at once beside one of another program's, want 1: the queue has 2 threads", n)
			}
			s.is("ended", succeeds(perl), id)
			s.no(perl.Output(s.Context(), id, "", ""))
			s.must("plan", "wait", "p", "--timeout", "5m")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // most of it is waiting
			c.run(share(t, c.threads))
		})
	}
}

// succeeds ends a task as succeeded.
func succeeds(n *disbatchtest.Node) func(context.Context, bson.ObjectID) (bool, error) {
	return func(ctx context.Context, id bson.ObjectID) (bool, error) {
		return n.End(ctx, id, disbatchtest.Succeeded)
	}
}

// gave demands that a task was given the output by the one task that it needs.
func (s *shared) gave(name, want string) {
	s.Helper()
	needs, args := s.got(name)
	if len(needs) != 1 || len(args) != 1 || !same(args[0], want) {
		s.Errorf("%s got %s, want %s", name, args, want)
	}
}

// once demands that tasks ran once.
func (s *shared) once(names ...string) {
	s.Helper()
	for _, name := range names {
		if ran := s.ran(name); len(ran) != 1 {
			s.Errorf("%s ran on %v, want once", name, ran)
		}
	}
}
