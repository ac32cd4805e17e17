package compiler_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// ruled is needs with the rule of a task, or its continue-on-error, after a second colon.
func ruled(lines ...string) *plan.Spec {
	s := plan.New("p")
	for _, line := range lines {
		parts := strings.Split(line+"::", ":")
		t := plan.TaskSpec{Name: parts[0], Needs: strings.Fields(parts[1])}
		if rule := strings.TrimSpace(parts[2]); rule == "continue-on-error" {
			t.ContinueOnError = true
		} else {
			t.When = plan.When(rule)
		}
		s.Add(t)
	}
	return s
}

func TestAFailureThatARuleDoesNotSeeIsNoted(t *testing.T) {
	rollBack := func(needs string) string { return "roll-back:" + needs + ":any_failed" }
	for _, c := range []struct {
		name string
		plan *plan.Spec
		says string // "": nothing
	}{
		{"steps above the one that is needed", ruled("backup", "alter:backup", "check:alter", rollBack("check")),
			"if alter or backup fails, what is between is skipped, which is no failure, and it does not run; for it to run then too, write needs: [check, alter, backup]"},
		{"one step above", ruled("alter", "check:alter", rollBack("check")), "if alter fails, "},
		{"two steps are needed", ruled("backup", "alter:backup", rollBack("backup alter")), ""},
		{"every step is needed", ruled("backup", "alter:backup", "check:alter", rollBack("backup alter check")),
			"needs all other tasks; at finally: beside tasks: it needs none"},
		{"the rule of a step between needs success too", ruled("a", "b:a:none_skipped", "c:b:none_skipped", rollBack("c")), ""},
		{"what is between runs if one that it needs is skipped", ruled("a", "b:a", "c:b a:none_failed", rollBack("c")), "if b fails, "},
		{"what is between runs all the same", ruled("alter", "check:alter:all_done", rollBack("check")), ""},
		{"one way between runs all the same", ruled("alter", "check:alter", "report:alter:all_done", rollBack("check report")), ""},
		{"one way further up runs all the same", ruled("a", "b:a", "c:a:all_done", "d:c", rollBack("b d")), "if c fails, "},
		{"a failure that counts as success", ruled("alter::continue-on-error", "check:alter", rollBack("check")), ""},
		{"above a failure that counts as success", ruled("backup", "alter:backup:continue-on-error", "check:alter", rollBack("check")), "if backup fails, "},
		{"a step above those that are needed, one of which is above the other", ruled("backup", "alter:backup", "check:alter", rollBack("alter check")), ""},
		{"a step between those that are needed", ruled("backup", "alter:backup", "fill:alter", "check:fill", rollBack("alter check")), "write needs: [alter, check, fill]"},
		{"none_failed runs after a failure above a skip", ruled("a", "b:a", "undo:a:any_failed", "roll-back:b:none_failed"),
			"if a fails, what is between is skipped, which is no failure, and it runs; for it to be skipped then, write needs: [b, a]"},
		{"also above all that it needs", ruled("z", "a:z", "b:a", "roll-back:b a:none_failed"), "write needs: [b, a, z]"},
		{"none_failed that needs every step", ruled("a", "b:a", "roll-back:a b:none_failed"), ""},
		{"so in another order of the file, and a step beside them", ruled("fill:alter", "alter", "other", "check:fill other", rollBack("alter check")), "write needs: [alter, check, fill]"},
		{"each step has a clean-up of its own", ruled("a", "b:a", "c:b", "undo-a:a:any_failed", "undo-b:b:any_failed", "undo-c:c:any_failed"), ""},
		{"a rule that only looks at the end", ruled("a", "b:a", "c:b:all_done"), ""},
		{"all failed, of which more needs make another rule", ruled("a", "b:a", "c:b:all_failed"), ""},
		{"many steps", ruled("o", "a:o", "b:a", "c:b", "d:c", "e:d", "f:e", rollBack("f")), "if e or d fails, what is between is skipped, which is no failure, " +
			"and it does not run; for it to run then too, write needs: [f, e, d]"},
		{"a step above two that are side by side may be a backup", ruled("backup", "convert:backup", "index:backup", "check:convert index", rollBack("check")),
			"if convert or index fails, what is between is skipped, which is no failure, and it does not run; for it to run then too, write needs: [check, convert, index]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := compiler.Validate(c.plan); err != nil {
				t.Fatal(err)
			}
			got := compiler.Notes(c.plan)
			switch {
			case c.says == "" && len(got) == 0:
			case len(got) != 1 || c.says == "" || !strings.Contains(got[0].Message, c.says) || (got[0].Key != "when") != strings.Contains(c.says, "finally:") || c.plan.Tasks[got[0].Task].Name != "roll-back":
				t.Errorf("notes are %q, want one of roll-back that says %q", got, c.says)
			}
		})
	}
}

