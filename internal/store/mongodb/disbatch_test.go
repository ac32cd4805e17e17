package mongodb

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed-1177d267/sluice/plan"
)

// disbatch writes to a database as Disbatch 4's node and task runner do.
type disbatch struct{ tasks *mongo.Collection }

func (p disbatch) Register(ctx context.Context, node plan.NodeName) error {
	_, err := p.tasks.Database().Collection("nodes").UpdateOne(ctx, d("node", node), d("$currentDate", d("timestamp", true)), options.UpdateOne().SetUpsert(true))
	return err
}

func (p disbatch) Insert(ctx context.Context, q plan.QueueID, params json.RawMessage, minusOne bool) (plan.TaskID, error) {
	var doc bson.D
	if err := bson.UnmarshalExtJSON(params, false, &doc); err != nil {
		return plan.TaskID{}, err
	}
	var node any
	if minusOne {
		node = -1
	}
	id := bson.NewObjectID()
	_, err := p.tasks.InsertOne(ctx, d("_id", id, "queue", bson.ObjectID(q.ID), "status", -2, "node", node, "params", doc, "stdout", nil, "stderr", nil))
	if err == nil {
		_, err = p.tasks.UpdateByID(ctx, id, d("$currentDate", d("ctime", true, "mtime", true)))
	}
	return plan.TaskID{ID: plan.ID(id)}, err
}

func (p disbatch) Claim(ctx context.Context, q plan.QueueID, node plan.NodeName) (plan.TaskID, bool, error) {
	var task struct {
		ID bson.ObjectID `bson:"_id"`
	}
	err := p.tasks.FindOneAndUpdate(ctx,
		d("node", d("$in", bson.A{nil, -1}), "status", -2, "queue", bson.ObjectID(q.ID)),
		d("$set", d("node", node, "status", -1), "$currentDate", d("mtime", true)),
		options.FindOneAndUpdate().SetSort(d("_id", 1))).Decode(&task)
	if errors.Is(err, mongo.ErrNoDocuments) {
		return plan.TaskID{}, false, nil
	}
	return plan.TaskID{ID: plan.ID(task.ID)}, err == nil, err
}

func (p disbatch) Params(ctx context.Context, id plan.TaskID) (json.RawMessage, error) {
	var task struct {
		Params bson.D `bson:"params"`
	}
	if err := p.tasks.FindOne(ctx, d("_id", bson.ObjectID(id.ID))).Decode(&task); err != nil {
		return nil, err
	}
	return bson.MarshalExtJSON(task.Params, false, false)
}

func (p disbatch) Start(ctx context.Context, id plan.TaskID, node plan.NodeName) (bool, error) {
	return p.update(ctx, d("_id", bson.ObjectID(id.ID), "node", node, "status", -1), d("status", 0))
}

func (p disbatch) End(ctx context.Context, id plan.TaskID, node plan.NodeName, s plan.Status) (bool, error) {
	return p.update(ctx, d("_id", bson.ObjectID(id.ID), "node", node, "status", 0), d("status", s))
}

func (p disbatch) Output(ctx context.Context, id plan.TaskID, stdout, stderr string) error {
	_, err := p.update(ctx, d("_id", bson.ObjectID(id.ID)), d("stdout", stdout, "stderr", stderr, "complete", true))
	return err
}

func (p disbatch) Orphan(ctx context.Context, node plan.NodeName) (int, error) {
	var hello struct {
		LocalTime time.Time `bson:"localTime"`
	}
	if err := p.tasks.Database().RunCommand(ctx, d("hello", 1)).Decode(&hello); err != nil {
		return 0, err
	}
	res, err := p.tasks.UpdateMany(ctx, d("node", node, "status", -1, "mtime", d("$lt", hello.LocalTime.Add(-5*time.Minute))),
		d("$set", d("status", -6), "$currentDate", d("mtime", true)))
	if err != nil {
		return 0, err
	}
	return int(res.ModifiedCount), nil
}

// update sets fields of the task that matches and reports whether one did. Disbatch's task runner never writes mtime: the field keeps
// the time of the claim.
func (p disbatch) update(ctx context.Context, filter, set bson.D) (bool, error) {
	res, err := p.tasks.UpdateOne(ctx, filter, d("$set", set))
	if err != nil {
		return false, err
	}
	return res.MatchedCount == 1, nil
}
