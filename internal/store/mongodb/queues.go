package mongodb

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/plan"
)

// queueDoc is a queue. Threads are null if the queue has no limit: Disbatch's own nodes leave such
// a queue alone. Its settings of nodes are fields of DEN 1.1, which the nodes of Disbatch 4 do not
// read.
type queueDoc struct {
	ID          bson.ObjectID  `bson:"_id"`
	Name        word           `bson:"name"`
	Plugin      word           `bson:"plugin"`
	Threads     count          `bson:"threads"`
	Sort        plan.QueueSort `bson:"sort,omitempty"`
	Unlimited   bool           `bson:"unlimited,omitempty"`
	Pin         nodeNames      `bson:"nodes_pin,omitempty"`
	Ignore      nodeNames      `bson:"nodes_ignore,omitempty"`
	NodeThreads count          `bson:"maxthreads,omitempty"`
	OnLost      word           `bson:"onlost,omitempty"`  // no other program reads it,
	Secrets     nodeNames      `bson:"secrets,omitempty"` // nor this,
	Keep        keepDoc        `bson:"keep,omitempty"`    // nor this
}

// keepDoc is a plan.Keep: a document of statuses, by their words, with durations in Go's form, as
// in 36h0m0s. Other keys are ignored: they may be a person's, or another program's.
type keepDoc plan.Keep

// UnmarshalBSONValue implements bson.ValueUnmarshaler.
func (k *keepDoc) UnmarshalBSONValue(kind byte, data []byte) error {
	said := bson.RawValue{Type: bson.Type(kind), Value: data}
	doc, ok := said.DocumentOK()
	*k = keepDoc{}
	for _, s := range plan.KeptStatuses {
		if text, is := doc.Lookup(s.String()).StringValueOK(); ok && is {
			if d, err := time.ParseDuration(text); err == nil {
				*(*plan.Keep)(k).Of(s) = d
			}
		}
	}
	return nil
}

// keepFields is a plan.Keep as a document, of what it says.
func keepFields(k plan.Keep) (fields bson.D) {
	for _, s := range plan.KeptStatuses {
		if d := *k.Of(s); d != 0 {
			fields = append(fields, bson.E{Key: s.String(), Value: d.String()})
		}
	}
	return fields
}

func (q *queueDoc) domain() plan.Queue {
	out := plan.Queue{
		ID: plan.QueueID{ID: plan.ID(q.ID)}, Name: string(q.Name), Plugin: string(q.Plugin), Threads: q.Threads.n, Unlimited: q.Unlimited, Sort: q.Sort,
		Pin: q.Pin, Ignore: q.Ignore, NodeThreads: max(q.NodeThreads.n, 0), Keep: plan.Keep(q.Keep),
	}
	if out.Sort != plan.SortFIFO && out.Sort != plan.SortLIFO { // Disbatch calls it "default"
		out.Sort = plan.SortDefault
	}
	if said := plan.OnLost(q.OnLost); said == plan.OnLostRetry || said == plan.OnLostFail {
		out.OnLost = said
	}
	for _, name := range q.Secrets {
		out.Secrets = append(out.Secrets, string(name))
	}
	return out
}

// limits are the fields of a queue that a person changes, and those of them that it does not have.
func limits(q plan.Queue) (set, unset bson.D) {
	threads := any(q.Threads)
	if q.Unlimited {
		threads = nil
	}
	set = d("threads", threads, "unlimited", q.Unlimited, "sort", q.Sort)
	for _, f := range []struct {
		name  string
		value any
		there bool
	}{
		{"nodes_pin", q.Pin, len(q.Pin) > 0}, {"nodes_ignore", q.Ignore, len(q.Ignore) > 0}, {"maxthreads", q.NodeThreads, q.NodeThreads > 0},
		{"onlost", q.OnLost, q.OnLost != plan.OnLostDefault}, {"secrets", q.Secrets, len(q.Secrets) > 0},
		{"keep", keepFields(q.Keep), q.Keep != plan.Keep{}},
	} {
		if f.there {
			set = append(set, bson.E{Key: f.name, Value: f.value})
		} else {
			unset = append(unset, bson.E{Key: f.name, Value: 1})
		}
	}
	return set, unset
}

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
		now, err := s.now(ctx)
		if err != nil {
			return plan.Queue{}, false, err
		}
		q.ID.ID = plan.NewID(now)
	}
	for {
		doc, err := findOne[queueDoc](ctx, s.queues, d("name", q.Name), query{})
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
		taken, err := s.insert(ctx, s.queues, append(d("_id", oid(q.ID.ID), "name", q.Name, "plugin", q.Plugin), fields...))
		if err != nil {
			return plan.Queue{}, false, fmt.Errorf("queue %q: %w", q.Name, err)
		}
		if taken == 0 {
			q.Queued, q.Active = 0, 0
			return q, false, nil
		}
		if other, err := findOne[queueDoc](ctx, s.queues, d("_id", oid(q.ID.ID)), query{}); err != nil || other != nil && string(other.Name) != q.Name {
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
	there, err := findOne[bson.Raw](ctx, s.queues, d("_id", oid(q.ID.ID)), query{})
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
	change, err := plan.CheckSettings(&now, &was, &q)
	if !change || err != nil {
		return err
	}
	same := d("_id", doc.ID)
	for _, field := range []string{"threads", "unlimited", "sort", "nodes_pin", "nodes_ignore", "maxthreads", "onlost", "secrets", "keep"} {
		same = append(same, bson.E{Key: field, Value: d("$eq", valueOf(*there, field))})
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
	return s.updateOne(ctx, s.queues, filter, update)
}

// valueOf returns a field as it stands; one that is missing is null, which a filter finds equal.
func valueOf(doc bson.Raw, field string) any {
	if v, err := doc.LookupErr(field); err == nil {
		return v
	}
	return nil
}

// Queues implements store.Reader.
func (s *Store) Queues(ctx context.Context) ([]plan.Queue, error) {
	docs, err := find[queueDoc](ctx, s.queues, d(), query{sort: d("name", 1)})
	docs = slices.DeleteFunc(docs, func(q queueDoc) bool { return q.ID.IsZero() }) // its id is no ObjectID: nobody could name it
	out := make([]plan.Queue, len(docs))
	for i := range docs {
		out[i] = docs[i].domain()
	}
	return out, err
}

// A queueCount is how many tasks of a queue have a status, as an aggregation counts them.
type queueCount struct {
	Key struct {
		Queue  bson.ObjectID `bson:"queue"`
		Status plan.Status   `bson:"status"`
	} `bson:"_id"`
	N int `bson:"n"`
}

// CountQueues implements store.Reader. It costs what is queued and active in the queues.
func (s *Store) CountQueues(ctx context.Context, queues []plan.Queue) error {
	ids := make(bson.A, len(queues))
	byID := make(map[bson.ObjectID]*plan.Queue, len(queues))
	for i := range queues {
		q := &queues[i]
		ids[i] = oid(q.ID.ID)
		byID[oid(q.ID.ID)], q.Queued, q.Active = q, 0, 0
	}
	counts, err := aggregate[queueCount](ctx, s.tasks, bson.A{
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
