package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"golang.org/x/sync/errgroup"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/mongodb"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// Nodes in processes of their own share one MongoDB database. The scenarios measure the nodes'
// common throughput, and the round trips of each task and of idle nodes. They also measure how soon
// others run the tasks of a dead node.
func clusterScenarios() (all []scenario) {
	add := func(name string, run func(*measurement)) {
		all = append(all, scenario{"cluster/" + name, onMongoDB, run})
	}
	for _, nodes := range []int{1, 2, 4, 8} {
		for _, queues := range []int{1, 4, 16} {
			add(fmt.Sprintf("claim/%d/%d", nodes, queues), func(m *measurement) { contest(m, nodes, queues, clusterThreads, 0, size(3000+1000*nodes, 600)) })
		}
	}
	for _, nodes := range []int{1, 8} {
		add(fmt.Sprintf("one/%d/1", nodes), func(m *measurement) { contest(m, nodes, 1, 1, 0, size(200, 40)) })
	}
	add("limited/4/4", func(m *measurement) { contest(m, 4, 4, 16, 8, size(1500, 200)) })
	add("idle", clusterIdle)
	add("rescue", func(m *measurement) {
		m.repeat(func() {
			if testing.Short() {
				rescue(m, "lease-of-1s", time.Second, 100*time.Millisecond, 2, false)
				rescue(m, "one-host", time.Minute, 100*time.Millisecond, 2, true)
				return
			}
			rescue(m, "lease-of-3s", 3*time.Second, 0, 8, false)
			rescue(m, "lease-of-10s", 10*time.Second, 0, 8, false)
			rescue(m, "one-host", 10*time.Second, 0, 8, true)
		})
	})
	return all
}

const (
	clusterThreads = 256                   // of a node where tasks go in batches
	clusterLease   = time.Minute           // of nodes that are to lose nothing: no pause of the machine is as long
	lookEvery      = 20 * time.Millisecond // how often a scenario looks what its processes have done
)

// contest has nodes claim from the same queues, each with a limit if that is not 0. As many bare
// loops, which act as nodes of Disbatch 4, do a tenth of the tasks.
func contest(m *measurement, nodes, queues, threads, limit, tasks int) {
	m.repeat(func() {
		db := m.open()
		defer db.close()
		id := m.submitTo(db, queues, limit, tasks)
		all := m.startParts(clusterParts(nodes, threads, db.uri, 0))
		defer stop(all)
		settle()
		begin(all)
		looks, most := 0, 0
		for !m.over(db, id) {
			if limit > 0 {
				looks, most = looks+1, max(most, m.mostActive(db))
			}
		}
		ended := time.Now()
		said := reports[clusterReport](all, false)
		if most > limit {
			failf("a queue had %d tasks claimed and running; it may have %d", most, limit)
		}
		check(eachOnce(said, tasks))
		m.succeeded(db, id, tasks)
		ours := sum(said)

		var bare clusterReport
		few, rate := tasks/10, 0.0
		if limit == 0 { // the peer knows no limit that holds for several nodes
			raw := newBareMongoDB(m.Context())
			defer raw.close()
			raw.queues = queues
			raw.fill(flat(few))
			loops := m.startParts(clusterParts(nodes, threads, raw.uri, queues))
			defer stop(loops)
			settle()
			begin(loops) // they end by themselves
			said := reports[clusterReport](loops, true)
			check(eachOnce(said, few))
			bare = sum(said)
			rate = perSecond(few, bare.Ended.Sub(bare.Began))
		}
		const peer = "findOneAndUpdate each"
		m.pair("tasks", "tasks/s", perSecond(tasks, ended.Sub(ours.Began)), peer, rate)
		m.pair("round-trips", "trips/task", float64(ours.Trips)/float64(tasks), peer, float64(bare.Trips)/float64(few))
		m.note("%d nodes of %d threads, %d queues, %d tasks, none of which ran twice; %.2f trips with beats, sweeps and looks at other nodes",
			nodes, threads, queues, tasks, float64(ours.Trips+ours.Upkeep)/float64(tasks))
		if limit > 0 {
			m.notes += fmt.Sprintf("; at most %d claimed and running of %d that each queue may have, in %d looks", most, limit, looks)
		}
	})
}

