package submit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/storetest/model"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
)

func TestAPlanIsReadyWhenAllOfItIsIn(t *testing.T) {
	ctx := t.Context()
	s := model.New(model.Options{})
	spec := plan.New("nightly")
	spec.Source, spec.Keep, spec.OnFailure = "/home/me/plan.yaml", time.Hour, plan.Stop
	spec.Params = map[string]json.RawMessage{"host": json.RawMessage(`"a"`)}
	spec.Add(plan.TaskSpec{Name: "report", Needs: []string{"check", "list"}, Plugin: "demo"}) // before its parents
	spec.Add(plan.TaskSpec{Name: "list", Params: map[string]any{"run": "ls"}})
	spec.Add(plan.TaskSpec{Name: "check", Needs: []string{"list"}, Params: map[string]any{"run": []string{"check", "${{ params.host }}"}}})
	for run := 1; run <= 2; run++ {
		p, err := submit.Submit(ctx, s, spec, run == 2)
		if err != nil {
			t.Fatal(err)
		}
		if p.Run != run || p.State != plan.PlanRunning || p.Own != (run == 2) {
			t.Errorf("submitted %s, state %v, own %v; want run %d, running, own only the second", p.Title(), p.State, p.Own, run)
		}
		stored, err := s.Plan(ctx, p.ID)
		if err != nil {
			t.Fatal(err)
		}
		if stored.State != plan.PlanRunning || stored.Source != spec.Source || stored.Keep != time.Hour || stored.OnFailure != plan.Stop || stored.Own != p.Own {
			t.Errorf("the store has %+v", stored)
		}
		if stored.Counts.Queued != 1 || stored.Counts.Held != 2 {
			t.Errorf("counts are %+v, want the one task without needs queued and two held", stored.Counts)
		}
		tasks, err := s.Tasks(ctx, store.TaskQuery{Plan: p.ID, Name: "check", Params: true})
		if err != nil || len(tasks) != 1 {
			t.Fatalf("%d tasks, error %v", len(tasks), err)
		}
		if got, want := string(tasks[0].Params), `{"host":"a","run":["check","a"]}`; got != want {
			t.Errorf("params are %s, want %s", got, want)
		}
	}
	queues, err := s.Queues(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, q := range queues {
		got = append(got, fmt.Sprintf("%s of %s, unlimited %v", q.Name, q.Plugin, q.Unlimited))
	}
	if want := []string{"demo of demo, unlimited true", "exec of exec, unlimited true"}; !slices.Equal(got, want) {
		t.Errorf("queues %q, want %q, made once", got, want)
	}
}

func TestALargePlanGoesInByParts(t *testing.T) {
	s := &counting{Store: model.New(model.Options{})}
	spec := plan.New("large")
	for i := range 2500 {
		t := plan.TaskSpec{Name: fmt.Sprint("t", i)}
		if i > 0 {
			t.Needs = []string{fmt.Sprint("t", i/2)}
			if i == 1 {
				t.Needs = []string{"t0"}
			}
		}
		spec.Add(t)
	}
	p, err := submit.Submit(t.Context(), s, spec, false)
	if err != nil {
		t.Fatal(err)
	}
	if want := []int{1000, 1000, 500}; !slices.Equal(s.parts, want) {
		t.Errorf("tasks were added in parts of %v, want %v", s.parts, want)
	}
	stored, err := s.Plan(t.Context(), p.ID)
	if err != nil || stored.Counts.Total() != 2500 || stored.Counts.Queued != 1 {
		t.Errorf("counts are %+v, error %v", stored.Counts, err)
	}
}

// counting notes how many tasks are added at once.
type counting struct {
	store.Store
	parts []int
}

func (c *counting) AddTasks(ctx context.Context, p plan.PlanID, tasks []plan.Task) error {
	c.parts = append(c.parts, len(tasks))
	return c.Store.AddTasks(ctx, p, tasks)
}

func TestWhatCannotBeSubmittedChangesNothing(t *testing.T) {
	one := func(task plan.TaskSpec) *plan.Spec {
		s := plan.New("p")
		s.Add(plan.TaskSpec{Name: "first"}) // goes to a queue that would be made
		task.Name = "task"
		s.Add(task)
		return s
	}
	for _, c := range []struct {
		name string
		spec *plan.Spec
		is   error
		want string
	}{
		{"a plan that is not valid", one(plan.TaskSpec{Needs: []string{"nobody"}}), nil,
			`task "task" needs "nobody", which is not in the plan; add it or drop the need`},
		{"a queue that is not there", one(plan.TaskSpec{Queue: "gpu", Plugin: "demo"}), plan.ErrNotFound,
			`queue "gpu": not found; make it: sluice queue create gpu --plugin demo`},
		{"a queue with another plugin", one(plan.TaskSpec{Queue: "small"}), nil,
			`queue "small" runs plugin "demo", and the plan's tasks in it need "exec"; choose another queue`},
		{"two plugins in a queue that would be made", one(plan.TaskSpec{Queue: "exec", Plugin: "demo"}), nil,
			`queue "exec" runs plugin "exec", and the plan's tasks in it need "demo"; choose another queue`},
		{"params that do not lead anywhere", one(plan.TaskSpec{Params: json.RawMessage(`{"run":["${{ params.a.b }}"]}`)}), nil,
			`task "task": params.run: ${{ params.a.b }}: params.a is "1": it has no "b"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := t.Context()
			s := model.New(model.Options{})
			if _, err := s.CreateQueue(ctx, plan.Queue{Name: "small", Plugin: "demo", Threads: 1}); err != nil {
				t.Fatal(err)
			}
			c.spec.Params = map[string]json.RawMessage{"a": json.RawMessage("1")}
			_, err := submit.Submit(ctx, s, c.spec, false)
			if err == nil || err.Error() != c.want || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			plans, err := s.Plans(ctx, store.PlanQuery{})
			if err != nil || len(plans) != 0 {
				t.Errorf("%d plans were made, error %v", len(plans), err)
			}
			queues, err := s.Queues(ctx)
			if err != nil || len(queues) != 1 {
				t.Errorf("%d queues, want only the one that was there; error %v", len(queues), err)
			}
		})
	}
}

func TestAPlanLimitsItsQueues(t *testing.T) {
	limited := func(threads int) *plan.Spec {
		s := plan.New("p")
		s.Add(plan.TaskSpec{Name: "a", Queue: "imap", Plugin: "demo"})
		s.Add(plan.TaskSpec{Name: "b", Queue: "imap", Plugin: "demo"})
		s.Limits = []plan.QueueLimit{{Queue: "imap", Threads: threads}}
		return s
	}
	for _, c := range []struct {
		name  string
		there *plan.Queue
		want  string
	}{
		{"one that is missing is made", nil, ""},
		{"one with that limit is taken", &plan.Queue{Threads: 4}, ""},
		{"a lower limit keeps the plan's word too", &plan.Queue{Threads: 0}, ""},
		{"a higher one is refused", &plan.Queue{Threads: 5},
			`queue "imap" runs 5 tasks at once, and this plan wants at most 4; lower it for all plans (sluice queue set imap --threads 4), or choose another queue`},
		{"and none", &plan.Queue{Unlimited: true},
			`queue "imap" has no limit, and this plan wants at most 4; lower it for all plans (sluice queue set imap --threads 4), or choose another queue`},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := t.Context()
			s := model.New(model.Options{})
			want := plan.Queue{Name: "imap", Plugin: "demo", Threads: 4}
			if c.there != nil {
				want.Threads, want.Unlimited = c.there.Threads, c.there.Unlimited
				if _, err := s.CreateQueue(ctx, want); err != nil {
					t.Fatal(err)
				}
			}
			_, err := submit.Submit(ctx, s, limited(4), false)
			if got := fmt.Sprint(err); got != c.want && (err != nil || c.want != "") {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			queues, err := s.Queues(ctx)
			if err != nil || len(queues) != 1 {
				t.Fatalf("%d queues, error %v", len(queues), err)
			}
			if q := queues[0]; q.Threads != want.Threads || q.Unlimited != want.Unlimited || q.Plugin != "demo" {
				t.Errorf("the queue is %+v, want it as %+v", q, want)
			}
		})
	}
	s := &late{Store: model.New(model.Options{})} // somebody else makes it, with 3 threads, just before
	if _, err := submit.Submit(t.Context(), s, limited(2), false); err == nil {
		t.Error("a queue that was made with a higher limit was taken")
	}
}

func TestAQueueThatSomebodyElseMadeMeanwhileIsTaken(t *testing.T) {
	ctx := t.Context()
	s := &late{Store: model.New(model.Options{})}
	spec := plan.New("p")
	spec.Add(plan.TaskSpec{Name: "a"})
	p, err := submit.Submit(ctx, s, spec, false)
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := s.Tasks(ctx, store.TaskQuery{Plan: p.ID})
	if err != nil || len(tasks) != 1 || tasks[0].Queue != s.made.ID {
		t.Errorf("tasks %+v are not in queue %s; error %v", tasks, s.made.ID, err)
	}
	if _, err := submit.Queues(ctx, s)(compiler.QueueNeed{Name: "other", Plugin: "other", Make: true}); err != nil {
		t.Error(err)
	}
	s.plugin = "other"
	spec.Tasks[0].Plugin = "demo"
	if _, err := submit.Submit(ctx, s, spec, false); err == nil || err.Error() != `queue "demo" runs plugin "other", and the plan's tasks in it need "demo"; choose another queue` {
		t.Errorf("a queue that was made with another plugin was taken: error %v", err)
	}
}

// late makes each queue just before it is asked for one.
type late struct {
	store.Store
	plugin string
	made   plan.Queue
}

func (l *late) EnsureQueue(ctx context.Context, q plan.Queue) (plan.Queue, error) {
	other := plan.Queue{Name: q.Name, Plugin: q.Plugin, Threads: 3}
	if l.plugin != "" {
		other.Plugin = l.plugin
	}
	var err error
	if l.made, err = l.CreateQueue(ctx, other); err != nil {
		return plan.Queue{}, err
	}
	return l.Store.EnsureQueue(ctx, q)
}

// A submission that dies at any of its writes leaves nothing that runs. A submission whose answer
// was lost can be abandoned too.
func TestASubmissionThatDiesRunsNothing(t *testing.T) {
	spec := plan.New("p")
	for i := range 1500 {
		spec.Add(plan.TaskSpec{Name: fmt.Sprint("t", i)})
	}
	died := errors.New("died")
	for n := 0; ; n++ {
		writes := 0
		s := model.New(model.Options{Hook: func(written bool) error {
			if written {
				return nil
			}
			if writes++; writes > n {
				return died
			}
			return nil
		}})
		p, err := submit.Submit(t.Context(), s, spec, false)
		if err == nil {
			if n < 5 {
				t.Fatalf("it took only %d writes; want a queue, a plan, two parts and one to make it ready", n)
			}
			break
		}
		if !errors.Is(err, died) {
			t.Fatalf("write %d: %v", n+1, err)
		}
		plans, err := s.Plans(t.Context(), store.PlanQuery{})
		if err != nil {
			t.Fatal(err)
		}
		for _, left := range plans {
			if left.ID != p.ID || left.State != plan.PlanSubmitting || left.Counts.Queued != 0 {
				t.Errorf("dead before write %d: plan %s is %v with counts %+v, want it submitting, and nothing queued", n+1, left.ID, left.State, left.Counts)
			}
		}
	}
}

// chain is a spec of more tasks than fit into one part, where each task needs the two before it.
func chain(n int) *plan.Spec {
	spec := plan.New("p")
	spec.Params = map[string]json.RawMessage{"who": json.RawMessage(`"me"`)}
	for i := range n {
		t := plan.TaskSpec{Name: fmt.Sprint("t", i), Params: json.RawMessage(`{"run":["echo","${{ plan.id }} ${{ params.who }}"],"n":1.50}`)}
		if i > 0 {
			t.Needs = []string{fmt.Sprint("t", i/2)}
			t.Needs = append(t.Needs, fmt.Sprint("t", i-1))
			t.Needs = slices.Compact(t.Needs)
		}
		spec.Add(t)
	}
	spec.Tasks[n-1].Foreach = &plan.Foreach{List: json.RawMessage(`["${{ plan.id }}",2]`)}
	return spec
}

// told is what a store tells of a plan's tasks, without what differs from plan to plan.
func told(t *testing.T, s store.Store, p plan.PlanID) string {
	t.Helper()
	tasks, err := s.Tasks(t.Context(), store.TaskQuery{Plan: p, Needs: true, Params: true, Limit: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	names := map[plan.TaskID]string{}
	for i := range tasks {
		names[tasks[i].ID] = tasks[i].Name
	}
	var b strings.Builder
	for i := range tasks {
		task := &tasks[i]
		definition, err := json.Marshal(task.Definition)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %s %s %s needs", task.Name, task.State(), task.Params, definition)
		for _, need := range task.Needs {
			fmt.Fprintf(&b, " %s", names[need])
		}
		b.WriteString("\n")
	}
	return strings.ReplaceAll(b.String(), p.String(), "ID")
}

// A submission may die at any write. The process that continues it leaves the same plan as an
// undisturbed submission.
func TestASubmissionThatDiedIsGoneOnWith(t *testing.T) {
	spec := chain(2500)
	undisturbed := model.New(model.Options{})
	p, err := submit.Submit(t.Context(), undisturbed, spec, false)
	if err != nil {
		t.Fatal(err)
	}
	want := told(t, undisturbed, p.ID)
	died, halfway := errors.New("died"), 0
	for n := 0; ; n++ {
		writes, dead := 0, true
		s := model.New(model.Options{Hook: func(written bool) error {
			if !written {
				writes++
			}
			if dead && writes > n {
				return died
			}
			return nil
		}})
		p, err := submit.Submit(t.Context(), s, spec, false)
		dead = false
		if err == nil {
			break
		}
		left, err := s.Plan(t.Context(), p.ID)
		if errors.Is(err, plan.ErrNotFound) {
			continue // there is nothing to go on with
		}
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := submit.GoOn(t.Context(), s, left, spec); err != nil {
				t.Fatalf("dead before write %d, with %d tasks: %v", n+1, left.Counts.Total(), err)
			}
			halfway++
			if got := told(t, s, p.ID); got != want {
				t.Errorf("dead before write %d, with %d tasks: got\n%.500s\nwant\n%.500s", n+1, left.Counts.Total(), got, want)
			}
		}
		if now, err := s.Plan(t.Context(), p.ID); err != nil || now.State != plan.PlanRunning {
			t.Errorf("dead before write %d: the plan is %v (%v), want it running", n+1, now.State, err)
		}
	}
	if halfway < 2*4 {
		t.Errorf("%d submissions were gone on with; want one without tasks, two with some, and one with all, each twice", halfway/2)
	}
}

// A submitter that is alive, although others declared it dead, does no harm.
func TestASubmissionIsGoneOnWithWhileItsSubmitterLives(t *testing.T) {
	spec := chain(2500)
	for at := range 3 {
		s := &slow{Store: model.New(model.Options{}), spec: spec, at: at}
		p, err := submit.Submit(t.Context(), s, spec, false)
		if err != nil || s.gone != nil {
			t.Fatalf("the submitter got %v, and who went on before part %d %v", err, at, s.gone)
		}
		now, err := s.Plan(t.Context(), p.ID)
		if err != nil || now.State != plan.PlanRunning || now.Counts.Total() != 2500 || now.Edits != 0 {
			t.Errorf("the plan is %v with %d tasks and %d edits (%v), want it running with 2500, none of them late", now.State, now.Counts.Total(), now.Edits, err)
		}
	}
}

// slow is the store of a submission that another process continues before a part of its tasks goes
// in.
type slow struct {
	store.Store
	spec  *plan.Spec
	at, n int
	gone  error
}

func (s *slow) AddTasks(ctx context.Context, id plan.PlanID, tasks []plan.Task) error {
	if s.n++; s.n-1 == s.at {
		p, err := s.Plan(ctx, id)
		s.gone = errors.Join(err, submit.GoOn(ctx, s.Store, p, s.spec))
	}
	return s.Store.AddTasks(ctx, id, tasks)
}

func TestASubmissionIsGoneOnWithByItsSpecOnly(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*plan.Spec)
		want   string // "" for none: it continues
	}{
		{"the same", func(*plan.Spec) {}, ""},
		{"another plan", func(s *plan.Spec) { s.Name = "q" }, `it is the plan "q"`},
		{"one task more", func(s *plan.Spec) { s.Add(plan.TaskSpec{Name: "more"}) }, "it has 1201 tasks"},
		{"one less", func(s *plan.Spec) { s.Tasks = s.Tasks[:1199] }, "it has 1199 tasks"},
		{"another value of a param", func(s *plan.Spec) { s.Params = map[string]json.RawMessage{"who": json.RawMessage(`"you"`)} },
			"it has other params"},
		{"another command", func(s *plan.Spec) { s.Tasks[3].Params = json.RawMessage(`{"run":["echo"]}`) }, `task "t3" differs`},
		{"another name", func(s *plan.Spec) { s.Tasks[0].Name = "first"; s.Tasks[1].Needs = []string{"first"} }, `task "t0" differs`},
		{"another need", func(s *plan.Spec) { s.Tasks[999].Needs = []string{"t998", "t1"} }, `task "t999" differs`},
		{"another rule", func(s *plan.Spec) { s.Tasks[5].When = plan.AllDone }, `task "t5" differs`},
		{"another queue, of another plugin", func(s *plan.Spec) { s.Tasks[5].Plugin = "demo" }, `queue "demo" was not needed`},
		{"another queue that is there", func(s *plan.Spec) { s.Tasks[5].Queue = "small" }, `task "t5" differs`},
		{"two tasks the other way round", func(s *plan.Spec) { s.Tasks[0], s.Tasks[1] = s.Tasks[1], s.Tasks[0] }, `task "t0" differs`},
		{"one that is not valid", func(s *plan.Spec) { s.Tasks[5].Needs = []string{"nobody"} }, `task "t5" needs "nobody", which is not in the plan; add it or drop the need`},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := t.Context()
			s := model.New(model.Options{})
			if _, err := s.CreateQueue(ctx, plan.Queue{Name: "small", Plugin: "exec", Threads: 1}); err != nil {
				t.Fatal(err)
			}
			died := errors.New("died")
			p, err := submit.Submit(ctx, &short{s, died}, chain(1200), false)
			if !errors.Is(err, died) {
				t.Fatal(err)
			}
			before := told(t, s, p.ID)
			spec := chain(1200)
			c.change(spec)
			err = submit.GoOn(ctx, s, p, spec)
			if got := fmt.Sprint(err); got != c.want && (err != nil || c.want != "") {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			if strings.HasSuffix(c.want, "meanwhile") && !errors.Is(err, plan.ErrConflict) {
				t.Errorf("%v is no conflict", err)
			}
			now, err := s.Plan(ctx, p.ID)
			if err != nil {
				t.Fatal(err)
			}
			if ready := now.State == plan.PlanRunning && now.Counts.Total() == 1200; ready != (c.want == "") {
				t.Errorf("the plan is %v with %d tasks", now.State, now.Counts.Total())
			}
			if c.want != "" && told(t, s, p.ID) != before {
				t.Error("tasks were changed")
			}
			if queues, err := s.Queues(ctx); err != nil || len(queues) != 2 {
				t.Errorf("there are the queues %v (%v), want exec and small", queues, err)
			}
		})
	}
}

