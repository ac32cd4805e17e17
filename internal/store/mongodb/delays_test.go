package mongodb

import (
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/mongotest"
	"github.com/seed-1177d267/sluice/plan"
)

// A sweep does not look for the first of the tasks that are due later than dueWithin.
func TestATaskThatIsDueMuchLaterIsFoundInTime(t *testing.T) {
	m := newMessy(t)
	q, err := m.s.EnsureQueue(t.Context(), plan.Queue{Name: "x", Plugin: "x", Unlimited: true})
	m.no(err)
	i := plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: "n", Lease: 10 * dueWithin, Plugins: []string{"x"}}
	m.no(m.s.Register(t.Context(), i))
	m.no(m.s.AddTasks(t.Context(), plan.PlanID{}, []plan.Task{{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Queue: q.ID, NotBefore: time.Now().Add(2 * dueWithin)}}))
	sweep := func() protocol.Swept {
		t.Helper()
		did, err := m.s.Sweep(t.Context(), protocol.Sweep{Instance: i.ID})
		m.no(err)
		return did
	}
	for _, c := range []struct {
		passes time.Duration
		near   bool // the instant at which it is due is near
		queued int
	}{{0, false, 0}, {dueWithin + time.Minute, true, 0}, {dueWithin, false, 1}} {
		mongotest.Pass(t, m.db, c.passes)
		if did := sweep(); did.Pending > 0 != c.near || did.Queued != c.queued {
			t.Errorf("after %v more it queues %d, and the next is due in %v", c.passes, did.Queued, did.Pending)
		}
	}
}
