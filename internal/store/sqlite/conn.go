package sqlite

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"zombiezen.com/go/sqlite"
)

// conn is one connection to the database file with its prepared statements. It uses SQLite through
// a thin package. Package sql would cost more than most of these statements do. A driver for
// package sql opens connections that any number of goroutines may share: each column that is read
// then takes and releases a lock, which was a quarter of a turn. One goroutine at a time may use a
// conn.
//
// A LIMIT that is a parameter is written `? + 0`: where it is a bare one SQLite plans the statement anew for each new value.
//
// The first error stays: after it nothing is executed and no row is found, until clear. So a transaction reads without a check behind
// every statement, and is rolled back at its end.
type conn struct {
	db    *sqlite.Conn
	stmts map[string]*sqlite.Stmt
	err   error

	ownNames bool // items have their own names among the inputs of a task, as in edges of older schemas
}

// dial opens a connection and runs the pragmas. The file must be there.
func dial(uri string, pragmas ...string) (*conn, error) {
	db, err := sqlite.OpenConn(uri, sqlite.OpenReadWrite, sqlite.OpenURI)
	if err != nil {
		return nil, dbError{err}
	}
	c := &conn{db: db, stmts: map[string]*sqlite.Stmt{}}
	for _, p := range pragmas {
		c.script(p)
	}
	if c.err != nil {
		return nil, errors.Join(c.err, c.close())
	}
	return c, nil
}

func (c *conn) close() error {
	c.stmts = nil
	return c.db.Close() // and its statements
}

// clear forgets the error and returns it.
func (c *conn) clear() error {
	err := c.err
	c.err = nil
	return err
}

// fail keeps the error, unless it is nil or there is one already.
func (c *conn) fail(err error) { c.err = cmp.Or(c.err, err) }

// script runs statements that are run once.
func (c *conn) script(text string) {
	for c.err == nil && strings.TrimSpace(text) != "" {
		s, rest, err := c.db.PrepareTransient(text)
		if err != nil {
			c.fail(dbError{err})
			return
		}
		for more := true; more; {
			if more, err = s.Step(); err != nil {
				c.fail(dbError{err})
			}
		}
		if err := s.Finalize(); err != nil {
			c.fail(dbError{err})
		}
		text = text[len(text)-rest:]
	}
}

// prepare returns the statement, bound to the arguments; numbers, strings, byte slices and nil are taken. A slice of numbers is as many
// parameters.
func (c *conn) prepare(text string, args []any) *sqlite.Stmt {
	s := c.stmts[text]
	if s == nil {
		var err error
		if s, err = c.db.Prepare(text); err != nil {
			c.fail(dbError{fmt.Errorf("%w in %s", err, text)})
			return nil
		}
		c.stmts[text] = s
	}
	at := 1
	for _, a := range args {
		switch v := a.(type) {
		case int64:
			s.BindInt64(at, v)
		case int:
			s.BindInt64(at, int64(v))
		case bool:
			s.BindBool(at, v)
		case string:
			s.BindText(at, v)
		case []byte:
			if v == nil { // an empty one is not NULL
				s.BindNull(at)
			} else {
				s.BindBytes(at, v)
			}
		case []int64:
			for _, n := range v {
				s.BindInt64(at, n)
				at++
			}
			at--
		case nil:
			s.BindNull(at)
		default:
			c.fail(fmt.Errorf("a parameter of type %T in %s", a, text))
			return nil
		}
		at++
	}
	return s
}

// exec runs a statement and returns how many rows it changed. Nothing interrupts it: transactions look at their contexts before they begin.
func (c *conn) exec(text string, args ...any) int64 {
	if c.err != nil {
		return 0
	}
	s := c.prepare(text, args)
	if s == nil {
		return 0
	}
	for more := true; more; {
		var err error
		if more, err = s.Step(); err != nil {
			c.fail(dbError{err})
			return 0
		}
	}
	c.reset(s, args)
	return int64(c.db.Changes())
}

// reset ends the run of a statement, and lets go of parameters that are large.
func (c *conn) reset(s *sqlite.Stmt, args []any) {
	if err := s.Reset(); err != nil {
		c.fail(dbError{err})
	}
	for _, a := range args {
		b, _ := a.([]byte)
		t, _ := a.(string)
		if len(b)+len(t) > largeParameter {
			if err := s.ClearBindings(); err != nil {
				c.fail(dbError{err})
			}
			return
		}
	}
}

const largeParameter = 4 << 10 // bytes

// query runs a query. Its rows must be read to the end, or closed, before the same query runs again.
func (c *conn) query(text string, args ...any) *rows {
	r := &rows{c: c}
	if c.err == nil {
		r.stmt, r.args = c.prepare(text, args), args
	}
	return r
}

// rows is what a query found. A column that is NULL reads as zero; one that is asked for as another type than it is, as SQLite converts it.
type rows struct {
	c    *conn
	stmt *sqlite.Stmt // nil when there are no more
	args []any
	kept []value // of the row that one found
}

// A value is what a column holds.
type value struct {
	int   int64
	bytes []byte // of a text too
	null  bool
}

// next goes to the next row and reports whether there is one; else the rows are closed.
func (r *rows) next() bool {
	if r.stmt == nil {
		return false
	}
	more, err := r.stmt.Step()
	if err != nil {
		r.c.fail(dbError{err})
	}
	if !more {
		r.close()
	}
	return more
}

