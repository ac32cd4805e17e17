package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// A rolling is a queue whose finished tasks are handed over, and the receiver of its group.
type rolling struct {
	*world
	queue  plan.Queue
	node   *node
	limits map[plan.Status]time.Duration

	mu  sync.Mutex
	got map[plan.ID]string      // the tasks of each batch, as they were received first
	in  map[plan.TaskID]plan.ID // the batch in which a task was received
}

// newRolling returns nil for a store that remembers no batches.
func newRolling(w *world) *rolling {
	if _, ok := w.s.(store.Roller); !ok {
		return nil
	}
	hour := plan.Duration(time.Hour)
	w.group("acme", plan.GroupSettings{})
	w.group("solution", plan.GroupSettings{Parent: "acme", SuccessURI: "http://192.0.2.1/ok", DeadLetterURI: "http://192.0.2.1/bad"})
	q := w.keeping("q", plan.Keep{Succeeded: hour, Failed: 3 * hour, Cancelled: hour})
	q.Group = "solution"
	w.no(w.s.SetQueue(w.ctx, q))
	return &rolling{
		world: w, queue: q, node: w.node("n1"), limits: map[plan.Status]time.Duration{plan.Succeeded: time.Hour},
		got: map[plan.ID]string{}, in: map[plan.TaskID]plan.ID{},
	}
}

// ended runs tasks of these names; bad ones fail.
func (r *rolling) ended(names ...string) (tasks []plan.Task) {
	r.Helper()
	for _, name := range names {
		tasks = append(tasks, r.newTask(r.queue, name))
	}
	r.add(plan.PlanID{}, tasks...)
	r.node.run(ends)
	return tasks
}

// toRoll returns the names of the tasks that are to be handed over.
func (r *rolling) toRoll(limits map[plan.Status]time.Duration, limit int) (names []string) {
	r.Helper()
	for _, t := range must(r.s.(store.Roller).ToRoll(r.ctx, r.queue.ID, limits, limit))(r.world) {
		names = append(names, r.task(t.ID).Name)
	}
	return names
}

// begin begins a batch of what is to be handed over.
func (r *rolling) begin(s store.Store) (id plan.ID, in []plan.TaskID, err error) {
	id = plan.NewID(time.Now())
	tasks, err := s.(store.Roller).ToRoll(r.ctx, r.queue.ID, r.limits, 3)
	if err == nil && len(tasks) > 0 {
		in, err = s.(store.Roller).BeginBatch(r.ctx, id, r.queue.ID, tasks)
	}
	return id, in, err
}

// receive is what the receiver does with a batch. It wants each task in one batch alone, and the same tasks
// in a batch each time.
func (r *rolling) receive(b store.Batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	tasks := make([]string, len(b.Tasks))
	for i, id := range b.Tasks {
		if first, twice := r.in[id]; twice && first != b.ID {
			r.Errorf("task %s was received in batch %s, and then in %s", id, first, b.ID)
		}
		r.in[id], tasks[i] = b.ID, id.String()
	}
	slices.Sort(tasks)
	all := strings.Join(tasks, " ")
	if first, twice := r.got[b.ID]; twice && first != all {
		r.Errorf("batch %s was received with %s, and then with %s", b.ID, first, all)
	}
	r.got[b.ID] = all
}

// handOver hands over all that is to be, as a node does.
func (r *rolling) handOver(s store.Store) error {
	for {
		open, err := s.(store.Roller).Batches(r.ctx)
		if err != nil {
			return err
		}
		for _, b := range open {
			r.receive(b)
			if err := s.(store.Roller).EndBatch(r.ctx, b.ID, true); err != nil {
				return err
			}
		}
		id, in, err := r.begin(s)
		if err != nil || len(in) == 0 {
			return err
		}
		r.receive(store.Batch{ID: id, Tasks: in})
		if err := s.(store.Roller).EndBatch(r.ctx, id, true); err != nil {
			return err
		}
	}
}

// settled hands over what is left once nobody is half-way any more, and wants all of these received, and gone.
func (r *rolling) settled(what string, tasks []plan.Task) {
	r.Helper()
	r.node.sweep() // the first sweep of a store says when the first audit is due
	r.pass(rules.AuditEvery)
	r.node.sweep()
	r.no(r.handOver(r.s))
	r.expired()
	for i := range tasks {
		if _, there := r.in[tasks[i].ID]; !there {
			r.Errorf("%s: task %s was not received", what, tasks[i].Name)
		}
	}
	r.equal(what+": left", r.there(), "[]")
	r.equal(what+": batches left", len(must(r.s.(store.Roller).Batches(r.ctx))(r.world)), 0)
}

