package memory

import (
	"encoding/json"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
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
	if t.gone || t.Status != plan.Held && t.Status != plan.Queued {
		return
	}
	switch next, step := rules.Settle(t.waiter(tx.at)); next {
	case rules.Leave, rules.Ready:
		return
	case rules.Delay:
		tx.delay(t)
		return
	case rules.Make:
		tx.insertItems(t)
		return
	case rules.Gather:
		if t.gathered = t.bytes > plan.MaxCopiedOne; !t.gathered {
			step.Output = t.list()
		}
		tx.apply(t, step)
	case rules.End:
		tx.apply(t, step)
	case rules.Expand:
		tx.expandList(t)
	case rules.Queue:
		if err := t.deliver(); err != nil {
			step = rules.InputFailed(t.Status, err)
		}
		tx.apply(t, step)
	}
	tx.budget--
}

// waiter is what the rules ask of a held or queued task.
func (t *task) waiter(at time.Time) *rules.Waiter {
	w := &rules.Waiter{
		Status: t.Status, When: t.When, Seen: t.seen, All: t.waiting == 0, Early: t.NotBefore.After(at), Absent: t.skipped(),
		List: t.Foreach != nil && !t.Foreach.OnNode(), Making: t.Expanding, Made: t.Expanded,
		Items:  rules.Items{Count: t.Items, Left: t.Items - t.done, Failed: t.failed, Seen: t.outcomes},
		Cancel: t.Cancel,
	}
	if t.of != nil {
		w.Item, w.Stopped, w.Alone = true, t.of.Cancel || t.of.Status == plan.Cancelled, !t.of.Expanded
	}
	if t.plan != nil {
		w.InPlan, w.State, w.Closing = true, t.plan.State, t.plan.Closing
	}
	return w
}

// expandList begins to make the items of a foreach task that come from its definition or from a parent.
func (tx *tx) expandList(t *task) {
	list, err := t.listInput()
	var items []json.RawMessage
	if err == nil {
		items, err = t.Foreach.Expand(list)
	}
	if ends, step := rules.Listed(t.Status, items, err, t.Foreach.NoItems("")); ends {
		tx.apply(t, step)
	} else {
		tx.expand(t, items)
	}
}

// apply takes a step: a task goes to another status, with everything that counts or orders tasks by it.
func (tx *tx) apply(t *task, s rules.Step) {
	was := t.Status
	if was == plan.Queued {
		t.queue.remove(t)
	}
	if was.Active() {
		t.queue.Active--
	}
	if was.Active() && !s.Status.Active() {
		if i, ok := tx.instances[t.Instance]; ok {
			delete(i.tasks, t.ID)
		}
		t.token = plan.Token{}
	}
	tx.count(t, -1)
	t.Status = s.Status
	t.Attempt, t.Rescues = t.Attempt+s.Attempts, t.Rescues+s.Rescues
	if !s.Keep {
		t.Reason, t.Detail = s.Reason, s.Detail
	}
	if s.Attempted {
		t.Exit = s.Exit
	}
	if s.Empty {
		t.Expanded = true
	}
	if s.Finishes() {
		if t.Expanding {
			t.Items = len(t.items) // the others are not made
		}
		t.Output, t.Ended, t.Cancel, t.Expanding, t.making = s.Output, tx.at, false, false, nil
	}
	if t.NotBefore = (time.Time{}); s.Delay > 0 {
		t.NotBefore = tx.at.Add(s.Delay)
	}
	tx.count(t, 1)
	switch {
	case s.Status == plan.Queued:
		t.queue.add(t)
		tx.queued++
	case s.Status.Active():
		t.queue.Active++
	}
	if !s.Status.Active() && !s.Finishes() || s.Status == plan.Cancelled {
		t.Node, t.Instance = "", plan.InstanceID{}
	}
	tx.delay(t)
	tx.touch(t)
	if s.Finishes() {
		tx.finished(t)
	}
	if len(s.Items) > 0 {
		tx.expand(t, s.Items)
	}
}

func (tx *tx) count(t *task, n int) {
	if t.plan != nil {
		t.plan.Counts.Add(t.Counted(), n)
	}
}

// finished tells the children and the foreach task of a task that it has ended, and its plan, if that was the last.
func (tx *tx) finished(t *task) {
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
	if rules.StopsPlan(outcome, t.plan.OnFailure) {
		tx.closePlan(t.plan, plan.ClosedByFailure)
	}
	tx.endPlan(t.plan)
}

// closePlan stops a plan from starting anything more: what is held or queued becomes due, to be cancelled.
func (tx *tx) closePlan(p *planRow, why plan.Closing) {
	closing, changed := rules.Close(p.State, p.Closing, why)
	if !changed {
		return
	}
	p.Closing = closing
	for _, q := range tx.queues {
		q.close(p.ID)
	}
	for _, t := range p.tasks {
		switch {
		case t.Status == plan.Held, t.Status == plan.Queued:
			tx.due.push(t)
		case t.Status.Active() && why == plan.ClosedByPerson:
			tx.mark(t)
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
	if !p.Counts.Settled() || !rules.MayEnd(p.State, p.Closing, false) {
		return
	}
	p.State, p.Ended = rules.Verdict(p.Closing, p.Counts.Broken() > 0, p.Counts.Cancelled > 0), tx.at
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
	if t.gathered && !t.gone {
		return plan.InputSize{Name: t.Key(), Bytes: t.bytes, Gathered: true}
	}
	return plan.InputSize{Name: t.Key(), Bytes: len(t.output())}
}

// output returns the task's output, put together if it is not kept. A deleted task has none.
func (t *task) output() json.RawMessage {
	switch {
	case t.gone:
		return nil
	case t.gathered:
		return t.list()
	}
	return t.Output
}