// short is the store of a submission that dies when the first part of its tasks is in.
type short struct {
	store.Store
	died error
}

func (s *short) AddTasks(ctx context.Context, p plan.PlanID, tasks []plan.Task) error {
	return errors.Join(s.Store.AddTasks(ctx, p, tasks), s.died)
}

// A request that is made again while its first is still at work finds that done in between, and tasks that have run.
func TestARequestIsRepeatedWhileItsFirstIsAtWork(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*plan.Spec)
		want   error
	}{
		{"the same", func(*plan.Spec) {}, nil},
		{"another plan", func(s *plan.Spec) { s.Params["who"] = json.RawMessage(`"you"`) }, plan.ErrConflict},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := t.Context()
			s := model.New(model.Options{})
			died := errors.New("died")
			p, repeated, err := submit.Once(ctx, &short{s, died}, chain(1200), "k", false)
			if !errors.Is(err, died) || repeated {
				t.Fatal(err, repeated)
			}
			spec := chain(1200)
			c.change(spec)
			q := &quick{Store: s, t: t, spec: chain(1200)}
			again, repeated, err := submit.Once(ctx, q, spec, "k", false)
			if !errors.Is(err, c.want) || !repeated || again.ID != p.ID {
				t.Errorf("the request that is repeated got plan %s, %v, %v, want %s, true, %v", again.ID, repeated, err, p.ID, c.want)
			}
			if now, err := s.Plan(ctx, p.ID); err != nil || c.want == nil && (now.State != plan.PlanRunning || now.Counts.Succeeded != 1) {
				t.Errorf("the plan is %v (%v), want it running, and one task of it over", now.State, err)
			}
		})
	}
}

