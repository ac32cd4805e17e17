//go:build !race

package den_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// A restless store wakes its node after each turn that claimed something, and notes how many endings each turn has.
type restless struct {
	Store
	wakes chan struct{}
	ended []int
}

func (r *restless) Wakes(context.Context) <-chan struct{} { return r.wakes }

func (r *restless) Turn(ctx context.Context, t protocol.Turn) (protocol.Turned, error) {
	r.ended = append(r.ended, len(t.Ended))
	did, err := r.Store.Turn(ctx, t)
	if len(did.Claimed) > 0 {
		select {
		case r.wakes <- struct{}{}:
		default:
		}
	}
	return did, err
}

// TestWhoIsWokenTakesAlongWhatHasEnded has a node with threads to spare run tasks that end as soon as they begin.
func TestWhoIsWokenTakesAlongWhatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const levels, each = 20, 3
		w := newWorld(t)
		w.register("nothing", func(context.Context, *plugins.Task) (any, error) { return nil, nil })
		s := plan.New("levels")
		var below []string
		for level := range levels {
			var names []string
			for i := range each {
				names = append(names, fmt.Sprint("t", level, "-", i))
				s.Add(plan.TaskSpec{Name: names[i], Plugin: "nothing", Needs: below})
			}
			below = names
		}
		p := w.submit(s)
		r := &restless{Store: w.store, wakes: make(chan struct{}, 1)}
		if err := w.on(r, den.Config{Threads: 2 * each, Plan: p.ID}).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.wantEnd(p, plan.PlanSucceeded)
		for i, n := range r.ended[1:] {
			if n == 0 {
				t.Errorf("turn %d of %d has no endings, want some of the tasks that the one before claimed: %v", i+2, len(r.ended), r.ended)
				break
			}
		}
	})
}
