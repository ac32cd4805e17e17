package model

import (
	"context"
	"encoding/json"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/plan"
)

// work does what is due, as far as the budget allows.
func (tx *tx) work() error {
	_, err := engine.Work(tx.ctx, tx)
	return err
}

// settle does what is to be done with a task now, if anything is. It may be called of any task at
// any time.
func (tx *tx) settle(t *task) error {
	if t.gone || !rules.Pending(t.Status) {
		t.dropped = false // it had started
		return nil
	}
	_, err := engine.Settle(tx.ctx, tx, []*task{t})
	return err
}

func (tx *tx) Budget() *int { return &tx.budget }

func (tx *tx) Release(context.Context) error {
	for tx.budget > 0 && tx.left() {
		next := &tx.due
		if len(*next) == 0 {
			next = &tx.ending
		}
		t := (*next)[0]
		*next = (*next)[1:]
		if err := tx.settle(t); err != nil {
			return err
		}
	}
	return nil
}

// left reports whether settle has to look at something.
func (tx *tx) left() bool { return len(tx.due)+len(tx.ending) > 0 }

// Remembered implements engine.Worker. All work lies in one queue, whoever left it.
func (tx *tx) Remembered(context.Context) (children, jobs bool, err error) { return false, false, nil }

func (tx *tx) ReleaseKept(context.Context) (more bool, err error) { return false, nil }

func (tx *tx) Job(context.Context) (was bool, err error) { return false, nil }

func (tx *tx) Portion() int { return protocol.DefaultBudget }

func (tx *tx) Yield() bool { return false }

func (tx *tx) Keep(context.Context) (more bool, err error) {
	return tx.unfinished || tx.left(), nil
}

func (tx *tx) Waiter(t *task) *rules.Waiter { return t.waiter(tx.at) }

// waiter is what the rules ask of a held or queued task.
func (t *task) waiter(at time.Time) *rules.Waiter {
	w := &rules.Waiter{
		Status: t.Status, When: t.When, Seen: t.seen, All: t.waiting == 0, Early: t.NotBefore.After(at),
		List: t.Foreach != nil && !t.Foreach.OnNode(), Making: t.Expanding, Made: t.Expanded,
		Items:  t.itemsState(),
		Cancel: t.Cancel, Ran: t.Ran, Allow: t.ContinueOnError && t.MaxFailures == "",
	}
	if t.goesAlong() {
		w.Seen, w.All = 0, true
		for _, p := range t.parents {
			o, counts := rules.Outcome(0), true
			if p.Status.Finished() {
				o = rules.OutcomeOfTask(&p.Task)
			}
			if rules.GoesAlong(t.Foreach, p.Name) {
				counts = w.Along.See(p.itemsIn(), o)
			}
			if counts {
				w.Seen, w.All = w.Seen|o, w.All && o != 0
			}
		}
	}
	if t.of != nil {
		w.Item, w.Stopped, w.Alone = true, rules.StopsItems(t.of.Status, t.of.Cancel), !t.of.Expanded
		w.Of, w.OfWhy = t.of.Status, t.of.Reason
		w.Over, w.Leaves = t.dropped, t.leaves
	}
	if t.plan != nil {
		w.InPlan, w.State, w.Closing = true, t.plan.State, t.plan.Closing
		w.Finally, w.Ending = t.Finally, t.plan.Ending
	}
	return w
}

// goesAlong reports whether the task has an item for each item of other tasks.
func (t *task) goesAlong() bool { return t.Foreach != nil && len(t.Foreach.Each) > 0 }

// itemsIn returns how many items a task has, once all are in.
func (t *task) itemsIn() int {
	if !t.Expanded {
		return 0
	}
	return len(t.items)
}

func (tx *tx) List(_ context.Context, t *task) (items []json.RawMessage, none string, why, err error) {
	list, why := t.listInput(t.Foreach)
	if why == nil {
		items, why = rules.ExpandItems(t.Foreach, list)
	}
	return items, rules.NoItemsDetail(t.Foreach, ""), why, nil
}

