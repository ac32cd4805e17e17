package main

import (
	"context"
	"errors"

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

func (b *bench) newBareMongoDB(ctx context.Context) (*bareMongoDB, error) {
	uri, err := b.newMongoDB()
	if err != nil {
		return nil, err
	}
	client, db, err := rawMongoDB(uri, nil)
	if err != nil {
		return nil, err
	}
	r := &bareMongoDB{uri: uri, client: client, tasks: bareTasks(db), queues: 1}
	up, down := 1, -1
	_, err = r.tasks.Indexes().CreateMany(ctx, []mongo.IndexModel{
		{Keys: doc("node", up, "status", up, "queue", up)},
		{Keys: doc("node", up, "status", up, "queue", up, "_id", up)},
		{Keys: doc("node", up, "status", up, "queue", up, "_id", down)},
		{Keys: doc("queue", up, "status", up)},
		{Keys: doc("needs", up), Options: options.Index().SetPartialFilterExpression(doc("status", -4))},
	})
	if err != nil {
		return nil, errors.Join(err, r.close(ctx))
	}
	return r, nil
}

func (r *bareMongoDB) close(ctx context.Context) error {
	return errors.Join(r.client.Disconnect(ctx), dropMongoDB(context.WithoutCancel(ctx), r.uri))
}

// fill inserts the graph, 1,000 tasks a command.
func (r *bareMongoDB) fill(ctx context.Context, g *graph) error {
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
		if _, err := r.tasks.InsertMany(ctx, docs); err != nil {
			return err
		}
	}
	return nil
}

type bareTask struct {
	ID    int   `bson:"_id"`
	Needs []int `bson:"needs"`
}

// find returns the tasks that match, with the fields asked for.
func (r *bareMongoDB) find(ctx context.Context, filter bson.D, o *options.FindOptionsBuilder) ([]bareTask, error) {
	cursor, err := r.tasks.Find(ctx, filter, o)
	if err != nil {
		return nil, err
	}
	var found []bareTask
	return found, cursor.All(ctx, &found)
}

// set gives the tasks of a set, as far as they match, new fields.
func (r *bareMongoDB) set(ctx context.Context, ids []int, filter, fields bson.D) error {
	_, err := r.tasks.UpdateMany(ctx, append(doc("_id", doc("$in", ids)), filter...), doc("$set", fields))
	return err
}

// loop finishes its claims, releases their children and claims up to batch tasks, until there are
// none. It returns how many tasks it finished.
func (r *bareMongoDB) loop(ctx context.Context, batch int) (int, error) {
	var held []int
	finished := 0
	for {
		if len(held) > 0 {
			if err := r.set(ctx, held, doc("status", 0, "node", "bare"), doc("status", 1, "stdout", string(smallOutput), "complete", true)); err != nil {
				return finished, err
			}
			finished += len(held)
			if err := r.release(ctx, held); err != nil {
				return finished, err
			}
		}
		candidates, err := r.find(ctx, doc("node", nil, "status", -2, "queue", 1),
			options.Find().SetSort(doc("_id", 1)).SetLimit(int64(batch)).SetProjection(doc("_id", 1)))
		if err != nil || len(candidates) == 0 {
			return finished, err
		}
		held = held[:0]
		for _, c := range candidates {
			held = append(held, c.ID)
		}
		token := bson.NewObjectID()
		if err := r.set(ctx, held, doc("node", nil, "status", -2), doc("status", 0, "node", "bare", "token", token)); err != nil {
			return finished, err
		}
		mine, err := r.find(ctx, doc("_id", doc("$in", held), "token", token), options.Find().SetProjection(doc("_id", 1)))
		if err != nil {
			return finished, err
		}
		held = held[:0]
		for _, c := range mine {
			held = append(held, c.ID)
		}
	}
}

// release queues the held children of what ended all of whose parents have finished.
func (r *bareMongoDB) release(ctx context.Context, ended []int) error {
	children, err := r.find(ctx, doc("needs", doc("$in", ended), "status", -4), options.Find().SetProjection(doc("needs", 1)))
	if err != nil || len(children) == 0 {
		return err
	}
	var parents []int
	asked := map[int]bool{}
	for _, c := range children {
		for _, p := range c.Needs {
			if !asked[p] {
				asked[p] = true
				parents = append(parents, p)
			}
		}
	}
	done, err := r.find(ctx, doc("_id", doc("$in", parents), "status", 1), options.Find().SetProjection(doc("_id", 1)))
	if err != nil {
		return err
	}
	finished := make(map[int]bool, len(done))
	for _, d := range done {
		finished[d.ID] = true
	}
	var ready []int
	for _, c := range children {
		waits := false
		for _, p := range c.Needs {
			waits = waits || !finished[p]
		}
		if !waits {
			ready = append(ready, c.ID)
		}
	}
	if len(ready) == 0 {
		return nil
	}
	return r.set(ctx, ready, doc("status", -4), doc("status", -2))
}
