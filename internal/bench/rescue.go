package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

// A disaster is nodes that are killed while their tasks run, and one that is left.
type disaster struct {
	lease time.Duration
	beat  time.Duration // 0: the default
	nodes int           // that die, one after the other
	here  bool          // on the host of the one that is left, which sees that their processes are gone
	reps  int
}

// rescueThreads is how many tasks each of them runs.
const rescueThreads = 4

func clusterRescue(ctx context.Context, t *trial) {
	all := []disaster{{lease: 3 * time.Second, nodes: 8, reps: 3}, {lease: 10 * time.Second, nodes: 8, reps: 1}, {lease: 10 * time.Second, nodes: 8, here: true, reps: 1}}
	if t.quick {
		short := 100 * time.Millisecond
		all = []disaster{{lease: 10 * short, beat: short, nodes: 2, reps: 1}, {lease: time.Minute, beat: short, nodes: 2, here: true, reps: 1}}
	}
	for _, d := range all {
		var took []time.Duration
		t.again(d.reps, func() { took = append(took, d.once(ctx, t)...) })
		seconds := func(q float64) float64 { return quantile(took, q).Seconds() }
		r := result{
			What: fmt.Sprintf("death to running elsewhere, p99, lease of %v", d.lease), Value: seconds(0.99), Unit: "s",
			Note: fmt.Sprintf("%d tasks of %d nodes, one left; median %.2f s, longest %.2f s", len(took), t.repetitions(d.reps)*d.nodes, seconds(0.5), seconds(1)),
		}
		if d.here {
			r.What = "the same on one host, which sees that a process is gone"
		}
		t.add(r)
	}
}

// once kills the nodes one by one, at any time between their beats, and returns how long after that each of their tasks ran elsewhere.
func (d disaster) once(ctx context.Context, t *trial) (took []time.Duration) {
	db := t.open(ctx)
	defer db.close(ctx)
	id := submitTo(ctx, db, 1, 0, d.nodes*rescueThreads)
	ctx, cancel := context.WithTimeout(ctx, d.lease+time.Minute)
	defer cancel()
	c := startCrew(ctx, memberWord, d.members(db.uri))
	defer c.stop()
	c.ready()
	dying, left := c[:d.nodes], c[d.nodes:]
	dying.tell()
	var running []plan.Task
	for len(running) < d.nodes*rescueThreads {
		running = db.active(ctx, plan.Running)
		pause(ctx, lookEvery)
	}
	left.tell()
	pause(ctx, 2*time.Second) // it has seen the others beat
	died := map[plan.NodeName]time.Time{}
	for i, one := range dying {
		died[nodeName(i)] = one.kill()
		pause(ctx, rand.N(500*time.Millisecond))
	}
	for !db.over(ctx, id) {
	}
	left.tell()
	said := reports[memberReport](left)
	of := map[string]plan.NodeName{}
	for _, t := range running {
		of[t.ID.String()] = t.Node
	}
	for _, one := range said[0].Runs {
		took = append(took, one.At.Sub(died[of[one.Task]]))
	}
	check(eachOnce(said, len(running)))
	return took
}

// members are those that die, and the one that is left, which could run all tasks at once.
func (d disaster) members(uri string) []member {
	var all []member
	for i := range d.nodes {
		m := member{URI: uri, Name: nodeName(i), Threads: rescueThreads, Lease: d.lease, Beat: d.beat, Stuck: true}
		if !d.here {
			m.Host = "host-of-" + string(m.Name)
		}
		all = append(all, m)
	}
	return append(all, member{URI: uri, Name: nodeName(d.nodes), Threads: d.nodes * rescueThreads, Lease: d.lease, Beat: d.beat})
}
