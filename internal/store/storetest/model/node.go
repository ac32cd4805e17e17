package model

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/plan"
)

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

func (s *Store) Beat(ctx context.Context, b protocol.Beat) (told protocol.Beaten, err error) {
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
		if b.Pauses != nil {
			i.Pauses = slices.Clone(b.Pauses)
		}
		if b.Progress != nil {
			i.progress = make(map[protocol.Claim]plan.Progress, len(b.Progress))
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
		for _, s := range tx.schedules {
			if due := s.Due(); !due.IsZero() {
				if in := due.Sub(tx.at); told.Due == nil || in < *told.Due {
					told.Due = &in
				}
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

func (s *Store) Turn(ctx context.Context, turn protocol.Turn) (did protocol.Turned, err error) {
	if err := engine.CheckTurn(&turn); err != nil {
		return did, err
	}
	err = s.write(ctx, func(tx *tx) error {
		if tx.by, err = tx.instance(turn.Instance); err != nil {
			return err
		}
		did, err = engine.Turn(ctx, tx, &turn)
		return err
	})
	return did, err
}

// claimed returns the task of a claim that holds.
func (d *db) claimed(c protocol.Claim) (*task, bool) {
	t, ok := d.tasks[c.Task]
	return t, ok && t.Status.Active() && t.Attempt == c.Attempt && t.token == c.Token
}

func (tx *tx) Attempts(_ context.Context, endings []protocol.Ending) (held []engine.Attempt[*task], lost []plan.TaskID, err error) {
	seen := make(map[*task]bool, len(endings))
	for i := range endings {
		if t, ok := tx.claimed(endings[i].Claim); ok && !seen[t] {
			seen[t] = true
			held = append(held, engine.Attempt[*task]{Task: t, Ending: &endings[i]})
		} else {
			lost = append(lost, endings[i].Task)
		}
	}
	return held, lost, nil
}

func (tx *tx) End(_ context.Context, a *engine.Attempt[*task]) error {
	if e := a.Ending; e != nil {
		a.Task.log = append(a.Task.log, e.Log...)
		if e.Printed != nil {
			a.Task.results = map[plan.Stream][]byte{}
			for _, stream := range []plan.Stream{plan.Stdout, plan.Stderr} {
				if text := e.Printed.Of(stream); text != nil {
					a.Task.results[stream] = text
				}
			}
		}
	}
	return tx.apply(a.Task, a.Step)
}

func (tx *tx) Ended(context.Context) ([]engine.Attempt[*task], []plan.TaskID, error) {
	return nil, nil, nil
}

func (tx *tx) ClaimView(t *task) rules.Claim {
	c := rules.Claim{Status: t.Status, Cancel: t.Cancel, Ran: t.Ran, List: t.Foreach != nil}
	if t.plan != nil {
		c.Closing = t.plan.Closing
	}
	return c
}

func (tx *tx) LossView(t *task) rules.Loss {
	return rules.Loss{Claim: tx.ClaimView(t), InPlan: t.plan != nil, Definition: &t.Definition, Queue: t.queue.OnLost, Rescues: t.Rescues}
}

// Claim implements engine.Instance. It takes one task after the other, of the queue whose turn it is.
func (tx *tx) Claim(_ context.Context, turn *protocol.Turn, s rules.Step) (claimed []protocol.ClaimedTask, err error) {
	i := tx.by
	if turn.Shares == nil {
		anew := *turn
		anew.Shares, turn = &protocol.Shares{}, &anew
	}
	slots := min(turn.Slots, tx.room(i.Node))
	if slots <= 0 {
		return nil, nil
	}
	var queues, waiting []*queue
	var sharers []rules.Sharer
	for _, q := range tx.queues {
		sharer := rules.Sharer{Queue: q.ID, Weight: q.Weight, Groups: rules.GroupsOf(tx.groups, q.Group), Running: turn.Running[q.ID]}
		if q.offer(turn.Plan) != nil && turn.Serves(&q.Queue, i.Node) {
			q.Spent = rules.RateSpent(q.Rate, q.Spent, tx.at)
			sharer.Room = max(0, tx.groupRoom(q, rules.RateRoom(q.Rate, q.Spent, tx.at, min(slots, tx.roomIn(q, i.Node)))))
			tx.rests(q)
			waiting = append(waiting, q)
		}
		queues, sharers = append(queues, q), append(sharers, sharer)
	}
	var token protocol.Token
	_, _ = rand.Read(token[:]) // crypto/rand never fails: it ends the process instead
	var tasks []*task
	sharing := rules.NewSharing(turn.Shares, sharers, turn.Threads(), tx.groupsLet(slots))
	for len(tasks) < slots {
		k := sharing.Next()
		if k < 0 {
			break
		}
		q := queues[k]
		if q.offer(turn.Plan) == nil || tx.groupRoom(q, 1) <= 0 {
			sharing.Back(k, 1)
			continue
		}
		t := q.next(turn)
		if err = tx.take(t, i, token, turn.Start, s); err != nil {
			break
		}
		tasks = append(tasks, t)
		tx.spend(q)
	}
	for _, q := range waiting {
		if q.offer(turn.Plan) != nil {
			tx.rests(q)
		}
	}
	slices.SortFunc(tasks, func(a, b *task) int {
		return cmp.Or(cmp.Compare(b.Rank, a.Rank), bytes.Compare(a.ID.ID[:], b.ID.ID[:]))
	})
	claimed = make([]protocol.ClaimedTask, len(tasks))
	for k, t := range tasks {
		claimed[k] = t.claim()
	}
	tx.taken += len(tasks)
	return claimed, err
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
	for _, t := range q.heads() {
		if only.IsZero() || t.Plan == only {
			return t
		}
	}
	return nil
}

// next returns the task that offer has, or that of the plan whose turn it is.
func (q *queue) next(turn *protocol.Turn) *task {
	if q.Sort != plan.SortDefault || !turn.Plan.IsZero() {
		return q.offer(turn.Plan)
	}
	heads, shares := q.heads(), turn.Shares.Plans(q.ID).Of
	for id := range shares {
		if !slices.ContainsFunc(heads, func(t *task) bool { return t.Plan == id }) {
			rules.LeaveTurns(shares, id)
		}
	}
	for _, first := range heads {
		weight := plan.DefaultPriority
		if first.plan != nil {
			weight = first.plan.Weight()
		}
		rules.JoinTurns(shares, first.Plan, weight)
	}
	whose := rules.Deal(shares, 1, 1, func(a, b plan.PlanID) int { return bytes.Compare(a.ID[:], b.ID[:]) })[0]
	rules.PassTurn(shares, whose, 1)
	return q.lanes[whose][0]
}

func (tx *tx) take(t *task, i *instance, token protocol.Token, start bool, s rules.Step) error {
	t.token, t.Node, t.Instance = token, i.Node, i.ID
	if t.Started = (time.Time{}); start {
		t.Started = tx.at
	}
	i.tasks[t.ID] = t
	return tx.apply(t, s)
}

func (t *task) claim() protocol.ClaimedTask {
	c := protocol.ClaimedTask{
		Claim: protocol.Claim{Task: t.ID, Attempt: t.Attempt, Token: t.token},
		Plan:  t.Plan, Name: t.Name, Queue: t.Queue, QueueName: t.queue.Name, Plugin: t.queue.Plugin, Settings: t.queue.QueueSettings,
		Definition: t.Definition,
		Params:     t.Params, ByReference: t.byRef, Reason: t.Reason, Rescues: t.Rescues, Index: t.Index,
	}
	if t.plan != nil {
		c.PlanName = t.plan.Title()
	}
	return c
}

func (s *Store) Start(ctx context.Context, claims []protocol.Claim) (lost []plan.TaskID, err error) {
	err = s.write(ctx, func(tx *tx) error {
		lost, err = engine.Start(ctx, tx, claims)
		return err
	})
	return lost, err
}

func (tx *tx) Start(_ context.Context, tasks []*task, s rules.Step) error {
	for _, t := range tasks {
		t.Started = tx.at
		if err := tx.apply(t, s); err != nil {
			return err
		}
	}
	return nil
}

func sameEntry(a, b plan.LogEntry) bool {
	return a.At.Equal(b.At) && a.Attempt == b.Attempt && a.Stream == b.Stream && a.Text == b.Text
}

func (s *Store) AppendLog(ctx context.Context, c protocol.Claim, entries []plan.LogEntry) error {
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

func (s *Store) Sweep(ctx context.Context, w protocol.Sweep) (did protocol.Swept, err error) {
	err = s.write(ctx, func(tx *tx) error {
		if tx.by, err = tx.instance(w.Instance); err != nil {
			return err
		}
		did, err = engine.Sweep(ctx, tx, &w)
		return err
	})
	return did, err
}

func (tx *tx) Unknown(_ context.Context, holding []plan.TaskID) (unknown []*task, err error) {
	held := make(map[plan.TaskID]bool, len(holding))
	for _, id := range holding {
		held[id] = true
	}
	for id, t := range tx.by.tasks {
		if !held[id] {
			unknown = append(unknown, t)
		}
	}
	return unknown, nil
}

// Audit implements engine.Sweeper. No process can leave the maps half-written.
func (tx *tx) Audit(context.Context) error { return nil }

// Strays implements engine.Sweeper. No claim outlives its instance.
func (tx *tx) Strays(context.Context) ([]*task, error) { return nil, nil }

// Inherit implements engine.Sweeper. Work has no owner.
func (tx *tx) Inherit(context.Context) error { return nil }

func (tx *tx) EndDelays(_ context.Context, most int) (more bool, err error) {
	left := max(tx.budget-most, 0)
	for _, t := range slices.SortedFunc(maps.Keys(tx.delays), func(a, b *task) int { return a.NotBefore.Compare(b.NotBefore) }) {
		switch {
		case t.NotBefore.After(tx.at):
			return false, nil
		case !tx.delays[t]: // the end of another one ended it
			continue
		case tx.budget <= left:
			return true, nil
		}
		delete(tx.delays, t)
		if err := tx.settle(t); err != nil {
			return false, err
		}
	}
	return false, nil
}

func (tx *tx) Pending(context.Context) (left time.Duration, waits bool, err error) {
	wait := func(until time.Time) {
		if in := until.Sub(tx.at); !waits || in < left {
			left, waits = in, true
		}
	}
	for t := range tx.delays {
		wait(t.NotBefore)
	}
	for _, p := range tx.timed() {
		wait(p.Deadline)
	}
	return left, waits, nil
}

func (tx *tx) Resume(ctx context.Context) error {
	tx.unfinished = tx.abandon()
	for _, p := range tx.timed() {
		if !p.Deadline.After(tx.at) {
			if err := engine.TimeOut(ctx, tx, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// timed returns the plans that have a deadline, and are to be closed once that is over.
func (tx *tx) timed() (found []*planRow) {
	for _, p := range tx.plans {
		if v := tx.PlanView(p); !p.Deadline.IsZero() && rules.TimesOut(v.State, v.Ending, v.Closing, v.Retrying) {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b *planRow) int { return a.n - b.n })
	return found
}

// Finish implements engine.Instance. Plans end with their last task.
func (tx *tx) Finish(_ context.Context, only plan.PlanID) (engine.Did, error) {
	return engine.Did{Queued: tx.queued, Ended: tx.ended, Over: tx.over(only), Rest: tx.rest}, nil
}

func (s *Store) Leave(ctx context.Context, i plan.InstanceID) error {
	_, err := s.Rescue(ctx, i, -1)
	return err
}

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
		if err := engine.Lose(tx.ctx, tx, slices.Collect(maps.Values(i.tasks))); err != nil {
			return err
		}
		delete(tx.instances, id)
		tx.gone[id] = true
		return tx.work()
	})
	return n, err
}

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
