package rules

import (
	"fmt"
	"slices"

	"github.com/seed-1177d267/sluice/plan"
)

// A Fault says whose fault it is that an attempt did not begin.
type Fault uint8

const (
	// TaskAtFault: the attempt failed, and counts. It is the zero value, as of an attempt that began.
	TaskAtFault Fault = iota
	// NodeAtFault: the task is given back, and the attempt does not count. The node leaves the queue
	// to other nodes for a while.
	NodeAtFault
	// NodeFull: the task is given back, and the attempt does not count. The node runs fewer tasks at
	// once.
	NodeFull
)

// An Unbegun is what a rule asks of an attempt that its node could not begin.
type Unbegun struct {
	Task   plan.TaskID
	Plan   plan.PlanID
	Queue  plan.Queue
	Lacks  plan.Lack
	Beside int             // how many other tasks the node ran during the attempt; they may have ended
	Node   plan.Instance   // that could not begin it
	Nodes  []plan.Instance // all that are registered, with the Pauses of their last beats
}

// WhoseFault says whose fault it is that an attempt did not begin. The first rule that applies
// decides:
//
//  1. The node lacks room while it runs other tasks: the node is full.
//  2. Another registered node serves the task's queue and plan, and has not given the task back: the
//     node is at fault, since the other node may be able to begin the task.
//  3. No other node is left to try: the task is at fault.
func WhoseFault(u *Unbegun) Fault {
	if u.Lacks == plan.LacksRoom && u.Beside > 0 {
		return NodeFull
	}
	for k := range u.Nodes {
		if n := &u.Nodes[k]; u.mayTry(n) && !gaveBack(n, u) {
			return NodeAtFault
		}
	}
	return TaskAtFault
}

// Alone reports whether no other node serves the task's queue and plan.
func (u *Unbegun) Alone() bool {
	return !slices.ContainsFunc(u.Nodes, func(n plan.Instance) bool { return u.mayTry(&n) })
}

// mayTry reports whether an instance is of another node that serves the task's queue and plan.
func (u *Unbegun) mayTry(n *plan.Instance) bool {
	return n.ID != u.Node.ID && (n.Plan.IsZero() || n.Plan == u.Plan) && n.Serves(&u.Queue)
}

func gaveBack(n *plan.Instance, u *Unbegun) bool {
	return slices.ContainsFunc(n.Pauses, func(p plan.Pause) bool { return p.Queue == u.Queue.ID && slices.Contains(p.Tasks, u.Task) })
}

// NotBegunDetail is the detail of a task that the node gave back.
func NotBegunDetail(n plan.NodeName, why string) string {
	return fmt.Sprintf("node %s could not begin it: %s", n, why)
}
