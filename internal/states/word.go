// Package states owns the words that people read and write for the states of tasks and plans.
package states

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-1177d267/sluice/plan"
)

// spoken has what people read for the states whose names say little. A state that is not here is its own word.
var spoken = map[string]string{"held": "waiting", "claimed": "starting", "terminated": "stopped", "orphaned": "lost"}

// Word returns the word that people read for a state, or for the name of a status. held is waiting,
// claimed is starting, terminated is stopped, and orphaned is lost. Programs read the state itself.
func Word(state string) string {
	if w, ok := spoken[state]; ok {
		return w
	}
	return state
}

// allowed is what people read after the state of a task that went wrong and whose plan allows that.
const allowed = " (allowed)"

// WordOf returns the words that people read for the state of a task. They are its Word, and
// "(allowed)" if the task failed and its plan allows that.
func WordOf(state string, isAllowed bool) string {
	if isAllowed {
		return Word(state) + allowed
	}
	return Word(state)
}

// SaysAllowed reports whether a word is one of WordOf for what a plan allows.
func SaysAllowed(word string) bool { return strings.HasSuffix(word, allowed) }

// OfStatus returns the word that people read for a status.
func OfStatus(s plan.Status) string { return Word(s.String()) }

// OfTask returns what people read for the state of a task.
func OfTask(t *plan.Task) string { return WordOf(t.State(), t.Allowed()) }

// inOrder are the statuses in the order of a task's life.
var inOrder = []plan.Status{plan.Held, plan.Queued, plan.Claimed, plan.Running, plan.Succeeded, plan.Failed, plan.Terminated, plan.Cancelled, plan.Orphaned}

// Words are the words that people read for the states of tasks, in the order of a task's life. The
// last is the one that Parse takes for failed tasks whose plan allows that.
func Words() []string {
	var words []string
	for _, s := range inOrder {
		if words = append(words, OfStatus(s)); s == plan.Cancelled {
			words = append(words, string(plan.ReasonSkipped))
		}
	}
	return append(words, stateAllowed)
}

// An Error is of a text that names no state.
type Error string

func (e Error) Error() string {
	return fmt.Sprintf("%q is not a task's state; it is one of %s, or a number", string(e), strings.Join(Words(), ", "))
}

// Parse reads states as people and programs write them: by word (waiting), by name (held) or by number (-4). Stores are asked for
// codes. Some states are one code in a store, so keep tells them apart; it is nil where the codes say it all. The word "allowed" is for what
// went wrong and its plan allows, in whichever state. The error is an Error.
func Parse(texts []string) (codes []plan.Status, keep func(*plan.Task) bool, err error) {
	named, apart := map[string]bool{}, false
	for _, text := range texts {
		if text == stateAllowed {
			named[text], apart = true, true
			for _, s := range []plan.Status{plan.Failed, plan.Terminated, plan.Orphaned} {
				if !slices.Contains(codes, s) {
					codes = append(codes, s)
				}
			}
			continue
		}
		code, name, err := parseState(text)
		if err != nil {
			return nil, nil, err
		}
		named[name] = true
		apart = apart || code == plan.Cancelled && name != strconv.Itoa(int(plan.Cancelled)) || code == plan.Failed && name != plan.Failed.String()
		if !slices.Contains(codes, code) {
			codes = append(codes, code)
		}
	}
	if !apart {
		return codes, nil, nil
	}
	return codes, func(t *plan.Task) bool {
		return named[t.State()] || named[strconv.Itoa(int(t.Status))] || named[stateAllowed] && t.Allowed()
	}, nil
}

// stateAllowed is no state of a task, and a word that tasks are looked for by.
const stateAllowed = "allowed"

// parseState returns the code to ask a store for, and the state's name or its number.
func parseState(text string) (plan.Status, string, error) {
	if n, err := strconv.ParseInt(text, 10, 32); err == nil && plan.Status(n).Valid() {
		return plan.Status(n), strconv.FormatInt(n, 10), nil
	}
	if text == string(plan.ReasonSkipped) {
		return plan.Cancelled, text, nil
	}
	for _, s := range inOrder {
		if name := s.String(); text == name || text == OfStatus(s) {
			return s, name, nil
		}
	}
	return 0, "", Error(text)
}

// ParseLifecycle reads the word for the state of a plan.
func ParseLifecycle(word string) (plan.Lifecycle, error) {
	for _, l := range []plan.Lifecycle{plan.PlanSubmitting, plan.PlanRunning, plan.PlanSucceeded, plan.PlanFailed, plan.PlanCancelled, plan.PlanAbandoned} {
		if l.String() == word {
			return l, nil
		}
	}
	return 0, fmt.Errorf("%q is not a plan's state; it is one of submitting, running, succeeded, failed, cancelled, abandoned", word)
}
