package mongodb

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/docs"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

var _ store.Documents = (*Store)(nil)

// NodeDocuments implements store.Documents.
func (s *Store) NodeDocuments(ctx context.Context) (docs []store.Document, err error) {
	raw, err := wire.Find[bson.Raw](ctx, s.nodes, d(), wire.Query{Sort: d("node", 1)})
	for _, r := range raw {
		docs = append(docs, asDocument(r))
	}
	return docs, err
}

// LimitNode implements store.Documents.
func (s *Store) LimitNode(ctx context.Context, n plan.NodeName, threads *int) (there, changed bool, err error) {
	there, changed, err = s.ChangeOne(ctx, s.nodes, d("node", d("$eq", string(n))), d("$set", d("maxthreads", threads)))
	if err != nil {
		err = fmt.Errorf("node %s: %w", n, err)
	}
	return there, changed, err
}

// QueueViews implements store.Documents.
func (s *Store) QueueViews(ctx context.Context) ([]store.QueueView, error) {
	docs, err := s.allQueues(ctx, "_id")
	if err != nil {
		return nil, err
	}
	ids := idsFrom(docs, func(q queueDoc) bson.ObjectID { return q.ID })
	groups, err := s.countTasks(ctx, d("queue", d("$in", ids)))
	if err != nil {
		return nil, err
	}
	views := make([]store.QueueView, len(docs))
	at := map[bson.ObjectID]map[plan.Status]int{}
	for i, q := range docs {
		views[i] = store.QueueView{ID: plan.QueueID{ID: plan.ID(q.ID)}, Name: string(q.Name), Plugin: string(q.Plugin), Statuses: map[plan.Status]int{}}
		if threads := q.Threads.n; q.Threads.set && !q.Unlimited {
			views[i].Threads = &threads
		}
		at[q.ID] = views[i].Statuses
	}
	for _, g := range groups {
		if counts := at[g.Key.Queue]; counts != nil {
			counts[g.Key.Status] += g.N
		}
	}
	return views, nil
}

// AddQueue implements store.Documents.
func (s *Store) AddQueue(ctx context.Context, name, plugin string) (id plan.QueueID, err error) {
	now, err := s.Now(ctx)
	if err != nil {
		return id, err
	}
	id.ID = plan.NewID(now)
	taken, err := s.Insert(ctx, s.queues, d("_id", oid(id.ID), "name", name, "plugin", plugin))
	if err == nil && taken > 0 {
		err = plan.ErrExists
	}
	if err != nil {
		return plan.QueueID{}, fmt.Errorf("queue %q: %w", name, err)
	}
	return id, nil
}

// EditQueue implements store.Documents.
func (s *Store) EditQueue(ctx context.Context, id plan.QueueID, e store.QueueEdit) (changed bool, err error) {
	var set bson.D
	if e.Name != nil {
		set = append(set, bson.E{Key: "name", Value: *e.Name})
	}
	if e.Plugin != nil {
		set = append(set, bson.E{Key: "plugin", Value: *e.Plugin})
	}
	if e.Threads != nil {
		set = append(set, bson.E{Key: "threads", Value: *e.Threads})
	}
	if len(set) == 0 {
		return false, nil
	}
	this := d("_id", oid(id.ID))
	there := false
	if e.Threads != nil { // the field is written only where it says something, so that nothing else is a change
		there, changed, err = s.ChangeOne(ctx, s.queues, append(this[:1:1], d("unlimited", true)...), d("$set", append(set[:len(set):len(set)], d("unlimited", false)...)))
	}
	if err == nil && !there {
		there, changed, err = s.ChangeOne(ctx, s.queues, this, d("$set", set))
	}
	switch {
	case mongo.IsDuplicateKeyError(err):
		return false, fmt.Errorf("queue %q: %w", *e.Name, plan.ErrExists)
	case err == nil && !there:
		err = plan.ErrNotFound
	}
	if err != nil {
		return false, fmt.Errorf("queue %s: %w", id, err)
	}
	return changed, s.wakeOthers(ctx, changed) // more of it may be claimed now
}

