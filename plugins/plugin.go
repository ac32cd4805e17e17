// Package plugins is the contract between a node and what its tasks do, and the registry of what a node can do. Each package below it
// is one built-in plugin; cmd/sluice lists those it links, an embedding program registers its own.
package plugins

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

// A Plugin does what the tasks of its queues want done.
type Plugin interface {
	// Run performs one attempt of a task and says how it went. Any number of goroutines call it at
	// once. When ctx ends it stops soon and says Terminated, or how it went if it was done already.
	// context.Cause tells the reason: ErrTimeout, ErrCancelled, ErrDraining or ErrLeaseLost. The
	// node makes the ending fit the cause, so that a plugin need not tell them apart. A panic is
	// caught by the node and fails the attempt.
	//
	// Queued says that it could not begin, and that this may pass: the task is given back, and the attempt does not count. The plugin waits
	// for a while before it says so, since the node may claim the task again at once.
	//
	// Queued with plan.ReasonLost says that the attempt ran, and that nobody can know any more what came of it. The node counts it as lost.
	//
	// A failure with Lacks says that the attempt did not begin, because the node lacks something. The
	// node finds out whose fault that is.
	Run(ctx context.Context, t *Task) plan.Result
}

// A Checker is a plugin that can tell, before a plan runs here, what its tasks would not find in this process.
type Checker interface {
	// Check returns what a task with these params would lack, if it is certain already. Expressions in the params need not have been
	// replaced; first says that the task runs before any other could make something for it.
	Check(params json.RawMessage, first bool) []Lack
}

// A Starter is a plugin that can tell, before a node begins, that none of its tasks could run in this
// process. den.New returns that error.
type Starter interface {
	CheckStart() error
}

// A Tenant is a plugin that runs something outside its process. That continues while the process is
// stopped, as by Ctrl-Z.
type Tenant interface {
	// Lease says that the node's heart beat, and how long the plugin's work may continue without
	// another call. After that others may run the node's tasks again. The node calls it about each
	// second. It does not wait.
	Lease(left time.Duration)
}

// A Silent plugin prints to no streams: all that its attempts say is in their log. The store keeps
// no results of its tasks of no plan, which saves it a write of each.
type Silent interface {
	Plugin
	Silent()
}

// An InputReader is a plugin that reads the outputs of its parents by Task.Args and Task.Needs only. The
// Params of its attempts lack needs and args where Task.Inputs has them, which saves each attempt two
// copies of large outputs.
type InputReader interface {
	Plugin
	ReadsInputs()
}

// A Wanderer is a plugin whose tasks may fail for what their node has, or cannot reach. A node on which
// such a task failed gives its next attempt back once, while another live node serves the queue. That
// attempt does not count.
type Wanderer interface {
	Plugin
	Wanders()
}

// A Refuser is a plugin that can tell from a task's params that no attempt could succeed.
type Refuser interface {
	// Refuse returns which of the params is wrong, and why; nil if nothing is known to be. Expressions
	// in the params need not have been replaced. given has the task's other params, as for Notes.
	Refuse(params json.RawMessage, given map[string]json.RawMessage) (key string, err error)
}

// A Lack is something that a task would not find.
type Lack struct {
	Key      string // of the params, or of the task: where it is missing; default env
	Variable string // of the task's env, that would be made of it
	Err      error  // what is missing, and how it gets there
}

// A Noter is a plugin that can tell what in a task's params is probably not meant.
type Noter interface {
	// Notes returns the probable mistakes in the params of a task. Expressions in the params may
	// not have been replaced yet. given has the task's other params: those of its plan, and item if
	// one is known.
	Notes(params json.RawMessage, given map[string]json.RawMessage) []Note
}

// A Note is something that is valid and probably not meant.
type Note struct {
	Key  string // of the params
	Item int    // which element of it, if it is a list; else -1
	Word string // what is to blame in its text: a variable that is used there, as $NAME and what follows it in its line
	Text string // the slip, and its remedy
	File string // a file that is missing, which another task may make: its name, or ""
}

// Why a running task's context ended.
var (
	ErrTimeout   = errors.New("it ran longer than it may")
	ErrCancelled = errors.New("a person cancelled it")
	ErrDraining  = errors.New("its node is stopping")
	ErrLeaseLost = errors.New("its node lost touch with the store")
)

