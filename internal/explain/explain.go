// Package explain says why a task is not running now, as one chain of reasons. The chain begins
// with the task and the parent that it waits for. It ends at a limit, a delay, a missing node or a
// running task.
package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/internal/duration"
	"github.com/seed-1177d267/sluice/internal/hint"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/runner/procid"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// Reader is what an explanation reads.
type Reader interface {
	Now(ctx context.Context) (time.Time, error)
	Plan(ctx context.Context, id plan.PlanID) (plan.Plan, error)
	store.TaskReader
	Queues(ctx context.Context) ([]plan.Queue, error)
	Groups(ctx context.Context) ([]plan.Group, error)
	CountQueues(ctx context.Context, queues []plan.Queue) error
	Instances(ctx context.Context) ([]plan.Instance, error)
	MaxThreads(ctx context.Context) (map[plan.NodeName]int, error)
	Log(ctx context.Context, id plan.TaskID, after int64, limit int) ([]plan.LogEntry, int64, error)
}

// A Link is one task of the chain and why it is as it is; the next link is about what this one waits for.
type Link struct {
	Task      plan.Task
	Why       string // completes "copy is waiting: …"
	hint.Hint        // what may help, if anything does
}

// Task returns the chain that starts with the task. Nothing is locked while it reads, so a chain on a busy store may hold what was true at
// slightly different instants.
func Task(ctx context.Context, r Reader, id plan.TaskID) ([]Link, error) {
	now, err := r.Now(ctx)
	if err != nil {
		return nil, err
	}
	e := &explainer{ctx: ctx, r: r, now: now, seen: map[plan.TaskID]bool{}, plans: map[plan.PlanID]plan.Plan{}}
	t, err := e.task(id)
	if err != nil {
		return nil, err
	}
	for t != nil && !e.seen[t.ID] {
		e.seen[t.ID] = true
		link, following, err := e.one(t)
		if err != nil {
			return nil, err
		}
		link.Task = *t
		e.chain = append(e.chain, link)
		t = following
	}
	return e.chain, nil
}

type explainer struct {
	ctx   context.Context
	r     Reader
	now   time.Time
	seen  map[plan.TaskID]bool
	plans map[plan.PlanID]plan.Plan
	chain []Link
}

// one explains one task, and names the task that the chain goes on with.
func (e *explainer) one(t *plan.Task) (Link, *plan.Task, error) {
	p, err := e.plan(t.Plan)
	if err != nil {
		return Link{}, nil, err
	}
	switch {
	case t.Status.Finished():
		return e.finished(t, &p)
	case t.Status.Active():
		return e.active(t)
	case !t.Plan.IsZero() && p.State == plan.PlanSubmitting && p.Closing == plan.Open:
		how, h := hint.Submission(&p, e.now)
		return Link{Why: fmt.Sprintf("its plan %s is not ready: %s", p.Title(), how), Hint: h}, nil, nil
	case t.Finally && rules.HoldsFinally(p.State, p.Ending):
		return e.awaitsEnd(t)
	case p.Closing == plan.ClosedByPerson:
		return Link{Why: fmt.Sprintf("its plan %s is being cancelled", p.Title())}, nil, nil
	case p.Closing == plan.ClosedByTimeout:
		return Link{Why: fmt.Sprintf("its plan %s is being stopped, since its timeout of %s is over", p.Title(), duration.Text(p.Timeout))}, nil, nil
	case p.Closing == plan.ClosedByFailure:
		return Link{Why: fmt.Sprintf("its plan %s starts nothing more, since a task failed (on_failure: stop)", p.Title())}, nil, nil
	case !t.Plan.IsZero() && p.State.Ended():
		return Link{Why: fmt.Sprintf("its plan %s is %s", p.Title(), p.State)}, nil, nil
	case rules.Overdue(&p, e.now):
		return e.overdue(&p)
	case t.Status == plan.Queued:
		return e.queued(t)
	}
	return e.held(t, &p)
}

// awaitsEnd explains a task of finally that waits for others.
func (e *explainer) awaitsEnd(t *plan.Task) (Link, *plan.Task, error) {
	link := Link{Why: "it is one of finally, and waits for all tasks of the plan to end"}
	for k := range stuck { // a task that runs or waits for a person says most
		found, err := e.r.Tasks(e.ctx, store.TaskQuery{Plan: t.Plan, Statuses: stuck[len(stuck)-1-k:][:1], Needs: true, Limit: mostAsked})
		if err != nil {
			return Link{}, nil, err
		}
		for i := range found {
			if !found[i].Finally && found[i].Of.IsZero() {
				return link, &found[i], nil
			}
		}
	}
	return link, nil, nil
}