// DeleteQueue implements store.Documents.
func (s *Store) DeleteQueue(ctx context.Context, id plan.QueueID) error {
	q, err := wire.FindOne[queueDoc](ctx, s.queues, d("_id", oid(id.ID)), wire.Query{})
	if err == nil && q == nil {
		err = plan.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("queue %s: %w", id, err)
	}
	t, err := wire.FindOne[taskDoc](ctx, s.tasks, onlyUnfinished(d("queue", oid(id.ID)), "plan", d("$exists", true)),
		wire.Query{Fields: ones("name plan status reason")})
	if err != nil {
		return err
	}
	var unfinished *plan.Task
	if t != nil {
		of := t.domain()
		unfinished = &of
	}
	owed, err := store.OwedOf(ctx, s, id)
	if err != nil {
		return err
	}
	is := q.domain()
	if err := rules.CheckDeleteQueue(&is, unfinished, owed); err != nil {
		return err
	}
	n, err := s.Remove(ctx, s.queues, d("_id", oid(id.ID)))
	if err == nil && n == 0 {
		err = plan.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("queue %s: %w", id, err)
	}
	return nil
}

// TaskIndexes implements store.Documents. An index over texts or places cannot be asked for values.
func (s *Store) TaskIndexes(ctx context.Context) (out []store.Index, err error) {
	cursor, err := s.tasks.Indexes().List(ctx)
	if err != nil {
		return nil, wire.Translate(err)
	}
	there, err := wire.All[indexDoc](ctx, cursor)
	if err != nil {
		return nil, wire.Translate(err)
	}
next:
	for _, i := range there {
		if strings.HasPrefix(i.Name, "sluice_") || len(i.Partial) > 0 {
			continue
		}
		var fields []string
		for _, e := range i.Key {
			if _, kind := e.Value.(string); kind || strings.Contains(e.Key, "$") {
				continue next
			}
			fields = append(fields, e.Key)
		}
		out = append(out, store.Index{Name: i.Name, Fields: fields})
	}
	return out, nil
}

// CountTaskDocuments implements store.Documents.
func (s *Store) CountTaskDocuments(ctx context.Context, where []store.Condition) (int, error) {
	filter, err := matching(where)
	if err != nil {
		return 0, err
	}
	n, err := s.tasks.CountDocuments(ctx, filter)
	return int(n), wire.Translate(err)
}

// TaskDocuments implements store.Documents.
func (s *Store) TaskDocuments(ctx context.Context, q store.DocumentQuery, do func(store.Document) error) error {
	return documents(ctx, s.tasks, q, ours, do)
}

// CollectionDocuments implements store.Documents.
func (s *Store) CollectionDocuments(ctx context.Context, name string, q store.DocumentQuery, do func(store.Document) error) error {
	if err := docs.CheckCollection(name); err != nil {
		return err
	}
	hide := map[string]bool{}
	if name == s.tasks.Name() {
		hide = ours
	}
	return documents(ctx, s.DB.Collection(name), q, hide, do)
}

// documentsAtOnce is how many documents one answer of the server has at most; what tasks printed may be in them.
const documentsAtOnce = 100

func documents(ctx context.Context, c *mongo.Collection, q store.DocumentQuery, hide map[string]bool, do func(store.Document) error) error {
	filter, err := matching(q.Where)
	if err != nil {
		return err
	}
	look := wire.Query{Fields: shown(q.Fields), Skip: q.Skip, Limit: q.Limit, Batch: documentsAtOnce}
	for _, k := range q.Sort {
		look.Sort = append(look.Sort, bson.E{Key: k.Field, Value: direction(k.Down)})
	}
	return wire.Each(ctx, c, filter, look, func(raw *bson.Raw) error { return do(seen(*raw, q.Fields, hide)) })
}

// shown makes the server's projection of fields. It includes the fields that identify the
// document's owner; Project removes these.
func shown(fields map[string]bool) bson.D {
	var out bson.D
	only := false
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		only = only || fields[name] && name != "_id"
		out = append(out, bson.E{Key: name, Value: fields[name]})
	}
	if !only {
		return slices.DeleteFunc(out, func(e bson.E) bool { return e.Key == mark || e.Key == "text" })
	}
	for _, name := range []string{mark, "text"} {
		if _, said := fields[name]; !said {
			out = append(out, bson.E{Key: name, Value: true})
		}
	}
	return out
}

// mark is a field that each task has which Sluice wrote, and nobody else's.
const mark = "gen"