// clusterIdle measures what four nodes ask of the server in their first minute, with nothing to do.
func clusterIdle(m *measurement) {
	const nodes, queues = 4, 4
	within := size(time.Minute, 3*time.Second)
	m.repeat(func() {
		db := m.open()
		defer db.close()
		for i := range queues {
			_ = must(db.CreateQueue(m.Context(), plan.Queue{Name: fmt.Sprintf("queue%d", i), Plugin: "noop", Unlimited: true}))
		}
		all := m.startParts(clusterParts(nodes, clusterThreads, db.uri, 0))
		defer stop(all)
		begin(all)
		check(sleep(m.Context(), within))
		sum, seconds := sum(reports[clusterReport](all, false)), nodes*within.Seconds()
		m.pair("round-trips", "trips/s", float64(sum.Trips+sum.Upkeep)/seconds, "", 0)
		m.pair("processor", "ms/s", milliseconds(sum.Processor)/seconds, "", 0)
		m.note("each of %d nodes, %d queues, %v; %.1f of the trips are beats, sweeps and looks at other nodes", nodes, queues, within, float64(sum.Upkeep)/seconds)
	})
}

// rescue kills nodes one by one, at any time between their beats, and measures how long after that
// the tasks of each run on the one that is left. The peer is the lease and two seconds. The nodes
// claim to be on other hosts unless here is set: on one host, the node that is left sees that a
// process is gone.
func rescue(m *measurement, what string, lease, beat time.Duration, nodes int, here bool) {
	const threads = 4
	ctx, db := m.Context(), m.open()
	defer db.close()
	id := m.submitTo(db, 1, 0, nodes*threads)
	parts := clusterParts(nodes+1, threads, db.uri, 0)
	for i := range parts {
		parts[i].Lease, parts[i].Beat, parts[i].Stuck = lease, beat, i < nodes
		if i < nodes && !here {
			parts[i].Host = "host-of-" + string(parts[i].Name)
		}
	}
	parts[nodes].Threads = nodes * threads
	all := m.startParts(parts)
	defer stop(all)
	dying, left := all[:nodes], all[nodes:]
	begin(dying)
	var running []plan.Task
	for len(running) < nodes*threads {
		running = must(store.AllTasks(ctx, db, store.TaskQuery{Statuses: []plan.Status{plan.Running}}))
		check(sleep(ctx, lookEvery))
	}
	begin(left)
	check(sleep(ctx, 2*time.Second)) // it has seen the others beat
	died := map[plan.NodeName]time.Time{}
	for i, one := range dying {
		died[parts[i].Name] = time.Now()
		_ = one.Process.Kill() // it may have ended already
		_ = one.Wait()         // which says that it was killed
		check(sleep(ctx, rand.N(500*time.Millisecond)))
	}
	for !m.over(db, id) {
	}
	said := reports[clusterReport](left, false)
	check(eachOnce(said, len(running)))
	of := map[string]plan.NodeName{}
	for _, t := range running {
		of[t.ID.String()] = t.Node
	}
	var took []float64
	for _, one := range said[0].Runs {
		took = append(took, one.At.Sub(died[of[one.Task]]).Seconds())
	}
	m.pair(what, "s", quantile(took, 0.99), "the lease and 2 s", (lease + 2*time.Second).Seconds())
	m.note("from death to running elsewhere, p99, of %d tasks of each of %d nodes, one left", threads, nodes)
}

// over waits a moment and reports whether the plan has ended. Its questions go to the same server.
func (m *measurement) over(db *database, id plan.PlanID) bool {
	check(sleep(m.Context(), lookEvery))
	return must(db.Plans(m.Context(), store.PlanQuery{Prefix: id.String(), NoCounts: true, NoParams: true, Limit: 1}))[0].State.Ended()
}

