package den

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/seed-1177d267/sluice/backoff"
	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// logEvery is how often what a running task prints is put into the store, where others can follow it.
const logEvery = 500 * time.Millisecond

// A taskStore is what an attempt asks.
type taskStore interface {
	Inputs(ctx context.Context, id plan.TaskID) ([]plan.Input, error)
	Parents(ctx context.Context, id plan.TaskID) ([]plan.Parent, error)
	Failures
	Plans
	Logs
}

// An attempt runs one claimed task. Its goroutine owns it; the loop only cancels it.
type attempt struct {
	store    taskStore
	log      *slog.Logger
	failures slog.Level // of lines about what fails
	node     plan.NodeName
	task     protocol.ClaimedTask
	plugin   plugins.Plugin   // nil: there is none any more
	reports  plugins.Reporter // nil: the log takes them
	outside  Outside          // nil: it is run in this process
	runner   plan.InstanceID  // that takes it over, of one that is run outside,
	abandon  <-chan struct{}  // and what is closed when that is not there for too long
	last     string           // of a foreign one that has ended: how, for an error
	results  Results          // nil: only the log keeps the output
	gfs      protocol.GFS
	cancel   context.CancelCauseFunc
	began    time.Time       // when it was started here,
	ran      time.Duration   // and for how long it ran, once it has reported
	hurry    <-chan struct{} // closed when what is stopped has to end at once

	board *board // takes how far it is

	// These find out whose fault it is if the attempt does not begin. A runner has no faults: its
	// task is at fault.
	faults *faults
	peers  peers
	me     *plan.Instance
	beside func() int  // how many other tasks the node ran since it began this one
	lacks  plan.Lack   // as the plugin said
	why    string      // it did not begin, as people may see it
	fault  rules.Fault // and whose fault that is
	passed bool        // it was left to another node

	foreign   bool // the plugin writes the task's end itself, if it is not stopped
	cancelled bool // by a person; the loop's
	over      bool // the board takes nothing more of it; the board's
	ended     bool // its log is appended no more

	out      plugins.Log
	whole    *plugins.Capture // of its output, if results are kept
	flushing chan struct{}    // full while the log is appended, so that its end goes after it
	next     *time.Timer      // of the next flush
	unsent   []plan.LogEntry

	secrets atomic.Pointer[[]string] // the texts that show them in its output; nil: none
}

// keep remembers what is secret in the params.
func (a *attempt) keep(params json.RawMessage) []string {
	secret := secret.OfClaim(&a.task)
	if secret.None() {
		return nil // mostly
	}
	values := secret.Values(params)
	a.secrets.Store(&values)
	return values
}

// shown returns a text without the secrets of the task's params.
func (a *attempt) shown(text string) string {
	if values := a.secrets.Load(); values != nil {
		return secret.HideText(text, *values)
	}
	return text
}

// run runs the task and sets the ending of its claim, unless the claim is lost. The parent of ctx
// is alive. It continues if only this attempt is stopped.
func (a *attempt) run(alive, ctx context.Context, e *protocol.Ending) (ok bool) {
	e.Claim = a.task.Claim
	rules.FillDefaults(&a.task)
	if a.outside != nil {
		e.Status = plan.Queued
		return a.leave(ctx)
	}
	a.tellStart(ctx)
	if a.results != nil {
		a.whole = new(plugins.Capture)
		a.out.CaptureTo(a.whole)
		defer a.whole.Close() // what it has goes in any case
	}
	if a.task.Reason == plan.ReasonLost {
		a.unsent = []plan.LogEntry{rules.LossEntry(time.Now(), a.task.Attempt-1)}
	}
	a.flushing = make(chan struct{}, 1)
	a.flushing <- struct{}{}
	a.next = time.AfterFunc(logEvery, func() { a.flush(ctx) })
	<-a.flushing
	limited := ctx
	if a.task.Timeout > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeoutCause(ctx, a.task.Timeout, plugins.ErrTimeout)
		defer cancel()
	}
	ok = a.end(limited, e)
	e.Detail = rules.CutDetail(a.shown(e.Detail))
	a.ran = time.Since(a.began)
	a.flushing <- struct{}{} // a flush that is under way has set the timer again by now
	a.ended = true
	a.next.Stop()
	<-a.flushing
	if (ok || a.foreign) && a.unsent != nil {
		a.append(alive, a.unsent)
	}
	e.Log = append(a.unsent, a.printed()...)
	if !ok && a.foreign && len(e.Log) > 0 {
		a.append(alive, e.Log) // it has no ending to go with
	}
	if ok && e.Status == plan.Queued && e.Reason != plan.ReasonLost {
		entry := rules.NotBegunEntry(time.Now(), a.task.Attempt, e.Detail)
		if errors.Is(context.Cause(ctx), plugins.ErrDraining) {
			entry = rules.GivenBackEntry(time.Now(), a.task.Attempt)
		}
		e.Log = append(e.Log, entry)
	}
	if ok && a.results != nil && e.Status.Finished() {
		a.keepResults(alive, ctx, e)
	}
	if ok {
		a.tell(ctx, e)
	}
	return ok
}

