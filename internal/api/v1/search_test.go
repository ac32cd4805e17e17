package v1_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/api/v1"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// large makes a plan of n tasks t-0, t-1, …, where each later task needs t-0. It returns the plan
// with its queue's id.
func (s *site) large(t *testing.T, name string, n int) plan.PlanID {
	t.Helper()
	ctx := t.Context()
	q, err := s.st.EnsureQueue(ctx, plan.Queue{ID: plan.QueueID{ID: plan.NewID(time.Now())}, Name: "q", Plugin: "demo", Unlimited: true})
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.st.CreatePlan(ctx, plan.Plan{ID: plan.PlanID{ID: plan.NewID(time.Now())}, Name: name})
	if err != nil {
		t.Fatal(err)
	}
	tasks := make([]plan.Task, n)
	for i := range tasks {
		tasks[i] = plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: fmt.Sprintf("t-%d", i), Queue: q.ID}
		if i > 0 {
			tasks[i].Needs = []plan.TaskID{tasks[0].ID}
		}
	}
	if err := s.st.AddTasks(ctx, p.ID, tasks); err != nil {
		t.Fatal(err)
	}
	if err := s.st.Ready(ctx, p.ID); err != nil {
		t.Fatal(err)
	}
	return p.ID
}

// run claims what is queued in a plan, and ends each task as end says.
func (s *site) run(t *testing.T, p plan.PlanID, end func(name string, e *protocol.Ending)) {
	t.Helper()
	ctx := t.Context()
	i := plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: "n", Host: "h", Lease: time.Minute, Threads: 1000, Plugins: []string{"demo"}}
	if err := s.st.Register(ctx, i); err != nil {
		t.Fatal(err)
	}
	var ends []protocol.Ending
	for {
		turned, err := s.st.Turn(ctx, protocol.Turn{Instance: i.ID, Plan: p, Slots: 1000, Start: true, Ended: ends, Plugins: i.Plugins})
		if err != nil {
			t.Fatal(err)
		}
		if len(turned.Claimed) == 0 && !turned.More {
			return
		}
		ends = nil
		for _, c := range turned.Claimed {
			e := protocol.Ending{Claim: c.Claim, Status: plan.Succeeded}
			end(c.Name, &e)
			ends = append(ends, e)
		}
	}
}

func TestTasksAreSearchedByPartOfTheirName(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		s.large(t, "p", 2500)
		var names []string
		for next := ""; ; {
			var found struct {
				Tasks []api.Task
				Next  plan.TaskID
			}
			s.must("GET", "/plans/p/search?text=T-24&state=held&limit=50&after="+next, "", &found)
			for _, f := range found.Tasks {
				names = append(names, f.Name)
			}
			if found.Next.IsZero() {
				break
			}
			next = found.Next.String()
		}
		if len(names) != 1+10+100 || names[0] != "t-24" || names[110] != "t-2499" { // 24, 240 to 249, 2400 to 2499
			t.Errorf("found %d: %v", len(names), names)
		}
		if status, text := s.ask("GET", "/plans/p/search?state=odd", ""); status != 422 {
			t.Errorf("%d %s", status, text)
		}
	})
}

func TestPlansAreSearchedByPartOfTheirName(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		for i := range 7 {
			s.large(t, fmt.Sprintf("Nightly-%d", i%2), 1)
		}
		var found struct {
			Plans []api.Plan
			Next  plan.PlanID
		}
		s.must("GET", "/search/plans?text=nightly-1", "", &found)
		if len(found.Plans) != 3 || !found.Next.IsZero() || found.Plans[0].Run != 3 {
			t.Errorf("found %+v", found)
		}
		if s.must("GET", "/search/plans?text=nightly-1%20%232&state=running", "", &found); len(found.Plans) != 0 {
			t.Errorf("found %+v", found)
		}
		s.must("GET", "/search/plans?text=ly-1%232", "", &found)
		if len(found.Plans) != 1 || found.Plans[0].Run != 2 {
			t.Errorf("a run: found %+v", found.Plans)
		}
		s.must("GET", "/search/plans?text=nightly&limit=4", "", &found)
		first := len(found.Plans)
		s.must("GET", "/search/plans?text=nightly&limit=4&before="+found.Next.String(), "", &found)
		if first != 4 || len(found.Plans) != 3 {
			t.Errorf("pages of %d and %d", first, len(found.Plans))
		}
	})
}

