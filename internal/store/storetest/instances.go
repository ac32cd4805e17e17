package storetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

var instanceCases = []testCase{
	{"an instance is kept as it registered", func(w *world) {
		i := plan.Instance{
			ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: "host.1", Host: "host", Lease: 20 * time.Second, Threads: 16,
			Process: plan.Process{PID: 4711, Identity: "4711 of boot x on host"}, Plugins: []string{"demo", "exec"},
			Plan: plan.PlanID{ID: plan.NewID(time.Now())}, Version: "1.2.3",
			Pauses: []plan.Pause{{Queue: plan.QueueID{ID: plan.NewID(time.Now())}, Each: time.Minute, Why: "no such folder"}},
		}
		for _, i.Runner = range []bool{false, true} {
			w.no(w.s.Register(w.ctx, i))
			got := must(w.s.Instances(w.ctx))(w)
			w.equal("instances", len(got), 1)
			if got[0].Age < 0 || got[0].Age > time.Hour {
				w.Errorf("its last beat was %v ago", got[0].Age)
			}
			got[0].Age = 0
			w.equal("instance", fmt.Sprintf("%+v", got[0]), fmt.Sprintf("%+v", i))
			w.no(w.s.Leave(w.ctx, i.ID))
			i.ID.ID = plan.NewID(time.Now())
		}
	}},
	{"a beat counts, and registering again changes nothing", func(w *world) {
		n := w.node("n1")
		must(w.s.Beat(w.ctx, protocol.Beat{Instance: n.id}))(w)
		must(w.s.Beat(w.ctx, protocol.Beat{Instance: n.id}))(w)
		w.no(w.s.Register(w.ctx, plan.Instance{ID: n.id, Node: "other", Host: "host"}))
		got := must(w.s.Instances(w.ctx))(w)
		w.equal("instances", len(got), 1)
		w.equal("beats", []any{got[0].Beats, got[0].Node}, []any{2, "n1"})
	}},
	{"a beat says how far tasks are, and a running task shows what its own attempt said", progressIsShown},
	{"a beat says which plugins an instance has, if they are others than before", func(w *world) {
		n, other := w.node("n1"), w.node("n2")
		var before plan.Instance
		for i, step := range []struct{ says, want []string }{
			{nil, []string{"exec"}}, {[]string{"demo", "exec"}, []string{"demo", "exec"}}, {nil, []string{"demo", "exec"}},
			{[]string{"demo", "exec"}, []string{"demo", "exec"}}, {[]string{"Site::Copy"}, []string{"Site::Copy"}}, {[]string{}, nil}, {nil, nil},
			{[]string{"exec"}, []string{"exec"}},
		} {
			must(w.s.Beat(w.ctx, protocol.Beat{Instance: n.id, Plugins: step.says}))(w)
			must(w.s.Beat(w.ctx, protocol.Beat{Instance: other.id}))(w)
			for _, got := range must(w.s.Instances(w.ctx))(w) {
				if got.ID == other.id {
					w.equal("plugins of another", got.Plugins, []string{"exec"})
					continue
				}
				w.equal(fmt.Sprintf("plugins after %q", step.says), got.Plugins, step.want)
				w.equal("beats", got.Beats, i+1)
				got.Plugins, got.Beats, got.Age = nil, 0, 0
				if i == 0 {
					before = got
				}
				w.equal("what else is known of it", fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", before))
			}
		}
		must(w.s.Rescue(w.ctx, n.id, -1))(w)
		_, err := w.s.Beat(w.ctx, protocol.Beat{Instance: n.id, Plugins: []string{"demo"}})
		w.is(err, plan.ErrInstanceGone)
	}},
	{"a beat says which queues an instance leaves to others, if they are others than before", func(w *world) {
		n, other := w.node("n1"), w.node("n2")
		q, another := plan.QueueID{ID: plan.NewID(time.Now())}, plan.QueueID{ID: plan.NewID(time.Now())}
		task := plan.TaskID{ID: plan.NewID(time.Now())}
		paused := []plan.Pause{{Queue: q, Each: 8 * time.Second, Why: "no such folder: $TMPDIR \"ü\"", Tasks: []plan.TaskID{task}}, {Queue: another, Tasks: []plan.TaskID{task}}}
		for _, step := range []struct{ says, want []plan.Pause }{
			{nil, nil}, {paused, paused}, {nil, paused}, {paused[1:], paused[1:]}, {[]plan.Pause{}, nil}, {paused[:1], paused[:1]},
		} {
			must(w.s.Beat(w.ctx, protocol.Beat{Instance: n.id, Pauses: step.says}))(w)
			must(w.s.Beat(w.ctx, protocol.Beat{Instance: other.id}))(w)
			for _, got := range must(w.s.Instances(w.ctx))(w) {
				want := step.want
				if got.ID == other.id {
					want = nil
				}
				w.equal(fmt.Sprintf("pauses of %s", got.Node), fmt.Sprint(got.Pauses), fmt.Sprint(want))
			}
		}
	}},
	{"an instance that was rescued stays gone when it registers again", func(w *world) {
		p := w.submit(task("a"))
		n := w.node("n1")
		n.one()
		must(w.s.Rescue(w.ctx, n.id, -1))(w)
		w.no(w.s.Register(w.ctx, plan.Instance{ID: n.id, Node: n.name, Host: "host", Lease: time.Minute, Plugins: []string{"exec"}}))
		_, err := n.try(protocol.Turn{Slots: 1, Start: true})
		w.is(err, plan.ErrInstanceGone)
		_, err = w.s.Beat(w.ctx, protocol.Beat{Instance: n.id})
		w.is(err, plan.ErrInstanceGone)
		w.equal("instances", len(must(w.s.Instances(w.ctx))(w)), 0)
		w.want(p, "a queued")
	}},
	{"two instances of one node are two", func(w *world) {
		a, b := w.node("n1"), w.node("n1")
		w.submit(task("a"), task("b"))
		a.claim(1)
		b.claim(1)
		w.equal("instances", len(must(w.s.Instances(w.ctx))(w)), 2)
		w.equal("taken from a", must(w.s.Rescue(w.ctx, a.id, -1))(w), 1)
		w.equal("instances", len(must(w.s.Instances(w.ctx))(w)), 1)
		w.equal("lost by b", len(b.end(ok(slices.Collect(maps.Values(b.holding))[0])).Lost), 0)
	}},
	{"of instances that are sole one has the node's name, until it is gone", func(w *world) {
		register := func(name plan.NodeName, sole bool) (plan.InstanceID, error) {
			i := plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: name, Host: "host", Lease: time.Minute, Sole: sole}
			err := w.s.Register(w.ctx, i)
			if err == nil {
				w.no(w.s.Register(w.ctx, i)) // as after an answer that was lost
			}
			return i.ID, err
		}
		shared := must(register("n1", false))(w)
		first := must(register("n1", true))(w)
		_, err := register("n1", true)
		w.is(err, plan.ErrNameTaken)
		must(register("n2", true))(w)
		w.equal("instances", len(must(w.s.Instances(w.ctx))(w)), 3)
		for _, i := range must(w.s.Instances(w.ctx))(w) {
			w.equal("is sole", i.Sole, i.ID != shared)
		}
		must(w.s.Rescue(w.ctx, first, -1))(w)
		second := must(register("n1", true))(w)
		w.no(w.s.Register(w.ctx, plan.Instance{ID: first, Node: "n1", Host: "host", Lease: time.Minute, Sole: true})) // gone, and stays so
		w.no(w.s.Leave(w.ctx, second))

		won := make([]bool, 8)
		var wg sync.WaitGroup
		for k := range won {
			wg.Go(func() {
				_, err := register("n1", true)
				if won[k] = err == nil; !won[k] {
					w.is(err, plan.ErrNameTaken)
				}
			})
		}
		wg.Wait()
		w.equal("of eight at once got the name", len(slices.DeleteFunc(won, func(ok bool) bool { return !ok })), 1)
	}},
	{"a beat tells of the node's own limit", func(w *world) {
		n, other := w.node("n1"), w.node("n2")
		most := func(n *node) int { return must(w.s.Beat(w.ctx, protocol.Beat{Instance: n.id}))(w).MaxThreads }
		if got := most(n); got >= 0 {
			w.Errorf("a node without a limit is told %d", got)
		}
		w.no(w.s.SetMaxThreads(w.ctx, "n1", 3))
		w.no(w.s.SetMaxThreads(w.ctx, "n3", 5))
		w.equal("limit", most(n), 3)
		w.equal("limit of a node that came later", most(w.node("n3")), 5)
		if got := most(other); got >= 0 {
			w.Errorf("another node is told %d", got)
		}
		w.no(w.s.SetMaxThreads(w.ctx, "n1", 0))
		w.equal("limit", most(n), 0)
		w.no(w.s.SetMaxThreads(w.ctx, "n1", -1))
		if got := most(n); got >= 0 {
			w.Errorf("a node whose limit was taken off is told %d", got)
		}
	}},
	{"the limits of nodes are read, of those that are not there as well", func(w *world) {
		limits := func() map[plan.NodeName]int { return must(w.s.MaxThreads(w.ctx))(w) }
		w.node("n1")
		w.equal("limits where none is set", len(limits()), 0)
		w.no(w.s.SetMaxThreads(w.ctx, "n1", 0))
		w.no(w.s.SetMaxThreads(w.ctx, "later", 7))
		if got, want := limits(), (map[plan.NodeName]int{"n1": 0, "later": 7}); !maps.Equal(got, want) {
			w.Errorf("limits are %v, want %v", got, want)
		}
		w.no(w.s.SetMaxThreads(w.ctx, "n1", -1))
		if got, want := limits(), (map[plan.NodeName]int{"later": 7}); !maps.Equal(got, want) {
			w.Errorf("after one was taken off limits are %v, want %v", got, want)
		}
	}},
	{"a beat tells that somebody queued more than it can run", func(w *world) {
		n := w.node("n1")
		wake := func() int64 { return must(w.s.Beat(w.ctx, protocol.Beat{Instance: n.id}))(w).Wake }
		before := wake()
		w.equal("wake when nothing happened", wake(), before)
		p, tasks := w.compile(&plan.Spec{Name: "nightly", Tasks: []plan.TaskSpec{task("a")}})
		other := w.reopen(nil)
		must(other.CreatePlan(w.ctx, p))(w)
		w.no(other.AddTasks(w.ctx, p.ID, tasks))
		w.no(other.Ready(w.ctx, p.ID))
		if wake() == before {
			w.Error("a plan was submitted, and wake did not change")
		}
	}},
	{"a beat tells that a queue was set so that more of its tasks may run", func(w *world) {
		q := must(w.s.CreateQueue(w.ctx, plan.Queue{Name: "narrow", Plugin: "exec"}))(w)
		waits := task("a")
		waits.Queue = "narrow"
		w.submit(waits)
		n := w.node("n1")
		wake := func() int64 { return must(w.s.Beat(w.ctx, protocol.Beat{Instance: n.id}))(w).Wake }
		before := wake()
		for _, step := range []struct {
			what string
			set  func()
		}{
			{"threads were given", func() { q.Threads, q.NodeThreads = 9, 2 }},
			{"the limit of each node was taken off", func() { q.NodeThreads = 0 }},
			{"it was pinned to another node", func() { q.Pin = []plan.NodeName{"n2"} }},
			{"it was pinned to this node too", func() { q.Pin = []plan.NodeName{"n2", "n1"} }},
		} {
			step.set()
			w.no(w.reopen(nil).SetQueue(w.ctx, q)) // as a process of its own does
			now := wake()
			if q.ServedBy("n1") && now == before {
				w.Errorf("%s, and wake did not change", step.what)
			}
			before = now
		}
	}},
	{"what waits for work is woken soon after another process queued some", func(w *world) {
		wakes := w.s.Wakes(w.ctx)
		if wakes == nil {
			return // this store cannot tell, and says so
		}
		p, tasks := w.compile(&plan.Spec{Name: "nightly", Tasks: []plan.TaskSpec{task("a")}})
		other := w.reopen(nil)
		must(other.CreatePlan(w.ctx, p))(w)
		w.no(other.AddTasks(w.ctx, p.ID, tasks))
		w.no(other.Ready(w.ctx, p.ID))
		select {
		case <-wakes:
		case <-time.After(time.Minute):
			w.Error("nobody was woken in a minute")
		}
	}},
	{"a node of a plan of its own is woken soon after another process ended that", func(w *world) {
		spec := &plan.Spec{Name: "own", Tasks: []plan.TaskSpec{task("a")}}
		p, tasks := w.compile(spec)
		p.Own = true
		must(w.s.CreatePlan(w.ctx, p))(w)
		w.add(p.ID, tasks...)
		w.no(w.s.Ready(w.ctx, p.ID))
		other := w.nodeOn(w.reopen(nil), "n2")
		c := other.one()
		wakes := w.s.Wakes(w.ctx)
		if wakes == nil {
			return // this store cannot tell, and says so
		}
		other.end(ok(c))
		select {
		case <-wakes:
		case <-time.After(time.Minute):
			w.Error("nobody was woken in a minute")
		}
	}},
	{"what waits for work is told when its context ends", func(w *world) {
		ctx, cancel := context.WithCancel(w.ctx)
		wakes := w.s.Wakes(ctx)
		if cancel(); wakes == nil {
			return // this store cannot tell, and says so
		}
		for timeout := time.After(time.Minute); ; {
			select {
			case _, open := <-wakes:
				if !open {
					return
				}
			case <-timeout:
				w.Fatal("the channel was not closed in a minute")
			}
		}
	}},
	{"a node that leaves gives back what it holds", func(w *world) {
		p := w.submit(task("claimed"), task("running"))
		n := w.node("n1")
		c := n.turn(protocol.Turn{Slots: 2}).Claimed
		k := slices.IndexFunc(c, func(c protocol.ClaimedTask) bool { return c.Name == "running" })
		must(w.s.Start(w.ctx, []protocol.Claim{c[k].Claim}))(w)
		w.no(w.s.Leave(w.ctx, n.id))
		w.want(p, "claimed queued", "running queued")
		w.equal("rescues", []int{w.named(p, "claimed").Rescues, w.named(p, "running").Rescues}, "[0 1]")
		w.equal("instances", len(must(w.s.Instances(w.ctx))(w)), 0)
		w.no(w.s.Leave(w.ctx, n.id))
	}},
	{"a rescue takes tasks only from an instance that has not beat since", func(w *world) {
		p := w.submit(task("a"))
		n := w.node("n1")
		c := n.one()
		must(w.s.Beat(w.ctx, protocol.Beat{Instance: n.id}))(w)
		_, err := w.s.Rescue(w.ctx, n.id, 0)
		w.is(err, plan.ErrConflict)
		w.want(p, "a running")
		w.equal("taken", must(w.s.Rescue(w.ctx, n.id, 1))(w), 1)
		w.want(p, "a queued")
		w.equal("taken from one that is gone", must(w.s.Rescue(w.ctx, n.id, 1))(w), 0)
		_, err = w.s.Beat(w.ctx, protocol.Beat{Instance: n.id})
		w.is(err, plan.ErrInstanceGone)
		lost := must(w.s.Start(w.ctx, []protocol.Claim{c.Claim}))(w)
		w.equal("lost", lost, []plan.TaskID{c.Task})
		w.is(w.s.AppendLog(w.ctx, c.Claim, []plan.LogEntry{{Attempt: 1, Stream: plan.Stdout, Text: "x\n"}}), plan.ErrClaimLost)
	}},
	{"invariant 5: what a rescued instance still ends is refused, when another runs it and when it has ended", func(w *world) {
		p := w.submit(task("a"))
		n, other := w.node("n1"), w.node("n2")
		stale := n.one()
		must(w.s.Rescue(w.ctx, n.id, -1))(w)
		fresh := other.one()
		w.equal("attempt", []any{fresh.Attempt > stale.Attempt, fresh.Rescues, fresh.Token != stale.Token}, []any{true, 1, true})
		w.equal("lost", other.turn(protocol.Turn{Ended: []protocol.Ending{succeed(stale, `"stale"`)}}).Lost, []plan.TaskID{stale.Task})
		w.want(p, "a running")
		other.end(succeed(fresh, `"fresh"`))
		w.equal("lost", other.turn(protocol.Turn{Ended: []protocol.Ending{succeed(stale, `"stale"`)}}).Lost, []plan.TaskID{stale.Task})
		w.equalJSON("output", w.named(p, "a").Output, `"fresh"`)
	}},
	{"what is lost with its node is queued again or orphaned, as its definition says", testLost},
	{"an attempt that was lost does not count for retry, and the next claim knows of it", func(w *world) {
		spec := plan.TaskSpec{Name: "a", Retry: plan.Retry{Attempts: 2}, MaxRescues: 5}
		p := w.submit(spec)
		const lost = plan.ReasonLost
		for _, step := range []struct {
			start, lost      bool
			attempt, rescues int         // of the claim
			reason           plan.Reason // of the attempt before
			then             string
		}{
			{true, true, 1, 0, "", "a queued"}, {false, true, 2, 1, lost, "a queued"}, {true, true, 2, 1, lost, "a queued"},
			{true, false, 3, 2, lost, "a held"}, {true, true, 4, 2, "", "a queued"}, {true, false, 5, 3, lost, "a failed"},
		} {
			n := w.node("n1")
			c := n.turn(protocol.Turn{Slots: 1, Start: step.start}).Claimed[0]
			w.equal("claim", []any{c.Attempt, c.Rescues, c.Reason}, []any{step.attempt, step.rescues, step.reason})
			if step.lost {
				must(w.s.Rescue(w.ctx, n.id, -1))(w)
			} else {
				n.end(rules.Conclude(&c, plan.Result{Status: plan.Failed}, func(_ plan.Retry, tried int) time.Duration {
					w.equal("tried", tried, 1)
					return time.Minute
				}))
				w.want(p, step.then)
				w.pass(2 * time.Minute)
				n.sweep()
				w.no(w.s.Leave(w.ctx, n.id))
				continue
			}
			w.want(p, step.then)
		}
		a := w.named(p, "a")
		w.equal("a", []any{a.Attempt, a.Rescues, a.Reason}, "[5 3 ]")
	}},
	{"where a definition does not say what becomes of a lost task, its queue does", testLostByQueue},
	{"what a queue says of lost tasks counts as it is when they are lost", func(w *world) {
		q := w.queue("exec", 0)
		p := w.submit(task("a"))
		plain := w.newTask(q, "plain")
		w.add(plan.PlanID{}, plain)
		for _, step := range []struct {
			says    plan.OnLost
			claimed plan.OnLost // what it said then
			want    plan.Status
		}{{plan.OnLostRetry, "", plan.Queued}, {plan.OnLostFail, plan.OnLostRetry, plan.Orphaned}} {
			n := w.node("n1")
			for _, c := range n.claim(9) {
				w.equal(c.Name+" was claimed in a queue that says", c.Settings.OnLost, step.claimed)
			}
			w.equal("claimed", len(n.holding), 2)
			q.OnLost = step.says
			w.no(w.s.SetQueue(w.ctx, q))
			w.equal("set", w.queueNamed("exec").OnLost, step.says)
			w.equal("taken by a rescue", must(w.s.Rescue(w.ctx, n.id, 0))(w), 2)
			w.equal("a", w.named(p, "a").Status, step.want)
			w.equal("of no plan", w.task(plain.ID).Status, step.want)
		}
		q.OnLost = plan.OnLostDefault
		w.no(w.s.SetQueue(w.ctx, q))
		w.equal("taken off", w.queueNamed("exec").OnLost, plan.OnLostDefault)
	}},
	{"sweep gives back claims of the instance that it does not hold", func(w *world) {
		p := w.submit(task("a"), task("b"), task("c"))
		n := w.node("n1")
		n.claim(2)
		kept := n.holding[w.named(p, "a").ID]
		n.holding = map[plan.TaskID]protocol.ClaimedTask{kept.Task: kept} // the answer about b was lost
		other := w.node("n2")
		other.one()
		n.sweep()
		w.want(p, "a running", "b queued", "c running")
		b := w.named(p, "b")
		w.equal("b", []any{b.Attempt, b.Rescues, b.Node}, []any{0, 0, ""})
		n.sweep()
		w.want(p, "a running", "b queued", "c running")
	}},
	{"delays that are over queue their tasks once, however many sweep at once", func(w *world) {
		const many = 100
		p := w.submit(numbered(many)...)
		n := w.node("n1")
		n.run(func(c protocol.ClaimedTask) protocol.Ending { return later(c, time.Minute) })
		w.pass(2 * time.Minute)
		sweepers := make([]*node, 8)
		for i := range sweepers {
			sweepers[i] = w.nodeOn(w.reopen(nil), plan.NodeName(fmt.Sprint("s", i)))
		}
		var mu sync.Mutex
		queued := 0
		var wg sync.WaitGroup
		for _, s := range sweepers {
			wg.Go(func() {
				for more := true; more; {
					did, err := s.s.Sweep(w.ctx, protocol.Sweep{Instance: s.id})
					if err != nil {
						w.Errorf("sweep: %v", err)
						return
					}
					mu.Lock()
					queued += did.Queued
					mu.Unlock()
					more = did.More
				}
			})
		}
		wg.Wait()
		w.equal("queued", queued, many)
		w.equal("counts", w.plan(p.ID).Counts.Queued, many)
	}},
	{"a sweep changes no more than its budget", func(w *world) {
		const many = 50
		w.submit(numbered(many)...)
		n := w.node("n1")
		n.run(func(c protocol.ClaimedTask) protocol.Ending { return later(c, time.Minute) })
		w.pass(2 * time.Minute)
		sweeps := 0
		for queued := 0; queued < many; sweeps++ {
			did := must(n.s.Sweep(w.ctx, protocol.Sweep{Instance: n.id, Budget: 20}))(w)
			if queued += did.Queued; did.Queued > 20 || !did.More && queued < many {
				w.Fatalf("a sweep with a budget of 20 queued %d, %d in all, more: %v", did.Queued, queued, did.More)
			}
		}
		w.equal("sweeps", sweeps, 3)
	}},
	{"a submission that nobody touches for an hour is abandoned, and its tasks deleted", func(w *world) {
		p := w.submitUnready(&plan.Spec{Name: "nightly", Tasks: []plan.TaskSpec{task("a"), task("b", "a")}})
		kept := w.submit(task("a"))
		n := w.node("n1")
		w.pass(50 * time.Minute)
		w.add(p.ID, w.newTask(w.queue("exec", 0), "touch"))
		w.pass(50 * time.Minute)
		n.sweep()
		w.wantPlan(p, plan.PlanSubmitting)
		w.pass(11 * time.Minute)
		n.sweep()
		w.wantPlan(p, plan.PlanAbandoned)
		w.equal("tasks left", len(w.all(store.TaskQuery{Plan: p.ID})), 0)
		w.want(kept, "a queued")
		w.is(w.s.AddTasks(w.ctx, p.ID, []plan.Task{w.newTask(w.queue("exec", 0), "late")}), plan.ErrPlanEnded)
	}},
}

