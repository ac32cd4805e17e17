package sqlite

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/plan"
)

func TestInputsAreThoseThatATaskRanWith(t *testing.T) {
	s := openTest(t, Options{})
	defer s.Close()
	i := register(t, s, "n1")
	long := `"` + strings.Repeat("x<&>", 100) + `"`
	p := newPlan(t, s, "nightly",
		task{name: "a"}, task{name: "fails", spec: plan.TaskSpec{ContinueOnError: true}},
		task{name: "c", needs: []string{"a", "fails"}, spec: plan.TaskSpec{Params: map[string]any{"own": 1}}})
	round := 0
	run := func() []string {
		round++
		return runAll(t, s, i, func(c protocol.ClaimedTask) protocol.Ending {
			if c.Name == "fails" && round == 1 {
				return protocol.Ending{Status: plan.Failed}
			}
			return protocol.Ending{Status: plan.Succeeded, Output: []byte(long)}
		})
	}
	run()
	want := `{"own":1,"needs":{"a":` + long + `,"fails":null},"args":[` + long + `,null]}`
	if got := named(t, s, p, "c"); string(got.Params) != want {
		t.Fatalf("c ran with %s, want %s", got.Params, want)
	}
	if _, err := s.Retry(t.Context(), p, rules.Ask{Tasks: []plan.TaskID{named(t, s, p, "fails").ID}}); err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"while its parent waits to run again", "when its parent has run again"} {
		if got := named(t, s, p, "c"); string(got.Params) != want || got.Status != plan.Succeeded {
			t.Errorf("%s c is %v and has params %s, want those that it ran with", when, got.Status, got.Params)
		}
		if in, err := s.Inputs(t.Context(), named(t, s, p, "c").ID); err != nil || len(in) != 2 || in[1].Output != nil && string(in[1].Output) != "null" {
			t.Errorf("%s the inputs of c are %s (%v)", when, in, err)
		}
		run()
	}
	if got, err := s.Plan(t.Context(), p); err != nil || got.State != plan.PlanSucceeded {
		t.Errorf("the plan is %v (%v), want succeeded", got.State, err)
	}
}

func TestItemsAreMadeAnewWhenTheirListIs(t *testing.T) {
	s := openTest(t, Options{})
	defer s.Close()
	i := register(t, s, "n1")
	p := newPlan(t, s, "nightly",
		task{name: "list"},
		task{name: "copy", needs: []string{"list"}, spec: plan.TaskSpec{Foreach: &plan.Foreach{Value: "needs.list"}}},
		task{name: "sum", needs: []string{"copy"}})
	list := `[1, 2, 3]`
	run := func() {
		runAll(t, s, i, func(c protocol.ClaimedTask) protocol.Ending {
			e := protocol.Ending{Status: plan.Succeeded, Output: []byte(`"done"`)}
			if c.Name == "list" {
				e.Output = []byte(list)
			}
			return e
		})
	}
	run()
	if got := string(named(t, s, p, "sum").Params); !strings.Contains(got, `"args":[["done","done","done"]]`) {
		t.Fatalf("sum ran with %s", got)
	}
	list = `[1, 2]`
	if _, err := s.Retry(t.Context(), p, rules.Ask{Tasks: []plan.TaskID{named(t, s, p, "list").ID}, Downstream: true}); err != nil {
		t.Fatal(err)
	}
	run()
	if got := string(named(t, s, p, "sum").Params); !strings.Contains(got, `"args":[["done","done"]]`) {
		t.Errorf("sum ran with %s, want what two items made", got)
	}
	if got, err := s.Plan(t.Context(), p); err != nil || got.State != plan.PlanSucceeded || got.Counts.Total() != 4 {
		t.Errorf("the plan is %v with %+v (%v), want succeeded with 4 tasks", got.State, got.Counts, err)
	}
}

