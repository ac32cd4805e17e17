package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/plan"
)

// An Outcome is how a finished parent counts for the rules of its children. Outcomes are bits, so that a set of them is their sum.
type Outcome uint8

const (
	OutcomeSucceeded Outcome = 1 << iota
	OutcomeFailed            // failed, terminated, orphaned or timed out
	OutcomeSkipped           // not run because of its when or a parent
	OutcomeCancelled         // by a person; also a parent whose document is gone

	outcomesAll = OutcomeSucceeded | OutcomeFailed | OutcomeSkipped | OutcomeCancelled
)

// OutcomeOf returns how a task that ended so counts. A failure that is allowed counts as success, as in
// GitHub Actions, and so does an item that is Gone. OutcomeOf returns 0 for a status that is not finished.
// For children a failure is allowed as OutcomeOfTask says, and for the plan by continue-on-error.
func OutcomeOf(s plan.Status, r plan.Reason, allowed bool) Outcome {
	switch {
	case s == plan.Succeeded, Gone(s, r):
		return OutcomeSucceeded
	case s == plan.Cancelled && r == plan.ReasonSkipped:
		return OutcomeSkipped
	case s == plan.Cancelled:
		return OutcomeCancelled
	case !s.Finished():
		return 0
	case allowed:
		return OutcomeSucceeded
	}
	return OutcomeFailed
}

// A clause cancels as soon as one parent has an outcome of never. Once all parents have finished, the
// task runs if need is empty or some parent has an outcome of need.
type clause struct{ never, need Outcome }

var clauses = map[plan.When]clause{
	plan.AllSucceeded:           {never: outcomesAll &^ OutcomeSucceeded},
	plan.AllDone:                {},
	plan.AllFailed:              {never: outcomesAll &^ OutcomeFailed},
	plan.AllSkipped:             {never: outcomesAll &^ OutcomeSkipped},
	plan.AnyFailed:              {need: OutcomeFailed},
	plan.AnySucceeded:           {need: OutcomeSucceeded},
	plan.AnySkipped:             {need: OutcomeSkipped},
	plan.NoneFailed:             {never: OutcomeFailed | OutcomeCancelled},
	plan.NoneSkipped:            {never: OutcomeSkipped | OutcomeCancelled},
	plan.NoneFailedAnySucceeded: {never: OutcomeFailed | OutcomeCancelled, need: OutcomeSucceeded},
}

// Whens returns the names of all rules, sorted.
func Whens() []plan.When { return slices.Sorted(maps.Keys(clauses)) }

// ParseWhen reads the name of a rule; an empty word is AllSucceeded.
func ParseWhen(word string) (plan.When, error) {
	if word == "" {
		return plan.AllSucceeded, nil
	}
	if _, ok := clauses[plan.When(word)]; !ok {
		var names []string
		for _, w := range Whens() {
			names = append(names, string(w))
		}
		return "", fmt.Errorf("%q is not a rule for when; it is one of %s", word, strings.Join(names, ", "))
	}
	return plan.When(word), nil
}

// TellsResults reports whether a task with the rule gets the results of its parents. A task that
// runs only when all succeeded needs none.
func TellsResults(w plan.When) bool { return orDefault(w) != plan.AllSucceeded }

// CleansUp reports whether a task with the rule runs even if everything above it failed.
func CleansUp(w plan.When) bool { return Decide(w, OutcomeFailed, true) == ToRun }

// Wants returns the outcomes one of which some parent must have; 0 if the rule wants none.
func Wants(w plan.When) Outcome { return clauses[orDefault(w)].need }

// NeedsParents reports whether the rule can never hold for a task without parents.
func NeedsParents(w plan.When) bool { return Wants(w) != 0 }

func orDefault(w plan.When) plan.When {
	if w == "" {
		return plan.AllSucceeded
	}
	return w
}

// A Decision is what release does with a held task.
type Decision uint8

const (
	ToWait Decision = iota // for more parents to finish
	ToRun                  // queue it, or expand it if it is a foreach task
	ToSkip                 // cancel it, with ReasonSkipped
)

// Decide says what becomes of a held task. seen is the set of the outcomes of the parents that have
// finished. all says whether every parent has finished. It needs no more than that, so a store may
// keep the set and not the parents. An unknown rule never runs.
func Decide(w plan.When, seen Outcome, all bool) Decision {
	r, ok := clauses[orDefault(w)]
	switch {
	case !ok || seen&r.never != 0:
		return ToSkip
	case !all:
		return ToWait
	case r.need != 0 && seen&r.need == 0:
		return ToSkip
	}
	return ToRun
}

// Waits returns the outcomes that decide nothing while other parents have not finished: of a task that saw no others, Decide says Wait.
// A store need not look before the last parent has finished, then.
func Waits(w plan.When) Outcome {
	r, ok := clauses[orDefault(w)]
	if !ok {
		return 0
	}
	return outcomesAll &^ r.never
}

// OutcomeOfTask returns how the finished task counts for its children and its foreach task. A failure that max_failures allows counts as
// one for them.
func OutcomeOfTask(t *plan.Task) Outcome {
	return OutcomeOf(t.Status, t.Reason, t.ContinueOnError && t.MaxFailures == "")
}
