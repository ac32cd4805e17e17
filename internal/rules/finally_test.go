package rules_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

func TestWhatBecomesOfATaskOfFinally(t *testing.T) {
	held := rules.Waiter{Status: plan.Held, Finally: true, InPlan: true, All: true}
	for _, c := range []struct {
		name   string
		change func(w *rules.Waiter)
		next   rules.Next
		status plan.Status
		reason plan.Reason
	}{
		{"it is left alone while others have not ended", func(*rules.Waiter) {}, rules.Leave, 0, ""},
		{"so it is in a plan that a failure closed", func(w *rules.Waiter) { w.Closing = plan.ClosedByFailure }, rules.Leave, 0, ""},
		{"and in one that a person closed", func(w *rules.Waiter) { w.Closing = plan.ClosedByPerson }, rules.Leave, 0, ""},
		{"and if it is damaged", func(w *rules.Waiter) { w.Damage = plan.ErrTooLarge }, rules.Leave, 0, ""},
		{"it does not wait for a submission that was closed", func(w *rules.Waiter) {
			w.State, w.Closing = plan.PlanSubmitting, plan.ClosedByPerson
		}, rules.End, plan.Cancelled, plan.ReasonCancelled},
		{"it runs when the others have ended", func(w *rules.Waiter) { w.Ending = plan.PlanFailed }, rules.Queue, plan.Queued, ""},
		{"it waits for its own parents then", func(w *rules.Waiter) { w.Ending, w.All = plan.PlanFailed, false }, rules.Leave, 0, ""},
		{"it waits for them also if it will be skipped", func(w *rules.Waiter) {
			w.Ending, w.All, w.When = plan.PlanSucceeded, false, plan.AllFailed
		}, rules.Leave, 0, ""},
		{"a parent that failed does not skip it", func(w *rules.Waiter) {
			w.Ending, w.When, w.Seen = plan.PlanSucceeded, plan.AllSucceeded, rules.OutcomeFailed
		}, rules.Queue, plan.Queued, ""},
		{"a parent that failed is no reason for it to run", func(w *rules.Waiter) {
			w.Ending, w.When, w.Seen = plan.PlanSucceeded, plan.AnyFailed, rules.OutcomeFailed
		}, rules.Skip, plan.Cancelled, plan.ReasonSkipped},
		{"a cancelled plan counts as one that failed", func(w *rules.Waiter) { w.Ending, w.When = plan.PlanCancelled, plan.AnyFailed }, rules.Queue, plan.Queued, ""},
		{"it does not run on success if it asks for a failure", func(w *rules.Waiter) { w.Ending, w.When = plan.PlanSucceeded, plan.AnyFailed }, rules.Skip, plan.Cancelled, plan.ReasonSkipped},
		{"its items do not ask again", func(w *rules.Waiter) { w.Ending, w.When, w.Item = plan.PlanFailed, "", true }, rules.Queue, plan.Queued, ""},
		{"how the tasks ended that it goes along with does not decide", func(w *rules.Waiter) {
			w.Ending, w.When, w.Made = plan.PlanSucceeded, plan.AllSucceeded, true
			w.Along = rules.Along{Is: true, Seen: rules.OutcomeFailed, Items: 2}
			w.Items = rules.Items{Count: 2, Seen: rules.OutcomeSucceeded | rules.OutcomeSkipped}
		}, rules.Gather, plan.Succeeded, ""},
		{"a person stops it once the others have ended", func(w *rules.Waiter) {
			w.Ending, w.Closing = plan.PlanFailed, plan.ClosedByPerson
		}, rules.End, plan.Cancelled, plan.ReasonCancelled},
	} {
		w := held
		w.When = plan.AllDone
		c.change(&w)
		if next, s := rules.Settle(&w); next != c.next || next != rules.Leave && (s.Status != c.status || s.Reason != c.reason) {
			t.Errorf("%s: got %v, %v %q", c.name, next, s.Status, s.Reason)
		}
	}
}

func TestWhichTasksOfFinallyARetryForListsKept(t *testing.T) {
	at := time.Unix(1000, 0)
	for _, c := range []struct {
		name    string
		task    plan.Task
		retried time.Time
		want    bool
	}{
		{"one that ended before", plan.Task{Status: plan.Succeeded, Ended: at, Definition: plan.Definition{Finally: true}}, at.Add(1), true},
		{"not one that ended since", plan.Task{Status: plan.Cancelled, Ended: at.Add(2), Definition: plan.Definition{Finally: true}}, at.Add(1), false},
		{"none of a plan that was not retried", plan.Task{Status: plan.Cancelled, Ended: at, Definition: plan.Definition{Finally: true}}, time.Time{}, false},
		{"none that is held", plan.Task{Status: plan.Held, Definition: plan.Definition{Finally: true}}, at, false},
		{"no other task", plan.Task{Status: plan.Succeeded, Ended: at}, at.Add(1), false},
	} {
		if got := rules.KeptFinally(&c.task, c.retried); got != c.want {
			t.Errorf("%s: got %v", c.name, got)
		}
	}
}

