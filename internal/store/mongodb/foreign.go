package mongodb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// Programs that speak Disbatch end tasks without a word to anybody: first the status, then, in a second write, the output with
// complete. Such a task is finished but still open, and lies in one of two indexes that are empty otherwise.

var foreignFields = ones("status plan queue of reason coe budget open complete gate mtime items stdout bytes gathered def rank rescues cancel token attempt ended ours noticed claimed started")

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
	docs, err := wire.Find[taskDoc](ctx, r.tasks, onlyStopped(d("open", true)),
		wire.Query{Fields: foreignFields, Sort: ones("mtime"), Hint: indexStopped, Limit: max(r.budget, 1)})
	if err != nil {
		return err
	}
	var ended []taskDoc
	var lost []taskDoc
	for _, t := range docs {
		switch {
		case !t.Gate.IsZero(): // a retry is about to take it back
		case !t.othersEnd().GivenUp():
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
		p := parent{id: t.ID}
		p.fill(t)
		r.queue = append(r.queue, p)
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

// DEN 1.1 has records of another form than Disbatch 4: queues whose _id is a text and whose class is the plugin, tasks that name such a
// queue, and tasks with parameters in place of params. Ids are ObjectIDs in all of Sluice and in Disbatch 4, so that no node can serve such
// a queue. The store names these records instead, and each says what to do.

var _ store.Refuser = (*Store)(nil)

// UnmarshalBSONValue implements bson.ValueUnmarshaler.
func (p *exists) UnmarshalBSONValue(byte, []byte) error { *p = true; return nil }

// A stranger is a queue that no node can serve.
type stranger struct {
	queue string // by its id
	why   string
	tasks int // that wait in it, or that another program runs
}

func (s *stranger) String() string {
	text := s.why
	switch s.tasks {
	case 0:
	case 1:
		text += "; 1 task has not finished there"
	default:
		text += fmt.Sprintf("; %d tasks have not finished there", s.tasks)
	}
	return text
}

// Refused implements store.Refuser.
func (s *Store) Refused(ctx context.Context) ([]string, error) {
	found, err := s.strangers(ctx)
	out := make([]string, len(found))
	for i := range found {
		out[i] = found[i].String()
	}
	return out, err
}

// strangers reads the queues, which are few, and the unfinished tasks whose queue is a text, by an index that has no others there.
func (s *Store) strangers(ctx context.Context) (found []stranger, err error) {
	type queue struct {
		ID     stream `bson:"_id"`
		Class  word   `bson:"class"`
		Plugin exists `bson:"plugin"`
	}
	const (
		served = "no node of Sluice serves it. Make a queue (sluice queue create NAME --plugin PLUGIN) and add its tasks to that"
		remedy = "no node of Sluice serves it. Set name, plugin and threads in its document"
	)
	at := func(id bson.RawValue) int {
		text := idText(id)
		i := slices.IndexFunc(found, func(s stranger) bool { return s.queue == text })
		if i < 0 {
			i = len(found)
			found = append(found, stranger{queue: text, why: fmt.Sprintf("tasks name queue %s, as DEN 1.1 does, and Sluice knows queues by ObjectIDs: %s", text, served)})
		}
		return i
	}
	queues, err := wire.Find[queue](ctx, s.queues, d(), wire.Query{Fields: ones("class plugin"), Sort: d("_id", 1)})
	if err != nil {
		return nil, err
	}
	for _, q := range queues {
		class := ""
		if q.Class != "" {
			class = fmt.Sprintf(" with class %q", string(q.Class))
		}
		switch {
		case q.ID.value.Type != bson.TypeObjectID:
			found[at(q.ID.value)].why = fmt.Sprintf("queue %s%s has an _id that is no ObjectID, as DEN 1.1 lets it: %s", idText(q.ID.value), class, served)
		case q.Class != "" && !bool(q.Plugin):
			found[at(q.ID.value)].why = fmt.Sprintf("queue %s%s has no plugin, as DEN 1.1 writes it: %s", idText(q.ID.value), class, remedy)
		}
	}
	type count struct {
		Queue stream `bson:"_id"`
		N     int    `bson:"n"`
	}
	counts, err := wire.Aggregate[count](ctx, s.tasks, bson.A{
		d("$match", onlyQueuedOrActive(d("queue", d("$type", "string")))),
		d("$group", d("_id", "$queue", "n", d("$sum", 1))), d("$sort", d("_id", 1)),
	})
	for _, c := range counts {
		found[at(c.Queue.value)].tasks = c.N
	}
	return found, err
}

// nameless is an error that names queues of DEN 1.1, if there are several: none has a name, and the index of names, which is Disbatch 4's,
// holds one queue without a name.
func (s *Store) nameless(ctx context.Context) error {
	type queue struct {
		ID stream `bson:"_id"`
	}
	const most = 5
	found, err := wire.Find[queue](ctx, s.queues, d("name", nil), wire.Query{Fields: ones("_id"), Limit: most + 1})
	if err != nil || len(found) < 2 {
		return err
	}
	var ids []string
	for _, q := range found[:min(len(found), most)] {
		ids = append(ids, idText(q.ID.value))
	}
	if len(found) > most {
		ids = append(ids, "…")
	}
	return fmt.Errorf("queues %s have no name, as DEN 1.1 writes them, and names are unique in Sluice and in Disbatch 4: "+
		"give Sluice a database of its own, or give each queue a name", strings.Join(ids, ", "))
}

// idText is an id as a person knows it: a text in quotation marks, another program's id of another type as the shell writes it.
func idText(id bson.RawValue) string {
	switch id.Type {
	case bson.TypeObjectID:
		return id.ObjectID().Hex()
	case bson.TypeString:
		return fmt.Sprintf("%q", id.StringValue())
	}
	return id.String()
}

// tellStrangers has the node log each queue that no node can serve, once a handle, as it starts and as often as audits are made.
func (r *round) tellStrangers(ctx context.Context) error {
	r.mu.Lock()
	due := r.strange == nil || rules.AuditDue(r.looked, r.at)
	if due {
		r.looked = r.at
	}
	r.mu.Unlock()
	if !due {
		return nil
	}
	found, err := r.strangers(ctx)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.strange == nil {
		r.strange = map[string]bool{}
	}
	for i := range found {
		if !r.strange[found[i].queue] && len(r.strange) < mostLeftAlone {
			r.strange[found[i].queue] = true
			r.refused = append(r.refused, found[i].String())
		}
	}
	return nil
}
