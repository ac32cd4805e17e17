// Package model is what the conformance suite compares stores with: maps under one mutex. Tests and
// simulations run on it, with a clock of their own if they like. It is the shortest reading of what
// package store asks for.
package model

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/docs"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/plan"
)

// Options say how a store is opened.
type Options struct {
	Now  func() time.Time // default time.Now
	Hook store.Hook       // called around each method that writes, which is one write; default none
}

// A Store is one handle on a database in memory. Byte slices that it is handed, and that it returns, are not to be changed after.
type Store struct {
	*db
	docs.Scan
	hook store.Hook
}

var _ store.Store = (*Store)(nil)

// New returns a handle on a new, empty database.
func New(o Options) *Store {
	d := &db{
		now: o.Now, plans: map[plan.PlanID]*planRow{}, runs: map[string]int{}, submitting: map[plan.PlanID]*planRow{}, tasks: map[plan.TaskID]*task{},
		queues: map[plan.QueueID]*queue{}, instances: map[plan.InstanceID]*instance{}, gone: map[plan.InstanceID]bool{}, maxThreads: map[plan.NodeName]int{}, holders: map[protocol.Role]plan.InstanceID{}, schedules: map[plan.ScheduleID]kept{}, rolled: map[plan.TaskID]plan.ID{},
		wakers: map[chan struct{}]bool{}, delays: map[*task]bool{},
	}
	if d.now == nil {
		d.now = time.Now
	}
	return d.open(o.Hook)
}

// Reopen returns another handle on the same database, as another process would have it; o.Now is not used.
func (s *Store) Reopen(o Options) *Store { return s.open(o.Hook) }

func (d *db) open(hook store.Hook) *Store {
	s := &Store{db: d, hook: hook}
	s.Of = s
	return s
}

// Close does nothing.
func (s *Store) Close() error { return nil }

// db is what all handles share.
type db struct {
	now func() time.Time

	mu         sync.Mutex
	plans      map[plan.PlanID]*planRow
	runs       map[string]int // highest run by plan name
	made       int            // plans so far
	submitting map[plan.PlanID]*planRow
	tasks      map[plan.TaskID]*task
	queues     map[plan.QueueID]*queue
	instances  map[plan.InstanceID]*instance
	gone       map[plan.InstanceID]bool // instances that were rescued, or have left
	maxThreads map[plan.NodeName]int
	balance    json.RawMessage                   // the balance document; nil: there is none
	holders    map[protocol.Role]plan.InstanceID // who has a role, if it is registered
	schedules  map[plan.ScheduleID]kept
	rolled     map[plan.TaskID]plan.ID // the batches of finished tasks of no plan
	groups     []plan.Group            // by name
	due        []*task                 // tasks that settle has to look at,
	ending     []*task                 // and after those, foreach tasks whose items have finished
	delays     map[*task]bool          // held tasks that wait for nothing but an instant
	changes    []entry                 // what Changes reads
	wake       int64
	wakers     map[chan struct{}]bool
}

// planRow is a plan as it is kept. Its Counts are always right.
type planRow struct {
	plan.Plan // without its File
	file      plan.File
	pack      []byte  // nil: it has none
	tasks     []*task // in the order in which they were added
	byName    map[string]*task
	n         int   // plans are numbered as they are made
	seq       int64 // of its last change
	deleting  bool  // its deletion has begun,
	gone      bool  // and ended
}

