package engine_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/plan"
)

// old is a plan of a deleter.
type old struct {
	is      rules.Deletion
	tasks   int
	changes int // so many times it is not as it was read
}

// deleter is a driver that only notes what the engine has it do.
type deleter struct {
	plans  []*old
	half   int // tasks of no plan whose deletion has begun
	over   int // expired tasks of no plan
	budget int
	did    []string
}

func (d *deleter) say(format string, args ...any) {
	d.did = append(d.did, fmt.Sprintf(format, args...))
}

// spend takes as many of n off the budget as it allows.
func (d *deleter) spend(n *int) int {
	some := min(*n, d.budget)
	*n, d.budget = *n-some, d.budget-some
	return some
}

func (d *deleter) Budget() *int { return &d.budget }

func (d *deleter) ToDelete(context.Context, plan.PlanID) (*old, error) { return d.plans[0], nil }

func (d *deleter) Deletion(p *old) rules.Deletion { return p.is }

func (d *deleter) BeginDeletion(_ context.Context, p *old) (bool, error) {
	if p.changes > 0 {
		p.changes--
		d.say("%s changed", p.is.Title)
		return false, nil
	}
	d.say("begin %s", p.is.Title)
	return true, nil
}

func (d *deleter) DeleteTasks(_ context.Context, p *old) (bool, error) {
	d.say("%d of %s", d.spend(&p.tasks), p.is.Title)
	return p.tasks == 0, nil
}

func (d *deleter) DeleteEmpty(_ context.Context, p *old) error {
	d.say("%s", p.is.Title)
	return nil
}

func (d *deleter) ExpiredPlans(_ context.Context, byDefault time.Duration) iter.Seq2[*old, error] {
	return func(yield func(*old, error) bool) {
		for _, p := range d.plans {
			if !yield(p, nil) {
				return
			}
		}
	}
}

func (d *deleter) CompleteDeletions(context.Context) (int, bool, error) {
	n := d.spend(&d.half)
	d.say("%d half", n)
	return n, d.half == 0, nil
}

func (d *deleter) Settings(context.Context) (map[string]plan.QueueSettings, error) {
	return map[string]plan.QueueSettings{"q": {Keep: plan.Keep{Succeeded: plan.Duration(time.Hour)}}}, nil
}

func (d *deleter) Groups(context.Context) ([]plan.Group, error) { return nil, nil }

func (d *deleter) DeleteExpired(_ context.Context, limits map[rules.Kept[string]]time.Duration) (int, error) {
	n := d.spend(&d.over)
	d.say("%d of %d limits", n, len(limits))
	return n, nil
}

// newOld is a plan that has ended.
func newOld(title string, tasks int) *old {
	return &old{is: rules.Deletion{Title: title, State: plan.PlanSucceeded}, tasks: tasks}
}

func TestAPlanGoesAfterItsTasksAsFarAsTheBudgetReaches(t *testing.T) {
	changed, begun, running := newOld("a", 1), newOld("a", 2), newOld("a", 1)
	changed.changes, begun.is.Begun, running.is.State = 1, true, plan.PlanRunning
	for _, c := range []struct {
		name    string
		plan    *old
		budget  int
		want    []string
		more    bool
		refused bool
	}{
		{"all of it", newOld("a", 3), 10, []string{"begin a", "3 of a", "a"}, false, false},
		{"by the default budget", newOld("a", 3), 0, []string{"begin a", "3 of a", "a"}, false, false},
		{"some tasks", newOld("a", 3), 2, []string{"begin a", "2 of a"}, true, false},
		{"all tasks, and nothing for the plan", newOld("a", 3), 3, []string{"begin a", "3 of a"}, true, false},
		{"it was not as it was read", changed, 10, []string{"a changed", "begin a", "1 of a", "a"}, false, false},
		{"its deletion has begun", begun, 10, []string{"2 of a", "a"}, false, false},
		{"it runs", running, 10, nil, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &deleter{plans: []*old{c.plan}, budget: protocol.DefaultBudget}
			more, err := engine.DeletePlan(t.Context(), d, plan.PlanID{}, c.budget)
			if errors.Is(err, plan.ErrPlanActive) != c.refused || err != nil && !c.refused || more != c.more || !slices.Equal(d.did, c.want) {
				t.Errorf("it did %q, more: %v, with the error %v; want %q, more: %v, refused: %v", d.did, more, err, c.want, c.more, c.refused)
			}
		})
	}
}

func TestPlansThatAreKeptNoLongerGoFirst(t *testing.T) {
	active, changed := newOld("active", 1), newOld("changed", 1)
	active.is.State, changed.changes = plan.PlanRunning, 1
	for _, c := range []struct {
		name      string
		plans     []*old
		half      int
		over      int
		budget    int
		byDefault time.Duration
		want      []string
		gone      protocol.Expired
	}{
		{"nothing is expired", nil, 0, 0, 10, 0, []string{"0 half", "0 of 1 limits"}, protocol.Expired{}},
		{"the store has a default for all statuses", nil, 0, 0, 10, time.Hour, []string{"0 half", "0 of 5 limits"}, protocol.Expired{}},
		{"plans, and then tasks of no plan, which may free others", []*old{newOld("a", 1), newOld("b", 0)}, 1, 2, 10, 0,
			[]string{"begin a", "1 of a", "a", "begin b", "0 of b", "b", "1 half", "2 of 1 limits"}, protocol.Expired{Plans: 2, Tasks: 3, More: true}},
		{"plans that stay stand in nobody's way", []*old{active, changed, newOld("a", 0)}, 0, 0, 10, 0,
			[]string{"changed changed", "begin a", "0 of a", "a", "0 half", "0 of 1 limits"}, protocol.Expired{Plans: 1}},
		{"the budget ends amid a plan", []*old{newOld("a", 3), newOld("b", 1)}, 1, 1, 2, 0, []string{"begin a", "2 of a"}, protocol.Expired{More: true}},
		{"the budget ends with a plan", []*old{newOld("a", 1), newOld("b", 1)}, 1, 1, 2, 0, []string{"begin a", "1 of a", "a"}, protocol.Expired{Plans: 1, More: true}},
		{"the budget ends amid a deletion that stopped", nil, 3, 1, 2, 0, []string{"2 half"}, protocol.Expired{Tasks: 2, More: true}},
		{"the budget ends amid expired tasks", nil, 0, 3, 2, 0, []string{"0 half", "2 of 1 limits"}, protocol.Expired{Tasks: 2, More: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &deleter{plans: c.plans, half: c.half, over: c.over, budget: protocol.DefaultBudget}
			gone, err := engine.Expire(t.Context(), d, c.byDefault, c.budget)
			if err != nil || gone != c.gone || !slices.Equal(d.did, c.want) {
				t.Errorf("it did %q: %+v, with the error %v; want %q: %+v", d.did, gone, err, c.want, c.gone)
			}
		})
	}
}
