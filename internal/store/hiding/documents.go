package hiding

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/docs"
	"github.com/seed-1177d267/sluice/plan"
)

// Who may choose conditions could find a secret by asking for one value after the other. So no condition is on a secret, and any other on
// what a secret can stand in is asked of what is shown, not of what is stored.

// documents are those of a store without its secrets.
type documents struct {
	store.Documents
	r *reader
}

// plain are the fields of a task that hold no secret.
var plain = map[string]bool{"_id": true, "id": true, "queue": true, "status": true, "node": true, "ctime": true, "mtime": true, "complete": true}

// inside are the collections of a store's own, in which params, outputs and logs lie in forms that nothing can be taken out of.
var inside = map[string]bool{
	"plans": true, "work": true, "joins": true, "items": true, "retries": true, "logs": true, "runs": true, "meta": true,
	"tasks.files": true, "tasks.chunks": true,
}

// conditions refuses those on a secret, and reports whether all of them are on plain fields.
func conditions(s plan.Secrets, where []store.Condition) (allPlain bool, err error) {
	allPlain = true
	for _, c := range where {
		allPlain = allPlain && plain[c.Field]
		secret := s.Within(nil, c.Field)
		for _, v := range c.Any {
			object, is := v.(json.RawMessage)
			secret = secret || is && s.Within(object, c.Field)
		}
		if secret {
			return false, fmt.Errorf("%s is not searched: %w", c.Field, plan.ErrSecret)
		}
	}
	return allPlain, nil
}

// TaskDocuments implements store.Documents.
func (d *documents) TaskDocuments(ctx context.Context, q store.DocumentQuery, do func(store.Document) error) error {
	s, err := d.r.secrets(ctx)
	if err != nil {
		return err
	}
	if s.None() {
		return d.Documents.TaskDocuments(ctx, q, do)
	}
	allPlain, err := conditions(s, q.Where)
	if err != nil {
		return err
	}
	whole := !allPlain || len(q.Fields) == 0
	hide := func(doc store.Document) error { return d.hideTask(ctx, s, doc, whole) }
	all := func(q store.DocumentQuery, do func(store.Document) error) error {
		return d.Documents.TaskDocuments(ctx, q, do)
	}
	return shown(q, allPlain, hide, all, do)
}

// shown has do see the documents that all finds, hidden. Where a condition is on what is hidden in part, it is asked of what is shown.
func shown(
	q store.DocumentQuery, allPlain bool, hide func(store.Document) error, all func(store.DocumentQuery, func(store.Document) error) error, do func(store.Document) error,
) error {
	if allPlain {
		return all(q, func(doc store.Document) error {
			if err := hide(doc); err != nil {
				return err
			}
			return do(doc)
		})
	}
	return docs.Paged(q, do, func(do func(store.Document) error) error {
		return all(store.DocumentQuery{Where: q.Where}, func(doc store.Document) error {
			if err := hide(doc); err != nil {
				return err
			}
			if !docs.Matches(doc, q.Where) {
				return nil
			}
			return do(doc)
		})
	})
}

// hideTask takes the secrets out of a task's document. Where it is not whole, its params are asked for, by which they are known.
func (d *documents) hideTask(ctx context.Context, s plan.Secrets, doc store.Document, whole bool) error {
	says := false
	for name, v := range doc {
		says = says || !plain[name] && v != nil
	}
	if !says {
		return nil
	}
	values := s.ValuesIn(doc["params"])
	if id, is := doc["_id"].(plan.ID); !whole && is {
		found, err := d.r.values(ctx, s, []plan.TaskID{{ID: id}})
		if err != nil {
			return err
		}
		values, whole = found[plan.TaskID{ID: id}]
	}
	for name, v := range doc {
		text, is := v.(string)
		switch {
		case plain[name]:
		case is && text != "" && !whole:
			doc[name] = plan.Hidden // nobody knows what is secret of it
		default:
			doc[name] = s.HideIn(v, values...)
		}
	}
	return nil
}

// CountTaskDocuments implements store.Documents.
func (d *documents) CountTaskDocuments(ctx context.Context, where []store.Condition) (n int, err error) {
	s, err := d.r.secrets(ctx)
	if err != nil {
		return 0, err
	}
	if s.None() {
		return d.Documents.CountTaskDocuments(ctx, where)
	}
	allPlain, err := conditions(s, where)
	switch {
	case err != nil:
		return 0, err
	case allPlain:
		return d.Documents.CountTaskDocuments(ctx, where)
	}
	err = d.TaskDocuments(ctx, store.DocumentQuery{Where: where}, func(store.Document) error {
		n++
		return nil
	})
	return n, err
}

// CollectionDocuments implements store.Documents. In a collection of any other program a name is as secret as in params.
func (d *documents) CollectionDocuments(ctx context.Context, name string, q store.DocumentQuery, do func(store.Document) error) error {
	s, err := d.r.secrets(ctx)
	switch {
	case err != nil:
		return err
	case s.None() || name == "queues" || name == "nodes":
		return d.Documents.CollectionDocuments(ctx, name, q, do)
	case name == "tasks":
		return d.TaskDocuments(ctx, q, do)
	case inside[name]:
		return fmt.Errorf("collection %q is not read while a queue keeps params secret: %w", name, plan.ErrSecret)
	}
	if _, err := conditions(s, q.Where); err != nil {
		return err
	}
	hide := func(doc store.Document) error {
		for name, v := range s.HideIn(map[string]any(doc), s.ValuesIn(map[string]any(doc))...).(map[string]any) {
			doc[name] = v
		}
		return nil
	}
	all := func(q store.DocumentQuery, do func(store.Document) error) error {
		return d.Documents.CollectionDocuments(ctx, name, q, do)
	}
	return shown(q, false, hide, all, do)
}
