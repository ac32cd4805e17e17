package mongodb

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/seed-1177d267/sluice/plan"
)

// Servers on PostgreSQL end one of several commands that wait for each other crosswise. MongoDB never lets it come to that, and there
// these tests see that the counts are right.

// clashing opens a store that counts the answers in which the server tells it that a write clashed, and the same database without.
func clashing(t *testing.T) (s *Store, clashed *atomic.Int64, db *mongo.Database) {
	uri, db := database(t)
	clashed = &atomic.Int64{}
	note := func(text string) {
		if strings.Contains(text, "deadlock detected") || strings.Contains(text, "WriteConflict") {
			clashed.Add(1)
		}
	}
	s = openMonitored(t, uri, &event.CommandMonitor{
		Succeeded: func(_ context.Context, e *event.CommandSucceededEvent) { note(e.Reply.String()) },
		Failed:    func(_ context.Context, e *event.CommandFailedEvent) { note(e.Failure.Error()) },
	})
	return s, clashed, db
}

// onPostgreSQL reports whether the server is one that has deadlocks.
func onPostgreSQL(t *testing.T, s *Store) bool {
	var info bson.M
	if err := s.db.RunCommand(t.Context(), d("buildInfo", 1)).Decode(&info); err != nil {
		t.Fatal(err)
	}
	return info["ferretdb"] != nil
}

// fill inserts n documents with ascending ids.
func fill(t *testing.T, c *mongo.Collection, n int) []bson.ObjectID {
	t.Helper()
	ids, docs := make([]bson.ObjectID, n), make([]any, n)
	for i := range ids {
		ids[i] = bson.NewObjectID()
		docs[i] = d("_id", ids[i], "n", 0)
	}
	if _, err := c.InsertMany(t.Context(), docs); err != nil {
		t.Fatal(err)
	}
	return ids
}

// ring holds two documents crosswise: one command has changed the first and, a while later, goes for the second; another one the other
// way round. Who comes for the first document meanwhile stands between the two, and is the one whom the server ends, since it has waited
// longest. The fillers are what the two are busy with.
func ring(ctx context.Context, c *mongo.Collection, first, second bson.ObjectID, fillers []bson.ObjectID) {
	var wg sync.WaitGroup
	hold := func(from, to bson.ObjectID, busy []bson.ObjectID) {
		change := func(id bson.ObjectID) mongo.WriteModel {
			return mongo.NewUpdateOneModel().SetFilter(d("_id", id)).SetUpdate(d("$inc", d("held", 1)))
		}
		models := []mongo.WriteModel{change(from)}
		for _, id := range busy {
			models = append(models, change(id))
		}
		_, _ = c.BulkWrite(ctx, append(models, change(to))) // one of the two may be ended as well
	}
	wg.Go(func() { hold(first, second, fillers[:len(fillers)*2/3]) })
	wg.Go(func() { hold(second, first, fillers[len(fillers)*2/3:]) })
	wg.Wait()
}

func TestWritesGetThroughDeadlocks(t *testing.T) {
	id := plan.InstanceID{ID: plan.NewID(time.Now())}
	inc := d("$inc", d("n", 1))
	one := func(n int, is bool, err error) error {
		if err == nil && !is {
			err = fmt.Errorf("%d documents were changed, want 1", n)
		}
		return err
	}
	for name, write := range map[string]func(ctx context.Context, s *Store, c *mongo.Collection, doc bson.ObjectID) error{
		"one document is changed": func(ctx context.Context, s *Store, c *mongo.Collection, doc bson.ObjectID) error {
			is, err := s.updateOne(ctx, c, d("_id", doc), inc)
			return one(0, is, err)
		},
		"one document is changed or made": func(ctx context.Context, s *Store, c *mongo.Collection, doc bson.ObjectID) error {
			return s.upsert(ctx, c, d("_id", doc), inc)
		},
		"many documents are changed": func(ctx context.Context, s *Store, c *mongo.Collection, doc bson.ObjectID) error {
			n, err := s.updateMany(ctx, c, d("_id", d("$in", bson.A{doc, bson.NewObjectID()})), inc)
			return one(n, n == 1, err)
		},
		"documents are deleted": func(ctx context.Context, s *Store, c *mongo.Collection, doc bson.ObjectID) error {
			n, err := s.remove(ctx, c, d("_id", doc))
			return one(n, n == 1, err)
		},
		"a change in bulk": func(ctx context.Context, s *Store, c *mongo.Collection, doc bson.ObjectID) error {
			n, err := s.bulk(ctx, c, []change{{doc, d(), inc}})
			return one(n, n == 1, err)
		},
		"a beat": func(ctx context.Context, s *Store, _ *mongo.Collection, _ bson.ObjectID) error {
			_, err := s.Beat(ctx, plan.Beat{Instance: id})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, clashed, db := clashing(t)
			if err := s.Register(t.Context(), plan.Instance{ID: id, Node: "n1"}); err != nil {
				t.Fatal(err)
			}
			doc := oid(id.ID)
			ids := fill(t, s.instances, 3000)
			c := db.Collection("instances")
			for try := range 50 { // until the write comes while the ring is being closed, which on a busy machine it seldom does
				if err := upsertOne(t.Context(), c, d("_id", doc), d("$set", d("n", 0))); err != nil {
					t.Fatal(err)
				}
				var wg sync.WaitGroup
				wg.Go(func() { ring(t.Context(), c, doc, ids[0], ids[1:]) })
				time.Sleep(time.Duration(try%10+1) * 20 * time.Millisecond)
				if err := write(t.Context(), s, s.instances, doc); err != nil {
					t.Error(err)
				}
				wg.Wait()
				if clashed.Load() > 0 || t.Failed() {
					break
				}
			}
			if clashed.Load() == 0 && onPostgreSQL(t, s) {
				t.Error("nothing clashed: the test tests nothing")
			}
		})
	}
}

