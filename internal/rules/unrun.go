package rules

import "github.com/seed-1177d267/sluice/plan"

// Unrun returns the clean-ups, mails and reports that do not run, or do not run to their end, if the
// plan is stopped now, or that did not because it was stopped (closing). Their When is not
// AllSucceeded. They are those that a retry of all of them runs once the plan has ended. running are
// the other tasks that run, with a foreach task in place of its items: a person could stop these
// instead of the plan.
//
// Tasks of finally run whatever stops the others, so that none of them is left out. They are in neither
// list: only a cancellation of the plan stops them.
//
// tasks are all tasks of the plan, with Finally, Status, Reason, Needs, When, Of, Expanded, Ran and
// ContinueOnError. The caller may omit items that no node has, except one that ran of each foreach
// task that waits for its items, and one that was stopped of each that failed with plan.ReasonItems.
//
// A task that has not finished counts as Halted says. A foreach task ran if one of its items did. A
// clean-up that ran and was stopped is to run again only if CleansUp. Any other task that was stopped
// is work that failed, and what is below it cleans up after it. A retry of a clean-up also takes what
// was skipped or cancelled below, and what asks its question again. These then count as their When
// says, and as succeeded if they may run. In a plan that is closed, what was cancelled has not started.
func Unrun(tasks []plan.Task, closing plan.Closing) (unrun, running []plan.Task) {
	u := seeEnd(plan.NewGraph(tasks), tasks, closing)
	active := map[plan.TaskID]bool{} // tasks that a node has, and foreach tasks of which it has an item
	for i := range tasks {
		if t := &tasks[i]; t.Status.Active() {
			active[t.ID], active[t.Of] = true, true
		}
	}
	for i := range tasks {
		switch {
		case u.runs[i]:
			unrun = append(unrun, tasks[i])
		case active[tasks[i].ID] && tasks[i].Of.IsZero() && !tasks[i].Finally:
			running = append(running, tasks[i])
		}
	}
	return unrun, running
}

// unrunning is how the tasks of a plan end if it is stopped now, or ended.
type unrunning struct {
	tasks   []plan.Task
	closing plan.Closing
	ran     map[plan.TaskID]bool
	stopped map[plan.TaskID]bool
	seen    []Outcome // of the parents
	below   []bool    // a retry of the clean-ups takes a parent
	asked   []bool    // and asks the question of the task again, or of one above it
	runs    []bool    // the clean-ups that such a retry runs
}

// seeEnd goes through the tasks from the roots on, as Unrun says.
func seeEnd(g *plan.Graph, tasks []plan.Task, closing plan.Closing) *unrunning {
	u := &unrunning{
		tasks: tasks, closing: closing, ran: map[plan.TaskID]bool{}, stopped: map[plan.TaskID]bool{}, seen: make([]Outcome, len(tasks)),
		below: make([]bool, len(tasks)), asked: make([]bool, len(tasks)), runs: make([]bool, len(tasks)),
	}
	waits := make([]int, len(tasks)) // for how many parents
	var next []int
	for i := range tasks {
		t := &tasks[i]
		if HasRun(t) {
			u.ran[t.ID], u.ran[t.Of] = true, true
		}
		if t.Status == plan.Terminated {
			u.stopped[t.ID], u.stopped[t.Of] = true, true
		}
		waits[i] = len(g.Parents(i))
		if waits[i] < len(t.Needs) {
			u.seen[i] = OutcomeCancelled // a parent was deleted
		}
		if waits[i] == 0 {
			next = append(next, i)
		}
	}
	for k := 0; k < len(next); k++ {
		i := next[k]
		outcome, again := u.end(i)
		u.runs[i] = again && outcome == OutcomeSucceeded && TellsResults(tasks[i].When) && u.left(i) && tasks[i].Of.IsZero()
		for _, c := range g.Children(i) {
			u.seen[c] |= outcome
			u.below[c] = u.below[c] || again
			u.asked[c] = u.asked[c] || u.asked[i] || again && TellsResults(tasks[c].When)
			if waits[c]--; waits[c] == 0 {
				next = append(next, int(c))
			}
		}
	}
	return u
}

// owes reports whether the task is a clean-up that is to run, and has not succeeded.
func (u *unrunning) owes(i int) bool {
	t := &u.tasks[i]
	return t.Status != plan.Succeeded && !t.Finally && TellsResults(t.When) && Decide(t.When, u.seen[i], true) == ToRun
}

// end says how a task counts for its children, and whether a retry of the clean-ups takes it.
func (u *unrunning) end(i int) (o Outcome, again bool) {
	t := &u.tasks[i]
	if u.asked[i] || u.left(i) {
		switch runs := Decide(t.When, u.seen[i], true) == ToRun; {
		case runs && (u.below[i] || TellsResults(t.When)):
			return OutcomeSucceeded, true
		case u.below[i]:
			return OutcomeSkipped, true
		}
	}
	if t.Status.Finished() {
		return OutcomeOfTask(t), false
	}
	s := Halted(plan.Held, u.ran[t.ID], u.closing)
	return OutcomeOf(s.Status, s.Reason, t.ContinueOnError), false
}

// left reports whether the stop leaves a task out, or a clean-up half-way.
func (u *unrunning) left(i int) bool {
	t := &u.tasks[i]
	switch finished := t.Status.Finished(); {
	case t.Finally:
		return false
	case !finished && !u.ran[t.ID], finished && u.closing != plan.Open && t.Status == plan.Cancelled:
		return true
	case finished && (u.closing == plan.Open || !u.stopped[t.ID]), t.Expanded && t.ContinueOnError:
		return false // a foreach task that allows its items to be stopped may succeed then
	}
	return CleansUp(t.When)
}
