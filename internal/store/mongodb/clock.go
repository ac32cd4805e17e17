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

// hello is what a server says of itself.
type hello struct {
	LocalTime time.Time `bson:"localTime"`
	Msg       string    `bson:"msg"`
}

// mongos is what a mongos says, and nobody else.
const mongos = "isdbgrid"

func sayHello(ctx context.Context, db *mongo.Database) (h hello, err error) {
	err = db.RunCommand(ctx, bson.D{{Key: "hello", Value: 1}}).Decode(&h)
	return h, translate(err)
}

// set asks the server and remembers what it said.
func (c *clock) set(ctx context.Context, db *mongo.Database) (hello, error) {
	asked := time.Now()
	h, err := sayHello(ctx, db)
	if err != nil {
		return h, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server, c.local = h.LocalTime.UTC(), asked.Add(time.Since(asked)/2)
	return h, nil
}

// now returns the server's time, as ISODates keep it: to the millisecond.
func (c *clock) now(ctx context.Context, db *mongo.Database) (time.Time, error) {
	c.mu.Lock()
	fresh := time.Since(c.local) < resetAfter
	c.mu.Unlock()
	if !fresh {
		if _, err := c.set(ctx, db); err != nil {
			return time.Time{}, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.server.Add(time.Since(c.local)).Truncate(time.Millisecond), nil
}