// The store keeps the request of a key, because the plan's tasks may have changed when the key is
// used again. Values of secrets are not compared: the owner of the key could guess them.
func TestAKeyThatIsUsedForAnotherRequestIsRefused(t *testing.T) {
	request := func(change func(*plan.Spec)) *plan.Spec {
		s := plan.New("p")
		s.Source, s.Secrets = "/home/me/plan.yaml", []string{"password"}
		s.Params = map[string]json.RawMessage{"password": json.RawMessage(`"hunter22"`), "token": json.RawMessage(`"abcdef"`), "day": json.RawMessage(`"monday"`)}
		s.Add(plan.TaskSpec{Name: "a", Params: json.RawMessage(`{"run":"echo one hunter22","dir":"/tmp"}`)})
		s.Add(plan.TaskSpec{Name: "b", Needs: []string{"a"}, Params: json.RawMessage(`{"password":"p1","run":"x"}`)})
		change(s)
		return s
	}
	for _, c := range []struct {
		name   string
		change func(*plan.Spec)
		want   error
	}{
		{"the same", func(*plan.Spec) {}, nil},
		{"by somebody else", func(s *plan.Spec) { s.By = "ann" }, nil},
		{"another command", func(s *plan.Spec) { s.Tasks[0].Params = json.RawMessage(`{"run":"echo TWO","dir":"/tmp"}`) }, plan.ErrConflict},
		{"another folder", func(s *plan.Spec) { s.Tasks[0].Params = json.RawMessage(`{"run":"echo one hunter22","dir":"/"}`) }, plan.ErrConflict},
		{"another name of a task", func(s *plan.Spec) { s.Tasks[1].Name = "c" }, plan.ErrConflict},
		{"no need", func(s *plan.Spec) { s.Tasks[1].Needs = nil }, plan.ErrConflict},
		{"another file", func(s *plan.Spec) { s.Source = "/home/me/other.yaml" }, plan.ErrConflict},
		{"fail-fast", func(s *plan.Spec) { s.OnFailure = plan.Stop }, plan.ErrConflict},
		{"another param", func(s *plan.Spec) { s.Params["day"] = json.RawMessage(`"friday"`) }, plan.ErrConflict},
		{"a limit", func(s *plan.Spec) { s.Limits = []plan.QueueLimit{{Queue: "exec", Threads: 9}} }, plan.ErrConflict},
		{"another value of what the plan keeps secret", func(s *plan.Spec) {
			s.Params["password"], s.Tasks[0].Params = json.RawMessage(`"hunter33"`), json.RawMessage(`{"run":"echo one hunter33","dir":"/tmp"}`)
			s.Tasks[1].Params = json.RawMessage(`{"password":"p2","run":"x"}`)
		}, nil},
		{"another value of what a queue keeps secret", func(s *plan.Spec) { s.Params["token"] = json.RawMessage(`"fedcba"`) }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := t.Context()
			s := model.New(model.Options{})
			no := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			_, err := s.CreateQueue(ctx, plan.Queue{Name: "exec", Plugin: "exec", Threads: 2, QueueSettings: plan.QueueSettings{Secrets: []string{"tok*"}}})
			no(err)
			p, _, err := submit.Once(ctx, s, request(func(*plan.Spec) {}), "k", false)
			no(err)
			again, repeated, err := submit.Once(ctx, s, request(c.change), "k", false)
			if !errors.Is(err, c.want) || !repeated || again.ID != p.ID {
				t.Errorf("got plan %s, %v, %v, want %s, true, %v", again.ID, repeated, err, p.ID, c.want)
			}
			if err != nil && !strings.HasPrefix(err.Error(), `the idempotency key "k" was used for another plan, p#1: `) {
				t.Errorf("the error is %q", err)
			}
		})
	}
}

