package mongodb

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/balance"
	"github.com/seed-1177d267/sluice/internal/store/storetest"
)

func TestBalances(t *testing.T) {
	uri, db := database(t)
	storetest.Balances(t, openAt(t, uri), openAt(t, uri))
	if n, err := db.Collection("balance").CountDocuments(t.Context(), d()); n != 1 || err != nil {
		t.Errorf("the collection balance has %d documents, %v; want one", n, err)
	}
}

func TestTheBalanceDocumentIsDisbatchs(t *testing.T) {
	s, db, no := openTest(t)
	c := db.Collection("balance")
	_, err := c.InsertOne(t.Context(), d(
		"queues", bson.A{bson.A{"bulk"}, bson.A{"urgent"}}, "max_tasks", d("* 07:00", int64(5), "* 19:00", 10.0, "1 07:00", "6"), "disabled", nil,
	))
	no(err)
	no(s.SetBalance(t.Context(), json.RawMessage(`{"status": "OK", "message": "QueueBalance is running", "timestamp": 1800000000}`)))
	document, err := s.Balance(t.Context())
	no(err)
	b, err := balance.Parse(document)
	no(err)
	if len(b.Sets) != 2 || b.Sets[1][0] != "urgent" {
		t.Errorf("the document %s has the sets %q", document, b.Sets)
	}
	var state struct {
		ID        bson.ObjectID `bson:"_id"` // as it was
		Status    string
		Message   string
		Timestamp int64
	}
	no(c.FindOne(t.Context(), d()).Decode(&state))
	if state.ID.IsZero() || state.Status != "OK" || state.Message != "QueueBalance is running" || state.Timestamp != 1800000000 {
		t.Errorf("the state is %+v", state)
	}
	_, err = c.InsertOne(t.Context(), d("queues", bson.A{}))
	no(err)
	if _, err := s.Balance(t.Context()); !errors.Is(err, balance.ErrMalformed) {
		t.Errorf("with two documents the error is %v, want %v", err, balance.ErrMalformed)
	}
}

// The fields of another program in a queue's document stay as they are, except for the threads.
func TestThreadsAreAllThatChangesOfAForeignQueue(t *testing.T) {
	s, db, no := openTest(t)
	c := db.Collection("queues")
	for i, fields := range []bson.D{
		d("threads", "3", "nodes_pin", "x", "maxthreads", 0, "sort", "default"),
		d("threads", 3.0, "nodes_ignore", bson.A{5, "y"}, "maxthreads", "many", "sort", "newest", "count_todo", 7),
		d("threads", nil, "maxthreads", nil),
		d("nodes_pin", d("a", 1)),
		d("threads", nil, "unlimited", true),
	} {
		id := bson.NewObjectID()
		_, err := c.InsertOne(t.Context(), append(d("_id", id, "name", fmt.Sprint(i), "plugin", "x"), fields...))
		no(err)
		all, err := s.Queues(t.Context())
		no(err)
		var before, after bson.M
		no(c.FindOne(t.Context(), d("_id", id)).Decode(&before))
		no(s.SetThreads(t.Context(), all[i], 5))
		no(c.FindOne(t.Context(), d("_id", id)).Decode(&after))
		before["threads"] = int32(5)
		if before["unlimited"] == true {
			before["unlimited"] = false
		}
		if !reflect.DeepEqual(after, before) {
			t.Errorf("the document is\n%v, want\n%v", after, before)
		}
	}
}
