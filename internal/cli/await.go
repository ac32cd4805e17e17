package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-1177d267/sluice/internal/approve"
	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// errAwaits is why a run ends that only waits for people. It carries the exit code of errNotFinished.
var errAwaits = fmt.Errorf("%w: it waits for an approval", errNotFinished)

// waitingForYou begins the line of a plan that only waits for people.
const waitingForYou = "waiting for you"

// awaitEvery is how often a run looks whether it only waits for people.
const awaitEvery = 300 * time.Millisecond

// untilAwaited calls stop once nothing of the plan can go on before somebody answers. It returns when
// done is closed. Where nobody ever asked anything it costs one read.
func untilAwaited(ctx context.Context, st store.Reader, p plan.PlanID, done <-chan struct{}, stop func()) {
	if q, err := approve.Queue(ctx, st); err == nil && q.IsZero() {
		return
	}
	tick := time.NewTicker(awaitEvery)
	defer tick.Stop()
	for looks := 0; ; {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		now, err := st.Plan(ctx, p)
		only := false
		if err == nil {
			_, only, err = awaiting(ctx, st, &now)
		}
		if err != nil || !only {
			looks = 0
			continue
		}
		if looks++; looks == 2 { // at the first look the children of what has just ended may still be to be released
			stop()
			return
		}
	}
}

// awaiting returns the tasks of a plan, read with its counts, that wait for an answer. only is true if
// there are such tasks, and nothing else of the plan can go on.
func awaiting(ctx context.Context, st store.Reader, p *plan.Plan) (asked []plan.Task, only bool, err error) {
	if c := p.Counts; p.State != plan.PlanRunning || c.Held == 0 || c.Queued+c.Claimed+c.Running > 0 {
		return nil, false, nil
	}
	if asked, err = approve.Waiting(ctx, st, p.ID); err != nil || len(asked) == 0 { // mostly: the other tasks are not read
		return nil, false, err
	}
	held, err := store.AllTasks(ctx, st, store.TaskQuery{Plan: p.ID, Statuses: []plan.Status{plan.Held}})
	if err != nil {
		return nil, false, err
	}
	open := 0
	for i := range held {
		switch t := &held[i]; {
		case t.AwaitsAnswer():
			open++
		case !t.NotBefore.IsZero(): // its delay ends by itself
			return asked, false, nil
		}
	}
	return asked, open == len(asked), nil // the next node fails the others, whose time is over
}

// waitsFor says that a plan only waits for the answers to these tasks.
func waitsFor(asked []plan.Task, p *plan.Plan, c func(...string) string) string {
	return fmt.Sprintf("%s waits for an answer: %s", p.Title(), asks(asked, p, c))
}

// asks says what waits for a person, in one line.
func asks(asked []plan.Task, p *plan.Plan, c func(...string) string) string {
	if len(asked) == 0 {
		return ""
	}
	t := &asked[0]
	line := fmt.Sprintf("%s: %s; to approve: %s", cells.Clean(t.Key()), cells.Clean(t.Detail), c("task", "approve", p.Title(), t.Key()))
	if n := len(asked) - 1; n > 0 {
		line += fmt.Sprintf("; and %d more", n)
	}
	return line
}

// askPerson asks a person at a terminal for the answers that a plan waits for. It returns false if
// nobody is there to be asked, or a question stays open.
func (a *app) askPerson(ctx context.Context, st store.Store, p plan.PlanID) (all bool, err error) {
	lines, ok := a.person()
	if !ok {
		return false, nil
	}
	asked, err := approve.Waiting(ctx, st, p)
	if err != nil {
		return false, err
	}
	for i := range asked {
		t := &asked[i]
		fmt.Fprintf(a.Stderr, "%s: %s [yes/no/later] ", cells.Clean(t.Key()), cells.Clean(t.Detail))
		word, _ := a.answered(lines, "yes", "no")
		if word == "" {
			return false, lines.Err()
		}
		err = a.answer(ctx, st, t, word == "yes", "")
		switch {
		case errors.Is(err, plan.ErrConflict): // somebody else was faster, or the time is over: the run goes on with what is so now
			a.note("%v", err)
		case err != nil:
			return false, err
		}
	}
	return true, nil
}
