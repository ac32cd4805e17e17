package mongodb

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/balance"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

var _ store.Balance = (*Store)(nil)

// balanceID is the _id of the document in balance where Sluice makes it, so that two who do so at once make one; and of that in meta which
// names the instance that balances. Disbatch allows only one document in balance, so that is no place for it.
const balanceID = "balance"

// HoldBalance implements store.Balance.
func (s *Store) HoldBalance(ctx context.Context, i plan.InstanceID) (held bool, err error) {
	there, err := s.registered(ctx, oid(i.ID))
	if err == nil && !there {
		err = plan.ErrInstanceGone
	}
	if err != nil {
		return false, fmt.Errorf("instance %s: %w", i, err)
	}
	return s.own(ctx, balanceID, oid(i.ID))
}

// Balance implements store.Balance: the document is the only one of the collection balance.
func (s *Store) Balance(ctx context.Context) (json.RawMessage, error) {
	found, err := wire.Find[bson.Raw](ctx, s.balance, d(), wire.Query{Fields: d("_id", 0), Limit: 2})
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the collection balance: %w", err)
	case len(found) == 0:
		return nil, nil
	case len(found) > 1:
		return nil, fmt.Errorf("the collection balance has more than one document; delete all but one: %w", balance.ErrMalformed)
	}
	text, err := bson.MarshalExtJSON(found[0], false, false)
	if err != nil {
		return nil, fmt.Errorf("the document in balance: %w: %w", balance.ErrMalformed, err)
	}
	return text, nil
}

// SetBalance implements store.Balance. If there are several documents, it changes any of them, as
// Disbatch does.
func (s *Store) SetBalance(ctx context.Context, settings json.RawMessage) error {
	if _, err := balance.With(nil, settings); err != nil {
		return err
	}
	var set bson.D
	if err := bson.UnmarshalExtJSON(settings, false, &set); err != nil { // a JSON object need not be one of Extended JSON
		return fmt.Errorf("settings of the balance document: %w: %w", balance.ErrMalformed, err)
	}
	set = slices.DeleteFunc(set, func(e bson.E) bool { return e.Key == "_id" })
	if len(set) == 0 {
		return nil
	}
	there, err := s.UpdateOne(ctx, s.balance, d(), d("$set", set))
	if err == nil && !there {
		err = s.Upsert(ctx, s.balance, d("_id", balanceID), d("$set", set))
	}
	if err != nil {
		return fmt.Errorf("write to the collection balance: %w", err)
	}
	return nil
}

// SetThreads implements store.Balance. The write asks for the very values that were read, whatever form another program gave them; what else
// is in the document stays in its form.
func (s *Store) SetThreads(ctx context.Context, was plan.Queue, threads int) error {
	fields := ones("name threads unlimited")
	there, err := wire.FindOne[bson.Raw](ctx, s.queues, d("_id", oid(was.ID.ID)), wire.Query{Fields: fields})
	if err == nil && there == nil {
		err = plan.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("queue %s: %w", was.ID, err)
	}
	var doc queueDoc
	if err := bson.Unmarshal(*there, &doc); err != nil {
		return fmt.Errorf("queue %s: %w", was.ID, err)
	}
	change, err := rules.CheckThreads(doc.domain(), was, threads)
	if !change || err != nil {
		return err
	}
	same, set := d("_id", doc.ID), d("threads", threads)
	for _, field := range []string{"threads", "unlimited"} {
		same = append(same, bson.E{Key: field, Value: d("$eq", wire.ValueOf(*there, field))})
	}
	if doc.Unlimited {
		set = append(set, bson.E{Key: "unlimited", Value: false})
	}
	if changed, err := s.UpdateOne(ctx, s.queues, same, d("$set", set)); err != nil || !changed {
		return fmt.Errorf("queue %q: %w", doc.Name, cmp.Or(err, plan.ErrConflict))
	}
	return s.wakeOthers(ctx, true) // more of it may be claimed now
}
