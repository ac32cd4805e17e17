package mongodb

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

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

// A refuser stands before a store's server. It answers the next writes as a server does that ends one of several commands which wait for
// each other crosswise: such a write is not made. It passes on everything else.
type refuser struct {
	answer bson.D       // to a write
	left   atomic.Int32 // how many writes it refuses still
}

// serve passes on what one connection asks to the server. A connection asks one thing at a time.
func (r *refuser) serve(t *testing.T, c net.Conn, server string) {
	defer c.Close()
	to, err := net.Dial("tcp", server)
	if err != nil {
		t.Error(err)
		return
	}
	defer to.Close()
	go func() { _, _ = io.Copy(c, to) }()
	for {
		head := make([]byte, 16)
		if _, err := io.ReadFull(c, head); err != nil {
			return
		}
		size, id, _, opcode, _, _ := wiremessage.ReadHeader(head)
		body := make([]byte, size-16)
		if _, err := io.ReadFull(c, body); err != nil {
			return
		}
		if opcode == wiremessage.OpMsg && isWrite(body[5:]) && r.left.Add(-1) >= 0 { // after the flags and the kind of its first section
			_, err = c.Write(reply(id, r.answer))
		} else {
			_, err = to.Write(append(head, body...))
		}
		if err != nil {
			return
		}
	}
}

// isWrite reports whether a command, which is the first document of the text, writes.
func isWrite(text []byte) bool {
	command, _, ok := bsoncore.ReadDocument(text)
	if !ok {
		return false
	}
	first, err := command.IndexErr(0)
	return err == nil && slices.Contains([]string{"insert", "update", "delete", "findAndModify"}, first.Key())
}

// reply is a server's message with the answer to the one of that id.
func reply(id int32, answer bson.D) []byte {
	doc, err := bson.Marshal(answer)
	if err != nil {
		panic(err) // there is nothing in an answer that BSON has not
	}
	at, message := wiremessage.AppendHeaderStart(nil, wiremessage.NextRequestID(), id, wiremessage.OpMsg)
	message = wiremessage.AppendMsgFlags(message, 0)
	message = append(wiremessage.AppendMsgSectionType(message, wiremessage.SingleDocument), doc...)
	return bsoncore.UpdateLength(message, at, int32(len(message)))
}

