package mongodb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// Programs that speak Disbatch end tasks without a word to anybody: first the status, then, in a second write, the output with
// complete. Such a task is finished but still open, and lies in one of two indexes that are empty otherwise.

var foreignFields = ones("status plan queue of reason coe open complete gate mtime items stdout bytes gathered def rank rescues cancel token attempt ended ours noticed claimed started")

// adoptEnded releases what succeeded or failed without Sluice's own ending.
func (r *round) adoptEnded(ctx context.Context) error {
	docs, err := wire.Find[taskDoc](ctx, r.tasks, d("open", true, "status", d("$gt", 0)),
		wire.Query{Fields: foreignFields, Sort: ones("mtime"), Hint: indexEnded, Limit: max(r.budget, 1)})
	if err != nil {
		return err
	}
	return r.adopt(ctx, docs)
}

// adoptStopped releases tasks that were cancelled or terminated without an ending, by Sluice too. A
// task that another program gave up is judged as in a rescue.
func (r *round) adoptStopped(ctx context.Context) error {
	docs, err := wire.Find[taskDoc](ctx, r.tasks, d("open", true, "status", d("$in", stoppedStatuses)),
		wire.Query{Fields: foreignFields, Sort: ones("mtime"), Hint: indexStopped, Limit: max(r.budget, 1)})
	if err != nil {
		return err
	}
	var ended []taskDoc
	var lost []taskDoc
	for _, t := range docs {
		switch {
		case !t.Gate.IsZero(): // a retry is about to take it back
		case t.Status != plan.Orphaned || t.Complete:
			ended = append(ended, t)
		case !t.Plan.IsZero():
			lost = append(lost, t)
		default:
			t.Complete = true // a plain task stays as Disbatch left it
			ended = append(ended, t)
		}
	}
	losses, err := r.lostOf(ctx, lost)
	if err == nil {
		err = engine.Lose(ctx, r, losses)
	}
	if err != nil {
		return err
	}
	return r.adopt(ctx, ended)
}

// adopt takes what another program printed for the output of a task that counts as finished, and has its children released. It notes
// when it first saw an end whose output is not in yet.
func (r *round) adopt(ctx context.Context, docs []taskDoc) error {
	var changes []wire.Change
	for i := range docs {
		t := &docs[i]
		end := t.othersEnd()
		if !t.counted(r.at) {
			if t.Gate.IsZero() && t.Ended.IsZero() && end.Notice() {
				// The change of mtime tells those who follow the feed: the program that wrote the status did not.
				changes = append(changes, wire.Change{ID: t.ID, Where: d("open", true, "status", t.Status, "noticed", nil),
					Update: d("$set", d("claimed", t.Mtime), "$currentDate", d("noticed", true, "mtime", true))})
			}
			continue
		}
		output, err := r.printed(ctx, t.Stdout.value)
		if err != nil {
			return err
		}
		if t.Ended.IsZero() { // else it ended by Sluice, which has written all of this
			// A program that names only the task may end it while it waits for its next attempt, or
			// for anything else.
			began, over := end.Times(r.at)
			u := &update{set: d("complete", true, "ended", over), dates: d("mtime", true)}
			u.clear("slot", "nodeslot", "qnslot", "token", "cancel", "hold", "adding", "making", "notbefore", "noticed", "claimed")
			if t.Started.IsZero() && !began.IsZero() {
				u.put("started", true, began)
			}
			u.output(output, 0, false)
			changes = append(changes, wire.Change{ID: t.ID, Where: d("open", true, "status", t.Status), Update: u.bson()})
		}
		t.Open = true
		e := ended{id: t.ID}
		e.fill(t)
		r.queue = append(r.queue, e)
	}
	_, misfits, err := r.BulkEach(ctx, r.tasks, changes)
	r.budget -= len(changes)
	for _, m := range misfits { // what it printed stays where it is, and is no output
		r.bare[m.ID] = true
		if err == nil {
			_, _, err = r.BulkEach(ctx, r.tasks, []wire.Change{{ID: m.ID, Where: d("open", true), Update: d("$set", d("complete", true))}})
		}
		r.refused = append(r.refused, fmt.Sprintf("task %s: what it printed is not its output: %v", m.ID.Hex(), m.Err))
	}
	return err
}

// printed returns what a task printed as an output: as it is if it is JSON, else as a text; nothing if it is too large to be kept.
func (s *Store) printed(ctx context.Context, stdout bson.RawValue) (json.RawMessage, error) {
	var out string
	switch stdout.Type {
	case bson.TypeString:
		out = stdout.StringValue()
	case bson.TypeObjectID:
		var err error
		if out, err = s.file(ctx, stdout.ObjectID()); err != nil {
			return nil, err
		}
	default:
		return nil, nil
	}
	if len(out) > plan.MaxOutput || strings.TrimSpace(out) == "" {
		return nil, nil
	}
	if raw := json.RawMessage(strings.TrimSpace(out)); json.Valid(raw) {
		return raw, nil
	}
	raw := appendString(nil, out)
	if len(raw) > plan.MaxOutput {
		return nil, nil
	}
	return raw, nil
}

// file reads a file of Disbatch's GridFS, whose chunks hold strings, as far as an output may be long and no chunk is missing.
func (s *Store) file(ctx context.Context, id bson.ObjectID) (string, error) {
	var out strings.Builder
	errEnough, n := errors.New("enough"), 0
	in := wire.Query{Fields: ones("n data"), Sort: d("n", 1), Batch: chunksAtOnce}
	err := wire.Each(ctx, s.chunks, d("files_id", id), in, func(c *chunkDoc) error {
		if c.N != n || out.Len() > plan.MaxOutput {
			return errEnough
		}
		n++
		out.Write(c.Data)
		return nil
	})
	if err != nil && err != errEnough {
		return "", err
	}
	return out.String(), nil
}
