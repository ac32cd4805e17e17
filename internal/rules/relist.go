package rules

import (
	"encoding/json"
	"fmt"
	"maps"
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
	ListsFirst    ListAsk = "first"   // compare the lists that others follow from, and run what makes those, and nothing else
	ListsCompared ListAsk = "compare" // compare the lists, as they are now, with the items
)

// Compares reports whether the retry compares lists with items.
func (l ListAsk) Compares() bool { return l == ListsFirst || l == ListsCompared }

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
	Anew  bool        // the task has a new definition, and so gathers its items again
	Head  plan.TaskID // of a task with Foreach.Each: the foreach task whose list it goes over
	Err   error       // the list cannot be compared as it is now
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

// ListNow returns the items of the list of a foreach task, as its inputs are now, without the outputs of items
// that are not in the list of their own foreach task any more. gone says which of the parent's items these are.
func ListNow(f *plan.Foreach, inputs []plan.Input, gone []bool) ([]json.RawMessage, error) {
	list, err := expandItems(f, inputs)
	if err != nil {
		return nil, err
	}
	if _, whole := listFrom(f); whole && slices.Contains(gone, true) {
		all := list
		list = nil
		for i, item := range all {
			if i >= len(gone) || !gone[i] {
				list = append(list, item)
			}
		}
	}
	return list, CheckKeys(f, list)
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
// or those that a person named, with those whose lists follow from them. Heads come before the tasks that go along
// with them (Foreach.Each), which have no list of their own. Tasks of finally are not among them: each retry makes
// their items anew. It reads what SelectRetry reads.
func Relisted(tasks []plan.Task, chosen []plan.TaskID) (found []*plan.Task, err error) {
	byID := ByID(tasks)
	in := map[plan.TaskID]bool{}
	for _, id := range chosen {
		t := byID[id]
		switch {
		case t == nil:
			return nil, fmt.Errorf("task %s is not in the plan: %w", id, plan.ErrNotFound)
		case t.Foreach == nil:
			return nil, refusal.New(plan.ErrConflict, "task %q has no list of items; name the foreach task, or leave the name out", t.Key())
		case t.Finally:
			return nil, refusal.New(plan.ErrConflict, "task %q is one of finally, whose items each retry makes anew; name a task that finally waits for", t.Key())
		case len(t.Foreach.Each) > 0:
			return nil, refusal.New(plan.ErrConflict, "task %q has the items of %s: name that", t.Key(), strings.Join(t.Foreach.Each, ", "))
		}
		in[id] = true
	}
	for i := range tasks {
		t := &tasks[i]
		if t.Foreach == nil || t.Finally || len(t.Foreach.Each) > 0 || !t.HasItems() || len(chosen) > 0 && !in[t.ID] {
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
	g := plan.NewGraph(tasks)
	for _, t := range found {
		if err := checkApproved(g, tasks, t, ListParent(t, byID)); err != nil {
			return nil, err
		}
	}
	for more := true; more; { // a circle was refused with the plan
		more = false
		below := followers(g, in)
		for i := range tasks {
			t := &tasks[i]
			if t.Foreach == nil || t.Finally || in[t.ID] || !t.HasItems() || t.Foreach.Group != "" || !below(ListParent(t, byID)) && !slices.ContainsFunc(t.Needs, func(id plan.TaskID) bool {
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
			if err := checkApproved(g, tasks, t, ListParent(t, byID)); err != nil {
				return nil, err
			}
			found, in[t.ID], more = append(found, t), true, true
		}
	}
	return found, nil
}

// checkApproved refuses to compare the list of a foreach task if somebody answered a question about it: the question
// is below the task that made the list, and above the foreach task. Nobody was asked about the items that would come.
func checkApproved(g *plan.Graph, tasks []plan.Task, t, maker *plan.Task) error {
	if maker == nil {
		return nil
	}
	made, _ := g.Index(maker.ID)
	own, _ := g.Index(t.ID)
	var below, above []bool
	for i := range tasks {
		if tasks[i].Approve == nil {
			continue
		}
		if below == nil {
			below, above = g.Below([]int{made}), g.Above([]int{own})
		}
		if below[i] && above[i] {
			return refusal.New(plan.ErrConflict, "the list of task %q was approved by the answer to %q, and other items were not; run %s again with --downstream, which asks again, "+
				"or name the tasks that are to be compared", t.Key(), tasks[i].Key(), maker.Key())
		}
	}
	return nil
}

// followers returns what reports whether a task, if it is not nil, is one of those that are in, or below one.
func followers(g *plan.Graph, in map[plan.TaskID]bool) func(t *plan.Task) bool {
	var from []int
	for id := range in {
		if i, ok := g.Index(id); ok {
			from = append(from, i)
		}
	}
	below := g.Below(from)
	return func(t *plan.Task) bool {
		if t == nil {
			return false
		}
		i, ok := g.Index(t.ID)
		return ok && (in[t.ID] || below[i])
	}
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

// SelectLists is SelectRetry for ListsAgain: it chooses the tasks whose outputs are lists of Relisted, with their items. It
// leaves those that are compared themselves, and the lists that only follow from what a person named. If
// there are none it returns none, because all lists are known. Tasks of finally stay as they ended: the retry that
// compares asks them again.
func SelectLists(tasks []plan.Task, chosen []plan.TaskID) ([]Retried, error) {
	found, err := Relisted(tasks, chosen)
	if err != nil {
		return nil, err
	}
	byID := ByID(tasks)
	r := newSelection(tasks, false)
	for _, t := range found {
		p := ListParent(t, byID)
		if p == nil || slices.Contains(found, p) || len(chosen) > 0 && !slices.Contains(chosen, t.ID) {
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

// A ListTurn is what one retry does about lists.
type ListTurn struct {
	Changes []Relisting // that it makes
	// Only has the tasks that it may take, but for items; nil: any. If it is empty, there is nothing to do.
	Only map[plan.TaskID]bool

	named    bool
	compared map[plan.TaskID]bool // all tasks of Relisted
	first    map[plan.TaskID]bool // those of them from which lists of others follow, and those that go along with these
}

// TurnLists returns what a retry does about lists, as ask has it. A list follows from another one if its parent
// is a task of Relisted, or below one. It cannot be compared as long as the retry runs a task again that makes it.
// ListsCompared refuses a retry with such a list. ListsFirst makes only the changes that such lists follow from.
func TurnLists(tasks []plan.Task, changes []Relisting, ask ListAsk, named bool) (*ListTurn, error) {
	l := newLists(tasks, changes)
	turn := ListTurn{named: named, compared: l.compared, first: map[plan.TaskID]bool{}}
	var later []Relisting
	for _, c := range changes {
		if p := l.parents[c.Of]; p != nil && l.follows(p) {
			later = append(later, c)
			for id := range l.above(p) {
				turn.first[id] = l.compared[id]
			}
		} else {
			turn.Changes = append(turn.Changes, c)
		}
	}
	withAlong(turn.first, changes)
	for moved := true; moved && len(later) > 0; {
		r, err := turn.selects(WithAdded(tasks, turn.Changes))
		if err != nil {
			return nil, err
		}
		open, known := map[plan.TaskID]bool{}, len(turn.Changes)
		for _, c := range later {
			open[c.Of] = true
		}
		for _, c := range later {
			if !anyOf(l.above(l.parents[c.Of]), func(id plan.TaskID) bool { return open[id] || r.takes(id) }) {
				turn.Changes = append(turn.Changes, c)
			}
		}
		for _, c := range turn.Changes {
			delete(open, c.Of)
		}
		later = slices.DeleteFunc(later, func(c Relisting) bool { return !open[c.Of] })
		moved = len(turn.Changes) > known
	}
	switch {
	case ask == ListsFirst:
		turn.Only = map[plan.TaskID]bool{}
		waits := map[plan.TaskID]bool{}
		for _, c := range later {
			waits[c.Of] = true
			maps.Copy(turn.Only, l.above(l.parents[c.Of]))
		}
		withAlong(turn.Only, changes)
		below := followers(l.Graph, waits) // what follows from lists that are still to be compared
		maps.DeleteFunc(turn.Only, func(id plan.TaskID, _ bool) bool { return below(l.byID[id]) })
		turn.Changes = slices.DeleteFunc(turn.Changes, func(c Relisting) bool { return !turn.Only[c.Of] })
	case len(later) > 0:
		return nil, refusal.New(plan.ErrConflict, "task %q keeps its items: its list comes from %s, which runs again; ask for the lists that others follow from first",
			l.byID[later[0].Of].Key(), l.parents[later[0].Of].Key())
	}
	for _, c := range turn.Changes {
		if c.Err != nil {
			return nil, c.Err
		}
	}
	return &turn, nil
}

// withAlong adds the tasks that go along with those of a set: they have the same items.
func withAlong(set map[plan.TaskID]bool, changes []Relisting) {
	for _, c := range changes {
		if set[c.Head] {
			set[c.Of] = true
		}
	}
}

func anyOf(set map[plan.TaskID]bool, is func(plan.TaskID) bool) bool {
	for id := range set {
		if is(id) {
			return true
		}
	}
	return false
}

// lists is what is known of the lists of some foreach tasks.
type lists struct {
	*plan.Graph
	tasks    []plan.Task
	byID     map[plan.TaskID]*plan.Task
	compared map[plan.TaskID]bool
	parents  map[plan.TaskID]*plan.Task // by the foreach task: the task that its list, or that of its head, comes from
	follows  func(*plan.Task) bool
}

func newLists(tasks []plan.Task, changes []Relisting) *lists {
	l := &lists{Graph: plan.NewGraph(tasks), tasks: tasks, byID: ByID(tasks), compared: map[plan.TaskID]bool{}, parents: map[plan.TaskID]*plan.Task{}}
	for _, c := range changes {
		head := c.Of
		if !c.Head.IsZero() {
			head = c.Head
		}
		l.compared[c.Of], l.parents[c.Of] = true, ListParent(l.byID[head], l.byID)
	}
	l.follows = followers(l.Graph, l.compared)
	return l
}

// above returns a task and all tasks above it.
func (l *lists) above(t *plan.Task) map[plan.TaskID]bool {
	i, _ := l.Index(t.ID)
	found := map[plan.TaskID]bool{t.ID: true}
	for k, is := range l.Above([]int{i}) {
		if is {
			found[l.tasks[k].ID] = true
		}
	}
	return found
}

// SelectRelisted is SelectRetry for ListsFirst and ListsCompared. It chooses what that chooses by itself: of the
// whole plan, or of the tasks whose lists were compared if a person named some. It also chooses the items that come
// or go, and, if any do, every task below. Below a task from which other lists follow, it chooses what has not
// run since: that task may have run again for ListsFirst. tasks have the items that come.
func SelectRelisted(tasks []plan.Task, turn *ListTurn) ([]Retried, error) {
	if turn.Only != nil && len(turn.Only) == 0 {
		return nil, nil
	}
	r, err := turn.selects(tasks)
	if err != nil {
		return nil, err
	}
	if len(r.queue) == 0 {
		return nil, refusal.New(plan.ErrConflict, "nothing to retry: the lists have the items that there are, and nothing failed")
	}
	counts := map[plan.TaskID]*RelistCounts{}
	for n := range turn.Changes {
		counts[turn.Changes[n].Of] = &turn.Changes[n].Count
	}
	out := r.childrenFirst()
	for i := range out {
		out[i].Items = counts[out[i].ID]
	}
	return out, nil
}

func (turn *ListTurn) selects(tasks []plan.Task) (*retrySelection, error) {
	r := newSelection(tasks, false)
	r.only = turn.Only
	if !turn.named {
		r.takeFailed()
	}
	for n := range turn.Changes {
		c := &turn.Changes[n]
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
			case turn.named && r.failed(int(k)) && !r.needless(int(k)):
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
	for id := range turn.first {
		if i, ok := r.Index(id); ok && turn.first[id] {
			r.takeOlder(i, turn.compared)
		}
	}
	return r, r.spread()
}

// takeOlder takes the tasks below a task that it ran after, but for those whose lists are compared, and what is
// below these. It also takes such tasks of finally.
func (r *retrySelection) takeOlder(than int, compared map[plan.TaskID]bool) {
	seen := map[int32]bool{}
	for work := slices.Clone(r.Children(than)); len(work) > 0; {
		i := work[0]
		t := &r.tasks[i]
		if work = work[1:]; seen[i] || compared[t.ID] || !t.Of.IsZero() {
			continue
		}
		seen[i] = true
		if OlderThan(t, &r.tasks[than]) {
			r.take(int(i))
			r.ask(int(i))
		}
		work = append(work, r.Children(int(i))...)
	}
	for i := range r.tasks {
		if t := &r.tasks[i]; t.Finally && OlderThan(t, &r.tasks[than]) {
			r.take(i)
		}
	}
}

// WithAdded returns the tasks with the items that come, held and in the order of the changes.
func WithAdded(tasks []plan.Task, changes []Relisting) []plan.Task {
	byID := ByID(tasks)
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
