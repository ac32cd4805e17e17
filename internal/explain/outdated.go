package explain

import (
	"context"
	"fmt"

	"github.com/seed-1177d267/sluice/internal/hint"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// Outdated returns the names of the tasks whose outputs a retry kept, although they come from older
// inputs. It returns none before the plan has ended. It reads all of its tasks, items aside; of a
// plan that was never retried it reads nothing.
func Outdated(ctx context.Context, r store.TaskReader, p *plan.Plan) (names []string, err error) {
	if !p.State.Ended() || p.Edits == 0 || p.Counts.Succeeded == 0 {
		return nil, nil
	}
	var tasks []plan.Task
	err = store.EachTask(ctx, r, store.TaskQuery{Plan: p.ID, NoItems: true, Needs: true}, func(t *plan.Task) error {
		tasks = append(tasks, plan.Task{ID: t.ID, Name: t.Name, Needs: t.Needs, Status: t.Status, Started: t.Started, Ended: t.Ended})
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, t := range rules.Outdated(tasks) {
		names = append(names, t.Key())
	}
	return names, nil
}

// kept explains a task that succeeded although a task that it needs ran again since; Why is "" if
// that is not so. Items are made of the inputs of their foreach task, and go with that.
func (e *explainer) kept(t *plan.Task, p *plan.Plan, ended string) (Link, error) {
	if t.Plan.IsZero() || !p.State.Ended() || p.Edits == 0 {
		return Link{}, nil
	}
	parents, err := e.parents(t)
	if err != nil {
		return Link{}, err
	}
	for i := range parents {
		if !rules.OlderThan(t, &parents[i]) {
			continue
		}
		of := t
		if !t.Of.IsZero() {
			if of, err = e.task(t.Of); err != nil {
				return Link{}, err
			}
		}
		return Link{
			Why:  fmt.Sprintf("%s; a retry kept it, and %s, which it needs, ran again since: its output comes from earlier inputs; to run it again, and what is below", ended, parents[i].Key()),
			Hint: hint.Below(of, p),
		}, nil
	}
	return Link{}, nil
}
