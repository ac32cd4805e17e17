//go:build unix

package main_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/disbatchtest"
)

// Queues and tasks of the form of DEN 1.1 are served by no node of Sluice. Each place where a person would look for them names them.
func TestRecordsOfDEN11AreNamedWhereTheyAreSeen(t *testing.T) {
	t.Parallel()
	s := share(t, 4)
	s.no(s.AddOldQueue(s.Context(), "insight1", "Synacor::Migration::IMAP2IMAP"))
	_, err := s.AddOldTask(s.Context(), "insight1", bson.M{"username": "foo@foo.com"})
	s.no(err)
	mixed, err := s.AddOldTask(s.Context(), s.queue.ID, bson.M{"name": "mixed"})
	s.no(err)

	const why = `queue "insight1" with class "Synacor::Migration::IMAP2IMAP" has an _id that is no ObjectID, as DEN 1.1 lets it`
	for _, command := range [][]string{{"queue", "list"}, {"queue", "list", "--output", "json"}, {"task", "list"}} {
		if out := s.must(command...); strings.Count(out, "note: "+why) != 1 || !strings.Contains(out, "1 task has not finished there") {
			t.Errorf("%q says\n%s", command, out)
		}
	}

	d := s.configured(s.script(disbatchtest.Settings{}))
	s.says(d, "insight1")
	s.until("a task with parameters has failed", func() bool { return s.task(mixed).Status == disbatchtest.Failed })
	s.says(d, "it has parameters, as DEN 1.1 writes them, and no params")
	if out := s.must("task", "list", "--state", "failed"); !strings.Contains(out, "it has parameters, as DEN 1.1 writes them") {
		t.Errorf("task list says\n%s", out)
	}
	if n := strings.Count(d.said(), "insight1"); n != 1 {
		t.Errorf("the node names the queue %d times:\n%s", n, d.said())
	}

	url := s.server()
	a, err := http.Get(url + "/api/v1/queues")
	s.no(err)
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	s.no(err)
	var got struct{ Refused []string }
	s.no(json.Unmarshal(body, &got))
	if len(got.Refused) != 1 || !strings.HasPrefix(got.Refused[0], why) {
		t.Errorf("the API says %s", body)
	}
	if out := s.must("queue", "list", "--server", url); !strings.Contains(out, "note: "+why) {
		t.Errorf("queue list says of a server\n%s", out)
	}
}
