package sluice_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice"
	"github.com/seed-1177d267/sluice/den"
	v1 "github.com/seed-1177d267/sluice/internal/api/v1"
	"github.com/seed-1177d267/sluice/internal/mongotest"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

var _ den.Store = (*sluice.Store)(nil)

// onEach runs a test on a store of each kind.
func onEach(t *testing.T, test func(t *testing.T, st *sluice.Store, another func() *sluice.Store)) {
	for _, kind := range []string{"memory", "sqlite", "mongodb"} {
		t.Run(kind, func(t *testing.T) {
			uri := "memory:"
			switch kind {
			case "sqlite":
				uri = "sqlite:" + filepath.Join(t.TempDir(), "plans.db")
			case "mongodb":
				uri, _ = mongotest.Database(t)
			}
			open := func() *sluice.Store {
				st, err := sluice.Open(t.Context(), uri)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					if err := st.Close(); err != nil {
						t.Error(err)
					}
				})
				return st
			}
			st := open()
			test(t, st, func() *sluice.Store {
				if kind == "memory" {
					return st
				}
				return open()
			})
		})
	}
}

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// waiting returns plugins in which "wait" runs until it may end.
func waiting(may <-chan struct{}) *plugins.Registry {
	reg := registry()
	reg.Register("wait", plugins.Func(func(ctx context.Context, t *plugins.Task) (any, error) {
		select {
		case <-may:
			return t.Name, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}))
	return reg
}

func TestAPlanThatWasStoppedIsFoundAndContinued(t *testing.T) {
	onEach(t, func(t *testing.T, st *sluice.Store, another func() *sluice.Store) {
		spec := plan.New("nightly")
		spec.Add(plan.TaskSpec{Name: "a", Plugin: "list"})
		spec.Add(plan.TaskSpec{Name: "b", Plugin: "wait", Needs: []string{"a"}})
		run := must[plan.Plan](t)(st.Submit(t.Context(), spec))
		may := make(chan struct{})
		ctx, stop := context.WithCancel(t.Context())
		changes := st.Watch(t.Context(), run.ID)
		ended := make(chan error, 1)
		go func() {
			ended <- den.Run(ctx, st, den.Config{Plugins: waiting(may), Plan: run.ID, Grace: time.Nanosecond})
		}()
		for c, err := range changes {
			if err != nil {
				t.Fatal(err)
			}
			if c.Name == "b" && c.Status == plan.Running {
				break
			}
		}
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		close(may)
		left := 0
		for p, err := range another().Plans(t.Context(), sluice.PlanQuery{Name: "nightly", State: new(plan.PlanRunning)}) {
			if left++; err != nil || p.ID != run.ID {
				t.Fatalf("unfinished is %v, %v", p.Title(), err)
			}
		}
		if left != 1 {
			t.Fatalf("%d plans are unfinished, want 1", left)
		}
		if err := den.Run(t.Context(), another(), den.Config{Plugins: waiting(may), Plan: run.ID}); err != nil {
			t.Fatal(err)
		}
		p := must[plan.Plan](t)(st.Wait(t.Context(), run.ID))
		if p.State != plan.PlanSucceeded {
			t.Fatalf("it ended as %v", p.State)
		}
		for task, err := range st.Tasks(t.Context(), sluice.TaskQuery{Plan: run.ID, Name: "a"}) {
			if err != nil || task.Attempt != 1 {
				t.Errorf("what had finished ran again: attempt %d, %v", task.Attempt, err)
			}
		}
	})
}

func TestWaitEndsWhoeverEndsThePlan(t *testing.T) {
	onEach(t, func(t *testing.T, st *sluice.Store, another func() *sluice.Store) {
		spec := plan.New("shared")
		spec.Add(plan.TaskSpec{Name: "a", Plugin: "wait"})
		run := must[plan.Plan](t)(st.Submit(t.Context(), spec))
		other := another()
		for task, err := range st.Tasks(t.Context(), sluice.TaskQuery{Plan: run.ID}) {
			if err != nil {
				t.Fatal(err)
			}
			why := must[[]sluice.Reason](t)(st.Explain(t.Context(), task.ID))
			if len(why) == 0 || why[0].Task.ID != task.ID || why[0].Why != "no node is alive" {
				t.Errorf("the reasons are %v, want that no node is alive", why)
			}
		}
		ended := make(chan plan.Plan)
		go func() {
			p, err := st.Wait(t.Context(), run.ID)
			if err != nil {
				t.Error(err)
			}
			ended <- p
		}()
		p := must[plan.Plan](t)(other.Cancel(t.Context(), run.ID))
		if got := <-ended; p.State != plan.PlanCancelled || got.State != plan.PlanCancelled {
			t.Errorf("Cancel returned a plan that is %v, and Wait one that is %v", p.State, got.State)
		}
		if _, err := other.Cancel(t.Context(), run.ID); !errors.Is(err, plan.ErrPlanEnded) {
			t.Errorf("to cancel it again is %v, want ErrPlanEnded", err)
		}
		var last sluice.Change
		n := 0
		for c, err := range st.Watch(t.Context(), run.ID) {
			if n++; err != nil {
				t.Fatal(err)
			}
			last = c
		}
		if n != 1 || last.State != plan.PlanCancelled || !last.Task.IsZero() {
			t.Errorf("of a plan that has ended Watch returns %d changes, the last of them %+v", n, last)
		}
		if err := st.Delete(t.Context(), run.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := st.Wait(t.Context(), run.ID); !errors.Is(err, plan.ErrNotFound) {
			t.Errorf("to wait for a plan that was deleted is %v, want ErrNotFound", err)
		}
		for _, err := range st.Watch(t.Context(), run.ID) {
			if !errors.Is(err, plan.ErrNotFound) {
				t.Errorf("to watch it is %v, want ErrNotFound", err)
			}
		}
	})
}

// Each case is an error that a program acts on.
func TestErrorsAreSentinels(t *testing.T) {
	onEach(t, func(t *testing.T, st *sluice.Store, _ func() *sluice.Store) {
		ctx := t.Context()
		run := must[plan.Plan](t)(st.Submit(ctx, greetings()))
		none := plan.PlanID{ID: plan.NewID(time.Now())}
		must[plan.Queue](t)(st.CreateQueue(ctx, plan.Queue{Name: "mail", Plugin: "exec", Unlimited: true}))
		add := func(p plan.PlanID, task plan.TaskSpec) error {
			_, err := st.Add(ctx, p, []plan.TaskSpec{task})
			return err
		}
		second := func(_ any, err error) error { return err }
		for name, c := range map[string]struct{ got, want error }{
			"a plan that is not there":             {second(st.Plan(ctx, none)), plan.ErrNotFound},
			"a task that is not there":             {second(st.Task(ctx, plan.TaskID(none))), plan.ErrNotFound},
			"the output of a task of no such name": {second(st.Output(ctx, run.ID, "none")), plan.ErrNotFound},
			"to wait for a plan that is not there": {second(st.Wait(ctx, none)), plan.ErrNotFound},
			"to cancel a plan that is not there":   {second(st.Cancel(ctx, none)), plan.ErrNotFound},
			"to retry a plan that is not there":    {second(st.Retry(ctx, none, sluice.RetryOptions{})), plan.ErrNotFound},
			"to retry no task of no plan":          {second(st.Retry(ctx, plan.PlanID{}, sluice.RetryOptions{})), plan.ErrNotFound},
			"to delete a plan that is not there":   {st.Delete(ctx, none), plan.ErrNotFound},
			"to stop what runs, if nothing does":   {second(st.CancelRunning(ctx, run.ID)), sluice.ErrNothingRuns},
			"to delete a plan that runs":           {st.Delete(ctx, run.ID), plan.ErrPlanActive},
			"to retry a plan that runs":            {second(st.Retry(ctx, run.ID, sluice.RetryOptions{})), plan.ErrConflict},
			"to add to a plan that is not there":   {add(none, plan.TaskSpec{Name: "a", Plugin: "list"}), plan.ErrNotFound},
			"to add a name that is taken":          {add(run.ID, plan.TaskSpec{Name: "names", Plugin: "list"}), plan.ErrExists},
			"to need what is not there":            {add(run.ID, plan.TaskSpec{Name: "a", Plugin: "list", Needs: []string{"none"}}), plan.ErrNotFound},
			"to need a name of no plan":            {add(plan.PlanID{}, plan.TaskSpec{Plugin: "list", Needs: []string{"names"}}), plan.ErrNotFound},
			"to add to a queue of another plugin":  {add(run.ID, plan.TaskSpec{Name: "a", Plugin: "list", Queue: "mail"}), sluice.ErrQueue},
			"a queue whose name is taken":          {second(st.CreateQueue(ctx, plan.Queue{Name: "mail", Plugin: "exec"})), plan.ErrExists},
			"to set a queue that is not there":     {second(st.SetQueue(ctx, "none", func(*plan.Queue) {})), plan.ErrNotFound},
			"to delete a queue that is not there":  {st.DeleteQueue(ctx, "none"), plan.ErrNotFound},
			"to delete a queue that a plan needs":  {st.DeleteQueue(ctx, "list"), plan.ErrConflict},
		} {
			if !errors.Is(c.got, c.want) {
				t.Errorf("%s is %v, want %v", name, c.got, c.want)
			}
		}
		invalid := greetings()
		invalid.Tasks[0].Needs = []string{"nothing"}
		for name, err := range map[string]error{
			"a need that is not in the plan": second(st.Submit(ctx, invalid)),
			"a param that the plan has not":  second(st.Submit(ctx, greetings(), sluice.WithParams(map[string]any{"wrod": "Hi"}))),
			"a param that is no JSON":        second(st.Submit(ctx, greetings(), sluice.WithParams(map[string]any{"word": func() {}}))),
			"a task of a plan without name":  add(run.ID, plan.TaskSpec{Plugin: "list"}),
		} {
			if problems, ok := errors.AsType[plan.Problems](err); !ok || len(problems) != 1 {
				t.Errorf("%s is %v, want one of plan.Problems", name, err)
			}
		}
		if err := st.DeleteQueue(ctx, "mail"); err != nil {
			t.Error(err)
		}
	})
}

func TestWhatIsSecretIsNotShownAndReachesTasks(t *testing.T) {
	onEach(t, func(t *testing.T, st *sluice.Store, _ func() *sluice.Store) {
		ctx := t.Context()
		const secret = "forth-hunter22"
		spec := greetings()
		spec.Secrets = []string{"word"}
		run := must[plan.Plan](t)(st.Submit(ctx, spec, sluice.WithParams(map[string]any{"word": secret})))
		if string(spec.Params["word"]) != `"Hello"` {
			t.Errorf("the caller's spec was changed to %s", spec.Params["word"])
		}
		got := make(chan string, 1)
		reg := registry()
		reg.Register("tell", plugins.Func(func(_ context.Context, task *plugins.Task) (any, error) {
			got <- string(task.Params)
			return nil, nil
		}))
		must[[]plan.TaskID](t)(st.Add(ctx, run.ID, []plan.TaskSpec{{Name: "late", Plugin: "tell", Params: map[string]any{"word": "${{ params.word }}"}}}))
		if err := den.Run(ctx, st, den.Config{Plugins: reg, Plan: run.ID}); err != nil {
			t.Fatal(err)
		}
		if params := <-got; !strings.Contains(params, secret) {
			t.Errorf("a task that was added got %s, want the true value", params)
		}
		p := must[plan.Plan](t)(st.Wait(ctx, run.ID))
		out := must[json.RawMessage](t)(st.Output(ctx, run.ID, "greet"))
		shown := string(p.Params) + string(out)
		for task, err := range st.Tasks(ctx, sluice.TaskQuery{Plan: run.ID, Details: true}) {
			if err != nil {
				t.Fatal(err)
			}
			shown += string(task.Params) + string(task.Output)
		}
		if strings.Contains(shown, secret) || p.State != plan.PlanSucceeded {
			t.Errorf("the plan is %v and is shown as %s", p.State, shown)
		}
	})
}

func TestTasksAreAddedLater(t *testing.T) {
	onEach(t, func(t *testing.T, st *sluice.Store, _ func() *sluice.Store) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		must[[]plan.TaskID](t)(st.Add(ctx, plan.PlanID{}, []plan.TaskSpec{{Name: "much-later", Plugin: "list"}}, sluice.WithDelay(time.Hour)))
		many := make([]plan.TaskSpec, 1200) // more than a page
		for i := range many {
			many[i] = plan.TaskSpec{Plugin: "list"}
		}
		ids := must[[]plan.TaskID](t)(st.Add(ctx, plan.PlanID{}, many))
		n, waits := 0, 0
		for task, err := range st.Tasks(ctx, sluice.TaskQuery{NoPlan: true}) {
			if n++; err != nil {
				t.Fatal(err)
			}
			if task.Name == "much-later" && time.Until(task.NotBefore) > 50*time.Minute {
				waits++
			}
		}
		if n != len(ids)+1 || waits != 1 {
			t.Errorf("there are %d tasks of no plan, of which %d wait; want %d, and 1", n, waits, len(ids)+1)
		}
	})
}

func TestAWaitingTaskIsChanged(t *testing.T) {
	onEach(t, func(t *testing.T, st *sluice.Store, _ func() *sluice.Store) {
		ctx := t.Context()
		id := must[[]plan.TaskID](t)(st.Add(ctx, plan.PlanID{}, []plan.TaskSpec{{Name: "later", Plugin: "list"}}, sluice.WithDelay(time.Hour)))[0]
		at, minute := time.Date(2099, 1, 2, 3, 4, 5, 0, time.UTC), time.Minute
		c := sluice.TaskChange{NotBefore: &at, Params: map[string]any{"word": "${{ task.name }}"}, Attempts: 3, Timeout: &minute}
		for range 2 {
			if err := st.SetTask(ctx, id, c); err != nil {
				t.Fatal(err)
			}
		}
		task := must[plan.Task](t)(st.Task(ctx, id))
		if !task.NotBefore.Equal(at) || string(task.Params) != `{"word":"later"}` || task.Retry.Attempts != 3 || task.Timeout != minute {
			t.Errorf("the task is %+v", task)
		}
		var problems plan.Problems
		if err := st.SetTask(ctx, id, sluice.TaskChange{Params: map[string]any{"word": "${{ needs.other }}"}}); !errors.As(err, &problems) {
			t.Errorf("an expression that leads nowhere: %v", err)
		}
		if err := st.SetTask(ctx, id, sluice.TaskChange{Params: []int{1}}); err == nil {
			t.Error("params that are a list are taken")
		}
		if err := st.CancelTask(ctx, id); err != nil {
			t.Fatal(err)
		}
		if err := st.SetTask(ctx, id, sluice.TaskChange{Attempts: 2}); !errors.Is(err, plan.ErrConflict) {
			t.Errorf("a cancelled task: %v", err)
		}
		if err := st.SetTask(ctx, plan.TaskID{ID: plan.NewID(time.Now())}, c); !errors.Is(err, plan.ErrNotFound) {
			t.Errorf("a missing task: %v", err)
		}
	})
}

func TestStoresAreNamedByURIs(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("SLUICE_STORE", "sqlite:"+filepath.Join(dir, "default.db"))
	if st, err := sluice.Open(t.Context(), ""); err != nil {
		t.Error(err)
	} else if err := st.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "default.db")); err != nil {
		t.Errorf("without a URI the store is not that of SLUICE_STORE: %v", err)
	}
	for uri, want := range map[string]error{
		"plans.db": sluice.ErrURI, "mysql://localhost/x": sluice.ErrURI, "sqlite:": sluice.ErrURI, "memory:x": sluice.ErrURI, "mongodb://localhost/": sluice.ErrURI,
		"sqlite:" + dir: plan.ErrUnavailable,
	} {
		if _, err := sluice.Open(t.Context(), uri); !errors.Is(err, want) {
			t.Errorf("%q is %v, want %v", uri, err, want)
		}
	}
	if _, err := sluice.OpenExisting(t.Context(), "sqlite:"+filepath.Join(dir, "none.db")); !errors.Is(err, plan.ErrNoStore) {
		t.Errorf("a store that is not there is %v, want ErrNoStore", err)
	}
}

