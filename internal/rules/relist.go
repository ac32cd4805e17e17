package rules

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/internal/refusal"
	"github.com/seed-1177d267/sluice/internal/states"
	"github.com/seed-1177d267/sluice/plan"
)

// A ListAsk says what a retry does with the lists of foreach tasks whose items are made. The zero value leaves them.
type ListAsk string

// The lists of a retry.
const (
	ListsAgain    ListAsk = "again"   // run the tasks again whose outputs are the lists, and nothing else
	ListsCompared ListAsk = "compare" // compare the lists, as they are now, with the items
)

// Gone reports whether an item is not in its list any more. It counts as one that succeeded: what is below
// its foreach task does not wait for it, and no retry takes it by itself.
func Gone(s plan.Status, r plan.Reason) bool { return s == plan.Cancelled && r == plan.ReasonGone }

// ByGone is the detail of an item that Gone is about, ByAdded that of an item that was added and has not been taken yet.
const (
	ByGone  = "it is not in the list any more"
	ByAdded = "it was added to the list, and has not started"
)

// LeavesList ends a held item that is not in its list any more.
func LeavesList(was plan.Status) Step {
	return to(was, Step{Status: plan.Cancelled, Reason: plan.ReasonGone, Detail: ByGone})
}

// JoinsList is what an item is that was added to a list and that no retry has taken.
func JoinsList() Step {
	return to(FirstStatus, Step{Status: plan.Cancelled, Reason: plan.ReasonSkipped, Detail: ByAdded})
}

// A Relisting is how the list of a foreach task differs from the items that the task has. Items are known by
// their keys. No item changes its index.
type Relisting struct {
	Of    plan.TaskID
	Had   int               // how many items there are, those included that are gone
	Added []json.RawMessage // come behind them
	Gone  []int             // indexes of those that leave
	Back  []int             // of those that had left
	Count RelistCounts
	Anew  bool // the task has a new definition, and so gathers its items again
}

// RelistCounts counts the items of a Relisting.
type RelistCounts struct {
	Added   int `json:"added" doc:"Items that come, those included that had left."`
	Gone    int `json:"gone" doc:"Items that are not in the list any more, and are skipped."`
	Kept    int `json:"kept" doc:"Items that are in the list as before."`
	Changed int `json:"changed" doc:"Those of the kept items that have another value in the list. They keep the value that they had."`
}

// String is what people read.
func (c RelistCounts) String() string {
	text := fmt.Sprintf("+%d, −%d, %d kept", c.Added, c.Gone, c.Kept)
	switch {
	case c.Changed == 1:
		text += "; 1 of them has another value in the list, and keeps its own"
	case c.Changed > 1:
		text += fmt.Sprintf("; %d of them have other values in the list, and keep their own", c.Changed)
	}
	return text
}

// Differs reports whether items come or go.
func (r *Relisting) Differs() bool { return len(r.Added)+len(r.Gone)+len(r.Back) > 0 }

// Relist compares a list with the items of a foreach task, by index. gone says which of these are not in the
// list as it was before. If several items have the same value and no key, the first of them stands for the first in the list.
func Relist(f *plan.Foreach, had []json.RawMessage, gone []bool, list []json.RawMessage) (Relisting, error) {
	r := Relisting{Had: len(had)}
	there, seen := make(map[string]int, len(had)), map[string]int{}
	name := func(item json.RawMessage) (string, error) {
		key, err := itemName(f, item)
		seen[key]++
		return fmt.Sprintf("%d %s", seen[key], key), err
	}
	for i, item := range had {
		key, err := name(item)
		if err != nil {
			return r, fmt.Errorf("item %d: %w", i, err)
		}
		there[key] = i
	}
	clear(seen)
	for i, item := range list {
		key, err := name(item)
		if err != nil {
			return r, fmt.Errorf("item %d of the list: %w", i, err)
		}
		at, is := there[key]
		switch delete(there, key); {
		case !is:
			r.Added = append(r.Added, item)
			continue
		case gone[at]:
			r.Back = append(r.Back, at)
			continue
		case !jsontext.Same(had[at], item):
			r.Count.Changed++
		}
		r.Count.Kept++
	}
	for _, at := range there {
		if !gone[at] {
			r.Gone = append(r.Gone, at)
		}
	}
	slices.Sort(r.Gone)
	slices.Sort(r.Back)
	r.Count.Added, r.Count.Gone = len(r.Added)+len(r.Back), len(r.Gone)
	return r, CheckItems(len(had) + len(r.Added))
}

