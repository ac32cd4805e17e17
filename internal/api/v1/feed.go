package v1

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func (a *API) feed() {
	const tag = "changes"
	serve(a, endpoint{method: "GET", path: "/now", id: "get-now", summary: "The time by the store's clock", tag: tag, scope: Read},
		func(ctx context.Context, _ *struct{}) (*api.NowAnswer, error) {
			now, err := a.st.Now(ctx)
			return &api.NowAnswer{Now: now, Version: a.c.Version}, err
		})
	serve(a, endpoint{
		method: "GET", path: "/changes", id: "list-changes", summary: "Read the changes after a cursor", tag: tag, scope: Read, errors: []int{422},
		doc: "Oldest first. Every task and plan that changed is there at least once, in a state at " +
			"least as new as its change. States in between may be left out, and some may come " +
			"twice. Without a cursor the answer is the present cursor, and no changes. With wait, " +
			"the server answers as soon as there is a change.",
	}, a.listChanges)
	const counts = " With counts, an event named plan has the counts of a plan: first the present ones, " +
		"and then each change, each second or two. Such events have no id, and cost the server the " +
		"same however many tasks there are."
	const events = "Server-sent events. An event is named task or plan, and its data is a Change. Its id, " +
		"sent as Last-Event-ID, continues after it. Some events may come twice. An id that is no " +
		"place in the changes of this store, as after a restored backup, is answered 422: read " +
		"everything again, and listen without the id. A comment every 15 s keeps the connection."
	serve(a, endpoint{method: "GET", path: "/events", id: "listen", summary: "Listen to changes", tag: tag, scope: Read, media: "text/event-stream", doc: events + counts + " These are the plans that have not ended."},
		func(ctx context.Context, in *Listen) (*stream, error) {
			if in.Counts {
				return a.countPlans(ctx), nil
			}
			return a.stream(ctx, in.LastEventID, func(*store.Change) bool { return true }, false)
		})
	serve(a, endpoint{
		method: "GET", path: "/plans/{plan}/events", id: "listen-plan", summary: "Listen to the changes of a plan", tag: tag, scope: Read, media: "text/event-stream",
		errors: []int{404}, doc: events + counts + " It ends after the event that the plan has ended.",
	}, ofPlan(a, func(ctx context.Context, p *plan.Plan, in *struct {
		InPlan
		Listen
	}) (*stream, error) {
		if in.Counts {
			return a.countPlan(ctx, p.ID), nil
		}
		return a.stream(ctx, in.LastEventID, func(c *store.Change) bool { return c.Plan == p.ID }, true)
	}))
	serve(a, endpoint{
		method: "GET", path: "/plans/{plan}/wait", id: "wait-plan", summary: "Wait for the end of a plan", tag: tag, scope: Read, errors: []int{404},
		doc: "The answer is the plan as soon as it has ended, or as it is when the time is over. Its status tells which.",
	}, a.wait)
}

// Listen is where somebody begins to be told what changes.
type Listen struct {
	LastEventID string `header:"Last-Event-ID" doc:"Continue after that event; without it, begin now."`
	Counts      bool   `query:"counts" doc:"Get the counts of plans, and no tasks."`
}

type listChanges struct {
	After store.Cursor `query:"after" doc:"A cursor of an earlier answer; without it, the present."`
	Plan  plan.PlanID  `query:"plan" doc:"Only changes of that plan, by its id; the cursor passes over the others."`
	Wait  string       `query:"wait" default:"0s" doc:"How long to wait for a change, at most 60s."`
	Limit int          `query:"limit" minimum:"0" maximum:"5000" default:"1000" doc:"How many changes at most; with a plan, among how many."`
}

func (in *listChanges) wanted(c *store.Change) bool { return in.Plan.IsZero() || c.Plan == in.Plan }

func (a *API) listChanges(ctx context.Context, in *listChanges) (*api.ChangesAnswer, error) {
	wait, err := waitTime("query.wait", in.Wait)
	if err != nil {
		return nil, err
	}
	out := &api.ChangesAnswer{Changes: []api.Change{}, Cursor: in.After}
	if in.After == "" {
		out.Cursor, err = a.st.Latest(ctx)
		return out, err
	}
	held, over := context.WithTimeout(ctx, wait)
	defer over()
	var told <-chan batch
	for {
		more, err := a.readChanges(ctx, in, out)
		if err != nil || len(out.Changes) > 0 || wait == 0 {
			return out, err
		}
		if more {
			continue
		}
		if told == nil {
			var leave func()
			told, leave = a.events.join()
			defer leave()
		}
		if !heard(held, told, in.wanted) {
			return out, nil
		}
	}
}

// readChanges reads what is there after the answer's cursor, and reports whether there may be more.
func (a *API) readChanges(ctx context.Context, in *listChanges, out *api.ChangesAnswer) (more bool, err error) {
	found, cursor, err := a.st.Changes(ctx, out.Cursor, limit(in.Limit))
	if errors.Is(err, plan.ErrCursor) {
		return false, badCursor("query.after", string(in.After))
	}
	if err != nil {
		return false, err
	}
	out.Cursor = cursor
	for i := range found {
		if in.wanted(&found[i]) {
			out.Changes = append(out.Changes, api.ChangeOf(&found[i]))
		}
	}
	return len(found) == limit(in.Limit), nil
}

// heard waits until the hub tells of a change that is wanted, or of what there may have been before it was listened to. It reports false when
// the context ends first, or the hub tells nothing more.
func heard(ctx context.Context, told <-chan batch, wanted func(*store.Change) bool) bool {
	for {
		select {
		case b, ok := <-told:
			if !ok {
				return false
			}
			if len(b.changes) == 0 || slices.ContainsFunc(b.changes, func(c store.Change) bool { return wanted(&c) }) {
				return true
			}
		case <-ctx.Done():
			return false
		}
	}
}

// badCursor refuses what is no place in the feed of changes: it may be that of another store.
func badCursor(location, word string) error {
	p := api.ProblemOf(fmt.Errorf("%s: %q: %w; leave it out to begin with what is now", location, word, plan.ErrCursor))
	p.Fields = []api.Field{{Message: plan.ErrCursor.Error(), Location: location}}
	return p
}

// waitTime reads how long a request may be held.
func waitTime(where, word string) (time.Duration, error) {
	d, err := time.ParseDuration(word)
	if err != nil || d < 0 {
		return 0, api.Invalid("%s: %q is not a duration, as in 30s", where, word)
	}
	return min(d, longestWait), nil
}

// longestWait is how long a request for a plan's end is held at most: proxies give up on longer ones.
const longestWait = 60 * time.Second

func (a *API) wait(ctx context.Context, in *struct {
	InPlan
	Timeout string `query:"timeout" default:"30s" doc:"How long to wait, at most 60s."`
}) (*api.Plan, error) {
	timeout, err := waitTime("query.timeout", in.Timeout)
	if err != nil {
		return nil, err
	}
	p, err := a.findPlan(ctx, in.Plan)
	if err != nil {
		return nil, err
	}
	if !p.State.Ended() {
		held, over := context.WithTimeout(ctx, timeout)
		defer over()
		for {
			plans, due, err := a.tallies.get(ctx, p.ID)
			if err != nil {
				return nil, err
			}
			if plans[0].State.Ended() || !a.until(held, due) {
				break
			}
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if p, err = a.st.Plan(ctx, p.ID); err != nil {
			return nil, err
		}
	}
	return a.answerPlan(ctx, &p)
}
