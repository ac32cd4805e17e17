package compiler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// mostNoteSteps bounds the steps of Notes beyond the ancestors of one task: a plan may have
// thousands of clean-ups below a long chain.
const mostNoteSteps = 1 << 20

// Notes returns what is valid in a plan but probably not meant. These are names of secrets that
// match nothing, tasks for failures that some or all failures do not cause to run, and tasks with none_failed
// that run after some failures. The plan must be valid. Time and memory are linear in the number of tasks and needs.
func Notes(s *plan.Spec) plan.Problems {
	ps := append(secretNotes(s), finallyNotes(s)...)
	var g *blindSpots
	for i := range s.Tasks {
		t := &s.Tasks[i]
		none := t.When == plan.NoneFailed
		if !none && !needsFailure(t.When) || len(t.Needs) == 0 || t.Finally {
			continue
		}
		note := func(format string, args ...any) {
			ps = append(ps, plan.Problem{Task: i, Key: "when", Item: -1, Word: string(t.When), Message: fmt.Sprintf("task %q: "+format, append([]any{t.Name}, args...)...)})
		}
		if s.OnFailure == plan.Stop {
			if none { // nor does it run after a failure
				continue
			}
			note("when %s comes to nothing in this plan: once a task has failed, on_failure: stop, as --fail-fast, starts nothing more, "+
				"and clean-ups neither; put it into finally:, leave that out, or run the task by hand: sluice plan retry PLAN %s --run", t.When, t.Name)
			continue
		}
		if !none && t.When != plan.AnyFailed {
			continue // with more needs, all_failed would say something else
		}
		if g == nil {
			g = blind(s)
		}
		unseen := g.unseen(int32(i), none)
		if len(unseen) == 0 {
			continue
		}
		const most = 6 // needs that are written out
		shown := unseen[:min(len(unseen), 2)]
		do := "add " + strings.Join(shown, " and ") + " to its needs"
		if len(t.Needs)+len(shown) <= most {
			do = fmt.Sprintf("write needs: [%s]", strings.Join(slices.Concat(t.Needs, shown), ", "))
		}
		ends := "does not run; for it to run then too"
		if none {
			ends = "runs; for it to be skipped then"
		}
		note("when %s looks only at the tasks that it needs itself: if %s fails, what is between is skipped, which is no failure, "+
			"and it %s, %s", t.When, strings.Join(shown, " or "), ends, do)
	}
	return ps
}

// fewest is how many tasks a clean-up needs at least that is offered finally.
const fewest = 3

// finallyNotes offers finally for clean-ups that need all other tasks.
func finallyNotes(s *plan.Spec) (ps plan.Problems) {
	parent := map[string]bool{} // tasks that others need
	for i := range s.Tasks {
		for _, need := range s.Tasks[i].Needs {
			parent[need] = true
		}
	}
	last := func(t *plan.TaskSpec) bool {
		return t.Finally || rules.TellsResults(t.When) && t.Foreach == nil && t.Approve == nil && !parent[t.Name]
	}
	others := map[string]bool{}
	for i := range s.Tasks {
		if t := &s.Tasks[i]; !last(t) {
			others[t.Name] = true
		}
	}
	for i := range s.Tasks {
		t := &s.Tasks[i]
		if t.When != plan.AllDone && t.When != plan.AnyFailed || !last(t) || len(others) < fewest || len(t.Needs) < len(others) || t.Finally {
			continue
		}
		all := 0
		for _, need := range t.Needs {
			if others[need] {
				all++
			}
		}
		if all == len(others) {
			ps = append(ps, plan.Problem{Task: i, Key: "needs", Item: -1, Message: fmt.Sprintf(
				"task %q needs all other tasks; at finally: beside tasks: it needs none, and runs too if the plan is cancelled or stops on failure", t.Name)})
		}
	}
	return ps
}

// needsFailure reports whether the rule holds only if a parent has failed.
func needsFailure(w plan.When) bool {
	return rules.Decide(w, rules.OutcomeFailed, true) == rules.ToRun && rules.Decide(w, rules.OutcomeSucceeded, true) == rules.ToSkip && rules.Decide(w, rules.OutcomeSkipped, true) == rules.ToSkip
}

