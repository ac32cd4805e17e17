package cli

import (
	"context"

	"github.com/seed-1177d267/sluice/internal/report"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// reacted finds out what has run below the tasks of a plan (items may be left out) that are to run again.
func reacted(tasks []plan.Task, again func(*plan.Task) bool) report.Reaction {
	index := make(map[plan.TaskID]int, len(tasks))
	children := make(map[plan.TaskID][]int, len(tasks))
	var taken []int
	for i := range tasks {
		index[tasks[i].ID] = i
		for _, need := range tasks[i].Needs {
			children[need] = append(children[need], i)
		}
		if tasks[i].Of.IsZero() && again(&tasks[i]) {
			taken = append(taken, i)
		}
	}
	below := func(from []int) map[int]bool {
		found := map[int]bool{}
		for all := from; len(all) > 0; all = all[1:] {
			for _, c := range children[tasks[all[0]].ID] {
				if !found[c] {
					found[c] = true
					all = append(all[:len(all):len(all)], c)
				}
			}
		}
		return found
	}
	var r report.Reaction
	kept := map[int]bool{}
	for i := range below(taken) {
		t := &tasks[i]
		if t.Status == plan.Succeeded && t.When != "" && t.When != plan.AllSucceeded && !again(t) {
			kept[i] = true
		}
	}
	undone := map[int]bool{}
	for i := range tasks { // in the plan's order
		if !kept[i] {
			continue
		}
		r.Ran = append(r.Ran, tasks[i].Key())
		if tasks[i].When != plan.AnyFailed && tasks[i].When != plan.AllFailed {
			continue
		}
		cleaned := false
		for _, need := range tasks[i].Needs {
			p, ok := index[need]
			switch {
			case !ok || kept[p]:
			case tasks[p].Status == plan.Succeeded:
				undone[p], cleaned = true, true
			case tasks[p].Foreach != nil && tasks[p].Expanded: // some of its items may have succeeded, and run again if it is named
				undone[p], cleaned = true, true
			}
		}
		if cleaned {
			r.Cleaned = append(r.Cleaned, tasks[i].Key())
		}
	}
	if len(undone) == 0 {
		return r
	}
	chosen := taken
	for i := range undone {
		chosen = append(chosen[:len(chosen):len(chosen)], i)
	}
	covered := below(chosen)
	named := map[int]bool{}
	for _, i := range chosen {
		named[i] = !covered[i]
	}
	for i := range tasks {
		if named[i] {
			r.Undone = append(r.Undone, tasks[i].Key())
		}
	}
	return r
}

// reactedStored is reacted for a plan that has ended, and what a retry of it takes.
func reactedStored(ctx context.Context, r store.Reader, p *plan.Plan) (report.Reaction, error) {
	if p.State != plan.PlanFailed && p.State != plan.PlanCancelled || p.Counts.Succeeded == 0 {
		return report.Reaction{}, nil
	}
	var tasks []plan.Task
	err := eachTask(ctx, r, store.TaskQuery{Plan: p.ID, NoItems: true, Needs: true}, func(t *plan.Task) error {
		tasks = append(tasks, plan.Task{
			ID: t.ID, Name: t.Name, Needs: t.Needs, Status: t.Status, Expanded: t.Expanded,
			Definition: plan.Definition{When: t.When, Foreach: t.Foreach},
		})
		return nil
	})
	if err != nil {
		return report.Reaction{}, err
	}
	return reacted(tasks, func(t *plan.Task) bool { return t.Status.Finished() && t.Status != plan.Succeeded }), nil
}
