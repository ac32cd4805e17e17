package bench

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// starts is a plugin that notes which queues its tasks are of, in the order of their starts.
type starts struct {
	mu     sync.Mutex
	queues []string
	at     []time.Time
	takes  func(queue string) time.Duration // nil: no time
	done   func()                           // is called after so many starts
	most   int
}

// Run implements plugins.Plugin.
func (s *starts) Run(ctx context.Context, t *plugins.Task) plan.Result {
	s.mu.Lock()
	s.queues, s.at = append(s.queues, t.Queue), append(s.at, time.Now())
	if len(s.queues) == s.most {
		s.done()
	}
	s.mu.Unlock()
	if s.takes != nil {
		select {
		case <-time.After(s.takes(t.Queue)):
		case <-ctx.Done():
		}
	}
	return plan.Result{Status: plan.Succeeded}
}

// backlog makes a queue, of which set sets the weight, the group or the rate, and submits a plan of n tasks in it.
func (m *measurement) backlog(s store.Store, queue string, n int, set func(*plan.Queue)) {
	q := plan.Queue{Name: queue, Plugin: "starts", Unlimited: true}
	if set != nil {
		set(&q)
	}
	must(s.CreateQueue(m.Context(), q))
	spec := flat(n).spec(queue, "starts")
	for i := range spec.Tasks {
		spec.Tasks[i].Queue = queue
	}
	m.submitted(s, spec)
}

// runNodes runs so many nodes until the plugin has had its starts, or the time is over.
func (m *measurement) runNodes(db *database, nodes, threads int, p *starts, within time.Duration) {
	ctx, cancel := context.WithTimeout(m.Context(), within)
	defer cancel()
	p.done = cancel
	var wg sync.WaitGroup
	for i := range nodes {
		node := must(den.New(db, den.Config{Plugins: named{"starts": p}.registry(), Name: plan.NodeName(fmt.Sprint("bench", i)), Threads: threads, Grace: time.Millisecond}))
		wg.Go(func() { check(node.Run(ctx)) })
	}
	wg.Wait()
}

// weights measures how far the starts of queues of weight 1, 2 and 4 are from their shares, in any thousand starts.
func weights(m *measurement) {
	each := size(2000, 200)
	if m.on == onMongoDB {
		each = size(800, 100)
	}
	window := min(1000, 7*each/4)
	m.repeat(func() {
		for _, nodes := range []int{1, 4} {
			db := m.open()
			for _, w := range []int{1, 2, 4} {
				m.backlog(db, fmt.Sprint("w", w), w*each, func(q *plan.Queue) { q.Weight = w })
			}
			p := &starts{most: 7 * each * 8 / 10}
			m.runNodes(db, nodes, 8, p, time.Minute)
			worst := 0.0
			for from := 0; from+window <= min(len(p.queues), p.most); from++ {
				if from%50 != 0 {
					continue
				}
				count := map[string]int{}
				for _, q := range p.queues[from : from+window] {
					count[q]++
				}
				for _, w := range []int{1, 2, 4} {
					want := float64(window) * float64(w) / 7
					worst = max(worst, math.Abs(float64(count[fmt.Sprint("w", w)])-want)/want)
				}
			}
			m.pair(fmt.Sprintf("off-on-%d", nodes), "%", 100*worst, "as promised", 5)
			db.close()
		}
		m.note("weights 1, 2 and 4, any %d starts of %d", window, 7*each*8/10)
	})
}

// slow measures what two groups of quick tasks start beside one whose tasks take long, against a node with their threads alone.
func slow(m *measurement) {
	within := time.Duration(size(20, 2)) * time.Second
	run := func(threads int, groups ...string) float64 {
		db := m.open()
		defer db.close()
		for _, g := range groups {
			check(db.PutGroup(m.Context(), plan.Group{}, plan.Group{Name: g}))
			m.backlog(db, "q"+g, size(10_000, 1000), func(q *plan.Queue) { q.Group = g })
		}
		p := &starts{most: math.MaxInt, takes: func(queue string) time.Duration {
			if queue == "qslow" {
				return 5 * time.Second
			}
			return 5 * time.Millisecond
		}}
		counts := time.Now().Add(within / 2) // until then, the node queues the backlogs, of which one has more
		m.runNodes(db, 1, threads, p, within)
		quick := 0
		for i, q := range p.queues {
			if q != "qslow" && p.at[i].After(counts) {
				quick++
			}
		}
		return float64(quick) / (within / 2).Seconds()
	}
	m.repeat(func() {
		m.pair("quick", "tasks/s", run(9, "slow", "a", "b"), "alone with their threads", run(6, "a", "b"))
		m.note("three groups on 9 threads for %s, of which the second half counts; tasks of 5 s, 5 ms and 5 ms", within)
	})
}

// hundred compares a hundred groups of three queues with one queue of as many tasks.
func hundred(m *measurement) {
	groups, each := size(100, 10), 100
	if m.on == onMongoDB {
		each = 8
	}
	all := groups * 3 * each
	run := func(fill func(db *database)) float64 {
		db := m.open()
		defer db.close()
		fill(db)
		p := &starts{most: all}
		start := time.Now()
		m.runNodes(db, 1, mostThreads, p, 10*time.Minute)
		if len(p.queues) < all {
			failf("%d of %d tasks started", len(p.queues), all)
		}
		return perSecond(all, time.Since(start))
	}
	m.repeat(func() {
		one := run(func(db *database) { m.backlog(db, "one", all, nil) })
		many := run(func(db *database) {
			for g := range groups {
				name := fmt.Sprint("g", g)
				check(db.PutGroup(m.Context(), plan.Group{}, plan.Group{Name: name, GroupSettings: plan.GroupSettings{Weight: 1 + g%10}}))
				for k := range 3 {
					m.backlog(db, fmt.Sprintf("%s-%d", name, k), each, func(q *plan.Queue) { q.Group = name })
				}
			}
		})
		m.pair("tasks", "tasks/s", many, "one queue", one)
		m.note("%d groups of 3 queues of %d tasks, %d threads", groups, each, mostThreads)
	})
}

// paced measures a rate over four nodes: how much of it starts, and the most that starts in any window against what the rate lets in it.
func paced(m *measurement) {
	const rate, burst = 50, 10
	within := time.Duration(size(20, 2)) * time.Second
	m.repeat(func() {
		db := m.open()
		defer db.close()
		m.backlog(db, "q", int(within.Seconds())*rate*2, func(q *plan.Queue) {
			q.Rate = plan.Rate{Starts: rate, Per: plan.Duration(time.Second), Burst: burst}
		})
		p := &starts{most: math.MaxInt}
		m.runNodes(db, 4, 8, p, within)
		m.pair("of-the-rate", "starts", float64(len(p.at)), "the rate lets", within.Seconds()*rate+burst)
		var over atomic.Int64
		for _, window := range []time.Duration{100 * time.Millisecond, time.Second, 5 * time.Second} {
			most := 0
			for i, k := 0, 0; k < len(p.at); k++ {
				for p.at[k].Sub(p.at[i]) > window {
					i++
				}
				most = max(most, k-i+1)
			}
			over.Store(max(over.Load(), int64(1000*float64(most)/(window.Seconds()*rate+burst))))
		}
		m.pair("in-a-window", "starts/1000", float64(over.Load()), "the rate lets", 1000)
		m.note("50 a second and 10 at once on 4 nodes for %s", within)
	})
}
