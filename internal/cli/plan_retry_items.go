package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/api"
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

// retryLists runs the tasks that print lists, and then compares the lists: first those that others follow from.
func (a *app) retryLists(ctx context.Context, st store.Store, p plan.Plan, chosen []plan.TaskID, s retrySettings) (err error) {
	// A list that the file gives is asked about before anything runs.
	var file *fileAgain
	ask := rules.Ask{Tasks: chosen}
	var replace []plan.Task
	if s.replaces() {
		if file, err = a.fileOf(ctx, st, &p, &s); err != nil {
			return err
		}
		replace = file.otherLists()
	}
	if more, err := a.readLists(ctx, st, &p, chosen, s); err != nil || !more {
		return err
	}
	if ask.Found, err = foundLists(ctx, st, &p, chosen, replace); err != nil {
		return fmt.Errorf("retry %s: %w", p.Title(), err)
	}
	for {
		ask.Lists, ask.Replace = rules.ListsFirst, replace
		first, err := a.compareLists(ctx, st, &p, ask, file, s)
		if err != nil || len(first) > 0 && *s.dryRun {
			return err
		}
		if len(first) == 0 {
			break
		}
		if err := a.runFirst(ctx, st, &p, first, s); err != nil {
			return err
		}
		if file != nil { // what has changed by now needs no change
			if file, err = a.fileOf(ctx, st, &p, &s); err != nil {
				return err
			}
			replace = file.otherLists()
		}
	}
	ask.Lists, ask.Replace = rules.ListsCompared, replace
	if _, err := a.compareLists(ctx, st, &p, ask, file, s); err != nil || *s.dryRun {
		return err
	}
	if s.run != nil {
		return s.run(st, p)
	}
	return a.noteUnserved(ctx, st, &p, nil)
}

// compareLists shows what a retry that compares lists takes, and makes it.
func (a *app) compareLists(ctx context.Context, st store.Store, p *plan.Plan, ask rules.Ask, file *fileAgain, s retrySettings) ([]rules.Retried, error) {
	ask.Check = true
	retried, err := st.Retry(ctx, p.ID, ask)
	if err != nil {
		return nil, fmt.Errorf("retry %s: %w", p.Title(), err)
	}
	first := ask.Lists == rules.ListsFirst
	if first && len(retried) == 0 {
		return nil, nil
	}
	tasks, err := store.AllTasks(ctx, st, store.TaskQuery{Plan: p.ID, Needs: true})
	if err != nil {
		return nil, err
	}
	change := &replacement{}
	if file != nil {
		if change, err = file.replacements(retried, true, first); err != nil {
			return nil, err
		}
		if change.stays != "" && !first {
			a.note("%s", change.stays)
		}
		s.changed = change.lines
	}
	runs := slices.DeleteFunc(slices.Clone(retried), func(r rules.Retried) bool { return r.Gone })
	again := taken(runs)
	foreseen := rules.Foresee(tasks, runs)
	if s.run != nil {
		if err := a.checkRetried(ctx, st, p, again, change.tasks); err != nil {
			return nil, err
		}
	}
	if first {
		foreseen.Kept = nil // they come later
		a.note("other lists follow from what these tasks put out: they run first, and then those lists are compared")
	}
	s.changed = append(s.changed, relistLines(tasks, retried)...)
	if !first || !s.output.json() || *s.dryRun { // one document is printed
		err = a.printRetried(ctx, st, &foreseen, change.tasks, s)
	}
	if s.run != nil && view.Lost(err) {
		err = nil
	}
	if err != nil || *s.dryRun {
		return retried, err
	}
	ask.Check, ask.Replace, ask.Params, ask.Choices, ask.Timeout = false, change.tasks, change.params, change.choices, change.timeout
	if _, err := st.Retry(ctx, p.ID, ask); err != nil {
		return nil, fmt.Errorf("retry %s: %w", p.Title(), err)
	}
	*p, err = st.Plan(ctx, p.ID)
	return retried, err
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

func idsOf(retried []rules.Retried) []plan.TaskID {
	return api.Each(retried, func(r *rules.Retried) plan.TaskID { return r.ID })
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
	ids := idsOf(retried)
	tasks, err := store.TasksByID(ctx, st, store.TaskQuery{}, ids)
	if err != nil {
		return false, err
	}
	who, verb, run := strings.Join(keys(tasks), ", "), "prints the list", "runs"
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
	shown := a.Stdout
	a.Stdout = io.Discard // what is shown is the run of what comes
	tasks, err = a.runAndWait(ctx, st, p, ids, who, s)
	a.Stdout = shown
	for i := range tasks {
		if t := &tasks[i]; err == nil && t.Status != plan.Succeeded {
			return false, fmt.Errorf("%s is %s, and prints the list: the items stay as they are; see %s", t.Key(), states.OfTask(t), a.command("plan", "explain", p.Title(), t.Key()))
		}
	}
	return err == nil, err
}

// runFirst runs what a retry took that compares the lists that others follow from. If some of it fails, the tasks of finally are
// asked, since the retry ends here.
func (a *app) runFirst(ctx context.Context, st store.Store, p *plan.Plan, retried []rules.Retried, s retrySettings) error {
	shown := a.Stdout
	if s.output.json() {
		a.Stdout = io.Discard // one document is printed
	}
	tasks, err := a.runAndWait(ctx, st, p, idsOf(retried), p.Title(), s)
	a.Stdout = shown
	if err != nil {
		return err
	}
	k := slices.IndexFunc(tasks, func(t plan.Task) bool {
		return t.Of.IsZero() && rules.OutcomeOfTask(&t)&(rules.OutcomeFailed|rules.OutcomeCancelled) != 0
	})
	if k < 0 {
		return nil
	}
	err = fmt.Errorf("%s is %s, and other lists follow from what it puts out: their items stay as they are; see %s",
		tasks[k].Key(), states.OfTask(&tasks[k]), a.command("plan", "explain", p.Title(), tasks[k].Key()))
	if !p.Finally {
		return err
	}
	var last []plan.TaskID
	all, unread := store.AllTasks(ctx, st, store.TaskQuery{Plan: p.ID, NoItems: true})
	for i := range all {
		if all[i].Finally {
			last = append(last, all[i].ID)
		}
	}
	if unread != nil {
		return errors.Join(err, unread)
	}
	if _, refused := st.Retry(ctx, p.ID, rules.Ask{Tasks: last, Downstream: true}); refused != nil {
		return errors.Join(err, refused)
	}
	if s.run != nil {
		_ = s.run(st, *p) // the plan has failed, which err says
	}
	return err
}

// runAndWait runs a retry here, if it is to run here, and returns the tasks once all of them have ended. who are they.
func (a *app) runAndWait(ctx context.Context, st store.Store, p *plan.Plan, ids []plan.TaskID, who string, s retrySettings) ([]plan.Task, error) {
	if s.run != nil {
		if ran := s.run(st, *p); errors.Is(ran, errInterrupted) {
			return nil, ran
		}
	} else if err := a.noteUnserved(ctx, st, p, nil); err != nil {
		return nil, err
	}
	for {
		tasks, err := store.TasksByID(ctx, st, store.TaskQuery{}, ids)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(tasks, func(t plan.Task) bool { return !t.Status.Finished() }) {
			*p, err = st.Plan(ctx, p.ID)
			return tasks, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %s goes on without this command, and its items stay as they are", context.Cause(ctx), who)
		case <-time.After(300 * time.Millisecond):
		}
	}
}
