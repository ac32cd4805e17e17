package mongodb

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// An indexDoc is an index as the server lists it.
type indexDoc struct {
	Name    string `bson:"name"`
	Key     bson.D `bson:"key"`
	Unique  bool   `bson:"unique"`
	Partial bson.D `bson:"partialFilterExpression"`
}

// of is the index as the server lists it.
func (i index) of() (indexDoc, error) {
	is := indexDoc{Name: i.name, Unique: i.unique}
	var words []string
	for _, key := range strings.Fields(i.keys) {
		name, down := strings.CutPrefix(key, "-")
		direction := 1
		if down {
			direction = -1
		}
		is.Key = append(is.Key, bson.E{Key: name, Value: direction})
		words = append(words, fmt.Sprintf("%s_%d", name, direction))
	}
	is.Name = cmp.Or(is.Name, strings.Join(words, "_"))
	if i.partial == "" {
		return is, nil
	}
	partial := i.partial
	for s := plan.Orphaned; s <= plan.Failed; s++ {
		partial = strings.ReplaceAll(partial, strings.ToUpper(s.String()), strconv.Itoa(int(s)))
	}
	return is, bson.UnmarshalExtJSON([]byte(partial), false, &is.Partial)
}

// collectionIndexes are the indexes of one collection.
type collectionIndexes struct {
	*mongo.Collection
	want []indexDoc
}

// indexes are those of the schema, by collection.
func (s *Store) indexes() (all []collectionIndexes, err error) {
	for _, i := range schema {
		if len(all) == 0 || all[len(all)-1].Name() != i.on {
			all = append(all, collectionIndexes{Collection: s.DB.Collection(i.on)})
		}
		want, err := i.of()
		if err != nil {
			return nil, fmt.Errorf("index %s of %s: %w", i.keys, i.on, err)
		}
		c := &all[len(all)-1]
		c.want = append(c.want, want)
	}
	return all, nil
}

// fingerprint tells sets of indexes apart.
func fingerprint() string {
	sum := sha256.Sum256(fmt.Append(nil, schema))
	return hex.EncodeToString(sum[:8])
}

// Indexes makes the indexes that are missing, and says of each that is there in its place, and is another one, what to do. Such a one is
// left as it is: it may be somebody's, and to build one anew may take a server hours. Without the right one what asks for it is slow, or is
// refused, and one that is not unique holds nobody back.
func (s *Store) Indexes(ctx context.Context) (wrong []string, err error) {
	all, err := s.indexes()
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		found, err := c.make(ctx)
		if err != nil && c.Name() == s.queues.Name() {
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
	var missing []indexDoc
	for _, want := range c.want {
		i := slices.IndexFunc(there, func(is indexDoc) bool { return is.Name == want.Name })
		switch {
		case i < 0:
			missing = append(missing, want)
		case !there[i].is(want):
			wrong = append(wrong, c.remedy(there[i], want))
		}
	}
	err = c.create(ctx, missing...)
	if !isOtherIndex(err) {
		return wrong, err
	}
	for _, want := range missing { // one of them has its keys under another name
		err := c.create(ctx, want)
		if err == nil {
			continue
		}
		if !isOtherIndex(err) {
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

func (c *collectionIndexes) create(ctx context.Context, missing ...indexDoc) error {
	if len(missing) == 0 {
		return nil
	}
	models := make([]mongo.IndexModel, len(missing))
	for i, want := range missing {
		o := options.Index().SetName(want.Name)
		if want.Unique {
			o.SetUnique(true)
		}
		if want.Partial != nil {
			o.SetPartialFilterExpression(want.Partial)
		}
		models[i] = mongo.IndexModel{Keys: want.Key, Options: o}
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
