package mongodb

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
)

// Strays implements engine.Sweeper. First it reads whose notes of work there are. Inherit takes these
// up after the claims are taken away. So each ending that a note tells of was made by then, or can be
// made no more.
func (r *round) Strays(ctx context.Context) (lost []*ending, err error) {
	notes, err := r.readNotes(ctx)
	if err != nil {
		return nil, err
	}
	there, err := r.instancesThere(ctx)
	if err != nil {
		return nil, err
	}
	for _, w := range notes {
		if there.Gone(instanceID(w.Owner)) {
			r.gone = append(r.gone, w.Owner)
		}
	}
	return r.goneClaims(ctx, there)
}

// Inherit implements engine.Sweeper.
func (r *round) Inherit(ctx context.Context) error {
	if err := r.takeNotes(ctx, r.gone); err != nil {
		return err
	}
	return r.forgetGone(ctx)
}

// readNotes reads whose notes of work there are, and what they are about.
func (r *round) readNotes(ctx context.Context) ([]workDoc, error) {
	notes, err := wire.Find[workDoc](ctx, r.work, d(), wire.Query{Fields: d("owner", 1, "target", 1)})
	if err != nil {
		return nil, err
	}
	r.under = make(map[bson.ObjectID]bool, len(notes))
	for _, w := range notes {
		if !w.Target.IsZero() {
			r.under[w.Target] = true
		}
	}
	return notes, nil
}

// instancesThere returns which instances are registered.
func (r *round) instancesThere(ctx context.Context) (rules.Registered, error) {
	docs, err := wire.Find[instanceDoc](ctx, r.instances, d("gone", nil), wire.Query{Fields: d("_id", 1)})
	there := make(rules.Registered, len(docs))
	for _, i := range docs {
		there[instanceID(i.ID)] = true
	}
	return there, err
}

// goneClaims returns the claims of instances that are not registered. An instance may have
// registered, and claimed, since the registered ones were read. So the found claims are compared
// with the instances that are registered after that. MongoDB skips between the keys of registered
// instances; a server on PostgreSQL reads all claimed tasks.
func (r *round) goneClaims(ctx context.Context, there rules.Registered) ([]*ending, error) {
	known := make(bson.A, 0, len(there))
	for id := range there {
		known = append(known, oid(id.ID))
	}
	docs, err := wire.Find[taskDoc](ctx, r.tasks, onlyActive(d("instance", d("$exists", true, "$nin", known))),
		wire.Query{Fields: append(d("instance", 1), lostFields...), Hint: indexClaims, Limit: max(r.budget, 1)})
	if err != nil || len(docs) == 0 {
		return nil, err
	}
	if there, err = r.instancesThere(ctx); err != nil {
		return nil, err
	}
	lost := docs[:0]
	for _, t := range docs {
		if there.Lost(instanceID(t.Instance), true) {
			lost = append(lost, t)
		}
	}
	return r.lostOf(ctx, lost)
}

// takeNotes takes up work of owners that are gone, as much as a round goes on with. The rest is anybody's from now on: no note has an owner that
// is gone for longer than it takes a node to sweep.
func (r *round) takeNotes(ctx context.Context, owners idList) error {
	if len(owners) == 0 {
		return nil
	}
	g := r.Series(ctx)
	notes := wire.FindIn[workDoc](g, r.work, d("owner", d("$in", owners)), wire.Query{Sort: d("_id", 1), Limit: mostResumed})
	for _, w := range notes {
		g.Do(func(ctx context.Context) error { return r.takeNote(ctx, w) })
	}
	if len(notes) == mostResumed {
		g.UpdateMany(r.work, d("owner", d("$in", owners)), d("$unset", d("owner", 1)))
	}
	return g.Err
}

// takeNote takes up work that is anybody's, unless this process is at it, or another one takes it.
func (r *round) takeNote(ctx context.Context, w workDoc) error {
	if !r.take(w.ID) {
		return nil
	}
	mine, err := r.UpdateOne(ctx, r.work, d("_id", w.ID, "owner", wire.OrNone(w.Owner)), d("$set", d("owner", r.instance)))
	if err != nil || !mine {
		r.drop(w.ID)
		return err
	}
	w.Owner = bson.NilObjectID // what it says was not this instance's own
	r.resume(w)
	return nil
}

// forgetGone forgets instances that are gone for long.
func (r *round) forgetGone(ctx context.Context) error {
	g := r.Series(ctx)
	gone := wire.FindIn[instanceDoc](g, r.instances, d("gone", true, "beat", d("$lte", r.at.Add(-goneFor))), wire.Query{Fields: d("node", 1)})
	for k := range gone {
		g.Do(func(ctx context.Context) error { return r.forgetNode(ctx, gone[k].Node) })
		g.Remove(r.instances, d("_id", gone[k].ID, "gone", true))
	}
	return g.Err
}
