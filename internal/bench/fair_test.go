package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// last is a plugin that tells when it has run so many tasks.
type last struct {
	left atomic.Int64
	done func()
}

// Run implements plugins.Plugin.
func (l *last) Run(context.Context, *plugins.Task) plan.Result {
	if l.left.Add(-1) == 0 {
		l.done()
	}
	return plan.Result{Status: plan.Succeeded}
}

// inOneQueue runs so many plans of so many tasks, all of one queue, and returns the tasks per second.
func (m *measurement) inOneQueue(plans, each, threads int) float64 {
	db := m.open()
	defer db.close()
	for i := range plans {
		m.submitted(db, flat(each).spec(fmt.Sprint("p", i), "last"))
	}
	ctx, cancel := context.WithCancel(m.Context())
	p := &last{done: cancel}
	p.left.Store(int64(plans * each))
	node := must(den.New(db, den.Config{Plugins: named{"last": p}.registry(), Name: "bench", Threads: threads}))
	settle()
	start := time.Now()
	check(node.Run(ctx))
	return perSecond(plans*each, time.Since(start))
}

// thousand compares a thousand plans in a queue with one plan of as many tasks.
func thousand(m *measurement) {
	plans, each := size(1000, 50), 40
	if m.on == onMongoDB {
		plans, each = size(200, 20), 20
	}
	m.repeat(func() {
		one := m.inOneQueue(1, plans*each, mostThreads)
		m.pair("tasks", "tasks/s", m.inOneQueue(plans, each, mostThreads), "one plan", one)
		m.note("%d plans of %d tasks, %d threads", plans, each, mostThreads)
	})
}

// small counts the turns of a node until all of a small plan has started beside a large one.
func small(m *measurement) {
	large := size(10_000, 500)
	m.repeat(func() {
		db := m.open()
		defer db.close()
		m.submitted(db, flat(large).spec("large", "last"))
		node := plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: "bench", Lease: time.Hour, Plugins: []string{"last"}}
		check(db.Register(m.Context(), node))
		turn := protocol.Turn{Instance: node.ID, Plugins: node.Plugins, Slots: 8, Start: true, Shares: &protocol.Shares{}}
		next := func() (claimed []protocol.ClaimedTask) {
			claimed = must(db.Turn(m.Context(), turn)).Claimed
			turn.Ended = nil
			for _, c := range claimed {
				turn.Ended = append(turn.Ended, protocol.Ending{Claim: c.Claim, Status: plan.Succeeded})
			}
			return claimed
		}
		for range 20 {
			next()
		}
		m.submitted(db, flat(3).spec("small", "last"))
		turns := 0
		for left := 3; left > 0; turns++ {
			for _, c := range next() {
				if c.PlanName == "small#1" {
					left--
				}
			}
		}
		m.pair("turns", "turns", float64(turns), "as promised", 2)
		m.note("3 tasks beside %d, 8 at a time", large)
	})
}
