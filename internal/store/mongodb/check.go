package mongodb

import (
	"context"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
)

// checkedAtOnce is how many joins a check has in memory, each with up to joinSize members.
const checkedAtOnce = 100

// Check implements store.Checker: each held task has its joins, and what they say of its parents and items is counted again. Its reads are
// not of one instant.
func (s *Store) Check(ctx context.Context) (faults []string, exact bool, err error) {
	r, err := s.newRound(ctx, 0)
	if err != nil {
		return nil, false, err
	}
	defer r.end()
	var joins []joinDoc
	check := func() error {
		found, err := r.wrongJoins(ctx, joins)
		faults, joins = append(faults, found...), nil
		return err
	}
	err = wire.Each(ctx, s.joins, d("done", true), wire.Query{}, func(j *joinDoc) error {
		if joins = append(joins, *j); len(joins) < checkedAtOnce {
			return nil
		}
		return check()
	})
	if err == nil {
		err = check()
	}
	if err == nil {
		err = wire.Each(ctx, s.tasks, onlyHeld(d("joins", d("$gt", 0))), wire.Query{Fields: ones("joins name")}, func(t *taskDoc) error {
			joins, err := wire.Find[joinDoc](ctx, s.joins, d("child", t.ID, "needs", d("$exists", true)), wire.Query{Fields: ones("_id")})
			if err == nil && len(joins) != t.Joins {
				faults = append(faults, fmt.Sprintf("task %q (%s) has %d joins of its parents, and %d are there", t.key(), t.ID.Hex(), t.Joins, len(joins)))
			}
			return err
		})
	}
	if err == nil {
		var found []string
		found, err = r.wrongBatches(ctx)
		faults = append(faults, found...)
	}
	return faults, false, err
}

// wrongBatches names the tasks of batches that cannot be in one. It passes by batches that end meanwhile.
func (r *round) wrongBatches(ctx context.Context) (faults []string, err error) {
	sealed := d("fate", rollSealed)
	err = wire.Each(ctx, r.rolls, sealed, wire.Query{}, func(b *rollDoc) error {
		var wrong []string
		for ids := range slices.Chunk(b.Tasks, deleteAtOnce) {
			in := d("_id", d("$in", ids), "gate", b.ID, "plan", nil, "of", nil, "$nor", bson.A{onlyUnfinished(nil)})
			docs, err := wire.Find[taskDoc](ctx, r.tasks, in, wire.Query{Fields: ones("_id")})
			if err != nil {
				return err
			}
			there := byID(docs)
			for _, id := range ids {
				if there[id] == nil {
					wrong = append(wrong, fmt.Sprintf("batch %s is to hand over task %s, which is no finished task of no plan with that batch", b.ID.Hex(), id.Hex()))
				}
			}
		}
		if len(wrong) == 0 {
			return nil
		}
		still, err := wire.FindOne[rollDoc](ctx, r.rolls, append(sealed, bson.E{Key: "_id", Value: b.ID}), wire.Query{Fields: ones("_id")})
		if err == nil && still != nil {
			faults = append(faults, wrong...)
		}
		return err
	})
	return faults, err
}

// wrongJoins returns what is wrong with joins that are done, and whose tasks are held. It passes by those with a member that a retry takes.
func (r *round) wrongJoins(ctx context.Context, joins []joinDoc) (faults []string, err error) {
	children, err := r.tasksByID(ctx, childrenOf(joins), ones("status hold name"))
	if err != nil {
		return nil, err
	}
	open := make([]joinDoc, len(joins))
	for i, was := range joins {
		was.Done = false // members leaves out those that are done
		open[i] = was
	}
	members, err := r.members(ctx, open)
	if err != nil {
		return nil, err
	}
	for i, was := range joins {
		t := children[was.Child]
		gated := slices.ContainsFunc(was.members(), func(id bson.ObjectID) bool { return members[id] != nil && !members[id].Gate.IsZero() })
		if t == nil || gated || !t.heldFor(holdNeeds) && !t.heldFor(holdItems) {
			continue
		}
		if now := open[i].look(members, r); !now.Done || now.Seen != was.Seen || now.Failed != was.Failed {
			faults = append(faults, fmt.Sprintf("task %s: of %d parents or items it is said that all have finished, with outcomes %b and %d failed; finished %v, outcomes %b and %d failed",
				was.Child.Hex(), len(was.members()), was.Seen, was.Failed, now.Done, now.Seen, now.Failed))
		}
	}
	return faults, nil
}
