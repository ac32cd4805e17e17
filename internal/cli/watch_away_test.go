package cli

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func TestWatchingSurvivesAStoreThatIsAwayForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, st, r := watched(t, 3, false)
		done := run(t, w)
		watching := make(chan error)
		go func() { watching <- w.watch(t.Context(), done) }()
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		st.goAway(errors.New("gone fishing"))
		time.Sleep(time.Second)
		synctest.Wait()
		st.goAway(nil)
		if err := <-watching; err != nil {
			t.Fatal(err)
		}
		if want := []string{"the store does not answer: gone fishing"}; !slices.Equal(r.said, want) {
			t.Errorf("said %q, want %q", r.said, want)
		}
		if len(r.ends) != 3 {
			t.Errorf("ends: %q, want three", r.ends)
		}
	})
}

// A hiccup is a store that answers one question for the plan with an error, and all others.
type hiccup struct {
	store.Store
	before int // so many answers
}

func (h *hiccup) Plan(ctx context.Context, id plan.PlanID) (plan.Plan, error) {
	if h.before--; h.before == -1 {
		return plan.Plan{}, errors.New("busy")
	}
	return h.Store.Plan(ctx, id)
}

// A restored store had more changes than it has, so that a place in its feed is none.
type restored struct {
	store.Store
	now atomic.Bool
}

func (r *restored) Changes(ctx context.Context, after store.Cursor, limit int) ([]store.Change, store.Cursor, error) {
	if r.now.CompareAndSwap(true, false) {
		return nil, after, plan.ErrCursor
	}
	return r.Store.Changes(ctx, after, limit)
}

func TestWaitingGoesOnWhenTheStoreIsRestored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, st, r := watched(t, 3, false)
		again := &restored{Store: st}
		w.st, w.feed.Reader = again, again
		done := run(t, w)
		time.Sleep(1500 * time.Millisecond)
		again.now.Store(true)
		if err := w.watch(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		<-done
		if w.p.State != plan.PlanSucceeded || len(r.said) > 0 {
			t.Errorf("the plan is %v, and was said: %q", w.p.State, r.said)
		}
	})
}

func TestWatchingSurvivesAPlanThatCannotBeReadOnce(t *testing.T) {
	for _, goOn := range []func(*plan.Plan) string{nil, (*plan.Plan).Title} { // with it the plan is read for stalls as well
		for before := range 5 {
			synctest.Test(t, func(t *testing.T) {
				w, st, r := watched(t, 5, false)
				done := run(t, w)
				w.goOn, w.looked, w.st = goOn, time.Now(), &hiccup{st, before}
				if err := w.watch(t.Context(), done); err != nil {
					t.Fatal(err)
				}
				if want := []string{"the store does not answer: busy"}; !slices.Equal(r.said, want) {
					t.Errorf("after %d answers: said %q, want %q", before, r.said, want)
				}
				if len(r.ends) != 5 || w.p.State != plan.PlanSucceeded {
					t.Errorf("after %d answers: ends: %q, of a plan that is %v; want five, of one that succeeded", before, r.ends, w.p.State)
				}
			})
		}
	}
}

func TestWaitingDoesNotSurviveAStoreThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, st, _ := watched(t, 1, false)
		st.goAway(plan.ErrUnavailable)
		if err := w.watch(t.Context(), nil); !errors.Is(err, plan.ErrUnavailable) {
			t.Errorf("got %v, want %v", err, plan.ErrUnavailable)
		}
	})
}
