package rules_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

func lostRunning(most, rescues int) rules.Step {
	return rules.Lost(rules.Loss{
		Claim: rules.Claim{Status: plan.Running}, InPlan: true, Definition: &plan.Definition{MaxRescues: most}, Rescues: rescues,
	})
}

func TestWhatIsLostWithItsNode(t *testing.T) {
	for _, c := range []struct {
		name    string
		status  plan.Status
		inPlan  bool
		def     plan.Definition
		queue   plan.OnLost
		rescues int
		cancel  bool
		want    plan.Status
		reason  plan.Reason
	}{
		{"a plan's task runs again", plan.Running, true, plan.Definition{}, "", 0, false, plan.Queued, plan.ReasonLost},
		{"also for the third time", plan.Running, true, plan.Definition{}, "", 2, false, plan.Queued, plan.ReasonLost},
		{"but not for the fourth", plan.Running, true, plan.Definition{}, "", 3, false, plan.Orphaned, plan.ReasonLost},
		{"or as often as it says", plan.Running, true, plan.Definition{MaxRescues: 1}, "", 1, false, plan.Orphaned, plan.ReasonLost},
		{"which may be more", plan.Running, true, plan.Definition{MaxRescues: 9}, "", 8, false, plan.Queued, plan.ReasonLost},
		{"a task of no plan does not", plan.Running, false, plan.Definition{}, "", 0, false, plan.Orphaned, plan.ReasonLost},
		{"unless it says so", plan.Running, false, plan.Definition{OnLost: plan.OnLostRetry}, "", 0, false, plan.Queued, plan.ReasonLost},
		{"a plan's task that must not run twice does not", plan.Running, true, plan.Definition{OnLost: plan.OnLostFail}, "", 0, false, plan.Orphaned, plan.ReasonLost},
		{"a task of no plan does, where its queue says so", plan.Running, false, plan.Definition{}, plan.OnLostRetry, 2, false, plan.Queued, plan.ReasonLost},
		{"as often as any", plan.Running, false, plan.Definition{}, plan.OnLostRetry, 3, false, plan.Orphaned, plan.ReasonLost},
		{"a plan's task does not, where its queue says so", plan.Running, true, plan.Definition{}, plan.OnLostFail, 0, false, plan.Orphaned, plan.ReasonLost},
		{"a task that may is asked before its queue", plan.Running, true, plan.Definition{OnLost: plan.OnLostRetry}, plan.OnLostFail, 0, false, plan.Queued, plan.ReasonLost},
		{"so is one that may not", plan.Running, true, plan.Definition{OnLost: plan.OnLostFail}, plan.OnLostRetry, 0, false, plan.Orphaned, plan.ReasonLost},
		{"a queue that wants what the default is changes nothing", plan.Running, true, plan.Definition{}, plan.OnLostRetry, 0, false, plan.Queued, plan.ReasonLost},
		{"also where that is the other one", plan.Running, false, plan.Definition{}, plan.OnLostFail, 0, false, plan.Orphaned, plan.ReasonLost},
		{"what a queue would have fail had no effect if it was only claimed", plan.Claimed, true, plan.Definition{}, plan.OnLostFail, 0, false, plan.Queued, plan.ReasonLost},
		{"a queue keeps nothing alive that a person wants ended", plan.Running, true, plan.Definition{}, plan.OnLostRetry, 0, true, plan.Terminated, plan.ReasonCancelled},
		{"what was only claimed had no effect", plan.Claimed, false, plan.Definition{OnLost: plan.OnLostFail}, "", 9, false, plan.Queued, plan.ReasonLost},
		{"what a person wants ended is ended", plan.Running, true, plan.Definition{}, "", 0, true, plan.Terminated, plan.ReasonCancelled},
		{"and if it was only claimed, it never ran", plan.Claimed, true, plan.Definition{}, "", 0, true, plan.Cancelled, plan.ReasonCancelled},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := rules.Loss{Claim: rules.Claim{Status: c.status, Cancel: c.cancel}, InPlan: c.inPlan, Definition: &c.def, Queue: c.queue, Rescues: c.rescues}
			got := rules.Lost(l)
			orphaned := l
			if orphaned.Status = plan.Orphaned; c.status == plan.Running && !reflect.DeepEqual(rules.Lost(orphaned), got) {
				t.Errorf("one that another program orphaned: %+v, want %+v", rules.Lost(orphaned), got)
			}
			if got.Status != c.want || got.Reason != c.reason {
				t.Errorf("got %v, %q; want %v, %q", got.Status, got.Reason, c.want, c.reason)
			}
			if c.want == plan.Queued && (got.Attempts != map[bool]int{true: 0, false: -1}[c.status == plan.Running] || got.Keep != (c.status == plan.Claimed)) {
				t.Errorf("the attempt changes by %d, and its reason stays: %v", got.Attempts, got.Keep)
			}
			if counts := got.Status == plan.Queued && c.status == plan.Running; (got.Rescues == 1) != counts || got.Attempted != (c.status == plan.Running) {
				t.Errorf("rescues go up by %d, and the attempt counts as ended: %v", got.Rescues, got.Attempted)
			}
			l.Closing = plan.ClosedByFailure
			want := got.Status
			if want == plan.Queued {
				want = map[bool]plan.Status{true: plan.Terminated, false: plan.Cancelled}[c.status == plan.Running]
			}
			if closed := rules.Lost(l); closed.Status != want {
				t.Errorf("in a closed plan: %v; in an open one: %v", closed.Status, got.Status)
			}
		})
	}
	got := lostRunning(21, 21)
	if !strings.Contains(got.Detail, "22nd time") {
		t.Errorf("the detail is %q, want the 22nd time", got.Detail)
	}
	for rescues, want := range map[int]string{0: "1st", 2: "3rd", 3: "4th", 10: "11th", 11: "12th", 12: "13th", 20: "21st", 110: "111th"} {
		if got := lostRunning(-1, rescues); !strings.Contains(got.Detail, want+" time") {
			t.Errorf("the detail is %q, want the %s time", got.Detail, want)
		}
	}
}

