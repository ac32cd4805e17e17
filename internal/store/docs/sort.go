package docs

import (
	"cmp"
	"context"
	"slices"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// sorted is TaskDocuments in the order of the query's keys. It first keeps the keys of all tasks that match, and then reads those of the page.
func sorted(ctx context.Context, s Records, q store.DocumentQuery, do func(store.Document) error) error {
	type row struct {
		id   plan.ID
		keys []any
	}
	var rows []row
	if err := each(ctx, s, q.Where, needed(q.Where, map[string]bool{"_id": true}), func(doc store.Document) error {
		r := row{id: doc["_id"].(plan.ID)}
		for _, k := range q.Sort {
			r.keys = append(r.keys, doc[k.Field])
		}
		rows = append(rows, r)
		return nil
	}); err != nil {
		return err
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		for i, k := range q.Sort {
			if order := place(a.keys[i], b.keys[i]); order != 0 {
				if k.Down {
					return -order
				}
				return order
			}
		}
		return 0
	})
	rows = rows[min(q.Skip, len(rows)):]
	if q.Limit > 0 {
		rows = rows[:min(q.Limit, len(rows))]
	}
	for part := range slices.Chunk(rows, firstAtOnce) {
		ids := store.Condition{Field: "_id"}
		for _, r := range part {
			ids.Any = append(ids.Any, r.id)
		}
		where := append([]store.Condition{ids}, q.Where...)
		found := make(map[plan.ID]store.Document, len(part))
		if err := each(ctx, s, where, needed(where, q.Fields), func(doc store.Document) error {
			found[doc["_id"].(plan.ID)] = doc
			return nil
		}); err != nil {
			return err
		}
		for _, r := range part {
			if doc := found[r.id]; doc != nil { // else it changed, or was deleted, meanwhile
				if err := do(Project(doc, q.Fields)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// place orders values of a field, nil before all others.
func place(a, b any) int {
	if a == nil || b == nil {
		return cmp.Compare(rank(a), rank(b))
	}
	order, _ := compare(a, b)
	return order
}

func rank(v any) int {
	if v == nil {
		return 0
	}
	return 1
}