func TestARetryBeforeAllItemsAreInMakesThemAnew(t *testing.T) {
	s := openTest(t, Options{})
	defer s.Close()
	i := register(t, s, "n1")
	p := newPlan(t, s, "nightly", task{name: "fails"}, task{name: "list"},
		task{name: "copy", needs: []string{"list"}, spec: plan.TaskSpec{Foreach: &plan.Foreach{Value: "needs.list"}}})
	for _, c := range turn(t, s, protocol.Turn{Instance: i, Slots: 2}).Claimed {
		e := protocol.Ending{Claim: c.Claim, Status: plan.Succeeded, Output: []byte(`[0,1,2,3,4,5,6,7,8,9]`)}
		if c.Name == "fails" {
			e = protocol.Ending{Claim: c.Claim, Status: plan.Failed}
		}
		turn(t, s, protocol.Turn{Instance: i, Ended: []protocol.Ending{e}, Budget: 4})
	}
	if got := named(t, s, p, "copy"); !got.Expanding {
		t.Fatalf("copy is %v with %d items, want it to be making them", got.Status, got.Items)
	}
	if _, err := s.Retry(t.Context(), p, rules.Ask{Tasks: []plan.TaskID{named(t, s, p, "list").ID}, Downstream: true}); err != nil {
		t.Fatal(err)
	}
	if got := named(t, s, p, "copy"); got.Expanding || got.Items != 0 || got.Status != plan.Held {
		t.Errorf("copy is %v and has %d items, want it held without any", got.Status, got.Items)
	}
	runAll(t, s, i, func(c protocol.ClaimedTask) protocol.Ending {
		return protocol.Ending{Status: plan.Succeeded, Output: []byte(`[10,11,12]`)}
	})
	if got := named(t, s, p, "copy"); got.Status != plan.Succeeded || got.Items != 3 {
		t.Errorf("copy is %v with %d items, want it succeeded with 3", got.Status, got.Items)
	}
}

func TestNewParamsOfATaskWithoutParentsMayBeAnything(t *testing.T) {
	s := openTest(t, Options{})
	defer closeStore(t, s)
	i := register(t, s, "n1")
	p := newPlan(t, s, "nightly", task{name: "a"})
	runAll(t, s, i, func(protocol.ClaimedTask) protocol.Ending { return protocol.Ending{Status: plan.Failed} })
	a := named(t, s, p, "a")
	a.Params = json.RawMessage(`[1]`)
	if _, err := s.Retry(t.Context(), p, rules.Ask{Replace: []plan.Task{a}}); err != nil {
		t.Fatal(err)
	}
	runAll(t, s, i, func(c protocol.ClaimedTask) protocol.Ending {
		return protocol.Ending{Status: plan.Succeeded, Output: c.Params}
	})
	if got := named(t, s, p, "a"); got.Status != plan.Succeeded || string(got.Output) != `[1]` {
		t.Errorf("it is %v (%s) with %s, want it to succeed with its params", got.Status, got.Detail, got.Output)
	}
}

