package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	sqlite "modernc.org/sqlite"
)

// conn is one connection to the database file with its prepared statements. It talks to the driver without package sql between, which
// would cost more than most of these statements do. One goroutine at a time may use it.
//
// A LIMIT that is a parameter is written `? + 0`: where it is a bare one SQLite plans the statement anew for each new value.
//
// The first error stays: after it nothing is executed and no row is found, until clear. So a transaction reads without a check behind
// every statement, and is rolled back at its end.
type conn struct {
	driver driver.Conn
	stmts  map[string]*stmt
	err    error
}

type stmt struct {
	exec  driver.StmtExecContext
	query driver.StmtQueryContext
	close func() error
	args  []driver.NamedValue
	dest  []driver.Value
}

// dial opens a connection and runs the pragmas.
func dial(dsn string, pragmas ...string) (*conn, error) {
	d, err := (&sqlite.Driver{}).Open(dsn)
	if err != nil {
		return nil, err
	}
	c := &conn{driver: d, stmts: map[string]*stmt{}}
	for _, p := range pragmas {
		c.script(p)
	}
	if c.err != nil {
		return nil, errors.Join(c.err, c.close())
	}
	return c, nil
}

func (c *conn) close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.close())
	}
	c.stmts = nil
	return errors.Join(append(errs, c.driver.Close())...)
}

// clear forgets the error and returns it.
func (c *conn) clear() error {
	err := c.err
	c.err = nil
	return err
}

func (c *conn) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// script runs statements that are run once.
func (c *conn) script(text string) {
	if c.err != nil {
		return
	}
	if _, err := c.driver.(driver.ExecerContext).ExecContext(context.Background(), text, nil); err != nil {
		c.fail(err)
	}
}

// prepare returns the statement, bound to the arguments; numbers, strings, byte slices and nil are taken.
func (c *conn) prepare(text string, args []any) *stmt {
	s := c.stmts[text]
	if s == nil {
		d, err := c.driver.Prepare(text)
		if err != nil {
			c.fail(fmt.Errorf("%w in %s", err, text))
			return nil
		}
		s = &stmt{exec: d.(driver.StmtExecContext), query: d.(driver.StmtQueryContext), close: d.Close}
		c.stmts[text] = s
	}
	s.args = s.args[:0]
	for i, a := range args {
		switch v := a.(type) {
		case int:
			a = int64(v)
		case bool:
			a = int64(0)
			if v {
				a = int64(1)
			}
		case []byte:
			if v == nil {
				a = nil // a slice that is nil is NULL, an empty one is not
			}
		}
		s.args = append(s.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return s
}

// exec runs a statement and returns how many rows it changed. A context that can be cancelled would cost a goroutine a statement;
// transactions look at theirs before they begin.
func (c *conn) exec(text string, args ...any) int64 {
	if c.err != nil {
		return 0
	}
	s := c.prepare(text, args)
	if s == nil {
		return 0
	}
	r, err := s.exec.ExecContext(context.Background(), s.args)
	if err != nil {
		c.fail(err)
		return 0
	}
	n, _ := r.RowsAffected() // this driver's never fails
	return n
}

// query runs a query. Its rows must be read to the end, or closed, before the same query runs again.
func (c *conn) query(text string, args ...any) *rows {
	r := &rows{c: c}
	if c.err != nil {
		return r
	}
	s := c.prepare(text, args)
	if s == nil {
		return r
	}
	found, err := s.query.QueryContext(context.Background(), s.args)
	if err != nil {
		c.fail(err)
		return r
	}
	if s.dest == nil {
		s.dest = make([]driver.Value, len(found.Columns()))
	}
	r.found, r.dest = found, s.dest
	return r
}

// rows is what a query found. A column that is NULL, or is asked for as another type than it is, reads as zero.
type rows struct {
	c     *conn
	found driver.Rows // nil when there are no more
	dest  []driver.Value
}

// next goes to the next row and reports whether there is one; else the rows are closed.
func (r *rows) next() bool {
	if r.found == nil {
		return false
	}
	err := r.found.Next(r.dest)
	if err == nil {
		return true
	}
	if !errors.Is(err, io.EOF) {
		r.c.fail(err)
	}
	r.close()
	return false
}

// one goes to the first row and reports whether there is one. The others are not read; its values stay until the same query runs again.
func (r *rows) one() bool {
	found := r.next()
	r.close()
	return found
}

func (r *rows) close() {
	if r.found != nil {
		if err := r.found.Close(); err != nil {
			r.c.fail(err)
		}
		r.found = nil
	}
}

func (r *rows) int(i int) int64 {
	v, _ := r.dest[i].(int64)
	return v
}

func (r *rows) bool(i int) bool { return r.int(i) != 0 }

func (r *rows) text(i int) string {
	v, _ := r.dest[i].(string)
	return v
}

func (r *rows) bytes(i int) []byte {
	v, _ := r.dest[i].([]byte)
	return v
}

func (r *rows) null(i int) bool { return r.dest[i] == nil }

// id reads an id; the type is the caller's.
func (r *rows) id(i int) (id [12]byte) {
	copy(id[:], r.bytes(i))
	return id
}

// A span is the numbers from first to last.
type span struct{ first, last int64 }

// spans returns numbers, which it sorts, as spans if those are long enough to be worth it, and whether they are: a span is read row by row,
// while each number of a list is looked up, which takes some two microseconds more. Tasks that are claimed or end together mostly
// were made together, and have numbers that follow each other.
func spans(ns []int64) ([]span, bool) {
	slices.Sort(ns)
	var found []span
	for _, n := range ns {
		if k := len(found) - 1; k >= 0 && n <= found[k].last+1 {
			found[k].last = n
		} else if found = append(found, span{n, n}); len(found) > 1+len(ns)/longSpan {
			return nil, false
		}
	}
	return found, true
}

const longSpan = 8 // numbers in a span, on average, for which spans are worth it

// queryEach runs a query, which ends with the column that they are of, for numbers, which it sorts, and hands over each row.
func (c *conn) queryEach(text string, ns []int64, do func(*rows)) {
	found, ok := spans(ns)
	if !ok {
		for r := c.query(text+inList, list(ns)); r.next(); {
			do(r)
		}
	}
	for _, s := range found {
		for r := c.query(text+inSpan, s.first, s.last); r.next(); {
			do(r)
		}
	}
}

const (
	inSpan = " BETWEEN ? AND ?"
	inList = " IN (SELECT value FROM json_each(?))"
)

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
