package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// A crowd is many claimers at work at once, and what they saw.
type crowd struct {
	*world
	threads map[string]int           // of the queues that are limited
	active  map[string]*atomic.Int64 // tasks that claimers have, by queue
	most    int                      // that they may have in all; 0: any number
	workers atomic.Uint64            // how many claim; each has a random source of its own
	all     atomic.Int64             // that they have

	mu       sync.Mutex
	claims   map[plan.TaskID]int // how often each task was claimed
	accepted map[plan.TaskID]int // how many endings of it were accepted
}

// checkOnce wants n tasks, each of which was claimed once and ended no more than once.
func (c *crowd) checkOnce(n int) {
	c.Helper()
	c.equal("tasks", len(c.claims), n)
	for id, times := range c.claims {
		if times != 1 || c.accepted[id] > 1 {
			c.Fatalf("task %s was claimed %d times, and %d endings were accepted", id, times, c.accepted[id])
		}
	}
	c.checkSettled()
}

func (w *world) crowd(threads map[string]int) *crowd {
	c := &crowd{world: w, threads: threads, active: map[string]*atomic.Int64{}, claims: map[plan.TaskID]int{}, accepted: map[plan.TaskID]int{}}
	for q := range threads {
		c.active[q] = new(atomic.Int64)
	}
	return c
}

// work claims and ends tasks until stop says so; each task is held for some turns. It is counted as active no earlier than the
// claim's answer is there, and no longer than until its ending is handed in; so never are too many counted.
func (c *crowd) work(n *node, slots int, do func(protocol.ClaimedTask) protocol.Ending, stop func() bool) {
	type job struct {
		task  protocol.ClaimedTask
		turns int
	}
	var holding []job
	random := rand.New(rand.NewPCG(firstSeed, c.workers.Add(1)))
	for !stop() {
		var ended []protocol.Ending
		holding = slices.DeleteFunc(holding, func(j job) bool {
			if j.turns > 0 {
				return false
			}
			if a := c.active[j.task.QueueName]; a != nil {
				a.Add(-1)
			}
			c.all.Add(-1)
			ended = append(ended, do(j.task))
			return true
		})
		did, err := n.s.Turn(c.ctx, protocol.Turn{Instance: n.id, Plugins: []string{"exec"}, Plan: n.only, Slots: slots - len(holding), Start: true, Ended: ended})
		if errors.Is(err, plan.ErrInstanceGone) {
			return
		}
		if err != nil {
			c.Errorf("turn: %v", err)
			return
		}
		c.note(ended, did)
		for _, t := range did.Claimed {
			if a := c.active[t.QueueName]; a != nil {
				if now := a.Add(1); now > int64(c.threads[t.QueueName]) {
					c.Errorf("invariant 6: %d tasks of queue %q run, its threads are %d", now, t.QueueName, c.threads[t.QueueName])
				}
			}
			if now := c.all.Add(1); c.most > 0 && now > int64(c.most) {
				c.Errorf("invariant 6: %d tasks of one node run, its limit is %d", now, c.most)
			}
			holding = append(holding, job{t, random.IntN(3)})
		}
		if len(did.Claimed)+len(ended) == 0 && !did.More {
			time.Sleep(time.Millisecond) // others have all there is, and they are at real work
		}
		for i := range holding {
			holding[i].turns--
		}
	}
}

func (c *crowd) note(ended []protocol.Ending, did protocol.Turned) {
	c.mu.Lock()
	defer c.mu.Unlock()
	lost := map[plan.TaskID]bool{}
	for _, id := range did.Lost {
		lost[id] = true
	}
	for _, e := range ended {
		if !lost[e.Task] && e.Status.Finished() {
			c.accepted[e.Task]++
		}
	}
	for _, t := range did.Claimed {
		c.claims[t.Task]++
	}
}

// over returns a function that says whether the plan has ended, or the test has failed. It asks the store rarely.
func (c *crowd) over(p plan.Plan) func() bool {
	var calls atomic.Int64
	var over atomic.Bool
	return func() bool {
		if calls.Add(1)%16 == 0 && !over.Load() {
			now, err := c.s.Plan(c.ctx, p.ID)
			over.Store(err != nil || now.State.Ended() || c.Failed())
		}
		return over.Load()
	}
}

// layered is a plan of n tasks in layers of 50, each with up to three parents in the layer before, in the given queues.
func layered(n int, queues ...string) *plan.Spec {
	const wide = 50
	spec := &plan.Spec{Name: "layered"}
	for i := range n {
		t := plan.TaskSpec{Name: fmt.Sprint("t", i), Queue: queues[i%len(queues)]}
		if layer := i / wide; layer > 0 {
			for k := range 3 {
				t.Needs = append(t.Needs, fmt.Sprint("t", (layer-1)*wide+(i+k*17)%wide))
			}
		}
		spec.Add(t)
	}
	return spec
}

