package mongodb

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// forget clears what was known of the last attempts of tasks, and takes their gates off: they are held for their parents, or items,
// which are to be looked at.
func (s *Store) forget(ctx context.Context, retry, adding bson.ObjectID, doc *retryDoc) error {
	f := forgetting{retry: retry, adding: adding, at: doc.At, with: map[bson.ObjectID]*plan.Task{}, ran: map[bson.ObjectID]bool{}, leave: map[bson.ObjectID]bool{}}
	for _, t := range doc.Tasks {
		f.leave[t.ID] = t.Leaves
		if f.ran[t.ID] = t.Ran; len(t.Replace) > 0 {
			f.with[t.ID] = new(plan.Task)
			if err := json.Unmarshal(t.Replace, f.with[t.ID]); err != nil {
				return fmt.Errorf("task %s: %w", t.ID.Hex(), err)
			}
		}
	}
	// Entries that are listed before the gates are seen are of attempts before the retry.
	g := s.gating(ctx)
	files := wire.FindIn[fileDoc](g.Series, s.files, d("metadata.task_id", d("$in", doc.ids())), wire.Query{Fields: ones("metadata")})
	tasks := g.gated(doc, ones("params text needs joins of expanded making items attempt lines def byref finally"))
	gated := map[bson.ObjectID]bool{}
	for i := range tasks {
		gated[tasks[i].ID] = true
	}
	var old idList
	for i := range files {
		if gated[files[i].Metadata.Task] {
			old = append(old, files[i].ID)
		}
	}
	g.Do(func(ctx context.Context) error { return s.dropFiles(ctx, old) })
	g.Do(func(ctx context.Context) error { return engine.Retake(ctx, &f, tasks) })
	if len(f.ruled) > 0 {
		g.UpdateMany(s.joins, d("child", d("$in", f.ruled), "count", nil), d("$unset", d("waits", 1)))
	}
	g.Insert(s.logs, f.logs...)
	g.Bulk(s.tasks, f.changes)
	return g.Err
}

// forgetting gathers the writes of a part of a retry, as package engine decides them.
type forgetting struct {
	retry, adding bson.ObjectID
	at            time.Time
	with          map[bson.ObjectID]*plan.Task
	ran           map[bson.ObjectID]bool // those that keep it
	leave         map[bson.ObjectID]bool // items that are not in their list any more
	changes       []wire.Change
	logs          []any
	ruled         idList // by another rule, maybe, than their joins know of
}

// TakenBack implements engine.Retaker. The gate holds the task.
func (f *forgetting) TakenBack(t taskDoc) rules.TakenBack {
	t.hold(holdRetry)
	return rules.TakenBack{Status: t.Status, Attempt: t.Attempt, Ran: f.ran[t.ID], With: f.with[t.ID], Leaves: f.leave[t.ID]}
}

// Step implements engine.Retaker.
func (f *forgetting) Step(_ context.Context, t taskDoc, s rules.Step) error {
	t.Ours = !t.Of.IsZero() && !t.hasParents() && t.ByRef
	u := (&stepDoc{step: s}).update(stillOpen, t.nobody())
	u.put("adding", !t.Finally, f.adding)
	u.put("leaves", s.Leaves, true)
	if err := u.again(&t, s.With); err != nil {
		return err
	}
	var more bson.D
	if s.Noted { // the entry counts from this change on, whoever makes it and however often it was inserted
		f.logs = append(f.logs, logDocs(t.ID, protocol.Token(f.retry), t.Lines, []plan.LogEntry{rules.RetriedEntry(f.at)}, true)...)
		u.add("lines", 1)
		more = d("$addToSet", d("sealed", f.retry))
	}
	f.changes = append(f.changes, wire.Change{ID: t.ID, Where: d("gate", f.retry, "hold", holdRetry), Update: u.bson(more...)})
	if t.Joins > 0 && s.With != nil {
		f.ruled = append(f.ruled, t.ID)
	}
	return nil
}

// again holds a task for its parents or its items, with the definition and the params that it runs
// with next.
func (u *update) again(t *taskDoc, with *plan.Task) error {
	if t.Of.IsZero() || t.hasParents() {
		u.clear("byref", "ours") // it is looked at again as it is queued
	}
	switch {
	case t.Expanded || t.Making:
		u.put("hold", true, holdItems)
	default:
		hold := holdNeeds
		if t.Finally {
			hold = holdEnd
		}
		u.put("hold", true, hold)
		u.clear("items", "inserted", "released", "list")
	}
	fresh := taskDoc{Params: t.Params, Text: t.Text}
	switch {
	case with != nil:
		if err := fresh.setDefinition(with.Definition); err != nil {
			return err
		}
		if err := fresh.setParams(with.Params); err != nil {
			return err
		}
		u.set = append(u.set, d("queue", oid(with.Queue.ID), "rank", fresh.Rank)...)
		u.put("def", len(fresh.Def) > 0, fresh.Def)
		u.put("subject", fresh.Subject != "", fresh.Subject)
		u.put("along", fresh.Along, true)
		u.put("budget", fresh.Budget, true)
		u.put("coe", fresh.Lenient, true)
		u.put("hassecret", fresh.Secret, true)
	case t.hasParents():
		params, err := t.params()
		if err != nil {
			break // the task fails by them when it is queued
		}
		if params, err = rules.Deliver(params, nil); err != nil {
			return err
		}
		if err := fresh.setParams(rules.WithoutInputs(params)); err != nil {
			return err
		}
	}
	u.put("params", true, fresh.Params)
	u.put("text", len(fresh.Text) > 0, fresh.Text)
	return nil
}