// task is a task as it is kept. waiting and seen follow from the parents' statuses and change with them.
type task struct {
	plan.Task
	own      json.RawMessage // its params as they were submitted; Params are those it was queued with
	plan     *planRow
	queue    *queue
	of       *task
	parents  []*task // in the order of Needs
	children []*task
	waiting  int           // parents that have not finished
	seen     rules.Outcome // of those that have
	token    protocol.Token
	ready    bool // its parents' outputs were delivered, or left to be asked for
	byRef    bool
	log      []plan.LogEntry
	results  map[plan.Stream][]byte
	seq      int64 // of its last change
	gone     bool  // deleted
	dropped  bool  // an item that does not start any more, since too many others failed
	leaves   bool  // an item that a retry found not to be in its list any more

	// for a foreach task:
	making   []json.RawMessage // the items that are being made
	items    []*task
	done     int           // items that have finished,
	outcomes rules.Outcome // how they did,
	failed   int           // how many failed,
	bytes    int           // and how long their outputs are
	gathered bool          // its output is too long to be kept: it is put together when it is asked for
}

type instance struct {
	plan.Instance
	beat     time.Time
	tasks    map[plan.TaskID]*task // claimed and running
	progress map[protocol.Claim]plan.Progress
}

// A tx is the unit of all actions of package engine but a retry.
var (
	_ engine.Canceller[*task, *planRow]      = (*tx)(nil)
	_ engine.Expirer[*planRow, plan.QueueID] = (*tx)(nil)
	_ engine.Settler[*task]                  = (*tx)(nil)
	_ engine.Setter[*task]                   = (*tx)(nil)
	_ engine.Starter[*task]                  = (*tx)(nil)
	_ engine.Sweeper[*task]                  = (*tx)(nil)
	_ engine.Taker[*task]                    = (*tx)(nil)
)

// tx is one write: the database is locked while it lasts.
type tx struct {
	*db
	ctx    context.Context // of the call
	by     *instance       // the instance that calls, in a turn or a sweep
	at     time.Time
	budget int                  // documents that may still be changed by releasing
	queued int                  // tasks that were queued,
	taken  int                  // and claimed
	ended  []protocol.EndedPlan // plans that ended
	rest   time.Duration        // until the first rate lets the next task start; 0: none holds one up
	told   bool                 // one of them has a node of its own, which is to be told

	unfinished bool // tasks of abandoned plans are still to be deleted
}

// write runs do as one write. If do returns an error it must have changed nothing.
func (s *Store) write(ctx context.Context, do func(*tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.hook != nil {
		if err := s.hook(false); err != nil {
			return err
		}
	}
	if err := s.locked(ctx, do); err != nil {
		return err
	}
	if s.hook != nil {
		return s.hook(true)
	}
	return nil
}

func (s *Store) locked(ctx context.Context, do func(*tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &tx{db: s.db, ctx: ctx, at: s.now().UTC(), budget: protocol.DefaultBudget}
	if err := do(t); err != nil {
		return err
	}
	if t.queued > t.taken || t.told {
		t.notify()
	}
	return nil
}

// notify tells other nodes that there is work, or that a plan has ended.
func (d *db) notify() {
	d.wake++
	for w := range d.wakers {
		select {
		case w <- struct{}{}:
		default: // it has not taken the last one yet
		}
	}
}

func (s *Store) Wakes(ctx context.Context) <-chan struct{} {
	w := make(chan struct{}, 1)
	s.mu.Lock()
	s.wakers[w] = true
	s.mu.Unlock()
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.wakers, w)
		close(w)
	})
	return w
}

// plan returns plan.ErrNotFound for a plan that is not there, or whose deletion has begun.
func (d *db) plan(id plan.PlanID) (*planRow, error) {
	if p, ok := d.plans[id]; ok && !p.deleting {
		return p, nil
	}
	return nil, fmt.Errorf("plan %s: %w", id, plan.ErrNotFound)
}

func (d *db) task(id plan.TaskID) (*task, error) {
	if t, ok := d.tasks[id]; ok {
		return t, nil
	}
	return nil, fmt.Errorf("task %s: %w", id, plan.ErrNotFound)
}

func (d *db) instance(id plan.InstanceID) (*instance, error) {
	if i, ok := d.instances[id]; ok {
		return i, nil
	}
	return nil, fmt.Errorf("instance %s: %w", id, plan.ErrInstanceGone)
}
