package main

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed-1177d267/sluice/plan"
)

// A lookout watches a database from outside, through the driver itself, because a handle of ours
// would make requests of its own.
type lookout struct {
	client *mongo.Client
	db     *mongo.Database
}

func newLookout(uri string) *lookout {
	client, db, err := rawMongoDB(uri, nil)
	check(err)
	return &lookout{client, db}
}

func (l *lookout) close(ctx context.Context) { check(l.client.Disconnect(context.WithoutCancel(ctx))) }

// lookEvery is how often a lookout looks. Its questions go to the same server.
const lookEvery = 20 * time.Millisecond

// over waits a moment and reports whether the plan has ended.
func (l *lookout) over(ctx context.Context, id plan.PlanID) bool {
	pause(ctx, lookEvery)
	var p struct {
		State plan.Lifecycle `bson:"state"`
	}
	check(l.db.Collection("plans").FindOne(ctx, doc("_id", bson.ObjectID(id.ID)), options.FindOne().SetProjection(doc("state", 1))).Decode(&p))
	return p.State.Ended()
}

// An activeTask is one that is claimed or running.
type activeTask struct {
	ID    bson.ObjectID `bson:"_id"`
	Queue bson.ObjectID `bson:"queue"`
	Node  plan.NodeName `bson:"node"`
}

// active returns the tasks of a status.
func (l *lookout) active(ctx context.Context, statuses ...plan.Status) (found []activeTask) {
	cursor := must(l.db.Collection("tasks").Find(ctx, doc("status", doc("$in", statuses)), options.Find().SetProjection(doc("queue", 1, "node", 1))))
	check(cursor.All(ctx, &found))
	return found
}

// mostActive returns how many tasks are claimed or running in the queue that has most.
func (l *lookout) mostActive(ctx context.Context) (most int) {
	byQueue := map[bson.ObjectID]int{}
	for _, t := range l.active(ctx, plan.Claimed, plan.Running) {
		byQueue[t.Queue]++
		most = max(most, byQueue[t.Queue])
	}
	return most
}