// Params that became secret since are not compared. Neither are plans without a kept request.
func TestRequestsOfWhichOtherThingsAreSecretAreNotCompared(t *testing.T) {
	ctx := t.Context()
	s := model.New(model.Options{})
	request := func(said string) *plan.Spec {
		spec := plan.New("p")
		spec.Add(plan.TaskSpec{Name: "a", Params: json.RawMessage(`{"run":"x","token":"` + said + `"}`)})
		return spec
	}
	if _, _, err := submit.Once(ctx, s, request("one"), "k", false); err != nil {
		t.Fatal(err)
	}
	if _, _, err := submit.Once(ctx, s, request("two"), "k", false); !errors.Is(err, plan.ErrConflict) {
		t.Errorf("before it is secret: %v, want %v", err, plan.ErrConflict)
	}
	if _, err := s.CreateQueue(ctx, plan.Queue{Name: "vault", Plugin: "exec", QueueSettings: plan.QueueSettings{Secrets: []string{"token"}}}); err != nil {
		t.Fatal(err)
	}
	for _, said := range []string{"one", "two"} {
		if _, repeated, err := submit.Once(ctx, s, request(said), "k", false); err != nil || !repeated {
			t.Errorf("with %s: repeated %v, %v", said, repeated, err)
		}
	}
	before := plan.Plan{ID: plan.PlanID{ID: plan.NewID(time.Now())}, Name: "p", Size: 1, Params: json.RawMessage("{}"), Key: "before"} // by another version
	if _, err := s.CreatePlan(ctx, before); err != nil {
		t.Fatal(err)
	}
	if p, repeated, err := submit.Once(ctx, s, request("one"), "before", false); err != nil || !repeated || p.ID != before.ID {
		t.Errorf("plan %s, repeated %v, %v, want %s", p.ID, repeated, err, before.ID)
	}
}

