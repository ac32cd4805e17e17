package sqlite

import (
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

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// Options say how a store is opened.
type Options struct {
	Now      func() time.Time // default time.Now
	Hook     store.Hook       // called around the commit of each transaction that changes something; default none
	Existing bool             // make no store: where there is none, Open makes nothing and returns plan.ErrNoStore
}

// A Store is a handle on one database file. Other handles on it may be open in this process and in others.
type Store struct {
	path string
	now  func() time.Time
	hook store.Hook

	writing chan struct{} // holds the one that writes
	waiting atomic.Int32  // goroutines that want to
	turn    *turnstile
	w       *conn // of the one that writes
	wal     *walFile
	log     *checkpointer
	readers chan *conn
	rotor   int64  // the queue, by n, that was served first in the last turn; of the one that writes
	seed    uint64 // of tokens
	count   uint64
}

var _ store.Store = (*Store)(nil)

// Pragmas of every connection, and what each kind needs besides. Waiting for SQLite's own locks only happens when other programs write
// to the file.
var pragmas = []string{
	"PRAGMA busy_timeout = 10000",
	"PRAGMA synchronous = NORMAL", // who commits flushes the log itself, see walFile
	"PRAGMA temp_store = MEMORY",
	"PRAGMA foreign_keys = OFF",
}

const (
	pageSize      = 8192 // bytes
	maxReaders    = 4
	readerPragmas = "PRAGMA cache_size = -4096; PRAGMA query_only = ON"
)

var (
	writerPragmas = fmt.Sprintf("PRAGMA cache_size = -32768; PRAGMA wal_autocheckpoint = %d; PRAGMA journal_size_limit = 67108864", backstopPages)
	createPragmas = fmt.Sprintf("PRAGMA page_size = %d; PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL", pageSize)
)

// Open opens the database file, and makes it and its folder (0600 and 0700) if they are missing, unless o.Existing. An older schema is migrated; one of
// a newer program is plan.ErrNewerSchema. A file on a network file system is refused: SQLite's locks do not hold there. What cannot
// be opened is plan.ErrUnavailable.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	s := &Store{now: o.Now, hook: o.Hook, writing: make(chan struct{}, 1), readers: make(chan *conn, maxReaders)}
	if s.now == nil {
		s.now = time.Now
	}
	var seed [8]byte
	_, _ = rand.Read(seed[:]) // crypto/rand never fails: it ends the process instead
	s.seed = binary.LittleEndian.Uint64(seed[:])
	if err := s.open(ctx, path, o.Existing); err != nil {
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
	dir := filepath.Dir(s.path)
	flags := os.O_RDWR
	if !existing {
		flags |= os.O_CREATE
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("folder of the database: %w: %w", plan.ErrUnavailable, err)
		}
	}
	if kind, err := networkFS(dir); err == nil && kind != "" {
		return fmt.Errorf("%s is on a network file system (%s), where SQLite's locks do not hold and the database would be damaged; "+
			"choose a local disk, or a mongodb:// store for several hosts: %w", s.path, kind, plan.ErrUnavailable)
	}
	// SQLite would make the file with the umask's permissions, and gives its companions those of the file.
	f, err := os.OpenFile(s.path, flags, 0o600)
	if existing && errors.Is(err, fs.ErrNotExist) {
		return s.none()
	}
	if err != nil {
		return fmt.Errorf("database: %w: %w", plan.ErrUnavailable, err)
	}
	info, err := f.Stat()
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("database: %w: %w", plan.ErrUnavailable, err)
	}
	if existing && info.Size() == 0 { // nobody has set it up, or somebody begins to just now
		return s.none()
	}
	s.wal = &walFile{path: s.path + "-wal", flush: flush}
	if s.turn, err = newTurnstile(s.path); err != nil {
		return fmt.Errorf("locks beside the database: %w: %w", plan.ErrUnavailable, err)
	}
	if err := s.lock(ctx); err != nil { // of several that open a new file at once, one sets it up
		return err
	}
	defer s.unlock()
	if s.w, err = dial(s.dsn(), pragmas...); err != nil {
		return s.translate(err)
	}
	if version := s.version(); s.w.err == nil && s.ours(version) {
		s.w.script(createPragmas)
		s.w.script(writerPragmas)
		s.migrate(version)
	}
	if err := s.w.clear(); err != nil {
		return s.translate(err)
	}
	s.log = startCheckpointer(s)
	return nil
}

func (s *Store) none() error { return fmt.Errorf("no store at %s: %w", s.path, plan.ErrNoStore) }

func (s *Store) dsn() string {
	path := filepath.ToSlash(s.path)
	if runtime.GOOS == "windows" {
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// Close waits for the write that is under way, and lets go of the file.
func (s *Store) Close() error {
	var err error
	if s.log != nil {
		err = s.log.close()
	}
	s.writing <- struct{}{} // for good
	return errors.Join(err, s.release())
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
	if s.turn != nil {
		errs = append(errs, s.turn.close())
	}
	return errors.Join(errs...)
}

// lock takes the right to write, from this process's other goroutines and then from other processes.
func (s *Store) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.waiting.Add(1)
	select {
	case s.writing <- struct{}{}:
		s.waiting.Add(-1)
	case <-ctx.Done():
		s.waiting.Add(-1)
		return ctx.Err()
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
	select {
	case err := <-done:
		if err != nil {
			<-s.writing
		}
		return err
	case <-ctx.Done():
		go func() {
			if <-done == nil {
				s.turn.unlock()
			}
			<-s.writing
		}()
		return ctx.Err()
	}
}

// awaited reports whether anyone else wants to write. Only who writes may call it.
func (s *Store) awaited() bool { return s.waiting.Load() > 0 || s.turn.awaited() }

func (s *Store) unlock() {
	s.turn.unlock()
	<-s.writing
}

// read runs do on a connection for reading, within one view of the database.
func (s *Store) read(ctx context.Context, do func(*conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var c *conn
	select {
	case c = <-s.readers:
	default:
		var err error
		if c, err = dial(s.dsn(), append(pragmas, readerPragmas)...); err != nil {
			return s.translate(err)
		}
	}
	c.exec("BEGIN")
	err := do(c)
	failed := c.clear()
	c.exec("ROLLBACK")
	if broken := c.clear(); broken != nil {
		return errors.Join(s.translate(cmpErr(failed, broken)), c.close())
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

func cmpErr(first, second error) error {
	if first != nil {
		return first
	}
	return second
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
