package explain

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/seed-1177d267/sluice/internal/duration"
	"github.com/seed-1177d267/sluice/internal/hint"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/states"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// finished explains a task that will not run: it ended already.
func (e *explainer) finished(t *plan.Task, p *plan.Plan) (Link, *plan.Task, error) {
	when := ""
	if !t.Ended.IsZero() {
		when = fmt.Sprintf(" %s ago", duration.Text(e.now.Sub(t.Ended)))
	}
	ended := "it ended" + when
	failed, err := e.handled(t)
	if err != nil {
		return Link{}, nil, err
	}
	if failed != nil {
		ended = fmt.Sprintf("it ran because %s is %s, and ended%s", failed.Key(), states.OfTask(failed), when)
	}
	if t.Detail != "" {
		ended = t.Detail + "; " + ended
	}
	switch {
	case t.Status == plan.Succeeded && t.Expanded && (t.ContinueOnError || t.MaxFailures != ""):
		failed, err := e.failedItem(t)
		if failed != nil {
			by := "continue-on-error"
			if t.MaxFailures != "" {
				by = "max_failures: " + t.MaxFailures
			}
			ended = fmt.Sprintf("not all of its %d items did, which counts as succeeded (%s); %s", t.Items, by, ended)
		}
		return Link{Why: ended}, failed, err
	case t.Status == plan.Succeeded:
		link, err := e.kept(t, p, ended)
		link.Why = cmp.Or(link.Why, ended)
		return link, failed, err
	case t.Status == plan.Cancelled && t.Reason == plan.ReasonSkipped:
		return e.skipped(t, p)
	case rules.Gone(t.Status, t.Reason):
		return Link{Why: ended}, nil, nil
	case t.Status == plan.Cancelled && t.Expanded:
		item, err := e.item(t, plan.Cancelled)
		return Link{Why: cmp.Or(t.Detail, byPerson(t)) + when, Hint: hint.Retry(t, p)}, item, err
	case t.Status == plan.Cancelled:
		return Link{Why: byPerson(t) + when, Hint: hint.Retry(t, p)}, nil, nil
	case t.Reason == plan.ReasonCancelled && !rules.TellsStop(t.Detail):
		ended = byPerson(t) + " while it ran; " + ended
	case t.Reason == plan.ReasonItems:
		failed, err := e.failedItem(t)
		return Link{Why: t.Detail + when}, failed, err
	}
	printed, _, err := e.r.Log(e.ctx, t.ID, 0, 1)
	if err != nil || len(printed) == 0 { // an empty log has no more to tell
		link := Link{Why: ended}
		if t.Reason == plan.ReasonCancelled {
			link.Hint = hint.Retry(t, p)
		}
		return link, nil, err
	}
	return Link{Why: ended, Hint: hint.Log(t, p)}, nil, nil
}

// handled returns the first task for whose failure the given one ran, nil if its rule waits for none.
func (e *explainer) handled(t *plan.Task) (*plan.Task, error) {
	if t.Finally || t.Attempt == 0 || rules.Decide(t.When, rules.OutcomeSucceeded, true) != rules.ToSkip {
		return nil, nil
	}
	parents, err := e.parents(t)
	for i := range parents {
		if rules.OutcomeOfTask(&parents[i]) == rules.OutcomeFailed {
			return e.task(parents[i].ID)
		}
	}
	return nil, err
}

// byPerson says who cancelled a task, or that the time of its plan did. Whether it was the task or its plan that somebody cancelled is not kept.
func byPerson(t *plan.Task) string {
	switch {
	case t.Detail == rules.ByTimeout:
		return rules.ByTimeout
	case t.Plan.IsZero():
		return "a person cancelled it"
	}
	return "a person cancelled it or its plan"
}

// skipped finds the parent because of which a task did not run.
func (e *explainer) skipped(t *plan.Task, p *plan.Plan) (Link, *plan.Task, error) {
	if t.Finally && t.Of.IsZero() && !rules.SkippedItself(t) && t.Detail == "" {
		return Link{Why: fmt.Sprintf("its when %s does not hold: %s", whenWord(t.When), othersEnded(t))}, nil, nil
	}
	parents, err := e.parents(t)
	if err != nil {
		return Link{}, nil, err
	}
	for i := range parents {
		if !decides(t, &parents[i]) {
			continue
		}
		full, err := e.task(parents[i].ID)
		if whenWord(t.When) == string(plan.AllSucceeded) { // which is so where nobody wrote a when
			return Link{Why: fmt.Sprintf("it needs %s, which is %s", full.Key(), states.OfTask(full))}, full, err
		}
		return Link{Why: fmt.Sprintf("its when %s does not hold: %s is %s", whenWord(t.When), full.Key(), counted(&parents[i]))}, full, err
	}
	var seen rules.Outcome
	for i := range parents {
		seen |= rules.OutcomeOfTask(&parents[i])
	}
	switch {
	case seen != 0 && rules.Wants(t.When) != 0 && rules.Decide(t.When, seen, true) == rules.ToSkip:
		return Link{Why: fmt.Sprintf("its when %s does not hold, as none of what it needs %s: %s", whenWord(t.When), wanted[rules.Wants(t.When)], howEnded(parents))}, nil, nil
	case t.Detail != "" && t.Detail != rules.ByFailure:
		return Link{Why: t.Detail, Hint: hint.Retry(t, p)}, nil, nil
	case p.OnFailure == plan.Stop:
		return Link{Why: fmt.Sprintf("its plan %s started nothing more once a task had failed (on_failure: stop)", p.Title()), Hint: hint.Retry(t, p)}, nil, nil
	}
	return Link{Why: "it was skipped", Hint: hint.Retry(t, p)}, nil, nil
}

