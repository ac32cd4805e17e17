package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// bareSQLite is the least cost of claiming and finishing tasks on SQLite. Its table has only the
// necessary columns. It has one transaction a turn, sets of tasks in one statement each, WAL and
// full sync. It has no nodes, almost no fencing, no copied outputs, no feed of changes and no
// plans.
type bareSQLite struct {
	dir string
	db  *sqlite.Conn
}

var bareSetUp = []string{
	"PRAGMA page_size = 8192", "PRAGMA journal_mode = wal", "PRAGMA synchronous = full",
	"CREATE TABLE tasks(id INTEGER PRIMARY KEY, status INTEGER NOT NULL, waits INTEGER NOT NULL, token BLOB, output TEXT)",
	"CREATE TABLE kids(parent INTEGER, child INTEGER, PRIMARY KEY(parent, child)) WITHOUT ROWID",
	"CREATE INDEX ready ON tasks(id) WHERE status = -2",
}

func (b *bench) newBareSQLite() *bareSQLite {
	r := &bareSQLite{dir: b.newDir()}
	r.db = must(sqlite.OpenConn(filepath.Join(r.dir, "bare.db"), sqlite.OpenReadWrite, sqlite.OpenCreate))
	for _, text := range bareSetUp {
		check(sqlitex.ExecuteTransient(r.db, text, nil))
	}
	return r
}

func (r *bareSQLite) close(context.Context) { check(errors.Join(r.db.Close(), os.RemoveAll(r.dir))) }

// fill inserts the graph, 1,000 tasks a transaction.
func (r *bareSQLite) fill(ctx context.Context, g *graph) {
	const chunk = 1000
	for first := 0; first < g.tasks(); first += chunk {
		check(ctx.Err())
		r.transact(func() {
			for i := first; i < min(first+chunk, g.tasks()); i++ {
				status := -2
				if len(g.needs[i]) > 0 {
					status = -4
				}
				r.exec("INSERT INTO tasks(id, status, waits) VALUES(?, ?, ?)", i, status, len(g.needs[i]))
				for _, p := range g.needs[i] {
					r.exec("INSERT INTO kids(parent, child) VALUES(?, ?)", p, i)
				}
			}
		})
	}
}

// transact does something in one transaction.
func (r *bareSQLite) transact(do func()) {
	commit := must(sqlitex.ImmediateTransaction(r.db))
	err := try(do)
	commit(&err)
	check(err)
}

// exec runs a statement, which is prepared once, with numbers.
func (r *bareSQLite) exec(text string, numbers ...int) {
	s := must(r.db.Prepare(text))
	for i, n := range numbers {
		s.BindInt64(i+1, int64(n))
	}
	_ = must(s.Step())
}

// The statements of a turn. Each takes its set of tasks as one JSON array.
const (
	bareFinish  = `UPDATE tasks SET status = 1, output = ? WHERE id IN (SELECT value FROM json_each(?)) AND token = ?`
	bareRelease = `UPDATE tasks SET waits = waits - k.n, status = CASE WHEN waits = k.n THEN -2 ELSE status END
		FROM (SELECT child, count(*) AS n FROM json_each(?) AS ended JOIN kids ON kids.parent = ended.value GROUP BY child) AS k WHERE id = k.child`
	bareClaim = `UPDATE tasks SET status = 0, token = ? WHERE id IN (SELECT id FROM tasks WHERE status = -2 ORDER BY id LIMIT ?) RETURNING id`
)

// loop finishes its claims, releases their children and claims up to batch tasks, in one
// transaction each time, until there are none. It returns how many tasks it finished.
func (r *bareSQLite) loop(ctx context.Context, batch int) (finished int) {
	var held []int64
	token := make([]byte, 12)
	for {
		check(ctx.Err())
		finished += len(held)
		if held = r.turn(held, token, batch); len(held) == 0 {
			return finished
		}
	}
}

// turn finishes the tasks that a token holds, replaces the token, and returns the tasks that it
// claimed with the next one.
func (r *bareSQLite) turn(held []int64, token []byte, batch int) (claimed []int64) {
	r.transact(func() {
		if len(held) > 0 {
			set := string(must(json.Marshal(held)))
			check(sqlitex.Execute(r.db, bareFinish, &sqlitex.ExecOptions{Args: []any{string(smallOutput), set, token}}))
			check(sqlitex.Execute(r.db, bareRelease, &sqlitex.ExecOptions{Args: []any{set}}))
		}
		_, _ = rand.Read(token)
		check(sqlitex.Execute(r.db, bareClaim, &sqlitex.ExecOptions{Args: []any{token, batch}, ResultFunc: func(s *sqlite.Stmt) error {
			claimed = append(claimed, s.ColumnInt64(0))
			return nil
		}}))
	})
	return claimed
}
