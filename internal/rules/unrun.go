package rules

import "github.com/seed-1177d267/sluice/plan"

// Unrun returns the clean-ups, mails and reports that a stop of the plan skips. Their When is not
// AllSucceeded, and they would run if only the running tasks were stopped instead. running are the
// tasks to stop for that. A foreach task is among them in place of its items, if one of these runs.
// tasks are all tasks of the plan, with Status, Reason, Needs, When, Of, Expanded and
// ContinueOnError. The caller may omit items that do not run.
//
// A task that is stopped counts as failed. Any other task that has not started counts as its When says, and as succeeded if it may run.
// In a plan that is closed, what was cancelled has not started either.
func Unrun(tasks []plan.Task, closed bool) (unrun, running []plan.Task) {
	u := unrunning{tasks: tasks, closed: closed, waits: make([]int, len(tasks)), seen: make([]Outcome, len(tasks))}
	active := map[plan.TaskID]bool{} // tasks that run, and foreach tasks of which an item does
	g := plan.NewGraph(tasks)
	var next []int
	for i := range tasks {
		if t := &tasks[i]; t.Status.Active() {
			active[t.ID], active[t.Of] = true, true
		}
		u.waits[i] = len(g.Parents(i))
		if u.waits[i] < len(tasks[i].Needs) {
			u.seen[i] = OutcomeCancelled // a parent was deleted
		}
		if u.waits[i] == 0 {
			next = append(next, i)
		}
	}
	runs := make([]bool, len(tasks))
	for k := 0; k < len(next); k++ {
		i := next[k]
		outcome, starts := u.end(i)
		runs[i] = starts && TellsResults(tasks[i].When) && tasks[i].Of.IsZero()
		for _, c := range g.Children(i) {
			u.seen[c] |= outcome
			if u.waits[c]--; u.waits[c] == 0 {
				next = append(next, int(c))
			}
		}
	}
	for i := range tasks {
		switch {
		case runs[i]:
			unrun = append(unrun, tasks[i])
		case active[tasks[i].ID] && tasks[i].Of.IsZero():
			running = append(running, tasks[i])
		}
	}
	return unrun, running
}

type unrunning struct {
	tasks  []plan.Task
	closed bool
	waits  []int     // for how many parents
	seen   []Outcome // of the others
}

// end says how a task counts for its children, and whether it would be started for that.
func (u *unrunning) end(i int) (Outcome, bool) {
	t := &u.tasks[i]
	switch {
	case t.Status.Active() || t.Status == plan.Held && t.Expanded: // items of it may have run
		return OutcomeOf(plan.Terminated, plan.ReasonCancelled, t.ContinueOnError), false
	case t.Status.Finished() && !(u.closed && t.Status == plan.Cancelled):
		return OutcomeOfTask(t), false
	case Decide(t.When, u.seen[i], true) != ToRun:
		return OutcomeSkipped, false
	}
	return OutcomeSucceeded, true
}