// To read the list of a foreach task has no effect: a failure that closes its plan meanwhile skips it.
func TestAForeachTaskThatReadItsListDidNotRun(t *testing.T) {
	c := rules.Claim{Status: plan.Running, List: true, Closing: plan.ClosedByFailure}
	for name, s := range map[string]rules.Step{
		"given back": rules.Ended(c, &protocol.Ending{Status: plan.Queued}),
		"delayed":    rules.Ended(c, &protocol.Ending{Status: plan.Held, Delay: time.Minute}),
		"lost":       rules.Lost(rules.Loss{Claim: c, InPlan: true, Definition: &plan.Definition{}}),
	} {
		if s.Status != plan.Cancelled || s.Reason != plan.ReasonSkipped {
			t.Errorf("%s: it ends as %v, %q; want skipped", name, s.Status, s.Reason)
		}
	}
	c.Ran = true // of earlier items
	if s := rules.GivenBack(c); s.Status != plan.Terminated {
		t.Errorf("it had items that ran, and ends as %v", s.Status)
	}
}

func TestWhatAPersonCancelledEndsWhateverItsNodeSays(t *testing.T) {
	for _, c := range []struct {
		from plan.Status
		ran  bool
		want plan.Status
	}{{plan.Running, false, plan.Terminated}, {plan.Claimed, false, plan.Cancelled}, {plan.Claimed, true, plan.Terminated}} {
		if s := rules.Stopped(c.from, c.ran, plan.Open); s.Status != c.want || s.Reason != plan.ReasonCancelled || s.Nobody != c.ran {
			t.Errorf("%v, ran before %v, ends as %v, %q, nobody's %v; want %v", c.from, c.ran, s.Status, s.Reason, s.Nobody, c.want)
		}
	}
}

func TestHowAForeachTaskEnds(t *testing.T) {
	for _, c := range []struct {
		name          string
		seen          rules.Outcome
		failed, items int
		stopped       bool
		want          plan.Status
		reason        plan.Reason
		detail        string
	}{
		{"all succeeded", rules.OutcomeSucceeded, 0, 3, false, plan.Succeeded, "", ""},
		{"there were none", 0, 0, 0, false, plan.Succeeded, "", ""},
		{"some failed", rules.OutcomeSucceeded | rules.OutcomeFailed, 2, 9, false, plan.Failed, plan.ReasonItems, "2 of 9 items failed"},
		{"some failed and some were cancelled", rules.OutcomeFailed | rules.OutcomeCancelled, 1, 2, false, plan.Failed, plan.ReasonItems, "1 of 2 items failed"},
		{"some were cancelled", rules.OutcomeSucceeded | rules.OutcomeCancelled, 0, 2, false, plan.Cancelled, plan.ReasonCancelled, "some of its items were cancelled"},
		{"some were skipped", rules.OutcomeSucceeded | rules.OutcomeSkipped, 0, 2, false, plan.Succeeded, "", ""},
		{"all were skipped", rules.OutcomeSkipped, 0, 2, false, plan.Cancelled, plan.ReasonSkipped, "all of its items were skipped"},
		{"a person stopped some", rules.OutcomeFailed | rules.OutcomeCancelled, 2, 9, true, plan.Terminated, plan.ReasonCancelled, "it was stopped before all of its items had ended"},
		{"a person stopped it between two items", rules.OutcomeSucceeded | rules.OutcomeCancelled, 0, 9, true, plan.Terminated, plan.ReasonCancelled, "it was stopped before all of its items had ended"},
		{"a person cancelled it before any ran", rules.OutcomeCancelled, 0, 9, true, plan.Cancelled, plan.ReasonCancelled, "some of its items were cancelled"},
		{"a person came too late", rules.OutcomeSucceeded, 0, 9, true, plan.Succeeded, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &rules.Waiter{Status: plan.Held, Made: true, Items: rules.Items{Count: c.items, Failed: c.failed, Seen: c.seen}, Cancel: c.stopped}
			next, s := rules.Settle(w)
			if next != rules.Gather || s.Status != c.want || s.Reason != c.reason || s.Detail != c.detail {
				t.Errorf("got %v, %v, %q, %q; want %v, %q, %q", next, s.Status, s.Reason, s.Detail, c.want, c.reason, c.detail)
			}
			w.Cancel, w.InPlan, w.Closing = false, true, plan.Open
			if c.stopped {
				w.Closing = plan.ClosedByPerson
			}
			if _, same := rules.Settle(w); !reflect.DeepEqual(same, s) {
				t.Errorf("with its plan cancelled it is %+v, with the task cancelled %+v", same, s)
			}
		})
	}
}

