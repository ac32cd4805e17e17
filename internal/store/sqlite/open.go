package sqlite

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/seed-1177d267/sluice/internal/folders"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/docs"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/plan"
)

// Options say how a store is opened.
type Options struct {
	Now      func() time.Time // default time.Now
	Hook     store.Hook       // called around the commit of each transaction that changes something; default none
	Existing bool             // make no store: where there is none, Open makes nothing and returns plan.ErrNoStore

	retrySize int // of tests: how many tasks one transaction of a retry takes; 0: retryAtOnce
	private   bool
}

// A Store is a handle on one database file. Other handles on it may be open in this process and in others.
type Store struct {
	docs.Scan

	private bool        // no other handle uses the file, and Close deletes its folder
	path    string      // without links, since what stands beside the file is found by it; SQLite looks for it there too
	file    os.FileInfo // what the path named when it was opened
	now     func() time.Time
	hook    store.Hook

	clock *clock
	lead  lead // of the clock, as the file was last written by this handle, or found; guarded as the writer is

	patience  time.Duration // how long one waits for the turn
	gaveUp    atomic.Bool   // somebody stopped waiting for the turn
	writing   chan struct{} // holds the one that writes
	waiting   atomic.Int32  // goroutines that want to
	turn      *turnstile
	w         *conn // of the one that writes
	wal       *walFile
	log       *checkpointer
	readers   chan *conn
	retrySize int       // tasks that one transaction of a retry takes
	watch     func(*tx) // of tests: it is called after each transaction that wrote
	chose     func()    // of tests: it is called when a retry has chosen its tasks on a reader
	rotor     int64     // the queue, by n, that was served first in the last turn; of the one that writes
	seed      uint64    // of tokens

	attempts []engine.Attempt[*taskRow] // memory for those of a turn; of the one that writes
	found    []taskRow                  // memory for their tasks

	count uint64

	shared shared
}

var _ store.Store = (*Store)(nil)

// Pragmas of every connection, and what each kind needs besides. Waiting for SQLite's own locks only happens when other programs write
// to the file.
var pragmas = []string{
	busyTimeout,
	"PRAGMA synchronous = NORMAL", // who commits flushes the log itself, see walFile
	"PRAGMA temp_store = MEMORY",
	"PRAGMA foreign_keys = OFF",
}

const busyTimeout = "PRAGMA busy_timeout = 10000"

const (
	pageSize      = 8192 // bytes
	maxReaders    = 4
	readerPragmas = "PRAGMA cache_size = -4096; PRAGMA query_only = ON"
)

var (
	// Where a page was split, SQLite looks through its whole cache as the transaction commits (pcache1TruncateUnsafe, after a page had a
	// number behind the last one for a while): with 32 MiB, a quarter of a millisecond of most turns.
	writerPragmas = "PRAGMA cache_size = -8192; PRAGMA journal_size_limit = 67108864"
	createPragmas = fmt.Sprintf("PRAGMA page_size = %d; PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL", pageSize)
)

// Open opens the database file. It makes a missing file and its folder (0600 and 0700), unless
// o.Existing. An empty file becomes a store, and gets 0600 too. Open migrates an older schema; that
// of a newer program is plan.ErrNewerSchema. It refuses a file on a network file system, where
// SQLite's locks do not hold. A file that cannot be opened is plan.ErrUnavailable. If the file is
// deleted or replaced later, reads and writes return plan.ErrStoreGone. Opening a file that needs
// no migration waits for nobody.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	s := &Store{
		private: o.private, clock: newClock(o.Now), now: o.Now, hook: o.Hook, patience: patience, retrySize: cmp.Or(o.retrySize, retryAtOnce),
		writing: make(chan struct{}, 1), readers: make(chan *conn, maxReaders),
	}
	if s.Of = s; s.now == nil {
		s.now = time.Now
	}
	var seed [8]byte
	_, _ = rand.Read(seed[:]) // crypto/rand never fails: it ends the process instead
	s.seed = binary.LittleEndian.Uint64(seed[:])
	if err := s.open(ctx, path, o.Existing); err != nil {
		if s.turn != nil {
			err = errors.Join(err, s.turn.close())
		}
		return nil, errors.Join(err, s.release())
	}
	return s, nil
}

