package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
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
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// memberWord is the first argument of a process that is one node of a cluster.
const memberWord = "cluster-member"

// A member says what such a process is: the first line that it reads. Not an argument, as the URI may have a password.
type member struct {
	URI     string
	Name    plan.NodeName
	Host    string // that it says it is on; "": this one
	Threads int
	Lease   time.Duration
	Beat    time.Duration
	Stuck   bool // its tasks do not end by themselves
	Bare    int  // if not 0, it is no node but a loop over that many queues: see bareMember
}

// A memberReport is what the process says when it ends.
type memberReport struct {
	Began     time.Time // when it was registered, and could claim
	Ended     time.Time // when its last task was written, of a bare loop
	Runs      []ran
	Commands  map[string]int // that went to the server in turns, by what they do, from when it was told to begin to when it was told to end,
	Upkeep    int            // and all others meanwhile: heartbeats, sweeps, looks at other nodes
	Processor time.Duration
}

// ran is one start of a task.
type ran struct {
	Task string
	At   time.Time
}

// memberMain is the program as a node of a cluster, or as a bare loop.
func memberMain(ctx context.Context, part []byte) func(context.Context) any {
	var m member
	check(json.Unmarshal(part, &m))
	asked := &commands{asked: map[string]int{}}
	tasks := &recorder{stuck: m.Stuck}
	var r memberReport
	open := m.node
	if m.Bare > 0 {
		open = m.bare
	}
	run, end := open(ctx, asked.monitor(), tasks, &r)
	return func(ctx context.Context) any {
		asked.count(true)
		running, stop := context.WithCancel(context.WithoutCancel(ctx))
		defer context.AfterFunc(ctx, func() {
			asked.count(false) // the end is not what is measured
			stop()
		})()
		before := processorTime()
		check(run(running))
		r.Processor, r.Runs = processorTime()-before, tasks.all()
		r.Commands, r.Upkeep = asked.all()
		check(end())
		return r
	}
}

// node opens the store and returns what runs a node on it, and what closes it.
func (m *member) node(ctx context.Context, mon *event.CommandMonitor, tasks *recorder, r *memberReport) (run func(context.Context) error, end func() error) {
	s := must(mongodb.Open(ctx, m.URI, mongodb.Options{Monitor: mon}))
	n := must(den.New(telling{s}, den.Config{
		Name: m.Name, Host: m.Host, Linger: -1, Threads: m.Threads, Lease: m.Lease, Beat: m.Beat,
		Grace: time.Second, Plugins: named{"noop": tasks}.registry(), OnReady: func() { r.Began = time.Now() },
	}))
	return n.Run, s.Close
}

// bare connects to the database of a bareMongoDB and returns what does its tasks.
func (m *member) bare(ctx context.Context, mon *event.CommandMonitor, tasks *recorder, r *memberReport) (run func(context.Context) error, end func() error) {
	client, db := rawMongoDB(m.URI, mon)
	check(client.Ping(ctx, nil))
	run = func(ctx context.Context) error {
		r.Began = time.Now()
		err := m.loop(context.WithValue(ctx, forTurn{}, true), bareTasks(db), tasks)
		r.Ended = time.Now()
		return err
	}
	return run, func() error { return client.Disconnect(ctx) }
}

// loop takes tasks one by one, as a node of Disbatch 4 does. It counts the running tasks of a
// queue, and claims as many as it has threads for, by one findOneAndUpdate each. Another command
// ends each task, concurrently with the claims, as its task runner would. loop waits for these
// after each look at all queues, and returns when no queue has tasks.
func (m *member) loop(ctx context.Context, c *mongo.Collection, tasks *recorder) error {
	var ends errgroup.Group
	ends.SetLimit(m.Threads)
	for left := true; left; {
		left = false
		for q := 1; q <= m.Bare; q++ {
			running, err := c.CountDocuments(ctx, doc("node", m.Name, "status", doc("$in", bson.A{-1, 0}), "queue", q))
			if err != nil {
				return err
			}
			for range m.Threads - int(running) {
				var t bareTask
				err := c.FindOneAndUpdate(ctx, doc("node", nil, "status", -2, "queue", q), doc("$set", doc("node", m.Name, "status", 0)),
					options.FindOneAndUpdate().SetSort(doc("_id", 1)).SetProjection(doc("_id", 1))).Decode(&t)
				if errors.Is(err, mongo.ErrNoDocuments) {
					break
				}
				if err != nil {
					return err
				}
				left = true
				tasks.add(fmt.Sprint(t.ID))
				ends.Go(func() error {
					_, err := c.UpdateOne(ctx, doc("_id", t.ID), doc("$set", doc("status", 1, "complete", true)))
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

// A recorder is a plugin that does nothing, and notes when which task began.
type recorder struct {
	stuck bool
	mu    sync.Mutex
	runs  []ran
}

// Run implements plugins.Plugin.
func (r *recorder) Run(ctx context.Context, t *plugins.Task) plan.Result {
	r.add(t.ID.String())
	if r.stuck {
		<-ctx.Done()
	}
	return plan.Result{Status: plan.Succeeded}
}

func (r *recorder) add(task string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs = append(r.runs, ran{task, time.Now()})
}

func (r *recorder) all() []ran {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.runs
}

// telling tells a monitor of commands which of them are for a turn.
type telling struct{ store.Node }

type forTurn struct{}

func (t telling) Turn(ctx context.Context, turn protocol.Turn) (protocol.Turned, error) {
	return t.Node.Turn(context.WithValue(ctx, forTurn{}, true), turn)
}

// commands counts the commands to a server. Each is one round trip, however many documents it is
// about.
type commands struct {
	mu       sync.Mutex
	counting bool
	asked    map[string]int // for turns, by command and collection
	others   int
}

func (c *commands) monitor() *event.CommandMonitor {
	return &event.CommandMonitor{Started: func(ctx context.Context, e *event.CommandStartedEvent) {
		what := e.CommandName
		if collection, ok := e.Command.Index(0).Value().StringValueOK(); ok {
			what += " " + collection
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		switch {
		case !c.counting:
		case ctx.Value(forTurn{}) != nil:
			c.asked[what]++
		default:
			c.others++
		}
	}}
}

func (c *commands) count(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counting = on
}

// all returns what was asked for turns, and how much else.
func (c *commands) all() (asked map[string]int, others int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.asked), c.others
}