// TestWhatWasGivenUpHalfWayIsNotSubmitted has a request be repeated after nobody had gone on with it for too long.
func TestWhatWasGivenUpHalfWayIsNotSubmitted(t *testing.T) {
	ctx := t.Context()
	now := time.Now()
	s := model.New(model.Options{Now: func() time.Time { return now }})
	died := errors.New("died")
	p, _, err := submit.Once(ctx, &short{s, died}, chain(1200), "k", false)
	if !errors.Is(err, died) {
		t.Fatal(err)
	}
	now = now.Add(rules.AbandonAfter + time.Minute)
	i := plan.InstanceID{ID: plan.NewID(now)}
	if err := s.Register(ctx, plan.Instance{ID: i, Node: "n"}); err != nil {
		t.Fatal(err)
	}
	for more := true; more; {
		did, err := s.Sweep(ctx, protocol.Sweep{Instance: i})
		if err != nil {
			t.Fatal(err)
		}
		more = did.More
	}
	again, repeated, err := submit.Once(ctx, s, chain(1200), "k", false)
	if !errors.Is(err, plan.ErrPlanEnded) || !repeated || again.ID != p.ID || again.State != plan.PlanAbandoned {
		t.Errorf("got plan %s, which is %v, %v, %v, want %s, abandoned, true, %v", again.ID, again.State, repeated, err, p.ID, plan.ErrPlanEnded)
	}
}

