package mongodb

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

var _ store.Roller = (*Store)(nil)

// A rollDoc is a batch. Its id is the gate of its tasks, so that no retry takes them. It is written first, with the tasks that are to be in
// it; then these are marked; then it is sealed, with those that have the mark. A sealed batch never changes. A mark that arrives later
// belongs to nothing: an audit takes it off.
type rollDoc struct {
	ID    bson.ObjectID `bson:"_id"`
	Queue bson.ObjectID `bson:"queue"`
	Tasks idList        `bson:"tasks"`
	Fate  string        `bson:"fate,omitempty"` // "": it has begun
}

// The fates of a batch.
const (
	rollSealed   = "sealed"
	rollReceived = "received" // its tasks are to be deleted
)

// ToRoll implements store.Roller.
func (s *Store) ToRoll(ctx context.Context, q plan.QueueID, limits map[plan.Status]time.Duration, limit int) (found []plan.Task, err error) {
	defer about(&err, "look for what is handed over")
	err = s.inRound(ctx, 0, func(r *round) error {
		for status, keep := range limits {
			some, err := r.unneeded(ctx, oid(q.ID), status, r.at.Add(-keep), limit)
			if err != nil {
				return err
			}
			found = slices.Grow(found, len(some)) // which may take many megabytes
			for i := range some {
				found = append(found, plan.Task{ID: taskID(some[i].ID), Status: some[i].Status, Ended: some[i].Ended.UTC()})
			}
		}
		return nil
	})
	slices.SortFunc(found, func(a, b plan.Task) int {
		return cmp.Or(a.Ended.Compare(b.Ended), bytes.Compare(a.ID.ID[:], b.ID.ID[:]))
	})
	return found[:min(len(found), limit)], err
}

// An endedDoc is what ToRoll tells of a task. A look reads many: each has no more than that.
type endedDoc struct {
	ID     bson.ObjectID `bson:"_id"`
	Status plan.Status   `bson:"status"`
	Ended  time.Time     `bson:"ended"`
}

// unneeded returns up to limit tasks of a queue that ended so before an instant, and that no task needs, by their codes and ends.
func (r *round) unneeded(ctx context.Context, queue bson.ObjectID, status plan.Status, before time.Time, limit int) (found []endedDoc, err error) {
	old, q := endedBefore(queue, status, before), wire.Query{Fields: ones("status ended"), Sort: d("status", 1, "ended", 1), Limit: limit}
	for len(found) < limit {
		docs, err := wire.Find[endedDoc](ctx, r.tasks, old, q)
		if err != nil {
			return nil, err
		}
		needed := map[bson.ObjectID]bool{}
		ids := idsFrom(docs, func(t endedDoc) bson.ObjectID { return t.ID })
		if err := r.eachNeeded(ctx, ids, func(id bson.ObjectID) { needed[id] = true }); err != nil {
			return nil, err
		}
		for i := range docs {
			if !needed[docs[i].ID] && len(found) < limit {
				found = append(found, docs[i])
			}
		}
		if len(docs) < limit {
			break
		}
		q.Skip += limit
	}
	return found, nil
}

