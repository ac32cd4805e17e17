package mongodb

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/balance"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
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
		if err := s.checkInGroup(ctx, &q); err != nil {
			return plan.Queue{}, false, err
		}
		fields, _ := limits(q)
		taken, err := s.Insert(ctx, s.queues, append(d("_id", oid(q.ID.ID), "name", q.Name, "plugin", q.Plugin), fields...))
		if err != nil {
			return plan.Queue{}, false, fmt.Errorf("queue %q: %w", q.Name, err)
		}
		if taken == 0 {
			q.Queued, q.Active = 0, 0
			return q, false, s.putQueueIn(ctx, q, q)
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
func (s *Store) SetQueue(ctx context.Context, q plan.Queue) error { return s.setQueue(ctx, nil, q) }

// ChangeQueue implements store.Admin.
func (s *Store) ChangeQueue(ctx context.Context, was, q plan.Queue) error {
	return s.setQueue(ctx, &was, q, "threads", "unlimited", "sort", "nodes_pin", "nodes_ignore", "maxthreads", "settings")
}

// setQueue sets the queue, as long as these fields of it are as they were read; seen is how the caller has read it, nil: that does not matter.
func (s *Store) setQueue(ctx context.Context, seen *plan.Queue, q plan.Queue, fields ...string) error {
	for range tries {
		doc, same, err := s.queueAs(ctx, q.ID, nil, fields...)
		if err != nil {
			return err
		}
		now, change := doc.domain(), true
		if seen != nil {
			change, err = rules.CheckSettings(&now, seen, &q)
		}
		if err == nil && change {
			err = s.checkInGroup(ctx, &q)
		}
		if err != nil {
			return err
		}
		if change {
			if change, err = s.writeQueue(ctx, same, now, q); err != nil {
				return fmt.Errorf("queue %q: %w", doc.Name, err)
			}
			if !change {
				continue
			}
		}
		if err := s.putQueueIn(ctx, now, q); err != nil {
			return err
		}
		return s.wakeOthers(ctx, change) // more of it may be claimed now
	}
	return fmt.Errorf("queue %q: %w", q.Name, plan.ErrConflict)
}

// queueAs reads a queue. same matches it as long as these fields have the very values that were read, whatever form another program gave
// them.
func (s *Store) queueAs(ctx context.Context, id plan.QueueID, read bson.D, fields ...string) (doc queueDoc, same bson.D, err error) {
	there, err := wire.FindOne[bson.Raw](ctx, s.queues, d("_id", oid(id.ID)), wire.Query{Fields: read})
	if err == nil && there == nil {
		err = plan.ErrNotFound
	}
	if err == nil {
		err = bson.Unmarshal(*there, &doc)
	}
	if err != nil {
		return doc, nil, fmt.Errorf("queue %s: %w", id, err)
	}
	same = d("_id", doc.ID)
	for _, field := range fields {
		same = append(same, bson.E{Key: field, Value: d("$eq", wire.ValueOf(*there, field))})
	}
	return doc, same, nil
}

// writeQueue sets what a person says of the queue that the filter finds, which was read as was. If its rate changes, it is
// not written once a claim has spent more of the old rate.
func (s *Store) writeQueue(ctx context.Context, filter bson.D, was, q plan.Queue) (there bool, err error) {
	set, unset := limits(q)
	if was.Rate != q.Rate {
		now, err := s.Now(ctx)
		if err != nil {
			return false, err
		}
		respend(&filter, &set, was.Spent, rules.RateChanged(was.Rate, q.Rate, was.Spent, now))
	}
	update := d("$set", set)
	update = addIf(update, len(unset) > 0, "$unset", unset)
	return s.UpdateOne(ctx, s.queues, filter, update)
}

// Queues implements store.Reader.
func (s *Store) Queues(ctx context.Context) ([]plan.Queue, error) {
	docs, err := s.allQueues(ctx, "name")
	out := make([]plan.Queue, len(docs))
	for i := range docs {
		out[i] = docs[i].domain()
	}
	return out, err
}

// allQueues reads the queues in the order of a field, but for those whose id is no ObjectID: nobody could name them.
func (s *Store) allQueues(ctx context.Context, order string) ([]queueDoc, error) {
	docs, err := wire.Find[queueDoc](ctx, s.queues, d(), wire.Query{Sort: d(order, 1)})
	return slices.DeleteFunc(docs, func(q queueDoc) bool { return q.ID.IsZero() }), err
}

// countTasks counts tasks that match by queue and status: by an index, with no look at the tasks themselves.
func (s *Store) countTasks(ctx context.Context, match bson.D) ([]queueCount, error) {
	return wire.Aggregate[queueCount](ctx, s.tasks, bson.A{
		d("$match", match), d("$group", d("_id", d("queue", "$queue", "status", "$status"), "n", d("$sum", 1))),
	})
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
	counts, err := s.countTasks(ctx, onlyQueuedOrActive(d("queue", d("$in", ids))))
	for _, c := range counts {
		rules.CountInQueue(byID[c.Key.Queue], c.Key.Status, c.N)
	}
	return err
}

var _ store.Balance = (*Store)(nil)

// balanceID is the _id of the document in balance where Sluice makes it, so that two who do so at once make one.
const balanceID = "balance"

// Hold implements store.Roles. A document in meta, whose _id is the role, names the holder.
func (s *Store) Hold(ctx context.Context, role protocol.Role, i plan.InstanceID) (held bool, err error) {
	there, err := s.registered(ctx, oid(i.ID))
	if err == nil && !there {
		err = plan.ErrInstanceGone
	}
	if err != nil {
		return false, fmt.Errorf("instance %s: %w", i, err)
	}
	return s.own(ctx, string(role), oid(i.ID))
}

// Balance implements store.Balance: the document is the only one of the collection balance.
func (s *Store) Balance(ctx context.Context) (json.RawMessage, error) {
	found, err := wire.Find[bson.Raw](ctx, s.balance, d(), wire.Query{Fields: d("_id", 0), Limit: 2})
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the collection balance: %w", err)
	case len(found) == 0:
		return nil, nil
	case len(found) > 1:
		return nil, fmt.Errorf("the collection balance has more than one document; delete all but one: %w", balance.ErrMalformed)
	}
	text, err := bson.MarshalExtJSON(found[0], false, false)
	if err != nil {
		return nil, fmt.Errorf("the document in balance: %w: %w", balance.ErrMalformed, err)
	}
	return text, nil
}

