package plan_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

func TestWhatFollowsAnAttempt(t *testing.T) {
	large := json.RawMessage(`"` + strings.Repeat("x", plan.MaxOutput) + `"`)
	for _, c := range []struct {
		name              string
		attempts, attempt int
		result            plan.Result
		status            plan.Status
		reason            plan.Reason
		delay             time.Duration
		output            string
	}{
		{"a success ends it with its output", 0, 1, plan.Result{Status: plan.Succeeded, Output: json.RawMessage(`{"a":1}`)}, plan.Succeeded, "", 0, `{"a":1}`},
		{"a success without an output ends it", 3, 1, plan.Result{Status: plan.Succeeded}, plan.Succeeded, "", 0, ""},
		{"a failure ends it if nothing is said about retries", 0, 1, plan.Result{Status: plan.Failed}, plan.Failed, "", 0, ""},
		{"one attempt is no retry", 1, 1, plan.Result{Status: plan.Failed}, plan.Failed, "", 0, ""},
		{"a failure with attempts left holds it", 3, 1, plan.Result{Status: plan.Failed, Reason: plan.ReasonSignal}, plan.Held, plan.ReasonSignal, time.Second, ""},
		{"so does a failure with a code of its own", 3, 2, plan.Result{Status: 42}, plan.Held, "", 2 * time.Second, ""},
		{"the last attempt ends it with that code", 3, 3, plan.Result{Status: 42}, 42, "", 0, ""},
		{"what was stopped is not tried again", 3, 1, plan.Result{Status: plan.Terminated, Reason: plan.ReasonCancelled}, plan.Terminated, plan.ReasonCancelled, 0, ""},
		{"an output that is not JSON fails it for good", 3, 1, plan.Result{Status: plan.Succeeded, Output: json.RawMessage(`hello`)}, plan.Failed, plan.ReasonOutput, 0, ""},
		{"and one that is not UTF-8", 3, 1, plan.Result{Status: plan.Succeeded, Output: json.RawMessage("\"\xff\"")}, plan.Failed, plan.ReasonOutput, 0, ""},
		{"so does one that is nested too deep", 3, 1, plan.Result{Status: plan.Succeeded, Output: nested(plan.MaxOutputDepth + 1)}, plan.Failed, plan.ReasonOutput, 0, ""},
		{"but not one that is nested as deep as may be, with much in texts", 3, 1, plan.Result{Status: plan.Succeeded, Output: nested(plan.MaxOutputDepth)}, plan.Succeeded, "", 0, string(nested(plan.MaxOutputDepth))},
		{"so does an output that is too large", 3, 1, plan.Result{Status: plan.Succeeded, Output: large}, plan.Failed, plan.ReasonOutput, 0, ""},
		{"and whatever else a plugin refuses of it", 3, 1, plan.Result{Status: plan.Failed, Reason: plan.ReasonOutput, Detail: "no"}, plan.Failed, plan.ReasonOutput, 0, ""},
		{"what it should be given and cannot be fails it for good", 3, 1, plan.Result{Status: plan.Failed, Reason: plan.ReasonInput}, plan.Failed, plan.ReasonInput, 0, ""},
		{"the output of a failure is dropped", 0, 1, plan.Result{Status: plan.Failed, Output: json.RawMessage(`1`)}, plan.Failed, "", 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			task := plan.ClaimedTask{Claim: plan.Claim{Attempt: c.attempt, Token: plan.Token{1}}}
			task.Retry.Attempts = c.attempts
			c.result.Exit = &plan.Exit{Code: 3}
			e := plan.Conclude(&task, c.result, func(_ plan.Retry, attempt int) time.Duration { return time.Duration(attempt) * time.Second })
			if e.Claim != task.Claim {
				t.Errorf("the ending is of another claim: %+v", e.Claim)
			}
			if e.Status != c.status || e.Reason != c.reason || e.Delay != c.delay || string(e.Output) != c.output || e.Exit == nil {
				t.Errorf("got %v, %q, delay %v, output %.20q, exit %v; want %v, %q, %v, %q", e.Status, e.Reason, e.Delay, e.Output, e.Exit, c.status, c.reason, c.delay, c.output)
			}
			if e.Reason == plan.ReasonOutput && e.Detail == "" {
				t.Error("nothing says what is wrong with its output")
			}
		})
	}
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
		{"a plan's task runs again", plan.Running, true, plan.Definition{}, "", 0, false, plan.Queued, ""},
		{"also for the third time", plan.Running, true, plan.Definition{}, "", 2, false, plan.Queued, ""},
		{"but not for the fourth", plan.Running, true, plan.Definition{}, "", 3, false, plan.Orphaned, plan.ReasonLost},
		{"or as often as it says", plan.Running, true, plan.Definition{MaxRescues: 1}, "", 1, false, plan.Orphaned, plan.ReasonLost},
		{"which may be more", plan.Running, true, plan.Definition{MaxRescues: 9}, "", 8, false, plan.Queued, ""},
		{"a task of no plan does not", plan.Running, false, plan.Definition{}, "", 0, false, plan.Orphaned, plan.ReasonLost},
		{"unless it says so", plan.Running, false, plan.Definition{OnLost: plan.OnLostRetry}, "", 0, false, plan.Queued, ""},
		{"a plan's task that must not run twice does not", plan.Running, true, plan.Definition{OnLost: plan.OnLostFail}, "", 0, false, plan.Orphaned, plan.ReasonLost},
		{"a task of no plan does, where its queue says so", plan.Running, false, plan.Definition{}, plan.OnLostRetry, 2, false, plan.Queued, ""},
		{"as often as any", plan.Running, false, plan.Definition{}, plan.OnLostRetry, 3, false, plan.Orphaned, plan.ReasonLost},
		{"a plan's task does not, where its queue says so", plan.Running, true, plan.Definition{}, plan.OnLostFail, 0, false, plan.Orphaned, plan.ReasonLost},
		{"a task that may is asked before its queue", plan.Running, true, plan.Definition{OnLost: plan.OnLostRetry}, plan.OnLostFail, 0, false, plan.Queued, ""},
		{"so is one that may not", plan.Running, true, plan.Definition{OnLost: plan.OnLostFail}, plan.OnLostRetry, 0, false, plan.Orphaned, plan.ReasonLost},
		{"a queue that wants what the default is changes nothing", plan.Running, true, plan.Definition{}, plan.OnLostRetry, 0, false, plan.Queued, ""},
		{"also where that is the other one", plan.Running, false, plan.Definition{}, plan.OnLostFail, 0, false, plan.Orphaned, plan.ReasonLost},
		{"what a queue would have fail had no effect if it was only claimed", plan.Claimed, true, plan.Definition{}, plan.OnLostFail, 0, false, plan.Queued, ""},
		{"a queue keeps nothing alive that a person wants ended", plan.Running, true, plan.Definition{}, plan.OnLostRetry, 0, true, plan.Terminated, plan.ReasonCancelled},
		{"what was only claimed had no effect", plan.Claimed, false, plan.Definition{OnLost: plan.OnLostFail}, "", 9, false, plan.Queued, ""},
		{"what a person wants ended is ended", plan.Running, true, plan.Definition{}, "", 0, true, plan.Terminated, plan.ReasonCancelled},
		{"and if it was only claimed, it never ran", plan.Claimed, true, plan.Definition{}, "", 0, true, plan.Cancelled, plan.ReasonCancelled},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := plan.Lose(c.status, c.inPlan, &c.def, c.queue, c.rescues, c.cancel)
			if got.Status != c.want || got.Reason != c.reason {
				t.Errorf("got %v, %q; want %v, %q", got.Status, got.Reason, c.want, c.reason)
			}
			if !c.status.CanBecome(got.Status) {
				t.Errorf("%v cannot become %v", c.status, got.Status)
			}
		})
	}
	got := plan.Lose(plan.Running, true, &plan.Definition{MaxRescues: 21}, "", 21, false)
	if !strings.Contains(got.Detail, "22nd time") {
		t.Errorf("the detail is %q, want the 22nd time", got.Detail)
	}
	for rescues, want := range map[int]string{0: "1st", 2: "3rd", 3: "4th", 10: "11th", 11: "12th", 12: "13th", 20: "21st", 110: "111th"} {
		if got := plan.Lose(plan.Running, true, &plan.Definition{MaxRescues: -1}, "", rescues, false); !strings.Contains(got.Detail, want+" time") {
			t.Errorf("the detail is %q, want the %s time", got.Detail, want)
		}
	}
}