func TestPlanFiles(t *testing.T) {
	if _, err := sluice.LoadFile(filepath.Join(t.TempDir(), "none.yaml"), sluice.FileOptions{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there is %v", err)
	}
	const text = "plan: p\nparams: {n: 3, list: []}\ntasks:\n  a: {run: [./a, \"${{ params.n }}\"]}\n"
	dir := t.TempDir()
	spec, err := sluice.ParseFile("p.yaml", []byte(text), sluice.FileOptions{Params: map[string]string{"n": "4", "list": `["x"]`}, Dir: dir})
	if err != nil || string(spec.Params["n"]) != "4" || string(spec.Params["list"]) != `["x"]` {
		t.Fatalf("%+v, %v", spec, err)
	}
	if raw := must[[]byte](t)(json.Marshal(spec.Tasks[0].Params)); !strings.Contains(string(raw), dir) {
		t.Errorf("the task is %s, and does not run in %s", raw, dir)
	}
	_, err = sluice.ParseFile("p.yaml", []byte("plan: p\ntasks:\n  a: {runs: x}\n  b: {run: x, needs: [c]}\n"), sluice.FileOptions{})
	mistakes, ok := errors.AsType[sluice.FileErrors](err)
	if !ok || len(mistakes) != 2 || mistakes[0].Line != 3 || mistakes[1].File != "p.yaml" || !strings.Contains(err.Error(), "p.yaml:3:") {
		t.Errorf("mistakes are %v", err)
	}
	if one, ok := errors.AsType[sluice.FileError](err); !ok || one != mistakes[0] {
		t.Errorf("the first mistake is %v", one)
	}
}

// choosy is a plugin that runs one word.
type choosy struct{ plugins.Func }

func (choosy) Refuse(params json.RawMessage, given map[string]json.RawMessage) (string, error) {
	if given["word"] != nil || strings.Contains(string(params), "good") {
		return "", nil
	}
	return "word", errors.New("word: it is not good")
}

func TestAPluginRefusesTasks(t *testing.T) {
	reg := registry()
	reg.Register("choosy", choosy{})
	st := must[*sluice.Store](t)(sluice.Open(t.Context(), "memory:", sluice.WithPlugins(reg)))
	defer st.Close()
	bad := plan.TaskSpec{Name: "say", Plugin: "choosy", Params: map[string]any{"word": "bad"}}
	refused := func(what string, err error) {
		if p, ok := errors.AsType[plan.Problems](err); !ok || len(p) != 1 || p[0].Message != `task "say": params.word: it is not good` {
			t.Errorf("%s: %v", what, err)
		}
	}
	spec := plan.New("p")
	spec.Add(bad)
	_, err := st.Submit(t.Context(), spec)
	refused("Submit", err)
	_, err = st.Begin(t.Context(), spec)
	refused("Begin", err)
	_, err = st.Add(t.Context(), plan.PlanID{}, []plan.TaskSpec{bad})
	refused("Add", err)
	good := bad
	good.Params = map[string]any{"word": "good"}
	added := must[[]plan.TaskID](t)(st.Add(t.Context(), plan.PlanID{}, []plan.TaskSpec{good}))
	refused("SetTask", st.SetTask(t.Context(), added[0], sluice.TaskChange{Params: bad.Params}))
	for p, err := range st.Plans(t.Context(), sluice.PlanQuery{}) {
		t.Errorf("there is %v, %v", p.Title(), err)
	}
	spec.Params = map[string]json.RawMessage{"word": json.RawMessage(`"x"`)}
	p := must[plan.Plan](t)(st.Begin(t.Context(), spec))
	bad.Name = "again"
	must[[]plan.TaskID](t)(st.Add(t.Context(), p.ID, []plan.TaskSpec{bad}))
}

// A program that has no access to the database asks a server for the same.
func TestAServerIsAStoreForAllButNodes(t *testing.T) {
	st := must[*sluice.Store](t)(sluice.Open(t.Context(), "memory:"))
	api := v1.New(v1.Config{Store: st.Unwrap().(store.Store)})
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { api.Run(ctx) })
	srv := httptest.NewServer(api)
	defer srv.Close()
	far := must[*sluice.Store](t)(sluice.Connect(srv.URL, sluice.ServerOptions{}))
	run := must[plan.Plan](t)(far.Submit(ctx, greetings(), sluice.WithKey("once"), sluice.WithParams(map[string]any{"word": "Hi"})))
	if again := must[plan.Plan](t)(far.Submit(ctx, greetings(), sluice.WithKey("once"), sluice.WithParams(map[string]any{"word": "Hi"}))); again.ID != run.ID {
		t.Errorf("a key submitted %v, and then %v", run.Title(), again.Title())
	}
	late := must[[]plan.TaskID](t)(far.Add(ctx, run.ID, []plan.TaskSpec{{Name: "late", Plugin: "break", Needs: []string{"greet"}}}))
	changes := far.Watch(ctx, run.ID)
	running.Go(func() {
		if err := den.Run(ctx, st, den.Config{Plugins: registry()}); err != nil {
			t.Error(err)
		}
	})
	var last sluice.Change
	for c, err := range changes {
		if err != nil {
			t.Fatal(err)
		}
		last = c
	}
	p := must[plan.Plan](t)(far.Wait(ctx, run.ID))
	if last.State != plan.PlanFailed || p.State != plan.PlanFailed {
		t.Errorf("the plan ended as %v, and the last change is %+v", p.State, last)
	}
	if out := must[json.RawMessage](t)(far.Output(ctx, run.ID, "greet")); string(out) != `["Hi Ada","Hi Grace"]` {
		t.Errorf("its output is %s", out)
	}
	foreseen := must[sluice.Foresight](t)(far.Retry(ctx, run.ID, sluice.RetryOptions{DryRun: true}))
	if len(foreseen.Again) != 1 || foreseen.Again[0].ID != late[0] {
		t.Errorf("a retry runs %v again", foreseen.Again)
	}
	if queues := must[[]plan.Queue](t)(far.Queues(ctx)); len(queues) != 3 {
		t.Errorf("there are %d queues, want 3", len(queues))
	}
	if f := must[plan.File](t)(far.PlanFile(ctx, run.ID)); f != (plan.File{}) {
		t.Errorf("a plan that a program built has the file %+v", f)
	}
	if err := far.Delete(ctx, run.ID); err != nil {
		t.Error(err)
	}
	if _, err := far.Plan(ctx, run.ID); !errors.Is(err, plan.ErrNotFound) {
		t.Errorf("a plan that was deleted is %v", err)
	}
	if err := den.Run(ctx, far, den.Config{Plugins: registry()}); err == nil {
		t.Error("a node runs on a server")
	}
	if _, err := sluice.Connect("ftp://x", sluice.ServerOptions{}); !errors.Is(err, sluice.ErrURL) {
		t.Errorf("what is no server is %v", err)
	}
}

