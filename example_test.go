package sluice_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-1177d267/sluice"
	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// registry returns the plugins of these examples: "list" returns two names, "greet" greets one, and
// "break" fails.
func registry() *plugins.Registry {
	reg := plugins.NewRegistry()
	reg.Register("list", plugins.Func(func(context.Context, *plugins.Task) (any, error) {
		return []string{"Ada", "Grace"}, nil
	}))
	reg.Register("greet", plugins.Func(func(_ context.Context, t *plugins.Task) (any, error) {
		var params struct{ Name, Word string }
		if err := json.Unmarshal(t.Params, &params); err != nil {
			return nil, err
		}
		t.Log.Printf("greeting %s", params.Name)
		return params.Word + " " + params.Name, nil
	}))
	reg.Register("break", plugins.Func(func(context.Context, *plugins.Task) (any, error) {
		return nil, errors.New("it broke")
	}))
	return reg
}

// greetings returns a plan: it greets each name of a list.
func greetings() *plan.Spec {
	spec := plan.New("greetings")
	spec.Params = map[string]json.RawMessage{"word": json.RawMessage(`"Hello"`)}
	spec.Add(plan.TaskSpec{Name: "names", Plugin: "list"})
	spec.Add(plan.TaskSpec{
		Name: "greet", Plugin: "greet", Needs: []string{"names"},
		Foreach: &plan.Foreach{Value: "needs.names"},
		Params:  map[string]any{"name": "${{ item }}", "word": "${{ params.word }}"},
	})
	return spec
}

// opened returns a store of its own.
func opened(ctx context.Context) *sluice.Store {
	st, err := sluice.Open(ctx, "memory:")
	if err != nil {
		log.Fatal(err)
	}
	return st
}

// A program that submits a plan, runs it in this process, and reads its output.
func Example() {
	ctx := context.Background()
	st, err := sluice.Open(ctx, "memory:") // or sqlite:plans.db, or mongodb://db.example.com/sluice
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	run, err := st.Submit(ctx, greetings(), sluice.WithParams(map[string]any{"word": "Good morning"}))
	if err != nil {
		log.Fatal(err)
	}
	if err := den.Run(ctx, st, den.Config{Threads: 8, Plugins: registry(), Plan: run.ID}); err != nil {
		log.Fatal(err)
	}
	p, err := st.Plan(ctx, run.ID)
	if err != nil {
		log.Fatal(err)
	}
	out, err := st.Output(ctx, run.ID, "greet")
	fmt.Println(p.Title(), p.State, string(out), err)
	// Output: greetings#1 succeeded ["Good morning Ada","Good morning Grace"] <nil>
}

// Run submits a plan and runs it in this process. It tells of each change.
func ExampleRun() {
	ctx := context.Background()
	st := opened(ctx)
	spec := greetings()
	spec.Add(plan.TaskSpec{Name: "sorry", Plugin: "greet", Needs: []string{"greet"}, When: plan.AnyFailed,
		Params: map[string]any{"name": "all", "word": "Sorry"}})
	p, err := sluice.Run(ctx, st, spec, registry(), func(c sluice.Change) {
		if c.Status.Finished() && c.Of.IsZero() && !c.Task.IsZero() {
			fmt.Println(c.Name, c.Status)
		}
	})
	fmt.Println(p.Title(), p.State, err)
	// Output:
	// names succeeded
	// greet succeeded
	// sorry skipped
	// greetings#1 succeeded <nil>
}

// Failures returns how tasks failed, by kind. An item has a label.
func ExampleStore_Failures() {
	ctx := context.Background()
	st := opened(ctx)
	spec := greetings()
	spec.Tasks[1].Plugin = "break"
	p, err := sluice.Run(ctx, st, spec, registry(), nil)
	if err != nil {
		log.Fatal(err)
	}
	kinds, err := st.Failures(ctx, p.ID)
	if err != nil {
		log.Fatal(err)
	}
	for _, k := range kinds {
		fmt.Println(k.Count, k.Title)
		for _, t := range k.Tasks {
			fmt.Println(t.Name, t.ItemLabel)
		}
	}
	// Output:
	// 2 it broke
	// greet[0] Ada
	// greet[1] Grace
}

