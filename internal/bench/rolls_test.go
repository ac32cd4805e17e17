package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// rolls compares the time in which a node hands over finished tasks, each with one line of log, with that
// in which one runs as many no-op tasks. It compares the node's memory with that for a tenth of the tasks.
func rolls(m *measurement) {
	n := size(largeTasks, 2000)
	if m.on == onMongoDB {
		n = size(20_000, 1000)
	}
	var received atomic.Int64
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		received.Add(int64(bytes.Count(body, []byte(`"log_details":`))))
	}))
	defer receiver.Close()
	handOver := func(n int) (took time.Duration, most float64) {
		db := m.open()
		defer db.close()
		m.finished(db, n, receiver.URL)
		received.Store(0)
		settle()
		began := time.Now()
		node := m.start("", sluice, "worker", "--allow", "http", "--allow-net", "127.0.0.1", "--store", db.uri)
		defer node.stop()
		for received.Load() < int64(n) || len(must(db.Tasks(m.Context(), store.TaskQuery{Limit: 1}))) > 0 {
			if time.Since(began) > 5*time.Minute {
				failf("%d of %d tasks were received: %s", received.Load(), n, node.said.String())
			}
			time.Sleep(20 * time.Millisecond)
		}
		if got := received.Load(); got != int64(n) {
			failf("%d tasks were received, want %d", got, n)
		}
		return time.Since(began), node.mostMemory()
	}
	m.repeat(func() {
		took, most := handOver(n)
		_, least := handOver(n / 10)
		m.pair("hand-over", "s", took.Seconds(), "no-op tasks", m.drained(n, noops(), 0).Seconds())
		m.pair("memory", "MiB", most, fmt.Sprintf("for %d tasks", n/10), least)
		m.note("%d tasks of no plan, with the start of the node; VmHWM of sluice worker", n)
	})
}

// finished fills a store with finished tasks of no plan, whose time is over.
func (m *measurement) finished(db *database, n int, uri string) {
	ctx := m.Context()
	check(db.PutGroup(ctx, plan.Group{}, plan.Group{Name: "solution", GroupSettings: plan.GroupSettings{SuccessURI: uri}}))
	q := must(db.EnsureQueue(ctx, plan.Queue{Name: "publish", Plugin: "http", Unlimited: true, QueueSettings: plan.QueueSettings{
		Group: "solution", Keep: plan.Keep{Succeeded: plan.Duration(time.Millisecond)},
	}}))
	me := plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: "filler", Lease: time.Hour, Plugins: []string{"http"}}
	check(db.Register(ctx, me))
	params := json.RawMessage(`{"url":"http://192.0.2.1/song/{SongId}","body":{"SongId":1234,"territories":["DE","FR"]}}`)
	const line = `{"method":"POST","url":"http://192.0.2.1/song/1234","status":200,"ms":{"name":0.1,"connect":0.2,"first":1.5,"end":1.6},"headers":{"Content-Length":"15","Content-Type":"application/json"},"body":"{\"accepted\":true}"}` + "\n"
	for left := n; left > 0; {
		tasks := make([]plan.Task, min(left, 1000))
		for i := range tasks {
			tasks[i] = plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Queue: q.ID, Params: params}
			tasks[i].Subject = "song/1234"
		}
		check(db.AddTasks(ctx, plan.PlanID{}, tasks))
		left -= len(tasks)
		for done := 0; done < len(tasks); {
			did := must(db.Turn(ctx, protocol.Turn{Instance: me.ID, Slots: len(tasks) - done, Start: true, Plugins: me.Plugins}))
			ended := make([]protocol.Ending, len(did.Claimed))
			for i := range ended {
				ended[i] = protocol.Ending{
					Claim: did.Claimed[i].Claim, Status: plan.Succeeded, Output: json.RawMessage(`{"status":200,"body":{"accepted":true}}`),
					Log: []plan.LogEntry{{At: time.Now(), Attempt: 1, Stream: plan.System, Text: line}},
				}
			}
			must(db.Turn(ctx, protocol.Turn{Instance: me.ID, Ended: ended}))
			done += len(ended)
		}
	}
	check(db.Leave(ctx, me.ID))
}
