// Package wire talks to a MongoDB server for the driver: it connects, reads, writes, tries again what clashed with another write, and
// makes the server's errors into those that callers act on. It reads what other programs wrote leniently. It knows no collection and no
// record.
package wire

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

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
