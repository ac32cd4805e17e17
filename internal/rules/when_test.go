package rules_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

const allOutcomes = rules.OutcomeSucceeded | rules.OutcomeFailed | rules.OutcomeSkipped | rules.OutcomeCancelled

// verdicts says, for each rule and each set of outcomes of parents that have all finished, whether the task runs, in the words of
// the rule.
var verdicts = map[plan.When]func(seen rules.Outcome) bool{
	plan.AllSucceeded: func(s rules.Outcome) bool { return s == rules.OutcomeSucceeded || s == 0 },
	plan.AllDone:      func(rules.Outcome) bool { return true },
	plan.AllFailed:    func(s rules.Outcome) bool { return s == rules.OutcomeFailed || s == 0 },
	plan.AllSkipped:   func(s rules.Outcome) bool { return s == rules.OutcomeSkipped || s == 0 },
	plan.AnyFailed:    func(s rules.Outcome) bool { return s&rules.OutcomeFailed != 0 },
	plan.AnySucceeded: func(s rules.Outcome) bool { return s&rules.OutcomeSucceeded != 0 },
	plan.AnySkipped:   func(s rules.Outcome) bool { return s&rules.OutcomeSkipped != 0 },
	plan.NoneFailed:   func(s rules.Outcome) bool { return s&^(rules.OutcomeSucceeded|rules.OutcomeSkipped) == 0 },
	plan.NoneSkipped:  func(s rules.Outcome) bool { return s&^(rules.OutcomeSucceeded|rules.OutcomeFailed) == 0 },
	plan.NoneFailedAnySucceeded: func(s rules.Outcome) bool {
		return s == rules.OutcomeSucceeded || s == rules.OutcomeSucceeded|rules.OutcomeSkipped
	},
}

func TestEveryRuleDecidesAsItsNameSaysOnceAllParentsHaveFinished(t *testing.T) {
	if len(rules.Whens()) != len(verdicts) {
		t.Errorf("the rules are %v", rules.Whens())
	}
	for when, runs := range verdicts {
		for seen := range allOutcomes + 1 {
			want := rules.ToSkip
			if runs(seen) {
				want = rules.ToRun
			}
			if got := rules.Decide(when, seen, true); got != want {
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
			want := rules.ToWait
			if !hope {
				want = rules.ToSkip
			}
			if got := rules.Decide(when, seen, false); got != want {
				t.Errorf("%s when some ended as %s: got %v, want %v", when, set(seen), got, want)
			}
		}
	}
}

func set(o rules.Outcome) string {
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
		if got, err := rules.ParseWhen(string(when)); err != nil || got != when {
			t.Errorf("%q is read as %q, %v", when, got, err)
		}
	}
	if got, err := rules.ParseWhen(""); err != nil || got != plan.AllSucceeded {
		t.Errorf("no rule is read as %q, %v; want all_succeeded", got, err)
	}
	if _, err := rules.ParseWhen("all_good"); err == nil || !strings.Contains(err.Error(), "all_done") {
		t.Errorf("an unknown rule: %v; want an error that names those there are", err)
	}
	if got := rules.Decide("", rules.OutcomeFailed, true); got != rules.ToSkip {
		t.Errorf("without a rule a failed parent decides %v, want Skip", got)
	}
	if got := rules.Decide("all_good", rules.OutcomeSucceeded, true); got != rules.ToSkip {
		t.Errorf("an unknown rule decides %v, want Skip: it must not run by mistake", got)
	}
}

func TestHowAFinishedTaskCountsForItsChildren(t *testing.T) {
	for _, c := range []struct {
		status          plan.Status
		reason          plan.Reason
		continueOnError bool
		want            rules.Outcome
	}{
		{plan.Succeeded, "", false, rules.OutcomeSucceeded},
		{plan.Succeeded, "", true, rules.OutcomeSucceeded},
		{plan.Failed, "", false, rules.OutcomeFailed},
		{7, plan.ReasonSignal, false, rules.OutcomeFailed},
		{plan.Failed, plan.ReasonTimeout, false, rules.OutcomeFailed},
		{plan.Terminated, plan.ReasonCancelled, false, rules.OutcomeFailed},
		{plan.Orphaned, plan.ReasonLost, false, rules.OutcomeFailed},
		{plan.Failed, "", true, rules.OutcomeSucceeded},
		{plan.Orphaned, plan.ReasonLost, true, rules.OutcomeSucceeded},
		{plan.Cancelled, plan.ReasonSkipped, false, rules.OutcomeSkipped},
		{plan.Cancelled, plan.ReasonSkipped, true, rules.OutcomeSkipped},
		{plan.Cancelled, plan.ReasonCancelled, false, rules.OutcomeCancelled},
		{plan.Cancelled, plan.ReasonCancelled, true, rules.OutcomeCancelled},
		{plan.Cancelled, "", false, rules.OutcomeCancelled},
		{plan.Held, "", true, 0},
		{plan.Queued, "", false, 0},
		{plan.Running, "", true, 0},
	} {
		task := plan.Task{Status: c.status, Reason: c.reason}
		task.ContinueOnError = c.continueOnError
		if got := rules.OutcomeOfTask(&task); got != c.want {
			t.Errorf("%v for reason %q, continue-on-error %v: got %s, want %s", c.status, c.reason, c.continueOnError, set(got), set(c.want))
		}
	}
}

func ExampleDecide() {
	both := rules.OutcomeSucceeded | rules.OutcomeFailed
	words := map[rules.Decision]string{rules.ToWait: "wait", rules.ToRun: "run", rules.ToSkip: "skip"}
	fmt.Println("one failed, more to come:", words[rules.Decide(plan.AllSucceeded, rules.OutcomeFailed, false)])
	fmt.Println("one of each, the last was it:", words[rules.Decide(plan.AllDone, both, true)])
	fmt.Println("one of each, more to come:", words[rules.Decide(plan.AnyFailed, both, false)])
	// Output:
	// one failed, more to come: skip
	// one of each, the last was it: run
	// one of each, more to come: wait
}

func TestWaitsIsWhatDecideWaitsAfter(t *testing.T) {
	for _, w := range append(rules.Whens(), "", "no rule") {
		for _, o := range []rules.Outcome{rules.OutcomeSucceeded, rules.OutcomeFailed, rules.OutcomeSkipped, rules.OutcomeCancelled} {
			if got, want := rules.Waits(w)&o != 0, rules.Decide(w, o, false) == rules.ToWait; got != want {
				t.Errorf("%q waits after outcome %b: %v, want %v", w, o, got, want)
			}
		}
	}
}