var concurrentCases = []testCase{
	{"eight claimers never take a task twice, and never exceed a limit", func(w *world) {
		w.queue("wide", 0)
		w.queue("narrow", 3)
		w.queue("single", 1)
		c := w.crowd(map[string]int{"narrow": 3, "single": 1})
		n := cmp.Or(w.d.Tasks, 2000)
		p := w.submitSpec(layered(n, "wide", "wide", "wide", "narrow", "wide", "single", "narrow", "wide", "wide", "wide"))
		over := c.over(p)
		var wg sync.WaitGroup
		for i := range 8 {
			node := w.nodeOn(w.reopen(nil), plan.NodeName(fmt.Sprint("n", i)))
			wg.Go(func() { c.work(node, 1+i%4*8, ok, over) })
		}
		wg.Wait()
		w.wantPlan(p, plan.PlanSucceeded)
		c.checkOnce(n)
	}},
	{"eight claimers of two instances of one node never exceed its limit", func(w *world) {
		const most = 5
		w.no(w.s.SetMaxThreads(w.ctx, "n1", most))
		w.queue("narrow", 3)
		queues := []string{"narrow", "w0", "w1", "w2", "w3", "w4"} // from several, so that claimers seldom run after the same tasks
		for _, q := range queues[1:] {
			w.queue(q, 0)
		}
		c := w.crowd(map[string]int{"narrow": 3})
		c.most = most
		n := cmp.Or(w.d.Tasks, 2000) / 8
		p := w.submitSpec(layered(n, queues...))
		over := c.over(p)
		nodes := []*node{w.nodeOn(w.reopen(nil), "n1"), w.nodeOn(w.reopen(nil), "n1")}
		var wg sync.WaitGroup
		for i := range 8 {
			claimer := *nodes[i%2]
			if i >= 4 {
				claimer.s = w.reopen(nil)
			}
			wg.Go(func() { c.work(&claimer, 1+i%4, ok, over) })
		}
		wg.Wait()
		w.wantPlan(p, plan.PlanSucceeded)
		c.checkOnce(n)
	}},
	{"eight claimers of two instances of one node never exceed what a queue lets one node have", func(w *world) {
		const most = 5
		q := w.queue("narrow", 0)
		q.NodeThreads = most
		w.no(w.s.SetQueue(w.ctx, q))
		w.queue("wide", 0)
		c := w.crowd(map[string]int{"narrow": most})
		n := cmp.Or(w.d.Tasks, 2000) / 8 / 8 * 8
		nodes := []*node{w.nodeOn(w.reopen(nil), "n1"), w.nodeOn(w.reopen(nil), "n1")}
		var plans []plan.Plan // one for each claimer, so that they run after the same threads and not after the same tasks
		for range 8 {
			plans = append(plans, w.submitSpec(layered(n/8, "narrow", "narrow", "wide")))
		}
		var wg sync.WaitGroup
		for i, p := range plans {
			claimer := *nodes[i%2]
			claimer.only = p.ID
			if i >= 4 {
				claimer.s = w.reopen(nil)
			}
			over := c.over(p)
			wg.Go(func() { c.work(&claimer, 1+i%4, ok, over) })
		}
		wg.Wait()
		for _, p := range plans {
			w.wantPlan(p, plan.PlanSucceeded)
		}
		c.checkOnce(n)
	}},
	{"nodes that die lose nothing, and what they still do is refused", func(w *world) {
		w.queue("wide", 0)
		w.queue("narrow", 4)
		c := w.crowd(nil)
		n := cmp.Or(w.d.Tasks, 2000) / 4
		spec := layered(n, "wide", "wide", "narrow")
		for i := range spec.Tasks {
			spec.Tasks[i].MaxRescues = 1_000_000
		}
		p := w.submitSpec(spec)
		over := c.over(p)
		handles := make([]store.Store, 4)
		for i := range handles {
			handles[i] = w.reopen(nil)
		}
		var wg sync.WaitGroup
		for i := range 8 {
			s := handles[i%len(handles)]
			wg.Go(func() {
				random := rand.New(rand.NewPCG(firstSeed, uint64(i)))
				for life := 0; !over(); life++ { // each instance lives for some turns, and is then taken for dead while it works on
					node, err := w.register(s, plan.NodeName(fmt.Sprint("n", i)))
					if err != nil {
						w.Errorf("register: %v", err)
						return
					}
					turns := 5 + random.IntN(30)
					dead := func() bool { turns--; return turns < 0 || over() }
					c.work(node, 8, ok, dead)
					if _, err := s.Rescue(w.ctx, node.id, -1); err != nil {
						w.Errorf("rescue: %v", err)
						return
					}
				}
			})
		}
		wg.Go(func() {
			sweeper := w.nodeOn(w.reopen(nil), "sweeper")
			for !over() {
				if _, err := sweeper.s.Sweep(w.ctx, protocol.Sweep{Instance: sweeper.id}); err != nil {
					w.Errorf("sweep: %v", err)
					return
				}
				time.Sleep(5 * time.Millisecond)
			}
		})
		wg.Wait()
		w.wantPlan(p, plan.PlanSucceeded)
		claims := 0
		for _, times := range c.claims {
			claims += times
		}
		w.Logf("%d tasks were claimed %d times", n, claims)
		for id, times := range c.accepted {
			if times != 1 {
				w.Errorf("%d endings of task %s were accepted", times, id)
			}
		}
		w.checkSettled()
	}},
	{"a task that many claim a stale right to is ended once", func(w *world) {
		p := w.submit(task("a"))
		n := w.node("n1")
		claim := n.one()
		var accepted atomic.Int64
		var wg sync.WaitGroup
		for i := range 8 {
			other := w.nodeOn(w.reopen(nil), plan.NodeName(fmt.Sprint("o", i)))
			wg.Go(func() {
				did, err := other.s.Turn(w.ctx, protocol.Turn{Instance: other.id, Ended: []protocol.Ending{succeed(claim, fmt.Sprint(i))}})
				if err != nil {
					w.Errorf("turn: %v", err)
				}
				accepted.Add(int64(1 - len(did.Lost)))
			})
		}
		wg.Wait()
		w.equal("accepted", accepted.Load(), 1)
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"parents that end at once in many processes release their child once", func(w *world) {
		const parents, rounds = 8, 10
		nodes := make([]*node, parents)
		for i := range nodes {
			nodes[i] = w.nodeOn(w.reopen(nil), plan.NodeName(fmt.Sprint("n", i)))
		}
		for range rounds {
			spec := &plan.Spec{Name: "diamond"}
			join := plan.TaskSpec{Name: "join"}
			for i := range parents {
				join.Needs = append(join.Needs, spec.Add(task(fmt.Sprint("p", i))).Name)
			}
			spec.Add(join)
			p := w.submitSpec(spec)
			claims := make([]protocol.ClaimedTask, parents)
			for i, n := range nodes {
				claims[i] = n.claim(1)[0]
			}
			var wg sync.WaitGroup
			var joined atomic.Int64
			for i, n := range nodes {
				wg.Go(func() {
					turn := protocol.Turn{Instance: n.id, Plugins: []string{"exec"}, Ended: []protocol.Ending{ok(claims[i])}, Slots: 2, Start: true}
					for range 2 { // the second turn is for what the first left
						did, err := n.s.Turn(w.ctx, turn)
						if err != nil {
							w.Errorf("turn: %v", err)
							return
						}
						joined.Add(int64(len(did.Claimed)))
						turn.Ended = nil
					}
				})
			}
			wg.Wait()
			w.equal("joins", joined.Load(), 1)
			w.want(p, "join running")
			j := w.named(p, "join")
			must(w.s.Rescue(w.ctx, j.Instance, -1))(w)
			cleaner := w.node("cleaner")
			cleaner.run(ok)
			w.wantPlan(p, plan.PlanSucceeded)
			for i, n := range nodes {
				if n.id == j.Instance {
					nodes[i] = w.nodeOn(n.s, n.name)
				}
			}
		}
	}},
	{"a plan does not end while its last task goes back for another attempt", func(w *world) {
		const rounds = 12
		one, two := w.nodeOn(w.reopen(nil), "n1"), w.nodeOn(w.reopen(nil), "n2")
		for round := range rounds {
			p := w.submit(task("a"), task("b"))
			a, b := one.claim(1)[0], two.claim(1)[0]
			start := make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() {
				<-start
				if did, err := one.s.Turn(w.ctx, protocol.Turn{Instance: one.id, Ended: []protocol.Ending{ok(a)}}); err != nil || len(did.Ended) > 0 {
					w.Errorf("the turn that ended %s ended plans %v, %v", a.Name, did.Ended, err)
				}
			})
			wg.Go(func() {
				<-start
				var err error
				switch round % 3 {
				case 0:
					_, err = two.s.Turn(w.ctx, protocol.Turn{Instance: two.id, Ended: []protocol.Ending{later(b, time.Minute)}})
				case 1:
					_, err = two.s.Turn(w.ctx, protocol.Turn{Instance: two.id, Ended: []protocol.Ending{giveBack(b)}})
				case 2:
					_, err = two.s.Rescue(w.ctx, two.id, -1)
				}
				if err != nil {
					w.Errorf("back: %v", err)
				}
			})
			close(start)
			wg.Wait()
			w.wantPlan(p, plan.PlanRunning)
			if clear(two.holding); round%3 == 2 {
				two = w.nodeOn(two.s, "n2")
			}
			clear(one.holding)
			w.pass(time.Minute)
			one.sweep()
			one.run(ok)
			w.wantPlan(p, plan.PlanSucceeded)
			if w.Failed() {
				return
			}
		}
	}},
	{"submitters, a person who cancels and claimers do not hurt each other", func(w *world) {
		w.queue("wide", 0)
		nodes := make([]*node, 4)
		for i := range nodes {
			nodes[i] = w.nodeOn(w.reopen(nil), plan.NodeName(fmt.Sprint("n", i)))
		}
		var compiled [12]struct {
			plan  plan.Plan
			tasks []plan.Task
		}
		for i := range compiled {
			compiled[i].plan, compiled[i].tasks = w.compile(layered(120, "wide"))
		}
		var submitted atomic.Int64
		var wg, claimers sync.WaitGroup
		for i := range compiled {
			s := nodes[i%len(nodes)].s
			wg.Go(func() {
				c := &compiled[i]
				_, err := s.CreatePlan(w.ctx, c.plan)
				for k := 0; k < len(c.tasks) && err == nil; k += 40 {
					err = s.AddTasks(w.ctx, c.plan.ID, c.tasks[k:k+40])
				}
				if err == nil {
					err = s.Ready(w.ctx, c.plan.ID)
				}
				if err == nil && i%3 == 0 {
					if err = s.CancelPlan(w.ctx, c.plan.ID, false); errors.Is(err, plan.ErrPlanEnded) {
						err = nil
					}
				}
				if err != nil {
					w.Errorf("plan %d: %v", i, err)
				}
				submitted.Add(1)
			})
		}
		crowd := w.crowd(nil)
		for _, n := range nodes {
			claimers.Go(func() {
				idle := 0
				crowd.work(n, 16, func(t protocol.ClaimedTask) protocol.Ending { idle = 0; return ok(t) }, func() bool {
					idle++
					return submitted.Load() == int64(len(compiled)) && idle > 20 && crowd.all.Load() == 0 || w.Failed()
				})
			})
		}
		wg.Wait()
		claimers.Wait()
		n := w.node("last")
		n.sweep()
		n.run(ok)
		for i, c := range compiled {
			if got := w.plan(c.plan.ID); i%3 == 0 && got.State != plan.PlanCancelled && got.State != plan.PlanSucceeded || i%3 != 0 && got.State != plan.PlanSucceeded {
				w.Errorf("plan %d is %v: %+v", i, got.State, got.Counts)
			}
		}
		for id, times := range crowd.claims {
			if times != 1 {
				w.Errorf("task %s was claimed %d times", id, times)
			}
		}
		w.checkSettled()
	}},
	{"plans of one name that are created at once have runs of their own", func(w *world) {
		var mu sync.Mutex
		runs := map[int]bool{}
		var wg sync.WaitGroup
		for range 8 {
			s := w.reopen(nil)
			wg.Go(func() {
				for range 5 {
					p, err := s.CreatePlan(w.ctx, plan.Plan{Name: "nightly"})
					if err != nil {
						w.Errorf("create: %v", err)
						return
					}
					mu.Lock()
					runs[p.Run] = true
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		w.equal("runs", []any{len(runs), runs[1], runs[40]}, "[40 true true]")
	}},
	{"a queue that many ensure at once is made once", func(w *world) {
		var mu sync.Mutex
		ids := map[plan.QueueID]bool{}
		var wg sync.WaitGroup
		for range 8 {
			s := w.reopen(nil)
			wg.Go(func() {
				q, err := s.EnsureQueue(w.ctx, plan.Queue{ID: plan.QueueID{ID: plan.NewID(time.Now())}, Name: "shared", Plugin: "exec"})
				if err != nil {
					w.Errorf("ensure: %v", err)
				}
				mu.Lock()
				defer mu.Unlock()
				ids[q.ID] = true
			})
		}
		wg.Wait()
		w.equal("queues", []int{len(ids), len(must(w.s.Queues(w.ctx))(w))}, "[1 1]")
	}},
}
