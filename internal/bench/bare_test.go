package bench

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// bare is the raw driver of a database with the least tables for claiming and finishing tasks: most
// figures have it as their peer.
type bare interface {
	fill(g *graph)                              // inserts the graph, 1,000 tasks at once
	turn(held []int, batch int) (claimed []int) // finishes tasks, releases their children, and claims
	close()
}

// bareInserts makes a bare database of the scenario's kind, and returns how long it took to insert
// the graph.
func (m *measurement) bareInserts(g *graph) (raw bare, took time.Duration) {
	if m.on == onMongoDB {
		raw = newBareMongoDB(m.Context())
	} else {
		raw = newBareSQLite(m.TempDir())
	}
	settle()
	start := time.Now()
	raw.fill(g)
	return raw, time.Since(start)
}

// bare makes the same inserts, claims, finishes and releases as a node that runs the graph. It
// returns how long each turn took.
func (m *measurement) bare(g *graph, batch int) (d drive, turns []time.Duration) {
	raw, took := m.bareInserts(g)
	defer raw.close()
	d.submitted = took
	settle()
	start := time.Now()
	for held := []int(nil); len(turns) == 0 || len(held) > 0; {
		check(m.Context().Err())
		began := time.Now()
		d.tasks += len(held)
		held = raw.turn(held, batch)
		turns = append(turns, time.Since(began))
	}
	d.took = time.Since(start)
	if d.tasks != g.tasks() {
		failf("the bare driver finished %d of %d tasks", d.tasks, g.tasks())
	}
	return d, turns
}

// bareSQLite has one transaction a turn, sets of tasks in one statement each, WAL and full sync. It
// has no nodes, almost no fencing, no copied outputs, no feed of changes and no plans.
type bareSQLite struct {
	db    *sqlite.Conn
	token []byte
}

var bareSetUp = []string{
	"PRAGMA page_size = 8192", "PRAGMA journal_mode = wal", "PRAGMA synchronous = full",
	"CREATE TABLE tasks(id INTEGER PRIMARY KEY, status INTEGER NOT NULL, waits INTEGER NOT NULL, token BLOB, output TEXT)",
	"CREATE TABLE kids(parent INTEGER, child INTEGER, PRIMARY KEY(parent, child)) WITHOUT ROWID",
	"CREATE INDEX ready ON tasks(id) WHERE status = -2",
}

func newBareSQLite(dir string) *bareSQLite {
	r := &bareSQLite{must(sqlite.OpenConn(filepath.Join(dir, "bare.db"), sqlite.OpenReadWrite, sqlite.OpenCreate)), make([]byte, 12)}
	for _, text := range bareSetUp {
		check(sqlitex.ExecuteTransient(r.db, text, nil))
	}
	return r
}

func (r *bareSQLite) close() { check(r.db.Close()) }