func TestChildrenAreThoseThatNeedIt(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		s.large(t, "p", 1500)
		var tasks struct{ Tasks []api.Task }
		s.must("GET", "/plans/p/tasks?limit=2", "", &tasks)
		var found struct {
			Tasks []api.Task
			More  bool
		}
		s.must("GET", "/tasks/"+tasks.Tasks[0].ID.String()+"/children?limit=1499", "", &found)
		if len(found.Tasks) != 1499 || found.More || found.Tasks[1498].Name != "t-1499" {
			t.Errorf("%d children, more %v", len(found.Tasks), found.More)
		}
		if s.must("GET", "/tasks/"+tasks.Tasks[0].ID.String()+"/children?limit=3", "", &found); len(found.Tasks) != 3 || !found.More {
			t.Errorf("%d children of at most 3, more %v", len(found.Tasks), found.More)
		}
		found.More = false
		if s.must("GET", "/tasks/"+tasks.Tasks[1].ID.String()+"/children", "", &found); len(found.Tasks) != 0 || found.More {
			t.Errorf("a leaf has %d children", len(found.Tasks))
		}
		if status, _ := s.ask("GET", "/tasks?parent="+tasks.Tasks[0].ID.String(), ""); status != 422 {
			t.Errorf("children without a plan: %d, want 422", status)
		}
		if status, _ := s.ask("GET", "/tasks/"+strings.Repeat("1", 24)+"/children", ""); status != 404 {
			t.Errorf("of no task: %d", status)
		}
	})
}

func TestFailuresAreCountedByKind(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		p := s.large(t, "p", 41)
		s.run(t, p, func(name string, e *protocol.Ending) {
			var n int
			_, _ = fmt.Sscanf(name, "t-%d", &n)
			switch {
			case n == 0:
			case n%4 == 1:
				e.Status, e.Reason, e.Detail, e.Exit = plan.Failed, plan.ReasonError, fmt.Sprintf("cannot reach 10.0.0.%d:993 for %q", n, name), nil
			case n%4 == 2:
				e.Status, e.Exit, e.Detail = plan.Failed, &plan.Exit{Code: n%8 + 1}, fmt.Sprintf("exit status %d", n%8+1)
			}
		})
		var found struct {
			Failed int
			Kinds  []struct {
				Kind, State, Title, Detail string
				Count                      int
				Tasks                      []struct{ Name string }
			}
		}
		s.must("GET", "/plans/p/failures", "", &found)
		if found.Failed != 20 || len(found.Kinds) != 3 || found.Kinds[0].Count != 10 || found.Kinds[1].Count != 5 || found.Kinds[2].Count != 5 {
			t.Fatalf("%+v", found)
		}
		k := found.Kinds[0]
		if k.State != "failed" || k.Title != `cannot reach # for "…"` || k.Detail != `cannot reach 10.0.0.1:993 for "t-1"` || len(k.Tasks) != 10 || k.Tasks[1].Name != "t-5" {
			t.Errorf("%+v", k)
		}
		if one := found.Kinds[1].Title; one != "exit status 3" && one != "exit status 7" {
			t.Errorf("a kind of exits is called %q", one)
		}
		var tasks struct{ Tasks []api.Task }
		if s.must("GET", "/plans/p/search?failure="+k.Kind, "", &tasks); len(tasks.Tasks) != 10 || tasks.Tasks[0].Name != "t-1" {
			t.Errorf("of that kind: %+v", tasks)
		}
	})
}

func TestAFailureIsCountedOnceWhereItHappened(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		p := submitted(t, s.st, migration())
		s.run(t, p.ID, func(name string, e *protocol.Ending) {
			if strings.HasPrefix(name, "copy[") {
				e.Status, e.Exit = plan.Failed, &plan.Exit{Code: 3}
			}
		})
		var failures struct {
			Failed int
			Kinds  []struct{ Count int }
		}
		if s.must("GET", "/plans/migrate/failures", "", &failures); failures.Failed != 2 || len(failures.Kinds) != 1 || failures.Kinds[0].Count != 2 {
			t.Errorf("two items failed, and their foreach task by them: %+v", failures)
		}
		var got api.Plan
		if s.must("GET", "/plans/migrate", "", &got); got.Counts.Failed != 2 || got.Counts.Gathered != 1 {
			t.Errorf("the plan counts %+v", got.Counts)
		}
		var g api.Graph
		const failed = 1 + 5 // the place of that state
		s.must("GET", "/plans/migrate/graph", "", &g)
		if at := slices.Index(g.Names, "copy"); len(g.Counts) != 1 || g.Counts[0][failed] != 2 || g.States[g.State[at]] != "failed" {
			t.Errorf("the graph counts %v, want 2 that failed, and copy is %s", g.Counts, g.States[g.State[at]])
		}
		g = api.Graph{}
		s.must("GET", "/plans/migrate/graph?open=of:copy", "", &g)
		if at := slices.Index(g.Names, "copy"); !slices.Equal(g.Heads, []int{at}) || len(g.Counts) > 0 {
			t.Errorf("where its items are drawn %v are not counted, want %d", g.Heads, at)
		}
	})
}

