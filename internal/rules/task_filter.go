package rules

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/states"
	"github.com/seed-1177d267/sluice/plan"
)

// A Bulk is what is done to all tasks of no plan that a filter chooses.
type Bulk string

// ListTasks only shows the tasks that a filter chooses. It takes every task, of plans too, and a
// filter without a condition.
const ListTasks Bulk = "list"

// The bulk operations.
const (
	BulkCancel Bulk = "cancel"
	BulkSet    Bulk = "set"
	BulkRetry  Bulk = "retry"
)

// takes are the statuses of the tasks that each can be done to. A retry takes cancelled tasks only if
// the filter names their state: a person did not want them to run.
var takes = map[Bulk]struct{ all, usual []plan.Status }{
	BulkCancel: {all: []plan.Status{plan.Held, plan.Queued, plan.Claimed, plan.Running}},
	BulkSet:    {all: []plan.Status{plan.Held, plan.Queued}},
	BulkRetry: {
		all:   []plan.Status{plan.Failed, plan.Terminated, plan.Cancelled, plan.Orphaned},
		usual: []plan.Status{plan.Failed, plan.Terminated, plan.Orphaned},
	},
}

// A TaskFilter chooses tasks. A task has to meet each condition that is set.
type TaskFilter struct {
	Queue   plan.QueueID
	Group   string   // of its queue, or the parent of that group
	States  []string // as states.Parse reads them
	Subject string
	// OlderThan is how long ago the task was created at least.
	OlderThan time.Duration
	// Reasons are ways in which its last attempt failed: exit statuses and the words of CheckReasons.
	Reasons []string
}

// reasons are the ways to fail that are no exit status.
var reasons = []plan.Reason{
	plan.ReasonTimeout, plan.ReasonSignal, plan.ReasonLost, plan.ReasonInput, plan.ReasonOutput, plan.ReasonError, plan.ReasonFatal,
	plan.ReasonSkipped, plan.ReasonCancelled,
}

// ReasonWords returns the words for ways to fail that are no exit status.
func ReasonWords() []string {
	words := make([]string, len(reasons))
	for i, r := range reasons {
		words[i] = string(r)
	}
	return words
}

// checkReason returns why a word is no way to fail.
func checkReason(word string) error {
	if slices.Contains(reasons, plan.Reason(word)) {
		return nil
	}
	if _, err := plan.NewCauses([]string{word}); err != nil {
		return fmt.Errorf("%q is no way to fail; give exit statuses from 1 to 255, or %s", word, strings.Join(ReasonWords(), ", "))
	}
	return nil
}

// ErrNoCondition refuses a filter without a condition.
var ErrNoCondition = errors.New("the filter names nothing, and would take every task of no plan; give it a queue, a group, states, a subject, an age or reasons")

// A FilterError is what is wrong with one condition of a filter.
type FilterError struct {
	Condition string // its name in JSON
	Err       error
}

// Error implements error.
func (e *FilterError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e *FilterError) Unwrap() error { return e.Err }

// Choose returns which statuses the tasks have that the filter chooses for a bulk operation (none: any),
// and whether a task with one of them meets the other conditions at an instant. Queue and Subject are for
// stores to look for, and Group for FilterQueues. The error is a FilterError if one condition is wrong.
func (f *TaskFilter) Choose(what Bulk) (statuses []plan.Status, keep func(t *plan.Task, now time.Time) bool, err error) {
	wrong := func(condition, format string, args ...any) error {
		return &FilterError{condition, fmt.Errorf(format, args...)}
	}
	may := takes[what]
	switch {
	case what != ListTasks && f.Queue.IsZero() && f.Group == "" && len(f.States) == 0 && f.Subject == "" && f.OlderThan == 0 && len(f.Reasons) == 0:
		return nil, nil, ErrNoCondition
	case f.OlderThan < 0:
		return nil, nil, wrong("older_than", "an age of %v; it cannot be negative", f.OlderThan)
	}
	if err := CheckSubject(f.Subject); err != nil {
		return nil, nil, &FilterError{"subject", err}
	}
	for _, word := range f.Reasons {
		if err := checkReason(word); err != nil {
			return nil, nil, &FilterError{"reason", err}
		}
	}
	if statuses = may.usual; statuses == nil {
		statuses = may.all
	}
	inState := func(*plan.Task) bool { return true }
	if len(f.States) > 0 {
		codes, apart, err := states.Parse(f.States)
		if err != nil {
			return nil, nil, &FilterError{"state", err}
		}
		for _, code := range codes {
			if what != ListTasks && !Selected(code, may.all) {
				return nil, nil, wrong("state", "%s: no %s is made of tasks in that state; it takes those that are %s", states.OfStatus(code), what, wordsOf(may.all))
			}
		}
		if statuses = codes; apart != nil {
			inState = apart
		}
	}
	return statuses, func(t *plan.Task, now time.Time) bool {
		return inState(t) && (f.OlderThan == 0 || now.Sub(t.Created) >= f.OlderThan) && (len(f.Reasons) == 0 || f.failed(t))
	}, nil
}

// FilterQueues returns the queues that are in a group, or in a group in it.
func FilterQueues(groups []plan.Group, queues []plan.Queue, name string) (map[plan.QueueID]bool, error) {
	if groupNamed(groups, name) == nil {
		return nil, NoGroup(name)
	}
	in := map[plan.QueueID]bool{}
	for i := range queues {
		q := &queues[i]
		if slices.ContainsFunc(GroupsOf(groups, q.Group), func(g *plan.Group) bool { return g.Name == name }) {
			in[q.ID] = true
		}
	}
	return in, nil
}

// failed reports whether the last attempt at a task failed in one of the ways.
func (f *TaskFilter) failed(t *plan.Task) bool {
	return slices.ContainsFunc(f.Reasons, func(word string) bool {
		return t.Reason == plan.Reason(word) || plan.Causes(word).Have(t.Reason, t.Exit)
	})
}

func wordsOf(statuses []plan.Status) string {
	words := make([]string, len(statuses))
	for i, s := range statuses {
		words[i] = states.OfStatus(s)
	}
	return strings.Join(words, ", ")
}