// A retry may take the tasks that run again from a mended plan.
func ExampleRetryOptions() {
	ctx := context.Background()
	st := opened(ctx)
	spec := plan.New("fragile")
	spec.Add(plan.TaskSpec{Name: "list", Plugin: "list"})
	spec.Add(plan.TaskSpec{Name: "use", Plugin: "break", Needs: []string{"list"}})
	p, err := sluice.Run(ctx, st, spec, registry(), nil)
	fmt.Println(p.State, err)

	spec.Tasks[1].Plugin, spec.Tasks[1].Params = "greet", map[string]any{"name": "${{ needs.list[0] }}", "word": "Hi"}
	again, err := st.Retry(ctx, p.ID, sluice.RetryOptions{With: spec})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(again.Again), again.Again[0].Name)
	if err := den.Run(ctx, st, den.Config{Plugins: registry(), Plan: p.ID}); err != nil {
		log.Fatal(err)
	}
	out, err := st.Output(ctx, p.ID, "use")
	fmt.Println(string(out), err)
	// Output:
	// failed <nil>
	// 1 use
	// "Hi Ada" <nil>
}

// Wait blocks until a plan has ended, whichever node runs it.
func ExampleStore_Wait() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	st := opened(ctx)
	ended := make(chan error)
	go func() { ended <- den.Run(ctx, st, den.Config{Plugins: registry()}) }() // serves every plan

	run, err := st.Submit(ctx, greetings())
	if err != nil {
		log.Fatal(err)
	}
	p, err := st.Wait(ctx, run.ID)
	fmt.Println(p.State, err)
	stop()
	fmt.Println(<-ended)
	// Output:
	// succeeded <nil>
	// <nil>
}

// Watch returns each change of a plan as it comes.
func ExampleStore_Watch() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	st := opened(ctx)
	run, err := st.Submit(ctx, greetings())
	if err != nil {
		log.Fatal(err)
	}
	changes := st.Watch(ctx, run.ID) // from now on
	go den.Run(ctx, st, den.Config{Plugins: registry()})
	for c, err := range changes {
		switch {
		case err != nil:
			log.Fatal(err)
		case c.Task.IsZero():
			fmt.Println("the plan", c.State)
		case c.Name == "names" && c.Status == plan.Succeeded:
			fmt.Println(c.Name, c.Status)
		}
	}
	// Output:
	// names succeeded
	// the plan succeeded
}

// A key makes Submit idempotent, as for a cron job that may be started twice.
func ExampleWithKey() {
	ctx := context.Background()
	st := opened(ctx)
	for range 2 {
		run, err := st.Submit(ctx, greetings(), sluice.WithKey("greetings-2026-11-22"))
		fmt.Println(run.Title(), err)
	}
	other := greetings()
	other.Tasks[0].Description = "another plan"
	_, err := st.Submit(ctx, other, sluice.WithKey("greetings-2026-11-22"))
	fmt.Println(errors.Is(err, plan.ErrConflict))
	// Output:
	// greetings#1 <nil>
	// greetings#1 <nil>
	// true
}

// A plan may come from a file, with values for its params.
func ExampleLoadFile() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "plan.yaml")
	if err := os.WriteFile(path, []byte(`plan: backup
params: {host: null}
tasks:
  dump: {run: ./dump "$host"}
  send: {needs: [dump], run: [./send, "${{ params.host }}"]}
`), 0o600); err != nil {
		log.Fatal(err)
	}
	spec, err := sluice.LoadFile(path, sluice.FileOptions{Params: map[string]string{"host": "db1"}})
	fmt.Println(spec.Name, len(spec.Tasks), string(spec.Params["host"]), err)

	_, err = sluice.LoadFile(path, sluice.FileOptions{})
	var mistakes sluice.FileErrors
	if errors.As(err, &mistakes) {
		fmt.Println(mistakes[0].Line, mistakes[0].Message)
	}
	// Output:
	// backup 2 "db1" <nil>
	// 2 param "host" has no default; give it a value: param host=VALUE
}

