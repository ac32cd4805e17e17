package mongodb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
)

// An indexDoc is an index as the server lists it.
type indexDoc struct {
	Name    string `bson:"name"`
	Key     bson.D `bson:"key"`
	Unique  bool   `bson:"unique"`
	Partial bson.D `bson:"partialFilterExpression"`
}

// Indexes makes the indexes that are missing, and says of each that is there in its place, and is another one, what to do. Such a one is
// left as it is: it may be somebody's, and to build one anew may take a server hours. Without the right one what asks for it is slow, or is
// refused, and one that is not unique holds nobody back.
func (s *Store) Indexes(ctx context.Context) (wrong []string, err error) {
	for _, c := range s.indexes() {
		found, err := c.make(ctx)
		if err != nil && c.Collection == s.queues {
			err = cmp.Or(s.nameless(ctx), err)
		}
		if err != nil {
			return nil, fmt.Errorf("indexes of %s: %w", c.Name(), wire.Translate(err))
		}
		wrong = append(wrong, found...)
	}
	return wrong, nil
}

// make is Indexes of one collection.
func (c *collectionIndexes) make(ctx context.Context) (wrong []string, err error) {
	there, err := c.there(ctx)
	if err != nil {
		return nil, err
	}
	var missing []mongo.IndexModel
	for _, m := range c.models {
		want, err := described(m)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(there, func(is indexDoc) bool { return is.Name == want.Name })
		switch {
		case i < 0:
			missing = append(missing, m)
		case !there[i].is(want):
			wrong = append(wrong, c.remedy(there[i], want))
		}
	}
	err = c.create(ctx, missing)
	if !isOtherIndex(err) {
		return wrong, err
	}
	for _, m := range missing { // one of them has its keys under another name
		err := c.create(ctx, []mongo.IndexModel{m})
		if err == nil {
			continue
		}
		want, failed := described(m)
		if failed != nil || !isOtherIndex(err) {
			return nil, err
		}
		other := indexDoc{Name: "?"}
		if i := slices.IndexFunc(there, func(is indexDoc) bool { return reflect.DeepEqual(numbered(is.Key), numbered(want.Key)) }); i >= 0 {
			other = there[i]
		}
		wrong = append(wrong, c.remedy(other, want))
	}
	return wrong, nil
}

func (c *collectionIndexes) create(ctx context.Context, models []mongo.IndexModel) error {
	if len(models) == 0 {
		return nil
	}
	return wire.WithoutClash(ctx, func() error {
		_, err := c.Indexes().CreateMany(ctx, models)
		return err
	})
}

// there lists the indexes that a collection has; one that does not exist has none.
func (c *collectionIndexes) there(ctx context.Context) ([]indexDoc, error) {
	const namespaceNotFound = 26
	cursor, err := c.Indexes().List(ctx)
	if refused, ok := errors.AsType[mongo.CommandError](err); ok && refused.Code == namespaceNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return wire.All[indexDoc](ctx, cursor)
}

// isOtherIndex reports whether the server refuses an index since one with its name, or with its keys, is there and is another one.
func isOtherIndex(err error) bool {
	const optionsConflict, keySpecsConflict = 85, 86
	refused, ok := errors.AsType[mongo.CommandError](err)
	return ok && (refused.Code == optionsConflict || refused.Code == keySpecsConflict)
}

// described is an index as the server will list it.
func described(m mongo.IndexModel) (indexDoc, error) {
	var o options.IndexOptions
	for _, set := range m.Options.List() {
		if err := set(&o); err != nil {
			return indexDoc{}, err
		}
	}
	is := indexDoc{Key: m.Keys.(bson.D)}
	if o.Name != nil {
		is.Name = *o.Name
	} else {
		var words []string
		for _, e := range is.Key {
			words = append(words, fmt.Sprintf("%s_%v", e.Key, e.Value))
		}
		is.Name = strings.Join(words, "_")
	}
	if o.Unique != nil {
		is.Unique = *o.Unique
	}
	if o.PartialFilterExpression != nil {
		is.Partial = o.PartialFilterExpression.(bson.D)
	}
	return is, nil
}

func (i indexDoc) is(want indexDoc) bool {
	return i.Unique == want.Unique && reflect.DeepEqual(numbered(i.Key), numbered(want.Key)) && reflect.DeepEqual(numbered(i.Partial), numbered(want.Partial))
}

// numbered makes documents comparable whose numbers the server may keep as of another type.
func numbered(v any) any {
	switch v := v.(type) {
	case bson.D:
		out := make([]any, 0, 2*len(v))
		for _, e := range v {
			out = append(out, e.Key, numbered(e.Value))
		}
		return out
	case bson.A:
		out := make([]any, len(v))
		for k := range v {
			out[k] = numbered(v[k])
		}
		return out
	}
	switch n := reflect.ValueOf(v); {
	case n.IsValid() && n.CanInt():
		return float64(n.Int())
	case n.IsValid() && n.CanFloat():
		return n.Float()
	}
	return v
}

func (c *collectionIndexes) remedy(is, want indexDoc) string {
	return fmt.Sprintf("index %s of %s is %s, and should be %s with the name %s; drop it, by db.getCollection(%q).dropIndex(%q), and start a node, which makes it",
		is.Name, c.Name(), is.text(), want.text(), want.Name, c.Name(), is.Name)
}

// text shows what an index is.
func (i indexDoc) text() string {
	show := d("key", i.Key)
	if i.Unique {
		show = append(show, d("unique", true)...)
	}
	if len(i.Partial) > 0 {
		show = append(show, d("partialFilterExpression", i.Partial)...)
	}
	b, err := bson.MarshalExtJSON(show, false, false)
	if err != nil {
		return "?"
	}
	return string(b)
}
