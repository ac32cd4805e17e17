package rules

import (
	"cmp"
	"slices"

	"github.com/seed-1177d267/sluice/plan"
)

// A Foresight is what a retry does to the tasks of a plan. Each list is in the order of these tasks, items after their foreach task, by
// index.
type Foresight struct {
	Again   []plan.Task // run again, or are skipped if that is what their When says then
	Kept    []plan.Task // are below them, have ended, and stay as they are
	Dropped []plan.Task // items that are deleted: their foreach task makes new ones
	// Cleaned are tasks that succeeded, that run only after a failure, and that may have undone some of what the retry keeps. Undone are
	// the tasks whose retry with downstream runs that again, too.
	Cleaned, Undone []plan.Task
	// Skipped are tasks of Again that are sure to be skipped, because tasks of Missing, which failed, do
	// not run again. Stopped are those that end as Barred says instead, because they ran before. Missing
	// is empty if only tasks are in the way that were skipped without a failure.
	Skipped, Stopped, Missing []plan.Task
}

// Foresee says what a retry of the tasks that SelectRetry chose does. tasks are those that were handed to SelectRetry, with Index, Expanded
// and Items as well. Where items are left out, the items of a foreach task count as kept.
func Foresee(tasks []plan.Task, selected []Retried) Foresight {
	f := foresight{Graph: plan.NewGraph(tasks), tasks: tasks, items: map[plan.TaskID][]int{}, remade: map[int]bool{}}
	for i := range tasks {
		if of := tasks[i].Of; !of.IsZero() {
			f.items[of] = append(f.items[of], i)
		}
	}
	for _, of := range f.items {
		slices.SortFunc(of, func(x, y int) int { return cmp.Compare(tasks[x].Index, tasks[y].Index) })
	}
	f.taken, f.ran = make([]bool, len(tasks)), make([]bool, len(tasks))
	chosen := make([]int, 0, len(selected))
	for _, r := range selected {
		if i, ok := f.Index(r.ID); ok {
			f.taken[i], f.ran[i] = true, r.Ran
			chosen = append(chosen, i)
		}
	}
	for k := range selected {
		if i, ok := f.Index(selected[k].ID); ok && (tasks[i].Foreach != nil || len(f.items[tasks[i].ID]) > 0) {
			f.remade[i] = Remakes(&selected[k], &tasks[i], tasks[i].Foreach != nil, f.parentWaits(i))
		}
	}
	f.below = f.Below(chosen)
	var out Foresight
	for i := range tasks {
		t := &tasks[i]
		switch {
		case !t.Of.IsZero():
			continue // it comes with its foreach task
		case f.taken[i]:
			out.Again = append(out.Again, *t)
		case f.below[i] && t.Status.Finished():
			out.Kept = append(out.Kept, *t)
		}
		for _, item := range f.items[t.ID] {
			switch {
			case f.remade[i]:
				out.Dropped = append(out.Dropped, tasks[item])
			case f.taken[item]:
				out.Again = append(out.Again, tasks[item])
			}
		}
	}
	out.Cleaned, out.Undone = f.undone(chosen)
	out.Skipped, out.Stopped, out.Missing = f.skipped()
	return out
}

// skipped returns the taken tasks that failures which stay keep from running, and these failures. It
// returns the tasks apart that are stopped and not skipped.
func (f *foresight) skipped() (skipped, stopped, missing []plan.Task) {
	seen := make([]Outcome, len(f.tasks)) // of parents that stay, or are skipped
	var work, skips []int
	tell := func(i int, o Outcome) {
		for _, c := range f.Children(i) {
			if t := &f.tasks[c]; f.taken[c] && Decide(t.When, seen[c], false) != ToSkip {
				if seen[c] |= o; Decide(t.When, seen[c], false) == ToSkip {
					work = append(work, int(c))
				}
			}
		}
	}
	for i := range f.tasks {
		if o := OutcomeOfTask(&f.tasks[i]); !f.taken[i] && o > OutcomeSucceeded {
			tell(i, o)
		}
	}
	named := make([]bool, len(f.tasks))
	for k := 0; k < len(work); k++ {
		if f.taken[work[k]] {
			skips = append(skips, work[k])
			out := OutcomeSkipped
			if f.barred(work[k]) {
				out = OutcomeFailed
			}
			tell(work[k], out)
		}
		for _, p := range f.Parents(work[k]) {
			t := &f.tasks[p]
			if f.taken[p] || named[p] {
				continue
			}
			switch OutcomeOfTask(t) {
			case OutcomeSkipped:
				work = append(work, int(p)) // a failure above it
			case OutcomeFailed, OutcomeCancelled:
				missing = append(missing, *t)
			default:
				continue
			}
			named[p] = true
		}
	}
	slices.Sort(skips)
	for _, i := range skips {
		if f.barred(i) {
			stopped = append(stopped, f.tasks[i])
		} else {
			skipped = append(skipped, f.tasks[i])
		}
	}
	return skipped, stopped, missing
}

