package storetest

import (
	"fmt"
	"sync"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
)

// rated sets the rate of the queue "exec", and fills the queue with n tasks of a plan.
func (w *world) rated(r plan.Rate, n int) (plan.Plan, plan.Queue) {
	w.Helper()
	tasks := numbered(n)
	q := w.queue("exec", 0)
	q.Rate = r
	w.no(w.s.SetQueue(w.ctx, q))
	return w.submit(tasks...), q
}

// starts claims as much as it gets, and makes sure of how many these are and of how long the node may
// rest. The clock of a server goes on meanwhile, so that the rest may be a little shorter.
func (n *node) starts(want int, rest time.Duration) {
	n.w.Helper()
	did := n.turn(protocol.Turn{Slots: 100})
	if len(did.Claimed) != want || did.Rest > rest || did.Rest < rest-2*time.Minute {
		n.w.Errorf("%s: %d started, and it may rest for %s; want %d, %s", n.name, len(did.Claimed), did.Rest, want, rest)
	}
}

// hourly is a rate of one an hour, and three at once.
var hourly = plan.Rate{Starts: 2, Per: plan.Duration(2 * time.Hour), Burst: 3}

var rateCases = []testCase{
	{"a rate limits what starts, over all nodes", func(w *world) {
		w.rated(hourly, 20)
		a, b := w.node("a"), w.nodeOn(w.reopen(nil), "b")
		a.starts(3, time.Hour)
		b.starts(0, time.Hour)
		w.pass(30 * time.Minute)
		a.starts(0, 30*time.Minute)
		w.pass(30 * time.Minute)
		b.starts(1, time.Hour)
		a.starts(0, time.Hour)
		w.pass(2 * time.Hour)
		a.starts(2, time.Hour)
		w.pass(100 * time.Hour) // no more than burst is saved
		b.starts(3, time.Hour)
		w.equal("spent", w.spent("exec").IsZero(), false)
	}},
	{"a rate that holds up nothing costs no rest", func(w *world) {
		w.rated(hourly, 2)
		n := w.node("a")
		n.starts(2, 0)
		n.starts(0, 0) // nothing waits
	}},
	{"a rate holds up no other queue", func(w *world) {
		w.rated(plan.Rate{Starts: 1, Per: plan.Duration(time.Hour)}, 3)
		w.submit(plan.TaskSpec{Name: "x", Queue: "other"}, plan.TaskSpec{Name: "y", Queue: "other"})
		n := w.node("a")
		n.starts(3, time.Hour)
	}},
	{"each attempt is a start", func(w *world) {
		w.rated(plan.Rate{Starts: 1, Per: plan.Duration(time.Hour), Burst: 2}, 1)
		p := w.submit(plan.TaskSpec{Name: "again", Retry: plan.Retry{Attempts: 3, Delay: -1}})
		n := w.node("a")
		for _, c := range n.claim(2) {
			if c.Name == "again" {
				n.end(later(c, time.Second))
			}
		}
		w.pass(time.Minute)
		n.sweep()
		w.want(p, "again queued")
		n.starts(0, 59*time.Minute)
		w.pass(time.Hour)
		n.starts(1, 0)
	}},
	{"a rate is changed and removed while tasks wait", func(w *world) {
		_, q := w.rated(plan.Rate{Starts: 1, Per: plan.Duration(1000 * time.Hour)}, 9)
		n := w.node("a")
		n.starts(1, 1000*time.Hour)
		q.Rate = hourly // what is spent is clamped to its burst
		w.no(w.s.SetQueue(w.ctx, q))
		n.starts(0, time.Hour)
		w.pass(time.Hour)
		n.starts(1, time.Hour)
		q.Rate = plan.Rate{}
		w.no(w.s.SetQueue(w.ctx, q))
		n.starts(7, 0)
	}},
	{"a lower rate counts what has started", func(w *world) {
		_, q := w.rated(plan.Rate{Starts: 60, Per: plan.Duration(time.Hour), Burst: 3}, 9)
		n := w.node("a")
		n.starts(3, time.Minute)
		q.Rate = hourly
		w.no(w.s.SetQueue(w.ctx, q))
		n.starts(0, time.Hour)
		w.pass(time.Hour)
		n.starts(1, time.Hour)
		was := q
		q.Rate.Starts = 1 // each two hours
		w.no(w.s.ChangeQueue(w.ctx, was, q))
		n.starts(0, 2*time.Hour)
	}},
	{"a rate holds up nothing in a queue without a free thread", func(w *world) { // histories 453672965, 453672993, 453673218
		_, q := w.rated(hourly, 5)
		q.Threads, q.Unlimited = 3, false
		w.no(w.s.SetQueue(w.ctx, q))
		n := w.node("a")
		n.starts(3, 0)
		n.starts(0, 0)
	}},
	{"a rate holds up nothing of a plan that has nothing in the queue", func(w *world) {
		w.group("acme", plan.GroupSettings{Rate: hourly}) // so that a turn looks at all queues
		_, q := w.rated(plan.Rate{}, 5)
		q.Group = "acme"
		w.no(w.s.SetQueue(w.ctx, q))
		p := w.submit(task("a"))
		n := w.node("a")
		did := n.turn(protocol.Turn{Slots: 9, Plan: p.ID})
		w.equal("started, and rest", []any{len(did.Claimed), did.Rest}, []any{1, time.Duration(0)})
		n.claim(2) // what the rate lets start
		did = n.turn(protocol.Turn{Slots: 9, Plan: p.ID})
		w.equal("then", []any{len(did.Claimed), did.Rest}, []any{0, time.Duration(0)})
	}},
	{"a rate counts beside other limits", func(w *world) {
		_, q := w.rated(plan.Rate{Starts: 5, Per: plan.Duration(5 * time.Hour)}, 9)
		q.Threads, q.Unlimited = 2, false
		w.no(w.s.SetQueue(w.ctx, q))
		n := w.node("a")
		first := n.claim(9)
		w.equal("by threads", len(first), 2)
		n.end(ok(first[0]), ok(first[1]))
		first = n.claim(9)
		w.equal("again", len(first), 2)
		n.end(ok(first[0]), ok(first[1]))
		n.starts(1, time.Hour) // the fifth
	}},
	{"a node of one plan keeps to the rate", func(w *world) {
		p, _ := w.rated(hourly, 5)
		n := w.node("a")
		did := n.turn(protocol.Turn{Slots: 9, Plan: p.ID})
		w.equal("started", len(did.Claimed), 3)
		did = n.turn(protocol.Turn{Slots: 9, Plan: p.ID})
		w.equal("then", []any{len(did.Claimed), did.Rest > 59*time.Minute}, []any{0, true})
	}},
	{"nodes that claim at once keep to the rate together", func(w *world) {
		w.rated(plan.Rate{Starts: 1, Per: plan.Duration(time.Hour), Burst: 7}, 40)
		nodes := make([]*node, 4)
		for i := range nodes {
			nodes[i] = w.nodeOn(w.reopen(nil), plan.NodeName(fmt.Sprint("n", i)))
		}
		for round, want := range []int{7, 7} {
			w.equal(fmt.Sprint("round ", round), claimAtOnce(w, nodes), want)
			w.pass(10 * time.Hour)
		}
	}},
}

// spent returns how far the rate of a queue is used up.
func (w *world) spent(name string) time.Time {
	w.Helper()
	for _, q := range must(w.s.Queues(w.ctx))(w) {
		if q.Name == name {
			return q.Spent
		}
	}
	w.Fatalf("there is no queue %s", name)
	return time.Time{}
}

// claimAtOnce has nodes claim concurrently, and returns how many tasks they get.
func claimAtOnce(w *world, nodes []*node) (got int) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, n := range nodes {
		wg.Go(func() {
			for range 4 {
				did, err := n.try(protocol.Turn{Slots: 3})
				if err != nil {
					w.Error(err)
					return
				}
				mu.Lock()
				got += len(did.Claimed)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return got
}
