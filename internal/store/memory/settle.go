package memory

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

// release settles what is due, first come first served, until the budget is used up, and reports whether more is left.
func (tx *tx) release() (more bool) {
	for tx.budget > 0 && !tx.due.empty() {
		tx.settle(tx.due.pop())
	}
	return !tx.due.empty()
}

// settle does what is to be done with a task now, if anything: it may be called of any task at any time.
func (tx *tx) settle(t *task) {
	p := t.plan
	switch {
	case t.gone, t.Status != plan.Held && t.Status != plan.Queued:
		return
	case p != nil && p.Closing != plan.Open && !t.Expanded:
		reason, detail := plan.NotStarted(p.Closing)
		tx.finish(t, plan.Cancelled, reason, detail, nil)
	case t.of != nil && (t.of.Cancel || t.of.Status == plan.Cancelled):
		tx.finish(t, plan.Cancelled, plan.ReasonCancelled, "", nil)
	case t.Status == plan.Queued, p != nil && p.State != plan.PlanRunning:
		return
	case t.Expanding:
		tx.insertItems(t)
		return
	case t.Expanded:
		if !t.complete() {
			return
		}
		stopped := t.Cancel || p != nil && p.Closing == plan.ClosedByPerson
		s, r, detail := plan.Gather(t.outcomes, t.failed, t.Items, stopped)
		var output json.RawMessage
		if t.gathered = t.bytes > plan.MaxCopiedOne; !t.gathered {
			output = t.list()
		}
		tx.finish(t, s, r, detail, output)
	case t.of != nil && !t.of.Expanded:
		return
	default:
		if !tx.decide(t) {
			return
		}
	}
	tx.budget--
}

// decide does as the task's parents say, and reports whether that changed anything.
func (tx *tx) decide(t *task) bool {
	switch plan.Decide(t.When, t.seen, t.waiting == 0) {
	case plan.Skip:
		tx.finish(t, plan.Cancelled, plan.ReasonSkipped, t.skipped(), nil)
	case plan.Run:
		if t.NotBefore.After(tx.at) {
			return false // a sweep comes back to it
		}
		if t.Foreach != nil && !t.Foreach.OnNode() {
			list, err := t.listInput()
			var items []json.RawMessage
			if err == nil {
				items, err = t.Foreach.Expand(list)
			}
			if err != nil {
				tx.finish(t, plan.Failed, plan.ReasonInput, err.Error(), nil)
				return true
			}
			tx.expand(t, items, t.Foreach.NoItems(""))
			return true
		}
		if err := t.deliver(); err != nil {
			tx.finish(t, plan.Failed, plan.ReasonInput, err.Error(), nil)
			return true
		}
		tx.become(t, plan.Queued, t.Reason, t.Detail)
	default:
		return false
	}
	return true
}

// become takes a task to another status, and takes along everything that counts or orders tasks by it.
func (tx *tx) become(t *task, s plan.Status, r plan.Reason, detail string) {
	was := t.Status
	if !was.CanBecome(s) {
		panic(fmt.Sprintf("memory: task %s: %v cannot become %v", t.ID, was, s))
	}
	if was == plan.Queued {
		t.queue.remove(t)
	}
	if was.Active() {
		t.queue.Active--
	}
	if was.Active() && !s.Active() {
		if i, ok := tx.instances[t.Instance]; ok {
			delete(i.tasks, t.ID)
		}
		t.token = plan.Token{}
	}
	tx.count(t, -1)
	t.Status, t.Reason, t.Detail = s, r, detail
	tx.count(t, 1)
	if s == plan.Queued {
		t.queue.add(t)
		tx.queued++
	}
	if s.Active() {
		t.queue.Active++
	} else if !s.Finished() {
		t.Node, t.Instance = "", plan.InstanceID{}
	}
	tx.delay(t)
	tx.touch(t)
}

func (tx *tx) count(t *task, n int) {
	if t.plan != nil {
		t.plan.Counts.Add(t.Counted(), n)
	}
}

// finish ends a task: its children and its foreach task learn of it, and its plan, if that was the last.
func (tx *tx) finish(t *task, s plan.Status, r plan.Reason, detail string, output json.RawMessage) {
	t.Output, t.Ended, t.Expanding, t.making = output, tx.at, false, nil
	tx.become(t, s, r, detail)
	outcome := t.Outcome()
	tx.tellMissing(t)
	for _, c := range t.children {
		c.waiting--
		c.seen |= outcome
		if c.Status == plan.Held && plan.Decide(c.When, c.seen, c.waiting == 0) != plan.Wait {
			tx.due.push(c)
		}
	}
	if t.of != nil {
		t.of.gather(t)
		if t.of.complete() {
			tx.due.push(t.of)
		}
	}
	if t.plan == nil {
		return
	}
	if outcome == plan.OutcomeFailed && t.plan.OnFailure == plan.Stop {
		tx.closePlan(t.plan, plan.ClosedByFailure)
	}
	tx.endPlan(t.plan)
}

