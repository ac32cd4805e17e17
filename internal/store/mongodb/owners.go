package mongodb

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// own makes a registered instance the owner of the key if it has no owner, and reports whether the
// instance is the owner. An owner was registered before. So an owner that is not registered has
// gone, and one conditional write changes the owner.
func (s *Store) own(ctx context.Context, key string, me bson.ObjectID) (bool, error) {
	of := d("_id", key)
	for range wire.Clashes {
		has, err := wire.FindOne[ownerDoc](ctx, s.meta, of, wire.Query{})
		if err != nil {
			return false, err
		}
		if has == nil {
			if taken, err := s.Insert(ctx, s.meta, d("_id", key, "owner", me)); err != nil || taken == 0 {
				return err == nil, err
			}
			continue
		}
		if has.Owner == me {
			return true, nil
		}
		if there, err := s.registered(ctx, has.Owner); err != nil || there {
			return false, err
		}
		if won, err := s.UpdateOne(ctx, s.meta, d("_id", key, "owner", has.Owner), d("$set", d("owner", me))); err != nil || won {
			return err == nil, err
		}
	}
	return false, fmt.Errorf("%s changed hands %d times: %w", key, wire.Clashes, plan.ErrUnavailable)
}

// registered reports whether an instance is, and is not gone.
func (s *Store) registered(ctx context.Context, instance bson.ObjectID) (bool, error) {
	found, err := wire.FindOne[struct{}](ctx, s.instances, d("_id", instance, "gone", nil), wire.Query{Fields: ones("_id")})
	return found != nil, err
}

// takeName gives an instance that has just registered the name of its node, or takes it out again and returns plan.ErrNameTaken.
func (s *Store) takeName(ctx context.Context, i *instanceDoc) error {
	if has, err := s.own(ctx, nameKey(i.Node), i.ID); err != nil || has {
		return err
	}
	if _, err := s.Remove(ctx, s.instances, d("_id", i.ID, "gone", nil)); err != nil {
		return err
	}
	return plan.ErrNameTaken
}

// leaveName forgets that an instance, which is gone, had its node's name: names that nobody uses any more are not kept.
func (s *Store) leaveName(ctx context.Context, i *instanceDoc) error {
	_, err := s.Remove(ctx, s.meta, d("_id", nameKey(i.Node), "owner", i.ID))
	return err
}
