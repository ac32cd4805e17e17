package mongodb

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/event"

	"github.com/seed-1177d267/sluice/plan"
)

// TestAQueueIsLookedUpWithoutALookAtItsTasks is about what submissions do, however much is queued.
func TestAQueueIsLookedUpWithoutALookAtItsTasks(t *testing.T) {
	uri, _ := database(t)
	asked := 0
	s, ctx := stepped(t, uri, func(e *event.CommandStartedEvent) {
		if asked++; e.Command.Index(0).Value().StringValue() == "tasks" {
			t.Errorf("it was asked for tasks: %v", e.Command)
		}
	})
	q, err := s.EnsureQueue(ctx, plan.Queue{Name: "q", Plugin: "x", Threads: 3})
	if err != nil {
		t.Fatal(err)
	}
	queues, err := s.Queues(ctx)
	if err != nil || len(queues) != 1 || queues[0] != q || asked == 0 {
		t.Errorf("the queues are %+v, %v, after %d commands; want %+v", queues, err, asked, q)
	}
}
