package rules

import "github.com/seed-1177d267/sluice/plan"

// Counted is what Count asks of a task.
type Counted struct {
	Status          plan.Status
	Reason          plan.Reason
	ContinueOnError bool
	Items           bool // it is a foreach task whose items are all in, and are counted in its place: see plan.Status.Gathers
}

// CountedOf returns what Count asks of the task. It uses Status, Reason, ContinueOnError, Expanded, Items and MaxFailures.
func CountedOf(t *plan.Task) Counted {
	return Counted{Status: t.Status, Reason: t.Reason, ContinueOnError: t.ContinueOnError, Items: t.Gathers()}
}

// Count counts in c n more (or, negative, fewer) of such tasks.
func Count(c *plan.Counts, t Counted, n int) {
	if field := fieldOf(c, t); field != nil {
		*field += n
	}
}

// fieldOf returns the field that counts such a task; nil if its status is no code.
func fieldOf(c *plan.Counts, t Counted) *int {
	switch {
	case t.Items && !t.Status.Finished():
		return &c.Gathering
	case t.Items:
		return &c.Gathered
	case t.Status.Allowed(t.ContinueOnError):
		return &c.Allowed
	}
	switch t.Status {
	case plan.Held:
		return &c.Held
	case plan.Queued:
		return &c.Queued
	case plan.Claimed:
		return &c.Claimed
	case plan.Running:
		return &c.Running
	case plan.Succeeded:
		return &c.Succeeded
	case plan.Terminated:
		return &c.Terminated
	case plan.Orphaned:
		return &c.Orphaned
	case plan.Cancelled:
		if t.Reason == plan.ReasonSkipped || Gone(t.Status, t.Reason) {
			return &c.Skipped
		}
		return &c.Cancelled
	}
	if t.Status < plan.Failed {
		return nil
	}
	return &c.Failed
}

// Sums are what counts add up to, for readers that add nothing up themselves.
type Sums struct {
	Tasks  int `json:"tasks"`  // all of them: done and not
	Done   int `json:"done"`   // succeeded, broken, allowed, skipped and cancelled
	Broken int `json:"broken"` // failed, terminated and orphaned: what makes the plan fail
}

// SumsOf returns the sums of the counts.
func SumsOf(c plan.Counts) Sums { return Sums{Tasks: c.Total(), Done: c.Done(), Broken: c.Broken()} }
