package mongodb

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/seed-1177d267/sluice/plan"
)

// Codes of the server that are told apart.
const (
	codeInternal      = 1
	codeWriteConflict = 112
	codeOutOfDisk     = 14031
	codeDeadlock      = 16908292 // PostgreSQL's 40P01, as DocumentDB passes it on of one of several writes
)

// clashes is how often a write is made again of which the server says that it got into another one's way and was not made.
const clashes = 20

// withoutClash makes a write until the server does not say that. What it says of one of many writes is for who makes those.
func withoutClash(ctx context.Context, do func() error) error {
	err := do()
	for again := 1; again < clashes && isClash(err) && writeErrors(err) == nil; again++ {
		if err := afterClash(ctx, again); err != nil {
			return err
		}
		err = do()
	}
	return err
}

// afterClash lets the other write go on, which may have to be woken up on a busy machine. It waits longer the more often that was of no
// use, and each time otherwise, so that two do not go on so.
func afterClash(ctx context.Context, again int) error {
	const longest = time.Second
	return nap(ctx, rand.N(min(20*time.Millisecond<<(again-1), longest)))
}

// isClash reports whether a write was not made since it and another one wait for each other. MongoDB sees that at once; servers on
// PostgreSQL after a second, and of a command of one write they say only in words what it was.
func isClash(err error) bool {
	var server mongo.ServerError
	return errors.As(err, &server) && (server.HasErrorCode(codeWriteConflict) || server.HasErrorCode(codeDeadlock) ||
		server.HasErrorCodeWithMessage(codeInternal, "deadlock detected"))
}

// writeErrors returns what a command of many writes says of those that failed, nil if that is not what the error is about.
func writeErrors(err error) []mongo.BulkWriteError {
	var many mongo.BulkWriteException
	if errors.As(err, &many) && many.WriteConcernError == nil {
		return many.WriteErrors
	}
	return nil
}

// translate makes the driver's errors into those that callers can act on; the driver's stays inside for its text.
func translate(err error) error {
	var server mongo.ServerError
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &server) && server.HasErrorCode(codeOutOfDisk):
		return fmt.Errorf("%w: %w", plan.ErrFull, redacted(err))
	case mongo.IsNetworkError(err), mongo.IsTimeout(err), errors.Is(err, mongo.ErrClientDisconnected):
		return fmt.Errorf("%w: %w", plan.ErrUnavailable, redacted(err))
	}
	return redacted(err)
}
