package sqlite

import (
	"embed"
	"fmt"
	"io/fs"

	"github.com/seed-1177d267/sluice/plan"
)

// The file migrations/N.sql takes a database from schema N-1 to N. A released file never changes: a
// change of the schema is another file, and a database of the schema before goes into testdata.
//
//go:embed migrations/*.sql
var migrations embed.FS

const (
	schema = 32 // that this program writes
	oldest = 19 // that it reads; no release had an older one
)

// application marks our files in SQLite's header ("Slce"), so that no other program's database is taken for an empty one.
const application = 0x536c6365

// ours reports whether the database, of which nothing has been changed yet, is one that this program may write to; the connection's
// error says why not.
func (s *Store) ours(version int64) bool {
	if version > schema {
		s.w.fail(s.newer(version))
		return false
	}
	id, things := s.number("PRAGMA application_id"), s.number("SELECT count(*) FROM sqlite_schema")
	if s.w.err == nil && things > 0 && (version == 0 || id != application) {
		s.w.fail(fmt.Errorf("%s is the database of another program; name another file: %w", s.path, plan.ErrUnavailable))
	} else if version > 0 && version < oldest {
		s.w.fail(fmt.Errorf("%s has schema %d, and the oldest that this program reads is %d; finish its plans with the sluice that made it: %w",
			s.path, version, oldest, plan.ErrUnavailable))
	}
	return s.w.err == nil
}

// present has all that a new database has, as the steps make it of one of the oldest schema. A test compares
// both, and writes the file with -update.
//
//go:embed present.sql
var present string

// migrate brings a database of that schema to the present one, each step in a transaction of its own.
func (s *Store) migrate(version int64) {
	if version == 0 {
		s.step(schema, func() { s.w.script(present) })
		return
	}
	for version++; version <= schema && s.w.err == nil; version++ {
		text, err := fs.ReadFile(migrations, fmt.Sprintf("migrations/%04d.sql", version))
		if err != nil {
			s.w.fail(err)
			return
		}
		s.step(version, func() {
			switch version {
			case edgesInside:
				s.w.cutEdges()
			case countedAnew:
				s.w.countAnew()
			}
			s.w.script(string(text))
		})
	}
}

// step calls what takes the database to that schema, in a transaction.
func (s *Store) step(version int64, take func()) {
	s.w.script("BEGIN IMMEDIATE")
	take()
	s.w.script(fmt.Sprintf("PRAGMA user_version = %d; PRAGMA application_id = %d", version, application))
	s.w.script("COMMIT")
	if err := s.w.clear(); err != nil {
		s.w.script("ROLLBACK")
		_ = s.w.clear() // the first error says more
		s.w.fail(err)
	}
}

func (s *Store) version() int64 { return s.number("PRAGMA user_version") }

// number returns the one number that a query finds.
func (s *Store) number(query string) int64 {
	r := s.w.query(query)
	if !r.one() {
		return 0
	}
	return r.int(0)
}

func (s *Store) newer(version int64) error {
	return fmt.Errorf("%s has schema %d, and this program knows %d; use a newer sluice: %w", s.path, version, schema, plan.ErrNewerSchema)
}
