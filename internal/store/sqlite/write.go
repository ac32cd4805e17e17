package sqlite

import (
	"context"
	"errors"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
)

// write runs do in a transaction, and commits it unless do returns an error or a statement failed.
// The caller must then discard do's changes in memory. write returns when the commit is on the
// disk.
func (s *Store) write(ctx context.Context, do func(*tx) error) error {
	wrote, err := s.commit(ctx, do)
	if err == nil && wrote {
		err = s.wal.sync()
	}
	return err
}

// commit is write for who has more to write before any of it has to be on the disk.
func (s *Store) commit(ctx context.Context, do func(*tx) error) (wrote bool, err error) {
	if err := s.lock(ctx); err != nil {
		return false, err
	}
	defer s.unlock()
	return s.transact(ctx, do)
}

// transact is write for who has the turn; what it wrote is still to be flushed to the disk.
func (s *Store) transact(ctx context.Context, do func(*tx) error) (wrote bool, err error) {
	at, ahead, known := s.clock.read()
	t := &tx{
		conn: s.w, s: s, ctx: ctx, began: time.Now(), at: at, now: at.UnixMicro(), budget: protocol.DefaultBudget,
		plans: map[int64]*planRow{}, planIDs: map[plan.PlanID]*planRow{}, queues: map[int64]*queueRow{}, foreachs: map[int64]*foreachRow{}, ready: map[place][]newcomer{},
		unstarted: map[unstarted][]int64{},
	}
	t.begin()
	if t.seen = s.lead; known && t.err == nil {
		t.notice(ahead)
	}
	err = do(t)
	if t.err == nil && err == nil {
		t.flush()
	}
	if err = t.end(err); errors.Is(err, plan.ErrFull) {
		s.shorten()
	}
	if err == nil {
		s.shared.listed(t.list)
	}
	if s.watch != nil && t.rows > 0 {
		s.watch(t)
	}
	return t.rows > 0, err
}

// flush writes what was gathered.
func (t *tx) flush() {
	for more := true; more; more = t.endPlans() {
		for t.flushForeachs() {
		}
		t.keepEnds() // of callers that release nothing themselves
		t.flushTasks()
	}
	t.flushPlans()
	t.flushQueues()
	t.flushChanges()
}