// closePlan stops a plan from starting anything more: what is held or queued becomes due, to be cancelled.
func (tx *tx) closePlan(p *planRow, why plan.Closing) {
	if p.State.Ended() || p.Closing == why || p.Closing == plan.ClosedByPerson {
		return
	}
	p.Closing = why
	for _, q := range tx.queues {
		q.close(p.ID)
	}
	for _, t := range p.tasks {
		switch {
		case t.Status == plan.Held, t.Status == plan.Queued:
			tx.due.push(t)
		case t.Status.Active() && why == plan.ClosedByPerson && !t.Cancel:
			t.Cancel = true
			tx.touch(t)
		}
	}
	tx.touchPlan(p)
	tx.endPlan(p)
}

// openPlan lets a plan run, again or for the first time.
func (tx *tx) openPlan(p *planRow) {
	p.State, p.Closing, p.Ended = plan.PlanRunning, plan.Open, time.Time{}
	for _, q := range tx.queues {
		q.open(p.ID)
	}
	tx.touchPlan(p)
}

// endPlan ends a plan in which nothing is unfinished.
func (tx *tx) endPlan(p *planRow) {
	if p.State.Ended() || !p.Counts.Settled() || p.State == plan.PlanSubmitting && p.Closing == plan.Open {
		return
	}
	p.State, p.Ended = plan.Verdict(p.Closing, p.Counts.Broken() > 0, p.Counts.Cancelled > 0), tx.at
	for _, q := range tx.queues {
		delete(q.lanes, p.ID)
	}
	tx.ended, tx.told = append(tx.ended, plan.EndedPlan{ID: p.ID, State: p.State}), tx.told || p.Own
	tx.touchPlan(p)
}

// deliver gives a task the outputs of its parents, once.
func (t *task) deliver() error {
	if t.ready || len(t.parents) == 0 {
		return nil
	}
	sum, largest := t.inputBytes()
	if t.byRef = !plan.Copied(sum, largest); !t.byRef {
		params, err := plan.Deliver(t.own, t.inputs())
		if err != nil {
			return err
		}
		t.Params = params
	}
	t.ready = true
	return nil
}

// inputs returns what the task's parents have for it; an item has what its foreach task has.
func (t *task) inputs() []plan.Input {
	if t.of != nil {
		return t.of.itemInputs()
	}
	in := make([]plan.Input, len(t.parents))
	for i, p := range t.parents {
		in[i] = plan.Input{Name: p.Key(), Output: p.output()}
	}
	return in
}

// itemInputs returns what a foreach task's items have of its parents' outputs.
func (t *task) itemInputs() []plan.Input {
	in := make([]plan.Input, len(t.parents))
	for i, p := range t.parents {
		if in[i].Name = p.Key(); !t.Foreach.Takes(p.inputSize()) {
			in[i].Output = p.output()
		}
	}
	return t.Foreach.ItemInputs(in)
}

// listInput returns the output that the items of a foreach task come from, if they come from one.
func (t *task) listInput() ([]plan.Input, error) {
	for _, p := range t.parents {
		if in := p.inputSize(); in.Name == t.Foreach.From() {
			if err := plan.CheckInputs(in.Bytes); err != nil {
				return nil, err
			}
			return []plan.Input{{Name: in.Name, Output: p.output()}}, nil
		}
	}
	return nil, nil
}

// checkInputs returns an error if inputs would have to put too much together.
func (t *task) checkInputs() error {
	if t.of != nil {
		return t.of.Foreach.CheckItemInputs(t.of.inputSizes())
	}
	sum, _ := t.inputBytes()
	return plan.CheckInputs(sum)
}

func (t *task) inputSizes() []plan.InputSize {
	sizes := make([]plan.InputSize, len(t.parents))
	for i, p := range t.parents {
		sizes[i] = p.inputSize()
	}
	return sizes
}

func (t *task) inputBytes() (sum, largest int) {
	for _, p := range t.parents {
		n := p.inputSize().Bytes
		sum, largest = sum+n, max(largest, n)
	}
	return sum, largest
}

// inputSize returns what a child knows of the task before it reads the output.
func (t *task) inputSize() plan.InputSize {
	if t.gathered {
		return plan.InputSize{Name: t.Key(), Bytes: t.bytes, Gathered: true}
	}
	return plan.InputSize{Name: t.Key(), Bytes: len(t.Output)}
}

// output returns the task's output, put together if it is not kept.
func (t *task) output() json.RawMessage {
	if t.gathered {
		return t.list()
	}
	return t.Output
}
