package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/mend"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/states"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// retryItems retries a plan whose lists may have other items now. A refusal names the way on if no node runs the plan.
func (a *app) retryItems(ctx context.Context, st store.Store, p plan.Plan, chosen []plan.TaskID, s retrySettings) error {
	if err := a.mayRetry(ctx, st, &p); err != nil {
		return err
	}
	err := a.retryLists(ctx, st, p, chosen, s)
	if errors.Is(err, plan.ErrConflict) || errors.Is(err, plan.ErrPlanActive) {
		return errors.Join(err, a.noteUnserved(ctx, st, &p, nil))
	}
	return err
}

// retryLists runs the tasks that print lists, and then compares the lists.
func (a *app) retryLists(ctx context.Context, st store.Store, p plan.Plan, chosen []plan.TaskID, s retrySettings) (err error) {
	// A list that the file gives is asked about before anything runs.
	var file *fileAgain
	ask := rules.Ask{Tasks: chosen, Lists: rules.ListsCompared}
	if s.replaces() {
		if file, err = a.fileOf(ctx, st, &p, &s); err != nil {
			return err
		}
		ask.Replace = file.otherLists()
	}
	if more, err := a.readLists(ctx, st, &p, chosen, s); err != nil || !more {
		return err
	}
	if ask.Found, err = foundLists(ctx, st, &p, chosen, ask.Replace); err != nil {
		return fmt.Errorf("retry %s: %w", p.Title(), err)
	}
	ask.Check = true
	retried, err := st.Retry(ctx, p.ID, ask)
	if err != nil {
		return fmt.Errorf("retry %s: %w", p.Title(), err)
	}
	tasks, err := store.AllTasks(ctx, st, store.TaskQuery{Plan: p.ID, Needs: true})
	if err != nil {
		return err
	}
	change := &replacement{}
	if file != nil {
		if change, err = file.replacements(retried, true); err != nil {
			return err
		}
		if change.stays != "" {
			a.note("%s", change.stays)
		}
		s.changed = change.lines
	}
	runs := slices.DeleteFunc(slices.Clone(retried), func(r rules.Retried) bool { return r.Gone })
	again := make(map[plan.TaskID]bool, len(runs))
	for _, r := range runs {
		again[r.ID] = true
	}
	foreseen := rules.Foresee(tasks, runs)
	if s.run != nil {
		if err := a.checkRetried(ctx, st, &p, again, change.tasks); err != nil {
			return err
		}
	}
	s.changed = append(s.changed, relistLines(tasks, retried)...)
	err = a.printRetried(ctx, st, &foreseen, change.tasks, s)
	if s.run != nil && view.Lost(err) {
		err = nil
	}
	if err != nil || *s.dryRun {
		return err
	}
	ask.Check, ask.Replace, ask.Params, ask.Timeout = false, change.tasks, change.params, change.timeout
	if _, err := st.Retry(ctx, p.ID, ask); err != nil {
		return fmt.Errorf("retry %s: %w", p.Title(), err)
	}
	if p, err = st.Plan(ctx, p.ID); err != nil {
		return err
	}
	if s.run != nil {
		return s.run(st, p)
	}
	return a.noteUnserved(ctx, st, &p, nil)
}

// fileOf reads the file of --with.
func (a *app) fileOf(ctx context.Context, st store.Store, p *plan.Plan, s *retrySettings) (*fileAgain, error) {
	whole, stored, err := unhidden(ctx, st, p)
	if err != nil {
		return nil, err
	}
	tasks, err := tasksOf(ctx, whole, stored)
	if err != nil {
		return nil, err
	}
	return a.readReplacing(ctx, whole, stored, tasks, *s.with, s.params)
}

// relistLines says how lists differ from the items that there are.
func relistLines(tasks []plan.Task, retried []rules.Retried) (lines []string) {
	names := mend.NamesOf(tasks)
	for _, r := range slices.Backward(retried) { // heads before the tasks that go along with them
		if r.Items != nil {
			lines = append(lines, fmt.Sprintf("items of %s: %s", names[r.ID], r.Items))
		}
	}
	return lines
}

// readLists runs the tasks again that print lists, if there are any, and waits for them. more is false if that was only to be shown.
func (a *app) readLists(ctx context.Context, st store.Store, p *plan.Plan, chosen []plan.TaskID, s retrySettings) (more bool, err error) {
	ask := rules.Ask{Tasks: chosen, Lists: rules.ListsAgain, Check: true}
	retried, err := st.Retry(ctx, p.ID, ask)
	if err != nil {
		return false, fmt.Errorf("retry %s: %w", p.Title(), err)
	}
	if len(retried) == 0 {
		return true, nil
	}
	ids := make([]plan.TaskID, len(retried))
	for i := range retried {
		ids[i] = retried[i].ID
	}
	tasks, err := store.TasksByID(ctx, st, store.TaskQuery{}, ids)
	if err != nil {
		return false, err
	}
	names := make([]string, len(tasks))
	for i := range tasks {
		names[i] = tasks[i].Key()
	}
	who, verb, run := strings.Join(names, ", "), "prints the list", "runs"
	if len(tasks) > 1 {
		verb, run = "print the lists", "run"
	}
	if *s.dryRun {
		a.note("%s %s, and would run first: what comes and goes is known only then", who, verb)
		if s.output.json() {
			return false, a.printTasks(s.output, tasks, nil, nil, nil)
		}
		return false, nil
	}
	a.note("%s %s, and %s first; if it fails, nothing else changes", who, verb, run)
	ask.Check = false
	if _, err = st.Retry(ctx, p.ID, ask); err != nil {
		return false, fmt.Errorf("retry %s: %w", p.Title(), err)
	}
	if *p, err = st.Plan(ctx, p.ID); err != nil {
		return false, err
	}
	if s.run != nil {
		out := a.Stdout
		a.Stdout = io.Discard // what is shown is the run of what comes
		ran := s.run(st, *p)
		if a.Stdout = out; errors.Is(ran, errInterrupted) {
			return false, ran
		}
	} else if err := a.noteUnserved(ctx, st, p, nil); err != nil {
		return false, err
	}
	for {
		if tasks, err = store.TasksByID(ctx, st, store.TaskQuery{}, ids); err != nil {
			return false, err
		}
		open := slices.ContainsFunc(tasks, func(t plan.Task) bool { return !t.Status.Finished() })
		for i := range tasks {
			if t := &tasks[i]; !open && t.Status != plan.Succeeded {
				return false, fmt.Errorf("%s is %s, and prints the list: the items stay as they are; see %s", t.Key(), states.OfTask(t), a.command("plan", "explain", p.Title(), t.Key()))
			}
		}
		if !open {
			*p, err = st.Plan(ctx, p.ID)
			return true, err
		}
		select {
		case <-ctx.Done():
			return false, fmt.Errorf("%w: %s goes on without this command, and its items stay as they are", context.Cause(ctx), who)
		case <-time.After(300 * time.Millisecond):
		}
	}
}