// BeginBatch implements store.Roller.
func (s *Store) BeginBatch(ctx context.Context, id plan.ID, q plan.QueueID, tasks []plan.Task) (in []plan.TaskID, err error) {
	defer about(&err, "begin a batch")
	doc := &rollDoc{ID: oid(id), Queue: oid(q.ID), Tasks: idsFrom(tasks, func(t plan.Task) bson.ObjectID { return idOf(&t) })}
	if _, err := s.Insert(ctx, s.rolls, doc); err != nil {
		return nil, err
	}
	var marked idList
	err = s.inRound(ctx, 0, func(r *round) error {
		for some := range slices.Chunk(tasks, deleteAtOnce) {
			ids, err := r.markToRoll(ctx, some, doc.ID)
			if err != nil {
				return err
			}
			marked = append(marked, ids...)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if doc, err = s.sealBatch(ctx, doc, marked); err != nil || doc == nil {
		return nil, err
	}
	return taskIDs(doc.Tasks), nil
}

// markToRoll writes a batch into those tasks that are as ToRoll returned them, and returns the tasks that have it. Nearly always one
// command marks all.
func (r *round) markToRoll(ctx context.Context, tasks []plan.Task, batch bson.ObjectID) (idList, error) {
	docs, ended := make([]taskDoc, len(tasks)), make(map[bson.ObjectID]time.Time, len(tasks))
	for i := range tasks {
		docs[i] = taskDoc{ID: idOf(&tasks[i]), Ended: tasks[i].Ended}
		ended[docs[i].ID] = tasks[i].Ended
	}
	marked, err := r.markUnneeded(ctx, docs, batch, "rolling")
	if err != nil || len(marked) == len(docs) {
		return idsOfTasks(marked), err
	}
	// Some have changed, or a child was added to them once.
	left, err := wire.Find[taskDoc](ctx, r.tasks, d("_id", d("$in", idsOfTasks(docs)), "gate", nil, "shared", d("$gt", 0), "ended", d("$exists", true)), wire.Query{Fields: unneededFields})
	if err != nil {
		return nil, err
	}
	left = slices.DeleteFunc(left, func(t taskDoc) bool { return !t.Ended.Equal(ended[t.ID]) })
	more, err := r.markUnneeded(ctx, left, batch, "rolling")
	return append(idsOfTasks(marked), idsOfTasks(more)...), err
}

// markedBy returns those tasks of a batch that has begun which have its mark.
func (s *Store) markedBy(ctx context.Context, b *rollDoc) (marked idList, err error) {
	g := s.Series(ctx)
	for ids := range slices.Chunk(b.Tasks, deleteAtOnce) {
		marked = append(marked, idsOfTasks(wire.FindIn[taskDoc](g, s.tasks, d("_id", d("$in", ids), "gate", b.ID), wire.Query{Fields: ones("_id")}))...)
	}
	return marked, g.Err
}

// sealBatch has a batch that has begun be those tasks that have its mark, and returns it as it is then. It is nil if there are none.
func (s *Store) sealBatch(ctx context.Context, b *rollDoc, marked idList) (*rollDoc, error) {
	begun := d("_id", b.ID, "fate", nil)
	if len(marked) == 0 {
		if _, err := s.Remove(ctx, s.rolls, begun); err != nil {
			return nil, err
		}
	} else if is, err := s.UpdateOne(ctx, s.rolls, begun, d("$set", d("fate", rollSealed, "tasks", marked))); is || err != nil {
		b.Fate, b.Tasks = rollSealed, marked
		return b, err
	}
	return wire.FindOne[rollDoc](ctx, s.rolls, d("_id", b.ID), wire.Query{}) // another process may have sealed it
}

func taskIDs(ids idList) []plan.TaskID {
	tasks := make([]plan.TaskID, len(ids))
	for i := range ids {
		tasks[i] = taskID(ids[i])
	}
	return tasks
}

// Batches implements store.Roller.
func (s *Store) Batches(ctx context.Context) (all []store.Batch, err error) {
	defer about(&err, "read batches")
	docs, err := wire.Find[rollDoc](ctx, s.rolls, d(), wire.Query{Sort: d("_id", 1)})
	if err != nil {
		return nil, err
	}
	for i := range docs {
		b := &docs[i]
		switch b.Fate {
		case rollReceived:
			err = s.endReceived(ctx, b)
		case "":
			var marked idList
			if marked, err = s.markedBy(ctx, b); err == nil {
				b, err = s.sealBatch(ctx, b, marked)
			}
		}
		if err != nil {
			return nil, err
		}
		if b != nil && b.Fate == rollSealed {
			all = append(all, store.Batch{ID: plan.ID(b.ID), Queue: plan.QueueID{ID: plan.ID(b.Queue)}, Tasks: taskIDs(b.Tasks)})
		}
	}
	return all, nil
}

// Logs implements store.Roller.
func (s *Store) Logs(ctx context.Context, tasks []plan.TaskID) (logs map[plan.TaskID][]plan.LogEntry, err error) {
	defer about(&err, "read logs")
	ids := idsFrom(tasks, func(id plan.TaskID) bson.ObjectID { return oid(id.ID) })
	sealed, err := wire.Find[taskDoc](ctx, s.tasks, d("_id", d("$in", ids)), wire.Query{Fields: ones("sealed")})
	if err != nil {
		return nil, err
	}
	docs, err := wire.Find[logDoc](ctx, s.logs, d("task", d("$in", ids)), wire.Query{Sort: d("task", 1, "to", 1)})
	if err != nil {
		return nil, err
	}
	of := byID(sealed)
	logs = make(map[plan.TaskID][]plan.LogEntry, len(of))
	for i := range docs {
		doc, t := &docs[i], of[docs[i].Task]
		if t == nil || !doc.Ending.IsZero() && !slices.Contains(t.Sealed, any(doc.Ending)) {
			continue
		}
		id := taskID(t.ID)
		for k := range doc.Entries {
			logs[id] = append(logs[id], doc.Entries[k].domain())
		}
	}
	return logs, nil
}

// EndBatch implements store.Roller.
func (s *Store) EndBatch(ctx context.Context, id plan.ID, received bool) (err error) {
	defer about(&err, "end a batch")
	b, err := wire.FindOne[rollDoc](ctx, s.rolls, d("_id", oid(id)), wire.Query{})
	if err != nil || b == nil {
		return err
	}
	g := s.Series(ctx)
	if received {
		g.UpdateOne(s.rolls, d("_id", b.ID), d("$set", d("fate", rollReceived)))
		g.Do(func(ctx context.Context) error { return s.endReceived(ctx, b) })
		return g.Err
	}
	g.Remove(s.rolls, d("_id", b.ID)) // then an audit takes off what is left of it
	g.UpdateMany(s.tasks, d("_id", d("$in", b.Tasks), "gate", b.ID), d("$unset", ones("gate rolling")))
	return g.Err
}

// endReceived deletes the tasks of a batch that was received. The next process continues if this one dies. A task that another program
// has queued again stays.
func (s *Store) endReceived(ctx context.Context, b *rollDoc) error {
	g := s.Series(ctx)
	for ids := range slices.Chunk(b.Tasks, deleteAtOnce) {
		finished := d("_id", d("$in", ids), "gate", b.ID, "$nor", bson.A{onlyUnfinished(nil)})
		if docs := wire.FindIn[taskDoc](g, s.tasks, finished, wire.Query{Fields: ones("joins")}); len(docs) > 0 {
			joined := slices.DeleteFunc(slices.Clone(docs), func(t taskDoc) bool { return t.Joins == 0 })
			g.Do(func(ctx context.Context) error { return s.forgetTasks(ctx, idsOfTasks(docs), idsOfTasks(joined)) })
		}
	}
	g.Remove(s.rolls, d("_id", b.ID))
	return g.Err
}
