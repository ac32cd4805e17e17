package mongodb

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// CreateQueue implements store.Admin.
func (s *Store) CreateQueue(ctx context.Context, q plan.Queue) (plan.Queue, error) {
	made, there, err := s.queueFor(ctx, q)
	if err == nil && there && made.ID != q.ID {
		return plan.Queue{}, fmt.Errorf("queue %q: %w", q.Name, plan.ErrExists)
	}
	return made, err
}

// EnsureQueue implements store.Admin.
func (s *Store) EnsureQueue(ctx context.Context, q plan.Queue) (plan.Queue, error) {
	made, _, err := s.queueFor(ctx, q)
	return made, err
}

// queueFor returns the queue of that name, and whether it was there already.
func (s *Store) queueFor(ctx context.Context, q plan.Queue) (made plan.Queue, there bool, err error) {
	if q.ID.IsZero() {
		now, err := s.Now(ctx)
		if err != nil {
			return plan.Queue{}, false, err
		}
		q.ID.ID = plan.NewID(now)
	}
	for {
		doc, err := wire.FindOne[queueDoc](ctx, s.queues, d("name", q.Name), wire.Query{})
		if err != nil {
			return plan.Queue{}, false, err
		}
		if doc != nil && doc.ID.IsZero() {
			return plan.Queue{}, false, fmt.Errorf("queue %q was made by another program with an id that is no ObjectID; choose another name", q.Name)
		}
		if doc != nil {
			return doc.domain(), true, nil
		}
		fields, _ := limits(q)
		taken, err := s.Insert(ctx, s.queues, append(d("_id", oid(q.ID.ID), "name", q.Name, "plugin", q.Plugin), fields...))
		if err != nil {
			return plan.Queue{}, false, fmt.Errorf("queue %q: %w", q.Name, err)
		}
		if taken == 0 {
			q.Queued, q.Active = 0, 0
			return q, false, nil
		}
		if other, err := wire.FindOne[queueDoc](ctx, s.queues, d("_id", oid(q.ID.ID)), wire.Query{}); err != nil || other != nil && string(other.Name) != q.Name {
			if err == nil {
				err = fmt.Errorf("queue %q: its id is that of queue %q: %w", q.Name, other.Name, plan.ErrExists)
			}
			return plan.Queue{}, false, err
		}
	}
}

// SetQueue implements store.Admin.
func (s *Store) SetQueue(ctx context.Context, q plan.Queue) error {
	there, err := s.writeQueue(ctx, d("_id", oid(q.ID.ID)), q)
	if err == nil && !there {
		err = plan.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("queue %s: %w", q.ID, err)
	}
	return s.wakeForQueue(ctx)
}

// wakeForQueue tells nodes that more of a queue may be claimed now.
func (s *Store) wakeForQueue(ctx context.Context) error {
	r, err := s.newRound(ctx, 0)
	if err != nil {
		return err
	}
	r.queued = 1
	return r.wake(ctx)
}

// ChangeQueue implements store.Admin. As in SetThreads, the write asks for the very values that were read.
func (s *Store) ChangeQueue(ctx context.Context, was, q plan.Queue) error {
	there, err := wire.FindOne[bson.Raw](ctx, s.queues, d("_id", oid(q.ID.ID)), wire.Query{})
	if err == nil && there == nil {
		err = plan.ErrNotFound
	}
	var doc queueDoc
	if err == nil {
		err = bson.Unmarshal(*there, &doc)
	}
	if err != nil {
		return fmt.Errorf("queue %s: %w", q.ID, err)
	}
	now := doc.domain()
	change, err := rules.CheckSettings(&now, &was, &q)
	if !change || err != nil {
		return err
	}
	same := d("_id", doc.ID)
	for _, field := range []string{"threads", "unlimited", "sort", "nodes_pin", "nodes_ignore", "maxthreads", "onlost", "secrets", "keep"} {
		same = append(same, bson.E{Key: field, Value: d("$eq", wire.ValueOf(*there, field))})
	}
	if changed, err := s.writeQueue(ctx, same, q); err != nil || !changed {
		return fmt.Errorf("queue %q: %w", doc.Name, cmp.Or(err, plan.ErrConflict))
	}
	return s.wakeForQueue(ctx)
}

// writeQueue sets what a person says of the queue that the filter finds.
func (s *Store) writeQueue(ctx context.Context, filter bson.D, q plan.Queue) (there bool, err error) {
	set, unset := limits(q)
	update := d("$set", set)
	if len(unset) > 0 {
		update = append(update, bson.E{Key: "$unset", Value: unset})
	}
	return s.UpdateOne(ctx, s.queues, filter, update)
}

// Queues implements store.Reader.
func (s *Store) Queues(ctx context.Context) ([]plan.Queue, error) {
	docs, err := wire.Find[queueDoc](ctx, s.queues, d(), wire.Query{Sort: d("name", 1)})
	docs = slices.DeleteFunc(docs, func(q queueDoc) bool { return q.ID.IsZero() }) // its id is no ObjectID: nobody could name it
	out := make([]plan.Queue, len(docs))
	for i := range docs {
		out[i] = docs[i].domain()
	}
	return out, err
}

// CountQueues implements store.Reader. It costs what is queued and active in the queues.
func (s *Store) CountQueues(ctx context.Context, queues []plan.Queue) error {
	ids := make(idList, len(queues))
	byID := make(map[bson.ObjectID]*plan.Queue, len(queues))
	for i := range queues {
		q := &queues[i]
		ids[i] = oid(q.ID.ID)
		byID[oid(q.ID.ID)], q.Queued, q.Active = q, 0, 0
	}
	counts, err := wire.Aggregate[queueCount](ctx, s.tasks, bson.A{
		d("$match", d("queue", d("$in", ids), "status", d("$in", bson.A{plan.Queued, plan.Claimed, plan.Running}))),
		d("$group", d("_id", d("queue", "$queue", "status", "$status"), "n", d("$sum", 1))),
	})
	for _, c := range counts {
		if q := byID[c.Key.Queue]; c.Key.Status == plan.Queued {
			q.Queued += c.N
		} else {
			q.Active += c.N
		}
	}
	return err
}
