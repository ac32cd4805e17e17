package mongodb

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/internal/polltest"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
	"github.com/seed-1177d267/sluice/plugins/disbatchdemo"
)

// TestTheDemonstrationsResults runs tasks as a client of Disbatch submits them, waits for complete as one does, and then reads what they
// printed.
func TestTheDemonstrationsResults(t *testing.T) {
	s, db, no := openTest(t)
	r := plugins.NewRegistry()
	r.Register(disbatchdemo.Name, disbatchdemo.Plugin)
	q, err := s.EnsureQueue(t.Context(), plan.Queue{ID: plan.QueueID{ID: plan.NewID(time.Now())}, Name: "demo", Plugin: disbatchdemo.Name, Unlimited: true})
	no(err)
	client := disbatch{db.Collection("tasks")}
	const mib = 1 << 20
	tasks := []struct {
		commands       string
		status         plan.Status
		stdout, stderr bson.Type
		out, err       int    // bytes, at least
		in             string // of the standard output
	}{
		{"*", plan.Failed, bson.TypeString, bson.TypeString, 10, 10, "command a"},
		{"*1A", plan.Succeeded, bson.TypeString, bson.TypeString, mib, mib, "1111"}, // of * with others nothing is left but those
		{"e", plan.Succeeded, bson.TypeString, bson.TypeNull, 15 * mib, 0, "eeee"},
		{"aEb", plan.Succeeded, bson.TypeObjectID, bson.TypeObjectID, 10, 15 * mib, "command a"},
		{"", plan.Succeeded, bson.TypeNull, bson.TypeNull, 0, 0, ""},
	}
	ids := make([]plan.TaskID, len(tasks))
	for i, task := range tasks {
		ids[i], err = client.Insert(t.Context(), q.ID, json.RawMessage(`{"commands": "`+task.commands+`"}`), false)
		no(err)
	}
	n, err := den.New(s, den.Config{Plugins: r, Name: "n", Threads: 2})
	no(err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- n.Run(ctx) }()
	for i, task := range tasks {
		var doc struct {
			Status   plan.Status
			Complete bool
		}
		polltest.Until(t, time.Minute, fmt.Sprintf("%q is complete", task.commands), func() bool {
			no(db.Collection("tasks").FindOne(t.Context(), d("_id", oid(ids[i].ID)),
				options.FindOne().SetProjection(d("status", 1, "complete", 1))).Decode(&doc))
			if doc.Status > 0 && !doc.Complete {
				t.Errorf("%q has ended and is not complete", task.commands)
			}
			return doc.Complete
		})
		stdout, stderr := streamOf(t, db, ids[i], plan.Stdout), streamOf(t, db, ids[i], plan.Stderr)
		if doc.Status != task.status || stdout.Type != task.stdout || stderr.Type != task.stderr {
			t.Errorf("%q: status %d, stdout is %v, stderr %v; want %d, %v and %v", task.commands, doc.Status, stdout.Type, stderr.Type,
				task.status, task.stdout, task.stderr)
		}
		out, _, err := read(t.Context(), s, ids[i], plan.Stdout)
		no(err)
		errs, _, err := read(t.Context(), s, ids[i], plan.Stderr)
		no(err)
		if len(out) < task.out || len(out) > task.out+100 || len(errs) < task.err || len(errs) > task.err+200 || !strings.Contains(out, task.in) {
			t.Errorf("%q: %d bytes on stdout, %d on stderr; want about %d and %d; %.60q", task.commands, len(out), len(errs), task.out, task.err, out)
		}
	}
	stop()
	no(<-done)
}