// one goes to the first row and reports whether there is one. The others are not read; its values stay.
func (r *rows) one() bool {
	found := r.next()
	if found {
		kept := make([]value, r.stmt.ColumnCount())
		for i := range kept {
			switch r.stmt.ColumnType(i) {
			case sqlite.TypeNull:
				kept[i].null = true
			case sqlite.TypeInteger:
				kept[i].int = r.int(i)
			default:
				kept[i].bytes = r.bytes(i)
			}
		}
		r.kept = kept
	}
	r.close()
	return found
}

func (r *rows) close() {
	if r.stmt != nil {
		r.c.reset(r.stmt, r.args)
		r.stmt = nil
	}
}

// numbers returns the first column of all rows.
func (r *rows) numbers() (ns []int64) {
	for r.next() {
		ns = append(ns, r.int(0))
	}
	return ns
}

func (r *rows) int(i int) int64 {
	if r.stmt == nil {
		return r.kept[i].int
	}
	return r.stmt.ColumnInt64(i)
}

func (r *rows) bool(i int) bool { return r.int(i) != 0 }

func (r *rows) text(i int) string {
	if r.stmt == nil {
		return string(r.kept[i].bytes)
	}
	return r.stmt.ColumnText(i)
}

// bytes returns nil for NULL, and else a slice that is the caller's.
func (r *rows) bytes(i int) []byte {
	if r.stmt == nil {
		return r.kept[i].bytes
	}
	b := make([]byte, r.len(i))
	if r.read(i, b); len(b) == 0 && r.null(i) {
		return nil
	}
	return b
}

// len is how many bytes a value has, and 0 for NULL.
func (r *rows) len(i int) int {
	if r.stmt == nil {
		return len(r.kept[i].bytes)
	}
	return r.stmt.ColumnLen(i)
}

// read copies a value into b, which has its length.
func (r *rows) read(i int, b []byte) {
	if r.stmt == nil {
		copy(b, r.kept[i].bytes)
		return
	}
	r.stmt.ColumnBytes(i, b)
}

func (r *rows) null(i int) bool {
	if r.stmt == nil {
		return r.kept[i].null
	}
	return r.stmt.ColumnIsNull(i)
}

// id reads an id; the type is the caller's.
func (r *rows) id(i int) (id [12]byte) {
	if r.stmt == nil {
		copy(id[:], r.kept[i].bytes)
	} else {
		r.stmt.ColumnBytes(i, id[:])
	}
	return id
}

// inParts hands numbers, which it sorts, over in parts, each with what a statement says of it behind the column that they are of. A span is
// read row by row. Each of some numbers is looked up, and each run of a statement opens the table and its indexes anew: both take about a
// microsecond. Tasks that are claimed or end together often were made together, and have numbers that follow each other.
func inParts(ns []int64, do func(in string, part ...any)) {
	slices.Sort(ns)
	some := make([]int64, 0, someNumbers)
	for len(ns) > 0 {
		n := 1
		for n < len(ns) && ns[n] <= ns[n-1]+1 {
			n++
		}
		switch last := ns[n-1]; {
		case n >= longSpan || n == len(ns) && len(some) == 0:
			do(inSpan, ns[0], last)
		default:
			for _, one := range ns[:n] {
				if some = append(some, one); len(some) == someNumbers {
					do(inSome, some)
					some = some[:0]
				}
			}
		}
		ns = ns[n:]
	}
	if len(some) > 0 {
		for len(some) < someNumbers {
			some = append(some, some[0]) // so that there is one statement, however many
		}
		do(inSome, some)
	}
}

const (
	longSpan    = 4 // numbers for which a span is worth a run of the statement
	someNumbers = 16
	inSpan      = " BETWEEN ? AND ?"
)

var inSome = " IN (?" + strings.Repeat(", ?", someNumbers-1) + ")"

// queryEach runs a query, which ends with the column that they are of, for numbers, which it sorts, and hands over each row.
func (c *conn) queryEach(text string, ns []int64, do func(*rows)) {
	inParts(ns, func(in string, part ...any) {
		for r := c.query(text+in, part...); r.next(); {
			do(r)
		}
	})
}

// list writes numbers as JSON, for `IN (SELECT value FROM json_each(?))`: one parameter and one prepared statement, however many.
func list(ns []int64) string {
	b := make([]byte, 0, 8*len(ns)+2)
	b = append(b, '[')
	for i, n := range ns {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, n, 10)
	}
	return string(append(b, ']'))
}

// A dbError is what SQLite says.
type dbError struct{ error }

func (e dbError) Unwrap() error { return e.error }

// distinct sorts numbers, and takes out those that are there twice; the slice that it is handed is used up.
func distinct(ns []int64) []int64 {
	slices.Sort(ns)
	return slices.Compact(ns)
}

// each returns a number of each element.
func each[T any](list []T, number func(*T) int64) []int64 {
	ns := make([]int64, len(list))
	for i := range list {
		ns[i] = number(&list[i])
	}
	return ns
}

// pick returns a if first is true, else b.
func pick[T any](first bool, a, b T) T {
	if first {
		return a
	}
	return b
}
