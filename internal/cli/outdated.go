package cli

import (
	"context"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// outdated returns those tasks of a plan (items may be left out) that succeeded before some that they need ran again: a retry kept them, so
// that their outputs are of older inputs. Nothing starts before all that it needs has ended, so the times tell. What was skipped again has
// not run, and gives the same nothing as before.
func outdated(tasks []plan.Task) []string {
	byID := make(map[plan.TaskID]*plan.Task, len(tasks))
	for i := range tasks {
		byID[tasks[i].ID] = &tasks[i]
	}
	var names []string
	for i := range tasks {
		t := &tasks[i]
		if t.Status != plan.Succeeded || t.Ended.IsZero() {
			continue
		}
		for _, need := range t.Needs {
			p := byID[need]
			if p == nil || !p.Status.Finished() || p.Status == plan.Cancelled || !p.Ended.After(t.Ended) {
				continue
			}
			if p.Started.IsZero() || p.Started.After(t.Ended) { // else the clock of the store was set back meanwhile
				names = append(names, t.Key())
				break
			}
		}
	}
	return names
}

// outdatedStored is outdated for a plan that is in the store, once it has ended. Of a plan that was never retried it reads nothing.
func outdatedStored(ctx context.Context, r store.Reader, p *plan.Plan) ([]string, error) {
	if !p.State.Ended() || p.Edits == 0 || p.Counts.Succeeded == 0 {
		return nil, nil
	}
	var tasks []plan.Task
	err := eachTask(ctx, r, store.TaskQuery{Plan: p.ID, NoItems: true, Needs: true}, func(t *plan.Task) error {
		tasks = append(tasks, plan.Task{ID: t.ID, Name: t.Name, Needs: t.Needs, Status: t.Status, Started: t.Started, Ended: t.Ended})
		return nil
	})
	return outdated(tasks), err
}