// othersEnded says how the other tasks of the plan ended because of which a task of finally was skipped.
func othersEnded(t *plan.Task) string {
	if rules.Decide(t.When, rules.OutcomeSucceeded, true) == rules.ToSkip {
		return "the other tasks succeeded"
	}
	return "not all other tasks succeeded"
}

// wanted has the verb for each outcome that a rule may want of some parent.
var wanted = map[rules.Outcome]string{rules.OutcomeFailed: "failed", rules.OutcomeSucceeded: "succeeded", rules.OutcomeSkipped: "was skipped"}

// mostEnded is how many parents howEnded names.
const mostEnded = 5

// howEnded says how the first parents of a task ended, as in "copy succeeded, load was skipped".
func howEnded(parents []plan.Task) string {
	var parts []string
	for i := range parents {
		p := &parents[i]
		if more := len(parents) - i; i == mostEnded && more > 1 {
			parts = append(parts, fmt.Sprintf("and %d others", more))
			break
		}
		verb := " "
		switch {
		case !p.Status.Finished():
			verb = " is "
		case p.State() != plan.Succeeded.String() && p.State() != plan.Failed.String():
			verb = " was "
		}
		parts = append(parts, p.Key()+verb+counted(p))
	}
	return strings.Join(parts, ", ")
}

// counted is a parent's state, with what it counts as where that is something else.
func counted(p *plan.Task) string {
	if p.Status != plan.Succeeded && rules.OutcomeOfTask(p) == rules.OutcomeSucceeded {
		return states.Word(p.State()) + ", which counts as succeeded (continue-on-error)"
	}
	return states.OfTask(p)
}

// decides reports whether it is for this parent alone that the task does not run.
func decides(t, parent *plan.Task) bool {
	out := rules.OutcomeOfTask(parent)
	return out != 0 && rules.Decide(t.When, out, false) == rules.ToSkip
}

// Skips says in a few words why tasks were skipped, as in "verify failed". It names the parent that
// caused it, or the rule that did not hold. It leaves out tasks whose Detail says so, and tasks
// that a stopped plan did not start.
func Skips(ctx context.Context, r Reader, tasks []plan.Task) (map[plan.TaskID]string, error) {
	var ids []plan.TaskID
	for i := range tasks {
		if t := &tasks[i]; t.Status == plan.Cancelled && t.Reason == plan.ReasonSkipped && t.Detail == "" {
			ids = append(ids, t.ID)
		}
	}
	skipped, err := store.TasksByID(ctx, r, store.TaskQuery{Needs: true}, ids)
	if err != nil {
		return nil, err
	}
	var needs []plan.TaskID
	for i := range skipped {
		needs = append(needs, skipped[i].Needs...)
	}
	found, err := store.TasksByID(ctx, r, store.TaskQuery{}, needs)
	if err != nil {
		return nil, err
	}
	parents := make(map[plan.TaskID]*plan.Task, len(found))
	for i := range found {
		parents[found[i].ID] = &found[i]
	}
	why := make(map[plan.TaskID]string, len(skipped))
	for i := range skipped {
		if text := skipOf(&skipped[i], parents); text != "" {
			why[skipped[i].ID] = text
		}
	}
	return why, nil
}

// skipOf says why one task was skipped, given its parents.
func skipOf(t *plan.Task, parents map[plan.TaskID]*plan.Task) string {
	rule := ""
	if w := whenWord(t.When); w != string(plan.AllSucceeded) {
		rule = "when " + w + ": "
	}
	if t.Finally {
		return rule + othersEnded(t)
	}
	var seen rules.Outcome
	for _, id := range t.Needs {
		p := parents[id]
		if p == nil {
			continue // the deletion of its plan has begun
		}
		if decides(t, p) {
			return rule + p.Key() + " " + counted(p)
		}
		seen |= rules.OutcomeOfTask(p)
	}
	if seen != 0 && rules.Decide(t.When, seen, true) == rules.ToSkip {
		return "when " + whenWord(t.When) + " does not hold"
	}
	return ""
}

func (e *explainer) failedItem(t *plan.Task) (*plan.Task, error) {
	return e.item(t, plan.Failed, plan.Terminated, plan.Orphaned)
}

// item returns the first item of a foreach task that is in one of the states, nil if none is.
func (e *explainer) item(t *plan.Task, in ...plan.Status) (*plan.Task, error) {
	found, err := e.r.Tasks(e.ctx, store.TaskQuery{Plan: t.Plan, Of: t.ID, Statuses: in, Limit: 1})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}
