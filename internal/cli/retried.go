package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// mostRetried is up to how many tasks of each kind a retry lists before it does what it shows.
const mostRetried = 50

// A foreseen retry is what it does to the tasks of a plan, in the plan's order, items after their foreach task.
type foreseen struct {
	again   []plan.Task // run again
	kept    []plan.Task // are below them and have ended, and stay as they are
	dropped []plan.Task // items whose foreach task makes new ones
}

// foresee says what a retry of the tasks selected among those of a plan does. Which items are dropped is as store.Admin has it of Retry.
func foresee(tasks []plan.Task, selected []plan.Retried) foreseen {
	index := make(map[plan.TaskID]int, len(tasks))
	children := make(map[plan.TaskID][]int, len(tasks))
	items := map[plan.TaskID][]*plan.Task{}
	for i := range tasks {
		index[tasks[i].ID] = i
		if of := tasks[i].Of; !of.IsZero() {
			items[of] = append(items[of], &tasks[i])
		}
		for _, need := range tasks[i].Needs {
			children[need] = append(children[need], i)
		}
	}
	for _, of := range items {
		slices.SortFunc(of, func(x, y *plan.Task) int { return cmp.Compare(x.Index, y.Index) })
	}
	taken := make(map[plan.TaskID]bool, len(selected))
	for _, r := range selected {
		taken[r.ID] = true
	}
	anew := map[plan.TaskID]bool{}
	var above []plan.TaskID
	for _, r := range selected {
		t := &tasks[index[r.ID]]
		anew[r.ID] = r.Anew || !t.Expanded
		for _, need := range t.Needs {
			parent, there := index[need]
			anew[r.ID] = anew[r.ID] || taken[need] || there && !tasks[parent].Status.Finished()
		}
		above = append(above, r.ID)
	}
	below := map[plan.TaskID]bool{}
	for k := 0; k < len(above); k++ {
		for _, c := range children[above[k]] {
			if id := tasks[c].ID; !below[id] {
				below[id] = true
				above = append(above, id)
			}
		}
	}
	var f foreseen
	for i := range tasks {
		t := &tasks[i]
		switch {
		case !t.Of.IsZero():
			continue // it comes with its foreach task
		case taken[t.ID]:
			f.again = append(f.again, *t)
		case below[t.ID] && t.Status.Finished():
			f.kept = append(f.kept, *t)
		}
		for _, item := range items[t.ID] {
			switch {
			case anew[t.ID]:
				f.dropped = append(f.dropped, *item)
			case taken[item.ID]:
				f.again = append(f.again, *item)
			}
		}
	}
	return f
}

// printRetried shows what a retry does, or would do.
func (a *app) printRetried(ctx context.Context, st store.Store, f foreseen, replace []plan.Task, s retrySettings) error {
	if s.output.json() { // what is printed is of another form
		for _, line := range s.changed {
			a.note("%s", line)
		}
	}
	switch {
	case s.output.json() && s.run != nil:
		return nil // the run's events are what is printed
	case s.output.json():
		queues, err := queueNames(ctx, st)
		if err != nil {
			return err
		}
		values, err := itemValues(ctx, st, f.again)
		if err != nil {
			return err
		}
		return a.printTasks(s.output, f.again, queues, values, nil)
	}
	changed := map[plan.TaskID]bool{}
	for i := range replace {
		changed[replace[i].ID] = true
	}
	dropped := map[plan.TaskID]int{}
	for i := range f.dropped {
		dropped[f.dropped[i].Of]++
	}
	one, many := "this task runs again", "run again"
	if *s.dryRun {
		one, many = "this task would run again", "would run again"
	}
	word := "these tasks " + many
	if len(f.again) == 1 {
		word = one
	}
	err := a.printSome(ctx, st, word+":", f.again, "DETAIL", func(t *plan.Task) string {
		switch {
		case changed[t.ID]:
			return "changed by the file"
		case dropped[t.ID] > 0:
			return fmt.Sprintf("its %d items are made anew", dropped[t.ID])
		}
		return a.detail(t, nil)
	})
	if err != nil {
		return err
	}
	for _, line := range s.changed {
		fmt.Fprintln(a.Stdout, line)
	}
	err = a.printSome(ctx, st, "below them these are kept as they are; with --downstream they "+many+" too:", f.kept, "BECAUSE", because)
	if err != nil {
		return err
	}
	for _, line := range s.reacted {
		fmt.Fprintln(a.Stdout, line)
	}
	return a.printSome(ctx, st, "these items are dropped, with what they printed, and made anew:", f.dropped, "DETAIL", func(t *plan.Task) string {
		return a.detail(t, nil)
	})
}

// because says why a task below others that run again does not.
func because(t *plan.Task) string {
	when := cmp.Or(t.When, plan.AllSucceeded)
	if t.Status == plan.Succeeded {
		return fmt.Sprintf("it has succeeded (when: %s)", when)
	}
	return fmt.Sprintf("it was not named, and %s by itself (when: %s)", t.State(), when)
}

// printSome prints the first of some tasks under a line that says what they are; nothing, if there are none.
func (a *app) printSome(ctx context.Context, st store.Reader, word string, tasks []plan.Task, head string, say func(*plan.Task) string) error {
	if len(tasks) == 0 {
		return nil
	}
	shown := tasks[:min(len(tasks), mostRetried)]
	values, err := itemValues(ctx, st, shown)
	if err != nil {
		return err
	}
	t := table{head: []string{"TASK", "WAS", head}, paint: a.stateColumn(1)}
	for i := range shown {
		t.add(values.label(&shown[i], a.ellipsis()), shown[i].State(), say(&shown[i]))
	}
	fmt.Fprintln(a.Stdout, word)
	if err := t.print(a.Stdout); err != nil {
		return err
	}
	if more := len(tasks) - len(shown); more > 0 {
		fmt.Fprintf(a.Stdout, "and %d more\n", more)
	}
	return nil
}