func TestARuleThatNeedsAFailureIsNotedWhereAFailureStopsThePlan(t *testing.T) {
	for when, noted := range map[plan.When]bool{
		plan.AnyFailed: true, plan.AllFailed: true, plan.AllDone: false, plan.AllSucceeded: false, plan.NoneSkipped: false, plan.AnySkipped: false,
		plan.AllSkipped: false, plan.NoneFailed: false, plan.AnySucceeded: false, plan.NoneFailedAnySucceeded: false,
	} {
		s := ruled("a", "b:a", "c:a b:"+string(when))
		if got := compiler.Notes(s); len(got) != 0 {
			t.Errorf("when %s: notes are %q, want none", when, got)
		}
		s.OnFailure = plan.Stop
		if got := compiler.Notes(s); (len(got) == 1 && strings.Contains(got[0].Message, "on_failure: stop")) != noted {
			t.Errorf("when %s under on_failure: stop: notes are %q; wanted: %t", when, got, noted)
		}
	}
}

// A note is true. If a task that it names fails alone, the task with the rule does not run; with
// the needs that the note proposes, it does. With none_failed it is the other way round.
func TestWhatIsNotedOfRulesHappens(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	noted := 0
	for range 10_000 {
		s := plan.New("p")
		for i := range 3 + rng.IntN(5) {
			spec := plan.TaskSpec{Name: fmt.Sprint("t", i), ContinueOnError: rng.IntN(8) == 0}
			for k := range i {
				if rng.IntN(3) == 0 {
					spec.Needs = append(spec.Needs, fmt.Sprint("t", k))
				}
			}
			if len(spec.Needs) > 0 && rng.IntN(2) == 0 {
				spec.When = rules.Whens()[rng.IntN(len(rules.Whens()))]
			} else if len(spec.Needs) > 0 && rng.IntN(3) == 0 {
				spec.When = plan.AnyFailed
			}
			s.Add(spec)
		}
		for _, p := range compiler.Notes(s) {
			noted++
			_, list, ok := strings.Cut(p.Message, "write needs: [")
			if !ok {
				continue
			}
			task := &s.Tasks[p.Task]
			before, runs := task.Needs, task.When == plan.NoneFailed
			after := strings.Split(strings.TrimSuffix(list, "]"), ", ")
			for _, name := range after[len(before):] {
				if runsThough(s, p.Task, name) != runs {
					t.Fatalf("%v: %s runs though %s fails: %t: %+v", p, task.Name, name, !runs, s.Tasks)
				}
				task.Needs = after
				if runsThough(s, p.Task, name) == runs {
					t.Fatalf("%v: with these needs it makes no difference to %s when %s fails: %+v", p, task.Name, name, s.Tasks)
				}
				task.Needs = before
			}
		}
	}
	if noted < 500 {
		t.Errorf("%d rules in all are noted: that is too few to tell", noted)
	}
}

// runsThough reports whether a task runs where the named one, if it runs, fails, and all others succeed. Tasks are in the order of their needs.
func runsThough(s *plan.Spec, task int, fails string) bool {
	outcomes := map[string]rules.Outcome{}
	for i := range s.Tasks {
		t := &s.Tasks[i]
		var seen rules.Outcome
		for _, need := range t.Needs {
			seen |= outcomes[need]
		}
		runs := rules.Decide(t.When, seen, true) == rules.ToRun
		if i == task {
			return runs
		}
		switch {
		case !runs && t.Name == fails: // it is skipped itself: then nothing is claimed of its failure
			return slices.Contains(s.Tasks[task].Needs, fails) != (s.Tasks[task].When == plan.NoneFailed)
		case !runs:
			outcomes[t.Name] = rules.OutcomeSkipped
		case t.Name == fails && !t.ContinueOnError:
			outcomes[t.Name] = rules.OutcomeFailed
		default:
			outcomes[t.Name] = rules.OutcomeSucceeded
		}
	}
	return false
}

func TestNotesOfManyCleanUpsTakeLinearTime(t *testing.T) {
	const steps = 100_000 // in quadratic time it would take many minutes
	s := plan.New("large")
	for i := range steps { // a chain, and for each step a clean-up that does not see the others
		step := plan.TaskSpec{Name: fmt.Sprint("s", i)}
		if i > 0 {
			step.Needs = []string{fmt.Sprint("s", i-1)}
		}
		s.Add(step)
		between := s.Add(plan.TaskSpec{Name: fmt.Sprint("b", i), Needs: []string{step.Name}})
		s.Add(plan.TaskSpec{Name: fmt.Sprint("c", i), Needs: []string{between.Name}, When: plan.AnyFailed})
	}
	start := time.Now()
	notes := compiler.Notes(s)
	if took := time.Since(start); took > 2*time.Minute {
		t.Errorf("the notes of %d tasks took %v", len(s.Tasks), took)
	}
	if len(notes) == 0 {
		t.Error("there are no notes")
	}
}
