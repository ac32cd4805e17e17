// Package disbatchtest acts on a MongoDB database as the programs of Disbatch do. Tests use it to
// show that Sluice can share a database with these. It follows Disbatch's two documents and the
// behaviour of the real programs beyond them. It knows their fields and nothing of plans. Like
// them, it uses only documents, and its own clock.
package disbatchtest

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// The status codes that these programs write.
const (
	Orphaned  = -6
	Held      = -4 // Sluice's: they have no such tasks
	Queued    = -2
	Claimed   = -1
	Running   = 0
	Succeeded = 1
	Failed    = 2
)

// A Database is one that these programs share.
type Database struct {
	db                   *mongo.Database
	nodes, queues, tasks *mongo.Collection
}

// Open connects to a database of a server.
func Open(uri, database string) (*Database, error) {
	client, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		return nil, err
	}
	db := client.Database(database)
	return &Database{db, db.Collection("nodes"), db.Collection("queues"), db.Collection("tasks")}, nil
}

// Close disconnects.
func (d *Database) Close(ctx context.Context) error { return d.db.Client().Disconnect(ctx) }

// Drop removes the database.
func (d *Database) Drop(ctx context.Context) error { return d.db.Drop(ctx) }

// EnsureIndexes makes the indexes that a node of Disbatch 4 makes as it starts.
func (d *Database) EnsureIndexes(ctx context.Context) error {
	up := func(keys ...string) (doc bson.D) {
		for _, k := range keys {
			doc = append(doc, bson.E{Key: k, Value: 1})
		}
		return doc
	}
	make := func(c *mongo.Collection, models ...mongo.IndexModel) error {
		return again(func() error {
			_, err := c.Indexes().CreateMany(ctx, models)
			return err
		})
	}
	return errors.Join(
		make(d.tasks, mongo.IndexModel{Keys: up("node", "status", "queue")}, mongo.IndexModel{Keys: up("node", "status", "queue", "_id")},
			mongo.IndexModel{Keys: append(up("node", "status", "queue"), bson.E{Key: "_id", Value: -1})}, mongo.IndexModel{Keys: up("queue", "status")}),
		make(d.queues, mongo.IndexModel{Keys: up("name"), Options: options.Index().SetUnique(true)}),
		make(d.nodes, mongo.IndexModel{Keys: up("node"), Options: options.Index().SetUnique(true)}),
	)
}

// A Queue is what a node reads of one.
type Queue struct {
	ID      bson.ObjectID `bson:"_id"`
	Threads *int          `bson:"threads"`
	Sort    string        `bson:"sort"`
}

// AddQueue creates a queue.
func (d *Database) AddQueue(ctx context.Context, name, plugin string, threads int) (Queue, error) {
	q := Queue{ID: bson.NewObjectID(), Threads: &threads, Sort: "fifo"}
	_, err := d.queues.InsertOne(ctx, bson.M{"_id": q.ID, "name": name, "plugin": plugin, "threads": threads, "sort": q.Sort})
	return q, err
}

// AddOldQueue makes a queue of the form of DEN 1.1: its _id is a text, its plugin a class, and it has no name.
func (d *Database) AddOldQueue(ctx context.Context, id, class string) error {
	_, err := d.queues.InsertOne(ctx, bson.M{"_id": id, "ctime": time.Now(), "class": class, "description": "Primary Migration", "maxthreads": 50})
	return err
}

// AddOldTask queues a task of the form of DEN 1.1, whose queue may be a text.
func (d *Database) AddOldTask(ctx context.Context, queue any, parameters bson.M) (bson.ObjectID, error) {
	id, now := bson.NewObjectID(), time.Now()
	_, err := d.tasks.InsertOne(ctx, bson.M{
		"_id": id, "queue": queue, "ctime": now, "mtime": now, "parameters": parameters, "stdout": "", "stderr": "", "status": Queued, "node": -1,
	})
	return id, err
}

// Queue reads a queue.
func (d *Database) Queue(ctx context.Context, name string) (q Queue, err error) {
	return q, d.queues.FindOne(ctx, bson.M{"name": name}).Decode(&q)
}

// AddTask queues a task; its node is null, as Disbatch 4 has it, or -1, as DEN 1.1.
func (d *Database) AddTask(ctx context.Context, q Queue, params bson.M, node any) (bson.ObjectID, error) {
	id, now := bson.NewObjectID(), time.Now()
	_, err := d.tasks.InsertOne(ctx, bson.M{
		"_id": id, "queue": q.ID, "status": Queued, "node": node, "params": params, "ctime": now, "mtime": now, "stdout": nil, "stderr": nil,
	})
	return id, err
}

// Task is what these programs read of a task, and what tests ask of it.
type Task struct {
	ID     bson.ObjectID `bson:"_id"`
	Name   string        `bson:"name"` // Sluice's
	Status int           `bson:"status"`
	Node   any           `bson:"node"`
	Params bson.Raw      `bson:"params"`
	Stdout any           `bson:"stdout"`

	Complete bool `bson:"complete"`
}

// Task reads a task.
func (d *Database) Task(ctx context.Context, id bson.ObjectID) (t Task, err error) {
	return t, d.tasks.FindOne(ctx, bson.M{"_id": id}).Decode(&t)
}

// Tasks reads the tasks of a queue.
func (d *Database) Tasks(ctx context.Context, q Queue) (all []Task, err error) {
	found, err := d.tasks.Find(ctx, bson.M{"queue": q.ID}, options.Find().SetSort(bson.M{"_id": 1}))
	if err != nil {
		return nil, err
	}
	return all, found.All(ctx, &all)
}

// Nodes counts the nodes that have registered.
func (d *Database) Nodes(ctx context.Context) (int, error) {
	n, err := d.nodes.CountDocuments(ctx, bson.M{})
	return int(n), err
}

