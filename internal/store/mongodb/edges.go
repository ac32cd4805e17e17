package mongodb

import (
	"context"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
)

// edgesInside is the version of the schema from which on no edge leaves a plan: see rules.CheckNeed.
const edgesInside = 2

// cutEdges cuts the edges of finished tasks that rules.CheckNeed refuses, and makes tasks of their own of the items of tasks of no plan. If
// unfinished tasks have such edges or items, the database is of no use to this version: plan.ErrUnavailable. Only tasks that were added
// late, or to no plan, can have them.
func (s *Store) cutEdges(ctx context.Context) error {
	var added []taskDoc
	fields := ones("status plan name needs joins of items def gathered batch")
	err := wire.Each(ctx, s.tasks, d("$or", bson.A{d("batch", d("$exists", true)), d("plan", nil, "of", d("$exists", true))}), wire.Query{Fields: fields}, func(t *taskDoc) error {
		added = append(added, *t)
		return nil
	})
	if err != nil {
		return err
	}
	var changes []wire.Change
	var left []string
	var rejoined []any
	var joined idList
	for i := range added {
		t := &added[i]
		kept, cut, err := s.insideOf(ctx, t)
		if err != nil {
			return err
		}
		def, damaged := t.definition()
		alone := t.Plan.IsZero() && (!t.Of.IsZero() || damaged == nil && def.Foreach != nil)
		switch {
		case !cut && !alone:
			continue
		case !t.Status.Finished():
			left = append(left, fmt.Sprintf("%s (%s)", t.key(), t.ID.Hex()))
			continue
		}
		u := update{set: d("status", t.Status), unset: ones("plans missing"), dates: d("mtime", true)}
		if cut {
			t.Needs = kept
			u.put("needs", len(kept) > 0 && len(kept) <= joinSize, kept)
			var joins []any
			if len(kept) > joinSize {
				joins = joinParents(t, def.When)
			}
			u.put("joins", len(joins) > 0, len(joins))
			joined, rejoined = append(joined, t.ID), append(rejoined, joins...)
		}
		if alone {
			u.clear("of", "index", "items", "expanded", "empty", "inserted", "released", "list", "gathered")
			def.Foreach = nil
			if err := t.setDefinition(def); err != nil {
				return err
			}
			u.put("def", len(t.Def) > 0, t.Def)
		}
		if alone && t.Gathered {
			output, err := s.gathered(ctx, t.ID, t.Items)
			if err != nil {
				return err
			}
			u.put("large", true, text(output))
		}
		changes = append(changes, wire.Change{ID: t.ID, Update: u.bson()})
	}
	if err := rules.CheckInside(left); err != nil {
		return err
	}
	g := s.Series(ctx)
	g.Bulk(s.tasks, changes)
	for some := range slices.Chunk(joined, addAtOnce) {
		g.Remove(s.joins, d("child", d("$in", some)))
	}
	for some := range slices.Chunk(rejoined, addAtOnce) {
		g.Insert(s.joins, some...)
	}
	return g.Err
}

// insideOf returns those parents of a task that rules.CheckNeed allows, and whether there are others.
func (s *Store) insideOf(ctx context.Context, t *taskDoc) (kept []bson.ObjectID, cut bool, err error) {
	ids, err := s.parentIDs(ctx, t)
	if err != nil || len(ids) == 0 {
		return nil, false, err
	}
	parents, err := s.tasksByID(ctx, ids, ones("plan of"))
	for _, id := range ids {
		if p := parents[id]; p != nil && p.Plan == t.Plan && p.Of.IsZero() {
			kept = append(kept, id)
		}
	}
	return kept, len(kept) < len(ids), err
}