// Tasks of no plan are added one by one; one may need another by its id.
func ExampleStore_Add() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	st := opened(ctx)
	ids, err := st.Add(ctx, plan.PlanID{}, []plan.TaskSpec{
		{Name: "names", Plugin: "list"},
		{Plugin: "greet", Needs: []string{"names"}, Params: map[string]any{"name": "${{ needs.names[1] }}", "word": "Hi"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	go den.Run(ctx, st, den.Config{Plugins: registry()})
	for e, err := range st.FollowLog(ctx, ids[1]) {
		fmt.Print(e.Text, err, "\n")
	}
	t, err := st.Task(ctx, ids[1])
	fmt.Println(t.Status, string(t.Output), err)
	// Output:
	// greeting Grace
	// <nil>
	// succeeded "Hi Grace" <nil>
}

// A retry runs again what did not succeed. DryRun says first what that is.
func ExampleStore_Retry() {
	ctx := context.Background()
	st := opened(ctx)
	spec := plan.New("fragile")
	spec.Add(plan.TaskSpec{Name: "list", Plugin: "list"})
	spec.Add(plan.TaskSpec{Name: "break", Plugin: "break", Needs: []string{"list"}})
	run, err := st.Submit(ctx, spec)
	if err != nil {
		log.Fatal(err)
	}
	if err := den.Run(ctx, st, den.Config{Plugins: registry(), Plan: run.ID}); err != nil {
		log.Fatal(err)
	}
	for t, err := range st.Tasks(ctx, sluice.TaskQuery{Plan: run.ID, Statuses: []plan.Status{plan.Failed}}) {
		fmt.Println(t.Name, t.Detail, err)
	}
	again, err := st.Retry(ctx, run.ID, sluice.RetryOptions{DryRun: true})
	fmt.Println(len(again.Again), again.Again[0].Name, err)

	mended := registry()
	mended.Remove("break")
	mended.Register("break", plugins.Func(func(context.Context, *plugins.Task) (any, error) { return nil, nil }))
	if _, err := st.Retry(ctx, run.ID, sluice.RetryOptions{}); err != nil {
		log.Fatal(err)
	}
	if err := den.Run(ctx, st, den.Config{Plugins: mended, Plan: run.ID}); err != nil {
		log.Fatal(err)
	}
	p, err := st.Plan(ctx, run.ID)
	fmt.Println(p.State, err)
	// Output:
	// break it broke <nil>
	// 1 break <nil>
	// succeeded <nil>
}

// Plans are listed newest first. A plan that no node serves is cancelled at once, and may then be deleted.
func ExampleStore_Cancel() {
	ctx := context.Background()
	st := opened(ctx)
	for range 2 {
		if _, err := st.Submit(ctx, greetings()); err != nil {
			log.Fatal(err)
		}
	}
	for p, err := range st.Plans(ctx, sluice.PlanQuery{Name: "greetings", State: new(plan.PlanRunning)}) {
		if err != nil {
			log.Fatal(err)
		}
		cancelled, err := st.Cancel(ctx, p.ID)
		fmt.Println(cancelled.Title(), cancelled.State, err, st.Delete(ctx, p.ID))
	}
	// Output:
	// greetings#2 cancelled <nil> <nil>
	// greetings#1 cancelled <nil> <nil>
}

// The limit of a queue holds over all nodes.
func ExampleStore_SetQueue() {
	ctx := context.Background()
	st := opened(ctx)
	if _, err := st.CreateQueue(ctx, plan.Queue{Name: "mail", Plugin: "exec", Threads: 4}); err != nil {
		log.Fatal(err)
	}
	q, err := st.SetQueue(ctx, "mail", func(q *plan.Queue) { q.Threads = 8 })
	fmt.Println(q.Name, q.Threads, err)
	queues, err := st.Queues(ctx)
	fmt.Println(len(queues), queues[0].Queued, err)
	// Output:
	// mail 8 <nil>
	// 1 0 <nil>
}

// A schedule starts a task, or a plan, at each instant of its timetable. A program may put its schedules
// whenever it starts: one that has the settings already stays as it is. Each node that is given the
// store as its Schedules fires them while no other node does.
func ExampleStore_PutSchedule() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	st := opened(ctx)
	if _, err := st.CreateQueue(ctx, plan.Queue{Name: "greet", Plugin: "greet", Threads: 4}); err != nil {
		log.Fatal(err)
	}
	_, err := st.PutSchedule(ctx, "good-morning", plan.ScheduleSettings{
		Timetable: plan.Timetable{Cron: "0 7 * * mon-fri", Zone: "Europe/Berlin", Except: []string{"2027-01-01"}},
		Task:      &plan.ScheduledTask{Queue: "greet", Params: json.RawMessage(`{"word": "Good morning", "name": "Ada"}`)},
	})
	if err != nil {
		log.Fatal(err)
	}
	go den.Run(ctx, st, den.Config{Plugins: registry(), Schedules: st})

	if _, err := st.RunSchedule(ctx, "good-morning"); err != nil { // once now, whatever the timetable says
		log.Fatal(err)
	}
	for range time.Tick(50 * time.Millisecond) {
		s, err := st.Schedule(ctx, "good-morning")
		if err != nil {
			log.Fatal(err)
		}
		if len(s.Last) > 0 {
			t, err := st.Task(ctx, s.Last[0].Task)
			fmt.Println(s.Last[0].State, string(t.Output), t.Schedule, err)
			return
		}
	}
	// Output: succeeded "Good morning Ada" good-morning <nil>
}

// Validate returns all that is wrong with a plan.
func ExampleValidate() {
	s := plan.New("nightly")
	s.Add(plan.TaskSpec{Name: "report", Needs: []string{"copy"}})
	var problems plan.Problems
	if errors.As(sluice.Validate(s), &problems) {
		fmt.Println(problems[0].Message)
	}
	// Output: task "report" needs "copy", which is not in the plan; add it or drop the need
}