// Active counts the tasks of a queue that are claimed or running.
func (d *Database) Active(ctx context.Context, q Queue) (int, error) {
	n, err := d.tasks.CountDocuments(ctx, bson.M{"queue": q.ID, "status": bson.M{"$in": bson.A{Claimed, Running}}})
	return int(n), err
}

// How a node claims.
const (
	FindOneAndUpdate = "findOneAndUpdate" // as Disbatch 4 says, and DEN 1.1 as its first way
	Update           = "update"           // DEN 1.1's second way: update, find, update
)

// A Node is a node and its task runner. Its writes are fenced as its documents say: by id, node and
// status, or not at all.
type Node struct {
	*Database
	Name   string
	Claims string // FindOneAndUpdate or Update
	Nobody bson.A // the nodes of tasks that it takes for nobody's: null, -1, or both, as the real ones
}

// Register says that the node is there.
func (n *Node) Register(ctx context.Context) error {
	return again(func() error {
		_, err := n.nodes.UpdateOne(ctx, bson.M{"node": n.Name}, bson.M{"$set": bson.M{"timestamp": time.Now()}}, options.UpdateOne().SetUpsert(true))
		return err
	})
}

// Room counts the running tasks of a queue, and reports whether they are fewer than its threads. It
// does not notice later claims of others.
func (n *Node) Room(ctx context.Context, q Queue) (bool, error) {
	active, err := n.Active(ctx, q)
	return q.Threads != nil && active < *q.Threads, err
}

// Claim takes a task of the queue, whatever else runs; false: there was none.
func (n *Node) Claim(ctx context.Context, q Queue) (bson.ObjectID, bool, error) {
	var t Task
	filter := bson.M{"queue": q.ID, "status": Queued, "node": bson.M{"$in": n.Nobody}}
	if n.Claims != Update {
		return found(&t, again(func() error {
			return n.tasks.FindOneAndUpdate(ctx, filter, set(bson.M{"node": n.Name, "status": Claimed}), options.FindOneAndUpdate().SetSort(bson.M{"_id": 1})).Decode(&t)
		}))
	}
	if is, err := n.update(ctx, filter, bson.M{"node": n.Name, "status": Claimed}); err != nil || !is {
		return t.ID, false, err
	}
	return found(&t, n.tasks.FindOne(ctx, bson.M{"queue": q.ID, "node": n.Name, "status": Claimed}).Decode(&t))
}

// Start has the task run. By Update it is the third step of a claim, which names the task alone; else it reports whether the task was still
// the node's.
func (n *Node) Start(ctx context.Context, id bson.ObjectID) (bool, error) {
	if n.Claims == Update {
		return n.update(ctx, bson.M{"_id": id}, bson.M{"status": Running})
	}
	return n.write(ctx, bson.M{"_id": id, "node": n.Name, "status": Claimed}, bson.M{"$set": bson.M{"status": Running}})
}

// End writes a final status, and no output yet; it reports whether the task was still the node's. Disbatch's task runner never writes
// mtime, here or in Output.
func (n *Node) End(ctx context.Context, id bson.ObjectID, status int) (bool, error) {
	return n.write(ctx, bson.M{"_id": id, "node": n.Name, "status": Running}, bson.M{"$set": bson.M{"status": status}})
}

// Output writes what the task printed, after End.
func (n *Node) Output(ctx context.Context, id bson.ObjectID, stdout, stderr string) error {
	_, err := n.write(ctx, bson.M{"_id": id}, bson.M{"$set": bson.M{"stdout": stdout, "stderr": stderr, "complete": true}})
	return err
}

// Conclude ends a task as DEN 1.1 has it: status and output in one write, which names the task alone.
func (n *Node) Conclude(ctx context.Context, id bson.ObjectID, status int, stdout, stderr string) error {
	_, err := n.update(ctx, bson.M{"_id": id}, bson.M{"status": status, "stdout": stdout, "stderr": stderr})
	return err
}

// Orphan gives up, with status -6, the tasks that anybody claimed under the node's name and that
// did not change for that long. Real nodes wait five minutes. Orphan returns the number of tasks.
func (n *Node) Orphan(ctx context.Context, after time.Duration) (orphaned int, err error) {
	err = again(func() error {
		res, err := n.tasks.UpdateMany(ctx, bson.M{"node": n.Name, "status": Claimed, "mtime": bson.M{"$lt": time.Now().Add(-after)}},
			set(bson.M{"status": Orphaned}))
		if err == nil {
			orphaned = int(res.ModifiedCount)
		}
		return err
	})
	return orphaned, err
}

// update sets fields and mtime of the task that matches, and reports whether one did.
func (n *Node) update(ctx context.Context, filter, fields bson.M) (is bool, err error) {
	return n.write(ctx, filter, set(fields))
}

// write updates the task that matches, and reports whether one did.
func (n *Node) write(ctx context.Context, filter, update bson.M) (is bool, err error) {
	err = again(func() error {
		res, err := n.tasks.UpdateOne(ctx, filter, update)
		is = err == nil && res.MatchedCount == 1
		return err
	})
	return is, err
}

func set(fields bson.M) bson.M {
	fields["mtime"] = time.Now()
	return bson.M{"$set": fields}
}

func found(t *Task, err error) (bson.ObjectID, bool, error) {
	if errors.Is(err, mongo.ErrNoDocuments) {
		return t.ID, false, nil
	}
	return t.ID, err == nil, err
}

// again repeats a command that a server on PostgreSQL ended, without effect, since it and others waited for each other.
func again(command func() error) (err error) {
	for range 20 {
		if err = command(); err == nil || !strings.Contains(err.Error(), "deadlock detected") {
			return err
		}
	}
	return err
}