// SetBalance implements store.Balance. If there are several documents, it changes any of them, as
// Disbatch does.
func (s *Store) SetBalance(ctx context.Context, settings json.RawMessage) error {
	if _, err := balance.With(nil, settings); err != nil {
		return err
	}
	var set bson.D
	if err := bson.UnmarshalExtJSON(settings, false, &set); err != nil { // a JSON object need not be one of Extended JSON
		return fmt.Errorf("settings of the balance document: %w: %w", balance.ErrMalformed, err)
	}
	set = slices.DeleteFunc(set, func(e bson.E) bool { return e.Key == "_id" })
	if len(set) == 0 {
		return nil
	}
	there, err := s.UpdateOne(ctx, s.balance, d(), d("$set", set))
	if err == nil && !there {
		err = s.Upsert(ctx, s.balance, d("_id", balanceID), d("$set", set))
	}
	if err != nil {
		return fmt.Errorf("write to the collection balance: %w", err)
	}
	return nil
}

// SetThreads implements store.Balance. The rest of the document stays as it is.
func (s *Store) SetThreads(ctx context.Context, was plan.Queue, threads int) error {
	doc, same, err := s.queueAs(ctx, was.ID, ones("name threads unlimited"), "threads", "unlimited")
	if err != nil {
		return err
	}
	change, err := rules.CheckThreads(doc.domain(), was, threads)
	if !change || err != nil {
		return err
	}
	set := d("threads", threads)
	set = addIf(set, doc.Unlimited, "unlimited", false)
	if changed, err := s.UpdateOne(ctx, s.queues, same, d("$set", set)); err != nil || !changed {
		return fmt.Errorf("queue %q: %w", doc.Name, cmp.Or(err, plan.ErrConflict))
	}
	return s.wakeOthers(ctx, true) // more of it may be claimed now
}
