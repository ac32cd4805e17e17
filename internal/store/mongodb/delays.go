package mongodb

import (
	"cmp"
	"context"
	"time"

	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
)

// noteDue notes that the delay of a task is over then, in so long a time.
func (s *Store) noteDue(in time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := time.Now().Add(in); s.due.IsZero() || at.Before(s.due) {
		s.due = at
	}
}

// mayBeDue reports whether the delay of a task is over by what this handle knows, so that a turn looks for it.
func (s *Store) mayBeDue() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.due.IsZero() && !time.Now().Before(s.due)
}

// dueWithin is how far delays looks ahead. A node sweeps each few seconds, so that what is due later is found in time. FerretDB reads all
// tasks that match, to find the first: without an end it read 100,000 tasks that are due next year in each sweep.
const dueWithin = time.Hour

// delays queues tasks whose delay is over, as many as most, and returns how long it is until the next one is; 0: none is over soon.
func (r *round) delays(ctx context.Context, most int) (pending time.Duration, err error) {
	// Tasks that another program ended meanwhile are not among these, and must not take their room
	// until they are adopted.
	docs, err := wire.Find[taskDoc](ctx, r.tasks, onlyHeld(d("hold", holdDelay), "notbefore", d("$lte", r.at)),
		wire.Query{Fields: ones("plan hold gen status def rank attempt needs joins"), Hint: indexDue, Limit: most})
	if err != nil {
		return 0, err
	}
	r.locked(func() { r.due = time.Time{} })
	if len(docs) == most {
		r.noteDue(0)
	}
	if err := r.endDelays(ctx, docs); err != nil {
		return 0, err
	}
	next, err := wire.FindOne[taskDoc](ctx, r.tasks, onlyHeld(d("hold", holdDelay), "notbefore", d("$gt", r.at, "$lte", r.at.Add(dueWithin))),
		wire.Query{Fields: ones("notbefore"), Sort: d("notbefore", 1), Hint: indexDue})
	if err != nil || next == nil {
		return 0, err
	}
	pending = max(next.NotBefore.Sub(r.at), 1)
	r.noteDue(max(pending, dueEvery))
	return pending, nil
}

// endDelays queues tasks whose delay is over, or has their parents looked at.
func (r *round) endDelays(ctx context.Context, docs []taskDoc) error {
	var changes []wire.Change
	looked := 0
	for i := range docs {
		t := &docs[i]
		def, _ := t.definition() // one that cannot be read fails the task when it is claimed
		update := queues("hold notbefore")
		if def.Foreach != nil && !def.Foreach.OnNode() || t.Attempt == 0 && t.hasParents() {
			// It was held before its items were made, or its parents' outputs delivered: now its parents are looked at again.
			batch := cmp.Or(t.Plan, t.ID)
			update = d("$set", d("hold", holdNeeds, "adding", batch), "$unset", ones("notbefore"))
			if err := r.job(ctx, workLook, batch); err != nil {
				return err
			}
			looked++
		} else {
			r.comesBack(t.Plan)
		}
		changes = append(changes, t.held(update))
	}
	n, misfits, err := r.BulkEach(ctx, r.tasks, changes)
	if err == nil {
		err = r.failAll(ctx, misfits, onlyHeld(nil), "it cannot be queued")
	}
	if err != nil {
		return err
	}
	r.queued += max(0, n-looked)
	r.budget -= len(changes)
	return nil
}

// dueEvery is how often turns look for tasks whose delay is over, at most, where one look finds them all.
const dueEvery = 100 * time.Millisecond
