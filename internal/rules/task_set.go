package rules

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/internal/refusal"
	"github.com/seed-1177d267/sluice/internal/states"
	"github.com/seed-1177d267/sluice/plan"
)

// A TaskChange is a change of a task of no plan that waits. A field with its zero value leaves the
// task as it is there.
type TaskChange struct {
	// NotBefore is the instant until which the task is held, to the millisecond. An instant that has
	// passed does not hold the task.
	NotBefore *time.Time
	// Params, a JSON object, replace those of the submitter. Template says that they hold
	// expressions.
	Params   json.RawMessage
	Template bool
	// Attempts replaces those of Retry.
	Attempts int
	// Timeout replaces that of the task; 0 is none.
	Timeout *time.Duration
	// Subject replaces that of the task; "" is none.
	Subject *string
	// Modified is that of the task as the caller read it. If it is not zero, the task changes only if
	// its Modified is the same.
	Modified time.Time
}

// Empty reports whether the change leaves every task as it is.
func (c *TaskChange) Empty() bool {
	return c.NotBefore == nil && c.Params == nil && c.Attempts == 0 && c.Timeout == nil && c.Subject == nil
}

// A TaskSet is what a task has after a change.
type TaskSet struct {
	Definition plan.Definition
	NotBefore  time.Time
	Params     json.RawMessage // the submitter's own; nil: they stay
	// Back says that the task is queued, and is held again until NotBefore by Step.
	Back bool
	Step Step
}

// CheckSetTask returns an ErrConflict for a task that no change is made of: it is of a plan, or does
// not wait. busy says that another call is about to change the task.
func CheckSetTask(t *plan.Task, busy bool) error {
	switch {
	case !t.Plan.IsZero():
		return refusal.New(plan.ErrConflict, "task %s is of a plan: a task of a plan changes by a retry of the plan with a mended file: sluice plan retry PLAN --with FILE", t.Key())
	case !Pending(t.Status):
		return refusal.New(plan.ErrConflict, "task %s is %s: only a task that waits can be changed", t.Key(), states.OfTask(t))
	case busy:
		return refusal.New(plan.ErrConflict, "task %s is just being added or retried: try again", t.Key())
	}
	return nil
}

// CheckTaskChange returns what is wrong with a change, whatever task it is of.
func CheckTaskChange(c *TaskChange) error {
	var object map[string]json.RawMessage
	switch {
	case c.Attempts < 0:
		return fmt.Errorf("attempts is %d; it is a whole number of at least 1", c.Attempts)
	case c.Timeout != nil && *c.Timeout < 0:
		return fmt.Errorf("timeout is %v; it cannot be negative", *c.Timeout)
	case c.Params != nil && (json.Unmarshal(c.Params, &object) != nil || object == nil):
		return errors.New("params are not a JSON object")
	case c.Subject != nil:
		return CheckSubject(*c.Subject)
	}
	return nil
}

// SetTask returns what a change that CheckTaskChange accepts makes of a task. The task has its Needs
// and Params. changes is false if the task is as the change wants it already, so that a caller may
// repeat the change. SetTask returns the errors of CheckSetTask, and an ErrConflict if the task has
// another Modified than the caller read.
func SetTask(t *plan.Task, busy bool, c *TaskChange, now time.Time) (s TaskSet, changes bool, err error) {
	if err := CheckSetTask(t, busy); err != nil {
		return s, false, err
	}
	s = TaskSet{Definition: t.Definition, NotBefore: t.NotBefore}
	if c.NotBefore != nil {
		if s.NotBefore = c.NotBefore.UTC().Truncate(time.Millisecond); !s.NotBefore.After(now) {
			s.NotBefore = time.Time{}
		}
	}
	if c.Attempts > 0 {
		s.Definition.Retry.Attempts = c.Attempts
	}
	if c.Timeout != nil {
		s.Definition.Timeout = *c.Timeout
	}
	if c.Subject != nil {
		s.Definition.Subject = *c.Subject
	}
	if c.Params != nil {
		s.Definition.Template = c.Template
		if !jsontext.Same(ownParams(t, c.Params), ownParams(t, t.Params)) {
			s.Params = c.Params
		}
	}
	if s.Back = t.Status != plan.Held && !s.NotBefore.IsZero(); s.Back {
		s.Step = to(t.Status, Step{Status: plan.Held, Keep: true, Delay: s.NotBefore.Sub(now)})
	}
	was, is := &t.Definition, &s.Definition
	changes = !s.NotBefore.Equal(t.NotBefore) || s.Params != nil ||
		is.Retry != was.Retry || is.Timeout != was.Timeout || is.Subject != was.Subject || is.Template != was.Template
	if changes && !c.Modified.IsZero() && !c.Modified.Equal(t.Modified) {
		return s, false, refusal.New(plan.ErrConflict, "task %s was changed since it was read: read it again", t.Key())
	}
	return s, changes, nil
}

// ownParams returns params of a task without the outputs of its parents.
func ownParams(t *plan.Task, params json.RawMessage) json.RawMessage {
	if len(t.Needs) == 0 {
		return params
	}
	return WithoutInputs(params)
}
