package bench

import (
	"context"
	"encoding/json"
	"io"
	nethttp "net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins/http"
)

// The scenarios of this file run tasks of no plan, whose results are kept.

// due compares tasks that are all due at one instant with tasks that are not delayed.
func due(m *measurement) {
	n, ahead := size(10_000, 500), size(5*time.Second, time.Second)
	if m.on == onMongoDB {
		n, ahead = size(4_000, 300), size(20*time.Second, 3*time.Second)
	}
	m.repeat(func() {
		late := m.drained(n, noops(), ahead)
		m.pair("last-ended", "ms", milliseconds(late), "not delayed", milliseconds(m.drained(n, noops(), 0)))
		m.note("%d tasks", n)
	})
}

// outside compares tasks of no plan with the items of one foreach task.
func outside(m *measurement) {
	n := size(40_000, 2_000)
	if m.on == onMongoDB {
		n = size(4_000, 600)
	}
	m.repeat(func() {
		items := noops()
		items.fill = addItems
		m.pair("tasks", "tasks/s", perSecond(n, m.drained(n, noops(), 0)), "items of a plan", perSecond(n, m.drained(n, items, 0)))
		m.note("%d tasks of each, with results", n)
	})
}

// sent is the body of each request.
const sent = `{"SongId":1234}`

// requests compares requests that are tasks, and those that are activities of a type, with the smaller of
// two rates: of tasks that do nothing, and of requests without tasks.
func requests(m *measurement) {
	n := size(20_000, 1_000)
	if m.on == onMongoDB {
		n = size(4_000, 600)
	}
	var received atomic.Int64 // requests with the body that is sent
	receiver := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		if body, err := io.ReadAll(r.Body); err == nil && string(body) == sent {
			received.Add(1)
		}
		_, _ = io.WriteString(w, `{"ok":true}`)
	}))
	defer receiver.Close()
	params := must(json.Marshal(map[string]any{"url": receiver.URL + "/song/{SongId}", "body": json.RawMessage(sent)}))
	m.repeat(func() {
		received.Store(0)
		plugin := http.New(http.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
		ours := perSecond(n, m.drained(n, work{named{http.Name: plugin}, ofNoPlan(http.Name, params), received.Load}, 0))
		activities := perSecond(n, m.drained(n, work{named{http.Name: plugin}, activities(receiver.URL + "/song/{SongId}"), func() int64 { return received.Load() - int64(n) }}, 0))
		check(plugin.Close())
		bare := perSecond(n, atOnce(mostThreads, n, func(client *nethttp.Client) error {
			return fetch(client, must(nethttp.NewRequestWithContext(m.Context(), nethttp.MethodPost, receiver.URL+"/song/1234", strings.NewReader(sent))))
		}))
		if got := received.Load(); got != int64(3*n) {
			failf("%d of %d requests arrived: this was not the work to measure", got, 3*n)
		}
		noop := perSecond(n, m.drained(n, noops(), 0))
		m.pair("requests", "tasks/s", ours, "no-op tasks or bare client", min(bare, noop))
		m.pair("activities", "tasks/s", activities, "no-op tasks or bare client", min(bare, noop))
		m.note("%d tasks; no-op tasks %.0f/s, bare client %.0f/s on %d connections", n, noop, bare, mostThreads)
	})
}

// atOnce asks n times, on as many connections at once as there are askers. It returns how long that
// took.
func atOnce(askers, n int, ask func(*nethttp.Client) error) time.Duration {
	client := &nethttp.Client{Transport: &nethttp.Transport{MaxIdleConnsPerHost: askers}}
	defer client.CloseIdleConnections()
	var next atomic.Int64
	var asking errgroup.Group
	start := time.Now()
	for range askers {
		asking.Go(func() error {
			for next.Add(1) <= int64(n) {
				if err := ask(client); err != nil {
					return err
				}
			}
			return nil
		})
	}
	check(asking.Wait())
	return time.Since(start)
}

