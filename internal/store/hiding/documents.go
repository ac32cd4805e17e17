package hiding

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/docs"
	"github.com/seed-1177d267/sluice/plan"
)

// A person who may choose conditions could find a secret by asking for one value after the other.
// So a condition on a secret is refused. Any other condition on a field that can contain a secret
// is applied to the shown value, not to the stored one.

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
func conditions(s secret.Names, where []store.Condition) (allPlain bool, err error) {
	allPlain = true
	for _, c := range where {
		allPlain = allPlain && plain[c.Field]
		secret := s.Within(nil, c.Field)
		for _, v := range c.Any {
			object, is := v.(json.RawMessage)
			secret = secret || is && s.Within(object, c.Field)
		}
		if secret {
			return false, fmt.Errorf("%s cannot be searched: %w", c.Field, plan.ErrSecret)
		}
	}
	return allPlain, nil
}

// TaskDocuments implements store.Documents. A task whose plan keeps something secret is not found by what is in it.
func (d *documents) TaskDocuments(ctx context.Context, q store.DocumentQuery, do func(store.Document) error) error {
	s, err := d.r.secrets(ctx)
	if err != nil {
		return err
	}
	allPlain, err := conditions(s, q.Where)
	if err != nil {
		return err
	}
	whole := !s.None() && !allPlain || len(q.Fields) == 0
	if q.Where = unmarked(q.Where, allPlain); s.None() {
		allPlain = true // the store itself leaves out what is not to be found
	}
	hide := func(doc store.Document) error { return d.hideTask(ctx, s, doc, whole) }
	all := func(q store.DocumentQuery, do func(store.Document) error) error {
		q.Fields = withMark(q.Fields)
		return d.Documents.TaskDocuments(ctx, q, do)
	}
	return shown(q, allPlain, hide, all, do)
}

// unmarked has conditions that are not all on plain fields hold only of tasks that name nothing that is secret themselves.
func unmarked(where []store.Condition, allPlain bool) []store.Condition {
	if allPlain {
		return where
	}
	return append(slices.Clone(where), store.Condition{Field: docs.SecretField, Any: []any{nil}})
}

// withMark has documents say whether their tasks do.
func withMark(fields map[string]bool) map[string]bool {
	if len(fields) == 0 {
		return fields
	}
	out := map[string]bool{}
	for name, in := range fields {
		if name != docs.SecretField && !strings.HasPrefix(name, docs.SecretField+".") {
			out[name] = in
		}
	}
	if docs.Only(fields) {
		out[docs.SecretField] = true
	}
	return out
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
		return all(store.DocumentQuery{Where: q.Where, Sort: q.Sort}, func(doc store.Document) error {
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

// hideTask takes the secrets out of a task's document. Where it is not whole, or its task names some itself, the task is asked for.
func (d *documents) hideTask(ctx context.Context, s secret.Names, doc store.Document, whole bool) error {
	marked := doc[docs.SecretField] == true
	delete(doc, docs.SecretField)
	if s.None() && !marked {
		return nil
	}
	says := false
	for name, v := range doc {
		says = says || !plain[name] && v != nil
	}
	if !says {
		return nil
	}
	o := own{s, s.ValuesIn(doc["params"])}
	if whole = whole && !marked; !whole {
		if id, is := doc["_id"].(plan.ID); is {
			found, err := d.r.owns(ctx, s, []plan.TaskID{{ID: id}})
			if err != nil {
				return err
			}
			if now, there := found[plan.TaskID{ID: id}]; there {
				o, whole = now, true
			}
		}
	}
	for name, v := range doc {
		text, is := v.(string)
		switch {
		case plain[name]:
		case !whole && (is && text != "" || marked && v != nil):
			doc[name] = secret.Hidden // nobody knows what is secret of it
		default:
			doc[name] = o.HideIn(v, o.values...)
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
	allPlain, err := conditions(s, where)
	switch {
	case err != nil:
		return 0, err
	case allPlain || s.None():
		return d.Documents.CountTaskDocuments(ctx, unmarked(where, allPlain))
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
	case name == "tasks":
		return d.TaskDocuments(ctx, q, do)
	case inside[name]:
		return fmt.Errorf("collection %q is Sluice's own and may hold secrets, so that it is not read: %w", name, plan.ErrSecret)
	case s.None() || name == "queues" || name == "nodes":
		return d.Documents.CollectionDocuments(ctx, name, q, do)
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
