package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
)

// write runs do in a transaction, and commits it unless do returns an error or a statement failed.
// The caller must then discard do's changes in memory. write returns when the commit is on the
// disk.
func (s *Store) write(ctx context.Context, do func(*tx) error) error {
	var did *tx
	wrote, err := s.commit(ctx, func(t *tx) error { did = t; return do(t) })
	switch {
	case did != nil && did.flushed != nil:
		return cmp.Or(<-did.flushed, err)
	case err == nil && wrote:
		return s.wal.sync()
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
		plans: map[int64]*planRow{}, planIDs: map[plan.PlanID]*planRow{}, queues: map[int64]*queueRow{}, foreachs: map[int64]*foreachRow{}, ready: map[place][]candidate{},
		unstarted: map[unstarted][]int64{}, done: map[string][]int64{},
	}
	t.begin()
	if t.seen = s.lead; known && t.err == nil {
		t.notice(ahead)
	}
	err = do(t)
	if t.err == nil && err == nil {
		t.flush()
		if t.answer != nil && t.taken < answeredBeside {
			t.answer()
		}
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
	if err == nil && t.answer != nil && t.taken >= answeredBeside {
		err = t.answerBeside()
	}
	return t.rows > 0, err
}

// answeredBeside is for how many claimed tasks it pays to have another goroutine flush the log meanwhile.
const answeredBeside = 16

// answerBeside reads what the caller gets while the log is flushed. The caller still has the turn, so that
// nobody changes anything. An error is as one of the flush: what was committed stays.
func (t *tx) answerBeside() error {
	flushed := make(chan error, 1)
	t.flushed = flushed
	go func() { flushed <- t.s.wal.sync() }()
	t.conn.exec("BEGIN")
	t.answer()
	err := t.clear()
	t.conn.exec("ROLLBACK")
	if err = cmp.Or(err, t.clear()); err != nil { // not plan.ErrFull, of which nothing was kept
		err = fmt.Errorf("%s: the answer of a turn that was kept: %w: %w", t.s.path, plan.ErrUnavailable, err)
	}
	return err
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
