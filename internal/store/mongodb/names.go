package mongodb

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/plan"
)

// A nameDoc, in meta, says which instance has a node's name for its own: as long as that instance is registered. It is no unique index
// over the instances, since servers on PostgreSQL see only after a second that two who insert one key wait for each other.
type nameDoc struct {
	Owner bson.ObjectID `bson:"owner"`
}

func nameKey(n plan.NodeName) string { return "node:" + string(n) }

// takeName gives an instance that has just registered the name of its node, or takes it out again and returns plan.ErrNameTaken. Who has a
// name was registered before, so that an owner who is not there has gone, and the name changes hands by one conditional write.
func (s *Store) takeName(ctx context.Context, i *instanceDoc) error {
	key := d("_id", nameKey(i.Node))
	for range clashes {
		has, err := findOne[nameDoc](ctx, s.meta, key, query{})
		if err != nil {
			return err
		}
		if has == nil {
			if taken, err := s.insert(ctx, s.meta, append(key, d("owner", i.ID)...)); err != nil || taken == 0 {
				return err
			}
			continue
		}
		if has.Owner == i.ID {
			return nil
		}
		owner, err := findOne[struct{}](ctx, s.instances, d("_id", has.Owner, "gone", nil), query{fields: d("_id", 1)})
		if err != nil {
			return err
		}
		if owner != nil {
			if _, err := s.remove(ctx, s.instances, d("_id", i.ID, "gone", nil)); err != nil {
				return err
			}
			return plan.ErrNameTaken
		}
		if won, err := s.updateOne(ctx, s.meta, append(key, d("owner", has.Owner)...), d("$set", d("owner", i.ID))); err != nil || won {
			return err
		}
	}
	return fmt.Errorf("its name changed hands %d times: %w", clashes, plan.ErrUnavailable)
}

// leaveName forgets that an instance, which is gone, had its node's name: names that nobody uses any more are not kept.
func (s *Store) leaveName(ctx context.Context, i *instanceDoc) error {
	_, err := s.remove(ctx, s.meta, d("_id", nameKey(i.Node), "owner", i.ID))
	return err
}
