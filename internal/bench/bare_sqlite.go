package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
)

// bareSQLite is the least that claiming and finishing tasks costs on SQLite: a table with nothing in it that is not needed for that,
// one transaction a turn, sets of tasks in one statement each, WAL and full sync. It has no nodes, no fences worth the name, no outputs
// copied, no feed of changes, no plans.
type bareSQLite struct {
	dir  string
	db   *sql.DB
	conn *sql.Conn
}

const bareSchema = `
CREATE TABLE tasks(id INTEGER PRIMARY KEY, status INTEGER NOT NULL, waits INTEGER NOT NULL, token BLOB, output TEXT);
CREATE TABLE kids(parent INTEGER, child INTEGER, PRIMARY KEY(parent, child)) WITHOUT ROWID;
CREATE INDEX ready ON tasks(id) WHERE status = -2;`

func (b *bench) newBareSQLite(ctx context.Context) (*bareSQLite, error) {
	dir, err := b.newDir()
	if err != nil {
		return nil, err
	}
	r := &bareSQLite{dir: dir}
	pragmas := "?_pragma=page_size(8192)&_pragma=journal_mode(wal)&_pragma=synchronous(full)&_txlock=immediate"
	if r.db, err = sql.Open("sqlite", "file:"+filepath.ToSlash(filepath.Join(dir, "bare.db"))+pragmas); err != nil {
		return nil, err
	}
	if r.conn, err = r.db.Conn(ctx); err != nil {
		return nil, errors.Join(err, r.db.Close())
	}
	if _, err = r.conn.ExecContext(ctx, bareSchema); err != nil {
		return nil, errors.Join(err, r.close(ctx))
	}
	return r, nil
}

func (r *bareSQLite) close(context.Context) error {
	return errors.Join(r.conn.Close(), r.db.Close(), os.RemoveAll(r.dir))
}

// fill inserts the graph, 1,000 tasks a transaction.
func (r *bareSQLite) fill(ctx context.Context, g *graph) error {
	const chunk = 1000
	for first := 0; first < g.tasks(); first += chunk {
		err := r.transaction(ctx, func(tx *sql.Tx) error {
			task, err := tx.PrepareContext(ctx, "INSERT INTO tasks(id, status, waits) VALUES(?, ?, ?)")
			if err != nil {
				return err
			}
			kid, err := tx.PrepareContext(ctx, "INSERT INTO kids(parent, child) VALUES(?, ?)")
			if err != nil {
				return err
			}
			for i := first; i < min(first+chunk, g.tasks()); i++ {
				status := -2
				if len(g.needs[i]) > 0 {
					status = -4
				}
				if _, err := task.ExecContext(ctx, i, status, len(g.needs[i])); err != nil {
					return err
				}
				for _, p := range g.needs[i] {
					if _, err := kid.ExecContext(ctx, p, i); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *bareSQLite) transaction(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := r.conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// The statements of a turn. Each takes its set of tasks as one JSON array.
const (
	bareFinish  = `UPDATE tasks SET status = 1, output = ? WHERE id IN (SELECT value FROM json_each(?)) AND token = ?`
	bareRelease = `UPDATE tasks SET waits = waits - k.n, status = CASE WHEN waits = k.n THEN -2 ELSE status END
		FROM (SELECT child, count(*) AS n FROM json_each(?) AS ended JOIN kids ON kids.parent = ended.value GROUP BY child) AS k WHERE id = k.child`
	bareClaim = `UPDATE tasks SET status = 0, token = ? WHERE id IN (SELECT id FROM tasks WHERE status = -2 ORDER BY id LIMIT ?) RETURNING id`
)

// loop finishes what it claimed, releases what waited for it and claims up to batch tasks, in one transaction each time, until there
// are none. It returns how many it finished.
func (r *bareSQLite) loop(ctx context.Context, batch int) (int, error) {
	var statements [3]*sql.Stmt
	for i, text := range []string{bareFinish, bareRelease, bareClaim} {
		s, err := r.conn.PrepareContext(ctx, text)
		if err != nil {
			return 0, err
		}
		defer s.Close()
		statements[i] = s
	}
	var held []int
	var token [12]byte
	finished := 0
	for {
		err := r.transaction(ctx, func(tx *sql.Tx) error {
			if len(held) > 0 {
				set, err := json.Marshal(held)
				if err != nil {
					return err
				}
				if _, err := tx.StmtContext(ctx, statements[0]).ExecContext(ctx, string(smallOutput), string(set), token[:]); err != nil {
					return err
				}
				if _, err := tx.StmtContext(ctx, statements[1]).ExecContext(ctx, string(set)); err != nil {
					return err
				}
			}
			finished += len(held)
			held = held[:0]
			_, _ = rand.Read(token[:])
			rows, err := tx.StmtContext(ctx, statements[2]).QueryContext(ctx, token[:], batch)
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				var id int
				if err := rows.Scan(&id); err != nil {
					return err
				}
				held = append(held, id)
			}
			return rows.Err()
		})
		if err != nil || len(held) == 0 {
			return finished, err
		}
	}
}
