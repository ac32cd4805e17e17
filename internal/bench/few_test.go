package bench

import (
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"golang.org/x/sync/errgroup"
)

// The scenarios of this file run few tasks at a time, so that a task takes as long as its commands do.

func fewScenarios() (all []scenario) {
	for _, threads := range []int{1, 8, 16} {
		all = append(all, scenario{fmt.Sprintf("few/mongodb/%d", threads), onMongoDB, func(m *measurement) {
			n := size(250*min(threads, 4), 50)
			m.repeat(func() {
				ours := m.drainedBy(threads, n, noops(), 0)
				m.pair("tasks", "tasks/s", perSecond(n, ours), "plain loop", perSecond(n, m.plainLoop(threads, n)))
				m.note("%d tasks of no plan", n)
			})
		}})
	}
	return all
}

// looksEach is with which task of a thread each time a plain loop looks at its queue.
const looksEach = 10

// plainLoop returns how long threads take to run n tasks as a node of Disbatch does, one at a time each: one command claims the oldest task,
// one says that it runs, and one says how it ended. It has no plans, and nobody finds what it leaves if it dies.
func (m *measurement) plainLoop(threads, n int) time.Duration {
	db := m.open() // for its indexes
	defer db.close()
	ofNoPlan("noop", nil)(m.Context(), db, n, time.Time{})
	client, raw := rawMongoDB(db.uri, nil)
	defer func() { check(client.Disconnect(m.Context())) }()
	tasks, queues := bareTasks(raw), raw.Collection("queues")
	var queue struct {
		ID bson.ObjectID `bson:"_id"`
	}
	check(queues.FindOne(m.Context(), doc("name", "noop")).Decode(&queue))
	settle()
	var g errgroup.Group
	start := time.Now()
	for range threads {
		g.Go(func() error {
			for i := 0; ; i++ {
				if i%looksEach == 0 {
					if err := queues.FindOne(m.Context(), doc("name", "noop")).Err(); err != nil {
						return err
					}
				}
				var t struct {
					ID bson.ObjectID `bson:"_id"`
				}
				now := doc("mtime", true)
				err := tasks.FindOneAndUpdate(m.Context(), doc("node", nil, "status", -2, "queue", queue.ID),
					doc("$set", doc("node", "plain", "status", -1), "$currentDate", now),
					options.FindOneAndUpdate().SetSort(doc("_id", 1)).SetProjection(doc("params", 1))).Decode(&t)
				if errors.Is(err, mongo.ErrNoDocuments) {
					return nil
				}
				if err != nil {
					return err
				}
				this := doc("_id", t.ID, "node", "plain")
				if _, err = tasks.UpdateOne(m.Context(), this, doc("$set", doc("status", 0), "$currentDate", now)); err != nil {
					return err
				}
				ended := doc("status", 1, "stdout", "", "stderr", "", "complete", true)
				if _, err = tasks.UpdateOne(m.Context(), this, doc("$set", ended, "$currentDate", now)); err != nil {
					return err
				}
			}
		})
	}
	check(g.Wait())
	took := time.Since(start)
	if ended := must(tasks.CountDocuments(m.Context(), doc("status", 1))); ended != int64(n) {
		failf("the plain loop ended %d of %d tasks", ended, n)
	}
	return took
}