// TestBulksInOppositeOrdersMakeEachChangeOnce has two write the same documents, the one from the first on and the other from the last.
func TestBulksInOppositeOrdersMakeEachChangeOnce(t *testing.T) {
	for name, update := range map[string]func(i int) bson.D{
		"changes that differ":    func(i int) bson.D { return d("$inc", d("n", 1), "$set", d("i", i)) },
		"changes that are alike": func(int) bson.D { return d("$inc", d("n", 1)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, clashed, _ := clashing(t)
			c := s.db.Collection("contended")
			const docs, rounds = 300, 2
			ids := fill(t, c, docs)
			changes := make([]change, docs)
			for i, id := range ids {
				changes[i] = change{id, d("n", d("$gte", 0)), update(i)}
			}
			backwards := make([]batch, docs)
			for i := range changes {
				backwards[docs-1-i] = changes[i : i+1]
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var wg sync.WaitGroup
			for _, write := range []func() (int, []misfit, error){
				func() (int, []misfit, error) { return s.bulkEach(ctx, c, changes) },
				func() (int, []misfit, error) { return s.bulkWrite(ctx, c, slices.Clone(backwards), clashes) },
			} {
				wg.Go(func() {
					for range rounds {
						if n, _, err := write(); n != docs || err != nil {
							t.Errorf("%d documents were changed, %v; want %d", n, err, docs)
						}
					}
				})
			}
			wg.Wait()
			n, err := c.CountDocuments(t.Context(), d("n", 2*rounds))
			if err != nil || n != docs {
				t.Errorf("%d of %d documents were changed %d times, %v", n, docs, 2*rounds, err)
			}
			t.Logf("%d answers told of clashes", clashed.Load())
		})
	}
}

// TestInsertsThatClashAreMadeOnce has two insert documents of the same names under different ids, the one from the first on and the other
// from the last.
func TestInsertsThatClashAreMadeOnce(t *testing.T) {
	s, clashed, _ := clashing(t)
	const names = 20
	var wg sync.WaitGroup
	var inserted atomic.Int64
	for _, backwards := range []bool{false, true} {
		docs := make([]any, names)
		for i := range docs {
			docs[i] = d("_id", bson.NewObjectID(), "name", fmt.Sprint("q", i))
		}
		if backwards {
			slices.Reverse(docs)
		}
		wg.Go(func() {
			taken, err := s.insert(t.Context(), s.queues, docs...)
			if err != nil {
				t.Error(err)
			}
			inserted.Add(int64(names - taken))
		})
	}
	wg.Wait()
	n, err := s.queues.CountDocuments(t.Context(), d())
	if err != nil || n != names || inserted.Load() != names {
		t.Errorf("%d names are there, %v, and %d inserts say that they were made; want %d of both", n, err, inserted.Load(), names)
	}
	t.Logf("%d answers told of clashes", clashed.Load())
}

// TestARetryAfterAClashEndsWithItsContext has a write that clashes for ever.
func TestARetryAfterAClashEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	tried := 0
	err := withoutClash(ctx, func() error {
		if tried++; tried == 3 {
			cancel()
		}
		return mongo.CommandError{Code: codeWriteConflict}
	})
	if tried != 3 || err != context.Canceled {
		t.Errorf("it was tried %d times and ended with %v, want 3 and context.Canceled", tried, err)
	}
	tried = 0
	err = withoutClash(t.Context(), func() error {
		tried++
		return mongo.CommandError{Code: codeWriteConflict}
	})
	if tried != clashes || !isClash(err) {
		t.Errorf("it was tried %d times and ended with %v, want %d and the clash", tried, err, clashes)
	}
}

func TestWhatIsAClash(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"MongoDB's conflict":               {mongo.CommandError{Code: 112, Name: "WriteConflict"}, true},
		"the same of one of several":       {mongo.BulkWriteException{WriteErrors: []mongo.BulkWriteError{{WriteError: mongo.WriteError{Code: 112}}}}, true},
		"a deadlock of one of several":     {mongo.WriteException{WriteErrors: []mongo.WriteError{{Code: 16908292}}}, true},
		"a deadlock of a findAndModify":    {mongo.CommandError{Code: 1, Name: "InternalError", Message: "deadlock detected"}, true},
		"another error without a code":     {mongo.CommandError{Code: 1, Name: "InternalError", Message: "out of shared memory"}, false},
		"a key that is taken":              {mongo.WriteException{WriteErrors: []mongo.WriteError{{Code: 11000}}}, false},
		"an error that is not the servers": {context.DeadlineExceeded, false},
		"none":                             {nil, false},
	} {
		if got := isClash(c.err); got != c.want {
			t.Errorf("%s: isClash is %v, want %v", name, got, c.want)
		}
	}
}

// TestNodesOfOneNameRegisterAtOnce has many register a node that nobody has seen, which once made them wait for each other crosswise.
func TestNodesOfOneNameRegisterAtOnce(t *testing.T) {
	s, clashed, _ := clashing(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := s.Register(t.Context(), plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: "n1"}); err != nil {
				t.Error(err)
			}
			if err := s.SetMaxThreads(t.Context(), "n1", 3); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	n, err := s.nodes.CountDocuments(t.Context(), d("node", "n1", "maxthreads", 3))
	if err != nil || n != 1 || clashed.Load() > 0 {
		t.Errorf("%d documents of the node, %v, and %d clashes; want 1 and none", n, err, clashed.Load())
	}
}