// testLost kills a node in every state that a task of its can be in.
func testLost(w *world) {
	q := w.queue("exec", 0)
	spec := &plan.Spec{Name: "nightly", Tasks: []plan.TaskSpec{
		task("plain"), {Name: "once", OnLost: plan.OnLostFail}, {Name: "tough", MaxRescues: 5}, {Name: "weak", MaxRescues: 1}, task("cancelled"),
	}}
	p := w.submitSpec(spec)
	once, again := w.newTask(q, "disbatch"), w.newTask(q, "again")
	again.OnLost = plan.OnLostRetry
	w.add(plan.PlanID{}, once, again)
	for lost := 1; lost <= 6; lost++ {
		n := w.node("n1")
		n.claim(9)
		if lost == 1 {
			w.no(w.s.CancelTask(w.ctx, w.named(p, "cancelled").ID))
		}
		must(w.s.Rescue(w.ctx, n.id, -1))(w)
		keeper := w.node("keeper")
		keeper.end() // releases what a rescue ended
		w.no(w.s.Leave(w.ctx, keeper.id))
		state := func(most int) string {
			if lost <= most {
				return "queued"
			}
			return "orphaned"
		}
		w.want(p, "once orphaned", "cancelled terminated", "plain "+state(plan.DefaultRescues), "tough "+state(5), "weak "+state(1))
		w.equal("of no plan", plan.State(w.task(once.ID).Status, ""), "orphaned")
		w.equal("of no plan, on_lost retry", plan.State(w.task(again.ID).Status, ""), state(plan.DefaultRescues))
		if t := w.named(p, "tough"); lost <= 5 && t.Rescues != lost {
			w.Errorf("tough was rescued %d times, want %d", t.Rescues, lost)
		}
	}
	w.equal("reason", w.named(p, "once").Reason, plan.ReasonLost)
	w.wantPlan(p, plan.PlanFailed)
}

