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
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"

	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// Open connects to the server of the URI, whose path names the database, and makes what the schema needs, unless o.Existing and the
// database has neither that nor a queue of another program. It returns
// plan.ErrUnavailable if the server cannot be reached, and plan.ErrNewerSchema if a newer version wrote the database.
func Open(ctx context.Context, uri string, o Options) (*Store, error) {
	client, database, err := wire.Connect(uri, o.Monitor)
	if err != nil {
		return nil, err
	}
	s := newStore(client, database, o)
	looked := time.Now()
	if err := s.prepare(ctx, o.Existing); err != nil {
		_ = client.Disconnect(context.WithoutCancel(ctx)) // the first error says what is wrong
		if errors.Is(err, plan.ErrNoStore) {
			return nil, fmt.Errorf("no store at %s: %w", Redact(uri), err)
		}
		u, ok := errors.AsType[*wire.Unreachable](err)
		if _, waited := errors.AsType[topology.ServerSelectionError](err); ok && waited {
			u.Within = time.Since(looked).Round(100 * time.Millisecond)
		}
		return nil, fmt.Errorf("open %s: %w", Redact(uri), err)
	}
	return s, nil
}

// prepare makes sure that the database is of a schema that this program knows, and makes its indexes, unless that was done before: to ask
// the server for each of them took most of a node's start. A database that is to exist and has nothing in it is plan.ErrNoStore.
func (s *Store) prepare(ctx context.Context, existing bool) error {
	if err := s.Meet(ctx); err != nil {
		return err
	}
	there, err := wire.FindOne[schemaDoc](ctx, s.meta, d("_id", "schema"), wire.Query{})
	if err != nil {
		return err
	}
	if there != nil && there.Version > schemaVersion {
		return fmt.Errorf("the database is of schema version %d, this program knows %d; use a newer sluice: %w", there.Version, schemaVersion, plan.ErrNewerSchema)
	}
	if there == nil && existing {
		// Without a queue there is nothing that another program could have put there either.
		queue, err := wire.FindOne[struct{}](ctx, s.queues, bson.D{}, wire.Query{})
		if err != nil {
			return err
		}
		if queue == nil {
			return plan.ErrNoStore
		}
	}
	if there != nil && there.Version < edgesInside {
		if err := s.cutEdges(ctx); err != nil {
			return err
		}
	}
	if there != nil && there.Version < settingsTogether {
		if err := s.gatherSettings(ctx); err != nil {
			return err
		}
	}
	want := fingerprint()
	if there != nil && there.Version == schemaVersion && there.Indexes == want {
		return nil
	}
	wrong, err := s.Indexes(ctx)
	if err != nil {
		return err
	}
	update := d("$max", d("version", schemaVersion), "$set", d("indexes", want))
	if len(wrong) > 0 { // nodes say so as they start, and who opens it next looks again
		update = d("$max", d("version", schemaVersion))
	}
	return wire.Translate(wire.UpsertOne(ctx, s.meta, d("_id", "schema"), update))
}

// schemaDoc says what the database was prepared for last.
type schemaDoc struct {
	Version int    `bson:"version"`
	Indexes string `bson:"indexes,omitempty"` // their fingerprint
}

// schemaVersion is what this program writes. Version 1 is the first.
const schemaVersion = withRolls

// withRolls is the version from which on nodes hand over finished tasks. A node that does not know of
// receivers would delete the tasks.
const withRolls = 5

// Database returns the database that a URI names, "" if it names none.
func Database(uri string) (string, error) { return wire.Database(uri) }

// Redact returns a URI without the secrets in it, for printing.
func Redact(uri string) string { return wire.Redact(uri) }

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
		is.Key = append(is.Key, bson.E{Key: name, Value: direction(down)})
		words = append(words, fmt.Sprintf("%s_%d", name, direction(down)))
	}
	is.Name = cmp.Or(is.Name, strings.Join(words, "_"))
	if i.partial == "" {
		return is, nil
	}
	return is, bson.UnmarshalExtJSON([]byte(withCodes(i.partial)), false, &is.Partial)
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