// A Task is one attempt as a plugin sees it.
type Task struct {
	ID   plan.TaskID
	Plan plan.PlanID // none for a task of no plan
	// PlanName is the name of the plan with the number of its run, as in nightly#3. It may be empty.
	PlanName string
	Name     string
	Queue    string
	QueueID  plan.QueueID
	Node     plan.NodeName
	Attempt  int             // from 1
	Params   json.RawMessage // a JSON object with needs and args of its parents in it, and its expressions replaced: see InputReader
	Inputs   []plan.Input    // of large outputs of its parents, what Params has as needs and args; nil if they are small: see Args
	Secrets  []string        // the values of secret Params: the node hides them in the log and the detail, within one line
	Log      *Log            // the output of the attempt
	Reports  Reporter        // where its reports go; nil: to its log; see Report

	Reached func(plan.Progress) // takes how far it is; nil: nobody looks; see Progress

	// Hurry is closed when stopped work has to end at once, because a person says so or the lease
	// is lost. It cuts a grace period short. A nil Hurry is never closed.
	Hurry <-chan struct{}
}

// Args returns the outputs of the task's parents, in the order of its needs: the args of Params.
// For large outputs it is much cheaper than reading Params.
func (t *Task) Args() ([]json.RawMessage, error) {
	if t.Inputs == nil {
		var args []json.RawMessage
		err := t.param("args", &args)
		return args, err
	}
	args := make([]json.RawMessage, len(t.Inputs))
	for i, in := range t.Inputs {
		args[i] = in.Value()
	}
	return args, nil
}

// Needs returns what the task's parents returned, by their names: the needs of Params. As with Args.
func (t *Task) Needs() (map[string]json.RawMessage, error) {
	if t.Inputs == nil {
		var needs map[string]json.RawMessage
		err := t.param("needs", &needs)
		return needs, err
	}
	needs := make(map[string]json.RawMessage, len(t.Inputs))
	for _, in := range t.Inputs {
		needs[in.Name] = in.Value()
	}
	return needs, nil
}

// param reads one param; if it is not there, to stays as it is. Names are exact, which those of a struct's fields are not.
func (t *Task) param(name string, to any) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(t.Params, &all); err != nil {
		return fmt.Errorf("params of task %s: %w", t.ID, err)
	}
	if all[name] == nil {
		return nil
	}
	if err := json.Unmarshal(all[name], to); err != nil {
		return fmt.Errorf("%s of task %s: %w", name, t.ID, err)
	}
	return nil
}

// A Func is a plugin made of a Go function. The returned value is the task's output, as JSON. An
// error fails the attempt and is its detail. An error that is or wraps a StatusError chooses the
// status, and says whether and when the attempt is repeated. An error of NotBegun says that this
// node could not begin the attempt, and one of Skip that there was nothing to do.
type Func func(ctx context.Context, t *Task) (any, error)

// A StatusError fails a task with a status of its own, or says more of the failure.
type StatusError struct {
	Status plan.Status // above 1; default plan.Failed
	Err    error
	Final  bool          // as in plan.Result
	Fatal  bool          // as in plan.Result
	After  time.Duration // as in plan.Result
}

func (e *StatusError) Error() string { return e.Err.Error() }
func (e *StatusError) Unwrap() error { return e.Err }

// Skip returns the error by which a Func says that it found nothing to do: see plan.Skip. reason is for
// people.
func Skip(reason string) error { return skipped(reason) }

type skipped string

func (s skipped) Error() string { return string(s) }

// Run implements Plugin.
func (f Func) Run(ctx context.Context, t *Task) plan.Result {
	v, err := f(ctx, t)
	if reason, skip := errors.AsType[skipped](err); skip {
		return plan.Skip(reason.Error())
	}
	if err != nil {
		r := plan.Result{Status: plan.Failed, Detail: err.Error(), Lacks: LacksOf(err)}
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			r.Status = plan.Terminated
		}
		var own *StatusError
		if errors.As(err, &own) {
			r.Final, r.Fatal, r.After = own.Final, own.Fatal, own.After
			if own.Status > plan.Succeeded {
				r.Status = own.Status
			}
		}
		return r
	}
	if v == nil {
		return plan.Result{Status: plan.Succeeded}
	}
	out, err := json.Marshal(v)
	if err != nil {
		return plan.Result{Status: plan.Failed, Reason: plan.ReasonOutput, Detail: fmt.Sprintf("its output is not JSON: %v", err)}
	}
	return plan.Result{Status: plan.Succeeded, Output: out}
}
