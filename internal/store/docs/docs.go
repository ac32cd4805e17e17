// Package docs makes documents in Disbatch 4's form from the records of other stores, and selects
// among them as a database of documents does. It owns the form of these documents; its callers own
// their use.
package docs

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// A Scan implements the methods of store.Documents that select among documents, for a store that
// embeds it. It makes the documents of all records that may match.
type Scan struct{ Of Records }

// Records are what the documents of a Scan are made from.
type Records interface {
	store.Reader
	store.Results
	store.Documents
}

// TaskIndexes implements store.Documents. The indexes are those that Disbatch 4 has on tasks, under
// their names.
func (Scan) TaskIndexes(ctx context.Context) ([]store.Index, error) {
	return []store.Index{
		{Name: "_id_", Fields: []string{"_id"}},
		{Name: "node_1_status_1_queue_1", Fields: []string{"node", "status", "queue"}},
		{Name: "node_1_status_1_queue_1__id_1", Fields: []string{"node", "status", "queue", "_id"}},
		{Name: "node_1_status_1_queue_1__id_-1", Fields: []string{"node", "status", "queue", "_id"}},
		{Name: "queue_1_status_1", Fields: []string{"queue", "status"}},
	}, ctx.Err()
}

// NodeID is the id of a node's document, drawn from its name.
func NodeID(n plan.NodeName) plan.ID {
	sum := sha256.Sum256([]byte(n))
	return plan.ID(sum[:12])
}

// NodeDocuments implements store.Documents.
func (s Scan) NodeDocuments(ctx context.Context) ([]store.Document, error) {
	now, err := s.Of.Now(ctx)
	if err != nil {
		return nil, err
	}
	instances, err := s.Of.Instances(ctx)
	if err != nil {
		return nil, err
	}
	limits, err := s.Of.MaxThreads(ctx)
	if err != nil {
		return nil, err
	}
	heard := map[plan.NodeName]time.Time{}
	for n := range limits {
		heard[n] = time.Unix(0, 0).UTC()
	}
	for _, i := range instances {
		if at := now.Add(-i.Age); !i.Runner && at.After(heard[i.Node]) {
			heard[i.Node] = at
		}
	}
	docs := make([]store.Document, 0, len(heard))
	for _, n := range sortedNames(heard) {
		doc := store.Document{"_id": NodeID(n), "node": string(n), "timestamp": heard[n], "maxthreads": nil}
		if most, limited := limits[n]; limited {
			doc["maxthreads"] = int64(most)
		}
		docs = append(docs, doc)
	}
	return docs, nil
}

// SecretField is a field that a task's document has, as true, where the task or its plan keeps some of its params secret. It is for who hides
// them, and goes no further.
const SecretField = "hassecret"

// Task makes the document of a task. Each stream of its output is a string, nil for null, or an id
// in place of a file.
func Task(t *plan.Task, stdout, stderr any) (store.Document, error) {
	doc := store.Document{
		"_id": t.ID.ID, "queue": t.Queue.ID, "status": int64(t.Status), "node": nil, "ctime": t.Created, "mtime": t.Modified, "params": nil,
		"stdout": stdout, "stderr": stderr,
	}
	if t.Node != "" {
		doc["node"] = string(t.Node)
	}
	if t.Status.Finished() {
		doc["complete"] = true
	}
	if len(t.Secrets) > 0 {
		doc[SecretField] = true
	}
	if len(t.Params) > 0 {
		params, err := jsontext.Decode(t.Params)
		if err != nil {
			return nil, fmt.Errorf("params of task %s: %w", t.ID, err)
		}
		doc["params"] = params
	}
	return doc, nil
}

// How many tasks are read at once: few at first, which may be enough, and more each time.
const (
	firstAtOnce = 500
	mostAtOnce  = 10_000
)

// CountTaskDocuments implements store.Documents.
func (s Scan) CountTaskDocuments(ctx context.Context, where []store.Condition) (n int, err error) {
	err = each(ctx, s.Of, where, needed(where, nil), func(store.Document) error {
		n++
		return nil
	})
	return n, err
}

// TaskDocuments implements store.Documents.
func (s Scan) TaskDocuments(ctx context.Context, q store.DocumentQuery, do func(store.Document) error) error {
	if len(q.Sort) > 0 {
		return sorted(ctx, s.Of, q, do)
	}
	return Paged(q, do, func(do func(store.Document) error) error {
		return each(ctx, s.Of, q.Where, needed(q.Where, q.Fields), do)
	})
}

