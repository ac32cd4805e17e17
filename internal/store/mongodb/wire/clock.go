package wire

import (
	"context"
	"sync"
	"time"
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