// work is what the tasks of a store do, and how they come there.
type work struct {
	plugins named
	fill    func(ctx context.Context, s store.Store, n int, until time.Time) // n tasks that are held until then
	ran     func() int64                                                     // how many tasks did their work
}

// noops is the work of no-op tasks of no plan.
func noops() work {
	c := &counting{}
	return work{named{"noop": c}, ofNoPlan("noop", nil), c.ran.Load}
}

// drained fills a new store with n tasks, and returns how long a node takes to run them. If they are
// held for a time, that is from the instant on at which they are due.
func (m *measurement) drained(n int, w work, ahead time.Duration) time.Duration {
	return m.drainedBy(mostThreads, n, w, ahead)
}

// drainedBy is drained by a node of so many threads.
func (m *measurement) drainedBy(threads, n int, w work, ahead time.Duration) time.Duration {
	db := m.open()
	defer db.close()
	var from time.Time
	if ahead > 0 {
		from = time.Now().Add(ahead)
	}
	w.fill(m.Context(), db, n, from)
	if ahead > 0 && time.Now().After(from) {
		failf("to add %d tasks took longer than %v: they were due before a node waited for them", n, ahead)
	}
	settle()
	ctx, stop := context.WithCancel(m.Context())
	defer stop()
	d := &draining{meter: &meter{Node: db}, Results: db.Store.(store.Results), want: n, stop: stop, first: from}
	check(must(den.New(d, den.Config{Plugins: w.plugins.registry(), Name: "bench", Threads: threads})).Run(ctx))
	if d.ended != n || w.ran() != int64(n) {
		failf("%d of %d tasks ended, and %d ran: this was not the work to measure", d.ended, n, w.ran())
	}
	return d.last.Sub(d.first)
}

// A draining store stops its node when all has ended.
type draining struct {
	*meter
	store.Results
	want        int
	stop        context.CancelFunc
	first, last time.Time
}

// Turn implements store.Node. A node makes one turn at a time.
func (d *draining) Turn(ctx context.Context, t protocol.Turn) (protocol.Turned, error) {
	if d.first.IsZero() {
		d.first = time.Now()
	}
	turned, err := d.meter.Turn(ctx, t)
	if err == nil && d.ended == d.want && d.last.IsZero() {
		d.last = time.Now()
		d.stop()
	}
	return turned, err
}

// ofNoPlan fills a store with tasks of no plan.
func ofNoPlan(plugin string, params json.RawMessage) func(context.Context, store.Store, int, time.Time) {
	return func(ctx context.Context, s store.Store, n int, until time.Time) {
		q := must(s.EnsureQueue(ctx, plan.Queue{ID: plan.QueueID{ID: plan.NewID(time.Now())}, Name: plugin, Plugin: plugin, Unlimited: true}))
		tasks := make([]plan.Task, n)
		for i := range tasks {
			tasks[i] = plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: taskName(i), Queue: q.ID, Params: params, NotBefore: until}
		}
		check(s.AddTasks(ctx, plan.PlanID{}, tasks))
	}
}

// addItems submits a plan of one foreach task with n items, and has them made.
func addItems(ctx context.Context, s store.Store, n int, _ time.Time) {
	spec := plan.New("items")
	spec.Add(plan.TaskSpec{Name: "all", Plugin: "noop", Foreach: &plan.Foreach{List: must(json.Marshal(make([]int, n)))}})
	p := must(submit.Submit(ctx, s, spec, false))
	i := plan.InstanceID{ID: plan.NewID(time.Now())}
	check(s.Register(ctx, plan.Instance{ID: i, Node: "maker"}))
	for queued := 0; queued < n; {
		did := must(s.Turn(ctx, protocol.Turn{Instance: i}))
		if queued += did.Queued; queued < n && !did.More {
			if seen := must(s.Plan(ctx, p.ID)); seen.Counts.Queued < n {
				failf("%d of %d items are queued, and no turn queues more", seen.Counts.Queued, n)
			}
			break
		}
	}
	check(s.Leave(ctx, i))
}