func TestHowATaskEndsThatGoesAlong(t *testing.T) {
	const ok, failed, skipped = rules.OutcomeSucceeded, rules.OutcomeFailed, rules.OutcomeSkipped
	for _, c := range []struct {
		name    string
		when    plan.When
		seen    rules.Outcome // of its items
		heads   rules.Outcome
		closing plan.Closing
		want    plan.Status
		detail  string
	}{
		{"all succeeded", "", ok, ok, plan.Open, plan.Succeeded, ""},
		{"one was skipped for the failure of a head", "", ok | skipped, failed, plan.Open, plan.Cancelled, "some of its items were skipped"},
		{"one was skipped below one that was skipped", "", ok | skipped, skipped, plan.Open, plan.Cancelled, "some of its items were skipped"},
		{"one was skipped as nothing had failed", plan.AnyFailed, ok | skipped, failed, plan.Open, plan.Succeeded, ""},
		{"one was skipped below a failure that is allowed", "", ok | skipped, ok, plan.Open, plan.Succeeded, ""},
		{"all were skipped", plan.AnyFailed, skipped, ok, plan.Open, plan.Cancelled, "all of its items were skipped"},
		{"one failed and one was skipped", "", failed | skipped, failed, plan.Open, plan.Failed, "1 of 3 items failed"},
		{"a failure stopped the plan", plan.AnyFailed, ok | skipped, failed, plan.ClosedByFailure, plan.Terminated, rules.ByItems},
		{"a person stopped the plan, and none was stopped", plan.AnyFailed, ok | skipped, failed, plan.ClosedByPerson, plan.Succeeded, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &rules.Waiter{Status: plan.Held, When: c.when, Made: true, InPlan: true, Closing: c.closing,
				Items: rules.Items{Count: 3, Failed: 1, Seen: c.seen}, Along: rules.Along{Is: true, Items: 3, Seen: c.heads}}
			if next, s := rules.Settle(w); next != rules.Gather || s.Status != c.want || s.Detail != c.detail {
				t.Errorf("got %v, %v, %q; want %v, %q", next, s.Status, s.Detail, c.want, c.detail)
			}
			w.Along.Left = true
			if next, _ := rules.Settle(w); next != rules.Leave {
				t.Errorf("got %v while a head has not finished; want %v", next, rules.Leave)
			}
		})
	}
}

func TestATaskThatGoesAlongMakesItsItems(t *testing.T) {
	type head struct {
		items int
		o     rules.Outcome
	}
	for _, c := range []struct {
		name  string
		when  plan.When
		heads []head
		seen  rules.Outcome // of its other parents
		left  bool          // one of them has not finished
		next  rules.Next
		want  plan.Status
	}{
		{"while its head runs", "", []head{{3, 0}}, 0, false, rules.Expand, 0},
		{"not before the items of its head are in", "", []head{{0, 0}}, 0, false, rules.Leave, 0},
		{"nor before those of both are", "", []head{{3, 0}, {0, 0}}, 0, false, rules.Leave, 0},
		{"nor before another parent has ended", "", []head{{3, 0}}, 0, true, rules.Leave, 0},
		{"nor if that failed", "", []head{{3, 0}}, rules.OutcomeFailed, false, rules.Skip, plan.Cancelled},
		{"whatever its rule makes of the items", plan.AnyFailed, []head{{3, rules.OutcomeSucceeded}}, 0, false, rules.Expand, 0},
		{"after a failure of its head", "", []head{{3, rules.OutcomeFailed}}, rules.OutcomeSucceeded, false, rules.Expand, 0},
		{"not if its head was skipped before it had any", "", []head{{0, rules.OutcomeSkipped}}, 0, false, rules.Skip, plan.Cancelled},
		{"but of one that has some, if another head has none", plan.AnyFailed, []head{{3, 0}, {0, rules.OutcomeSkipped}}, 0, false, rules.Expand, 0},
		{"of which there are none then", plan.AllDone, []head{{0, rules.OutcomeSkipped}}, 0, false, rules.Expand, 0},
		{"not if its heads have different ones", "", []head{{3, 0}, {2, 0}}, 0, false, rules.End, plan.Failed},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := rules.Waiter{Status: plan.Held, When: c.when, InPlan: true, State: plan.PlanRunning, List: true, Seen: c.seen, All: !c.left}
			for _, h := range c.heads {
				if w.Along.See(h.items, h.o) {
					w.Seen, w.All = w.Seen|h.o, w.All && h.o != 0
				}
			}
			if next, s := rules.Settle(&w); next != c.next || s.Status != c.want {
				t.Errorf("got %v, %v; want %v, %v", next, s.Status, c.next, c.want)
			}
		})
	}
}

