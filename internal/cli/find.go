package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/hint"
	"github.com/seed-1177d267/sluice/internal/items"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/states"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// findPlan returns the plan that a word names. The word is an id, a unique prefix of an id, a name
// (its latest run), or a name with a run, as in "nightly#3". If both a name and a prefix fit, the
// name wins.
func findPlan(ctx context.Context, r store.Reader, word string) (plan.Plan, error) {
	if word == "" {
		return plan.Plan{}, usagef("a plan's name is empty; if it comes from a variable, that is not set")
	}
	if id, err := plan.ParseID(word); err == nil {
		p, err := r.Plan(ctx, plan.PlanID{ID: id})
		if errors.Is(err, plan.ErrNotFound) {
			return p, unknownPlan(ctx, r, word)
		}
		return p, err
	}
	q := store.PlanQuery{Name: word, Limit: 1}
	if name, run, ok := strings.Cut(word, "#"); ok {
		n, err := strconv.Atoi(run)
		if err != nil || n < 1 || name == "" {
			return plan.Plan{}, usagef("%q names no plan: a run is written as in nightly#3", word)
		}
		q.Name, q.Run = name, n
	}
	found, err := r.Plans(ctx, q)
	if err != nil {
		return plan.Plan{}, err
	}
	if len(found) > 0 {
		return found[0], nil
	}
	if isPrefix(word) {
		found, err = r.Plans(ctx, store.PlanQuery{Prefix: strings.ToLower(word), Limit: 5})
		switch {
		case err != nil:
			return plan.Plan{}, err
		case len(found) == 1:
			return found[0], nil
		case len(found) > 1:
			return plan.Plan{}, usagef("%q is the start of several plans' ids: %s; add more of it", word, list(found, func(p plan.Plan) string { return p.ID.String() }))
		}
	}
	return plan.Plan{}, unknownPlan(ctx, r, word)
}

// unknownPlan says that there is no such plan, and which one was perhaps meant.
func unknownPlan(ctx context.Context, r store.Reader, word string) error {
	var names []string
	if recent, err := r.Plans(ctx, store.PlanQuery{Limit: 200, NoParams: true}); err == nil {
		names = api.Each(recent, func(p *plan.Plan) string { return p.Name })
	}
	name, _, numbered := strings.Cut(word, "#")
	more := hint.Meant(name, names)
	if more == "" || numbered && slices.Contains(names, name) {
		more = `; "sluice plan list" shows those there are`
	}
	return fmt.Errorf("plan %q: %w%s", word, plan.ErrNotFound, more)
}

// findTask returns the task that one or two words name: PLAN TASK, or an id or the start of one. Everything about it is filled, but for an
// output that is too much.
func findTask(ctx context.Context, r store.Reader, words []string) (plan.Task, error) {
	t, err := findWholeTask(ctx, r, words)
	if errors.Is(err, plan.ErrTooMuchOutput) {
		err = nil
	}
	return t, err
}

// findWholeTask is findTask for who shows the output: where that is too much, the task comes with plan.ErrTooMuchOutput.
func findWholeTask(ctx context.Context, r store.Reader, words []string) (plan.Task, error) {
	if len(words) == 2 {
		p, err := findPlan(ctx, r, words[0])
		if err != nil {
			return plan.Task{}, err
		}
		t, err := findTaskOf(ctx, r, p, words[1])
		if err != nil {
			return t, err
		}
		return r.Task(ctx, t.ID)
	}
	word := words[0]
	if word == "" {
		return plan.Task{}, usagef("a task's id is empty; if it comes from a variable, that is not set")
	}
	if id, err := plan.ParseID(word); err == nil {
		t, err := r.Task(ctx, plan.TaskID{ID: id})
		if errors.Is(err, plan.ErrNotFound) {
			return t, unknownTask(ctx, r, word)
		}
		return t, err
	}
	if !isPrefix(word) {
		return plan.Task{}, unknownTask(ctx, r, word)
	}
	found, err := r.Tasks(ctx, store.TaskQuery{Prefix: strings.ToLower(word), Limit: 5})
	switch {
	case err != nil:
		return plan.Task{}, err
	case len(found) == 0:
		return plan.Task{}, unknownTask(ctx, r, word)
	case len(found) > 1:
		return plan.Task{}, usagef("%q is the start of several tasks' ids: %s; add more of it", word, list(found, func(t plan.Task) string { return t.ID.String() }))
	}
	return r.Task(ctx, found[0].ID)
}

// unknownTask says how a task is named, for a word that is not the id of one.
func unknownTask(ctx context.Context, r store.Reader, word string) error {
	p, err := findPlan(ctx, r, word)
	switch {
	case err == nil:
		return usagef("%q is a plan: name a task of it too, as in %s TASK; %q lists its tasks", word, p.Title(), "sluice task list --plan "+p.Title())
	case !isPrefix(word):
		return usagef("%q is not a task's id: name it by its id, or by two words, PLAN TASK", word)
	}
	return fmt.Errorf("task %q: %w; a task of a plan is named by two words, PLAN TASK", word, plan.ErrNotFound)
}