// mostActive returns how many tasks are claimed or running in the queue that has most.
func (m *measurement) mostActive(db *database) (most int) {
	byQueue := map[plan.QueueID]int{}
	for _, t := range must(store.AllTasks(m.Context(), db, store.TaskQuery{Statuses: []plan.Status{plan.Claimed, plan.Running}})) {
		byQueue[t.Queue]++
		most = max(most, byQueue[t.Queue])
	}
	return most
}

// submitTo makes queues of no-op tasks, with a limit each if that is not 0, and a plan whose tasks
// are dealt out among them.
func (m *measurement) submitTo(db *database, queues, limit, tasks int) plan.PlanID {
	name := func(i int) string { return fmt.Sprintf("queue%d", 1+i%queues) }
	for i := range queues {
		_ = must(db.CreateQueue(m.Context(), plan.Queue{Name: name(i), Plugin: "noop", Threads: limit, Unlimited: limit == 0}))
	}
	spec := flat(tasks).spec("cluster", "noop")
	for i := range spec.Tasks {
		spec.Tasks[i].Queue = name(i)
	}
	return must(submit.Submit(m.Context(), db, spec, false)).ID
}

func clusterParts(nodes, threads int, uri string, bare int) []part {
	all := make([]part, nodes)
	for i := range all {
		all[i] = part{URI: uri, Name: plan.NodeName(fmt.Sprintf("node%d", i+1)), Threads: threads, Lease: clusterLease, Bare: bare}
	}
	return all
}

// A clusterReport is what a part of a cluster says when it ends.
type clusterReport struct {
	Began     time.Time // when it was registered, and could claim
	Ended     time.Time // when its last task was written, of a bare loop
	Runs      []ran
	Trips     int // commands to the server for turns; each is one round trip
	Upkeep    int // and all others: heartbeats, sweeps, looks at other nodes
	Processor time.Duration
}

// ran is one start of a task.
type ran struct {
	Task string
	At   time.Time
}

// sum adds up the reports. The sum begins with the first and ends with the last.
func sum(said []clusterReport) (all clusterReport) {
	all.Began = said[0].Began
	for _, r := range said {
		if r.Began.Before(all.Began) {
			all.Began = r.Began
		}
		if r.Ended.After(all.Ended) {
			all.Ended = r.Ended
		}
		all.Runs = append(all.Runs, r.Runs...)
		all.Trips, all.Upkeep, all.Processor = all.Trips+r.Trips, all.Upkeep+r.Upkeep, all.Processor+r.Processor
	}
	return all
}

// eachOnce checks that so many tasks ran, none of them twice.
func eachOnce(said []clusterReport, tasks int) error {
	runs := map[string]bool{}
	for _, one := range sum(said).Runs {
		if runs[one.Task] {
			return fmt.Errorf("task %s ran twice", one.Task)
		}
		runs[one.Task] = true
	}
	if len(runs) != tasks {
		return fmt.Errorf("%d tasks ran, not %d", len(runs), tasks)
	}
	return nil
}

// clusterPart is the program as a node of a cluster, or as a bare loop. It is also the plugin of its
// tasks, which notes when each began, and it counts the commands to the server.
func clusterPart(ctx context.Context, p part) func(context.Context) any {
	c := &counted{stuck: p.Stuck}
	monitor := &event.CommandMonitor{Started: c.started}
	if p.Bare > 0 {
		client, db := rawMongoDB(p.URI, monitor)
		check(client.Ping(ctx, nil))
		return func(ctx context.Context) any {
			return c.measured(ctx, func(ctx context.Context) {
				c.report.Began = time.Now()
				check(p.loop(context.WithValue(ctx, forTurn{}, true), bareTasks(db), c))
				c.report.Ended = time.Now()
			}, func() error { return client.Disconnect(context.WithoutCancel(ctx)) })
		}
	}
	s := must(mongodb.Open(ctx, p.URI, mongodb.Options{Monitor: monitor}))
	n := must(den.New(telling{s}, den.Config{
		Name: p.Name, Host: p.Host, Linger: -1, Threads: p.Threads, Lease: p.Lease, Beat: p.Beat,
		Grace: time.Second, Plugins: named{"noop": c}.registry(), OnReady: func() { c.report.Began = time.Now() },
	}))
	return func(ctx context.Context) any {
		return c.measured(ctx, func(ctx context.Context) { check(n.Run(ctx)) }, s.Close)
	}
}

