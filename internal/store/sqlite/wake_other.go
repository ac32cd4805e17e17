//go:build !linux

package sqlite

import (
	"context"
	"os"
	"time"
)

// watchEvery is how often the file is looked at where the system is not asked to tell: a stat costs a microsecond or two.
const watchEvery = 50 * time.Millisecond

// watch returns a channel on which a value arrives soon after the file was written, closed when ctx ends; nil if it cannot be watched.
func watch(ctx context.Context, path string) <-chan struct{} {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	changed := make(chan struct{}, 1)
	go func() {
		defer close(changed)
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			now, err := os.Stat(path)
			if err != nil || now.ModTime().Equal(info.ModTime()) {
				continue
			}
			info = now
			select {
			case changed <- struct{}{}:
			default: // one is waiting already
			}
		}
	}()
	return changed
}