// overdue explains a task of a plan whose time is over, and which no node has stopped yet.
func (e *explainer) overdue(p *plan.Plan) (Link, *plan.Task, error) {
	nodes, err := e.r.Instances(e.ctx)
	link := Link{Why: fmt.Sprintf("the timeout of %s of its plan %s is over, and the next node stops the plan", duration.Text(p.Timeout), p.Title())}
	if Stalled(nodes, p) {
		link.Hint = hint.Resume(p)
	}
	return link, nil, err
}

// mostAsked is how many tasks of a plan are read to find one that others wait for.
const mostAsked = 1000

func (e *explainer) plan(id plan.PlanID) (plan.Plan, error) {
	if id.IsZero() {
		return plan.Plan{}, nil
	}
	if p, ok := e.plans[id]; ok {
		return p, nil
	}
	p, err := e.r.Plan(e.ctx, id)
	if err == nil {
		e.plans[id] = p
	}
	return p, err
}

func (e *explainer) task(id plan.TaskID) (*plan.Task, error) {
	found, err := e.r.Tasks(e.ctx, store.TaskQuery{IDs: []plan.TaskID{id}, Needs: true, Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("task %s: %w", id, plan.ErrNotFound)
	}
	return &found[0], nil
}

// parents returns those of a task. An item without any has those of its foreach task.
func (e *explainer) parents(t *plan.Task) ([]plan.Task, error) {
	needs := t.Needs
	if !t.Of.IsZero() && len(needs) == 0 {
		of, err := e.task(t.Of)
		if errors.Is(err, plan.ErrNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		needs = of.Needs
	}
	return store.TasksByID(e.ctx, e.r, store.TaskQuery{}, needs)
}

// stuck orders statuses by how far they are from the end. A chain explains most if it continues
// with the task that is furthest from its end.
var stuck = []plan.Status{plan.Held, plan.Queued, plan.Claimed, plan.Running}

// approval explains a task that waits for a person.
func (e *explainer) approval(t *plan.Task) (Link, *plan.Task, error) {
	why := "somebody is to answer: " + t.Detail
	if t.Timeout > 0 {
		why += " (within " + duration.Text(t.NotBefore.Sub(e.now)) + ")"
	}
	link := Link{Task: *t, Why: why}
	if t.Plan.IsZero() {
		link.Hint = hint.Approve(t, nil)
		return link, nil, nil
	}
	p, err := e.plan(t.Plan)
	if err == nil {
		link.Hint = hint.Approve(t, &p)
	}
	return link, nil, err
}

func (e *explainer) held(t *plan.Task, p *plan.Plan) (Link, *plan.Task, error) {
	switch {
	case t.Expanding:
		return e.nextTurn(t, fmt.Sprintf("its %d items are being made", t.Items))
	case t.Expanded:
		return e.items(t)
	case rules.AnswerOver(t, e.now):
		return e.nextTurn(t, fmt.Sprintf("nobody answered within %s: a node's next turn fails it", duration.Text(t.Timeout)))
	case t.AwaitsAnswer():
		return e.approval(t)
	case t.NotBefore.After(e.now) && t.Attempt == 0:
		return e.nextTurn(t, fmt.Sprintf("it is held until %s, for %s more", t.NotBefore.UTC().Format(time.RFC3339), duration.Text(t.NotBefore.Sub(e.now))))
	case t.NotBefore.After(e.now):
		return e.nextTurn(t, fmt.Sprintf("attempt %d follows in %s%s", t.Attempt+1, duration.Text(t.NotBefore.Sub(e.now)), because(t)))
	}
	parents, err := e.parents(t)
	if err != nil {
		return Link{}, nil, err
	}
	var seen rules.Outcome
	var following *plan.Task
	waits := 0
	for _, s := range stuck {
		for i := range parents {
			if parents[i].Status == s {
				waits++
				if following == nil {
					following = &parents[i]
				}
			}
		}
	}
	for i := range parents {
		seen |= rules.OutcomeOfTask(&parents[i])
	}
	decision := rules.Decide(t.When, seen, waits == 0)
	if t.Finally {
		decision = rules.DecideFinally(t.When, p.Ending, waits == 0)
	}
	switch decision {
	case rules.ToWait:
		full, err := e.task(following.ID)
		why := "it waits for " + following.Key() + others(waits-1, len(parents))
		if t.Foreach != nil && t.Foreach.Group != "" {
			why += ", whose outputs it groups by " + t.Foreach.Group
		}
		return Link{Why: why}, full, err
	case rules.ToSkip:
		return e.nextTurn(t, "its when "+whenWord(t.When)+" cannot hold any more, so it will be skipped")
	}
	why := "nothing holds it any more: a node's next turn queues it"
	if t.Attempt > 0 {
		why = "its delay is over: a node's next sweep queues it"
	}
	return e.nextTurn(t, why)
}

// others ends "it waits for a" when it waits for more than that.
func others(more, all int) string {
	switch {
	case more > 0:
		return fmt.Sprintf(" and %d more of the %d that it needs", more, all)
	case all > 1:
		return fmt.Sprintf(", the last of the %d that it needs", all)
	}
	return ""
}

func (e *explainer) items(t *plan.Task) (Link, *plan.Task, error) {
	const most = 1000
	left, err := e.r.Tasks(e.ctx, store.TaskQuery{Plan: t.Plan, Of: t.ID, Statuses: stuck, Limit: most})
	if err != nil {
		return Link{}, nil, err
	}
	if len(left) == 0 {
		return e.nextTurn(t, fmt.Sprintf("its %d items have finished: a node's next turn ends it", t.Items))
	}
	count := fmt.Sprint(len(left))
	if len(left) == most {
		count = "at least " + count
	}
	for _, s := range stuck {
		for i := range left {
			if left[i].Status == s {
				why := fmt.Sprintf("it waits for its items, %s of %d have not finished", count, t.Items)
				if t.Cancel {
					why += ", and are being stopped since a person cancelled it"
				}
				return Link{Why: why}, &left[i], nil
			}
		}
	}
	return Link{}, nil, nil // one of them has such a status, since that is what was asked for
}

// nextTurn explains what any node would do by itself at its next turn: if there is none, that is the reason.
func (e *explainer) nextTurn(t *plan.Task, why string) (Link, *plan.Task, error) {
	nodes, err := e.r.Instances(e.ctx)
	if err != nil {
		return Link{}, nil, err
	}
	if slices.ContainsFunc(nodes, Alive) {
		return Link{Why: why}, nil, nil
	}
	return Link{Why: why + "; no node is alive to do so", Hint: e.start(t)}, nil, nil
}

// start brings a node for the task.
func (e *explainer) start(t *plan.Task) hint.Hint {
	p := e.plans[t.Plan]
	return hint.Start(t, &p)
}

func (e *explainer) active(t *plan.Task) (Link, *plan.Task, error) {
	nodes, err := e.r.Instances(e.ctx)
	if err != nil {
		return Link{}, nil, err
	}
	if !Holds(nodes, t) {
		return e.lost(t, nodes)
	}
	why := fmt.Sprintf("node %s will start it", t.Node)
	if t.Status == plan.Running {
		why = fmt.Sprintf("it runs on node %s", t.Node)
		if !t.Started.IsZero() { // other programs do not say
			why += " for " + duration.Text(e.now.Sub(t.Started))
		}
	}
	if t.Attempt > 1 {
		why += fmt.Sprintf(", attempt %d", t.Attempt)
	}
	if t.Cancel {
		why += ", and is being stopped since a person cancelled it"
	}
	return Link{Why: why}, nil, nil
}

// lost explains a task that is claimed or running by its status, while its node is gone: who is to take it over?
func (e *explainer) lost(t *plan.Task, nodes []plan.Instance) (Link, *plan.Task, error) {
	why, stray := NodeGone(t), true
	for i := range nodes {
		if nodes[i].ID != t.Instance {
			continue
		}
		if stray = false; !procid.Gone(nodes[i]) {
			why = fmt.Sprintf("its node %s was not heard of for %s", t.Node, duration.Text(nodes[i].Age))
		}
	}
	queues, err := e.r.Queues(e.ctx)
	if err != nil {
		return Link{}, nil, err
	}
	var q plan.Queue
	for i := range queues {
		if queues[i].ID == t.Queue {
			q = queues[i]
		}
	}
	if others, none, h := able(nodes, t.Plan, &q); len(others) == 0 {
		if h.Do == nil {
			h = e.start(t)
		}
		if slices.ContainsFunc(nodes, Alive) { // which takes it back, whatever it serves
			return Link{Why: why + "; " + rules.StrayEnd(true) + ", and then nobody runs it: " + none, Hint: h}, nil, nil
		}
		return Link{Why: why + ", and nobody takes it over: " + none, Hint: h}, nil, nil
	}
	if stray {
		return Link{Why: why + "; " + rules.StrayEnd(true)}, nil, nil
	}
	return Link{Why: why + ", so another one takes it over"}, nil, nil
}

func whenWord(w plan.When) string { return string(cmp.Or(w, plan.AllSucceeded)) }

// because repeats what went wrong with the last attempt.
func because(t *plan.Task) string {
	if t.Detail == "" {
		return ""
	}
	return fmt.Sprintf(", after attempt %d failed: %s", t.Attempt, t.Detail)
}
