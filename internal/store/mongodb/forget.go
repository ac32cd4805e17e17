package mongodb

import (
	"context"
	"encoding/json"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// forget clears what was known of the last attempts of tasks, and takes their gates off: they are held for their parents, or items,
// which are to be looked at.
func (s *Store) forget(ctx context.Context, retry, adding bson.ObjectID, doc *retryDoc) error {
	replace := map[bson.ObjectID]text{}
	for _, t := range doc.Tasks {
		replace[t.ID] = t.Replace
	}
	// Entries that are listed before the gates are seen are of attempts before the retry.
	all := make(bson.A, len(doc.Tasks))
	for i := range doc.Tasks {
		all[i] = doc.Tasks[i].ID
	}
	files, err := wire.Find[fileDoc](ctx, s.files, d("metadata.task_id", d("$in", all)), wire.Query{Fields: d("metadata", 1)})
	if err != nil {
		return err
	}
	tasks, err := s.gated(ctx, doc, d("params", 1, "text", 1, "needs", 1, "joins", 1, "of", 1, "expanded", 1, "making", 1, "items", 1,
		"attempt", 1, "lines", 1, "def", 1, "byref", 1))
	if err != nil {
		return err
	}
	if err := s.dropFiles(ctx, filesOfGated(files, tasks)); err != nil {
		return err
	}
	var changes []wire.Change
	var logs []any
	var ruled bson.A // by another rule, maybe, than their joins know of
	for i := range tasks {
		t := &tasks[i]
		update, err := t.anew(adding, replace[t.ID])
		if err != nil {
			return err
		}
		if t.Attempt > 0 { // the entry counts from this change on, whoever makes it and however often it was inserted
			logs = append(logs, logDocs(t.ID, protocol.Token(retry), t.Lines, []plan.LogEntry{rules.RetriedEntry(doc.At)}, true)...)
			update = append(update, d("$inc", d("lines", 1), "$addToSet", d("sealed", retry))...)
		}
		changes = append(changes, wire.Change{ID: t.ID, Where: d("gate", retry, "hold", holdRetry), Update: update})
		if t.Joins > 0 && len(replace[t.ID]) > 0 {
			ruled = append(ruled, t.ID)
		}
	}
	if len(ruled) > 0 {
		if _, err := s.UpdateMany(ctx, s.joins, d("child", d("$in", ruled), "count", nil), d("$unset", d("waits", 1))); err != nil {
			return err
		}
	}
	if _, err := s.Insert(ctx, s.logs, logs...); err != nil {
		return err
	}
	_, err = s.Bulk(ctx, s.tasks, changes)
	return err
}

// filesOfGated returns the ids of those files that are of the tasks.
func filesOfGated(files []fileDoc, tasks []taskDoc) (ids bson.A) {
	if len(files) == 0 {
		return nil
	}
	gated := make(map[bson.ObjectID]bool, len(tasks))
	for i := range tasks {
		gated[tasks[i].ID] = true
	}
	for i := range files {
		if gated[files[i].Metadata.Task] {
			ids = append(ids, files[i].ID)
		}
	}
	return ids
}

// gated reads those tasks of a part of a retry that its gate still holds, and those that it has only marked yet.
func (s *Store) gated(ctx context.Context, doc *retryDoc, fields bson.D) ([]taskDoc, error) {
	ids := make(bson.A, len(doc.Tasks))
	for i, t := range doc.Tasks {
		ids[i] = t.ID
	}
	return wire.Find[taskDoc](ctx, s.tasks, d("_id", d("$in", ids), "gate", doc.Retry), wire.Query{Fields: fields})
}

// anew is the change that makes a task as if it had never been tried.
func (t *taskDoc) anew(adding bson.ObjectID, replace text) (bson.D, error) {
	set := d("hold", holdNeeds, "adding", adding, "open", true, "stdout", nil, "stderr", nil)
	unset := d("gate", 1, "attempt", 1, "rescues", 1, "exit", 1, "complete", 1, "token", 1, "last", 1, "instance", 1, "slot", 1, "nodeslot", 1, "qnslot", 1, "cancel", 1,
		"notbefore", 1, "started", 1, "ended", 1, "empty", 1, "noticed", 1, "claimed", 1, "reason", 1, "detail", 1,
		"output", 1, "large", 1, "bytes", 1, "gathered", 1)
	if t.Of.IsZero() {
		unset = append(unset, d("byref", 1, "ours", 1)...) // it is looked at again as it is queued
	}
	t.Ours = !t.Of.IsZero() && t.ByRef
	set = append(set, bson.E{Key: "node", Value: t.nobody()})
	if t.Expanded || t.Making {
		set[0].Value = holdItems
	} else {
		unset = append(unset, d("items", 1, "inserted", 1, "released", 1, "list", 1)...)
	}
	fresh := taskDoc{Params: t.Params, Text: t.Text}
	switch {
	case len(replace) > 0:
		var r plan.Task
		if err := json.Unmarshal(replace, &r); err != nil {
			return nil, fmt.Errorf("task %s: %w", t.ID.Hex(), err)
		}
		if err := fresh.setDefinition(r.Definition); err != nil {
			return nil, err
		}
		if err := fresh.setParams(r.Params); err != nil {
			return nil, err
		}
		set = append(set, d("queue", oid(r.Queue.ID), "rank", fresh.Rank)...)
		for key, is := range map[string]bool{"def": len(fresh.Def) > 0, "coe": fresh.Lenient, "hassecret": fresh.Secret} {
			switch {
			case !is:
				unset = append(unset, bson.E{Key: key, Value: 1})
			case key == "def":
				set = append(set, bson.E{Key: key, Value: fresh.Def})
			default:
				set = append(set, bson.E{Key: key, Value: true})
			}
		}
	case t.hasParents():
		params, err := t.params()
		if err != nil {
			break // the task fails by them when it is queued
		}
		if params, err = rules.Deliver(params, nil); err != nil {
			return nil, err
		}
		if err := fresh.setParams(withoutInputs(params)); err != nil {
			return nil, err
		}
	}
	set = append(set, bson.E{Key: "params", Value: fresh.Params})
	if len(fresh.Text) > 0 {
		set = append(set, bson.E{Key: "text", Value: fresh.Text})
	} else {
		unset = append(unset, bson.E{Key: "text", Value: 1})
	}
	return d("$set", set, "$unset", unset, "$currentDate", d("mtime", true)), nil
}

// withoutInputs takes what rules.Deliver adds off params.
func withoutInputs(params json.RawMessage) json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(params, &m) != nil {
		return params // they were refused before
	}
	delete(m, "needs")
	delete(m, "args")
	own, _ := json.Marshal(m) // raw values that were just decoded
	return own
}
