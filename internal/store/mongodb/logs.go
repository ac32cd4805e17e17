package mongodb

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// logDoc is a piece of a task's log. Its entries have the places after from, up to and with to; places may be left out.
type logDoc struct {
	ID      string        `bson:"_id"` // follows from the claim and the content: appending twice appends once
	Task    bson.ObjectID `bson:"task"`
	From    int64         `bson:"from"`
	To      int64         `bson:"to"`
	Entries []entryDoc    `bson:"entries"`
	Ending  bson.ObjectID `bson:"ending,omitempty"` // it counts only if the task was ended by the claim with this token
}

type entryDoc struct {
	At      time.Time   `bson:"at"`
	Attempt int         `bson:"attempt"`
	Stream  plan.Stream `bson:"stream"`
	Text    text        `bson:"text"`
}

func (e *entryDoc) domain() plan.LogEntry {
	return plan.LogEntry{At: e.At.UTC(), Attempt: e.Attempt, Stream: e.Stream, Text: string(e.Text)}
}

// A document has at most that many entries and, but for one that is longer, bytes.
const (
	logEntries = 1000
	logBytes   = 4 << 20
)

// logDocs makes documents of entries that come after a place, and that an ending brings or not.
func logDocs(task bson.ObjectID, token protocol.Token, from int64, entries []plan.LogEntry, ending bool) []any {
	var docs []any
	for len(entries) > 0 {
		doc := logDoc{Task: task, From: from}
		if ending {
			doc.Ending = bson.ObjectID(token)
		}
		h := fnv.New128a()
		size := 0
		for len(entries) > 0 && len(doc.Entries) < logEntries && (size == 0 || size+len(entries[0].Text) < logBytes) {
			e := entries[0]
			entries = entries[1:]
			size += len(e.Text)
			_, _ = h.Write(binary.BigEndian.AppendUint64([]byte{byte(e.Stream), byte(len(doc.Entries))}, uint64(e.At.UnixNano())))
			_, _ = h.Write([]byte(e.Text))
			doc.Entries = append(doc.Entries, entryDoc{e.At, e.Attempt, e.Stream, text(e.Text)})
		}
		from += int64(len(doc.Entries))
		doc.ID, doc.To = fmt.Sprintf("%s/%x/%x", task.Hex(), token, h.Sum(nil)), from
		docs = append(docs, doc)
	}
	return docs
}

// AppendLog implements store.Node.
func (s *Store) AppendLog(ctx context.Context, c protocol.Claim, entries []plan.LogEntry) error {
	var before struct {
		Lines int64 `bson:"lines"`
	}
	found := true
	err := s.Command(ctx, func() error {
		err := s.tasks.FindOneAndUpdate(ctx,
			onlyActive(d("_id", oid(c.Task.ID), "token", bson.ObjectID(c.Token), "attempt", c.Attempt)),
			d("$inc", d("lines", len(entries))),
			options.FindOneAndUpdate().SetProjection(ones("lines")).SetReturnDocument(options.Before)).Decode(&before)
		if err == mongo.ErrNoDocuments {
			found, err = false, nil
		}
		return err
	})
	if err == nil && !found {
		err = plan.ErrClaimLost
	}
	if err == nil {
		_, err = s.Insert(ctx, s.logs, logDocs(oid(c.Task.ID), c.Token, before.Lines, entries, false)...)
	}
	if err != nil {
		return fmt.Errorf("log of task %s, attempt %d: %w", c.Task, c.Attempt, err)
	}
	return nil
}

// Log implements store.Reader.
func (s *Store) Log(ctx context.Context, id plan.TaskID, after int64, limit int) ([]plan.LogEntry, int64, error) {
	t, err := s.task(ctx, id, ones("sealed"))
	if err != nil {
		return nil, after, err
	}
	docs, err := wire.Find[logDoc](ctx, s.logs,
		d("task", t.ID, "to", d("$gt", after), "ending", d("$in", append(bson.A{nil}, t.Sealed...))), wire.Query{Sort: d("to", 1), Limit: max(limit, 1)})
	if err != nil {
		return nil, after, err
	}
	var entries []plan.LogEntry
	next := after
	for _, doc := range docs {
		for i, e := range doc.Entries {
			at := doc.From + int64(i) + 1
			if at <= after {
				continue
			}
			if len(entries) == limit {
				return entries, next, nil
			}
			entries = append(entries, e.domain())
			next = at
		}
	}
	return entries, next, nil
}

var _ store.Reporter = (*Store)(nil)

// Report implements store.Reporter: the document goes into the collection reports, where Disbatch's plugins write theirs. It is read as
// Extended JSON, so that it can have ids and dates; an _id of its own gives way to the id.
func (s *Store) Report(ctx context.Context, id plan.ID, document json.RawMessage) error {
	var fields bson.D
	if err := bson.UnmarshalExtJSON(document, false, &fields); err != nil {
		return fmt.Errorf("a report is an object in JSON, or MongoDB's Extended JSON: %w", err)
	}
	doc := d("_id", oid(id))
	for _, f := range fields {
		if f.Key != "_id" {
			doc = append(doc, f)
		}
	}
	if _, err := s.Insert(ctx, s.DB.Collection("reports"), doc); err != nil {
		return fmt.Errorf("write to the collection reports: %w", err)
	}
	return nil
}
