package den

import (
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
)

// An Observer learns what a node does, for metrics and traces. Several goroutines call its methods
// at once, and the methods must return at once. They may read their arguments until they return.
type Observer interface {
	// Claimed gets each task that the node claimed in a turn.
	Claimed(t *protocol.ClaimedTask)
	// Ended gets each attempt whose ending is in the store. ran is how long it ran in this node,
	// without the time for storing its ending. ran is zero if the attempt was given back unstarted.
	// It is less than zero if the attempt ran in a process of its own.
	Ended(t *protocol.ClaimedTask, e *protocol.Ending, ran time.Duration)
	// Lost gets each attempt whose ending the store refused because the task was no longer the
	// node's. Tasks that the node's own runners have are not lost.
	Lost(t *protocol.ClaimedTask)
	// PlanEnded gets each plan that the node ended.
	PlanEnded(p protocol.EndedPlan)
	// Asked gets each call of the store, with its method's name and its duration.
	Asked(call string, took time.Duration, err error)
}

// nobody observes.
type nobody struct{}

func (nobody) Claimed(*protocol.ClaimedTask)                                {}
func (nobody) Ended(*protocol.ClaimedTask, *protocol.Ending, time.Duration) {}
func (nobody) Lost(*protocol.ClaimedTask)                                   {}
func (nobody) PlanEnded(protocol.EndedPlan)                                 {}
func (nobody) Asked(string, time.Duration, error)                           {}

// observe tells the observer what a turn did.
func (l *loop) observe(turned *protocol.Turned) {
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
