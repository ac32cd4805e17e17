package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// When is a named rule: whether a task runs, given how its parents ended. The zero value is [AllSucceeded].
type When string

const (
	AllSucceeded           When = "all_succeeded"             // the default
	AllDone                When = "all_done"                  // however they ended
	AllFailed              When = "all_failed"                //
	AllSkipped             When = "all_skipped"               //
	AnyFailed              When = "any_failed"                // at least one, once all have finished
	AnySucceeded           When = "any_succeeded"             //
	AnySkipped             When = "any_skipped"               //
	NoneFailed             When = "none_failed"               // all succeeded or were skipped
	NoneSkipped            When = "none_skipped"              // all succeeded or failed
	NoneFailedAnySucceeded When = "none_failed_any_succeeded" // all succeeded or were skipped, and one did succeed
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

// OutcomeOf returns how a task that ended so counts. A failure of a task with continue-on-error counts as success, as in GitHub
// Actions. It returns 0 for a status that is not finished.
func OutcomeOf(s Status, r Reason, continueOnError bool) Outcome {
	switch {
	case s == Succeeded:
		return OutcomeSucceeded
	case s == Cancelled && r == ReasonSkipped:
		return OutcomeSkipped
	case s == Cancelled:
		return OutcomeCancelled
	case !s.Finished():
		return 0
	case continueOnError:
		return OutcomeSucceeded
	}
	return OutcomeFailed
}

// A rule cancels as soon as one parent has an outcome of never. Once all parents have finished, the
// task runs if need is empty or some parent has an outcome of need.
type rule struct{ never, need Outcome }

var rules = map[When]rule{
	AllSucceeded:           {never: outcomesAll &^ OutcomeSucceeded},
	AllDone:                {},
	AllFailed:              {never: outcomesAll &^ OutcomeFailed},
	AllSkipped:             {never: outcomesAll &^ OutcomeSkipped},
	AnyFailed:              {need: OutcomeFailed},
	AnySucceeded:           {need: OutcomeSucceeded},
	AnySkipped:             {need: OutcomeSkipped},
	NoneFailed:             {never: OutcomeFailed | OutcomeCancelled},
	NoneSkipped:            {never: OutcomeSkipped | OutcomeCancelled},
	NoneFailedAnySucceeded: {never: OutcomeFailed | OutcomeCancelled, need: OutcomeSucceeded},
}

// Whens returns the names of all rules, sorted.
func Whens() []When { return slices.Sorted(maps.Keys(rules)) }

// ParseWhen reads the name of a rule; an empty word is AllSucceeded.
func ParseWhen(word string) (When, error) {
	if word == "" {
		return AllSucceeded, nil
	}
	if _, ok := rules[When(word)]; !ok {
		var names []string
		for _, w := range Whens() {
			names = append(names, string(w))
		}
		return "", fmt.Errorf("%q is not a rule for when; it is one of %s", word, strings.Join(names, ", "))
	}
	return When(word), nil
}

// TellsResults reports whether a task with the rule gets the results of its parents. A task that
// runs only when all succeeded needs none.
func (w When) TellsResults() bool { return w.orDefault() != AllSucceeded }

// NeedsParents reports whether the rule can never hold for a task without parents.
func (w When) NeedsParents() bool { return rules[w.orDefault()].need != 0 }

func (w When) orDefault() When {
	if w == "" {
		return AllSucceeded
	}
	return w
}

// A Decision is what release does with a held task.
type Decision uint8

const (
	Wait Decision = iota // for more parents to finish
	Run                  // queue it, or expand it if it is a foreach task
	Skip                 // cancel it, with ReasonSkipped
)

// Decide says what becomes of a held task: seen is the set of the outcomes of those parents that have finished, and all whether
// every parent has. It needs no more than that, so a store may keep the set and not the parents. An unknown rule never runs.
func Decide(w When, seen Outcome, all bool) Decision {
	r, ok := rules[w.orDefault()]
	switch {
	case !ok || seen&r.never != 0:
		return Skip
	case !all:
		return Wait
	case r.need != 0 && seen&r.need == 0:
		return Skip
	}
	return Run
}

// Waits returns the outcomes that decide nothing while other parents have not finished: of a task that saw no others, Decide says Wait.
// A store need not look before the last parent has finished, then.
func Waits(w When) Outcome {
	r, ok := rules[w.orDefault()]
	if !ok {
		return 0
	}
	return outcomesAll &^ r.never
}
