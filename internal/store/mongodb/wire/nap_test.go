//go:build !race

// Bubbles of synctest and the race detector do not go together in Go 1.26 (golang.org/issue/78156).

package wire

import (
	"context"
	"testing"
	"testing/synctest"

	"go.mongodb.org/mongo-driver/v2/mongo"
)

// TestARetryAfterAClashEndsWithItsContext has a write that clashes for ever.
func TestARetryAfterAClashEndsWithItsContext(t *testing.T) { synctest.Test(t, retryAfterAClash) }

func retryAfterAClash(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	tried := 0
	err := WithoutClash(ctx, func() error {
		if tried++; tried == 3 {
			cancel()
		}
		return mongo.CommandError{Code: codeWriteConflict}
	})
	if tried != 3 || err != context.Canceled {
		t.Errorf("it was tried %d times and ended with %v, want 3 and context.Canceled", tried, err)
	}
	tried = 0
	err = WithoutClash(t.Context(), func() error {
		tried++
		return mongo.CommandError{Code: codeWriteConflict}
	})
	if tried != Clashes || !IsClash(err) {
		t.Errorf("it was tried %d times and ended with %v, want %d and the clash", tried, err, Clashes)
	}
}
