package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/plan"
)

const allOutcomes = plan.OutcomeSucceeded | plan.OutcomeFailed | plan.OutcomeSkipped | plan.OutcomeCancelled

// verdicts says, for each rule and each set of outcomes of parents that have all finished, whether the task runs, in the words of
// the rule.
var verdicts = map[plan.When]func(seen plan.Outcome) bool{
	plan.AllSucceeded: func(s plan.Outcome) bool { return s == plan.OutcomeSucceeded || s == 0 },
	plan.AllDone:      func(plan.Outcome) bool { return true },
	plan.AllFailed:    func(s plan.Outcome) bool { return s == plan.OutcomeFailed || s == 0 },
	plan.AllSkipped:   func(s plan.Outcome) bool { return s == plan.OutcomeSkipped || s == 0 },
	plan.AnyFailed:    func(s plan.Outcome) bool { return s&plan.OutcomeFailed != 0 },
	plan.AnySucceeded: func(s plan.Outcome) bool { return s&plan.OutcomeSucceeded != 0 },
	plan.AnySkipped:   func(s plan.Outcome) bool { return s&plan.OutcomeSkipped != 0 },
	plan.NoneFailed:   func(s plan.Outcome) bool { return s&^(plan.OutcomeSucceeded|plan.OutcomeSkipped) == 0 },
	plan.NoneSkipped:  func(s plan.Outcome) bool { return s&^(plan.OutcomeSucceeded|plan.OutcomeFailed) == 0 },
	plan.NoneFailedAnySucceeded: func(s plan.Outcome) bool {
		return s == plan.OutcomeSucceeded || s == plan.OutcomeSucceeded|plan.OutcomeSkipped
	},
}

func TestEveryRuleDecidesAsItsNameSaysOnceAllParentsHaveFinished(t *testing.T) {
	if len(plan.Whens()) != len(verdicts) {
		t.Errorf("the rules are %v", plan.Whens())
	}
	for when, runs := range verdicts {
		for seen := range allOutcomes + 1 {
			want := plan.Skip
			if runs(seen) {
				want = plan.Run
			}
			if got := plan.Decide(when, seen, true); got != want {
				t.Errorf("%s of parents that ended as %s: got %v, want %v", when, set(seen), got, want)
			}
		}
	}
}

func TestARuleSkipsEarlyWhenNothingCanSaveItAndNeverRunsEarly(t *testing.T) {
	for when, runs := range verdicts {
		for seen := range allOutcomes + 1 {
			hope := false // whether some outcomes of the others would let it run
			for more := range allOutcomes + 1 {
				hope = hope || runs(seen|more) && (seen != 0 || more != 0)
			}
			want := plan.Wait
			if !hope {
				want = plan.Skip
			}
			if got := plan.Decide(when, seen, false); got != want {
				t.Errorf("%s when some ended as %s: got %v, want %v", when, set(seen), got, want)
			}
		}
	}
}

func set(o plan.Outcome) string {
	var words []string
	for i, w := range []string{"succeeded", "failed", "skipped", "cancelled"} {
		if o&(1<<i) != 0 {
			words = append(words, w)
		}
	}
	return "{" + strings.Join(words, ", ") + "}"
}

func TestARuleIsReadByItsName(t *testing.T) {
	for when := range verdicts {
		if got, err := plan.ParseWhen(string(when)); err != nil || got != when {
			t.Errorf("%q is read as %q, %v", when, got, err)
		}
	}
	if got, err := plan.ParseWhen(""); err != nil || got != plan.AllSucceeded {
		t.Errorf("no rule is read as %q, %v; want all_succeeded", got, err)
	}
	if _, err := plan.ParseWhen("all_good"); err == nil || !strings.Contains(err.Error(), "all_done") {
		t.Errorf("an unknown rule: %v; want an error that names those there are", err)
	}
	if got := plan.Decide("", plan.OutcomeFailed, true); got != plan.Skip {
		t.Errorf("without a rule a failed parent decides %v, want Skip", got)
	}
	if got := plan.Decide("all_good", plan.OutcomeSucceeded, true); got != plan.Skip {
		t.Errorf("an unknown rule decides %v, want Skip: it must not run by mistake", got)
	}
}

func TestHowAFinishedTaskCountsForItsChildren(t *testing.T) {
	for _, c := range []struct {
		status          plan.Status
		reason          plan.Reason
		continueOnError bool
		want            plan.Outcome
	}{
		{plan.Succeeded, "", false, plan.OutcomeSucceeded},
		{plan.Succeeded, "", true, plan.OutcomeSucceeded},
		{plan.Failed, "", false, plan.OutcomeFailed},
		{7, plan.ReasonSignal, false, plan.OutcomeFailed},
		{plan.Failed, plan.ReasonTimeout, false, plan.OutcomeFailed},
		{plan.Terminated, plan.ReasonCancelled, false, plan.OutcomeFailed},
		{plan.Orphaned, plan.ReasonLost, false, plan.OutcomeFailed},
		{plan.Failed, "", true, plan.OutcomeSucceeded},
		{plan.Orphaned, plan.ReasonLost, true, plan.OutcomeSucceeded},
		{plan.Cancelled, plan.ReasonSkipped, false, plan.OutcomeSkipped},
		{plan.Cancelled, plan.ReasonSkipped, true, plan.OutcomeSkipped},
		{plan.Cancelled, plan.ReasonCancelled, false, plan.OutcomeCancelled},
		{plan.Cancelled, plan.ReasonCancelled, true, plan.OutcomeCancelled},
		{plan.Cancelled, "", false, plan.OutcomeCancelled},
		{plan.Held, "", true, 0},
		{plan.Queued, "", false, 0},
		{plan.Running, "", true, 0},
	} {
		task := plan.Task{Status: c.status, Reason: c.reason}
		task.ContinueOnError = c.continueOnError
		if got := task.Outcome(); got != c.want {
			t.Errorf("%v for reason %q, continue-on-error %v: got %s, want %s", c.status, c.reason, c.continueOnError, set(got), set(c.want))
		}
	}
}

func ExampleDecide() {
	both := plan.OutcomeSucceeded | plan.OutcomeFailed
	words := map[plan.Decision]string{plan.Wait: "wait", plan.Run: "run", plan.Skip: "skip"}
	fmt.Println("one failed, more to come:", words[plan.Decide(plan.AllSucceeded, plan.OutcomeFailed, false)])
	fmt.Println("one of each, the last was it:", words[plan.Decide(plan.AllDone, both, true)])
	fmt.Println("one of each, more to come:", words[plan.Decide(plan.AnyFailed, both, false)])
	// Output:
	// one failed, more to come: skip
	// one of each, the last was it: run
	// one of each, more to come: wait
}

func TestWaitsIsWhatDecideWaitsAfter(t *testing.T) {
	for _, w := range append(plan.Whens(), "", "no rule") {
		for _, o := range []plan.Outcome{plan.OutcomeSucceeded, plan.OutcomeFailed, plan.OutcomeSkipped, plan.OutcomeCancelled} {
			if got, want := plan.Waits(w)&o != 0, plan.Decide(w, o, false) == plan.Wait; got != want {
				t.Errorf("%q waits after outcome %b: %v, want %v", w, o, got, want)
			}
		}
	}
}