// counted is what a part notes while it works.
type counted struct {
	stuck    bool
	mu       sync.Mutex
	counting bool
	report   clusterReport
}

// measured works until ctx ends. The commands after that are of the end, and are not counted.
func (c *counted) measured(ctx context.Context, work func(context.Context), end func() error) any {
	c.count(true)
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer context.AfterFunc(ctx, func() {
		c.count(false)
		stop()
	})()
	before := processorTime()
	work(working)
	c.report.Processor = processorTime() - before
	check(end())
	return &c.report
}

func (c *counted) count(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counting = on
}

// started counts a command, however many documents it is about.
func (c *counted) started(ctx context.Context, _ *event.CommandStartedEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.counting:
	case ctx.Value(forTurn{}) != nil:
		c.report.Trips++
	default:
		c.report.Upkeep++
	}
}

// Run implements plugins.Plugin: it does nothing, and notes when the task began.
func (c *counted) Run(ctx context.Context, t *plugins.Task) plan.Result {
	c.began(t.ID.String())
	if c.stuck {
		<-ctx.Done()
	}
	return plan.Result{Status: plan.Succeeded}
}

func (c *counted) began(task string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Runs = append(c.report.Runs, ran{task, time.Now()})
}

// telling tells the monitor of commands which of them are for a turn.
type telling struct{ store.Node }

type forTurn struct{}

// Turn implements store.Node.
func (t telling) Turn(ctx context.Context, turn protocol.Turn) (protocol.Turned, error) {
	return t.Node.Turn(context.WithValue(ctx, forTurn{}, true), turn)
}

// loop takes tasks one by one, as a node of Disbatch 4 does. It counts the running tasks of a
// queue, and claims as many as it has threads for, by one findOneAndUpdate each. Another command
// ends each task, concurrently with the claims, as its task runner would. loop waits for these
// after each look at all queues, and returns when no queue has tasks.
func (p part) loop(ctx context.Context, tasks *mongo.Collection, c *counted) error {
	var ends errgroup.Group
	ends.SetLimit(p.Threads)
	for left := true; left; {
		left = false
		for q := 1; q <= p.Bare; q++ {
			running, err := tasks.CountDocuments(ctx, doc("node", p.Name, "status", doc("$in", bson.A{-1, 0}), "queue", q))
			if err != nil {
				return err
			}
			for range p.Threads - int(running) {
				var t bareTask
				err := tasks.FindOneAndUpdate(ctx, doc("node", nil, "status", -2, "queue", q), doc("$set", doc("node", p.Name, "status", 0)),
					options.FindOneAndUpdate().SetSort(doc("_id", 1)).SetProjection(doc("_id", 1))).Decode(&t)
				if errors.Is(err, mongo.ErrNoDocuments) {
					break
				}
				if err != nil {
					return err
				}
				left = true
				c.began(fmt.Sprint(t.ID))
				ends.Go(func() error {
					_, err := tasks.UpdateOne(ctx, doc("_id", t.ID), doc("$set", doc("status", 1, "complete", true)))
					return err
				})
			}
		}
		if err := ends.Wait(); err != nil {
			return err
		}
	}
	return nil
}

func TestATaskThatRanTwiceOrNotAtAllIsFound(t *testing.T) {
	report := func(tasks ...string) (r clusterReport) {
		for _, id := range tasks {
			r.Runs = append(r.Runs, ran{Task: id})
		}
		return r
	}
	for want, said := range map[string][]clusterReport{
		"<nil>":              {report("a"), report("b", "c")},
		"task b ran twice":   {report("a", "b"), report("b", "c")},
		"task a ran twice":   {report("a", "a"), report("b", "c")},
		"2 tasks ran, not 3": {report("a"), report("b")},
	} {
		if got := fmt.Sprint(eachOnce(said, 3)); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
}