func (s *Store) open(ctx context.Context, path string, existing bool) (err error) {
	if path == "" {
		return fmt.Errorf("no path for the database file: %w", plan.ErrUnavailable)
	}
	if s.path, err = filepath.Abs(path); err != nil {
		return fmt.Errorf("%s: %w: %w", path, plan.ErrUnavailable, err)
	}
	s.path = folders.Resolve(s.path)
	dir := filepath.Dir(s.path)
	flags := os.O_RDWR
	if !existing {
		flags |= os.O_CREATE
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("folder of the database: %w; choose one that you may write to: %w", err, plan.ErrUnavailable)
		}
	}
	if kind, err := folders.Network(dir); err == nil && kind != "" && !s.private {
		return fmt.Errorf("%s is on a network file system (%s), where SQLite's locks do not hold and the database would be damaged; "+
			"choose a local disk, or a mongodb:// store for several hosts: %w", s.path, kind, plan.ErrUnavailable)
	}
	if err := s.find(flags); err != nil {
		return err
	}
	s.mendCompanions()
	if s.w, err = dial(s.dsn(), pragmas...); err != nil {
		return s.translate(err)
	}
	version := s.version()
	if err := s.w.clear(); err != nil {
		return s.translate(err)
	}
	s.wal = &walFile{path: s.path + "-wal", flush: flush}
	if s.private {
		s.wal.flush = func(*os.File) error { return nil }
		s.turn = &turnstile{wakers: map[chan struct{}]bool{}}
	} else if s.turn, err = newTurnstile(s.path); err != nil {
		return fmt.Errorf("locks beside the database: %w; %s: %w", err, allow(err), plan.ErrUnavailable)
	}
	if version != schema || !s.ours(version) {
		err = s.setUp(ctx)
	}
	s.w.script(fmt.Sprintf("%s; PRAGMA wal_autocheckpoint = %d", writerPragmas, s.logSize().backstop))
	if failed := s.w.clear(); err != nil || failed != nil {
		return cmp.Or(err, s.translate(failed))
	}
	s.log = startCheckpointer(s)
	return nil
}

// find checks that the file exists, and makes it if the flags say so. SQLite would make it with the
// umask's permissions, and gives its companions those of the file. find does not open an existing
// file: closing it would release the locks of other handles of this process (fcntl(2): a process's
// locks on a file go with any of its descriptors).
func (s *Store) find(flags int) (err error) {
	s.file, err = os.Stat(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		if flags&os.O_CREATE == 0 {
			return s.none()
		}
		f, failed := os.OpenFile(s.path, flags, 0o600)
		if failed != nil {
			return fmt.Errorf("database: %w; choose a folder that you may write to: %w", failed, plan.ErrUnavailable)
		}
		s.file, err = f.Stat()
		err = errors.Join(err, f.Close())
	}
	switch {
	case err != nil:
		return fmt.Errorf("database: %w: %w", plan.ErrUnavailable, err)
	case s.file.IsDir():
		return fmt.Errorf("%s is a directory; name a file, as in sqlite:%s: %w", s.path, filepath.Join(s.path, "sluice.db"), plan.ErrUnavailable)
	case !s.file.Mode().IsRegular():
		return fmt.Errorf("%s is not a file; name another: %w", s.path, plan.ErrUnavailable)
	case s.file.Size() > 0:
	case flags&os.O_CREATE == 0: // nobody has set it up, or somebody begins to just now
		return s.none()
	case s.file.Mode().Perm()&0o077 != 0:
		_ = os.Chmod(s.path, 0o600) // a file system that knows no permissions refuses, and gives a new file no others either
	}
	return nil
}

// companions are what SQLite keeps beside the file.
var companions = []string{"-wal", "-shm"}

// Files returns the paths of all files that a store at the path writes.
func Files(path string) []string {
	if abs, err := filepath.Abs(path); err == nil {
		path = folders.Resolve(abs) // as Open has it
	}
	files := []string{path}
	for _, suffix := range append([]string{"-journal", suffixNext, suffixTurn}, companions...) {
		files = append(files, path+suffix)
	}
	return files
}

