package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/halt"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func keys(tasks []plan.Task) []string { return api.Each(tasks, (*plan.Task).Key) }

// noteUnrun names the clean-ups that will not finish, because a plan is cancelled, and
// that a retry runs. The person could have cancelled the other running tasks instead.
func (a *app) noteUnrun(p *plan.Plan, unrun, running []plan.Task) {
	if len(unrun) == 0 {
		return
	}
	const most = 5
	names, shown := keys(unrun), "TASK..."
	if len(names) <= most {
		shown = strings.Join(names, " ")
	}
	a.note("clean-ups that will not finish, because the plan is cancelled: %s; to run these, and what is below, once the plan has ended: %s",
		firstNames(names, most), a.command(append(append([]string{"plan", "retry", p.Title()}, strings.Fields(shown)...), "--run")...))
	if len(running) > 0 && p.OnFailure != plan.Stop {
		a.note("next time, to cancel only the running tasks, so that clean-ups run: %s", a.command("plan", "cancel", "--running", p.Title()))
	}
}

// cleanUpsOf returns the clean-ups of a task, or of the foreach task that it is an item of, that have not ended.
func cleanUpsOf(ctx context.Context, st store.Reader, t *plan.Task) (names []string, err error) {
	if t.Plan.IsZero() {
		return nil, nil
	}
	err = store.EachTask(ctx, st, store.TaskQuery{Plan: t.Plan, NoItems: true, Needs: true}, func(c *plan.Task) error {
		above := slices.Contains(c.Needs, t.ID) || !t.Of.IsZero() && slices.Contains(c.Needs, t.Of)
		if above && !c.Status.Finished() && rules.NeedsParents(c.When) && rules.CleansUp(c.When) {
			names = append(names, c.Key())
		}
		return nil
	})
	return names, err
}

// noteCleanUps names the clean-ups of a task that a person stopped: they run once it has ended, or its plan leaves
// them out, because it stops at a failure.
func (a *app) noteCleanUps(ctx context.Context, st store.Reader, t *plan.Task, names []string) error {
	if len(names) == 0 {
		return nil
	}
	p, err := st.Plan(ctx, t.Plan)
	if err != nil {
		return err
	}
	const most = 5
	switch {
	case p.OnFailure == plan.Stop && !t.ContinueOnError:
		a.note("not run, since %s has on_failure: stop: %s; to run this later: %s", p.Title(), firstNames(names, most),
			a.command(append(append([]string{"plan", "retry", p.Title()}, names[:min(len(names), most)]...), "--run")...))
	default:
		a.note("what cleans up after it runs once it has been stopped: %s", firstNames(names, most))
	}
	return nil
}

// askOfCleanUps asks a person at a terminal whether clean-ups that wait are to run. It returns "all" if
// the whole plan is to be cancelled, which is taken for meant where nobody can be asked, and "running"
// if what runs is.
func (a *app) askOfCleanUps(p *plan.Plan, unrun []plan.Task) (what string, err error) {
	lines, ok := a.person()
	if len(unrun) == 0 || !ok {
		return "all", nil
	}
	a.note("if %s is cancelled, clean-ups will not finish: %s", p.Title(), firstNames(keys(unrun), 5))
	for {
		fmt.Fprint(a.Stderr, "Cancel all, running tasks only (then the clean-ups run), or nothing? [all/running/nothing] ")
		switch what, ok := a.answered(lines, "all", "running", "nothing"); {
		case !ok:
			return "", errors.Join(lines.Err(), fmt.Errorf("%s was not cancelled: no answer", p.Title()))
		case what == "nothing":
			return "", fmt.Errorf("%s was not cancelled", p.Title())
		case what != "":
			return what, nil
		}
	}
}

// firstNames joins the first of some names.
func firstNames(names []string, most int) string {
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}

// cancelRunning cancels the tasks of a plan that run, which counts as their failure. It leaves the
// plan, and the clean-ups that run.
func (a *app) cancelRunning(ctx context.Context, st store.Store, p *plan.Plan) error {
	stopped, err := halt.Running(ctx, st, p)
	switch {
	case errors.Is(err, halt.ErrStops):
		return fmt.Errorf("%s has on_failure: stop, so that no task runs after a stopped one, not even a clean-up; to cancel the plan: %s",
			p.Title(), a.command("plan", "cancel", p.Title()))
	case errors.Is(err, halt.ErrIdle):
		return fmt.Errorf("nothing of %s runs, apart from clean-ups; to cancel the plan: %s", p.Title(), a.command("plan", "cancel", p.Title()))
	case err != nil:
		return err
	}
	return a.say("%s goes on, with %s being cancelled", p.Title(), view.Number(stopped, "task"))
}