// TestAPlanThatHasEndedWhileItWasSubmittedWasSubmitted has who repeats a request be so much quicker than the first that the plan is over.
func TestAPlanThatHasEndedWhileItWasSubmittedWasSubmitted(t *testing.T) {
	for _, cancel := range []bool{false, true} {
		t.Run(fmt.Sprint("cancelled ", cancel), func(t *testing.T) {
			ctx := t.Context()
			spec := plan.New("p")
			spec.Add(plan.TaskSpec{Name: "a"})
			q := &quick{Store: model.New(model.Options{}), t: t, spec: spec, cancel: cancel}
			p, repeated, err := submit.Once(ctx, &overtaken{q}, spec, "k", false)
			switch {
			case repeated || p.ID.IsZero():
				t.Errorf("it got plan %s, repeated %v", p.ID, repeated)
			case cancel && !errors.Is(err, plan.ErrPlanEnded):
				t.Errorf("of a plan that was cancelled before it was whole it got %v, want %v", err, plan.ErrPlanEnded)
			case !cancel && (err != nil || p.State != plan.PlanSucceeded):
				t.Errorf("it got a plan that is %v, and %v, want one that has succeeded", p.State, err)
			}
		})
	}
}

// quick is the store of a submission that another process overtakes while it reads the plan's
// tasks. The first of these tasks runs then.
type quick struct {
	store.Store
	t      *testing.T
	spec   *plan.Spec
	cancel bool // the plan instead
	done   bool
}