// rolls makes a case of stores that remember batches.
func rolls(run func(*rolling)) func(*world) {
	return func(w *world) {
		if r := newRolling(w); r != nil {
			run(r)
		}
	}
}

var rollCases = []testCase{
	{"a task whose group has a receiver is not deleted, and is handed over by how it ended", rolls(func(r *rolling) {
		dead := map[plan.Status]time.Duration{plan.Failed: 3 * time.Hour}
		stopped := r.newTask(r.queue, "cancelled")
		stopped.NotBefore = r.clock.Now().Add(1e6 * time.Hour)
		r.add(plan.PlanID{}, stopped)
		for _, name := range []string{"good2", "good1", "bad", "good3"} {
			r.ended(name)
			r.pass(time.Second)
		}
		r.no(r.s.CancelTask(r.ctx, stopped.ID))
		r.equal("at once", r.toRoll(r.limits, 9), "[]")
		r.pass(2 * time.Hour)
		r.equal("deleted after two hours", r.expired(), protocol.Expired{Tasks: 1}) // it was cancelled
		r.equal("after two hours", r.toRoll(r.limits, 9), "[good2 good1 good3]")
		r.equal("the first two", r.toRoll(r.limits, 2), "[good2 good1]")
		r.equal("failures after two hours", r.toRoll(dead, 9), "[]")
		r.pass(2 * time.Hour)
		r.equal("failures after four hours", r.toRoll(dead, 9), "[bad]")
		r.equal("all", r.toRoll(map[plan.Status]time.Duration{plan.Succeeded: time.Hour, plan.Failed: time.Hour}, 9), "[good2 good1 bad good3]")
		r.pass(10_000 * time.Hour)
		r.equal("deleted in the end", r.expired(), protocol.Expired{})
		r.group("solution", plan.GroupSettings{Parent: "acme", DeadLetterURI: "http://192.0.2.1/bad"})
		r.equal("deleted without a receiver of successes", r.expired(), protocol.Expired{Tasks: 3})
		r.equal("left", r.there(), "[bad]")
		r.group("solution", plan.GroupSettings{Parent: "acme"})
		r.expired()
	})},
	{"no retry and no new task takes what is in a batch, and a sweep leaves it", rolls(func(r *rolling) {
		tasks := r.ended("a", "b")
		r.pass(2 * time.Hour)
		a, b := tasks[0].ID, tasks[1].ID
		retry := func(id plan.TaskID) error {
			return r.tryRetry(plan.PlanID{}, rules.Ask{Tasks: []plan.TaskID{id}, Downstream: true})
		}
		r.no(retry(a)) // before it is in a batch
		id, in, err := r.begin(r.s)
		r.no(err)
		r.equal("in the batch", in, []plan.TaskID{b})
		again := must(r.s.(store.Roller).BeginBatch(r.ctx, id, r.queue.ID, []plan.Task{r.task(b)}))(r.world)
		r.equal("in the batch, once more", again, in)
		r.equal("batches", must(r.s.(store.Roller).Batches(r.ctx))(r.world), []store.Batch{{ID: id, Queue: r.queue.ID, Tasks: in}})
		r.equal("the batches of the tasks", []plan.ID{r.task(a).Batch, r.task(b).Batch}, []plan.ID{{}, id})
		r.node.sweep() // the first one only notes when it was
		r.pass(rules.AuditEvery)
		r.node.sweep()
		r.refused(retry(b), "is being handed over")
		r.is(r.s.AddTasks(r.ctx, plan.PlanID{}, []plan.Task{r.newTask(r.queue, "child", b)}), plan.ErrNotFound)
		r.equal("to be handed over", r.toRoll(r.limits, 9), "[]")
		r.group("solution", plan.GroupSettings{Parent: "acme"})
		r.equal("deleted", r.expired(), protocol.Expired{})

		// The batch is taken back.
		r.no(r.s.(store.Roller).EndBatch(r.ctx, id, false))
		r.no(r.s.(store.Roller).EndBatch(r.ctx, id, false))
		r.no(retry(b))
		r.node.run(ends)
		r.equal("ran again", []any{r.task(a).Status, r.task(b).Status}, []any{plan.Succeeded, plan.Succeeded})

		// It is received.
		r.pass(2 * time.Hour)
		id, in, err = r.begin(r.s)
		r.no(err)
		r.equal("in the next batch", len(in), 2)
		logs := must(r.s.(store.Roller).Logs(r.ctx, append(in, plan.TaskID{ID: id})))(r.world)
		for _, id := range in {
			entries, _, err := r.s.Log(r.ctx, id, 0, 10)
			r.no(err)
			r.equal("log", logs[id], entries)
		}
		r.equal("logs", len(logs), 2)
		r.no(r.s.(store.Roller).EndBatch(r.ctx, id, true))
		r.no(r.s.(store.Roller).EndBatch(r.ctx, id, true))
		r.equal("left", r.there(), "[]")
		entries, _, err := r.s.Log(r.ctx, in[0], 0, 10)
		if err != nil {
			r.is(err, plan.ErrNotFound)
		}
		r.equal("log entries left", len(entries), 0)
	})},
	{"a task that another one needs is not handed over, and one that changed stays out", rolls(func(r *rolling) {
		parent := r.newTask(r.queue, "parent")
		child := r.newTask(r.queue, "child", parent.ID)
		r.add(plan.PlanID{}, parent, child)
		r.node.run(ends)
		r.pass(2 * time.Hour)
		r.equal("first", r.toRoll(r.limits, 9), "[child]")
		stale := must(r.s.(store.Roller).ToRoll(r.ctx, r.queue.ID, r.limits, 9))(r.world)
		r.no(r.tryRetry(plan.PlanID{}, rules.Ask{Tasks: []plan.TaskID{child.ID}, Downstream: true}))
		r.pass(time.Second)
		r.node.run(ends)
		in := must(r.s.(store.Roller).BeginBatch(r.ctx, plan.NewID(time.Now()), r.queue.ID, append(stale, r.task(parent.ID))))(r.world)
		r.equal("in the batch", len(in), 0)
		r.equal("batches", len(must(r.s.(store.Roller).Batches(r.ctx))(r.world)), 0)
		r.pass(2 * time.Hour)
		r.settled("in the end", []plan.Task{parent, child})
	})},
	{"whatever write of a hand-over fails, each task is received in one batch, and none is lost", rolls(func(r *rolling) {
		var k killer
		s := r.reopen(k.hook)
		for _, d := range deaths {
			if !d.after {
				continue // the one before has the same effect
			}
			for at, fails := 1, true; fails; at++ {
				tasks := r.ended("a", "b", "c")
				r.pass(2 * time.Hour)
				k = killer{at: at, after: d.after, dies: d.dies}
				err := r.handOver(s)
				if fails = k.tripped; fails && !d.dies {
					err = r.handOver(s)
				}
				k = killer{}
				if err != nil && !errors.Is(err, errKilled) {
					r.Errorf("%s %d: %v", d.name, at, err)
				}
				if d.dies {
					r.no(r.handOver(r.s))
				}
				r.settled(fmt.Sprint(d.name, " ", at), tasks)
			}
		}
	})},
	{"a write of a hand-over that arrives late, after another hand-over or a retry, loses nothing", rolls(func(r *rolling) {
		if r.d.OneWriter {
			return // nobody gets in between two writes
		}
		var g gate
		s := r.reopen(g.hook)
		for _, other := range []struct {
			name string
			do   func(tasks []plan.Task) error
		}{
			{"another node hands over", func([]plan.Task) error { return r.handOver(r.s) }},
			{"a person retries a task", func(tasks []plan.Task) error {
				err := r.tryRetry(plan.PlanID{}, rules.Ask{Tasks: []plan.TaskID{tasks[1].ID}, Downstream: true})
				if _, received := r.in[tasks[1].ID]; received && err == nil {
					r.Errorf("a task was retried once it was received")
				}
				return nil
			}},
			{"another node looks for batches", func([]plan.Task) error { _, err := r.s.(store.Roller).Batches(r.ctx); return err }},
		} {
			for met, at := true, 1; met; at++ {
				tasks := r.ended("a", "b", "c")
				r.pass(2 * time.Hour)
				var err, otherErr error
				met = g.late(at, func() { err = r.handOver(s) }, func() { otherErr = other.do(tasks) })
				if err != nil || otherErr != nil {
					r.Errorf("write %d is held back, and %s: %v, %v", at, other.name, err, otherErr)
				}
				r.node.run(ends)
				r.pass(2 * time.Hour)
				r.settled(fmt.Sprintf("write %d was held back, and %s", at, other.name), tasks)
			}
		}
	})},
	{"nodes that hand over at once hand over each task in one batch", rolls(func(r *rolling) {
		other := r.reopen(nil)
		for range 3 {
			tasks := r.ended("a", "b", "c", "d", "e")
			r.pass(2 * time.Hour)
			var wg sync.WaitGroup
			for _, s := range []store.Store{r.s, other, r.s} {
				wg.Go(func() {
					if err := r.handOver(s); err != nil {
						r.Error(err)
					}
				})
			}
			wg.Wait()
			r.settled("at once", tasks)
		}
	})},
}