// barred reports whether a taken task that its parents do not let run ends as Barred says.
func (f *foresight) barred(i int) bool {
	return f.ran[i] && bars(f.tasks[i].When, f.tasks[i].ContinueOnError)
}

type foresight struct {
	*plan.Graph
	tasks  []plan.Task
	items  map[plan.TaskID][]int
	taken  []bool
	ran    []bool       // tasks that are taken and keep Ran
	remade map[int]bool // foreach tasks that make their items again
	below  []bool       // what is below what is taken
}

func (f *foresight) parentWaits(i int) bool {
	return slices.ContainsFunc(f.Parents(i), func(p int32) bool {
		return !GoesAlong(f.tasks[i].Foreach, f.tasks[p].Name) && (f.taken[p] || !f.tasks[p].Status.Finished())
	})
}

// reacted reports whether a task has run since something above it, which the retry takes, did not succeed.
// A foreach task without items ran nothing.
func (f *foresight) reacted(i int) bool {
	t := &f.tasks[i]
	return !(t.Expanded && t.Items == 0) && (f.taken[i] || f.below[i]) && t.Status == plan.Succeeded && TellsResults(t.When)
}

// keeps reports whether a retry keeps some of what a task did: the task, or some of its items, succeeded and do not run again.
func (f *foresight) keeps(i int) bool {
	t := &f.tasks[i]
	switch {
	case t.Foreach == nil || !t.Expanded:
		return t.Status == plan.Succeeded && !f.taken[i]
	case f.remade[i]:
		return false
	}
	items := f.items[t.ID]
	return len(items) == 0 || slices.ContainsFunc(items, func(k int) bool { return f.tasks[k].Status == plan.Succeeded && !f.taken[k] })
}

// undone returns the clean-ups that may have undone work that the retry keeps. It also returns the
// tasks that a retry with downstream has to name so that this work runs again. A clean-up that needs
// tasks which succeeded undoes the work of its parents. A clean-up that needs only what failed may
// undo the work of any task above it, and one of finally that of any task. A clean-up that goes along with others undoes items of its parents
// alone; one that the retry takes runs those of its items again that failed.
func (f *foresight) undone(chosen []int) (cleaned, undone []plan.Task) {
	var kept []int
	for i := range f.tasks {
		if f.tasks[i].Of.IsZero() && !f.reacted(i) && f.keeps(i) {
			kept = append(kept, i)
		}
	}
	isKept := make([]bool, len(f.tasks))
	for _, i := range kept {
		isKept[i] = true
	}
	var unsaid []int // clean-ups that need nothing that succeeded
	any := false     // one of finally ran
	belowKept := f.Below(kept)
	for i := range f.tasks {
		t, parents := &f.tasks[i], f.Parents(i)
		if t.When != plan.AnyFailed && t.When != plan.AllFailed || !belowKept[i] && !(t.Finally && len(kept) > 0) || !f.reacted(i) {
			continue
		}
		if t.Finally {
			any, cleaned = true, append(cleaned, *t)
			continue
		}
		along := t.Foreach != nil && len(t.Foreach.Each) > 0
		if !along && !slices.ContainsFunc(parents, func(p int32) bool { return f.tasks[p].Status == plan.Succeeded }) {
			unsaid, cleaned = append(unsaid, i), append(cleaned, *t)
			continue
		}
		known := len(chosen)
		for _, p := range parents {
			if isKept[p] && (!along || f.tasks[p].Status == plan.Succeeded) {
				chosen = append(chosen, int(p))
			}
		}
		if len(chosen) > known {
			cleaned = append(cleaned, *t)
		}
	}
	above := f.Above(unsaid)
	for _, i := range kept {
		if above[i] || any {
			chosen = append(chosen, i)
		}
	}
	if len(cleaned) == 0 {
		return nil, nil
	}
	named, covered := make([]bool, len(f.tasks)), f.Below(chosen)
	for _, i := range chosen {
		named[i] = !covered[i] && f.tasks[i].Of.IsZero() && !f.tasks[i].Finally // which goes along
	}
	for i := range f.tasks {
		if named[i] && f.tasks[i].Status.Finished() {
			undone = append(undone, f.tasks[i])
		}
	}
	return cleaned, undone
}
