package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/internal/refusal"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// A Retrier is a unit that makes one retry.
type Retrier interface {
	// Begin asks check of the plan of the retry, if it is one of a plan. Begin returns plan.ErrNotFound for a plan that is not there or is being deleted,
	// and a Halfway if another retry has not ended.
	Begin(ctx context.Context, check RetryCheck) error

	// Skeleton returns what rules.SelectRetry reads of the tasks of the plan, with Queue, Index, Detail, Expanded
	// and Items. Without a plan, it returns those of the named tasks that are of no plan. busy are
	// tasks that rules.CheckRetried refuses therefore.
	Skeleton(ctx context.Context, named []plan.TaskID) (tasks []plan.Task, busy map[plan.TaskID]rules.Busy, err error)

	// Queues returns which queues there are.
	Queues(ctx context.Context) (map[plan.QueueID]bool, error)

	// Items returns what the items of a foreach task go over, by index, and what the list is made of by its definition: the
	// output of ListParent, if there is one.
	Items(ctx context.Context, of *plan.Task) (items []json.RawMessage, list []plan.Input, err error)

	// Add adds items to a finished foreach task, behind those that it has. with replaces its definition, params and queue; it
	// is mostly nil. Items of a task that goes along with others go over the items of these. New items are held,
	// if nobody sees them before Take, or are as the step says. If the task does not have of.Items items any
	// more, Add returns plan.ErrConflict.
	Add(ctx context.Context, of, with *plan.Task, items []json.RawMessage, as rules.Step) error

	// Below asks check of the unfinished items and children of the selection. A driver may leave held
	// tasks to Take. It may be asked again, after Add.
	Below(ctx context.Context, s *Selection, check BelowCheck) error

	// Take opens the plan by reopen at the present, takes the tasks back by Retake, and looks at these tasks and those
	// below. It takes all of them back or, if one has changed since Skeleton, none: plan.ErrConflict or
	// plan.ErrPlanActive.
	Take(ctx context.Context, s *Selection, reopen func(p *plan.Plan, params json.RawMessage, at time.Time)) error
}

// A RetryCheck asks whether a plan may be retried. stored is the number of its stored tasks. other is
// what rules.CheckOverlap asks about; a driver need not look for it if the plan allows overlap.
type RetryCheck func(p *plan.Plan, stored int, other *plan.Plan) error

// A BelowCheck asks whether a task is in the way of a retry that takes one above it.
type BelowCheck func(t *plan.Task, decided bool) error

// A Retaker is a unit that makes a decided retry.
type Retaker[T any] interface {
	// TakenBack returns what rules.Retake asks of the task.
	TakenBack(t T) rules.TakenBack

	// Step writes the step, if the task is still as the retry has it.
	Step(ctx context.Context, t T, s rules.Step) error
}

// Retake takes these tasks of a decided retry back.
func Retake[T any](ctx context.Context, u Retaker[T], tasks []T) error {
	for _, t := range tasks {
		if err := u.Step(ctx, t, rules.Retake(u.TakenBack(t))); err != nil {
			return err
		}
	}
	return nil
}

// A Retaken is a task that a retry takes back.
type Retaken struct {
	*plan.Task            // as the skeleton has it
	With       *plan.Task // replaces its definition, params and queue; mostly nil
	KeepsRan   bool       // as rules.Retried.Ran has it
	Remakes    bool       // it drops its items, and makes new ones when its parents have finished
	Goes       bool       // it is one of these items
	Leaves     bool       // it is an item that is not in its list any more
}

// A Selection is what a retry takes, children first.
type Selection struct {
	Tasks []Retaken
	Taken map[plan.TaskID]bool
}

// A Halfway is the error of a call that finds a retry in progress. Finish ends that one.
type Halfway struct{ Finish func(context.Context) error }

func (*Halfway) Error() string { return "another retry is being made" }

// Past calls do again as long as it finds a retry in progress, which it ends.
func Past(ctx context.Context, do func() error) error {
	for {
		err := do()
		var retry *Halfway
		if !errors.As(err, &retry) {
			return err
		}
		if err := retry.Finish(ctx); err != nil {
			return err
		}
	}
}

