package mongodb

import (
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/seed-1177d267/sluice/internal/mongotest"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/storetest"
)

func TestDocuments(t *testing.T) {
	databases := map[store.Store]*mongo.Database{}
	storetest.Documents(t, storetest.Driver{
		Open: func(t testing.TB, o storetest.Options) store.Store {
			uri, db := database(t)
			s, err := Open(t.Context(), uri, Options{Hook: o.Hook})
			if err != nil {
				t.Fatal(err)
			}
			databases[s] = db
			return s
		},
		Pass: func(t testing.TB, s store.Store, d time.Duration) { mongotest.Pass(t, databases[s], d) },
	})
}

// Documents of other programs are shown as they are, and an index that one of them makes counts at
// once.
func TestDocumentsOfOthers(t *testing.T) {
	uri, db := fresh(t)
	s, no := openAt(t, uri), noError(t)
	ctx := t.Context()
	at := time.Date(2019, 1, 23, 19, 42, 56, 574e6, time.UTC)
	queue, file := bson.NewObjectID(), bson.NewObjectID()
	_, err := db.Collection("queues").InsertOne(ctx, d("_id", queue, "name", "old", "plugin", "P", "threads", "3"))
	no(err)
	_, err = db.Collection("tasks").InsertMany(ctx, []any{
		d("_id", bson.NewObjectID(), "queue", queue, "status", 1.0, "ctime", at, "stdout", file, "name", "theirs", "x", d("y", bson.A{file, int64(7), 1.5, nil, at})),
		d("_id", bson.NewObjectID(), "queue", queue, "status", "no code"),
	})
	no(err)
	_, err = db.Collection("tasks").Indexes().CreateOne(ctx, mongo.IndexModel{Keys: d("queue", 1, "x.y", -1)})
	no(err)

	views, err := s.QueueViews(ctx)
	no(err)
	if len(views) != 1 || views[0].Threads == nil || *views[0].Threads != 3 || views[0].Statuses[1] != 1 {
		t.Errorf("queues %+v", views)
	}
	var docs []store.Document
	no(s.TaskDocuments(ctx, store.DocumentQuery{}, func(doc store.Document) error {
		docs = append(docs, doc)
		return nil
	}))
	if len(docs) != 2 {
		t.Fatalf("%d documents, want 2", len(docs))
	}
	if doc := docs[0]; doc["name"] != "theirs" || doc["ctime"] != at || doc["status"] != 1.0 || len(doc["x"].(map[string]any)["y"].([]any)) != 5 {
		t.Errorf("document %v", doc)
	}
	indexes, err := s.TaskIndexes(ctx)
	no(err)
	found := false
	for _, i := range indexes {
		found = found || i.Name == "queue_1_x.y_-1" && len(i.Fields) == 2
	}
	if !found {
		t.Errorf("indexes %v", indexes)
	}
}