func (tx *tx) Gathered(_ context.Context, t *task) (json.RawMessage, error) {
	if t.gathered = t.bytes > plan.MaxCopiedOne; t.gathered {
		return nil, nil
	}
	return t.list(), nil
}

func (tx *tx) Deliver(_ context.Context, t *task) (why, err error) { return t.deliver(), nil }

func (tx *tx) Step(_ context.Context, t *task, s rules.Step) error {
	tx.budget--
	return tx.apply(t, s)
}

func (tx *tx) Wait(_ context.Context, t *task, next rules.Next) error {
	switch next {
	case rules.Delay:
		tx.delay(t)
	case rules.Make:
		return tx.insertItems(t)
	}
	return nil // a plan that becomes ready looks at all of its tasks
}

func (tx *tx) Written(context.Context) error { return nil }

// apply takes a step: a task goes to another status, with everything that counts or orders tasks by it.
func (tx *tx) apply(t *task, s rules.Step) error {
	was := t.Status
	if rules.Claimable(was) {
		t.queue.remove(t)
	}
	rules.CountInQueue(&t.queue.Queue, was, -1)
	if was.Active() && !s.Status.Active() {
		if i, ok := tx.instances[t.Instance]; ok {
			delete(i.tasks, t.ID)
		}
		t.token = protocol.Token{}
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
	if s.Begins(was) {
		t.Started = tx.at
	}
	if s.Noted {
		t.log = append(t.log, rules.RetriedEntry(tx.at))
	}
	if s.Reset {
		tx.reset(t, s.With)
	}
	t.Ran = (t.Ran || s.Ran) && rules.ShowsRan(s.Status)
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
	rules.CountInQueue(&t.queue.Queue, s.Status, 1)
	if rules.Claimable(s.Status) {
		t.queue.add(t)
		tx.queued++
	}
	if s.LosesNode() {
		t.Node, t.Instance = "", plan.InstanceID{}
	}
	tx.delay(t)
	tx.touch(t)
	if len(s.Items) > 0 {
		tx.expand(t, s.Items)
	}
	if s.Finishes() {
		return tx.finished(t)
	}
	return nil
}

func (tx *tx) count(t *task, n int) {
	if t.plan != nil {
		rules.Count(&t.plan.Counts, rules.CountedOf(&t.Task), n)
	}
}

// finished tells the children and the foreach task of a task that it has ended, and its plan, if that was the last.
func (tx *tx) finished(t *task) error {
	outcome := rules.OutcomeOfTask(&t.Task)
	for _, c := range t.children {
		c.waiting--
		c.seen |= outcome
		if rules.Pending(c.Status) && (c.goesAlong() || rules.Decide(c.When, c.seen, c.waiting == 0) != rules.ToWait) {
			tx.due = append(tx.due, c)
		}
	}
	if t.of != nil {
		if t.of.gather(t); t.of.crosses(outcome) {
			for _, item := range t.of.items {
				if item.dropped = !item.Status.Finished(); item.dropped { // it may wait again at the end of the turn
					tx.due = append(tx.due, item)
				}
			}
		}
		if t.of.Expanded && t.of.done == t.of.Items { // only its end is left to do
			tx.ending = append(tx.ending, t.of)
		}
	}
	if t.plan == nil {
		return nil
	}
	if err := engine.TaskEnded(tx.ctx, tx, t.plan, rules.OutcomeOf(t.Status, t.Reason, t.ContinueOnError), t.Reason); err != nil {
		return err
	}
	return engine.EndPlan(tx.ctx, tx, t.plan)
}

func (tx *tx) PlanView(p *planRow) engine.PlanView {
	return engine.PlanView{State: p.State, Closing: p.Closing, OnFailure: p.OnFailure, Finally: p.Finally, Ending: p.Ending}
}

// ClosePlan implements engine.Closer. Tasks that are held or queued become due, to be cancelled.
func (tx *tx) ClosePlan(_ context.Context, p *planRow, closing plan.Closing) (closed bool, err error) {
	p.Closing = closing
	for _, t := range p.tasks {
		switch {
		case rules.Pending(t.Status):
			tx.due = append(tx.due, t)
		case t.Status.Active() && closing.Stops():
			tx.mark(t)
		}
	}
	delete(tx.submitting, p.ID)
	tx.touchPlan(p)
	return true, engine.EndPlan(tx.ctx, tx, p) // it may have no tasks
}

// openPlan lets a plan run, again or for the first time.
func (tx *tx) openPlan(p *planRow) {
	p.State, p.Closing, p.Ended = plan.PlanRunning, plan.Open, time.Time{}
	tx.touchPlan(p)
}

func (tx *tx) Finished(_ context.Context, p *planRow) (all, broken, cancelled bool, err error) {
	left := p.Counts
	if v := tx.PlanView(p); v.Holds() && left.Unfinished() == left.Held {
		for _, t := range p.tasks {
			if rules.HeldFinally(&t.Task) || t.Finally && t.Status.Finished() {
				rules.Count(&left, rules.CountedOf(&t.Task), -1)
			}
		}
	}
	return left.Settled(), left.Broken() > 0, left.Cancelled > 0, nil
}

func (tx *tx) BeginFinally(ctx context.Context, p *planRow, ending plan.Lifecycle) error {
	p.Ending, p.Stopped = ending, p.Closing
	tx.openPlan(p)
	for _, t := range p.tasks {
		if t.Finally {
			tx.due = append(tx.due, t)
		}
	}
	return engine.EndPlan(ctx, tx, p) // its submission may have left them out
}

func (tx *tx) EndPlan(_ context.Context, p *planRow, state plan.Lifecycle) error {
	p.State, p.Ended = state, tx.at
	tx.ended, tx.told = append(tx.ended, protocol.EndedPlan{ID: p.ID, State: p.State}), tx.told || p.Own
	tx.touchPlan(p)
	return nil
}

// deliver gives a task the outputs of its parents, once.
func (t *task) deliver() error {
	if t.ready || len(t.parents) == 0 {
		return nil
	}
	sum, largest := t.inputBytes()
	if t.byRef = !rules.Copied(sum, largest); !t.byRef {
		params, err := rules.Deliver(t.own, t.inputs())
		if err != nil {
			return err
		}
		t.Params = params
	}
	t.ready = true
	return nil
}

// inputs returns what the task's parents have for it; an item without any has what its foreach task has.
func (t *task) inputs() []plan.Input {
	if t.of != nil && len(t.parents) == 0 {
		return t.of.itemInputs()
	}
	in := make([]plan.Input, len(t.parents))
	for i, p := range t.parents {
		in[i] = plan.Input{Name: rules.InputName(p.Key(), p.of != nil), Output: p.output()}
	}
	return in
}

// itemInputs returns what a foreach task's items have of its parents' outputs.
func (t *task) itemInputs() []plan.Input {
	in := make([]plan.Input, len(t.parents))
	for i, p := range t.parents {
		if in[i].Name = p.Key(); !rules.TakesAll(t.Foreach, p.inputSize()) {
			in[i].Output = p.output()
		}
	}
	return rules.ItemInputs(t.Foreach, in)
}

// listInput returns the output that the items of a foreach task come from, if they come from one.
func (t *task) listInput(f *plan.Foreach) ([]plan.Input, error) {
	for _, p := range t.parents {
		if in := p.inputSize(); in.Name == rules.ListFrom(f) {
			if err := rules.CheckInputs(in.Bytes); err != nil {
				return nil, err
			}
			return []plan.Input{{Name: in.Name, Output: p.output()}}, nil
		}
	}
	return nil, nil
}

// checkInputs returns an error if inputs would have to put too much together.
func (t *task) checkInputs() error {
	if t.of != nil && len(t.parents) == 0 {
		return rules.CheckItemInputs(t.of.Foreach, t.of.inputSizes())
	}
	sum, _ := t.inputBytes()
	return rules.CheckInputs(sum)
}

func (t *task) inputSizes() []rules.InputSize {
	sizes := make([]rules.InputSize, len(t.parents))
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
func (t *task) inputSize() rules.InputSize {
	if t.gathered && !t.gone {
		return rules.InputSize{Name: t.Key(), Bytes: t.bytes, Gathered: true}
	}
	return rules.InputSize{Name: t.Key(), Bytes: len(t.output())}
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
