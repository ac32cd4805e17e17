package mongodb

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/event"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// TestATurnIsBoundedByBytes releases children with large params: a turn has
// no more of them in memory than a few commands of the largest size.
func TestATurnIsBoundedByBytes(t *testing.T) {
	const children, size = 40, 1 << 20
	const most = 3 * wire.WholeBytes // the driver reads an answer as a whole, of which the last task may be one too many
	uri, _ := database(t)
	no := noError(t)
	var moved atomic.Int64
	s := openMonitored(t, uri, &event.CommandMonitor{
		Started: func(_ context.Context, e *event.CommandStartedEvent) {
			if e.CommandName == "update" || e.CommandName == "insert" {
				moved.Add(int64(len(e.Command)))
			}
		},
		Succeeded: func(_ context.Context, e *event.CommandSucceededEvent) { moved.Add(int64(len(e.Reply))) },
	})
	large := json.RawMessage(fmt.Sprintf(`{"x":%q}`, strings.Repeat("x", size)))
	q, err := s.EnsureQueue(t.Context(), plan.Queue{Name: "q", Plugin: "x", Unlimited: true})
	no(err)
	id := plan.InstanceID{ID: plan.NewID(time.Now())}
	no(s.Register(t.Context(), plan.Instance{ID: id, Node: "n1", Plugins: []string{"x"}}))
	p, err := s.CreatePlan(t.Context(), plan.Plan{Name: "large"})
	no(err)
	newTask := func(name string, needs ...plan.TaskID) plan.Task {
		return plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: name, Queue: q.ID, Needs: needs}
	}
	parent := newTask("parent")
	no(s.AddTasks(t.Context(), p.ID, []plan.Task{parent}))
	for i := range children {
		child := newTask(fmt.Sprint("child", i), parent.ID)
		child.Params = large
		no(s.AddTasks(t.Context(), p.ID, []plan.Task{child}))
	}
	no(s.Ready(t.Context(), p.ID))
	turn := protocol.Turn{Instance: id, Slots: 1, Plugins: []string{"x"}, Start: true}
	did, err := s.Turn(t.Context(), turn)
	if no(err); len(did.Claimed) != 1 {
		t.Fatalf("claimed %d tasks, want 1", len(did.Claimed))
	}
	turn.Slots, turn.Ended = 0, []protocol.Ending{{Claim: did.Claimed[0].Claim, Status: plan.Succeeded}}
	turns := 0
	for more := true; more; turns++ {
		moved.Store(0)
		did, err := s.Turn(t.Context(), turn)
		no(err)
		if n := moved.Load(); n > most {
			t.Errorf("turn %d moves %d MiB, want %d at most", turns+1, n>>20, most>>20)
		}
		more, turn.Ended = did.More, nil
	}
	queued, err := s.Tasks(t.Context(), store.TaskQuery{Plan: p.ID, Statuses: []plan.Status{plan.Queued}, Brief: true})
	if no(err); len(queued) != children {
		t.Errorf("%d children are queued after %d turns, want %d", len(queued), turns, children)
	}
}
