package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/states"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// mostRetried is the most tasks of each kind that a retry lists before it begins.
const mostRetried = 50

// printRetried shows what a retry does, or would do.
func (a *app) printRetried(ctx context.Context, st store.Store, f *rules.Foresight, replace []plan.Task, s retrySettings) error {
	if s.output.json() { // what is printed is of another form
		for _, line := range s.changed {
			a.note("%s", line)
		}
	}
	switch {
	case s.quiet, s.output.json() && s.run != nil:
		return nil // what is printed is the run's
	case s.output.json():
		queues, err := queueNames(ctx, st)
		if err != nil {
			return err
		}
		values, err := itemValues(ctx, st, f.Again)
		if err != nil {
			return err
		}
		return a.printTasks(s.output, f.Again, queues, values, nil)
	}
	changed := map[plan.TaskID]bool{}
	for i := range replace {
		changed[replace[i].ID] = true
	}
	dropped := map[plan.TaskID]int{}
	for i := range f.Dropped {
		dropped[f.Dropped[i].Of]++
	}
	one, many := "this task runs again", "run again"
	if *s.dryRun {
		one, many = "this task would run again", "would run again"
	}
	word := "these tasks " + many
	if len(f.Again) == 1 {
		word = one
	}
	err := a.printSome(ctx, st, word+":", f.Again, "DETAIL", func(t *plan.Task) string {
		switch {
		case changed[t.ID]:
			return "changed by the file"
		case dropped[t.ID] > 0:
			return fmt.Sprintf("its %d items are made anew", dropped[t.ID])
		case t.Status == plan.Succeeded && t.When != "" && t.When != plan.AllSucceeded:
			return fmt.Sprintf("it is decided again (when: %s)", t.When)
		}
		return a.detail(t, nil)
	})
	if err != nil {
		return err
	}
	for _, line := range s.changed {
		fmt.Fprintln(a.Stdout, line)
	}
	word = "below them these are kept as they are:"
	if s.below != "" {
		word = "below them these are kept as they are; to run these again too: " + s.below
	}
	err = a.printSome(ctx, st, word, f.Kept, "BECAUSE", because)
	if err != nil {
		return err
	}
	for _, line := range s.reacted {
		fmt.Fprintln(a.Stdout, line)
	}
	return a.printSome(ctx, st, "these items are dropped, with what they printed, and made anew:", f.Dropped, "DETAIL", func(t *plan.Task) string {
		return a.detail(t, nil)
	})
}

// because says why a task below others that run again does not.
func because(t *plan.Task) string {
	when := cmp.Or(t.When, plan.AllSucceeded)
	if t.Status == plan.Succeeded {
		return fmt.Sprintf("it has succeeded (when: %s)", when)
	}
	return fmt.Sprintf("it was not named, and %s by itself (when: %s)", states.OfTask(t), when)
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
	t := a.table("TASK", "WAS", head)
	for i := range shown {
		t.Add(values.label(&shown[i], a.ellipsis()), states.OfTask(&shown[i]), say(&shown[i]))
	}
	fmt.Fprintln(a.Stdout, word)
	if err := t.Print(a.Stdout); err != nil {
		return err
	}
	if more := len(tasks) - len(shown); more > 0 {
		fmt.Fprintf(a.Stdout, "and %d more\n", more)
	}
	return nil
}