func TestAPlanIsBuiltPieceByPiece(t *testing.T) {
	onEach(t, func(t *testing.T, st *sluice.Store, _ func() *sluice.Store) {
		ctx := t.Context()
		spec := greetings()
		rest := spec.Tasks[1:]
		spec.Tasks = spec.Tasks[:1]
		p := must[plan.Plan](t)(st.Begin(ctx, spec))
		must[[]plan.TaskID](t)(st.Add(ctx, p.ID, rest))
		if now := must[plan.Plan](t)(st.Plan(ctx, p.ID)); now.State != plan.PlanSubmitting || now.Counts.Held != 2 {
			t.Errorf("before it is ready the plan is %v, with %+v", now.State, now.Counts)
		}
		for range 2 {
			if err := st.Ready(ctx, p.ID); err != nil {
				t.Fatal(err)
			}
		}
		if err := den.Run(ctx, st, den.Config{Plugins: registry(), Plan: p.ID}); err != nil {
			t.Fatal(err)
		}
		if out := must[json.RawMessage](t)(st.Output(ctx, p.ID, "greet")); string(out) != `["Hello Ada","Hello Grace"]` {
			t.Errorf("its output is %s", out)
		}
		for name, spec := range map[string]*plan.Spec{"no name": plan.New(""), "limits": {Name: "p", Limits: []plan.QueueLimit{{Queue: "q", Threads: 1}}}} {
			if _, err := st.Begin(ctx, spec); !errors.As(err, new(plan.Problems)) {
				t.Errorf("a plan with %s is %v, want plan.Problems", name, err)
			}
		}
		empty := must[plan.Plan](t)(st.Begin(ctx, plan.New("empty")))
		if err := st.Ready(ctx, empty.ID); err != nil {
			t.Fatal(err)
		}
		if now := must[plan.Plan](t)(st.Wait(ctx, empty.ID)); now.State != plan.PlanSucceeded {
			t.Errorf("a plan without tasks is %v", now.State)
		}
	})
}