// Retry takes the tasks back that rules.SelectRetry chooses, or rules.SelectLists or rules.SelectRelisted,
// and returns them. attempt hands do a unit.
func Retry(ctx context.Context, id plan.PlanID, ask *rules.Ask, attempt func(do func(Retrier) error) error) (taken []rules.Retried, err error) {
	if id.IsZero() && len(ask.Tasks) == 0 {
		return nil, fmt.Errorf("retry: no task is named: %w", plan.ErrNotFound)
	}
	err = Past(ctx, func() error {
		return attempt(func(u Retrier) (err error) {
			taken, err = retry(ctx, u, ask)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return taken, nil
}

func retry(ctx context.Context, u Retrier, ask *rules.Ask) ([]rules.Retried, error) {
	err := u.Begin(ctx, func(p *plan.Plan, stored int, other *plan.Plan) error {
		if err := rules.CheckRetry(p, stored); err != nil || !p.State.Ended() {
			return err
		}
		return rules.CheckOverlap(p, other)
	})
	if err != nil {
		return nil, err
	}
	tasks, busy, err := u.Skeleton(ctx, ask.Tasks)
	if err != nil {
		return nil, err
	}
	turn, err := relist(ctx, u, tasks, ask)
	if err != nil {
		return nil, err
	}
	queues, err := u.Queues(ctx)
	if err != nil {
		return nil, err
	}
	chosen, s, err := selected(ctx, u, tasks, rules.WithAdded(tasks, turn.Changes), turn, ask, busy, queues)
	if err != nil || ask.Check || len(chosen) == 0 { // lists that nothing makes: their plan does not run again for that
		return chosen, err
	}
	if slices.ContainsFunc(turn.Changes, func(c rules.Relisting) bool { return len(c.Added) > 0 }) {
		if err := add(ctx, u, tasks, turn.Changes, ask.Replace); err != nil {
			return nil, err
		}
		if tasks, busy, err = u.Skeleton(ctx, ask.Tasks); err != nil {
			return nil, err
		}
		if _, s, err = selected(ctx, u, tasks, tasks, turn, ask, busy, queues); err != nil {
			return nil, err
		}
	}
	return chosen, u.Take(ctx, s, func(p *plan.Plan, params json.RawMessage, at time.Time) { rules.Reopen(p, params, ask.Timeout, at) })
}

// selected chooses among all tasks, of which a driver has those of there.
func selected(
	ctx context.Context, u Retrier, there, all []plan.Task, turn *rules.ListTurn, ask *rules.Ask, busy map[plan.TaskID]rules.Busy, queues map[plan.QueueID]bool,
) (chosen []rules.Retried, s *Selection, err error) {
	switch seen := withoutForeach(all, ask.Replace); ask.Lists {
	case rules.ListsAgain:
		chosen, err = rules.SelectLists(seen, ask.Tasks)
	case rules.ListsFirst, rules.ListsCompared:
		chosen, err = rules.SelectRelisted(seen, turn)
	default:
		chosen, err = rules.SelectRetry(seen, ask.Tasks, ask.Downstream)
	}
	if err != nil {
		return nil, nil, err
	}
	replace := ask.Replace
	if turn.Only != nil { // the others come later
		replace = slices.DeleteFunc(slices.Clone(replace), func(t plan.Task) bool {
			return !slices.ContainsFunc(chosen, func(r rules.Retried) bool { return r.ID == t.ID })
		})
	}
	s, err = choose(all, chosen, replace, func(t *Retaken) error {
		return rules.CheckRetried(t.Task, busy[t.ID], t.With, queues)
	})
	if err != nil {
		return nil, nil, err
	}
	known := *s
	if len(all) > len(there) {
		is := make(map[plan.TaskID]bool, len(there))
		for i := range there {
			is[there[i].ID] = true
		}
		known.Tasks = slices.DeleteFunc(slices.Clone(s.Tasks), func(t Retaken) bool { return !is[t.ID] })
	}
	return chosen, s, u.Below(ctx, &known, func(t *plan.Task, decided bool) error {
		if s.Taken[t.ID] {
			return nil
		}
		return rules.CheckBelow(t, decided)
	})
}

// relist compares the lists that the retry asks about with the items that there are.
func relist(ctx context.Context, u Retrier, tasks []plan.Task, ask *rules.Ask) (*rules.ListTurn, error) {
	if !ask.Lists.Compares() {
		return &rules.ListTurn{}, nil
	}
	found, err := rules.Relisted(tasks, ask.Tasks)
	if err != nil {
		return nil, err
	}
	byID, gone := rules.ByID(tasks), map[plan.TaskID][]bool{}
	for i := range tasks {
		if t := &tasks[i]; !t.Of.IsZero() {
			is := gone[t.Of]
			for len(is) <= t.Index {
				is = append(is, false)
			}
			is[t.Index] = rules.Gone(t.Status, t.Reason)
			gone[t.Of] = is
		}
	}
	changes := make([]rules.Relisting, 0, len(found))
	for _, t := range found {
		if len(t.Foreach.Each) > 0 {
			k := slices.IndexFunc(changes, func(c rules.Relisting) bool {
				return slices.Contains(t.Needs, c.Of) && rules.GoesAlong(t.Foreach, byID[c.Of].Name)
			})
			if c := changes[k]; c.Had == t.Items || c.Err != nil {
				c.Of, c.Head, c.Anew = t.ID, cmp.Or(c.Head, c.Of), replacement(t, ask.Replace) != nil
				changes = append(changes, c)
				continue
			}
			return nil, refusal.New(plan.ErrConflict, "task %q has not the items of %s; run it again with --downstream", t.Key(), byID[changes[k].Of].Key())
		}
		now := *t
		if with := replacement(t, ask.Replace); with != nil {
			now.Definition = with.Definition
		}
		change, err := relistOne(ctx, u, &now, rules.ListParent(t, byID), gone, ask)
		if err != nil {
			change.Err = fmt.Errorf("task %q keeps its items: %w", t.Key(), err)
		}
		change.Of, change.Had, change.Anew = t.ID, t.Items, replacement(t, ask.Replace) != nil
		changes = append(changes, change)
	}
	return rules.TurnLists(tasks, changes, ask.Lists, len(ask.Tasks) > 0)
}

// relistOne compares one list. gone has, by foreach task, which items are not in their list any more.
func relistOne(ctx context.Context, u Retrier, t *plan.Task, parent *plan.Task, gone map[plan.TaskID][]bool, ask *rules.Ask) (change rules.Relisting, err error) {
	if t.Foreach == nil || len(t.Foreach.Each) > 0 || t.Foreach.Group != "" {
		return change, refusal.New(plan.ErrConflict, "its new definition has no list that can be compared with them")
	}
	list, found := ask.Found[t.ID]
	switch {
	case t.Foreach.OnNode() && !found:
		return change, refusal.New(plan.ErrConflict, "they are made of files, and the request has no list of what is in these now")
	case parent != nil && parent.Status != plan.Succeeded:
		return change, refusal.New(plan.ErrConflict, "their list comes from %s, which is %v", parent.Key(), parent.Status)
	}
	had, inputs, err := u.Items(ctx, t)
	if err != nil {
		return change, err
	}
	if len(had) != t.Items {
		return change, refusal.New(plan.ErrConflict, "of its %d items %d are in the store", t.Items, len(had))
	}
	var why error
	if found {
		why = rules.CheckKeys(t.Foreach, list)
	} else {
		var left []bool // the items of the parent
		if parent != nil {
			left = gone[parent.ID]
		}
		list, why = rules.ListNow(t.Foreach, inputs, left)
	}
	if why == nil {
		change, why = rules.Relist(t.Foreach, had, slices.Grow(gone[t.ID], len(had))[:len(had)], list)
	}
	if why != nil {
		return change, refusal.New(plan.ErrConflict, "%v", why)
	}
	return change, nil
}

// replacement returns what replaces a task, or nil.
func replacement(t *plan.Task, replace []plan.Task) *plan.Task {
	if k := slices.IndexFunc(replace, func(r plan.Task) bool { return r.ID == t.ID }); k >= 0 {
		return &replace[k]
	}
	return nil
}

// add adds the items that come.
func add(ctx context.Context, u Retrier, tasks []plan.Task, changes []rules.Relisting, replace []plan.Task) error {
	for _, c := range changes {
		k := slices.IndexFunc(tasks, func(t plan.Task) bool { return t.ID == c.Of })
		if len(c.Added) == 0 {
			continue
		}
		if err := u.Add(ctx, &tasks[k], replacement(&tasks[k], replace), c.Added, rules.JoinsList()); err != nil {
			return err
		}
	}
	return nil
}

// withoutForeach returns the tasks as SelectRetry is to see them: a task that the retry leaves without a foreach
// loses its items, and so do the tasks that go along with it.
func withoutForeach(tasks, replace []plan.Task) []plan.Task {
	loses := map[plan.TaskID]bool{}
	for i := range replace {
		loses[replace[i].ID] = replace[i].Foreach == nil
	}
	out := slices.Clone(tasks)
	for i := range out {
		out[i].Expanded = out[i].Expanded && !loses[out[i].ID]
	}
	return out
}

// choose gathers what is known of the chosen tasks, and finds the foreach tasks that make their items again, and these items.
func choose(tasks []plan.Task, chosen []rules.Retried, replace []plan.Task, check func(*Retaken) error) (*Selection, error) {
	there, with := rules.ByID(tasks), rules.ByID(replace)
	s := &Selection{make([]Retaken, len(chosen)), make(map[plan.TaskID]bool, len(chosen))}
	for i, c := range chosen {
		s.Tasks[i], s.Taken[c.ID] = Retaken{Task: there[c.ID], With: with[c.ID], KeepsRan: c.Ran, Leaves: c.Gone}, true
		if err := check(&s.Tasks[i]); err != nil {
			return nil, err
		}
	}
	for i := range replace {
		if t := &replace[i]; !s.Taken[t.ID] {
			return nil, refusal.New(plan.ErrConflict, "task %q has a new definition, and does not run again; read the plan again", t.Key())
		}
	}
	remade := map[plan.TaskID]bool{}
	for i := range s.Tasks {
		t := &s.Tasks[i]
		waits := slices.ContainsFunc(t.Needs, func(id plan.TaskID) bool {
			p := there[id]
			return !(p != nil && rules.GoesAlong(t.Foreach, p.Name)) && (s.Taken[id] || p != nil && !p.Status.Finished())
		})
		t.Remakes = (t.Foreach != nil || t.Items > 0) && rules.Remakes(&chosen[i], t.Task, t.With == nil || t.With.Foreach != nil, waits)
		remade[t.ID] = t.Remakes
	}
	for i := range s.Tasks {
		s.Tasks[i].Goes = remade[s.Tasks[i].Of]
	}
	return s, nil
}
