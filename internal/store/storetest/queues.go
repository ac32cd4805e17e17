package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// claims has a node end what it runs, and start as many tasks of up to so many slots as are wanted.
func claims(want int, n *node, slots int, ended ...protocol.Ending) {
	n.w.Helper()
	n.w.equal("claimed", len(n.turn(protocol.Turn{Slots: slots, Ended: ended, Start: true}).Claimed), want)
}

var queueCases = []testCase{
	{"a queue is kept as it was given, and its name is taken", func(w *world) {
		q := plan.Queue{ID: plan.QueueID{ID: plan.NewID(time.Now())}, Name: "wide", Plugin: "demo", Threads: 7, Sort: plan.SortLIFO}
		made := must(w.s.CreateQueue(w.ctx, q))(w)
		w.equal("made", fmt.Sprintf("%+v", made), fmt.Sprintf("%+v", q))
		_, err := w.s.CreateQueue(w.ctx, plan.Queue{ID: plan.QueueID{ID: plan.NewID(time.Now())}, Name: "wide", Plugin: "exec"})
		w.is(err, plan.ErrExists)
		there := must(w.s.EnsureQueue(w.ctx, plan.Queue{Name: "wide", Plugin: "exec", Threads: 1}))(w)
		w.equal("ensured", []any{there.ID, there.Plugin, there.Threads, there.Sort}, []any{q.ID, "demo", 7, plan.SortLIFO})
		other := must(w.s.EnsureQueue(w.ctx, plan.Queue{Name: "other", Plugin: "exec", Unlimited: true}))(w)
		if other.ID.IsZero() || !other.Unlimited {
			w.Errorf("a queue that was missing is %+v", other)
		}
		var all []string
		for _, q := range must(w.s.Queues(w.ctx))(w) {
			all = append(all, q.Name)
		}
		w.equal("queues by name", all, "[other wide]")
	}},
	{"queues count what waits and what runs", func(w *world) {
		w.queue("narrow", 2)
		p := w.submit(in("narrow", "a"), in("narrow", "b"), in("narrow", "c"), in("narrow", "d", "a"), task("e"))
		counts := func(queued, active int) {
			w.Helper()
			q := w.queueNamed("narrow")
			w.equal("queued and active", []int{q.Queued, q.Active}, []int{queued, active})
		}
		counts(3, 0)
		n := w.node("n1")
		n.turn(protocol.Turn{Slots: 9})
		counts(1, 2)
		n.end(ok(n.holding[w.named(p, "a").ID]))
		counts(2, 1)
		n.end(giveBack(n.holding[w.named(p, "b").ID]))
		counts(3, 0)
		w.no(w.s.CancelTask(w.ctx, w.named(p, "c").ID))
		counts(2, 0)
		n.run(ok)
		counts(0, 0)
	}},
	{"invariant 6: threads that are given back, rescued, delayed and cancelled are free again", func(w *world) {
		w.queue("narrow", 1)
		p := w.submit(in("narrow", "a"), in("narrow", "b"), in("narrow", "c"), in("narrow", "d"), in("narrow", "e"))
		n := w.node("n1")
		n.end(later(n.one(), time.Hour))
		n.end(fail(n.one()))
		must(w.s.Rescue(w.ctx, n.id, -1))(w)
		n = w.node("n1")
		n.one()
		must(w.s.Rescue(w.ctx, n.id, -1))(w)
		n = w.node("n1")
		n.one()
		clear(n.holding)
		n.sweep() // the claim was not held
		c := n.one()
		w.no(w.s.CancelTask(w.ctx, c.Task))
		n.end(giveBack(c))
		w.equal("the rest", len(n.run(ok)), 2)
		w.equal("active", w.queueNamed("narrow").Active, 0)
		w.equal("counts", w.plan(p.ID).Counts.Held, 1)
	}},
	{"invariant 6: the instances of a node have no more tasks claimed and running together than its limit", func(w *world) {
		w.no(w.s.SetMaxThreads(w.ctx, "n1", 3))
		a, b, other := w.node("n1"), w.nodeOn(w.reopen(nil), "n1"), w.node("n2")
		set := func(most int) {
			w.no(w.s.SetMaxThreads(w.ctx, "n1", most))
			for _, n := range []*node{a, b} {
				must(n.s.Beat(w.ctx, protocol.Beat{Instance: n.id}))(w)
			}
		}
		w.queue("narrow", 2)
		w.queue("wide", 0)
		var tasks []plan.TaskSpec
		for i := range 20 {
			tasks = append(tasks, in("narrow", fmt.Sprint("n", i)), in("wide", fmt.Sprint("w", i)))
		}
		p := w.submit(tasks...)
		claims(2, a, 2)
		claims(1, b, 9)
		claims(0, a, 9)
		claims(0, b, 9)
		claims(5, other, 5)
		a.end(ok(oneOf(a)))
		claims(1, b, 9)
		claims(0, a, 9)
		claims(1, a, 9, giveBack(oneOf(a)))
		claims(1, b, 9, later(oneOf(b), time.Hour))
		claims(1, b, 9, fail(oneOf(b)))
		claims(0, a, 9)

		set(1) // a has 1 task and b has 2
		claims(0, b, 9, ok(oneOf(b)))
		must(w.s.Rescue(w.ctx, b.id, -1))(w)
		b = w.nodeOn(b.s, "n1")
		claims(0, b, 9)
		must(w.s.Rescue(w.ctx, a.id, -1))(w)
		claims(1, b, 9)
		a = w.nodeOn(a.s, "n1")
		claims(0, a, 9)
		set(0)
		claims(0, b, 9, ok(oneOf(b)))
		claims(0, a, 9)
		set(4)
		claims(4, a, 9)
		set(-1)
		claims(6, b, 6)
		set(4)
		claims(0, a, 9)
		w.equal("running", w.plan(p.ID).Counts.Running, 5+4+6)
	}},
	{"threads can be raised, lowered, closed to 0 and lifted", func(w *world) {
		q := w.queue("narrow", 1)
		tasks := make([]plan.TaskSpec, 10)
		for i := range tasks {
			tasks[i] = in("narrow", fmt.Sprint("t", i))
		}
		w.submit(tasks...)
		n := w.node("n1")
		w.equal("with 1", len(n.claim(9)), 1)
		set := func(threads int, unlimited bool) {
			q.Threads, q.Unlimited = threads, unlimited
			w.no(w.s.SetQueue(w.ctx, q))
		}
		set(3, false)
		w.equal("with 3", len(n.claim(9)), 2)
		set(1, false)
		ended := 0
		for _, c := range n.holding {
			w.equal("with 1 again", len(n.turn(protocol.Turn{Ended: []protocol.Ending{ok(c)}, Slots: 9}).Claimed), ended/2)
			if ended++; ended == 3 {
				break
			}
		}
		set(0, false)
		n.end(ok(oneOf(n)))
		w.equal("with 0", len(n.claim(9)), 0)
		set(0, true)
		w.equal("unlimited", len(n.claim(99)), 6)
		w.equal("queue", w.queueNamed("narrow").Unlimited, true)
	}},
	{"a queue is changed only as it was read, and by one of many who read the same", func(w *world) {
		id := w.queue("q", 3).ID
		read := func() plan.Queue {
			w.Helper()
			q := w.queueNamed("q")
			w.equal("id", q.ID, id)
			return q
		}
		change := func(was plan.Queue, set func(*plan.Queue)) error {
			q := was
			set(&q)
			return w.s.ChangeQueue(w.ctx, was, q)
		}
		// Each setting can be changed, and each makes what was read before out of date.
		for _, set := range []func(*plan.Queue){
			func(q *plan.Queue) { q.Threads = 5 },
			func(q *plan.Queue) { q.Threads, q.Unlimited = 0, true },
			func(q *plan.Queue) { q.Threads, q.Unlimited = 5, false },
			func(q *plan.Queue) { q.Sort = plan.SortLIFO },
			func(q *plan.Queue) { q.Pin = []plan.NodeName{"n1", "n2"} },
			func(q *plan.Queue) { q.Pin = []plan.NodeName{"n1"} },
			func(q *plan.Queue) { q.Pin, q.Ignore = nil, []plan.NodeName{"n3"} },
			func(q *plan.Queue) { q.NodeThreads = 2 },
			func(q *plan.Queue) { q.OnLost = plan.OnLostFail },
			func(q *plan.Queue) { q.Secrets = []string{"password"} },
			func(q *plan.Queue) { q.Secrets = []string{"*_key", "password"} },
			func(q *plan.Queue) {
				q.Keep = plan.Keep{Succeeded: plan.Duration(time.Hour), Failed: -1, Orphaned: plan.Duration(time.Minute)}
			},
			func(q *plan.Queue) {
				q.Keep = plan.Keep{Terminated: plan.Duration(36500 * 24 * time.Hour), Cancelled: plan.Duration(time.Second)}
			},
			func(q *plan.Queue) {
				q.Defaults = plan.TaskDefaults{
					Params: json.RawMessage(`{"url":"http://a/","n":12345678901234567890,"$date":{"x":null}}`), Retry: plan.RetryText{Attempts: 3, Delay: -1},
					Timeout: plan.Duration(time.Minute),
				}
			},
			func(q *plan.Queue) { q.Defaults.Params = nil },
			func(q *plan.Queue) { q.Description, q.ObjectRef = "a song", []string{"$SongId", "a.b"} },
			func(q *plan.Queue) {
				q.NodeThreads, q.Ignore, q.Sort, q.QueueSettings = 0, nil, "", plan.QueueSettings{}
			},
		} {
			was := read()
			w.no(change(was, set))
			w.no(change(was, set)) // as after an answer that was lost
			want := was
			set(&want)
			if got := read(); !got.SameSettings(&want) {
				w.Fatalf("the queue is %+v, want %+v", got, want)
			}
			w.is(change(was, func(q *plan.Queue) { q.Threads, q.Unlimited = 77, false }), plan.ErrConflict)
			if got := read(); !got.SameSettings(&want) {
				w.Fatalf("after a conflict the queue is %+v, want %+v", got, want)
			}
		}
		w.is(w.s.ChangeQueue(w.ctx, plan.Queue{ID: plan.QueueID{ID: plan.NewID(time.Now())}}, plan.Queue{ID: plan.QueueID{ID: plan.NewID(time.Now())}}), plan.ErrNotFound)

		handles := []store.Store{w.s, w.reopen(nil)}
		for range 5 {
			was := read()
			var mu sync.Mutex
			var made []int
			var wg sync.WaitGroup
			for i := range 4 {
				q := was
				q.Threads, q.Unlimited = was.Threads+1+i, false
				wg.Go(func() {
					err := handles[i%2].ChangeQueue(w.ctx, was, q)
					mu.Lock()
					defer mu.Unlock()
					if err == nil {
						made = append(made, q.Threads)
					} else if !errors.Is(err, plan.ErrConflict) {
						w.Error(err)
					}
				})
			}
			wg.Wait()
			if got := read(); len(made) != 1 || got.Threads != made[0] {
				w.Fatalf("threads %v were set, and the queue has %d; want one of them", made, got.Threads)
			}
		}
	}},
	{"fifo is oldest first whatever the rank, lifo is newest first, and the order can be changed", func(w *world) {
		q := w.queue("ordered", 0)
		p := must(w.s.CreatePlan(w.ctx, plan.Plan{Name: "nightly"}))(w)
		var tasks []plan.Task
		for i, rank := range []int64{1, 5, 3, 9, 2, 7} {
			t := w.newTask(q, fmt.Sprint("t", i))
			t.Rank = rank
			tasks = append(tasks, t)
		}
		w.add(p.ID, tasks...)
		w.no(w.s.Ready(w.ctx, p.ID))
		n := w.node("n1")
		for _, step := range []struct {
			sort plan.QueueSort
			want string
		}{{plan.SortDefault, "t3"}, {plan.SortLIFO, "t5"}, {plan.SortFIFO, "t0"}, {plan.SortLIFO, "t4"}, {plan.SortDefault, "t1"}, {plan.SortFIFO, "t2"}} {
			q.Sort = step.sort
			w.no(w.s.SetQueue(w.ctx, q))
			w.equal("sort "+string(step.sort), names(n.claim(1)), "["+step.want+"]")
		}
	}},
	{"what is queued later goes by its rank and its age, not by when it was queued", func(w *world) {
		w.queue("narrow", 1)
		p := w.submit(in("narrow", "first"), in("narrow", "x", "first"), in("narrow", "last"))
		n := w.node("n1")
		c := n.one()
		w.equal("first", c.Name, "first")
		did := n.turn(protocol.Turn{Ended: []protocol.Ending{ok(c)}, Slots: 1})
		w.equal("then", names(did.Claimed), "[x]")
		n.end(ok(did.Claimed[0]))
		n.run(ok)
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"what a turn queues and what was queued before are claimed in one order", func(w *world) {
		for _, c := range []struct {
			sort plan.QueueSort
			want string
		}{{plan.SortDefault, "[c f][d e][b]"}, {plan.SortFIFO, "[b c][d e][f]"}, {plan.SortLIFO, "[e f][c d][b]"}} {
			q := w.queue("ordered-"+string(c.sort), 0)
			p := must(w.s.CreatePlan(w.ctx, plan.Plan{Name: "nightly"}))(w)
			a := w.newTask(q, "a")
			a.Rank = 9
			w.add(p.ID, a)
			for _, of := range []struct {
				name  string
				rank  int64
				needs []plan.TaskID
			}{{"b", 1, nil}, {"c", 7, []plan.TaskID{a.ID}}, {"d", 3, nil}, {"e", 4, []plan.TaskID{a.ID}}, {"f", 5, []plan.TaskID{a.ID}}} {
				t := w.newTask(q, of.name)
				t.Rank, t.Needs = of.rank, of.needs
				w.add(p.ID, t)
			}
			w.no(w.s.Ready(w.ctx, p.ID))
			n := w.node("n1")
			ended := []protocol.Ending{ok(n.claim(1)[0])}
			q.Sort = c.sort
			w.no(w.s.SetQueue(w.ctx, q))
			got := ""
			for range 3 {
				did := n.turn(protocol.Turn{Ended: ended, Slots: 2})
				got += fmt.Sprint(slices.Sorted(slices.Values(names(did.Claimed))))
				ended = nil
				for _, c := range did.Claimed {
					ended = append(ended, ok(c))
				}
			}
			w.equal("sort "+string(c.sort), got, c.want)
			n.end(ended...)
			w.wantPlan(p, plan.PlanSucceeded)
		}
	}},
	{"queues with work take turns, so that none starves", func(w *world) {
		for _, q := range []string{"a", "b", "c"} {
			w.queue(q, 0)
			for i := range 20 {
				w.add(plan.PlanID{}, w.newTask(w.queueNamed(q), fmt.Sprint(q, i)))
			}
		}
		n := w.node("n1")
		count := map[string]int{}
		for range 9 {
			for _, c := range n.claim(1) {
				count[c.QueueName]++
			}
		}
		for _, c := range n.claim(9) {
			count[c.QueueName]++
		}
		for _, q := range []string{"a", "b", "c"} {
			if count[q] < 4 || count[q] > 8 {
				w.Errorf("of 18 claims queue %q had %d: %v", q, count[q], count)
			}
		}
	}},
	{"many queues with work take turns, also where a node takes one task at a time", func(w *world) {
		const queues, each = 12, 5
		for i := range queues {
			q := w.queue(fmt.Sprint("q", i), 0)
			for k := range each {
				w.add(plan.PlanID{}, w.newTask(q, fmt.Sprint("t", i, "-", k)))
			}
		}
		n := w.node("n1")
		count := map[string]int{}
		for range 2 * queues {
			for _, c := range n.claim(1) {
				count[c.QueueName]++
			}
		}
		for i := range queues {
			if had := count[fmt.Sprint("q", i)]; had < 1 || had > 3 {
				w.Errorf("of %d claims queue q%d had %d: %v", 2*queues, i, had, count)
			}
		}
		w.equal("and the rest at once", len(n.claim(queues*each)), queues*each-2*queues)
	}},
	{"who claims a task is told which of its params its queue keeps secret, and what they are", func(w *world) {
		q := must(w.s.CreateQueue(w.ctx, plan.Queue{Name: "q", Plugin: "exec", Unlimited: true, QueueSettings: plan.QueueSettings{Secrets: []string{"*_key", "password"}}}))(w)
		w.equal("made", []any{q.Secrets, w.queueNamed("q").Secrets}, "[[*_key password] [*_key password]]")
		task := in("q", "a")
		task.Params = json.RawMessage(`{"password":"hunter22"}`)
		w.submit(task)
		n, r := w.node("n1"), w.runner("n1")
		c := n.turn(protocol.Turn{Slots: 1}).Claimed[0]
		w.equal("claimed", c.Settings.Secrets, "[*_key password]")
		w.equalJSON("params", c.Params, `{"password":"hunter22"}`)
		w.equal("taken", r.takeOver(c.Task, true).Settings.Secrets, "[*_key password]")
		q.Secrets = nil
		w.no(w.s.SetQueue(w.ctx, q))
		w.equal("taken off", len(w.queueNamed("q").Secrets), 0)
	}},
	{"who claims a task is told which of its params its plan keeps secret, also of items and after a retry", func(w *world) {
		a := task("a")
		a.Params = json.RawMessage(`{"password":"hunter22","mail":{"pass":"${{ params.password }}"}}`)
		list := each("each", plan.Foreach{List: json.RawMessage(`[1]`)})
		p := w.submitSpec(&plan.Spec{
			Name: "nightly", Params: map[string]json.RawMessage{"password": json.RawMessage(`"hunter22"`)}, Secrets: []string{"Password"}, Tasks: []plan.TaskSpec{a, list},
		})
		n := w.node("n1")
		told := func(text string) {
			w.Helper()
			names := map[string]string{}
			for _, c := range n.claim(9) {
				names[c.Name] = fmt.Sprint(c.Secrets)
				n.end(fail(c))
			}
			w.equal("claimed", names, text)
		}
		told("map[a:[pass password] each[0]:[password]]")
		w.equal("secrets of a task", w.named(p, "a").Secrets, "[pass password]")
		w.retry(p, false)
		n.sweep()
		told("map[a:[pass password] each[0]:[password]]")
	}},
	{"a queue is served by the nodes that it is pinned to, else by those that it does not ignore", func(w *world) {
		for _, c := range []struct {
			name        string
			pin, ignore []plan.NodeName
			claimed     string // by n1, and then by n2
		}{
			{"any", nil, nil, "2 0"},
			{"pin", []plan.NodeName{"n2", "n3"}, nil, "0 2"},
			{"pin-one", []plan.NodeName{"n1"}, nil, "2 0"},
			{"ignore", nil, []plan.NodeName{"n1"}, "0 2"},
			{"ignore-others", nil, []plan.NodeName{"n2", "n3"}, "2 0"},
			{"both", []plan.NodeName{"n1"}, []plan.NodeName{"n1"}, "2 0"}, // only the pin counts
			{"both-other", []plan.NodeName{"n2"}, []plan.NodeName{"n2"}, "0 2"},
			{"nobody", []plan.NodeName{"n10", "N1", "n"}, nil, "0 0"},
		} {
			q := plan.Queue{Name: c.name, Plugin: "exec", Unlimited: true, Pin: c.pin, Ignore: c.ignore}
			q = must(w.s.EnsureQueue(w.ctx, q))(w)
			w.equal("kept", w.queueNamed(c.name).Pin, c.pin)
			w.equal("kept", w.queueNamed(c.name).Ignore, c.ignore)
			p := w.submit(in(c.name, "a"), in(c.name, "b"))
			for _, only := range []plan.PlanID{p.ID, {}} { // as a node of one plan claims, and as any does
				one, two := w.node("n1"), w.node("n2")
				a := one.turn(protocol.Turn{Slots: 9, Plan: only}).Claimed
				b := two.turn(protocol.Turn{Slots: 9, Plan: only}).Claimed
				w.equal(c.name, fmt.Sprint(len(a), " ", len(b)), c.claimed)
				for _, n := range []*node{one, two} {
					for _, c := range n.holding {
						n.end(giveBack(c))
					}
					w.no(n.s.Leave(w.ctx, n.id))
				}
			}
			q.Pin, q.Ignore = []plan.NodeName{"n9"}, nil
			w.no(w.s.SetQueue(w.ctx, q)) // so that the next queue's tasks are alone
			w.equal("set", w.queueNamed(c.name).Pin, "[n9]")
		}
	}},
	{"what a queue says of nodes can be changed and taken off", func(w *world) {
		q := w.queue("moving", 0)
		var tasks []plan.TaskSpec
		for i := range 20 {
			tasks = append(tasks, in("moving", fmt.Sprint("t", i)))
		}
		w.submit(tasks...)
		n := w.node("n1")
		for _, step := range []struct {
			pin, ignore []plan.NodeName
			most, want  int
		}{
			{nil, nil, 0, 9}, {[]plan.NodeName{"n2"}, nil, 0, 0}, {nil, []plan.NodeName{"n1"}, 0, 0}, {nil, nil, 3, 3}, {nil, nil, 1, 1}, {nil, nil, 0, 9},
		} {
			q.Pin, q.Ignore, q.NodeThreads = step.pin, step.ignore, step.most
			w.no(w.s.SetQueue(w.ctx, q))
			now := w.queueNamed("moving")
			w.equal("set", []any{now.Pin, now.Ignore, now.NodeThreads}, []any{step.pin, step.ignore, step.most})
			claimed := n.claim(9)
			w.equal(fmt.Sprintf("%+v", step), len(claimed), step.want)
			for _, c := range claimed {
				n.end(giveBack(c))
			}
		}
	}},
	{"a node serves the queues that it chose, else those that it does not ignore", func(w *world) {
		id := map[string]plan.QueueID{}
		var tasks []plan.TaskSpec
		for _, name := range []string{"a", "b", "c"} {
			id[name] = w.queue(name, 0).ID
			tasks = append(tasks, in(name, "in-"+name))
		}
		p := w.submit(tasks...)
		n := w.node("n1")
		of := func(names ...string) (ids []plan.QueueID) {
			for _, name := range names {
				ids = append(ids, id[name])
			}
			return ids
		}
		nosuch := plan.QueueID{ID: plan.NewID(time.Now())}
		for _, c := range []struct {
			active, ignored []plan.QueueID
			want            string
		}{
			{nil, nil, "[in-a in-b in-c]"},
			{of("a", "c"), nil, "[in-a in-c]"},
			{nil, of("a", "c"), "[in-b]"},
			{of("a"), of("a", "b"), "[in-a]"}, // only the first counts
			{[]plan.QueueID{nosuch}, nil, "[]"},
			{nil, []plan.QueueID{nosuch}, "[in-a in-b in-c]"},
			{nil, of("a", "b", "c"), "[]"},
		} {
			for _, only := range []plan.PlanID{{}, p.ID} {
				did := n.turn(protocol.Turn{Slots: 9, Active: c.active, Ignored: c.ignored, Plan: only})
				got := names(did.Claimed)
				slices.Sort(got)
				w.equal(fmt.Sprintf("active %v, ignored %v", c.active, c.ignored), got, c.want)
				for _, claim := range did.Claimed {
					n.end(giveBack(claim))
				}
			}
		}
		other := w.node("n2")
		w.equal("left alone", names(n.turn(protocol.Turn{Slots: 9, Active: of("a")}).Claimed), "[in-a]")
		w.equal("taken by another node", len(other.claim(9)), 2)
	}},
	{"an instance is known by the queues that it serves", func(w *world) {
		ids := []plan.QueueID{w.queue("a", 0).ID, w.queue("b", 0).ID}
		i := plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: "n1", Lease: time.Minute, Active: ids[:1], Ignored: ids}
		w.no(w.s.Register(w.ctx, i))
		all := must(w.s.Instances(w.ctx))(w)
		w.equal("instances", len(all), 1)
		w.equal("active and ignored", []any{all[0].Active, all[0].Ignored}, []any{i.Active, i.Ignored})
	}},
	{"a queue whose plugin is not there is left alone, and looked at again", func(w *world) {
		q := plan.Queue{Name: "later", Plugin: "later", Unlimited: true}
		q = must(w.s.EnsureQueue(w.ctx, q))(w)
		id := w.newTask(q, "t")
		w.add(plan.PlanID{}, id)
		n := w.node("n1")
		w.equal("claimed without the plugin", len(n.claim(9)), 0)
		w.equal("queued", w.queueNamed("later").Queued, 1)
		w.equal("claimed with it", names(n.turn(protocol.Turn{Slots: 9, Plugins: []string{"exec", "later"}}).Claimed), "[t]")
	}},
	{"queues that a node does not serve do not keep it from those that it does", func(w *world) {
		for i := range 120 {
			q := plan.Queue{Name: fmt.Sprint("pinned", i), Plugin: "exec", Unlimited: true, Pin: []plan.NodeName{"n2"}}
			q = must(w.s.EnsureQueue(w.ctx, q))(w)
			w.add(plan.PlanID{}, w.newTask(q, fmt.Sprint("p", i)))
		}
		w.add(plan.PlanID{}, w.newTask(w.queue("mine", 0), "mine"))
		n := w.node("n1")
		w.equal("claimed", names(n.claim(1)), "[mine]")
		w.equal("claimed after", len(n.claim(9)), 0)
		w.equal("claimed by the other", len(w.node("n2").claim(5)), 5)
	}},
	{"invariant 6: the instances of a node have no more tasks of a queue claimed and running together than it says", func(w *world) {
		a, b, other := w.node("n1"), w.nodeOn(w.reopen(nil), "n1"), w.node("n2")
		q := w.queue("narrow", 7)
		w.queue("wide", 0)
		q.NodeThreads = 3
		w.no(w.s.SetQueue(w.ctx, q))
		var tasks []plan.TaskSpec
		for i := range 30 {
			tasks = append(tasks, in("narrow", fmt.Sprint("n", i)))
		}
		p := w.submit(tasks...)
		claims(2, a, 2)
		claims(1, b, 9)
		claims(0, a, 9)
		claims(0, b, 9)
		claims(3, other, 9)
		claims(1, a, 9, ok(oneOf(a)))
		claims(1, a, 9, giveBack(oneOf(a)))
		claims(1, b, 9, later(oneOf(b), time.Hour))
		must(w.s.Rescue(w.ctx, b.id, -1))(w)
		claims(1, a, 9)
		w.equal("of its own plan", len(a.turn(protocol.Turn{Slots: 9, Plan: p.ID}).Claimed), 0)
		q.NodeThreads = 0
		w.no(w.s.SetQueue(w.ctx, q))
		claims(1, a, 9) // of 7 of the queue the other node has 3
		q.NodeThreads = 2
		w.no(w.s.SetQueue(w.ctx, q)) // a has 4
		claims(0, a, 9, ok(oneOf(a)))
		claims(0, a, 9, ok(oneOf(a)))
		claims(1, a, 9, ok(oneOf(a)))
		w.no(w.s.SetMaxThreads(w.ctx, "n1", 1)) // of both limits the lower one counts
		must(a.s.Beat(w.ctx, protocol.Beat{Instance: a.id}))(w)
		claims(0, a, 9, ok(oneOf(a)))
		claims(1, a, 9, ok(oneOf(a)))
		w.submit(in("wide", "w"))
		w.no(w.s.SetMaxThreads(w.ctx, "n1", -1))
		must(a.s.Beat(w.ctx, protocol.Beat{Instance: a.id}))(w)
		claims(2, a, 9) // one of each queue
	}},
	{"a queue that is full leaves its slots to the others", func(w *world) {
		w.queue("narrow", 1)
		w.queue("wide", 0)
		for i := range 5 {
			w.add(plan.PlanID{}, w.newTask(w.queueNamed("narrow"), fmt.Sprint("n", i)), w.newTask(w.queueNamed("wide"), fmt.Sprint("w", i)))
		}
		n := w.node("n1")
		w.equal("claimed", len(n.claim(6)), 6)
		w.equal("narrow", w.queueNamed("narrow").Active, 1)
	}},
	{"a plan that its own node runs is claimed by it alone among many others, and by general nodes too", func(w *world) {
		w.submit(numbered(300)...)
		own := w.submitSpec(&plan.Spec{Name: "own", Tasks: []plan.TaskSpec{task("x"), task("y", "x"), task("z")}})
		w.no(w.s.Adopt(w.ctx, own.ID))
		w.no(w.s.Adopt(w.ctx, own.ID))
		w.equal("own", w.plan(own.ID).Own, true)
		n := w.node("n1")
		did := n.turn(protocol.Turn{Slots: 9, Plan: own.ID, Start: true})
		w.equal("claimed", names(did.Claimed), "[x z]")
		n.end(ok(did.Claimed[0]))
		general := w.node("n2")
		w.equal("all by a general node", len(general.claim(400)), 301)
		w.want(own, "y running")
	}},
	{"a plan of its own node is claimed by it from its submission on", func(w *world) {
		p, tasks := w.compile(&plan.Spec{Name: "own", Tasks: []plan.TaskSpec{task("x"), task("y", "x")}})
		p.Own = true
		must(w.s.CreatePlan(w.ctx, p))(w)
		w.add(p.ID, tasks...)
		w.no(w.s.Ready(w.ctx, p.ID))
		w.submit(task("other"))
		n := w.node("n1")
		did := n.turn(protocol.Turn{Slots: 9, Plan: p.ID})
		w.equal("claimed", names(did.Claimed), "[x]")
		did = n.turn(protocol.Turn{Slots: 9, Plan: p.ID, Ended: []protocol.Ending{ok(did.Claimed[0])}})
		w.equal("claimed", names(did.Claimed), "[y]")
		n.end(ok(did.Claimed[0]))
		w.wantPlan(p, plan.PlanSucceeded)
		w.equal("claimed when it has ended", len(n.turn(protocol.Turn{Slots: 9, Plan: p.ID}).Claimed), 0)
		w.equal("tasks", len(w.all(store.TaskQuery{Plan: p.ID})), 2)
	}},
}
