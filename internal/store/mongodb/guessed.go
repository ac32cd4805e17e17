package mongodb

import (
	"context"
	"maps"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
)

// guessed takes note of what was claimed with endings. all is whether all changes of the command found their documents.
func (r *round) guessed(ctx context.Context, all bool) error {
	g := &r.guess
	if g.changes == nil {
		return nil
	}
	g.changes, g.mine = nil, map[bson.ObjectID]*taskDoc{}
	for i := range g.docs {
		g.mine[g.docs[i].ID] = &g.docs[i]
	}
	if all {
		return nil
	}
	got, err := wire.Find[taskDoc](ctx, r.tasks, d("_id", d("$in", idsOfTasks(g.docs)), "token", g.token), wire.Query{Fields: ones("_id")})
	if len(got) < len(g.docs) {
		r.locked(func() { r.erred = time.Now() })
	}
	there := byID(got)
	maps.DeleteFunc(g.mine, func(id bson.ObjectID, _ *taskDoc) bool { return there[id] == nil })
	return err
}

// takeGuessed has a preview tell of the guessed tasks as if they were queued. It gives them back if the turn does not serve their queue as it
// was. If the preview has nothing that waits for the tasks of the turn before, their marks go. Else these are released once more.
func (r *round) takeGuessed(ctx context.Context, v *preview) error {
	g := &r.guess
	unsure := g.unsure
	r.unmarked = append(r.unmarked, g.off...)
	g.off, g.unsure, g.changes = nil, nil, nil
	waits := func(needs []bson.ObjectID) bool {
		return slices.ContainsFunc(unsure, func(c wire.Change) bool { return slices.Contains(needs, c.ID) })
	}
	if len(v.children) > mostSeen || slices.ContainsFunc(v.children, func(t taskDoc) bool { return waits(t.Needs) }) ||
		slices.ContainsFunc(v.joins, func(j joinDoc) bool { return waits(j.Needs) }) {
		v.ended = nil
		for _, c := range unsure {
			r.queue = append(r.queue, parent{id: c.ID})
		}
	} else {
		r.unmarked = append(r.unmarked, unsure...)
	}
	if v.early { // what was queued meanwhile may be in it, or not
		v.before = 0
	}
	o := v.outlooks[g.queue.ID]
	if o == nil {
		return r.letBack(ctx)
	}
	v.before -= len(g.mine)
	for _, p := range o.parts {
		if p != nil {
			read := len(p.docs)
			p.docs = slices.DeleteFunc(p.docs, func(t taskDoc) bool { return g.mine[t.ID] != nil })
			p.ask -= read - len(p.docs) // so that it still tells whether there may be more
		}
	}
	for _, t := range g.mine {
		v.queued = append(v.queued, *t)
	}
	return nil
}

// letBack gives back what was claimed with endings and not chosen. Nothing of it was started, whatever its document says.
func (r *round) letBack(ctx context.Context) error {
	if len(r.guess.mine) == 0 {
		return nil
	}
	r.locked(func() { r.erred = time.Now() })
	var docs []taskDoc
	for _, t := range r.guess.mine {
		docs = append(docs, t.claimedNow(r.guess.token))
	}
	r.guess.mine = nil
	return engine.GiveBack(ctx, r, endingsOf(docs))
}
