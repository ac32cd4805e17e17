package mongodb

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/event"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
)

// TestSmallPlansAreReadTogether has ten plans take turns, and counts what a claim of ten tasks of each asks.
func TestSmallPlansAreReadTogether(t *testing.T) {
	const plans, each = 10, 10
	for _, c := range []struct {
		name        string
		first       int // how many tasks the first plan has
		reads, then int // how many commands read tasks, with the first claim and with the second
	}{
		{"all are small", 3 * each, 1, 1},
		{"one has most of what comes first", 3 * plans * each, plans, plans}, // that one has enough with the first command
	} {
		t.Run(c.name, func(t *testing.T) {
			uri, _ := database(t)
			no := noError(t)
			var mu sync.Mutex
			reads := 0
			s := openMonitored(t, uri, &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
				if e.CommandName == "find" && e.Command.Lookup("filter", "queue").Type != 0 {
					mu.Lock()
					defer mu.Unlock()
					reads++
				}
			}})
			turn := protocol.Turn{Instance: flatPlan(t, s, c.first), Slots: plans * each, Plugins: []string{"x"}, Start: true, Shares: &protocol.Shares{}}
			q, err := s.EnsureQueue(t.Context(), plan.Queue{Name: "q"})
			no(err)
			for range plans - 1 {
				p, err := s.CreatePlan(t.Context(), plan.Plan{Name: "small"})
				no(err)
				all := make([]plan.Task, 2*each)
				for i := range all {
					all[i] = plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: fmt.Sprint("t", i), Queue: q.ID}
				}
				no(s.AddTasks(t.Context(), p.ID, all))
				no(s.Ready(t.Context(), p.ID))
			}
			for _, want := range []int{c.reads, c.then} {
				reads = 0
				did, err := s.Turn(t.Context(), turn)
				no(err)
				of := map[string]int{}
				for _, task := range did.Claimed {
					of[task.PlanName]++
				}
				for name, n := range of {
					if n != each {
						t.Errorf("claimed %d tasks of %s, want %d", n, name, each)
					}
				}
				if len(of) != plans || reads != want {
					t.Errorf("claimed of %d plans with %d reads, want %d with %d", len(of), reads, plans, want)
				}
			}
		})
	}
}