func TestAFailureThatStopsAForeachTaskHalfWayStopsItAsATaskThatRan(t *testing.T) {
	for seen, want := range map[rules.Outcome]string{
		rules.OutcomeSucceeded | rules.OutcomeSkipped:                       "terminated",
		rules.OutcomeSucceeded | rules.OutcomeSkipped | rules.OutcomeFailed: "failed",
		rules.OutcomeSkipped:                            "skipped",
		rules.OutcomeSucceeded | rules.OutcomeCancelled: "cancelled", // a person cancelled some items before
	} {
		w := &rules.Waiter{Status: plan.Held, Made: true, Items: rules.Items{Count: 3, Seen: seen}, InPlan: true, Closing: plan.ClosedByFailure}
		if _, s := rules.Settle(w); plan.State(s.Status, s.Reason) != want {
			t.Errorf("%04b: %v, want %s", seen, plan.State(s.Status, s.Reason), want)
		}
	}
}

// A failure closed the plan, and then a person did: the items that were skipped before were stopped.
func TestACancellationAfterAFailureStopsAForeachTaskThatRan(t *testing.T) {
	for seen, want := range map[rules.Outcome]string{
		rules.OutcomeSucceeded | rules.OutcomeSkipped: "terminated",
		rules.OutcomeSkipped:                          "skipped",
	} {
		w := &rules.Waiter{Status: plan.Held, Made: true, Items: rules.Items{Count: 3, Seen: seen}, InPlan: true, Closing: plan.ClosedByPerson}
		if _, s := rules.Settle(w); plan.State(s.Status, s.Reason) != want {
			t.Errorf("%04b: %v, want %s", seen, plan.State(s.Status, s.Reason), want)
		}
	}
}

func TestWhenTheTimeOfAPlanIsOver(t *testing.T) {
	at := time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)
	p := plan.Plan{Timeout: 8 * time.Hour, State: plan.PlanRunning}
	rules.Begin(&p, at)
	if want := at.Add(8 * time.Hour); !p.Deadline.Equal(want) {
		t.Errorf("the deadline is %v, want %v", p.Deadline, want)
	}
	rules.Reopen(&p, nil, nil, at.Add(time.Hour))
	if want := at.Add(9 * time.Hour); !p.Deadline.Equal(want) {
		t.Errorf("after a retry the deadline is %v, want %v", p.Deadline, want)
	}
	other := time.Hour
	rules.Reopen(&p, nil, &other, at.Add(time.Hour))
	if want := at.Add(2 * time.Hour); !p.Deadline.Equal(want) || p.Timeout != other {
		t.Errorf("after a retry with another timeout it is %v, and the deadline %v, want %v", p.Timeout, p.Deadline, want)
	}
	p.Timeout = 0
	if rules.Begin(&p, at); !p.Deadline.IsZero() {
		t.Errorf("without a timeout the deadline is %v", p.Deadline)
	}
	for _, c := range []struct {
		name     string
		state    plan.Lifecycle
		ending   plan.Lifecycle
		closing  plan.Closing
		retrying bool
		want     bool
	}{
		{"a plan that runs is closed", plan.PlanRunning, plan.PlanRunning, plan.Open, false, true},
		{"so is one that a failure closed, since what runs goes on", plan.PlanRunning, plan.PlanRunning, plan.ClosedByFailure, false, true},
		{"one that a person cancels is not", plan.PlanRunning, plan.PlanRunning, plan.ClosedByPerson, false, false},
		{"nor one that is closed so", plan.PlanRunning, plan.PlanRunning, plan.ClosedByTimeout, false, false},
		{"nor one that has ended", plan.PlanSucceeded, plan.PlanRunning, plan.Open, false, false},
		{"nor one that is submitted", plan.PlanSubmitting, plan.PlanRunning, plan.Open, false, false},
		{"nor one whose tasks of finally run", plan.PlanRunning, plan.PlanFailed, plan.Open, false, false},
		{"nor one that is being retried, whose time begins anew", plan.PlanRunning, plan.PlanRunning, plan.Open, true, false},
	} {
		if got := rules.TimesOut(c.state, c.ending, c.closing, c.retrying); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
		if p := (plan.Plan{State: c.state, Ending: c.ending, Closing: c.closing, Deadline: at}); !c.retrying && rules.Overdue(&p, at) != c.want || rules.Overdue(&p, at.Add(-1)) {
			t.Errorf("%s, and it is overdue: %v", c.name, !c.want)
		}
	}
	if rules.Overdue(&plan.Plan{}, at) {
		t.Error("a plan without a timeout is overdue")
	}
}