// itemName returns what tells an item from others: its key or, without one, its value.
func itemName(f *plan.Foreach, item json.RawMessage) (string, error) {
	if f.Key != "" {
		return KeyOf(f, item)
	}
	value, err := jsontext.Decode(item)
	if err != nil {
		return "", err
	}
	same, err := jsontext.Marshal(value)
	return string(same), err
}

// Relisted returns the foreach tasks whose lists a retry is to compare with their items: all that have some,
// or those that a person named. Heads come before the tasks that go along with them (Foreach.Each), which
// have no list of their own. It reads what SelectRetry reads.
func Relisted(tasks []plan.Task, chosen []plan.TaskID) (found []*plan.Task, err error) {
	byID := make(map[plan.TaskID]*plan.Task, len(tasks))
	for i := range tasks {
		byID[tasks[i].ID] = &tasks[i]
	}
	in := map[plan.TaskID]bool{}
	for _, id := range chosen {
		t := byID[id]
		switch {
		case t == nil:
			return nil, fmt.Errorf("task %s is not in the plan: %w", id, plan.ErrNotFound)
		case t.Foreach == nil:
			return nil, refusal.New(plan.ErrConflict, "task %q has no list of items; name the foreach task, or leave the name out", t.Key())
		case len(t.Foreach.Each) > 0:
			return nil, refusal.New(plan.ErrConflict, "task %q has the items of %s: name that", t.Key(), strings.Join(t.Foreach.Each, ", "))
		}
		in[id] = true
	}
	for i := range tasks {
		t := &tasks[i]
		if t.Foreach == nil || len(t.Foreach.Each) > 0 || !t.HasItems() || len(chosen) > 0 && !in[t.ID] {
			continue
		}
		switch {
		case !t.Status.Finished():
			return nil, refusal.New(plan.ErrConflict, "task %q is %s: its list can be compared once it has finished", t.Key(), states.OfTask(t))
		case t.Foreach.Group != "":
			return nil, refusal.New(plan.ErrConflict, "task %q makes its items of groups of inputs, which are not compared with them; "+
				"run it again with --downstream, which makes all of them anew, or name the tasks that are to be compared", t.Key())
		}
		found, in[t.ID] = append(found, t), true
	}
	if len(found) == 0 {
		return nil, refusal.New(plan.ErrConflict, "no task here has a list and items: nothing is to be compared")
	}
	for more := true; more; { // a circle was refused with the plan
		more = false
		for i := range tasks {
			t := &tasks[i]
			if t.Foreach == nil || in[t.ID] || !t.HasItems() || !slices.ContainsFunc(t.Needs, func(id plan.TaskID) bool {
				return in[id] && GoesAlong(t.Foreach, byID[id].Name)
			}) || slices.ContainsFunc(t.Needs, func(id plan.TaskID) bool {
				p := byID[id]
				return p != nil && !in[id] && GoesAlong(t.Foreach, p.Name) && p.HasItems()
			}) {
				continue
			}
			if !t.Status.Finished() {
				return nil, refusal.New(plan.ErrConflict, "task %q is %s: its items can be compared once it has finished", t.Key(), states.OfTask(t))
			}
			found, in[t.ID], more = append(found, t), true, true
		}
	}
	return found, nil
}

// ListParent returns the parent whose output is the list of a foreach task, or has it in it; nil: the list is in its definition.
func ListParent(t *plan.Task, byID map[plan.TaskID]*plan.Task) *plan.Task {
	from := ListFrom(t.Foreach)
	for _, id := range t.Needs {
		if p := byID[id]; p != nil && from != "" && p.Name == from {
			return p
		}
	}
	return nil
}