// end runs the plugin, or reads the items. It sets an ending that fits the result, and why the
// context ended, if it did. The frames below the plugin's are small, since a stack that has to grow
// costs a short task a microsecond.
func (a *attempt) end(ctx context.Context, e *protocol.Ending) bool {
	expand := a.task.Foreach != nil && a.task.Foreach.OnNode()
	var r plan.Result
	var items []json.RawMessage
	switch {
	case a.task.Approve != nil:
		if r = a.mayAsk(ctx); r.Status == plan.Running {
			*e = rules.AskApproval(&a.task)
			return true
		}
	case expand:
		items, r = a.items(ctx, a.task.Foreach)
	case a.plugin == nil:
		e.Status = plan.Queued
		return true
	case a.passes(ctx):
		a.passed = true
		e.Status, e.Detail = plan.Queued, rules.NotBegunDetail(a.node, "it failed here before, and another node may try it")
		return true
	default:
		r = a.result(ctx)
	}
	if r.Lacks != plan.LacksNothing && a.faults != nil && ctx.Err() == nil {
		a.judge(ctx, &r)
	}
	if !a.conclude(ctx, expand, &r, e) {
		return false
	}
	if e.Status == plan.Held && !e.Expand && a.wanders() {
		a.faults.failedHere(a.task.Task)
	}
	if e.Expand {
		e.Items = items
	}
	return true
}

// judge decides whose fault it is that the attempt did not begin.
func (a *attempt) judge(ctx context.Context, r *plan.Result) {
	var err error
	a.lacks = r.Lacks
	if a.fault, err = a.blame(ctx, r); err != nil && ctx.Err() == nil {
		about(a.log, &a.task).Warn("it did not begin; the task is given back", "task", a.task.Task, "error", err)
	}
	a.faults.decided(a, a.fault, a.log, a.failures)
}

// conclude sets an ending that fits the result, and why the context ended, if it did.
func (a *attempt) conclude(ctx context.Context, expand bool, r *plan.Result, e *protocol.Ending) bool {
	cause := context.Cause(ctx)
	if r.Status == plan.Succeeded && !errors.Is(cause, plugins.ErrLeaseLost) {
		cause = nil // it was done before it was told
	}
	switch {
	case cause == nil && a.foreign:
		if r.Status != plan.Succeeded {
			a.last = ": " + r.Detail
			a.out.Append(plan.System, "its task runner: "+r.Detail)
		}
		return false
	case cause == nil:
	case errors.Is(cause, plugins.ErrTimeout):
		r.Status, r.Reason = plan.Failed, plan.ReasonTimeout
		r.Detail = fmt.Sprintf("it ran longer than %v", a.task.Timeout)
	case errors.Is(cause, plugins.ErrCancelled):
		e.Status, e.Reason, e.Detail, e.Exit = plan.Terminated, plan.ReasonCancelled, a.stoppedBy(ctx), r.Exit
		return true
	case errors.Is(cause, plugins.ErrDraining):
		a.concludeDrained(expand, r, e)
		return true
	default:
		return false
	}
	switch {
	case expand && r.Status == plan.Succeeded:
		e.Status, e.Detail, e.Expand = plan.Held, r.Detail, true
		return true
	case a.fault != rules.TaskAtFault:
		e.Status, e.Detail = plan.Queued, rules.NotBegunDetail(a.node, r.Detail)
		return true
	case r.Status == plan.Queued && r.Reason == plan.ReasonLost:
		a.concludeLost(r, e)
		return true
	case r.Status == plan.Queued:
		e.Status = plan.Queued
		return true
	case r.Status <= plan.Running && r.Status != plan.Terminated && !r.IsSkip():
		*r = plan.Result{Status: plan.Failed, Reason: plan.ReasonError, Detail: fmt.Sprintf("the plugin ended it with status %d, which is no end", r.Status)}
	}
	*e = rules.Conclude(&a.task, *r, func(r plan.Retry, tried int) time.Duration {
		return backoff.Retry{Initial: r.Delay, Factor: r.Factor, Max: r.Max}.Delay(tried, nil)
	})
	return true
}

