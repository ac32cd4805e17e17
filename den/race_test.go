package den_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/internal/polltest"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/storetest/model"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// Several nodes share a layered plan with timeouts, logs, retries and a foreach, in real time. The
// time is short, because the test is for the race detector.
func TestNodesShareAPlanInRealTime(t *testing.T) {
	const layers, wide = 6, 20
	s := model.New(model.Options{})
	reg := plugins.NewRegistry()
	var ran atomic.Int64
	reg.Register("work", plugins.Func(func(ctx context.Context, t *plugins.Task) (any, error) {
		ran.Add(1)
		t.Log.Printf("%s, attempt %d", t.Name, t.Attempt)
		if t.Attempt == 1 && t.ID.ID[11]%8 == 0 {
			return nil, fmt.Errorf("the first attempt fails")
		}
		return t.Name, nil
	}))
	spec := plan.New("shared")
	for l := range layers {
		for i := range wide {
			task := plan.TaskSpec{
				Name: fmt.Sprintf("l%d-%d", l, i), Plugin: "work", Timeout: time.Minute,
				Retry: plan.Retry{Attempts: 2, Delay: 5 * time.Millisecond},
			}
			if l > 0 {
				for k := range 3 {
					task.Needs = append(task.Needs, fmt.Sprintf("l%d-%d", l-1, (i+k)%wide))
				}
			}
			spec.Add(task)
		}
	}
	spec.Add(plan.TaskSpec{
		Name: "each", Plugin: "work", Needs: []string{"l5-0"}, Foreach: &plan.Foreach{List: []byte(`[1,2,3,4,5,6,7,8]`)},
		Retry: plan.Retry{Attempts: 2, Delay: time.Millisecond},
	})
	p, err := submit.Submit(t.Context(), s, spec, false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var nodes sync.WaitGroup
	for n := range 3 {
		cfg := den.Config{
			Plugins: reg, Name: plan.NodeName(fmt.Sprint("n", n)), Host: "host", Threads: 8,
			Beat: 20 * time.Millisecond, Lease: 10 * time.Second, Balance: &den.Balance{Every: time.Millisecond},
		}
		if n == 0 {
			cfg.Plan = p.ID
		}
		node, err := den.New(s, cfg)
		if err != nil {
			t.Fatal(err)
		}
		nodes.Go(func() {
			if err := node.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	var got plan.Plan
	polltest.Holds(5*time.Minute, func() bool {
		got, err = s.Plan(t.Context(), p.ID)
		return err != nil || got.State.Ended()
	})
	stop()
	nodes.Wait()
	if err != nil || got.State != plan.PlanSucceeded {
		failed, _ := s.Tasks(t.Context(), store.TaskQuery{Plan: p.ID, Statuses: []plan.Status{plan.Failed}})
		t.Errorf("the plan %s (%v): %+v", got.State, err, failed)
	}
	if got := ran.Load(); got < layers*wide+8 {
		t.Errorf("%d attempts ran, want one or two of each of the %d tasks", got, layers*wide+8)
	}
}