func (r *bareSQLite) fill(g *graph) {
	const chunk = 1000
	for first := 0; first < g.tasks(); first += chunk {
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

func (r *bareSQLite) turn(held []int, batch int) (claimed []int) {
	r.transact(func() {
		if len(held) > 0 {
			set := string(must(json.Marshal(held)))
			check(sqlitex.Execute(r.db, bareFinish, &sqlitex.ExecOptions{Args: []any{string(smallOutput), set, r.token}}))
			check(sqlitex.Execute(r.db, bareRelease, &sqlitex.ExecOptions{Args: []any{set}}))
		}
		_, _ = rand.Read(r.token)
		check(sqlitex.Execute(r.db, bareClaim, &sqlitex.ExecOptions{Args: []any{r.token, batch}, ResultFunc: func(s *sqlite.Stmt) error {
			claimed = append(claimed, int(s.ColumnInt64(0)))
			return nil
		}}))
	})
	return claimed
}

// bareMongoDB has documents of only the necessary fields, Disbatch's four indexes and one for
// children, a few commands a turn, majority and journal. It has no nodes, no copied outputs and no
// plans, and repairs nothing after a crash.
type bareMongoDB struct {
	ctx    context.Context
	uri    string
	client *mongo.Client
	tasks  *mongo.Collection
	queues int // among which fill deals out the tasks: from 1
}

// doc makes a document of keys and values in turn.
func doc(pairs ...any) bson.D {
	d := make(bson.D, 0, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		d = append(d, bson.E{Key: pairs[i].(string), Value: pairs[i+1]})
	}
	return d
}

// bareTasks is the collection of tasks, whose writes are as safe as Sluice's.
func bareTasks(db *mongo.Database) *mongo.Collection {
	journaled := true
	return db.Collection("tasks", options.Collection().
		SetWriteConcern(&writeconcern.WriteConcern{W: "majority", Journal: &journaled}).SetReadPreference(readpref.Primary()))
}

func newBareMongoDB(ctx context.Context) *bareMongoDB {
	uri := newMongoDB()
	client, db := rawMongoDB(uri, nil)
	r := &bareMongoDB{ctx, uri, client, bareTasks(db), 1}
	up, down := 1, -1
	_ = must(r.tasks.Indexes().CreateMany(ctx, []mongo.IndexModel{
		{Keys: doc("node", up, "status", up, "queue", up)},
		{Keys: doc("node", up, "status", up, "queue", up, "_id", up)},
		{Keys: doc("node", up, "status", up, "queue", up, "_id", down)},
		{Keys: doc("queue", up, "status", up)},
		{Keys: doc("needs", up), Options: options.Index().SetPartialFilterExpression(doc("status", -4))},
	}))
	return r
}

func (r *bareMongoDB) close() {
	check(errors.Join(r.client.Disconnect(r.ctx), dropMongoDB(context.WithoutCancel(r.ctx), r.uri)))
}

func (r *bareMongoDB) fill(g *graph) {
	const chunk = 1000
	for first := 0; first < g.tasks(); first += chunk {
		var docs []any
		for i := first; i < min(first+chunk, g.tasks()); i++ {
			queue := 1 + i%r.queues
			d := doc("_id", i, "queue", queue, "node", nil, "status", -2)
			if len(g.needs[i]) > 0 {
				d = doc("_id", i, "queue", queue, "node", nil, "status", -4, "needs", g.needs[i])
			}
			docs = append(docs, d)
		}
		_ = must(r.tasks.InsertMany(r.ctx, docs))
	}
}

type bareTask struct {
	ID    int   `bson:"_id"`
	Needs []int `bson:"needs"`
}

// find returns the tasks that match, with one field.
func (r *bareMongoDB) find(filter bson.D, field string, o *options.FindOptionsBuilder) (found []bareTask) {
	check(must(r.tasks.Find(r.ctx, filter, o.SetProjection(doc(field, 1)))).All(r.ctx, &found))
	return found
}

// set gives the tasks of a set, as far as they match, new fields.
func (r *bareMongoDB) set(ids []int, filter, fields bson.D) {
	_ = must(r.tasks.UpdateMany(r.ctx, append(doc("_id", doc("$in", ids)), filter...), doc("$set", fields)))
}

func ids(tasks []bareTask) []int {
	all := make([]int, len(tasks))
	for i := range tasks {
		all[i] = tasks[i].ID
	}
	return all
}

func (r *bareMongoDB) turn(held []int, batch int) (claimed []int) {
	if len(held) > 0 {
		r.set(held, doc("status", 0, "node", "bare"), doc("status", 1, "stdout", string(smallOutput), "complete", true))
		r.release(held)
	}
	free := ids(r.find(doc("node", nil, "status", -2, "queue", 1), "_id", options.Find().SetSort(doc("_id", 1)).SetLimit(int64(batch))))
	if len(free) == 0 {
		return nil
	}
	token := bson.NewObjectID()
	r.set(free, doc("node", nil, "status", -2), doc("status", 0, "node", "bare", "token", token))
	return ids(r.find(doc("_id", doc("$in", free), "token", token), "_id", options.Find()))
}

// release queues the held children of what ended all of whose parents have finished.
func (r *bareMongoDB) release(ended []int) {
	children := r.find(doc("needs", doc("$in", ended), "status", -4), "needs", options.Find())
	if len(children) == 0 {
		return
	}
	var parents, ready []int
	for _, c := range children {
		parents = append(parents, c.Needs...)
	}
	slices.Sort(parents)
	done := ids(r.find(doc("_id", doc("$in", slices.Compact(parents)), "status", 1), "_id", options.Find()))
	slices.Sort(done)
	for _, c := range children {
		waits := func(p int) bool { _, finished := slices.BinarySearch(done, p); return !finished }
		if !slices.ContainsFunc(c.Needs, waits) {
			ready = append(ready, c.ID)
		}
	}
	if len(ready) > 0 {
		r.set(ready, doc("status", -4), doc("status", -2))
	}
}
