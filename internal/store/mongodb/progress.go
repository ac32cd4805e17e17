package mongodb

import (
	"context"
	"maps"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// saidBy names the claim that an attempt has.
type saidBy struct {
	Task    bson.ObjectID `bson:"task"`
	Attempt int           `bson:"attempt"`
	Token   bson.ObjectID `bson:"token"`
}

// saidDoc is a protocol.Reached in the document of its instance.
type saidDoc struct {
	By       saidBy  `bson:",inline"`
	Fraction float64 `bson:"fraction"`
	Text     string  `bson:"text,omitempty"`
}

func saidOf(reached []protocol.Reached) []saidDoc {
	docs := make([]saidDoc, len(reached))
	for i := range reached {
		r := &reached[i]
		docs[i] = saidDoc{saidBy{oid(r.Task.ID), r.Attempt, bson.ObjectID(r.Token)}, r.Fraction, r.Text}
	}
	return docs
}

// progress returns what the instances said of their tasks that match.
func (s *Store) progress(ctx context.Context, filter bson.D) (map[saidBy]*plan.Progress, error) {
	type saying struct {
		Progress []saidDoc `bson:"progress"`
	}
	docs, err := wire.Find[saying](ctx, s.instances, append(filter, bson.E{Key: "gone", Value: nil}), wire.Query{Fields: ones("progress")})
	if err != nil {
		return nil, err
	}
	found := map[saidBy]*plan.Progress{}
	for i := range docs {
		for _, p := range docs[i].Progress {
			found[p.By] = &plan.Progress{Fraction: p.Fraction, Text: p.Text}
		}
	}
	return found, nil
}

// progressOf returns what the instances said that run the tasks. Where none of these runs, nothing is asked.
func (s *Store) progressOf(ctx context.Context, docs []taskDoc) (map[saidBy]*plan.Progress, error) {
	instances := map[bson.ObjectID]bool{}
	for i := range docs {
		if t := &docs[i]; t.Status == plan.Running && !t.Instance.IsZero() {
			instances[t.Instance] = true
		}
	}
	if len(instances) == 0 {
		return nil, nil
	}
	return s.progress(ctx, d("_id", d("$in", slices.Collect(maps.Keys(instances)))))
}

// reached returns what the attempt said that the task is claimed for; nil if it said nothing, or the task does not run.
func (t *taskDoc) reached(progress map[saidBy]*plan.Progress) *plan.Progress {
	if t.Status != plan.Running {
		return nil
	}
	return progress[saidBy{t.ID, t.Attempt, t.Token}]
}

// idsOfReached returns the ids of the tasks.
func idsOfReached(progress map[saidBy]*plan.Progress) idList {
	ids := make(idList, 0, len(progress))
	for by := range progress {
		ids = append(ids, by.Task)
	}
	return ids
}
