package mongodb

import (
	"context"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// A clock tells the server's time without asking each time: what changes a task's status takes $currentDate, only what is compared with
// it or lies in the future is reckoned here. It is as exact as half a round trip.
type clock struct {
	mu     sync.Mutex
	server time.Time // what the server's clock said,
	local  time.Time // and ours, monotonic, when it did
}

// resetAfter is how long the server is not asked again: two clocks drift apart by less than a millisecond in that time.
const resetAfter = 10 * time.Second

// serverTime asks the server.
func serverTime(ctx context.Context, db *mongo.Database) (time.Time, error) {
	var hello struct {
		LocalTime time.Time `bson:"localTime"`
	}
	if err := db.RunCommand(ctx, bson.D{{Key: "hello", Value: 1}}).Decode(&hello); err != nil {
		return time.Time{}, translate(err)
	}
	return hello.LocalTime.UTC(), nil
}

// set asks the server and remembers what it said.
func (c *clock) set(ctx context.Context, db *mongo.Database) error {
	asked := time.Now()
	server, err := serverTime(ctx, db)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server, c.local = server, asked.Add(time.Since(asked)/2)
	return nil
}

// now returns the server's time, as ISODates keep it: to the millisecond.
func (c *clock) now(ctx context.Context, db *mongo.Database) (time.Time, error) {
	c.mu.Lock()
	fresh := time.Since(c.local) < resetAfter
	c.mu.Unlock()
	if !fresh {
		if err := c.set(ctx, db); err != nil {
			return time.Time{}, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.server.Add(time.Since(c.local)).Truncate(time.Millisecond), nil
}

func (s *Store) now(ctx context.Context) (time.Time, error) { return s.clock.now(ctx, s.db) }