func TestWhatAPersonCancelledEndsWhateverItsNodeSays(t *testing.T) {
	for from, want := range map[plan.Status]plan.Status{plan.Running: plan.Terminated, plan.Claimed: plan.Cancelled} {
		if s, r := plan.Stopped(from); s != want || r != plan.ReasonCancelled || !from.CanBecome(s) {
			t.Errorf("%v ends as %v, %q; want %v", from, s, r, want)
		}
	}
}

func TestHowAForeachTaskEnds(t *testing.T) {
	for _, c := range []struct {
		name          string
		seen          plan.Outcome
		failed, items int
		stopped       bool
		want          plan.Status
		reason        plan.Reason
		detail        string
	}{
		{"all succeeded", plan.OutcomeSucceeded, 0, 3, false, plan.Succeeded, "", ""},
		{"there were none", 0, 0, 0, false, plan.Succeeded, "", ""},
		{"some failed", plan.OutcomeSucceeded | plan.OutcomeFailed, 2, 9, false, plan.Failed, plan.ReasonItems, "2 of 9 items failed"},
		{"some failed and some were cancelled", plan.OutcomeFailed | plan.OutcomeCancelled, 1, 2, false, plan.Failed, plan.ReasonItems, "1 of 2 items failed"},
		{"some were cancelled", plan.OutcomeSucceeded | plan.OutcomeCancelled, 0, 2, false, plan.Cancelled, plan.ReasonCancelled, "some of its items were cancelled"},
		{"some were skipped", plan.OutcomeSucceeded | plan.OutcomeSkipped, 0, 2, false, plan.Cancelled, plan.ReasonSkipped, "some of its items were skipped"},
		{"a person stopped some", plan.OutcomeFailed | plan.OutcomeCancelled, 2, 9, true, plan.Terminated, plan.ReasonCancelled, "2 of 9 items were stopped, or had failed"},
		{"a person stopped it between two items", plan.OutcomeSucceeded | plan.OutcomeCancelled, 0, 9, true, plan.Terminated, plan.ReasonCancelled, "it was stopped before all of its items had run"},
		{"a person cancelled it before any ran", plan.OutcomeCancelled, 0, 9, true, plan.Cancelled, plan.ReasonCancelled, "some of its items were cancelled"},
		{"a person came too late", plan.OutcomeSucceeded, 0, 9, true, plan.Succeeded, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, r, d := plan.Gather(c.seen, c.failed, c.items, c.stopped)
			if s != c.want || r != c.reason || d != c.detail || !plan.Held.CanBecome(s) {
				t.Errorf("got %v, %q, %q; want %v, %q, %q", s, r, d, c.want, c.reason, c.detail)
			}
		})
	}
}