func (q *quick) Tasks(ctx context.Context, by store.TaskQuery) ([]plan.Task, error) {
	q.overtake(ctx, by.Plan)
	return q.Store.Tasks(ctx, by)
}

func (q *quick) overtake(ctx context.Context, id plan.PlanID) {
	if q.done {
		return
	}
	q.done = true
	no := func(err error) {
		if q.t.Helper(); err != nil {
			q.t.Fatal(err)
		}
	}
	if q.cancel {
		no(q.CancelPlan(ctx, id, false))
		return
	}
	p, err := q.Plan(ctx, id)
	no(err)
	no(submit.GoOn(ctx, q.Store, p, q.spec))
	i := plan.InstanceID{ID: plan.NewID(time.Now())}
	no(q.Register(ctx, plan.Instance{ID: i, Node: "n", Plugins: []string{"exec"}}))
	turn := protocol.Turn{Instance: i, Slots: 1, Plugins: []string{"exec"}, Start: true}
	did, err := q.Turn(ctx, turn)
	no(err)
	turn.Slots = 0
	for _, c := range did.Claimed {
		turn.Ended = append(turn.Ended, protocol.Ending{Claim: c.Claim, Status: plan.Succeeded, Output: json.RawMessage(`"a"`)})
	}
	_, err = q.Turn(ctx, turn)
	no(err)
}

// overtaken is the store of a submission that another one overtakes before it adds tasks.
type overtaken struct{ *quick }

func (o *overtaken) AddTasks(ctx context.Context, id plan.PlanID, tasks []plan.Task) error {
	o.overtake(ctx, id)
	return o.Store.AddTasks(ctx, id, tasks)
}