func TestNoTransactionWritesMoreTheMoreTasksAPlanHas(t *testing.T) {
	const tasks, most = 3000, 5*protocol.DefaultBudget + 50 // rows; a task has several
	s := openTest(t, Options{})
	defer closeStore(t, s)
	what := ""
	s.watch = func(x *tx) {
		if x.rows > most {
			t.Errorf("%s: a transaction changed %d rows, want at most %d", what, x.rows, most)
		}
	}
	again := func(p plan.PlanID, chosen ...plan.TaskID) {
		t.Helper()
		what = "retry"
		if _, err := s.Retry(t.Context(), p, rules.Ask{Tasks: chosen, Downstream: len(chosen) > 0}); err != nil {
			t.Fatal(err)
		}
		what = "turns"
	}
	wide := manyTasks(tasks)
	for i := 1; i < tasks; i++ {
		wide[i].needs = []string{wide[0].name}
	}
	i := register(t, s, "n1")
	q, err := s.EnsureQueue(t.Context(), plan.Queue{Name: "apart", Plugin: "demo", Unlimited: true})
	if err != nil {
		t.Fatal(err)
	}
	apart := make([]plan.Task, tasks)
	for i := range apart {
		apart[i] = plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: fmt.Sprint("a", i), Queue: q.ID}
		if i > 0 {
			apart[i].Needs = []plan.TaskID{apart[0].ID}
			apart[i].When = plan.AllDone
		}
	}
	what = "add"
	for some := range slices.Chunk(apart, 500) {
		if err := s.AddTasks(t.Context(), plan.PlanID{}, some); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		what = "turns"
		if n := len(runAll(t, s, i, func(protocol.ClaimedTask) protocol.Ending { return protocol.Ending{Status: plan.Failed} })); n != tasks {
			t.Errorf("%d tasks of no plan ran, want %d", n, tasks)
		}
		var ids []plan.TaskID
		for i := range apart {
			ids = append(ids, apart[i].ID)
		}
		again(plan.PlanID{}, ids...)
		if held, err := s.Tasks(t.Context(), store.TaskQuery{Statuses: []plan.Status{plan.Held}, Limit: 2 * tasks}); err != nil || len(held) != tasks-1 {
			t.Errorf("%d tasks of no plan are held after the retry (%v), want %d", len(held), err, tasks-1)
		}
	}
	runAll(t, s, i, func(protocol.ClaimedTask) protocol.Ending { return protocol.Ending{Status: plan.Succeeded} })
	what = "submit"
	p := newPlan(t, s, "wide", wide...)
	what = "turns"
	runAll(t, s, i, func(protocol.ClaimedTask) protocol.Ending { return protocol.Ending{Status: plan.Failed} })
	again(p)
	if got, err := s.Plan(t.Context(), p); err != nil || got.State != plan.PlanRunning || got.Counts.Unfinished() != tasks {
		t.Errorf("the plan is %v with %+v (%v), want it running with %d tasks", got.State, got.Counts, err, tasks)
	}
	what = "cancel"
	if err := s.CancelPlan(t.Context(), p, false); err != nil {
		t.Fatal(err)
	}
	runAll(t, s, i, func(protocol.ClaimedTask) protocol.Ending { return protocol.Ending{Status: plan.Succeeded} })
	items := newPlan(t, s, "items", task{name: "list"},
		task{name: "copy", needs: []string{"list"}, spec: plan.TaskSpec{Foreach: &plan.Foreach{Value: "needs.list"}}})
	list := []byte("[1" + strings.Repeat(",1", tasks-1) + "]")
	for range 2 {
		runAll(t, s, i, func(c protocol.ClaimedTask) protocol.Ending {
			if c.Name == "list" {
				return protocol.Ending{Status: plan.Succeeded, Output: list}
			}
			return protocol.Ending{Status: plan.Succeeded}
		})
		if got, err := s.Plan(t.Context(), items); err != nil || got.State != plan.PlanSucceeded || got.Counts.Succeeded != tasks+1 {
			t.Fatalf("the plan is %v with %+v (%v), want it succeeded with %d tasks", got.State, got.Counts, err, tasks+1)
		}
		again(items, named(t, s, items, "list").ID)
	}
	what = "delete"
	for more, err := true, error(nil); more; {
		if more, err = s.DeletePlan(t.Context(), p, 0); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWhatARetryOfTasksOfNoPlanHoldsUp looks at the store between two transactions of such a retry.
func TestWhatARetryOfTasksOfNoPlanHoldsUp(t *testing.T) {
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	s := openTest(t, Options{Now: func() time.Time { return at }})
	defer closeStore(t, s)
	no := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	i := register(t, s, "n1")
	p := newPlan(t, s, "nightly", task{name: "a"})
	runAll(t, s, i, func(protocol.ClaimedTask) protocol.Ending { return protocol.Ending{Status: plan.Succeeded} })
	q, err := s.EnsureQueue(t.Context(), plan.Queue{Name: "apart", Plugin: "demo", Unlimited: true})
	no(err)
	newTask := func(name string, needs ...plan.TaskID) plan.Task {
		return plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: name, Queue: q.ID, Needs: needs}
	}
	queued, failed := newTask("queued"), newTask("failed")
	no(s.AddTasks(t.Context(), plan.PlanID{}, []plan.Task{failed}))
	runAll(t, s, i, func(protocol.ClaimedTask) protocol.Ending { return protocol.Ending{Status: plan.Failed} })
	_, err = s.Retry(t.Context(), p, rules.Ask{Tasks: []plan.TaskID{named(t, s, p, "a").ID}, Downstream: true})
	no(err)
	no(s.AddTasks(t.Context(), plan.PlanID{}, []plan.Task{queued}))

	begin := func() {
		t.Helper()
		_, err := s.commit(t.Context(), func(x *tx) error {
			x.beginRetry(nil, stepFreeze)
			return nil
		})
		no(err)
	}
	noted := func() (is bool) {
		t.Helper()
		_, err := s.commit(t.Context(), func(x *tx) error {
			is = x.noted(nil) != 0
			return nil
		})
		no(err)
		return is
	}
	begin()
	did := turn(t, s, protocol.Turn{Instance: i, Slots: 5})
	if len(did.Claimed) != 1 || did.Claimed[0].Plan != p {
		t.Errorf("a node claims %v, want the task of the plan alone", did.Claimed)
	}
	added := newTask("added")
	no(s.AddTasks(t.Context(), plan.PlanID{}, []plan.Task{added}))
	if got, err := s.Task(t.Context(), added.ID); err != nil || got.Status != plan.Held {
		t.Errorf("a task that is added is %v (%v), want held", got.Status, err)
	}
	at = at.Add(31 * 24 * time.Hour)
	if gone, err := s.Expire(t.Context(), 1000); err != nil || gone.Tasks > 0 || gone.Plans > 0 {
		t.Errorf("it expires %+v (%v), want nothing that a retry may take or need", gone, err)
	}
	_, err = s.commit(t.Context(), func(x *tx) error {
		x.add(jobRetry, 0)
		return nil
	})
	no(err)
	if _, err := s.Sweep(t.Context(), protocol.Sweep{Instance: i, Holding: []plan.TaskID{did.Claimed[0].Task}}); err != nil || noted() {
		t.Errorf("a sweep leaves a retry whose process is gone (%v)", err)
	}
	if got, err := s.Task(t.Context(), added.ID); err != nil || got.Status != plan.Queued {
		t.Errorf("what was held up is %v after the retry (%v), want queued", got.Status, err)
	}
	begin()
	_, err = s.Retry(t.Context(), plan.PlanID{}, rules.Ask{Tasks: []plan.TaskID{failed.ID}})
	no(err)
	if noted() {
		t.Error("another retry is left to be made")
	}
	begin()
	no(s.CancelTask(t.Context(), failed.ID))
	if got, err := s.Task(t.Context(), failed.ID); err != nil || got.Status != plan.Cancelled || noted() {
		t.Errorf("a task that is cancelled beside a retry is %v (%v)", got.Status, err)
	}
}