// ours are the fields of tasks that Sluice keeps for itself.
var ours = func() map[string]bool {
	theirs := []string{"_id", "queue", "status", "node", "ctime", "mtime", "params", "stdout", "stderr", "complete", docs.SecretField}
	hidden := map[string]bool{}
	for f := range reflect.TypeFor[taskDoc]().Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("bson"), ","); name != "" && !slices.Contains(theirs, name) {
			hidden[name] = true
		}
	}
	return hidden
}()

// seen is a document as other programs may see it. Values that a task's document does not hold
// without loss come from the text beside it.
func seen(raw bson.Raw, fields map[string]bool, hide map[string]bool) store.Document {
	doc := asDocument(raw)
	if _, is := doc[mark]; len(hide) == 0 || !is {
		return docs.Project(doc, fields)
	}
	if exact, ok := doc["text"].(string); ok {
		if _, there := doc["params"]; there {
			v, _ := jsontext.Decode([]byte(exact))
			if params, is := v.(map[string]any); is {
				doc["params"] = params
			}
		}
	}
	for name := range doc {
		if hide[name] {
			delete(doc, name)
		}
	}
	return docs.Project(doc, fields)
}

// matching makes a filter of conditions. Each value is one to be equal to, whatever it looks like.
func matching(where []store.Condition) (bson.D, error) {
	var all bson.A
	for _, c := range where {
		if c.Field == "" || strings.HasPrefix(c.Field, "$") || strings.ContainsRune(c.Field, 0) {
			return nil, fmt.Errorf("%q cannot be a field's name", c.Field)
		}
		values := make(bson.A, len(c.Any))
		for i, v := range c.Any {
			value, err := compared(v)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.Field, err)
			}
			values[i] = value
		}
		if op := operators[c.Op]; op != "" {
			value := any(values)
			if c.Op != store.NoneOf {
				value = values[0]
			}
			all = append(all, d(c.Field, d(op, value)))
		} else if len(values) == 1 {
			all = append(all, d(c.Field, d("$eq", values[0])))
		} else {
			all = append(all, d(c.Field, d("$in", values)))
		}
	}
	if len(all) == 0 {
		return d(), nil
	}
	return d("$and", all), nil
}

// operators are the server's for the ways to compare that have one of their own.
var operators = map[store.Op]string{
	store.NoneOf: "$nin", store.Above: "$gt", store.AtLeast: "$gte", store.Below: "$lt", store.AtMost: "$lte", store.Exists: "$exists",
}

// compared makes BSON of a value.
func compared(v any) (any, error) {
	switch v := v.(type) {
	case plan.ID:
		return oid(v), nil
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n, nil
		}
		f, err := strconv.ParseFloat(string(v), 64)
		if err != nil && math.IsInf(f, 0) {
			return nil, fmt.Errorf("%s is too large a number", v)
		}
		return f, err
	case json.RawMessage:
		doc, _, err := encodeParams(v)
		return doc, err
	case nil, bool, string, time.Time:
		return v, nil
	}
	return nil, fmt.Errorf("a value of type %T", v)
}

// asDocument makes a document of what the server has. Kinds that JSON has nothing like become texts.
func asDocument(raw bson.Raw) store.Document {
	elements, _ := raw.Elements() // what is read of it is whole
	doc := make(store.Document, len(elements))
	for _, e := range elements {
		doc[e.Key()] = asValue(e.Value())
	}
	return doc
}

func asValue(v bson.RawValue) any {
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		return asDocument(v.Document())
	case bson.TypeArray:
		values, _ := v.Array().Values()
		list := make([]any, len(values))
		for i := range values {
			list[i] = asValue(values[i])
		}
		return list
	case bson.TypeString:
		return validText(v.StringValue())
	case bson.TypeInt32:
		return int64(v.Int32())
	case bson.TypeInt64:
		return v.Int64()
	case bson.TypeDouble:
		if f := v.Double(); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f
		}
		return nil
	case bson.TypeBoolean:
		return v.Boolean()
	case bson.TypeObjectID:
		return plan.ID(v.ObjectID())
	case bson.TypeDateTime:
		return v.Time().UTC()
	case bson.TypeNull, bson.TypeUndefined:
		return nil
	case bson.TypeBinary:
		_, b := v.Binary()
		if utf8.Valid(b) {
			return string(b)
		}
		return base64.StdEncoding.EncodeToString(b)
	}
	return cmp.Or(v.String(), "?")
}