// blindSpots finds tasks whose failures nothing that looks for failures sees, by walks from a task to those above it.
type blindSpots struct {
	*plan.Graph
	spec    *plan.Spec
	handled []bool  // by task: a rule that needs a failure sees it
	place   []int32 // by task: in an order of parents before children
	seen    []reach // by task, of the walk
	steps   int     // of all walks
}

// reach is how a walk came to a task.
type reach uint8

const (
	reachedLost reach = 1 << iota // if it fails, all that leads from it to the parents of where the walk began is skipped
	reachedElse                   // or something in between runs all the same
	walkedLost                    // so for what is above it, which makes it skipped
	walkedElse
	reachedParent // it is one of those parents
	belowParent   // one of them is above it
)

func blind(s *plan.Spec) *blindSpots {
	n := len(s.Tasks)
	g := &blindSpots{Graph: s.Graph(), spec: s, handled: make([]bool, n), place: make([]int32, n), seen: make([]reach, n)}
	order, _ := g.Order()
	for k, i := range order {
		g.place[i] = int32(k)
	}
	for i := range s.Tasks {
		for _, p := range g.Parents(i) {
			g.handled[p] = g.handled[p] || needsFailure(s.Tasks[i].When)
		}
	}
	return g
}

// unseen returns tasks above the given one, the nearest first. The given task's rule looks for a
// failure, but does not see theirs, because all tasks between are skipped. Unless every is set, two kinds of tasks are
// left out, because their author has not forgotten them. The first are tasks whose failure another
// such rule sees, as when each step has a clean-up of its own. The second are tasks above two
// parents of which one is above the other: there the author has chosen where the rule begins.
func (g *blindSpots) unseen(task int32, every bool) (names []string) {
	if g.steps > mostNoteSteps {
		return nil
	}
	type step struct {
		task int32
		lost bool // if it is skipped, all that leads from it to where the walk began is, or is that
	}
	var walk []step
	at := func(task int32, lost bool) {
		bit := walkedElse
		if lost {
			bit = walkedLost
		}
		if g.seen[task]&bit == 0 {
			g.seen[task] |= bit
			walk = append(walk, step{task, lost})
		}
	}
	for _, p := range g.Parents(int(task)) {
		g.seen[p] |= reachedParent
		at(p, true)
	}
	for k := 0; k < len(walk); k++ {
		t := &g.spec.Tasks[walk[k].task]
		failed, skipped := walk[k].lost && lost(t, rules.OutcomeFailed), walk[k].lost && lost(t, rules.OutcomeSkipped)
		for _, p := range g.Parents(int(walk[k].task)) {
			if failed {
				g.seen[p] |= reachedLost
			} else {
				g.seen[p] |= reachedElse
			}
			at(p, skipped)
			g.steps++
		}
	}
	want := reachedLost
	if !every && slices.ContainsFunc(g.Parents(int(task)), func(p int32) bool { return g.seen[p]&(reachedLost|reachedElse) != 0 }) {
		want |= belowParent
		down := slices.SortedFunc(slices.Values(walk), func(a, b step) int { return cmp.Compare(g.place[a.task], g.place[b.task]) })
		for _, s := range down {
			i := s.task
			if slices.ContainsFunc(g.Parents(int(i)), func(p int32) bool { return g.seen[p]&(reachedParent|belowParent) != 0 }) {
				g.seen[i] |= belowParent
			}
		}
	}
	// A task may have been reached in both ways, the second time last: only now it is known.
	for _, step := range walk {
		i := step.task
		t := &g.spec.Tasks[i]
		if g.seen[i]&want == want && g.seen[i]&(reachedElse|reachedParent) == 0 && !t.ContinueOnError && (every || !g.handled[i]) {
			names = append(names, t.Name)
		}
		g.seen[i] = 0
	}
	return names
}

// lost reports whether the task runs if all that it needs succeeds, and is skipped if one of them ends as the given outcome instead.
func lost(t *plan.TaskSpec, one rules.Outcome) bool {
	if len(t.Parents()) > 1 {
		one |= rules.OutcomeSucceeded
	}
	return rules.Decide(t.When, rules.OutcomeSucceeded, true) == rules.ToRun && rules.Decide(t.When, one, true) == rules.ToSkip
}
