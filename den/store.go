package den

import (
	"context"
	"encoding/json"
	"io"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
)

// Store is the interface that a node needs of a store. Any number of goroutines call it at once.
// The contract of the stores defines each method. A driver satisfies the interface, and so does the
// value that sluice.Open returns.
//
// A store may offer more. A node looks for [Leaver], [Logs], [Waker], [Expirer], [Handover],
// [Adopter], [Results], [Plans], [Failures], [Queues], [Balancer] and plugins.Reporter. It looks in the store
// itself, or in the store that its method Unwrap() Store returns. The node works without the missing
// ones.
type Store interface {
	// Register makes an instance of a node known. Registering twice changes nothing.
	Register(ctx context.Context, i plan.Instance) error
	// Beat renews the lease of an instance, and returns what people want of it.
	Beat(ctx context.Context, b protocol.Beat) (protocol.Beaten, error)
	// Turn stores how attempts ended, releases what waited for them, and claims tasks.
	Turn(ctx context.Context, t protocol.Turn) (protocol.Turned, error)
	// Sweep puts right what no turn does: delays, claims of instances that are gone, plans that close.
	Sweep(ctx context.Context, s protocol.Sweep) (protocol.Swept, error)
	// Instances returns all registered instances.
	Instances(ctx context.Context) ([]plan.Instance, error)
	// Rescue declares an instance dead if it has still beaten so often (< 0: however often), and
	// returns how many tasks that took from it.
	Rescue(ctx context.Context, i plan.InstanceID, beats int64) (int, error)
	// Inputs returns the outputs of a task's parents, in the order of its needs.
	Inputs(ctx context.Context, id plan.TaskID) ([]plan.Input, error)
	// Parents returns how a task's parents ended, in the order of its needs.
	Parents(ctx context.Context, id plan.TaskID) ([]plan.Parent, error)
}

// A Leaver ends an instance that holds nothing any more. Without it the node rescues its own instance.
type Leaver interface {
	Leave(ctx context.Context, i plan.InstanceID) error
}

// Logs takes what a running task prints, as it prints it. Without it the log comes with the task's end.
type Logs interface {
	AppendLog(ctx context.Context, c protocol.Claim, entries []plan.LogEntry) error
}

// A Waker tells a node at once that another process queued something. The channel is closed when ctx
// ends; nil says nothing. Without it a node polls, as Config.Idle says.
type Waker interface {
	Wakes(ctx context.Context) <-chan struct{}
}

// An Expirer deletes plans and tasks that are kept no longer, at most budget rows or documents at a
// time. Without it they stay until somebody deletes them.
type Expirer interface {
	Expire(ctx context.Context, budget int) (protocol.Expired, error)
}

// A Handover hands claimed tasks to processes of their own. Config.Outside and RunClaimed need it.
type Handover interface {
	// Start takes claimed tasks to running, and returns those whose claim was lost.
	Start(ctx context.Context, claims []protocol.Claim) (lost []plan.TaskID, err error)
	// Take moves a claimed task from the instance that claimed it to this one.
	Take(ctx context.Context, t protocol.Take) (protocol.ClaimedTask, error)
}

// An Adopter marks a plan as having a node of its own. A claim limited to the plan is then as cheap
// as any other. [Run] calls it for Config.Plan.
type Adopter interface {
	Adopt(ctx context.Context, p plan.PlanID) error
}

// Results keeps the whole of what tasks of no plan print, for programs that submit such tasks as
// Disbatch's do. Without it their log is all there is.
type Results interface {
	PutResults(ctx context.Context, c protocol.Claim, stdout, stderr *io.SectionReader, mode protocol.GFS) error
}

// Plans tells how plans stand, so that the node's log says of a plan that ended how its tasks did, and tasks read
// plan.state. Without it each plan counts as running.
type Plans interface {
	Plan(ctx context.Context, id plan.PlanID) (plan.Plan, error)
}

// Failures tells how tasks failed, to those that handle failures. Without it they find none among their params.
type Failures interface {
	// Failures returns how those tasks failed that the task is told of, as a JSON list of plan.Failure.
	Failures(ctx context.Context, id plan.TaskID) (json.RawMessage, error)
}

// Queues tells how queues are set, so that a node knows which other nodes serve a queue. Without it
// each queue counts as one that every node may serve.
type Queues interface {
	Queues(ctx context.Context) ([]plan.Queue, error)
}

// innermost returns the store that others stand before.
func innermost(st Store) Store {
	for {
		w, ok := st.(interface{ Unwrap() Store })
		if !ok {
			return st
		}
		st = w.Unwrap()
	}
}
