package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/seed-1177d267/sluice/internal/hint"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
)

// underSubmission reports whether a plan is being submitted from a file, or was until the
// submission stopped. A plan that is made task by task is complete when its author says so.
func underSubmission(p *plan.Plan) bool {
	return p.State == plan.PlanSubmitting && p.Closing == plan.Open && p.Size > 0
}

// submission says how far such a plan is, and what to do if its submission was stopped.
func (a *app) submission(p *plan.Plan, now time.Time) string {
	how, h := hint.Submission(p, now)
	goOn := a.command(h.Do...)
	if a.served() && h.Key == hint.ResumePlan {
		goOn = `"sluice plan run --resume" on the store that the server is for`
	}
	return fmt.Sprintf("%s; if its submission was stopped, go on with it: %s, or delete it: %s", how, goOn, a.command("plan", "delete", p.Title()))
}

// endSubmission makes such a plan ready, after adding what is missing of it from its file.
func (a *app) endSubmission(ctx context.Context, st store.Store, p plan.Plan) (plan.Plan, error) {
	var err error
	if p.Counts.Stored() == p.Size {
		err = st.Ready(ctx, p.ID)
	} else {
		err = goOnSubmitting(ctx, st, &p)
	}
	now, unread := st.Plan(ctx, p.ID)
	switch {
	case unread != nil:
		return p, unread
	case err == nil, now.State == plan.PlanRunning: // its submitter may live, and have been quicker
		return now, nil
	case errors.Is(err, plan.ErrConflict):
		return p, fmt.Errorf("%w; %s; this one is abandoned in an hour; to delete it now: %s", err, a.submitAnew(&p), a.command("plan", "delete", p.Title()))
	}
	return p, err
}

// goOnSubmitting adds what is missing of a plan from its file. It returns plan.ErrConflict where that cannot be had any more.
func goOnSubmitting(ctx context.Context, st store.Store, p *plan.Plan) error {
	half := rules.CheckReady(p, p.Counts.Stored())
	info, err := os.Stat(p.Source)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && p.Source != "" {
		return fmt.Errorf("%w, and its file cannot be read: %w", half, err)
	}
	if err != nil || !info.Mode().IsRegular() { // what came through a pipe is gone
		return fmt.Errorf("%w, and its file is not there any more", half)
	}
	st, p, err = unhidden(ctx, st, p)
	if err != nil {
		return err
	}
	spec, err := loadAgain(ctx, p, p.Source)
	if err != nil { // which shows lines of the file
		return errors.Join(err, fmt.Errorf("%w, and its file has changed", half))
	}
	if err = submit.GoOn(ctx, st, *p, spec); errors.Is(err, plan.ErrConflict) {
		return fmt.Errorf("%w, and %s is not what it was: %w", half, p.Source, err)
	}
	return err
}

// submitAnew says how a plan is submitted that was not to its end.
func (a *app) submitAnew(p *plan.Plan) string {
	words := []string{"plan", "submit", p.Source}
	switch {
	case p.Source == "":
		return "submit it anew"
	case p.Own:
		words[1] = "run"
	}
	return "submit it anew: " + a.command(words...)
}

// stoppedSubmission adds to the error of a submission what to do with the part in the store.
func (a *app) stoppedSubmission(p *plan.Plan, err error) error {
	if p.ID.IsZero() || errors.Is(err, plan.ErrPlanEnded) || errors.Is(err, plan.ErrNotFound) { // it was cancelled, or deleted
		return err
	}
	_, h := hint.Submission(p, time.Now())
	return goOnBy(fmt.Errorf("%w; nothing of %s runs yet", err, p.Title()), a.command(h.Do...))
}

// noteQueues tells of queues that run fewer tasks at once than the plan would let them.
func (a *app) noteQueues(ctx context.Context, st store.Store, spec *plan.Spec) {
	notes, err := submit.Notes(ctx, st, spec)
	if err != nil {
		return // the plan is in, and what comes next meets the error too
	}
	for _, n := range notes {
		a.note("%s: %s", n.Text, a.command(n.Do...))
	}
}

// goOnBy adds the command that continues the plan to the reason why it was left, if the plan is in
// a store.
func goOnBy(err error, command string) error {
	if errors.Is(err, plan.ErrStoreGone) {
		return err
	}
	return fmt.Errorf("%w; to go on with it: %s", err, command)
}
