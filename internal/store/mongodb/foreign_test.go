package mongodb

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
)

// TestAFileIsReadByOneCursor counts what is asked of the server for an output that another program has put into GridFS.
func TestAFileIsReadByOneCursor(t *testing.T) {
	uri, db := database(t)
	var finds, more atomic.Int64
	s := openMonitored(t, uri, &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
		switch c, _ := e.Command.Index(0).Value().StringValueOK(); {
		case e.CommandName == "find" && c == "tasks.chunks":
			finds.Add(1)
		case e.CommandName == "getMore":
			more.Add(1)
		}
	}})
	no := noError(t)
	file := func(numbers ...int) bson.ObjectID {
		t.Helper()
		id := bson.NewObjectID()
		var docs []any
		for _, n := range numbers {
			docs = append(docs, d("_id", bson.NewObjectID(), "files_id", id, "n", n, "data", string(rune('a'+n))+strings.Repeat("-", 1000)))
		}
		_, err := db.Collection("tasks.chunks").InsertMany(t.Context(), docs)
		no(err)
		return id
	}
	text := func(numbers ...int) (all string) {
		for _, n := range numbers {
			all += string(rune('a'+n)) + strings.Repeat("-", 1000)
		}
		return all
	}
	for _, c := range []struct {
		name       string
		there, has []int
	}{
		{"in order, whatever the order in which it was written", []int{1, 0, 3, 2}, []int{0, 1, 2, 3}},
		{"up to a chunk that is missing", []int{0, 1, 3}, []int{0, 1}},
		{"nothing without the first", []int{1}, nil},
	} {
		finds.Store(0)
		got, err := s.file(t.Context(), file(c.there...))
		if want := text(c.has...); err != nil || got != want {
			t.Errorf("%s: %d bytes, %v; want %d", c.name, len(got), err, len(want))
		}
		if n := finds.Load(); n != 1 {
			t.Errorf("%s: %d queries, want 1", c.name, n)
		}
	}
	var many []int
	for n := range 3*chunksAtOnce + 1 {
		many = append(many, n)
	}
	finds.Store(0)
	more.Store(0)
	got, err := s.file(t.Context(), file(many...))
	if err != nil || got != text(many...) || finds.Load() != 1 || more.Load() > 4 {
		t.Errorf("%d bytes by %d queries that went on %d times, %v", len(got), finds.Load(), more.Load(), err)
	}
}
