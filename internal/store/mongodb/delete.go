package mongodb

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
)

// forgetBeside deletes the logs and files of tasks that are about to go, and has those of no plan looked at that wait for them.
func (r *round) forgetBeside(ctx context.Context, ids idList) error {
	heads, err := wire.Find[taskDoc](ctx, r.tasks, d("_id", d("$in", ids), "missing", d("$exists", true)), wire.Query{Fields: ones("missing")})
	if err != nil {
		return err
	}
	needs := []bson.D{d("$in", ids)}
	for i := range heads {
		needs = append(needs, itemsFrom(heads[i].Missing, 0))
	}
	var orphans []taskDoc
	var joins []joinDoc
	for _, some := range needs {
		held, err := wire.Find[taskDoc](ctx, r.tasks, onlyHeld(d("needs", some), "plan", nil, "hold", d("$ne", holdAdding)),
			wire.Query{Fields: ones("_id"), Hint: indexNeeds})
		if err != nil {
			return err
		}
		joined, err := wire.Find[joinDoc](ctx, r.joins, d("needs", wire.Present(some), "plan", nil), wire.Query{Fields: ones("child"), Hint: "needs"})
		if err != nil {
			return err
		}
		orphans, joins = append(orphans, held...), append(joins, joined...)
	}
	if len(orphans)+len(joins) > 0 {
		batch := bson.NewObjectID()
		held := idsOfTasks(orphans)
		held = append(held, childrenOf(joins)...)
		if _, err := r.UpdateMany(ctx, r.tasks, onlyHeld(d("_id", d("$in", held)), "hold", d("$ne", holdAdding)),
			d("$set", d("adding", batch))); err != nil {
			return err
		}
		if err := r.job(ctx, workLook, batch); err != nil {
			return err
		}
	}
	if _, err := r.Remove(ctx, r.logs, d("task", d("$in", ids))); err != nil {
		return err
	}
	files, err := r.filesOf(ctx, ids)
	if err != nil {
		return err
	}
	return r.dropFiles(ctx, files)
}

// forgetTasks deletes tasks, and all that is kept beside them.
func (r *round) forgetTasks(ctx context.Context, ids idList) error {
	if err := r.forgetBeside(ctx, ids); err != nil {
		return err
	}
	if _, err := r.Remove(ctx, r.joins, d("child", d("$in", ids))); err != nil {
		return err
	}
	_, err := r.Remove(ctx, r.tasks, d("_id", d("$in", ids)))
	return err
}