// mendCompanions lets who may write to the file write to its companions too. SQLite gives them the permissions that the file has as they are
// made, and who cannot write to it leaves them behind: without this, one look at a file that is read-only for a while would keep its owner
// from writing ever after.
func (s *Store) mendCompanions() {
	want := s.file.Mode().Perm()
	for _, c := range companions {
		if info, err := os.Lstat(s.path + c); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&want != want {
			_ = os.Chmod(s.path+c, info.Mode().Perm()|want) // another user's stays as it is, which who writes is told
		}
	}
}

// unwritable returns which file cannot be written: a companion, which may be another user's, or else the file itself.
func (s *Store) unwritable() string {
	for _, c := range companions {
		if _, err := os.Lstat(s.path + c); err == nil && writable(s.path) == nil && writable(s.path+c) != nil {
			return s.path + c
		}
	}
	return s.path
}

// WritableByOthers returns the file of the store that others than its owner can write: the database, or else a companion, which SQLite gave the
// database's permissions as it was made and which keeps them; "" if there is none. On Windows it does not look.
func (s *Store) WritableByOthers() string {
	if runtime.GOOS == "windows" {
		return ""
	}
	for _, path := range []string{s.path, s.path + companions[0], s.path + companions[1]} {
		if info, err := os.Stat(path); err == nil && info.Mode()&0o022 != 0 {
			return path
		}
	}
	return ""
}

// setUp makes the tables, or the new ones. If several processes open a new file at once, one of
// them does so.
func (s *Store) setUp(ctx context.Context) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.unlock()
	if version := s.version(); s.w.err == nil && s.ours(version) {
		s.w.script(createPragmas)
		s.migrate(version)
	}
	return s.translate(s.w.clear())
}

func (s *Store) none() error { return fmt.Errorf("no store at %s: %w", s.path, plan.ErrNoStore) }

// dsn makes SQLite open the file that is there. It would make one that was deleted meanwhile anew, empty and for all to read.
func (s *Store) dsn() string {
	path := filepath.ToSlash(s.path)
	if runtime.GOOS == "windows" {
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: "mode=rw"}).String()
}

// Close waits for the write that is under way, and lets go of the file.
func (s *Store) Close() error {
	var err error
	if s.log != nil {
		err = s.log.close()
	}
	var late <-chan time.Time
	if s.gaveUp.Load() {
		late = time.After(time.Second) // what is left waiting for the turn may wait for ever
	}
	select {
	case s.writing <- struct{}{}: // for good
		return errors.Join(err, s.release(), s.turn.close())
	case <-late:
		go func() { // its files are still waited on
			s.writing <- struct{}{}
			_ = s.turn.close() // it holds nothing, and nobody is there any more to be told
		}()
		return errors.Join(err, s.release())
	}
}

func (s *Store) release() error {
	var errs []error
	for {
		select {
		case c := <-s.readers:
			errs = append(errs, c.close())
			continue
		default:
		}
		break
	}
	if s.wal != nil {
		errs = append(errs, s.wal.close())
	}
	if s.w != nil {
		errs = append(errs, s.w.close())
	}
	if s.private {
		errs = append(errs, os.RemoveAll(filepath.Dir(s.path)))
	}
	return errors.Join(errs...)
}

// queue waits for this process's other goroutines.
func (s *Store) queue(ctx context.Context) error {
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	select {
	case s.writing <- struct{}{}:
		return nil
	default:
	}
	began := time.Now()
	late := time.NewTimer(s.patience)
	defer late.Stop()
	select {
	case s.writing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return s.gaveUpAfter(ctx, began)
	case <-late.C:
		return s.held(s.patience)
	}
}

// there returns plan.ErrStoreGone if the path does not name the file any more that was opened.
func (s *Store) there() error {
	now, err := os.Stat(s.path)
	switch {
	case err == nil && os.SameFile(now, s.file):
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("database: %w: %w", plan.ErrUnavailable, err)
	}
	return fmt.Errorf("%s was deleted or replaced while this process had it open; what it wrote since is lost with the old file: %w",
		s.path, plan.ErrStoreGone)
}

