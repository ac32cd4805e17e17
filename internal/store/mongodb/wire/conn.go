// Package wire talks to a MongoDB server for the driver: it connects, reads, writes, tries again what clashed with another write, and
// makes the server's errors into those that callers act on. It reads what other programs wrote leniently. It knows no collection and no
// record.
package wire

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/seed-1177d267/sluice/internal/store"
)

// A Conn is a handle on one database of a server.
type Conn struct {
	Client *mongo.Client
	DB     *mongo.Database
	Hook   store.Hook // called around each write command; nil: none

	clock   clock
	sharded atomic.Bool // the server is a mongos
}

// Close implements store.Store. A server that does not answer is not waited for: the driver would tell it of each session, and it forgets
// them by itself.
func (w *Conn) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), goodbye)
	defer cancel()
	err := w.Client.Disconnect(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = nil
	}
	return err
}

const goodbye = 3 * time.Second

// A clock tells the server's time without asking each time: what changes a task's status takes $currentDate, only what is compared with
// it or lies in the future is reckoned here. It is as exact as half a round trip.
type clock struct {
	mu     sync.Mutex
	server time.Time // what the server's clock said,
	local  time.Time // and ours, monotonic, when it did
}

// resetAfter is how long the server is not asked again: two clocks drift apart by less than a millisecond in that time.
const resetAfter = 10 * time.Second

// Hello asks the server what time it is, and whether it is a mongos.
func (w *Conn) Hello(ctx context.Context) (at time.Time, mongos bool, err error) {
	var said struct {
		LocalTime time.Time `bson:"localTime"`
		Msg       string    `bson:"msg"`
	}
	err = w.DB.RunCommand(ctx, D("hello", 1)).Decode(&said)
	return said.LocalTime.UTC(), said.Msg == "isdbgrid", Translate(err)
}

// Meet asks the server what it is, and sets the clock.
func (w *Conn) Meet(ctx context.Context) error {
	asked := time.Now()
	at, mongos, err := w.Hello(ctx)
	if err != nil {
		return err
	}
	w.sharded.Store(mongos)
	w.clock.mu.Lock()
	defer w.clock.mu.Unlock()
	w.clock.server, w.clock.local = at, asked.Add(time.Since(asked)/2)
	return nil
}

// Now returns the server's time, as ISODates keep it: to the millisecond. It implements store.Reader.
func (w *Conn) Now(ctx context.Context) (time.Time, error) {
	c := &w.clock
	c.mu.Lock()
	fresh := time.Since(c.local) < resetAfter
	c.mu.Unlock()
	if !fresh {
		if err := w.Meet(ctx); err != nil {
			return time.Time{}, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.server.Add(time.Since(c.local)).Truncate(time.Millisecond), nil
}

// D makes a document of keys and values in turn.
//
//go:noinline
func D(pairs ...any) bson.D {
	doc := make(bson.D, 0, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		doc = append(doc, bson.E{Key: pairs[i].(string), Value: pairs[i+1]})
	}
	return doc
}

// AnyOf matches a field that is one of the values, by a partial index of documents that have it: PostgreSQL does not see of more than a
// hundred values that they say so themselves, and reads the whole index.
func AnyOf(values any) bson.D { return Present(D("$in", values)) }

// Present matches a field by a partial index of documents that have it. By another index it would match all of these.
func Present(match bson.D) bson.D { return append(D("$exists", true), match...) }

// OrNone matches a field by its value, or, if that is zero, one that is not there as well.
func OrNone[T comparable](v T) any {
	var zero T
	if v == zero {
		return D("$in", bson.A{zero, nil})
	}
	return v
}

// ValueOf returns a field as it stands; one that is missing is null, which a filter finds equal.
func ValueOf(doc bson.Raw, field string) any {
	if v, err := doc.LookupErr(field); err == nil {
		return v
	}
	return nil
}

// Addressable matches ids as Sluice knows them; a task that another program gave another id cannot be named.
var Addressable = D("$gte", bson.NilObjectID)

// Nap waits.
func Nap(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
