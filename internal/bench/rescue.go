package main

import (
	"context"
	"errors"
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

func clusterRescue(ctx context.Context, b *bench, add func(result)) error {
	if why := b.missing(onMongoDB); why != "" {
		add(result{What: "death to running elsewhere", Skipped: why})
		return nil
	}
	all := []disaster{{lease: 3 * time.Second, nodes: 8, reps: 3}, {lease: 10 * time.Second, nodes: 8, reps: 1}, {lease: 10 * time.Second, nodes: 8, here: true, reps: 1}}
	if b.quick {
		short := 100 * time.Millisecond
		all = []disaster{{lease: 10 * short, beat: short, nodes: 2, reps: 1}, {lease: time.Minute, beat: short, nodes: 2, here: true, reps: 1}}
	}
	for _, d := range all {
		if err := d.run(ctx, b, add); err != nil {
			return err
		}
	}
	return nil
}

func (d disaster) run(ctx context.Context, b *bench, add func(result)) error {
	var took []time.Duration
	reps := b.repetitions(d.reps)
	for range reps {
		one, err := d.once(ctx, b)
		if err != nil {
			return err
		}
		took = append(took, one...)
	}
	seconds := func(q float64) float64 { return quantile(took, q).Seconds() }
	r := result{
		What: fmt.Sprintf("death to running elsewhere, p99, lease of %v", d.lease), Value: seconds(0.99), Unit: "s", Floor: atMost((d.lease + 2*time.Second).Seconds()),
		Note: fmt.Sprintf("%d tasks of %d nodes, one left; median %.2f s, longest %.2f s", len(took), reps*d.nodes, seconds(0.5), seconds(1)),
	}
	if d.here {
		r.What, r.Floor = "the same on one host, which sees that a process is gone", nil
	}
	add(r)
	return nil
}

// once kills the nodes one by one, at any time between their beats, and returns how long after that each of their tasks ran elsewhere.
func (d disaster) once(ctx context.Context, b *bench) (took []time.Duration, err error) {
	db, err := b.open(ctx, onMongoDB)
	if err != nil {
		return nil, err
	}
	defer closing(ctx, db, &err)
	id, err := submitTo(ctx, db, 1, 0, d.nodes*rescueThreads)
	if err != nil {
		return nil, err
	}
	look, err := newLookout(db.uri)
	if err != nil {
		return nil, err
	}
	defer closing(ctx, look, &err)
	ctx, cancel := context.WithTimeout(ctx, d.lease+time.Minute)
	defer cancel()
	c, err := startCluster(ctx, d.members(db.uri))
	defer func() { err = errors.Join(err, c.stop()) }()
	if err != nil {
		return nil, err
	}
	dying, left := c[:d.nodes], c[d.nodes:]
	if err := dying.begin(); err != nil {
		return nil, err
	}
	var running []activeTask
	for len(running) < d.nodes*rescueThreads {
		if running, err = look.active(ctx, plan.Running); err != nil {
			return nil, err
		}
		if err := pause(ctx, lookEvery); err != nil {
			return nil, err
		}
	}
	if err := left.begin(); err != nil {
		return nil, err
	}
	if err := pause(ctx, 2*time.Second); err != nil { // it has seen the others beat
		return nil, err
	}
	died := map[plan.NodeName]time.Time{}
	for i, one := range dying {
		died[nodeName(i)] = one.kill()
		if err := pause(ctx, rand.N(500*time.Millisecond)); err != nil {
			return nil, err
		}
	}
	for over := false; !over; {
		if over, err = look.over(ctx, id); err != nil {
			return nil, err
		}
	}
	reports, err := left.end(false)
	if err != nil {
		return nil, err
	}
	of := map[string]plan.NodeName{}
	for _, t := range running {
		of[t.ID.Hex()] = t.Node
	}
	for _, one := range reports[0].Runs {
		took = append(took, one.At.Sub(died[of[one.Task]]))
	}
	return took, eachOnce(reports, len(running))
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
