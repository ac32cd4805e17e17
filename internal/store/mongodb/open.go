package mongodb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
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
const schemaVersion = 1

// Database returns the database that a URI names, "" if it names none.
func Database(uri string) (string, error) { return wire.Database(uri) }

// Redact returns a URI without the secrets in it, for printing.
func Redact(uri string) string { return wire.Redact(uri) }
