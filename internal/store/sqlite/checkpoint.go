package sqlite

import (
	"context"
	"os"
	"time"
)

// SQLite's own checkpoints are made by whoever commits the page that is one too many, and all others wait meanwhile. So a goroutine of each
// handle makes them beside the writers, and who commits makes one only of a log that has grown far beyond what is usual. Writers wait only
// while the log's last pages are copied: with three busy processes a hop's p99 was 20.7 ms when that was at 4,000 pages, and 19.5 at 8,000.
const (
	checkpointPages = 2_000  // in the log and not in the file: then they are copied
	restartPages    = 8_000  // in the log: then writers wait for the last of them to be copied, so that the log begins anew
	backstopPages   = 24_000 // in the log: then who commits copies them
	fewPages        = 200    // so many are copied while writers wait
	checkpointEvery = 20 * time.Millisecond
)

// A log that may grow to half of a small disk leaves no room for the next checkpoint, and then nobody
// can write any more. So on a disk with little room the log begins anew at a smaller size.
const (
	logShare  = 8   // the log begins anew at this part of the room that it shares with the file
	leastLog  = 100 // pages, at least
	copyShare = 4   // and is copied at this part of that
)

// A logSize says how many pages the log has when something is to be done. See the constants.
type logSize struct{ checkpoint, restart, backstop int64 }

var usualLog = logSize{checkpointPages, restartPages, backstopPages}

// logSizeFor returns the sizes of a log that has so many bytes of room on its disk.
func logSizeFor(room int64) logSize {
	pages := max(room/pageSize/logShare, leastLog)
	if pages >= restartPages {
		return usualLog
	}
	return logSize{min(pages/copyShare, checkpointPages), pages, 3 * pages}
}

// logSize returns the sizes of the log on its disk as that is now.
func (s *Store) logSize() logSize {
	room, known := roomBeside(s.path)
	if !known {
		return usualLog
	}
	if info, err := os.Stat(s.path + "-wal"); err == nil {
		room += info.Size()
	}
	return logSizeFor(room)
}

// shorten copies the log of a full disk into the file and cuts it off, which gives its room back. The
// caller has the turn and no transaction. A checkpoint that fails changes nothing. Readers that hold
// on to the log are waited for briefly.
func (s *Store) shorten() {
	s.w.script("PRAGMA busy_timeout = 500")
	s.w.script("PRAGMA wal_checkpoint(TRUNCATE)")
	_ = s.w.clear() // the caller reports that the disk is full
	s.w.script(busyTimeout)
	_ = s.w.clear()
}

// A checkpointer copies what the write-ahead log holds into the database file.
type checkpointer struct {
	s     *Store
	wrote chan struct{} // something was committed
	stop  context.CancelFunc
	ended chan struct{}
	c     *conn // nil until it is needed
}

func startCheckpointer(s *Store) *checkpointer {
	ctx, stop := context.WithCancel(context.Background())
	p := &checkpointer{s: s, wrote: make(chan struct{}, 1), stop: stop, ended: make(chan struct{})}
	go p.run(ctx)
	return p
}

// committed says that the log has grown.
func (p *checkpointer) committed() {
	select {
	case p.wrote <- struct{}{}:
	default:
	}
}

// close ends the goroutine, which may be busy for as long as a checkpoint takes.
func (p *checkpointer) close() error {
	p.stop()
	<-p.ended
	if p.c == nil {
		return nil
	}
	return p.c.close()
}

func (p *checkpointer) run(ctx context.Context) {
	defer close(p.ended)
	pause := time.NewTimer(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wrote:
		}
		p.look(ctx)
		pause.Reset(checkpointEvery)
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
	}
}

// look makes a checkpoint if the log is large enough for one. After a failure it tries again after
// the next commit. If it keeps failing, the writer of a commit gets the error.
func (p *checkpointer) look(ctx context.Context) {
	info, err := os.Stat(p.s.path + "-wal")
	if err != nil || info.Size() < leastLog/copyShare*pageSize {
		return
	}
	size := p.s.logSize()
	if info.Size() < size.checkpoint*pageSize {
		return
	}
	if p.c == nil {
		if p.s.there() != nil {
			return // the log is not the one of the file that is there now
		}
		c, err := dial(p.s.dsn(), pragmas...)
		if err != nil {
			return
		}
		p.c = c
	}
	logged, copied := p.pages("PRAGMA wal_checkpoint(NOOP)")
	if logged-copied < size.checkpoint {
		return
	}
	for pass := 0; pass < 4 && logged-copied >= fewPages && ctx.Err() == nil; pass++ {
		logged, copied = p.pages("PRAGMA wal_checkpoint(PASSIVE)")
	}
	if logged < size.restart || p.s.lock(ctx) != nil {
		return
	}
	p.pages("PRAGMA wal_checkpoint(PASSIVE)")
	p.s.unlock()
}

// pages runs a checkpoint and returns how many pages are in the log, and how many of them in the file too.
func (p *checkpointer) pages(pragma string) (logged, copied int64) {
	r := p.c.query(pragma)
	if r.one() {
		logged, copied = r.int(1), r.int(2)
	}
	if p.c.clear() != nil {
		return 0, 0
	}
	return logged, copied
}