func ExampleConclude() {
	task := plan.ClaimedTask{Claim: plan.Claim{Attempt: 1}}
	task.Retry = plan.Retry{Attempts: 2}
	wait := func(r plan.Retry, attempt int) time.Duration { return 5 * time.Second }
	e := plan.Conclude(&task, plan.Result{Status: plan.Failed}, wait)
	fmt.Println(e.Status, e.Delay)
	task.Attempt = 2
	e = plan.Conclude(&task, plan.Result{Status: plan.Failed}, wait)
	fmt.Println(e.Status, e.Delay)
	// Output:
	// held 5s
	// failed 0s
}

func TestAClaimEndsAsAllowed(t *testing.T) {
	for s, ok := range map[plan.Status]bool{
		plan.Queued: true, plan.Held: true, plan.Succeeded: true, plan.Failed: true, plan.Terminated: true, plan.Cancelled: true,
		plan.Orphaned: true, plan.Claimed: false, plan.Running: false, -7: false,
	} {
		if err := (&plan.Ending{Status: s}).Check(); (err == nil) != ok {
			t.Errorf("an ending with %v: %v, want it allowed: %v", s, err, ok)
		}
	}
}

// nested is arrays within each other, with many brackets more in texts and beside each other.
func nested(deep int) json.RawMessage {
	return json.RawMessage(strings.Repeat("[", deep-1) + `"\"[[[\\", {}, [], ` + strings.Repeat("[],", 2000) + `{}` + strings.Repeat("]", deep-1))
}