func TestHowAPlanEnds(t *testing.T) {
	for _, c := range []struct {
		name              string
		closing           plan.Closing
		broken, cancelled bool
		want              plan.Lifecycle
	}{
		{"nothing went wrong", plan.Open, false, false, plan.PlanSucceeded},
		{"a task is broken", plan.Open, true, false, plan.PlanFailed},
		{"a person cancelled a task", plan.Open, false, true, plan.PlanCancelled},
		{"a task is broken and another cancelled", plan.Open, true, true, plan.PlanFailed},
		{"a failure stopped it", plan.ClosedByFailure, true, false, plan.PlanFailed},
		{"a person cancelled it", plan.ClosedByPerson, false, true, plan.PlanCancelled},
		{"a person cancelled it after a failure", plan.ClosedByPerson, true, true, plan.PlanCancelled},
		{"its time was over", plan.ClosedByTimeout, false, true, plan.PlanFailed},
		{"its time was over when all had succeeded", plan.ClosedByTimeout, false, false, plan.PlanFailed},
		{"a person cancelled it when all had succeeded", plan.ClosedByPerson, false, false, plan.PlanCancelled},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := rules.Verdict(plan.PlanRunning, c.closing, c.broken, c.cancelled)
			if got != c.want || !got.Ended() {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestWhatAnEndingMakesOfATask(t *testing.T) {
	exit := &plan.Exit{Code: 3}
	failed := protocol.Ending{Status: plan.Failed, Reason: plan.ReasonSignal, Detail: "killed", Exit: exit}
	again := protocol.Ending{Status: plan.Held, Reason: plan.ReasonTimeout, Detail: "too long", Exit: exit, Delay: time.Second}
	atOnce := protocol.Ending{Status: plan.Held, Detail: "once more", Exit: exit}
	back := protocol.Ending{Status: plan.Queued}
	lost := protocol.Ending{Status: plan.Queued, Reason: plan.ReasonLost, Detail: "no output", Exit: exit}
	items := []json.RawMessage{json.RawMessage("1")}
	running, cancelled := rules.Claim{Status: plan.Running}, rules.Claim{Status: plan.Running, Cancel: true}
	closed := rules.Claim{Status: plan.Running, Closing: plan.ClosedByFailure}
	notStarted := rules.Step{Status: plan.Cancelled, Reason: plan.ReasonSkipped, Detail: rules.ByFailure}
	stopped := rules.Step{Status: plan.Terminated, Reason: plan.ReasonCancelled, Detail: rules.ByFailure, Nobody: true}
	with := func(s rules.Step, change func(*rules.Step)) rules.Step { change(&s); return s }
	for _, c := range []struct {
		name   string
		claim  rules.Claim
		ending protocol.Ending
		want   rules.Step
	}{
		{"it succeeds", running, protocol.Ending{Status: plan.Succeeded, Output: json.RawMessage("7")},
			rules.Step{Status: plan.Succeeded, Attempted: true, Output: json.RawMessage("7")}},
		{"it fails", running, failed, rules.Step{Status: plan.Failed, Reason: plan.ReasonSignal, Detail: "killed", Attempted: true, Exit: exit}},
		{"it fails though it was cancelled", cancelled, failed, rules.Step{Status: plan.Failed, Reason: plan.ReasonSignal, Detail: "killed", Attempted: true, Exit: exit}},
		{"it is tried again later", running, again,
			rules.Step{Status: plan.Held, Reason: plan.ReasonTimeout, Detail: "too long", Attempted: true, Exit: exit, Delay: time.Second, Ran: true}},
		{"but not after it was cancelled", cancelled, again,
			rules.Step{Status: plan.Terminated, Reason: plan.ReasonCancelled, Detail: "too long", Attempted: true, Exit: exit}},
		{"or its plan was closed", closed, again, with(stopped, func(s *rules.Step) { s.Attempted, s.Exit = true, exit })},
		{"it is tried again at once", running, atOnce, rules.Step{Status: plan.Queued, Detail: "once more", Attempted: true, Exit: exit, Ran: true}},
		{"it is given back", running, back, rules.Step{Status: plan.Queued, Keep: true, Attempts: -1, Ran: true}},
		{"it is given back to a closed plan", closed, back, with(stopped, func(s *rules.Step) { s.Attempts = -1 })},
		{"to a cancelled one", rules.Claim{Status: plan.Running, Closing: plan.ClosedByPerson}, back, with(stopped, func(s *rules.Step) { s.Attempts, s.Detail = -1, rules.ByPerson })},
		{"it did not run, and is given back to a closed plan", rules.Claim{Status: plan.Claimed, Closing: plan.ClosedByFailure}, back, with(notStarted, func(s *rules.Step) { s.Attempts = -1 })},
		{"its output is lost", running, lost,
			rules.Step{Status: plan.Queued, Reason: plan.ReasonLost, Detail: "no output", Attempted: true, Exit: exit, Rescues: 1, Ran: true}},
		{"its output is lost, and its plan was closed", closed, lost, with(stopped, func(s *rules.Step) { s.Attempted, s.Exit, s.Rescues = true, exit, 1 })},
		{"its output is lost after it was cancelled", cancelled, lost,
			rules.Step{Status: plan.Terminated, Reason: plan.ReasonCancelled, Detail: "no output", Attempted: true, Exit: exit, Rescues: 1}},
		{"it is given back after it was cancelled", cancelled, back,
			rules.Step{Status: plan.Terminated, Reason: plan.ReasonCancelled, Detail: rules.ByPerson}},
		{"a claim is given back after it was cancelled", rules.Claim{Status: plan.Claimed, Cancel: true}, back,
			rules.Step{Status: plan.Cancelled, Reason: plan.ReasonCancelled}},
		{"its items were found", running, protocol.Ending{Status: plan.Held, Expand: true, Items: items}, rules.Step{Status: plan.Held, Items: items, Attempted: true}},
		{"its items were found after it was cancelled", cancelled, protocol.Ending{Status: plan.Held, Expand: true, Items: items},
			rules.Step{Status: plan.Terminated, Reason: plan.ReasonCancelled, Detail: rules.ByPerson, Attempted: true}},
		{"its items were found, and its plan was closed", closed, protocol.Ending{Status: plan.Held, Expand: true, Items: items},
			with(notStarted, func(s *rules.Step) { s.Attempted = true })},
		{"it has no items", running, protocol.Ending{Status: plan.Held, Expand: true, Detail: "no file is there"},
			rules.Step{Status: plan.Succeeded, Detail: "no file is there", Output: json.RawMessage("[]"), Empty: true, Attempted: true}},
		{"it has no items, and its plan was closed", closed, protocol.Ending{Status: plan.Held, Expand: true},
			rules.Step{Status: plan.Succeeded, Output: json.RawMessage("[]"), Empty: true, Attempted: true}},
		{"it has too many", running, protocol.Ending{Status: plan.Held, Expand: true, Items: make([]json.RawMessage, plan.MaxItems+1)},
			rules.Step{Status: plan.Failed, Reason: plan.ReasonInput, Detail: rules.CheckItems(plan.MaxItems + 1).Error(), Attempted: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := rules.Ended(c.claim, &c.ending); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v\nwant %+v", got, c.want)
			}
		})
	}
	if got, want := rules.GivenBack(closed), rules.Ended(closed, &back); !reflect.DeepEqual(got, want) {
		t.Errorf("a claim that nobody knows of becomes %+v; one that is given back %+v", got, want)
	}
}

func TestWhatIsDoneWithATaskThatWaits(t *testing.T) {
	held := rules.Waiter{Status: plan.Held, InPlan: true, State: plan.PlanRunning, All: true, Seen: rules.OutcomeSucceeded}
	with := func(change func(*rules.Waiter)) rules.Waiter { w := held; change(&w); return w }
	for _, c := range []struct {
		name string
		w    rules.Waiter
		next rules.Next
		want plan.Status
	}{
		{"its parents let it run", held, rules.Queue, plan.Queued},
		{"one has not finished", with(func(w *rules.Waiter) { w.All = false }), rules.Leave, 0},
		{"one failed", with(func(w *rules.Waiter) { w.Seen |= rules.OutcomeFailed; w.All = false }), rules.Skip, plan.Cancelled},
		{"one failed, and its plan is not ready", with(func(w *rules.Waiter) { w.Seen |= rules.OutcomeFailed; w.State = plan.PlanSubmitting }), rules.Ready, 0},
		{"one failed, and it ran before a retry", with(func(w *rules.Waiter) { w.Seen |= rules.OutcomeFailed; w.Ran = true }), rules.End, plan.Terminated},
		{"a clean-up that ran before a retry is not needed any more", with(func(w *rules.Waiter) { w.When, w.Ran = plan.AnyFailed, true }), rules.Skip, plan.Cancelled},
		{"its plan is not ready", with(func(w *rules.Waiter) { w.State = plan.PlanSubmitting }), rules.Ready, 0},
		{"its plan is not ready, nor are its parents", with(func(w *rules.Waiter) { w.State, w.All = plan.PlanSubmitting, false }), rules.Leave, 0},
		{"it is of no plan", rules.Waiter{Status: plan.Held, All: true}, rules.Queue, plan.Queued},
		{"it is early", with(func(w *rules.Waiter) { w.Early = true }), rules.Delay, 0},
		{"it has a list", with(func(w *rules.Waiter) { w.List = true }), rules.Expand, 0},
		{"it makes its items", with(func(w *rules.Waiter) { w.Making = true }), rules.Make, 0},
		{"some of its items have not finished", with(func(w *rules.Waiter) { w.Made, w.Items.Left = true, 1 }), rules.Leave, 0},
		{"its items have finished", with(func(w *rules.Waiter) { w.Made = true }), rules.Gather, plan.Succeeded},
		{"some of its items have not finished, and its plan is closed",
			with(func(w *rules.Waiter) { w.Made, w.Items.Left, w.Closing = true, 1, plan.ClosedByPerson }), rules.Leave, 0},
		{"its items are being made, and its plan is closed", with(func(w *rules.Waiter) { w.Making, w.Closing = true, plan.ClosedByPerson }), rules.End, plan.Cancelled},
		{"the other items are not in", with(func(w *rules.Waiter) { w.Item, w.Alone = true, true }), rules.Leave, 0},
		{"a person cancelled its foreach task", with(func(w *rules.Waiter) { w.Item, w.Stopped = true, true }), rules.End, plan.Cancelled},
		{"it is queued", with(func(w *rules.Waiter) { w.Status = plan.Queued }), rules.Leave, 0},
		{"it is queued in a closed plan", with(func(w *rules.Waiter) { w.Status, w.Closing = plan.Queued, plan.ClosedByFailure }), rules.End, plan.Cancelled},
		{"it was given back to a plan that is closed now", with(func(w *rules.Waiter) { w.Status, w.Closing, w.Ran = plan.Queued, plan.ClosedByPerson, true }), rules.End, plan.Terminated},
		{"it waits for its next attempt in a closed plan", with(func(w *rules.Waiter) { w.Early, w.Closing, w.Ran = true, plan.ClosedByFailure, true }), rules.End, plan.Terminated},
		{"it read its items, and its plan is closed", with(func(w *rules.Waiter) { w.Making, w.Closing = true, plan.ClosedByFailure }), rules.End, plan.Cancelled},
		{"and earlier items ran", with(func(w *rules.Waiter) { w.Making, w.Closing, w.Ran = true, plan.ClosedByFailure, true }), rules.End, plan.Terminated},
		{"it is queued, and a person cancelled its foreach task", with(func(w *rules.Waiter) { w.Status, w.Item, w.Stopped = plan.Queued, true, true }), rules.End, plan.Cancelled},
		{"it waits for its next attempt, and a person cancelled its foreach task",
			with(func(w *rules.Waiter) { w.Early, w.Ran, w.Item, w.Stopped, w.Of = true, true, true, true, plan.Held }), rules.End, plan.Terminated},
	} {
		t.Run(c.name, func(t *testing.T) {
			if next, s := rules.Settle(&c.w); next != c.next || s.Status != c.want {
				t.Errorf("got %v, %v; want %v, %v", next, s.Status, c.next, c.want)
			}
		})
	}
	w := with(func(w *rules.Waiter) {
		w.Item, w.Stopped, w.Of, w.Closing = true, true, plan.Held, plan.ClosedByFailure
	})
	if _, s := rules.Settle(&w); s.Reason != plan.ReasonCancelled {
		t.Errorf("an item of a foreach task that a person cancelled is %q once the plan is stopped by another item", s.Reason)
	}
	w.Of = plan.Cancelled
	if _, s := rules.Settle(&w); s.Reason != plan.ReasonSkipped {
		t.Errorf("an item of a foreach task that its plan ended is %q", s.Reason)
	}
}

func TestWhatClosesAPlan(t *testing.T) {
	for _, c := range []struct {
		state    plan.Lifecycle
		now, why plan.Closing
		want     plan.Closing
		changed  bool
	}{
		{plan.PlanRunning, plan.Open, plan.ClosedByFailure, plan.ClosedByFailure, true},
		{plan.PlanRunning, plan.ClosedByFailure, plan.ClosedByPerson, plan.ClosedByPerson, true},
		{plan.PlanRunning, plan.ClosedByPerson, plan.ClosedByFailure, plan.ClosedByPerson, false},
		{plan.PlanRunning, plan.ClosedByFailure, plan.ClosedByFailure, plan.ClosedByFailure, false},
		{plan.PlanSubmitting, plan.Open, plan.ClosedByPerson, plan.ClosedByPerson, true},
		{plan.PlanFailed, plan.Open, plan.ClosedByPerson, plan.Open, false},
		{plan.PlanRunning, plan.ClosedByFailure, plan.ClosedByTimeout, plan.ClosedByTimeout, true},
		{plan.PlanRunning, plan.ClosedByTimeout, plan.ClosedByPerson, plan.ClosedByTimeout, false},
		{plan.PlanRunning, plan.ClosedByPerson, plan.ClosedByTimeout, plan.ClosedByPerson, false},
		{plan.PlanRunning, plan.ClosedByTimeout, plan.ClosedByFailure, plan.ClosedByTimeout, false},
	} {
		if got, changed := rules.Close(c.state, plan.PlanRunning, c.now, c.why); got != c.want || changed != c.changed {
			t.Errorf("%v, %q, %q: got %q, %v", c.state, c.now, c.why, got, changed)
		}
	}
	if !rules.StopsPlan(rules.OutcomeFailed, "", plan.Stop) || rules.StopsPlan(rules.OutcomeFailed, "", plan.Continue) || rules.StopsPlan(rules.OutcomeCancelled, "", plan.Stop) {
		t.Error("a failure, and nothing else, closes a plan whose on_failure is stop")
	}
	if !rules.StopsPlan(rules.OutcomeFailed, plan.ReasonFatal, plan.Continue) || rules.StopsPlan(rules.OutcomeSucceeded, plan.ReasonFatal, plan.Continue) {
		t.Error("a fatal failure that counts as one closes any plan")
	}
	for _, c := range []struct {
		state    plan.Lifecycle
		closing  plan.Closing
		retrying bool
		want     bool
	}{
		{plan.PlanRunning, plan.Open, false, true},
		{plan.PlanRunning, plan.Open, true, false},
		{plan.PlanSubmitting, plan.Open, false, false},
		{plan.PlanSubmitting, plan.ClosedByPerson, false, true},
		{plan.PlanSucceeded, plan.Open, false, false},
	} {
		if got := rules.MayEnd(c.state, c.closing, c.retrying); got != c.want {
			t.Errorf("%v, %q, a retry %v: got %v", c.state, c.closing, c.retrying, got)
		}
	}
}

func TestWhatBecomesOfATaskThatAPersonCancels(t *testing.T) {
	for _, c := range []struct {
		w    rules.Waiter
		want plan.Status // 0: it is marked
	}{
		{rules.Waiter{Status: plan.Held}, plan.Cancelled},
		{rules.Waiter{Status: plan.Held, Ran: true}, plan.Terminated},
		{rules.Waiter{Status: plan.Held, Making: true}, plan.Cancelled},
		{rules.Waiter{Status: plan.Held, Ran: true, Made: true}, 0},
		{rules.Waiter{Status: plan.Queued}, plan.Cancelled},
		{rules.Waiter{Status: plan.Queued, Ran: true}, plan.Terminated},
		{rules.Waiter{Status: plan.Claimed}, 0},
		{rules.Waiter{Status: plan.Running, Ran: true}, 0},
	} {
		if mark, s := rules.Cancel(&c.w); mark != (c.want == 0) || s.Status != c.want {
			t.Errorf("%+v: marked %v, %v; want %v", c.w, mark, s.Status, c.want)
		}
	}
	for _, c := range []struct {
		of     plan.Status
		reason plan.Reason
		want   plan.Reason // of an item that did not run
		detail string      // of one that did
	}{
		{plan.Held, "", plan.ReasonCancelled, rules.ByPerson},
		{plan.Cancelled, plan.ReasonCancelled, plan.ReasonCancelled, rules.ByPerson},
		{plan.Cancelled, plan.ReasonSkipped, plan.ReasonSkipped, rules.ByForeach},
		{plan.Failed, plan.ReasonInput, plan.ReasonSkipped, rules.ByForeach},
	} {
		if s := rules.Dropped(plan.Held, false, c.of, c.reason); s.Status != plan.Cancelled || s.Reason != c.want {
			t.Errorf("an item of a task that is %v, %q, ends as %v, %q", c.of, c.reason, s.Status, s.Reason)
		}
		if s := rules.Dropped(plan.Queued, true, c.of, c.reason); s.Status != plan.Terminated || s.Reason != plan.ReasonCancelled || s.Detail != c.detail {
			t.Errorf("an item that ran, of a task that is %v, %q, ends as %v, %q, %q", c.of, c.reason, s.Status, s.Reason, s.Detail)
		}
	}
}

func TestTheDetailOfAStopTellsWhy(t *testing.T) {
	for _, s := range []rules.Step{
		rules.Halted(plan.Held, true, plan.ClosedByPerson), rules.Halted(plan.Held, true, plan.ClosedByFailure), rules.Halted(plan.Held, true, plan.ClosedByTimeout),
		rules.Stopped(plan.Running, false, plan.Open), rules.Stopped(plan.Running, false, plan.ClosedByTimeout),
		rules.Dropped(plan.Queued, true, plan.Failed, plan.ReasonInput), rules.Barred(plan.Held),
		{Status: plan.Terminated, Detail: rules.ByItems},
	} {
		if s.Status != plan.Terminated || !rules.TellsStop(s.Detail) {
			t.Errorf("a task that ends as %v, %q does not tell why it was stopped", s.Status, s.Detail)
		}
	}
	for _, detail := range []string{"", "exit status 3", "a person stopped it and went home"} {
		if rules.TellsStop(detail) {
			t.Errorf("%q tells why a task was stopped", detail)
		}
	}
}

func TestNoStepLeadsWhereNoTaskMayGo(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a task that succeeded was failed")
		}
	}()
	rules.InputFailed(plan.Succeeded, errors.New("too late"))
}

