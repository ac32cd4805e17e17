package v1

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/auth"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// These limits say how often plans are read for listeners to counts. Reading takes at most a
// fiftieth of the time. Counts are at most two seconds old.
const (
	tallyShare   = 50
	tallyAtMost  = 250 * time.Millisecond // of one plan
	talliesAtOne = time.Second            // of all plans
	tallyAtLeast = 2 * time.Second
	tallyKept    = time.Minute // after the last look at it
)

// How many plans a look at all of them reads.
const (
	mostUnfinished = 200
	mostNewest     = 20
)

// A tally is what was read last of a plan, or of all of them, for everybody who asks until it is due again.
type tally struct {
	mu    sync.Mutex
	due   time.Time
	asked time.Time
	plans []plan.Plan
	err   error
}

// tallies read how plans stand, and no tasks and no changes of them. So to watch a plan costs the same, however many tasks it has.
type tallies struct {
	st store.Reader

	mu  sync.Mutex
	all map[plan.PlanID]*tally // the zero id means all plans
}

// get returns the plan, or with the zero id those that may have changed lately, and when it is to be asked for again.
func (t *tallies) get(ctx context.Context, id plan.PlanID) ([]plan.Plan, time.Time, error) {
	now := time.Now()
	t.mu.Lock()
	maps.DeleteFunc(t.all, func(_ plan.PlanID, one *tally) bool { return now.Sub(one.asked) > tallyKept })
	one := t.all[id]
	if one == nil {
		one = &tally{}
		t.all[id] = one
	}
	one.asked = now
	t.mu.Unlock()

	one.mu.Lock()
	defer one.mu.Unlock()
	began := time.Now()
	if began.Before(one.due) {
		return one.plans, one.due, one.err
	}
	least := talliesAtOne
	if id.IsZero() {
		one.plans, one.err = t.unfinished(ctx)
	} else {
		var p plan.Plan
		least = tallyAtMost
		p, one.err = t.st.Plan(ctx, id)
		one.plans = []plan.Plan{p}
	}
	ended := time.Now()
	one.due = ended.Add(min(max(tallyShare*ended.Sub(began), least), tallyAtLeast))
	if ctx.Err() != nil { // which is that of who asked, and of nobody else
		one.due = time.Time{}
	}
	return one.plans, one.due, one.err
}

// unfinished returns the plans that have not ended, with their counts if they run, and before them the newest, which may have ended since.
func (t *tallies) unfinished(ctx context.Context) ([]plan.Plan, error) {
	running, submitting := plan.PlanRunning, plan.PlanSubmitting
	var all []plan.Plan
	for _, q := range []store.PlanQuery{
		{Limit: mostNewest, NoCounts: true}, {State: &submitting, Limit: mostUnfinished, NoCounts: true}, {State: &running, Limit: mostUnfinished},
	} {
		q.NoParams = true
		plans, err := t.st.Plans(ctx, q)
		if err != nil {
			return nil, err
		}
		all = append(all, plans...)
	}
	return all, nil
}

// A standing is the state of a plan, as its listeners see it. The counts of a plan that has ended
// do not change.
type standing struct {
	state   plan.Lifecycle
	closing plan.Closing
	counts  plan.Counts
}

func standingOf(p *plan.Plan) standing {
	if p.State.Ended() {
		return standing{state: p.State}
	}
	return standing{p.State, p.Closing, p.Counts}
}

// countPlan tells how one plan stands, until it has ended.
func (a *API) countPlan(ctx context.Context, id plan.PlanID) *stream {
	var last *standing
	return a.count(ctx, func(ctx context.Context) (news []plan.Plan, due time.Time, over bool, err error) {
		plans, due, err := a.tallies.get(ctx, id)
		if err != nil {
			return nil, due, errors.Is(err, plan.ErrNotFound), err
		}
		p := &plans[0]
		if is := standingOf(p); last == nil || *last != is {
			last = &is
			news = plans
		}
		return news, due, p.State.Ended(), nil
	})
}

// countPlans tells how plans stand that have not ended, or not when it was told last.
func (a *API) countPlans(ctx context.Context) *stream {
	var last map[plan.PlanID]standing
	return a.count(ctx, func(ctx context.Context) (news []plan.Plan, due time.Time, over bool, err error) {
		plans, due, err := a.tallies.get(ctx, plan.PlanID{})
		if err != nil {
			return nil, due, false, err
		}
		now, first := make(map[plan.PlanID]standing, len(plans)), last == nil
		found := make(map[plan.PlanID]plan.Plan, len(plans))
		for i := range plans { // one that is there twice has its counts the second time
			p := &plans[i]
			now[p.ID], found[p.ID] = standingOf(p), *p
		}
		for id, was := range last {
			if _, ok := now[id]; !ok && !was.state.Ended() {
				now[id] = standing{state: plan.PlanSucceeded} // it has ended since, and how is read below
			}
		}
		for id, is := range now {
			was, known := last[id]
			if first && is.state.Ended() || known && was == is {
				continue
			}
			if is.state.Ended() { // the list of the newest plans has no counts
				whole, _, err := a.tallies.get(ctx, id)
				if errors.Is(err, plan.ErrNotFound) {
					delete(now, id)
					continue
				}
				if err != nil {
					return nil, due, false, err
				}
				found[id], now[id] = whole[0], standingOf(&whole[0])
				if known && was == now[id] { // it was read before it ended
					continue
				}
			}
			news = append(news, found[id])
		}
		last = now
		return news, due, false, nil
	})
}

// count answers with events of what look finds, which says when to look again and whether that was the last time.
func (a *API) count(ctx context.Context, look func(context.Context) (news []plan.Plan, due time.Time, over bool, err error)) *stream {
	return &stream{func(w http.ResponseWriter) {
		l := a.listener(w)
		if !l.write([]byte(": these are the counts\n\n")) {
			return
		}
		alive := time.Now()
		for {
			news, due, over, err := look(ctx)
			if ctx.Err() != nil || !auth.Still(ctx) || err != nil && over {
				return
			}
			for i := range news {
				if !l.tally(&news[i]) {
					return
				}
				alive = time.Now()
			}
			if over {
				return
			}
			if time.Since(alive) >= aliveEvery {
				if alive = time.Now(); !l.write([]byte(": alive\n\n")) {
					return
				}
			}
			if !a.until(ctx, due) {
				return
			}
		}
	}}
}

// until waits, and reports whether ctx and the server last so long.
func (a *API) until(ctx context.Context, due time.Time) bool {
	wait := time.NewTimer(time.Until(due))
	defer wait.Stop()
	select {
	case <-wait.C:
		return true
	case <-ctx.Done():
	case <-a.events.ended:
	}
	return false
}

// tally writes how a plan stands.
func (l *listener) tally(p *plan.Plan) bool {
	c := api.ChangeOf(&store.Change{At: p.Modified, Plan: p.ID, Name: p.Name, State: p.State})
	if p.State == plan.PlanRunning || p.Counts != (plan.Counts{}) {
		sums := rules.SumsOf(p.Counts)
		c.Counts, c.Sums = &p.Counts, &sums
	}
	data, err := json.Marshal(c)
	if err != nil { // none of its fields can fail
		return false
	}
	return l.write(fmt.Appendf(nil, "event: plan\ndata: %s\n\n", data))
}