func TestAWriteThatIsRefusedForADeadlockIsMadeOnceMore(t *testing.T) {
	uri, db := database(t)
	hosts := options.Client().ApplyURI(uri).Hosts
	r := &refuser{}
	before := serve(t, func(c net.Conn) { r.serve(t, c, hosts[0]) })
	s := openAt(t, strings.Replace(uri, strings.Join(hosts, ","), before, 1)+"?directConnection=true&retryWrites=false")
	id := plan.InstanceID{ID: plan.NewID(time.Now())}
	if err := s.Register(t.Context(), plan.Instance{ID: id, Node: "n1"}); err != nil {
		t.Fatal(err)
	}
	inc := d("$inc", d("n", 1))
	one := func(n int, is bool, err error) error {
		if err == nil && !is {
			err = fmt.Errorf("%d documents were changed, want 1", n)
		}
		return err
	}
	c := s.DB.Collection("refused")
	writes := map[string]struct {
		make func(ctx context.Context, doc bson.ObjectID) error
		want bson.M // that there is afterwards of a document with n 0, nil: none
	}{
		"one document is changed": {func(ctx context.Context, doc bson.ObjectID) error {
			is, err := s.UpdateOne(ctx, c, d("_id", doc), inc)
			return one(0, is, err)
		}, bson.M{"n": int32(1)}},
		"one document is changed or made": {func(ctx context.Context, doc bson.ObjectID) error {
			return s.Upsert(ctx, c, d("_id", doc), inc)
		}, bson.M{"n": int32(1)}},
		"many documents are changed": {func(ctx context.Context, doc bson.ObjectID) error {
			n, err := s.UpdateMany(ctx, c, d("_id", d("$in", bson.A{doc, bson.NewObjectID()})), inc)
			return one(n, n == 1, err)
		}, bson.M{"n": int32(1)}},
		"documents are deleted": {func(ctx context.Context, doc bson.ObjectID) error {
			n, err := s.Remove(ctx, c, d("_id", doc))
			return one(n, n == 1, err)
		}, nil},
		"a change in bulk": {func(ctx context.Context, doc bson.ObjectID) error {
			n, err := s.Bulk(ctx, c, []wire.Change{{ID: doc, Where: d(), Update: inc}})
			return one(n, n == 1, err)
		}, bson.M{"n": int32(1)}},
		"a document is inserted beside one that is there": {func(ctx context.Context, doc bson.ObjectID) error {
			taken, err := s.Insert(ctx, c, d("_id", doc, "n", 9), d("_id", bson.NewObjectID()))
			return one(taken, taken == 1, err)
		}, bson.M{"n": int32(0)}},
		"a beat": {func(ctx context.Context, _ bson.ObjectID) error {
			_, err := s.Beat(ctx, protocol.Beat{Instance: id})
			return err
		}, bson.M{"n": int32(0)}},
	}
	for said, answer := range map[string]bson.D{
		"by MongoDB":                       d("ok", 0, "code", 112, "codeName", "WriteConflict", "errmsg", "Write conflict"),
		"by PostgreSQL":                    d("ok", 0, "code", 1, "codeName", "InternalError", "errmsg", "deadlock detected"),
		"by PostgreSQL, as one of several": d("ok", 1, "n", 0, "nModified", 0, "writeErrors", bson.A{d("index", 0, "code", 16908292, "errmsg", "deadlock detected")}),
	} {
		for name, write := range writes {
			t.Run(name+" "+said, func(t *testing.T) {
				doc := bson.NewObjectID()
				if _, err := db.Collection("refused").InsertOne(t.Context(), d("_id", doc, "n", 0)); err != nil {
					t.Fatal(err)
				}
				r.answer = answer
				r.left.Store(3)
				err := write.make(t.Context(), doc)
				if left := r.left.Swap(0); err != nil || left >= 0 {
					t.Errorf("it ended with %v, and %d writes that were to be refused were not made", err, left)
				}
				got, err := wire.FindOne[bson.M](t.Context(), db.Collection("refused"), d("_id", doc), wire.Query{})
				switch {
				case err != nil:
					t.Error(err)
				case (got == nil) != (write.want == nil), got != nil && (*got)["n"] != write.want["n"]:
					t.Errorf("there is %v, want %v", got, write.want)
				}
			})
		}
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
			c := s.DB.Collection("contended")
			const docs, rounds = 300, 2
			ids := fill(t, c, docs)
			changes := make([]wire.Change, docs)
			for i, id := range ids {
				changes[i] = wire.Change{ID: id, Where: d("n", d("$gte", 0)), Update: update(i)}
			}
			backwards := slices.Clone(changes)
			slices.Reverse(backwards)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			var wg sync.WaitGroup
			for _, write := range []func() (int, []wire.Misfit, error){
				func() (int, []wire.Misfit, error) { return s.BulkEach(ctx, c, changes) },
				func() (int, []wire.Misfit, error) { return s.BulkParts(ctx, c, backwards) },
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
			taken, err := s.Insert(t.Context(), s.queues, docs...)
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
		"a collection that is being made":  {mongo.CommandError{Code: 26, Name: "NamespaceNotFound"}, true},
		"a collection that cannot be made": {mongo.CommandError{Code: 1, Name: "InternalError", Message: "Unable to create the specified collection"}, true},
		"an error that is not the servers": {context.DeadlineExceeded, false},
		"none":                             {nil, false},
	} {
		if got := wire.IsClash(c.err); got != c.want {
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
