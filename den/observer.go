package den

import (
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

// An Observer is told what a node does, when it is done, for figures and traces. Its methods are called by several goroutines at once and must
// return at once; what they are given they may read until they return.
type Observer interface {
	// Claimed is told of each task that a turn gave to the node.
	Claimed(t *plan.ClaimedTask)
	// Ended is told of each attempt whose ending is in the store: what it became, and for how long it ran in this node, without what its
	// ending waited for the store: zero if it was given back unstarted, less than zero if it ran in a process of its own.
	Ended(t *plan.ClaimedTask, e *plan.Ending, ran time.Duration)
	// Lost is told of each attempt whose ending the store refused, since the task was no longer the node's, but for what runners of its own have.
	Lost(t *plan.ClaimedTask)
	// PlanEnded is told of each plan that ended by what the node did.
	PlanEnded(p plan.EndedPlan)
	// Asked is told of each call of the store, by its method's name, and how long it took.
	Asked(call string, took time.Duration, err error)
}

// nobody observes.
type nobody struct{}

func (nobody) Claimed(*plan.ClaimedTask)                            {}
func (nobody) Ended(*plan.ClaimedTask, *plan.Ending, time.Duration) {}
func (nobody) Lost(*plan.ClaimedTask)                               {}
func (nobody) PlanEnded(plan.EndedPlan)                             {}
func (nobody) Asked(string, time.Duration, error)                   {}

// observe tells the observer what a turn did.
func (l *loop) observe(turned *plan.Turned) {
	o := l.cfg.Observer
	if _, none := o.(nobody); none {
		return
	}
	for i := range l.ended {
		e, a := &l.ended[i], l.whose[i]
		if slices.Contains(turned.Lost, e.Task) {
			if a.outside == nil { // else its runner has it
				o.Lost(&a.task)
			}
			continue
		}
		ran := a.ran
		if a.outside != nil {
			ran = -1
		}
		o.Ended(&a.task, e, ran)
	}
	for i := range turned.Claimed {
		o.Claimed(&turned.Claimed[i])
	}
	for _, p := range turned.Ended {
		o.PlanEnded(p)
	}
}
