package main

import (
	"context"
	"errors"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

// bareMongoDB is the least cost of claiming and finishing tasks on MongoDB. Its documents have only
// the necessary fields. It has Disbatch's four indexes and one for children, a few commands a turn,
// majority and journal. It has no nodes, no copied outputs and no plans, and repairs nothing after
// a crash.
type bareMongoDB struct {
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

func (b *bench) newBareMongoDB(ctx context.Context) *bareMongoDB {
	uri := b.newMongoDB()
	client, db := rawMongoDB(uri, nil)
	r := &bareMongoDB{uri: uri, client: client, tasks: bareTasks(db), queues: 1}
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

func (r *bareMongoDB) close(ctx context.Context) {
	check(errors.Join(r.client.Disconnect(ctx), dropMongoDB(context.WithoutCancel(ctx), r.uri)))
}

// fill inserts the graph, 1,000 tasks a command.
func (r *bareMongoDB) fill(ctx context.Context, g *graph) {
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
		_ = must(r.tasks.InsertMany(ctx, docs))
	}
}

type bareTask struct {
	ID    int   `bson:"_id"`
	Needs []int `bson:"needs"`
}

// find returns the tasks that match, with one field.
func (r *bareMongoDB) find(ctx context.Context, filter bson.D, field string, o *options.FindOptionsBuilder) (found []bareTask) {
	check(must(r.tasks.Find(ctx, filter, o.SetProjection(doc(field, 1)))).All(ctx, &found))
	return found
}

// set gives the tasks of a set, as far as they match, new fields.
func (r *bareMongoDB) set(ctx context.Context, ids []int, filter, fields bson.D) {
	_ = must(r.tasks.UpdateMany(ctx, append(doc("_id", doc("$in", ids)), filter...), doc("$set", fields)))
}

func ids(tasks []bareTask) []int {
	all := make([]int, len(tasks))
	for i := range tasks {
		all[i] = tasks[i].ID
	}
	return all
}

// loop finishes its claims, releases their children and claims up to batch tasks, until there are
// none. It returns how many tasks it finished.
func (r *bareMongoDB) loop(ctx context.Context, batch int) (finished int) {
	var held []int
	for {
		if len(held) > 0 {
			r.set(ctx, held, doc("status", 0, "node", "bare"), doc("status", 1, "stdout", string(smallOutput), "complete", true))
			finished += len(held)
			r.release(ctx, held)
		}
		held = ids(r.find(ctx, doc("node", nil, "status", -2, "queue", 1), "_id", options.Find().SetSort(doc("_id", 1)).SetLimit(int64(batch))))
		if len(held) == 0 {
			return finished
		}
		token := bson.NewObjectID()
		r.set(ctx, held, doc("node", nil, "status", -2), doc("status", 0, "node", "bare", "token", token))
		held = ids(r.find(ctx, doc("_id", doc("$in", held), "token", token), "_id", options.Find()))
	}
}

// release queues the held children of what ended all of whose parents have finished.
func (r *bareMongoDB) release(ctx context.Context, ended []int) {
	children := r.find(ctx, doc("needs", doc("$in", ended), "status", -4), "needs", options.Find())
	if len(children) == 0 {
		return
	}
	var parents, ready []int
	for _, c := range children {
		parents = append(parents, c.Needs...)
	}
	slices.Sort(parents)
	done := ids(r.find(ctx, doc("_id", doc("$in", slices.Compact(parents)), "status", 1), "_id", options.Find()))
	slices.Sort(done)
	for _, c := range children {
		waits := func(p int) bool { _, finished := slices.BinarySearch(done, p); return !finished }
		if !slices.ContainsFunc(c.Needs, waits) {
			ready = append(ready, c.ID)
		}
	}
	if len(ready) > 0 {
		r.set(ctx, ready, doc("status", -4), doc("status", -2))
	}
}