// TestASlowTransactionSaysThatARetryIsLeft has a transaction look at a retry after it has used up
// the time for one: the caller is to ask for another transaction.
func TestASlowTransactionSaysThatARetryIsLeft(t *testing.T) {
	s := openTest(t, Options{})
	defer closeStore(t, s)
	for _, slow := range []bool{true, false} {
		_, err := s.commit(t.Context(), func(x *tx) error {
			if slow {
				x.beginRetry(nil, stepFreeze)
				x.add(jobRetry, 0)
				x.began = x.began.Add(-time.Hour)
			}
			x.budget = protocol.DefaultBudget
			more, err := engine.Work(t.Context(), x)
			if more != slow {
				t.Errorf("there is more to do: %v, want %v", more, slow)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestARetryChoosesAgain changes the plan when a retry has chosen its tasks on a reader.
func TestARetryChoosesAgain(t *testing.T) {
	add := func(t *testing.T, s *Store, p plan.PlanID) {
		q, err := s.EnsureQueue(t.Context(), plan.Queue{Name: "demo", Plugin: "demo", Unlimited: true})
		if err == nil {
			err = s.AddTasks(t.Context(), p, []plan.Task{{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: fmt.Sprint("late", time.Now().UnixNano()), Queue: q.ID}})
		}
		if err != nil {
			t.Error(err)
		}
	}
	fail := func(t *testing.T, s *Store, i plan.InstanceID, claims ...protocol.Claim) {
		for _, c := range claims {
			turn(t, s, protocol.Turn{Instance: i, Ended: []protocol.Ending{{Claim: c, Status: plan.Failed}}})
		}
	}
	for _, c := range []struct {
		name   string
		change func(t *testing.T, s *Store, p plan.PlanID, i plan.InstanceID, claims map[string]protocol.Claim)
		always bool // it is changed at each choice
		chose  int  // how often
		want   string
	}{
		{"nothing changes", func(*testing.T, *Store, plan.PlanID, plan.InstanceID, map[string]protocol.Claim) {}, true, 1,
			"a queued, b held, beside running, slow running, waits held"},
		{"a task beside fails", func(t *testing.T, s *Store, _ plan.PlanID, i plan.InstanceID, claims map[string]protocol.Claim) {
			fail(t, s, i, claims["beside"])
		}, false, 1, "a queued, b held, beside failed, slow running, waits held"},
		{"a task below is queued", func(t *testing.T, s *Store, _ plan.PlanID, i plan.InstanceID, claims map[string]protocol.Claim) {
			fail(t, s, i, claims["slow"])
		}, false, 2, "a queued, b held, beside running, slow queued, waits held"},
		{"tasks are added each time", func(t *testing.T, s *Store, p plan.PlanID, _ plan.InstanceID, _ map[string]protocol.Claim) {
			add(t, s, p)
		}, true, choices, "a queued, b held, beside running, slow running, waits held, late queued, late queued, late queued"},
		{"a queue is deleted", func(_ *testing.T, s *Store, _ plan.PlanID, _ plan.InstanceID, _ map[string]protocol.Claim) {
			s.w.script("UPDATE queues SET id = randomblob(12)")
		}, false, 2, "a queued, b held, beside running, slow running, waits held"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := openTest(t, Options{})
			defer closeStore(t, s)
			p := newPlan(t, s, "nightly", task{name: "a"}, task{name: "b", needs: []string{"a"}}, task{name: "beside"}, task{name: "slow"},
				task{name: "waits", needs: []string{"a", "slow"}, spec: plan.TaskSpec{When: plan.AllDone}})
			i := register(t, s, "n1")
			claims := map[string]protocol.Claim{}
			for _, c := range turn(t, s, protocol.Turn{Instance: i, Slots: 3, Start: true}).Claimed {
				claims[c.Name] = c.Claim
			}
			fail(t, s, i, claims["a"])
			chose := 0
			s.chose = func() {
				if chose++; c.always || chose == 1 {
					c.change(t, s, p, i, claims)
				}
			}
			_, err := s.Retry(t.Context(), p, rules.Ask{})
			found, listed := s.Tasks(t.Context(), store.TaskQuery{Plan: p})
			if listed != nil {
				t.Fatal(listed)
			}
			var got []string
			for _, x := range found {
				got = append(got, fmt.Sprint(strings.TrimRight(x.Name, "0123456789"), " ", x.Status))
			}
			if now := strings.Join(got, ", "); now != c.want || chose != c.chose {
				t.Errorf("it chose %d times, and the tasks are %s (%v); want %d times, and %s", chose, now, err, c.chose, c.want)
			}
		})
	}
}

// TestARetryInPartsEndsAForeachTaskWhoseItemsHaveEnded takes a foreach task back whose items all stay, in several
// transactions: none of them ends an item, by which the task would end.
func TestARetryInPartsEndsAForeachTaskWhoseItemsHaveEnded(t *testing.T) {
	for size := 1; size < 8; size++ {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			s := openTest(t, Options{retrySize: size})
			defer s.Close()
			i := register(t, s, "n1")
			p := newPlan(t, s, "nightly", task{name: "copy", spec: plan.TaskSpec{Foreach: &plan.Foreach{List: json.RawMessage(`["a","b"]`)}}})
			run := func() []string {
				return runAll(t, s, i, func(protocol.ClaimedTask) protocol.Ending { return protocol.Ending{Status: plan.Succeeded} })
			}
			run()
			mended := named(t, s, p, "copy")
			mended.Description = "mended"
			ask := rules.Ask{Lists: rules.ListsCompared, Replace: []plan.Task{{ID: mended.ID, Name: mended.Name, Queue: mended.Queue, Definition: mended.Definition, Params: mended.Params}}}
			if _, err := s.Retry(t.Context(), p, ask); err != nil {
				t.Fatal(err)
			}
			if ran := run(); len(ran) > 0 {
				t.Errorf("%v ran again", ran)
			}
			if got := named(t, s, p, "copy"); got.Status != plan.Succeeded || got.Description != "mended" {
				t.Errorf("copy is %v, %q; want it succeeded, and mended", got.Status, got.Description)
			}
		})
	}
}