// testLostByQueue loses what every kind of queue has, of tasks of a plan and of none, which a node runs, a runner has, or that were only claimed.
func testLostByQueue(w *world) {
	var tasks []plan.TaskSpec
	want := map[string]plan.Status{}
	var plain []plan.Task
	for _, queue := range []struct {
		name          string
		says          plan.OnLost
		inPlan, plain plan.Status // what becomes of those that say nothing
	}{
		{"default", "", plan.Queued, plan.Orphaned},
		{"retry", plan.OnLostRetry, plan.Queued, plan.Queued},
		{"fail", plan.OnLostFail, plan.Orphaned, plan.Orphaned},
	} {
		q := must(w.s.CreateQueue(w.ctx, plan.Queue{Name: queue.name, Plugin: "exec", Unlimited: true, QueueSettings: plan.QueueSettings{OnLost: queue.says}}))(w)
		w.equal("made", []any{q.OnLost, w.queueNamed(queue.name).OnLost}, []any{queue.says, queue.says})
		for _, own := range []plan.OnLost{plan.OnLostDefault, plan.OnLostRetry, plan.OnLostFail} {
			inPlan, none := queue.inPlan, queue.plain
			if own != plan.OnLostDefault {
				inPlan = map[plan.OnLost]plan.Status{plan.OnLostRetry: plan.Queued, plan.OnLostFail: plan.Orphaned}[own]
				none = inPlan
			}
			for _, kind := range []string{"runs-", "taken-", "claimed-"} {
				if kind == "claimed-" {
					inPlan, none = plan.Queued, plan.Queued
				}
				name := fmt.Sprint(kind, queue.name, "-", own)
				tasks = append(tasks, plan.TaskSpec{Name: name, Queue: queue.name, OnLost: own})
				t := w.newTask(q, "plain-"+name)
				t.OnLost = own
				plain = append(plain, t)
				want[name], want[t.Name] = inPlan, none
			}
		}
	}
	p := w.submit(tasks...)
	w.add(plan.PlanID{}, plain...)
	n, r := w.node("n1"), w.runner("n1")
	for _, c := range n.turn(protocol.Turn{Slots: 99}).Claimed {
		switch kind := strings.TrimPrefix(c.Name, "plain-"); {
		case strings.HasPrefix(kind, "runs-"):
			w.equal("lost at its start", len(must(n.s.Start(w.ctx, []protocol.Claim{c.Claim}))(w)), 0)
		case strings.HasPrefix(kind, "taken-"):
			w.equal("the queue's word, as "+c.Name+" was taken", r.takeOver(c.Task, true).Settings.OnLost, c.Settings.OnLost)
		}
	}
	w.equal("taken by the rescues", must(w.s.Rescue(w.ctx, n.id, 0))(w)+must(w.s.Rescue(w.ctx, r.id, 0))(w), len(want))
	for _, t := range w.all(store.TaskQuery{Plan: p.ID}) {
		w.equal(t.Name, t.Status, want[t.Name])
	}
	for _, t := range plain {
		w.equal(t.Name, w.task(t.ID).Status, want[t.Name])
	}
}