// lock takes the right to write, from this process's other goroutines and then from other processes.
func (s *Store) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.queue(ctx); err != nil {
		return err
	}
	if err := s.there(); err != nil {
		<-s.writing
		return err
	}
	if ok, err := s.turn.try(); err != nil || ok {
		if err != nil {
			<-s.writing
		}
		return err
	}
	// A wait in the kernel cannot be called off: who gives up leaves it to a goroutine, for which the next one, and Close, wait.
	done := make(chan error, 1)
	go func() { done <- s.turn.wait() }()
	began := time.Now()
	late := time.NewTimer(s.patience)
	defer late.Stop()
	var err error
	select {
	case err = <-done:
		if err != nil {
			<-s.writing
		}
		return err
	case <-ctx.Done():
		err = s.gaveUpAfter(ctx, began)
	case <-late.C:
		err = s.held(s.patience)
	}
	s.gaveUp.Store(true)
	go func() {
		if <-done == nil {
			s.turn.unlock()
		}
		<-s.writing
	}()
	return err
}

// patience is how long one waits for the turn: long enough for whatever is done in one turn, a migration of a large file included. A
// process that has the turn and is stopped, as by Ctrl-Z, keeps all others from writing, which nothing but its end or its going on mends.
const patience = 20 * time.Second

// gaveUpAfter returns the error of a wait for the turn that ended with its context: where that was for its time, and not called off by
// somebody, it says who had the turn. A context whose time is bounded otherwise than by a deadline, as by den, has one as its cause.
func (s *Store) gaveUpAfter(ctx context.Context, began time.Time) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return s.held(time.Since(began))
	}
	return ctx.Err()
}

// held says who has had the turn for so long.
func (s *Store) held(waited time.Duration) error {
	who := "another process"
	if pid := s.turn.holder(); pid > 0 {
		who = fmt.Sprintf("process %d", pid)
		if stopped(pid) {
			who += fmt.Sprintf(", which is stopped (let it go on: kill -CONT %d, or end it),", pid)
		}
	}
	return fmt.Errorf("%s: %s has been writing for more than %v: %w", s.path, who, rounded(waited), plan.ErrUnavailable)
}

// rounded makes a time that was waited one for people; it is no longer than that.
func rounded(d time.Duration) time.Duration {
	if d >= time.Second {
		return d.Truncate(100 * time.Millisecond)
	}
	return d.Truncate(time.Millisecond)
}

// awaited reports whether anyone else wants to write. Only who writes may call it.
func (s *Store) awaited() bool { return s.waiting.Load() > 0 || s.turn.awaited() }

func (s *Store) unlock() {
	s.turn.unlock()
	<-s.writing
}

// reader returns a connection for reading, to the file that was opened, as long as the path names that. None is made to another one: SQLite
// takes an empty file's write-ahead log away, with which the right one may come back.
func (s *Store) reader() (*conn, error) {
	if err := s.there(); err != nil {
		return nil, err
	}
	select {
	case c := <-s.readers:
		return c, nil
	default:
	}
	c, err := dial(s.dsn(), append(pragmas, readerPragmas)...)
	if err != nil {
		return nil, s.translate(err)
	}
	if err := s.there(); err != nil { // it went in between
		_ = c.close() // it has read nothing yet
		return nil, err
	}
	return c, nil
}

// read runs do on a connection for reading, within one view of the database.
func (s *Store) read(ctx context.Context, do func(*conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c, err := s.reader()
	if err != nil {
		return err
	}
	c.exec("BEGIN")
	err = do(c)
	failed := c.clear()
	c.exec("ROLLBACK")
	if broken := c.clear(); broken != nil {
		return errors.Join(s.translate(cmp.Or(failed, broken)), c.close())
	}
	select {
	case s.readers <- c:
	default:
		_ = c.close() // it only read
	}
	if failed != nil {
		return s.translate(failed)
	}
	return err
}

// newToken mints what the claims of one turn are fenced by; 0 is none. The sequence is SplitMix64 (Steele, Lea, Flood, "Fast splittable
// pseudorandom number generators", 2014) from a seed of chance: a token need not be secret, only never the same twice.
func (s *Store) newToken() int64 {
	for {
		s.count++
		z := s.seed + s.count*0x9e3779b97f4a7c15
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		if t := int64((z ^ z>>31) & (1<<48 - 1)); t != 0 {
			return t
		}
	}
}

// retryAtOnce is how many tasks one transaction of a retry takes.
const retryAtOnce = 500
