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

// schema is the schema that this program writes.
const schema = 32

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
	}
	return s.w.err == nil
}

// migrate brings a database of that schema to the present one, each step in a transaction of its own.
func (s *Store) migrate(version int64) {
	for ; version < schema; version++ {
		text, err := fs.ReadFile(migrations, fmt.Sprintf("migrations/%04d.sql", version+1))
		if err != nil {
			s.w.fail(err)
			return
		}
		s.w.script("BEGIN IMMEDIATE")
		switch version + 1 {
		case edgesInside:
			s.w.cutEdges()
		case countedAnew:
			s.w.countAnew()
		}
		s.w.script(string(text))
		s.w.script(fmt.Sprintf("PRAGMA user_version = %d; PRAGMA application_id = %d", version+1, application))
		s.w.script("COMMIT")
		if err := s.w.clear(); err != nil {
			s.w.script("ROLLBACK")
			_ = s.w.clear() // the first error says more
			s.w.fail(err)
			return
		}
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
