package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/oste"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// activityType makes a company, a solution and an activity type of songs, as the routes do.
func activityType(ctx context.Context, s store.Store, pattern string) plan.Queue {
	var company, solution plan.Group
	check((&oste.Company{Name: "acme"}).Apply(&company))
	check((&oste.Solution{Company: "acme", Name: "music"}).Apply(&solution))
	check(s.PutGroup(ctx, plan.Group{}, company))
	check(s.PutGroup(ctx, plan.Group{}, solution))
	q := plan.Queue{Unlimited: true}
	check((&oste.ActivityType{Solution: "acme.music", Name: "republish", Verb: "POST", UriPattern: pattern, Retries: 2, ObjectIdRef: []string{"SongId"}}).Apply(&q))
	return must(s.EnsureQueue(ctx, q))
}

// activities fills a store with activities of one type, whose Parameter is the body that is sent. They are
// due at once without an instant.
func activities(pattern string) func(context.Context, store.Store, int, time.Time) {
	return func(ctx context.Context, s store.Store, n int, until time.Time) {
		q := activityType(ctx, s, pattern)
		a := oste.PointInTimeActivity{Date: until, Call: oste.Call{Parameter: json.RawMessage(sent)}}
		if until.IsZero() {
			a.Date = time.Now()
		}
		for left := n; left > 0; {
			tasks := make([]plan.Task, min(left, 1000))
			for i := range tasks {
				tasks[i] = must(a.Task(&q, ""))
			}
			check(s.AddTasks(ctx, plan.PlanID{}, tasks))
			left -= len(tasks)
		}
	}
}

// later compares the turns and sweeps of a store that has many activities due next year with those of a
// store that has none. Both stores are asked in turn.
func later(m *measurement) {
	n, turns := size(1_000_000, 20_000), size(300, 50)
	if m.on == onMongoDB {
		n, turns = size(100_000, 1000), size(50, 40)
	}
	full, empty := m.asked(), m.asked()
	defer full.close()
	defer empty.close()
	next := time.Now().AddDate(1, 0, 0)
	add := activities("http://192.0.2.1/song/{SongId}")
	add(m.Context(), full, n, next)
	add(m.Context(), empty, 0, next) // with the same queues
	if m.on == onMongoDB {           // FerretDB has the entries of an index that no longer hold until it tidies up, as it does each minute
		client, db := rawMongoDB(full.uri, nil)
		check(errors.Join(db.RunCommand(m.Context(), doc("compact", "tasks", "force", true)).Err(), client.Disconnect(m.Context())))
	}
	m.fullAndEmpty(full, empty, turns, "without them", fmt.Sprintf("%d activities due next year", n))
}

// fullAndEmpty compares the turns, polls and sweeps of a full store with those of an empty one, which are asked in turn. The note says what
// the full one is full of.
func (m *measurement) fullAndEmpty(full, empty *asked, turns int, peer, of string) {
	m.repeat(func() {
		full.begin(turns)
		empty.begin(turns)
		settle()
		for range turns {
			full.ask()
			empty.ask()
		}
		for _, x := range []struct {
			what         string
			ours, theirs []time.Duration
		}{{"turn", full.turns, empty.turns}, {"poll", full.polls, empty.polls}, {"sweep", full.sweeps, empty.sweeps}} {
			m.pair(x.what, "ms", milliseconds(median(x.ours)), peer, milliseconds(median(x.theirs)))
		}
		m.note("%s; %d turns that end and claim %d tasks, polls that find none, and sweeps", of, turns, taskATurn)
	})
}

const taskATurn = 16

// asked is a store whose turns and sweeps are measured.
type asked struct {
	*database
	ctx                  context.Context
	me                   plan.InstanceID
	queue                plan.QueueID
	held                 []protocol.Ending // by the turn before
	turns, polls, sweeps []time.Duration
}

func (m *measurement) asked() *asked {
	a := &asked{database: m.open(), ctx: m.Context(), me: plan.InstanceID{ID: plan.NewID(time.Now())}}
	check(a.Register(a.ctx, plan.Instance{ID: a.me, Node: "asks", Lease: time.Hour, Plugins: []string{"noop", "http"}}))
	a.queue = must(a.EnsureQueue(a.ctx, plan.Queue{Name: "noop", Plugin: "noop", Unlimited: true})).ID
	return a
}

// begin adds the tasks of so many turns.
func (a *asked) begin(turns int) {
	a.turns, a.polls, a.sweeps = nil, nil, nil
	for range turns {
		tasks := make([]plan.Task, taskATurn)
		for i := range tasks {
			tasks[i] = plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: taskName(i), Queue: a.queue}
		}
		check(a.AddTasks(a.ctx, plan.PlanID{}, tasks))
	}
}

// ask makes a turn that ends and claims tasks, one that finds no task of its queues, and a sweep.
func (a *asked) ask() {
	plugins := []string{"noop", "http"}
	var did protocol.Turned
	a.turns = append(a.turns, took(func() {
		did = must(a.Turn(a.ctx, protocol.Turn{Instance: a.me, Ended: a.held, Slots: taskATurn, Start: true, Plugins: plugins}))
	}))
	if len(did.Claimed) != taskATurn {
		failf("a turn claimed %d tasks: this was not the work to measure", len(did.Claimed))
	}
	a.held = nil
	for _, t := range did.Claimed {
		a.held = append(a.held, protocol.Ending{Claim: t.Claim, Status: plan.Succeeded, Output: smallOutput})
	}
	a.polls = append(a.polls, took(func() {
		did = must(a.Turn(a.ctx, protocol.Turn{Instance: a.me, Slots: taskATurn, Start: true, Plugins: plugins, Ignored: []plan.QueueID{a.queue}}))
	}))
	if len(did.Claimed) > 0 {
		failf("%d tasks were claimed that are due next year", len(did.Claimed))
	}
	holding := make([]plan.TaskID, len(a.held))
	for i := range a.held {
		holding[i] = a.held[i].Claim.Task
	}
	a.sweeps = append(a.sweeps, took(func() { must(a.Sweep(a.ctx, protocol.Sweep{Instance: a.me, Holding: holding})) }))
}

func took(do func()) time.Duration {
	start := time.Now()
	do()
	return time.Since(start)
}