// SelectLists is SelectRetry for ListsAgain: it chooses the tasks whose outputs are lists of Relisted, with their items. If
// there are none it returns none, because all lists are known. Tasks of finally stay as they ended: the retry that
// compares asks them again.
func SelectLists(tasks []plan.Task, chosen []plan.TaskID) ([]Retried, error) {
	found, err := Relisted(tasks, chosen)
	if err != nil {
		return nil, err
	}
	byID := make(map[plan.TaskID]*plan.Task, len(tasks))
	for i := range tasks {
		byID[tasks[i].ID] = &tasks[i]
	}
	r := newSelection(tasks, false)
	for _, t := range found {
		p := ListParent(t, byID)
		if p == nil {
			continue
		}
		i, _ := r.Index(p.ID)
		if !p.Status.Finished() {
			return nil, refusal.New(plan.ErrConflict, "task %q is %s, and prints the list of %q: wait for it", p.Key(), states.OfTask(p), t.Key())
		}
		r.take(i)
		for _, k := range r.items[p.ID] {
			if !Gone(tasks[k].Status, tasks[k].Reason) {
				r.take(int(k))
			}
		}
	}
	return r.childrenFirst(), nil
}

// SelectRelisted is SelectRetry for ListsCompared. It chooses what that chooses by itself: of the whole plan,
// or of the tasks whose lists were compared if a person named some. It also chooses the items that come or
// go, and, if any do, every task below. tasks have the items that come.
func SelectRelisted(tasks []plan.Task, changes []Relisting, named bool) ([]Retried, error) {
	r := newSelection(tasks, false)
	if !named {
		r.takeFailed()
	}
	counts := map[plan.TaskID]*RelistCounts{}
	for n := range changes {
		c := &changes[n]
		counts[c.Of] = &c.Count
		i, ok := r.Index(c.Of)
		if !ok {
			return nil, fmt.Errorf("task %s is not in the plan: %w", c.Of, plan.ErrNotFound)
		}
		differs := c.Differs()
		for _, k := range r.items[c.Of] {
			t := &tasks[k]
			_, leaves := slices.BinarySearch(c.Gone, t.Index)
			_, back := slices.BinarySearch(c.Back, t.Index)
			added := t.Index >= c.Had || t.Reason == plan.ReasonSkipped && t.Detail == ByAdded // one that an earlier call added, which died
			differs = differs || added
			switch {
			case leaves:
				r.gone[int(k)] = true
				r.take(int(k))
			case back, added:
				r.take(int(k))
			case named && r.failed(int(k)):
				r.take(int(k))
			}
		}
		if differs || c.Anew {
			r.byItem[i] = !r.taken[i]
			r.take(i)
		}
		if differs {
			r.ask(i)
		}
	}
	if err := r.spread(); err != nil {
		return nil, err
	}
	if len(r.queue) == 0 {
		return nil, refusal.New(plan.ErrConflict, "nothing to retry: the lists have the items that there are, and nothing failed")
	}
	out := r.childrenFirst()
	for i := range out {
		out[i].Items = counts[out[i].ID]
	}
	return out, nil
}

// WithAdded returns the tasks with the items that come, held and in the order of the changes.
func WithAdded(tasks []plan.Task, changes []Relisting) []plan.Task {
	byID := make(map[plan.TaskID]*plan.Task, len(tasks))
	for i := range tasks {
		byID[tasks[i].ID] = &tasks[i]
	}
	out := slices.Clip(tasks)
	for _, c := range changes {
		of := byID[c.Of]
		for i := range c.Added {
			item := plan.Task{
				ID: ItemID(of.ID, c.Had+i), Plan: of.Plan, Name: ItemName(of.Name, c.Had+i), Queue: of.Queue, Of: of.ID, Index: c.Had + i, Status: FirstStatus,
			}
			if len(of.Foreach.Each) > 0 {
				item.When = of.When
				for _, id := range of.Needs {
					if p := byID[id]; p != nil && GoesAlong(of.Foreach, p.Name) && p.HasItems() {
						id = ItemID(id, item.Index)
					}
					item.Needs = append(item.Needs, id)
				}
			}
			out = append(out, item)
		}
	}
	return out
}