func TestWhoMayAnswer(t *testing.T) {
	ask := func(not bool) *plan.Task {
		return &plan.Task{Name: "ask", Definition: plan.Definition{Approve: &plan.Approval{Question: "So?", NotSubmitter: not}}}
	}
	for _, c := range []struct {
		name          string
		notSubmitter  bool
		submitter, by string
		refused       bool
	}{
		{"who submitted", false, "anna", "anna", false},
		{"nobody that is known", false, "anna", "", false},
		{"who submitted, where that is excluded", true, "anna", "anna", true},
		{"somebody else", true, "anna", "otto", false},
		{"somebody, where nobody knows who submitted", true, "", "otto", false},
		{"nobody that is known, where somebody is excluded", true, "anna", "", true},
	} {
		err := rules.CheckApprover(ask(c.notSubmitter), &plan.Plan{By: c.submitter}, &rules.Answer{By: c.by})
		if (err != nil) != c.refused {
			t.Errorf("%s: %v, want a refusal: %v", c.name, err, c.refused)
		}
	}
}

func TestAnAnswerIsTheOutput(t *testing.T) {
	a := rules.Answer{Approve: true, By: "anna", Note: "ok", At: time.Date(2026, 11, 29, 9, 0, 0, 1, time.FixedZone("", 3600))}
	if s := rules.Answered(plan.Held, &a); s.Status != plan.Succeeded || string(s.Output) != `{"by":"anna","at":"2026-11-29T08:00:00Z","note":"ok"}` || s.Detail != "approved by anna: ok" {
		t.Errorf("%+v, with the output %s", s, s.Output)
	}
	a.Approve = false
	if s := rules.Answered(plan.Held, &a); s.Status != plan.Failed || s.Reason != plan.ReasonRejected || s.Output != nil || s.Detail != "rejected by anna: ok" {
		t.Errorf("%+v", s)
	}
}
