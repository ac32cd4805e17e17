package mongodb

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
)

// TestAPlanEndsThoughANodeDiesInItsTurn has a node end the only task of a plan, and claim one of another plan in the same turn, several times.
// It fails before or after each write of its last turn, tries that again, and dies after the first write. Where an ending was written, sweeps
// end the plan, long before the next audit.
func TestAPlanEndsThoughANodeDiesInItsTurn(t *testing.T) {
	openTest(t) // else the test is skipped here, and not again and again below
	dead := errors.New("dead")
	for _, before := range []int{1, 2, 3} { // turns; the third knows what to claim before it looks
		for at, died := int64(1), true; died; at++ {
			t.Run(fmt.Sprintf("after %d, at %d", before, at), func(t *testing.T) {
				s, _, no := openTest(t)
				watcher := flatPlan(t, s, 1)
				for range 2 { // the first one begins the audits
					_, err := s.Sweep(t.Context(), protocol.Sweep{Instance: watcher, Budget: 1000})
					no(err)
				}
				turn := protocol.Turn{Slots: 1, Plugins: []string{"x"}, Start: true, Shares: &protocol.Shares{}}
				for range 5 {
					turn.Instance = flatPlan(t, s, 1)
				}
				var left atomic.Int64 // calls before it fails
				left.Store(1 << 40)
				node := hooked(t, s, func(bool) error {
					if left.Add(-1) <= 0 {
						return dead
					}
					return nil
				})
				node.trusts = time.Hour
				var had []protocol.ClaimedTask
				for range before {
					did, err := node.Turn(t.Context(), turn)
					no(err)
					had, turn.Ended = append(had, did.Claimed...), endings(did.Claimed)
				}
				left.Store(at)
				_, err := node.Turn(t.Context(), turn)
				if died = err != nil; died {
					left.Store(3)
					_, err = node.Turn(t.Context(), turn)
				}
				if err != nil && !errors.Is(err, dead) {
					t.Fatal(err)
				}
				if len(had) != before {
					t.Fatalf("%d turns claimed %d tasks", before, len(had))
				}
				for sweeps := 0; ; sweeps++ {
					running := false
					for _, c := range had {
						task, err := s.Task(t.Context(), c.Task)
						no(err)
						p, err := s.Plan(t.Context(), c.Plan)
						no(err)
						running = running || task.Status.Finished() && !p.State.Ended()
					}
					if !running {
						break
					}
					if sweeps == 20 {
						t.Fatal("a plan runs, though its only task has ended")
					}
					_, err = s.Sweep(t.Context(), protocol.Sweep{Instance: watcher, Budget: 1000})
					no(err)
				}
			})
		}
	}
}
