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
	codeOutOfDisk     = 14031
	codeWriteConflict = 112
	codeDeadlock      = 16908292 // PostgreSQL's 40P01, as DocumentDB passes it on
)

// clashes is how often a write is made again of which the server says that it got into another one's way and was not made.
const clashes = 20

// withoutClash makes a write until the server does not say that, with naps between that grow, so that two do not go on so.
func withoutClash(ctx context.Context, do func() error) error {
	err := do()
	for again := 1; again < clashes && isClash(err) && writeErrors(err) == nil; again++ {
		if err := nap(ctx, rand.N(time.Duration(again)*5*time.Millisecond)); err != nil {
			return err
		}
		err = do()
	}
	return err
}

// isClash reports whether the server says that.
func isClash(err error) bool {
	var server mongo.ServerError
	return errors.As(err, &server) && (server.HasErrorCode(codeWriteConflict) || server.HasErrorCode(codeDeadlock))
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