func TestHowAPlanEndsThatHadTasksOfFinally(t *testing.T) {
	for _, c := range []struct {
		name              string
		ending            plan.Lifecycle
		closing           plan.Closing
		broken, cancelled bool
		want              plan.Lifecycle
	}{
		{"all succeeded", plan.PlanSucceeded, plan.Open, false, false, plan.PlanSucceeded},
		{"a task of finally failed after success", plan.PlanSucceeded, plan.Open, true, false, plan.PlanFailed},
		{"a person cancelled one after success", plan.PlanSucceeded, plan.Open, false, true, plan.PlanCancelled},
		{"a person stopped them after success", plan.PlanSucceeded, plan.ClosedByPerson, true, false, plan.PlanCancelled},
		{"a failure stays one", plan.PlanFailed, plan.Open, true, false, plan.PlanFailed},
		{"a failure stays one if a person stops them", plan.PlanFailed, plan.ClosedByPerson, true, true, plan.PlanFailed},
		{"a cancellation stays one", plan.PlanCancelled, plan.Open, true, false, plan.PlanCancelled},
	} {
		if got := rules.Verdict(c.ending, c.closing, c.broken, c.cancelled); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
	if got, changed := rules.Close(plan.PlanRunning, plan.PlanSucceeded, plan.Open, plan.ClosedByFailure); got != plan.Open || changed {
		t.Error("a failure closes a plan whose tasks of finally run")
	}
	if got, changed := rules.Close(plan.PlanRunning, plan.PlanSucceeded, plan.Open, plan.ClosedByPerson); got != plan.ClosedByPerson || !changed {
		t.Error("a person does not close a plan whose tasks of finally run")
	}
}

func TestWhichCancellationComesLate(t *testing.T) {
	runs, last, ended := plan.Plan{}, plan.Plan{Ending: plan.PlanFailed}, plan.Plan{State: plan.PlanFailed, Ending: plan.PlanFailed}
	for _, c := range []struct {
		name string
		p    *plan.Plan
		seen bool
		want bool
	}{
		{"one of tasks that run", &runs, false, false},
		{"one of tasks that ended since", &last, false, true},
		{"one by a person who saw that tasks of finally run", &last, true, false},
		{"one of a plan that a retry took back since", &runs, true, false},
		{"one of a plan that has ended is refused elsewhere", &ended, false, false},
	} {
		if got := rules.CancelsLate(c.p, c.seen); got != c.want {
			t.Errorf("%s: got %v", c.name, got)
		}
	}
}

func TestARetryTakesAllTasksOfFinallyThatHaveEnded(t *testing.T) {
	d := func(when plan.When) plan.Definition { return plan.Definition{Finally: true, When: when} }
	tasks := func(work, undo, tell plan.Status) []plan.Task {
		all := []plan.Task{
			{ID: plan.TaskID{ID: plan.ID{11: 1}}, Name: "work", Status: work},
			{ID: plan.TaskID{ID: plan.ID{11: 2}}, Name: "undo", Status: undo, Definition: d(plan.AnyFailed)},
			{ID: plan.TaskID{ID: plan.ID{11: 3}}, Name: "tell", Status: tell, Definition: d(plan.AllDone), Needs: []plan.TaskID{{ID: plan.ID{11: 2}}}},
		}
		for i := range all {
			if all[i].Status == plan.Cancelled {
				all[i].Reason = plan.ReasonSkipped
			}
		}
		return all
	}
	for _, c := range []struct {
		name   string
		tasks  []plan.Task
		chosen []int
		want   string // or a part of the error
	}{
		{"a task failed", tasks(plan.Failed, plan.Succeeded, plan.Succeeded), nil, "[tell undo work]"},
		{"a task of finally failed", tasks(plan.Succeeded, plan.Cancelled, plan.Failed), nil, "[tell undo]"},
		{"nothing failed, and one of finally was skipped", tasks(plan.Succeeded, plan.Cancelled, plan.Succeeded), nil, "nothing failed"},
		{"one is named that was skipped", tasks(plan.Succeeded, plan.Cancelled, plan.Succeeded), []int{1}, "[tell undo]"},
		{"others still run", tasks(plan.Failed, plan.Held, plan.Held), nil, "[work]"},
	} {
		var chosen []plan.TaskID
		for _, i := range c.chosen {
			chosen = append(chosen, c.tasks[i].ID)
		}
		retried, err := rules.SelectRetry(c.tasks, chosen, false)
		var names []string
		for _, r := range retried {
			k := slices.IndexFunc(c.tasks, func(t plan.Task) bool { return t.ID == r.ID })
			if names = append(names, c.tasks[k].Name); r.Ran {
				t.Errorf("%s: %s keeps that it ran", c.name, c.tasks[k].Name)
			}
		}
		slices.Sort(names)
		got := "[" + strings.Join(names, " ") + "]"
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}