// findTaskOf returns the plan's task that a word names: its name, as in copy or copy[17], or its id or the start of one.
func findTaskOf(ctx context.Context, r store.Reader, p plan.Plan, word string) (plan.Task, error) {
	if word == "" {
		return plan.Task{}, usagef("a task's name is empty; if it comes from a variable, that is not set")
	}
	found, err := r.Tasks(ctx, store.TaskQuery{Plan: p.ID, Name: word, Limit: 1, Needs: true})
	if err != nil {
		return plan.Task{}, err
	}
	if len(found) == 0 && isPrefix(word) {
		if found, err = r.Tasks(ctx, store.TaskQuery{Plan: p.ID, Prefix: strings.ToLower(word), Limit: 2, Needs: true}); err != nil {
			return plan.Task{}, err
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 2:
		return plan.Task{}, usagef("%q is the start of several tasks' ids in %s; add more of it", word, p.Title())
	}
	switch found, err = items.ByKey(ctx, r, p.ID, word); {
	case err != nil:
		return plan.Task{}, err
	case len(found) > 1:
		return plan.Task{}, usagef("%s is %s and %s of %s; name one by its index", word, found[0].Name, found[1].Name, p.Title())
	case len(found) == 1:
		return found[0], nil
	}
	var names []string
	if tasks, err := r.Tasks(ctx, store.TaskQuery{Plan: p.ID, NoItems: true, Limit: 2000}); err == nil {
		for i := range tasks {
			t := &tasks[i]
			if t.Foreach != nil && strings.HasPrefix(word, t.Name+"[") {
				return plan.Task{}, fmt.Errorf("task %q in %s: %w; %s", word, p.Title(), plan.ErrNotFound, itemsThere(t))
			}
			names = append(names, t.Name)
		}
	}
	more := cmp.Or(hint.Meant(word, names), fmt.Sprintf("; %q shows those there are", "sluice task list --plan "+p.Title()))
	return plan.Task{}, fmt.Errorf("task %q in %s: %w%s", word, p.Title(), plan.ErrNotFound, more)
}

// itemsThere says which items a foreach task has, for who named another one.
func itemsThere(t *plan.Task) string {
	switch {
	case t.Items > 0:
		return fmt.Sprintf("%s has %s, from %s on", t.Name, view.Number(t.Items, "item"), rules.ItemName(t.Name, 0))
	case t.Status.Finished():
		return fmt.Sprintf("%s is %s, and has no items", t.Name, states.OfTask(t))
	}
	return fmt.Sprintf("%s is %s, and its items are not made yet: wait for that", t.Name, states.OfTask(t))
}

// withPlan runs do with the plan that a word names, and its store open.
func (a *app) withPlan(ctx context.Context, word string, do func(store.Store, plan.Plan) error) error {
	return a.withStore(ctx, func(st store.Store) error {
		p, err := findPlan(ctx, st, word)
		if err == nil {
			err = a.spare(ctx, st, &p)
		}
		if err != nil {
			return err
		}
		return do(st, p)
	})
}

// withTask runs do with the task that one or two words name, and its store open. Everything about the task is filled,
// but for an output that is too much.
func (a *app) withTask(ctx context.Context, words []string, do func(store.Store, plan.Task) error) error {
	return a.withStore(ctx, func(st store.Store) error {
		t, err := findTask(ctx, st, words)
		if err != nil {
			return err
		}
		return do(st, t)
	})
}

// onStore is what a command does with the store that the flags and the environment name.
func (a *app) onStore(do func(ctx context.Context, st store.Store, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return a.withStore(cmd.Context(), func(st store.Store) error { return do(cmd.Context(), st, args) })
	}
}

// onPlan is what a command does whose first argument names a plan.
func (a *app) onPlan(do func(context.Context, store.Store, plan.Plan) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return a.withPlan(cmd.Context(), args[0], func(st store.Store, p plan.Plan) error { return do(cmd.Context(), st, p) })
	}
}

// onTask is what a command does whose arguments name a task.
func (a *app) onTask(do func(context.Context, store.Store, plan.Task) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return a.withTask(cmd.Context(), args, func(st store.Store, t plan.Task) error { return do(cmd.Context(), st, t) })
	}
}

// isPrefix reports whether a word can be the start of an id.
func isPrefix(word string) bool {
	return word != "" && len(word) <= 24 && strings.Trim(strings.ToLower(word), "0123456789abcdef") == ""
}

func list[T any](items []T, word func(T) string) string {
	words := make([]string, len(items))
	for i, item := range items {
		words[i] = word(item)
	}
	return strings.Join(words, ", ")
}

// findQueue returns the queue with that name or id.
func findQueue(ctx context.Context, r store.Reader, word string) (plan.Queue, error) {
	queues, err := r.Queues(ctx)
	if err != nil {
		return plan.Queue{}, err
	}
	var names []string
	for _, q := range queues {
		if q.Name == word || q.ID.String() == word {
			return q, nil
		}
		names = append(names, q.Name)
	}
	more := cmp.Or(hint.Meant(word, names), fmt.Sprintf("; make it with %q", "sluice queue create "+word))
	return plan.Queue{}, fmt.Errorf("queue %q: %w%s", word, plan.ErrNotFound, more)
}