// concludeDrained ends an attempt whose node was stopped. The plugin was stopped, not lost; but it ran, so whether it may run again is for
// the same rule to say. To read items has no effect.
func (a *attempt) concludeDrained(expand bool, r *plan.Result, e *protocol.Ending) {
	was := plan.Running
	if expand || r.Lacks != plan.LacksNothing {
		was = plan.Claimed
	}
	if loss := a.lost(was, 0, "its node was stopped while it ran"); loss.Finishes() {
		e.Status, e.Reason, e.Detail = loss.Status, loss.Reason, loss.Detail
	} else {
		e.Status = plan.Queued
	}
}

// concludeLost ends an attempt that the plugin lost.
func (a *attempt) concludeLost(r *plan.Result, e *protocol.Ending) {
	loss := a.lost(plan.Running, a.task.Rescues, r.Detail)
	e.Status, e.Reason, e.Detail, e.Exit = loss.Status, loss.Reason, loss.Detail, r.Exit
}

// stoppedBy says what stopped the task: a person, or the time of its plan.
func (a *attempt) stoppedBy(ctx context.Context) string {
	if a.task.Plan.IsZero() {
		return rules.ByPerson
	}
	p, err := a.store.Plan(context.WithoutCancel(ctx), a.task.Plan)
	if err == nil && p.Closing == plan.ClosedByTimeout {
		return rules.ByTimeout
	}
	return rules.ByPerson
}

// lost says what becomes of the task, whose attempt is lost for that reason.
func (a *attempt) lost(was plan.Status, rescues int, why string) rules.Step {
	return rules.Lost(rules.Loss{
		Claim: rules.Claim{Status: was}, InPlan: !a.task.Plan.IsZero(), Definition: &a.task.Definition, Queue: a.task.Settings.OnLost, Rescues: rescues, Why: why,
	})
}

// result runs the plugin with the params it is to see.
func (a *attempt) result(ctx context.Context) (r plan.Result) {
	defer func() {
		if p := recover(); p != nil {
			about(a.log, &a.task).Error("plugin panicked", "task", a.task.Task, "panic", a.shown(fmt.Sprint(p)))
			a.out.Append(plan.System, fmt.Sprintf("panic: %v\n%s", p, debug.Stack()))
			r = plan.Result{Status: plan.Failed, Reason: plan.ReasonError, Detail: fmt.Sprintf("the plugin panicked: %v", p)}
		}
	}()
	a.keep(a.task.Params)
	params, inputs, err := a.delivered(ctx)
	if err == nil {
		a.keep(params)
		params, err = compiler.Resolve(&a.task, params, a.planState(ctx))
	}
	if err != nil {
		return noInput(err)
	}
	secrets := a.keep(params)
	if r := a.meets(ctx, params); r.Status != plan.Running {
		return r
	}
	return a.plugin.Run(ctx, &plugins.Task{
		ID: a.task.Task, Plan: a.task.Plan, PlanName: a.task.PlanName, Name: a.task.Name, Queue: a.task.QueueName, QueueID: a.task.Queue,
		Node: a.node, Attempt: a.task.Attempt, Params: params, Inputs: inputs, Secrets: secrets, Log: &a.out, Reports: a.reports, Hurry: a.hurry,
		Reached: func(p plan.Progress) { a.board.set(a, p) },
	})
}

// mayAsk returns the result of a task whose question is not to be asked. Else the result is that of a task
// that runs.
func (a *attempt) mayAsk(ctx context.Context) plan.Result {
	if a.task.If == "" || rules.Asked(&a.task) {
		return plan.Result{Status: plan.Running}
	}
	params, _, err := a.delivered(ctx)
	if err != nil {
		return noInput(err)
	}
	a.keep(params)
	return a.meets(ctx, params)
}

// meets returns the result of a task whose condition does not hold. Else the result is that of a task
// that runs.
func (a *attempt) meets(ctx context.Context, params json.RawMessage) plan.Result {
	if a.task.If == "" {
		return plan.Result{Status: plan.Running}
	}
	switch why, err := compiler.Unmet(&a.task, params, a.planState(ctx)); {
	case err != nil:
		return noInput(err)
	case why != "":
		return plan.Skip(why)
	}
	return plan.Result{Status: plan.Running}
}

