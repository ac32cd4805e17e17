package mongodb

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

func TestIndexesThatAreMissingAreMadeAndWrongOnesTold(t *testing.T) {
	uri, db := fresh(t)
	no := noError(t)
	ctx := t.Context()
	tasks, queues := db.Collection("tasks"), db.Collection("queues")
	make := func(c *mongo.Collection, keys bson.D, o *options.IndexOptionsBuilder) {
		t.Helper()
		_, err := c.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: keys, Options: o})
		no(err)
	}
	// Indexes that another program, or a person, made before: Disbatch's own, one with other keys,
	// one that is not unique, and a partial one.
	make(tasks, d("node", 1, "status", 1, "queue", 1), options.Index())
	make(tasks, d("queue", 1, "rank", 1), options.Index().SetName("sluice_turns"))
	make(queues, d("name", 1), options.Index())
	make(tasks, d("needs", 1, "_id", 1), options.Index().SetName("sluice_needs").SetPartialFilterExpression(d("status", -2)))

	s := openAt(t, uri) // does not fail for it
	wrong, err := s.Indexes(ctx)
	no(err)
	text := strings.Join(wrong, "\n")
	for _, want := range []string{
		`index sluice_turns of tasks is {"key":{"queue":1,"rank":1}}, and should be {"key":{"queue":1,"plan":1,"rank":-1,"_id":1},"partialFilterExpression":{"status":-2}}`,
		`index name_1 of queues is {"key":{"name":1}}, and should be {"key":{"name":1},"unique":true}`,
		`index sluice_needs of tasks is `,
		`db.getCollection("tasks").dropIndex("sluice_turns")`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %s", want)
		}
	}
	if len(wrong) != 3 {
		t.Errorf("it says\n%s\nwant three lines", text)
	}

	// After the advice was followed, the indexes are dropped, and made as they should be. An index
	// that is dropped later is made again as well.
	no(tasks.Indexes().DropOne(ctx, "sluice_turns"))
	no(tasks.Indexes().DropOne(ctx, "sluice_needs"))
	no(queues.Indexes().DropOne(ctx, "name_1"))
	s = openAt(t, uri)
	no(tasks.Indexes().DropOne(ctx, "queue_1_status_1"))
	for range 2 {
		if wrong, err = s.Indexes(ctx); err != nil || len(wrong) > 0 {
			t.Errorf("after the remedy: %v, it says\n%s", err, strings.Join(wrong, "\n"))
		}
	}
	all, err := s.indexes()
	no(err)
	for _, c := range all {
		there, err := c.there(ctx)
		no(err)
		if len(there) < len(c.want)+1 { // that of _id
			t.Errorf("%s has %d indexes, want %d", c.Name(), len(there), len(c.want)+1)
		}
	}
}

func TestAnIndexUnderAnotherNameIsTold(t *testing.T) {
	uri, db := fresh(t)
	no := noError(t)
	_, err := db.Collection("nodes").Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: d("node", 1), Options: options.Index().SetName("by_name").SetUnique(true)})
	no(err)
	wrong, err := openAt(t, uri).Indexes(t.Context())
	no(err)
	for _, w := range wrong {
		if !strings.Contains(w, `index by_name of nodes is {"key":{"node":1},"unique":true}, and should be {"key":{"node":1},"unique":true} with the name node_1`) {
			t.Errorf("it says %s", w)
		}
	}
	t.Logf("a second index with the same keys was refused: %v", len(wrong) > 0) // servers differ
}