func TestAFailureThatIsAllowedIsDrawnSo(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		spec := plan.New("lenient")
		spec.Add(plan.TaskSpec{Name: "may-fail", Plugin: "demo", ContinueOnError: true})
		spec.Add(plan.TaskSpec{Name: "after", Plugin: "demo", Needs: []string{"may-fail"}})
		p := submitted(t, s.st, spec)
		var before, after api.Graph
		s.must("GET", "/plans/lenient/graph", "", &before) // what is read then is brought up to date
		s.run(t, p.ID, func(name string, e *protocol.Ending) {
			if name == "may-fail" {
				e.Status = plan.Failed
			}
		})
		s.must("GET", "/plans/lenient/graph", "", &after)
		at := slices.Index(after.Names, "may-fail")
		if got := after.States[after.State[at]]; got != "allowed" || !slices.Equal(before.Lenient, []int{at}) {
			t.Errorf("it is %s, and lenient is the plan with %v, want allowed and %d", got, before.Lenient, at)
		}
	})
}

// An asked store counts what explanations are made of.
type asked struct {
	store.Store
	reads atomic.Int64
}

func (a *asked) Now(ctx context.Context) (time.Time, error) {
	a.reads.Add(1)
	return a.Store.Now(ctx)
}

func (a *asked) Plan(ctx context.Context, id plan.PlanID) (plan.Plan, error) {
	a.reads.Add(1)
	return a.Store.Plan(ctx, id)
}

func (a *asked) Tasks(ctx context.Context, q store.TaskQuery) ([]plan.Task, error) {
	a.reads.Add(1)
	return a.Store.Tasks(ctx, q)
}

func TestWhatTasksWaitForIsToldOnce(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		st := &asked{Store: s.st}
		s = serveStore(t, st, v1.Config{Store: st})
		s.large(t, "p", 200)
		var found struct {
			Waiting, Looked int
			Groups          []struct {
				For   api.Reason
				Count int
				Tasks []struct{ Name string }
			}
		}
		st.reads.Store(0)
		s.must("GET", "/plans/p/waiting", "", &found)
		if n := st.reads.Load(); n > 10 { // over a network more of them would take the time that there is
			t.Errorf("31 tasks that wait for one took %d reads", n)
		}
		if found.Waiting != 200 || found.Looked != 31 || len(found.Groups) != 1 { // one is queued, and 30 of the held ones are checked
			t.Fatalf("%+v", found)
		}
		if g := found.Groups[0]; g.For.Name != "t-0" || g.For.State != "queued" || g.Count != 31 || len(g.Tasks) != 10 || g.For.Do == "" {
			t.Errorf("%+v", g)
		}
	})
}

// A changeless store counts how often its feed of changes is read.
type changeless struct {
	store.Store
	reads atomic.Int64
}

func (s *changeless) Changes(ctx context.Context, after store.Cursor, limit int) ([]store.Change, store.Cursor, error) {
	s.reads.Add(1)
	return s.Store.Changes(ctx, after, limit)
}

func TestWhoListensToCountsIsToldOfNoTask(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		st := &changeless{Store: s.st}
		s = serveStore(t, st, v1.Config{Store: st})
		p := s.large(t, "p", 300)
		for _, path := range []string{"/plans/p/events?counts=true", "/events?counts=true", "/events/plans"} {
			t.Run(path, func(t *testing.T) {
				a, err := http.Get(s.url + path)
				if err != nil {
					t.Fatal(err)
				}
				defer a.Body.Close()
				lines := bufio.NewScanner(a.Body)
				next := func() (c api.Change) {
					for lines.Scan() {
						if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
							if err := json.Unmarshal([]byte(data), &c); err != nil || !c.Task.IsZero() || c.Plan != p || c.Counts == nil {
								t.Fatalf("%s: %v", data, err)
							}
							return c
						}
					}
					t.Fatalf("the events end: %v", lines.Err())
					return c
				}
				first := next()
				if first.State != "running" || first.Counts.Total() != 300 {
					t.Errorf("at first: %+v", first)
				}
				s.run(t, p, func(string, *protocol.Ending) {})
				for last := first; ; last = next() {
					if last.State == "succeeded" && last.Counts.Succeeded == 300 {
						break
					}
				}
				if strings.HasPrefix(path, "/plans") && lines.Scan() && lines.Text() != "" && lines.Scan() {
					t.Errorf("after the end: %q", lines.Text())
				}
			})
			p = s.large(t, "p", 300)
		}
		if n := st.reads.Load(); n > 0 {
			t.Errorf("the changes were read %d times", n)
		}
	})
}

func TestTasksAreFoundByTheirIDs(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		s.large(t, "p", 5)
		var all, some struct{ Tasks []api.Task }
		s.must("GET", "/plans/p/tasks", "", &all)
		s.must("GET", "/tasks?ids="+all.Tasks[1].ID.String()+","+all.Tasks[3].ID.String(), "", &some)
		if len(some.Tasks) != 2 || some.Tasks[0].ID != all.Tasks[1].ID || some.Tasks[1].ID != all.Tasks[3].ID {
			t.Errorf("found %+v", some)
		}
	})
}