// noInput returns the result of a task whose inputs cannot be made: a final failure, unless the
// store could not read them.
func noInput(err error) plan.Result {
	r := plan.Result{Status: plan.Failed, Reason: plan.ReasonInput, Detail: err.Error(), Lacks: plugins.LacksOf(err)}
	if errors.Is(err, errNotRead) {
		r.Reason = plan.ReasonError
	}
	return r
}

// readsInputs reports whether nothing needs the outputs of the task's parents in its params: neither its plugin, nor an
// expression, nor the search for secrets.
func (a *attempt) readsInputs() bool {
	_, reads := a.plugin.(plugins.InputReader)
	return reads && !a.task.Template && a.task.If == "" && secret.OfClaim(&a.task).None()
}

// delivered returns the task's params with its parents' outputs and results in them, and the outputs too if they were not in there before.
func (a *attempt) delivered(ctx context.Context) (params json.RawMessage, inputs []plan.Input, err error) {
	params = a.task.Params
	if a.task.ByReference {
		if inputs, err = read(ctx, a, a.store.Inputs); err == nil && !a.readsInputs() {
			params, err = rules.Deliver(params, inputs)
		}
	}
	if err == nil && rules.TellsResults(a.task.When) {
		var parents []plan.Parent
		if parents, err = read(ctx, a, a.store.Parents); err == nil {
			params, err = rules.DeliverResults(params, parents)
		}
	}
	if tells, _ := rules.TellsFailures(&a.task.Definition); err == nil && tells {
		var failures json.RawMessage
		if failures, err = read(ctx, a, a.store.Failures); err == nil {
			params, err = rules.DeliverFailures(params, failures)
		}
	}
	return params, inputs, err
}

// planState returns what tells the state of the task's plan; nil for a task of no plan.
func (a *attempt) planState(ctx context.Context) compiler.PlanState {
	if a.task.Plan.IsZero() {
		return nil
	}
	return func() (string, error) {
		p, err := read(ctx, a, func(ctx context.Context, _ plan.TaskID) (plan.Plan, error) { return a.store.Plan(ctx, a.task.Plan) })
		return rules.StateSeen(&p), err
	}
}

var errNotRead = errors.New("the outputs of its parents cannot be read")

// read asks the store about what the task is given. While the store is gone it tries again. The lease
// decides how long, and the task is not at fault then.
func read[T any](ctx context.Context, a *attempt, ask func(context.Context, plan.TaskID) (T, error)) (none T, err error) {
	var wait backoff.Poll
	for {
		found, err := ask(ctx, a.task.Task)
		switch {
		case err == nil, errors.Is(err, plan.ErrTooMuchInput):
			return found, err
		case !errors.Is(err, plan.ErrUnavailable):
			return none, fmt.Errorf("%w: %w", errNotRead, err)
		}
		about(a.log, &a.task).Warn("read the outputs of its parents", "task", a.task.Task, "error", err)
		if sleep(ctx, wait.Next()); ctx.Err() != nil {
			return none, context.Cause(ctx)
		}
	}
}

// printed returns what was printed since it was last called.
func (a *attempt) printed() []plan.LogEntry {
	entries := a.out.Drain()
	for i := range entries {
		entries[i].Attempt, entries[i].Text = a.task.Attempt, a.shown(entries[i].Text)
	}
	return entries
}

// flush puts what was printed since the last time into the store, and arranges for the next time.
func (a *attempt) flush(ctx context.Context) {
	a.flushing <- struct{}{}
	defer func() { <-a.flushing }()
	if a.ended {
		return
	}
	entries := a.unsent
	if entries == nil {
		entries = a.printed()
	}
	if len(entries) > 0 {
		a.append(ctx, entries)
	}
	a.next.Reset(logEvery)
}

// append puts entries into the store. Entries without an answer may be stored all the same. append
// sends the same batch again by itself, even before the ending: a store recognizes a repeated
// batch. Without an answer then either, the entries go with the ending, and may be stored twice.
func (a *attempt) append(ctx context.Context, entries []plan.LogEntry) {
	a.unsent = nil
	if err := a.store.AppendLog(ctx, a.task.Claim, entries); err != nil && !errors.Is(err, plan.ErrClaimLost) {
		a.unsent = entries
	}
}
