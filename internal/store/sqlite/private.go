package sqlite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/seed-1177d267/sluice/plan"
)

// Private makes a store that no other handle can open, in a temporary folder that Close deletes. It
// flushes nothing, because nothing of it is to outlive the process. A process that is killed leaves
// the folder behind.
func Private(ctx context.Context, o Options) (*Store, error) {
	dir, err := os.MkdirTemp("", "sluice-")
	if err != nil {
		return nil, fmt.Errorf("a folder for a private store: %w: %w", err, plan.ErrUnavailable)
	}
	o.private, o.Existing = true, false
	s, err := Open(ctx, filepath.Join(dir, "sluice.db"), o)
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	return s, nil
}
