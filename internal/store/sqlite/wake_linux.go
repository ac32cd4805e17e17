package sqlite

import (
	"context"
	"os"

	"golang.org/x/sys/unix"
)

// watch returns a channel on which a value arrives soon after the file was written, closed when ctx ends; nil if it cannot be watched.
func watch(ctx context.Context, path string) <-chan struct{} {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), "inotify") // non-blocking, so that closing it ends a read
	if _, err := unix.InotifyAddWatch(fd, path, unix.IN_MODIFY); err != nil {
		_ = f.Close() // nothing was written to it
		return nil
	}
	changed := make(chan struct{}, 1)
	stop := context.AfterFunc(ctx, func() { _ = f.Close() })
	go func() {
		defer close(changed)
		defer stop()
		buf := make([]byte, 4096)
		for {
			if _, err := f.Read(buf); err != nil {
				return
			}
			select {
			case changed <- struct{}{}:
			default: // one is waiting already
			}
		}
	}()
	return changed
}