// CollectionDocuments implements store.Documents: there are no others than nodes, queues and tasks.
func (s Scan) CollectionDocuments(ctx context.Context, name string, q store.DocumentQuery, do func(store.Document) error) error {
	if err := CheckCollection(name); err != nil {
		return err
	}
	var docs []store.Document
	var err error
	switch name {
	case "tasks":
		return s.TaskDocuments(ctx, q, do)
	case "nodes":
		docs, err = s.NodeDocuments(ctx)
	case "queues":
		docs, err = s.queues(ctx)
	}
	if err != nil {
		return err
	}
	return Paged(q, do, func(do func(store.Document) error) error {
		for _, doc := range docs {
			if !Matches(doc, q.Where) {
				continue
			}
			if err := do(doc); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s Scan) queues(ctx context.Context) (docs []store.Document, err error) {
	views, err := s.Of.QueueViews(ctx)
	for _, q := range views {
		doc := store.Document{"_id": q.ID.ID, "name": q.Name, "plugin": q.Plugin}
		if q.Threads != nil {
			doc["threads"] = int64(*q.Threads)
		}
		docs = append(docs, doc)
	}
	return docs, err
}

// CheckCollection returns plan.ErrNotFound for a name that no collection of documents has.
func CheckCollection(name string) error {
	if name == "" || strings.HasPrefix(name, "system.") || strings.ContainsAny(name, "$\x00") {
		return fmt.Errorf("collection %q: %w", name, plan.ErrNotFound)
	}
	return nil
}

// errEnough ends a search.
var errEnough = errors.New("enough")

// Paged has do see what all finds, as the query wants it skipped, limited and cut to its fields.
func Paged(q store.DocumentQuery, do func(store.Document) error, all func(func(store.Document) error) error) error {
	seen := 0
	err := all(func(doc store.Document) error {
		if seen++; seen <= q.Skip {
			return nil
		}
		if err := do(Project(doc, q.Fields)); err != nil {
			return err
		}
		if q.Limit > 0 && seen-q.Skip >= q.Limit {
			return errEnough
		}
		return nil
	})
	if err == errEnough {
		return nil
	}
	return err
}

// parts are what of a task's document is not to be had for nothing.
type parts struct{ params, stdout, stderr bool }

// needed returns what conditions look at and fields show.
func needed(where []store.Condition, fields map[string]bool) parts {
	part := func(name string) bool {
		here := func(path string) bool { return path == name || strings.HasPrefix(path, name+".") }
		if slices.ContainsFunc(where, func(c store.Condition) bool { return here(c.Field) }) {
			return true
		}
		if !Only(fields) {
			in, said := fields[name]
			return in || !said
		}
		for path, in := range fields {
			if in && here(path) {
				return true
			}
		}
		return false
	}
	return parts{part("params"), part("stdout"), part("stderr")}
}

// Only reports whether fields say what is to be had, and not what is to be left out.
func Only(fields map[string]bool) bool {
	for name, in := range fields {
		if in && (name != "_id" || len(fields) == 1) {
			return true
		}
	}
	return false
}

func each(ctx context.Context, s Records, where []store.Condition, p parts, do func(store.Document) error) error {
	q, none := narrow(where)
	if none {
		return nil
	}
	q.Limit, q.Params = firstAtOnce, p.params
	for {
		tasks, err := s.Tasks(ctx, q)
		if err != nil {
			return err
		}
		for i := range tasks {
			t := &tasks[i]
			var stdout, stderr any
			if p.stdout || p.stderr {
				if stdout, stderr, err = printed(ctx, s, t, p); err != nil {
					return err
				}
			}
			doc, err := Task(t, stdout, stderr)
			if err != nil {
				return err
			}
			if !Matches(doc, where) {
				continue
			}
			if err := do(doc); err != nil {
				return err
			}
		}
		if len(tasks) < q.Limit {
			return nil
		}
		q.After, q.Limit = tasks[len(tasks)-1].ID, min(2*q.Limit, mostAtOnce)
	}
}

// narrow makes a query of the conditions that a reader can apply itself. none is true if no task
// can match.
func narrow(where []store.Condition) (q store.TaskQuery, none bool) {
	for _, c := range where {
		if c.Op != store.AnyOf {
			continue // Matches asks
		}
		switch c.Field {
		case "_id":
			if len(q.IDs) > 0 {
				continue // Matches asks for both
			}
			for _, v := range c.Any {
				if id, ok := v.(plan.ID); ok {
					q.IDs = append(q.IDs, plan.TaskID{ID: id})
				}
			}
			if len(q.IDs) == 0 {
				return q, true
			}
		case "queue":
			if id, ok := c.Any[0].(plan.ID); ok && len(c.Any) == 1 {
				q.Queue.ID = id
			}
		case "status":
			q.Statuses = nil
			for _, v := range c.Any {
				n, ok := v.(json.Number)
				if !ok {
					continue
				}
				worth, ok := number(n)
				if !ok || !worth.IsInt() || !worth.Num().IsInt64() || worth.Num().Int64() < int64(plan.Orphaned) {
					continue
				}
				// Readers take failed for any code above 1; Matches tells them apart.
				q.Statuses = append(q.Statuses, plan.Status(min(worth.Num().Int64(), int64(plan.Failed))))
			}
			if len(q.Statuses) == 0 {
				return q, true
			}
		}
	}
	return q, false
}

// printed returns the output of a task in its document's form. If a stream is larger than a
// document of Disbatch may hold, the task's id takes the place of a file's id.
func printed(ctx context.Context, s Records, t *plan.Task, p parts) (stdout, stderr any, err error) {
	if !t.Status.Active() && !t.Status.Finished() {
		return nil, nil, nil
	}
	var open [2]io.ReadCloser
	var size [2]int64
	for i, stream := range []plan.Stream{plan.Stdout, plan.Stderr} {
		if open[i], size[i], err = s.OpenResult(ctx, t.ID, stream); err != nil {
			if open[0] != nil && i > 0 {
				_ = open[0].Close()
			}
			return nil, nil, err
		}
	}
	defer open[0].Close()
	defer open[1].Close()
	var values [2]any
	outFile, errFile := protocol.GFSAuto.Files(max(size[0], 0), max(size[1], 0))
	for i, file := range []bool{outFile, errFile} {
		switch {
		case file:
			values[i] = t.ID.ID
		case size[i] < 0 || !([]bool{p.stdout, p.stderr})[i]:
		default:
			text, err := io.ReadAll(open[i])
			if err != nil {
				return nil, nil, err
			}
			values[i] = strings.ToValidUTF8(string(text), "\uFFFD")
		}
	}
	return values[0], values[1], nil
}
