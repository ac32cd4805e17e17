package memory

import (
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// Register implements store.Node.
func (s *Store) Register(ctx context.Context, i plan.Instance) error {
	return s.write(ctx, func(tx *tx) error {
		if _, ok := tx.instances[i.ID]; !ok && !tx.gone[i.ID] {
			for _, other := range tx.instances {
				if i.Sole && other.Sole && other.Node == i.Node {
					return fmt.Errorf("register node %s: %w", i.Node, plan.ErrNameTaken)
				}
			}
			i.Beats, i.Age = 0, 0
			tx.instances[i.ID] = &instance{Instance: i, beat: tx.at, tasks: map[plan.TaskID]*task{}}
		}
		return nil
	})
}

// Beat implements store.Node.
func (s *Store) Beat(ctx context.Context, b plan.Beat) (told plan.Beaten, err error) {
	err = s.write(ctx, func(tx *tx) error {
		i, err := tx.instance(b.Instance)
		if err != nil {
			return err
		}
		i.Beats++
		i.beat = tx.at
		if b.Plugins != nil {
			i.Plugins = slices.Clone(b.Plugins)
		}
		if b.Progress != nil {
			i.progress = make(map[plan.Claim]plan.Progress, len(b.Progress))
			for _, r := range b.Progress {
				i.progress[r.Claim] = r.Progress
			}
		}
		told.MaxThreads, told.Wake, told.Over = -1, tx.wake, tx.over(b.Plan)
		if most, ok := tx.maxThreads[i.Node]; ok {
			told.MaxThreads = most
		}
		for id, t := range i.tasks {
			if t.Cancel {
				told.Cancel = append(told.Cancel, id)
			}
		}
		return nil
	})
	return told, err
}

// over reports whether the one plan of a node has ended, or is not there any more.
func (d *db) over(only plan.PlanID) bool {
	p, ok := d.plans[only]
	return !only.IsZero() && (!ok || p.State.Ended())
}

// Turn implements store.Node.
func (s *Store) Turn(ctx context.Context, turn plan.Turn) (did plan.Turned, err error) {
	err = s.write(ctx, func(tx *tx) error {
		i, err := tx.instance(turn.Instance)
		if err != nil {
			return err
		}
		for k := range turn.Ended {
			if err := turn.Ended[k].Check(); err != nil {
				return err
			}
		}
		if turn.Budget > 0 {
			tx.budget = turn.Budget
		}
		for k := range turn.Ended {
			e := &turn.Ended[k]
			t, ok := tx.claimed(e.Claim)
			if !ok {
				did.Lost = append(did.Lost, e.Task)
				continue
			}
			tx.end(t, e)
			if t.Status == plan.Held && e.Delay > 0 {
				did.Delay = cmp.Or(min(did.Delay, e.Delay), e.Delay)
			}
		}
		left := tx.budget / 2 // the rest is for what was released
		tx.endDelays(left)
		did.More = tx.release() || tx.overdue()
		did.Claimed = tx.claim(i, &turn)
		did.Queued, did.Ended, did.Over = tx.queued, tx.ended, tx.over(turn.Plan)
		return nil
	})
	return did, err
}

// claimed returns the task of a claim that holds.
func (d *db) claimed(c plan.Claim) (*task, bool) {
	t, ok := d.tasks[c.Task]
	return t, ok && t.Status.Active() && t.Attempt == c.Attempt && t.token == c.Token
}

// end makes an ending true.
func (tx *tx) end(t *task, e *plan.Ending) {
	t.log = append(t.log, e.Log...)
	if e.Printed != nil {
		t.results = map[plan.Stream][]byte{}
		for _, stream := range []plan.Stream{plan.Stdout, plan.Stderr} {
			if text := e.Printed.Of(stream); text != nil {
				t.results[stream] = text
			}
		}
	}
	tx.apply(t, rules.Ended(t.claimState(), e))
}

// claimState is what the rules ask of a claimed or running task.
func (t *task) claimState() rules.Claim {
	c := rules.Claim{Status: t.Status, Cancel: t.Cancel}
	if t.plan != nil {
		c.Closing = t.plan.Closing
	}
	return c
}

// claim takes up to turn.Slots tasks: of each queue that has work and a free thread one in turn.
func (tx *tx) claim(i *instance, turn *plan.Turn) []plan.ClaimedTask {
	if turn.Slots = min(turn.Slots, tx.room(i.Node)); turn.Slots <= 0 {
		return nil
	}
	var queues []*queue
	room := map[*queue]int{}
	for _, q := range tx.queues {
		if q.offer(turn.Plan) == nil || !turn.Serves(&q.Queue, i.Node) {
			continue
		}
		if room[q] = tx.roomIn(q, i.Node); room[q] > 0 {
			queues = append(queues, q)
		}
	}
	if len(queues) == 0 {
		return nil
	}
	slices.SortFunc(queues, func(a, b *queue) int { return cmp.Compare(a.Name, b.Name) })
	tx.rotation++
	first := tx.rotation % len(queues)
	queues = slices.Concat(queues[first:], queues[:first])

	var token plan.Token
	_, _ = rand.Read(token[:]) // crypto/rand never fails: it ends the process instead
	var tasks []*task
	for len(queues) > 0 && len(tasks) < turn.Slots {
		queues = slices.DeleteFunc(queues, func(q *queue) bool {
			if len(tasks) == turn.Slots {
				return false
			}
			t := q.offer(turn.Plan)
			if t == nil || room[q] <= 0 {
				return true
			}
			room[q]--
			tx.take(t, i, token, turn.Start)
			tasks = append(tasks, t)
			return false
		})
	}
	slices.SortFunc(tasks, func(a, b *task) int {
		return cmp.Or(cmp.Compare(b.Rank, a.Rank), bytes.Compare(a.ID.ID[:], b.ID.ID[:]))
	})
	claimed := make([]plan.ClaimedTask, len(tasks))
	for k, t := range tasks {
		claimed[k] = t.claim()
	}
	tx.taken += len(tasks)
	return claimed
}

// room returns how many tasks the instances of a node may still claim together.
func (d *db) room(n plan.NodeName) int {
	room, limited := d.maxThreads[n]
	if !limited {
		return math.MaxInt
	}
	for _, i := range d.instances {
		if i.Node == n {
			room -= len(i.tasks)
		}
	}
	return room
}

// roomIn returns how many tasks of the queue the instances of a node may still claim together.
func (d *db) roomIn(q *queue, n plan.NodeName) int {
	if q.NodeThreads <= 0 {
		return math.MaxInt
	}
	room := q.NodeThreads
	for _, i := range d.instances {
		if i.Node != n {
			continue
		}
		for _, t := range i.tasks {
			if t.queue == q {
				room--
			}
		}
	}
	return room
}

// offer returns the task that would be claimed next, nil if there is none or no thread for it.
func (q *queue) offer(only plan.PlanID) *task {
	if !q.Unlimited && q.Active >= q.Threads {
		return nil
	}
	if !only.IsZero() {
		if l, ok := q.lanes[only]; ok && !l.closed && len(l.tasks) > 0 {
			return l.tasks[0]
		}
		return nil
	}
	if len(q.heads) == 0 {
		return nil
	}
	return q.heads[0].tasks[0]
}

func (tx *tx) take(t *task, i *instance, token plan.Token, start bool) {
	t.token, t.Node, t.Instance = token, i.Node, i.ID
	if t.Started = (time.Time{}); start {
		t.Started = tx.at
	}
	tx.apply(t, rules.Claimed(start))
	i.tasks[t.ID] = t
}

func (t *task) claim() plan.ClaimedTask {
	c := plan.ClaimedTask{
		Claim: plan.Claim{Task: t.ID, Attempt: t.Attempt, Token: t.token},
		Plan:  t.Plan, Name: t.Name, Queue: t.Queue, QueueName: t.queue.Name, Plugin: t.queue.Plugin, QueueLost: t.queue.OnLost, QueueSecrets: t.queue.Secrets,
		Definition: t.Definition,
		Params:     t.Params, ByReference: t.byRef, Rescues: t.Rescues, Index: t.Index,
	}
	if t.plan != nil {
		c.PlanName = t.plan.Title()
	}
	return c
}

// Start implements store.Node.
func (s *Store) Start(ctx context.Context, claims []plan.Claim) (lost []plan.TaskID, err error) {
	err = s.write(ctx, func(tx *tx) error {
		for _, c := range claims {
			t, ok := tx.claimed(c)
			if !ok {
				lost = append(lost, c.Task)
			} else if t.Status == plan.Claimed {
				t.Started = tx.at
				tx.apply(t, rules.Started())
			}
		}
		return nil
	})
	return lost, err
}

func sameEntry(a, b plan.LogEntry) bool {
	return a.At.Equal(b.At) && a.Attempt == b.Attempt && a.Stream == b.Stream && a.Text == b.Text
}

// AppendLog implements store.Node.
func (s *Store) AppendLog(ctx context.Context, c plan.Claim, entries []plan.LogEntry) error {
	return s.write(ctx, func(tx *tx) error {
		t, ok := tx.claimed(c)
		if !ok {
			return fmt.Errorf("log of task %s, attempt %d: %w", c.Task, c.Attempt, plan.ErrClaimLost)
		}
		if last := t.log[max(0, len(t.log)-len(entries)):]; !slices.EqualFunc(last, entries, sameEntry) {
			t.log = append(t.log, entries...)
		}
		return nil
	})
}

// Sweep implements store.Node.
func (s *Store) Sweep(ctx context.Context, w plan.Sweep) (did plan.Swept, err error) {
	err = s.write(ctx, func(tx *tx) error {
		i, err := tx.instance(w.Instance)
		if err != nil {
			return err
		}
		if w.Budget > 0 {
			tx.budget = w.Budget
		}
		tx.audit()
		holding := make(map[plan.TaskID]bool, len(w.Holding))
		for _, id := range w.Holding {
			holding[id] = true
		}
		for id, t := range i.tasks {
			if !holding[id] {
				tx.apply(t, rules.GivenBack(t.claimState()))
			}
		}
		tx.endDelays(0)
		abandoned := tx.abandon()
		did.More = tx.release() || abandoned || tx.overdue()
		if len(tx.delays) > 0 {
			did.Pending = max(tx.delays[0].NotBefore.Sub(tx.at), 1)
		}
		did.Queued, did.Ended, did.Over = tx.queued, tx.ended, tx.over(w.Plan)
		return nil
	})
	return did, err
}

// endDelays queues tasks whose delay is over, until no more than so much of the budget is left.
func (tx *tx) endDelays(left int) {
	for tx.budget > left && tx.overdue() {
		t := heap.Pop(&tx.delays).(*task)
		t.delayed = false
		tx.settle(t)
	}
}

// overdue reports whether a delay is over.
func (tx *tx) overdue() bool { return len(tx.delays) > 0 && !tx.delays[0].NotBefore.After(tx.at) }

// Leave implements store.Node.
func (s *Store) Leave(ctx context.Context, i plan.InstanceID) error {
	_, err := s.Rescue(ctx, i, -1)
	return err
}

// Rescue implements store.Node.
func (s *Store) Rescue(ctx context.Context, id plan.InstanceID, beats int64) (n int, err error) {
	err = s.write(ctx, func(tx *tx) error {
		i, ok := tx.instances[id]
		if !ok {
			return nil
		}
		if beats >= 0 && i.Beats != beats {
			return fmt.Errorf("rescue of instance %s, which beat again: %w", id, plan.ErrConflict)
		}
		n = len(i.tasks)
		for _, t := range i.tasks {
			tx.lose(t)
		}
		delete(tx.instances, id)
		tx.gone[id] = true
		tx.release()
		return nil
	})
	return n, err
}

// lose takes a task away from an instance that is gone.
func (tx *tx) lose(t *task) {
	tx.apply(t, rules.Lost(rules.Loss{
		Claim: t.claimState(), InPlan: t.plan != nil, Definition: &t.Definition, Queue: t.queue.OnLost, Rescues: t.Rescues,
	}))
}

// Instances implements store.Node and store.Reader.
func (s *Store) Instances(ctx context.Context) ([]plan.Instance, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]plan.Instance, 0, len(s.instances))
	for _, i := range s.instances {
		seen := i.Instance
		seen.Age = s.now().Sub(i.beat)
		out = append(out, seen)
	}
	sort.Slice(out, func(a, b int) bool { return out[a].ID.String() < out[b].ID.String() })
	return out, ctx.Err()
}
