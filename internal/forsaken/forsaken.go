// Package forsaken ends plans that were cancelled and that no live node serves, which would never end else. For such a plan it is a node
// that can run nothing: it takes what runs from nodes that died, by the rules that hold for all nodes.
package forsaken

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/internal/explain"
	"github.com/seed-1177d267/sluice/internal/runner"
	"github.com/seed-1177d267/sluice/internal/runner/procid"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

const (
	// Soon is how long the end takes at most where nothing is to be waited for.
	Soon = 5 * time.Second
	// most is how long a lease is waited for, and the end after it.
	most = 30 * time.Second
)

// Look says by when a plan that was cancelled can have been ended by who is not one of its nodes; 0 if a node that lives ends it, or it has
// ended. With others, another program has what runs, from which nothing is taken. gone says of which instances it is certain that they do
// not live; the leases of the others have to be over first.
func Look(ctx context.Context, r store.Reader, p *plan.Plan, gone func(plan.Instance) bool) (within time.Duration, others bool, err error) {
	nodes, err := r.Instances(ctx)
	if err != nil || !explain.Stalled(nodes, p) {
		return 0, false, err
	}
	within = Soon
	q := store.TaskQuery{Plan: p.ID, Statuses: []plan.Status{plan.Claimed, plan.Running}, Limit: 1000}
	for {
		tasks, err := r.Tasks(ctx, q)
		if err != nil {
			return 0, false, err
		}
		for i := range tasks {
			others = others || tasks[i].Instance.IsZero()
			for k := range nodes {
				if nodes[k].ID == tasks[i].Instance && !gone(nodes[k]) {
					within = max(within, min(nodes[k].Lease+Soon, most))
				}
			}
		}
		if len(tasks) < q.Limit {
			return within, others, nil
		}
		q.After = tasks[len(tasks)-1].ID
	}
}

// Config says where plans are ended, and by whom.
type Config struct {
	Store   store.Store
	Version string // of this program
	// Waiting is told, if it is not nil, that the lease of a node has to be over first, and by when the plan has ended.
	Waiting func(within time.Duration)
}

// End ends a plan that was cancelled, if no live node does. It returns the plan as it is then, and reports whether nobody ends it all the
// same: another program may have what runs, or a node that is silent may not have been so for its lease. It takes half a minute at most.
func (c Config) End(ctx context.Context, p plan.Plan) (now plan.Plan, left bool, err error) {
	within, others, err := Look(ctx, c.Store, &p, procid.Gone)
	if err != nil || within == 0 || others {
		return p, others, err
	}
	host, name, err := Name()
	if err != nil {
		return p, false, err
	}
	node, err := den.New(c.Store, den.Config{
		Plugins: plugins.NewRegistry(), Name: name, Host: host, Linger: runner.GuardGrace, Threads: 1, Plan: p.ID, Beat: 200 * time.Millisecond, Version: c.Version,
	})
	if err != nil {
		return p, false, err
	}
	if within > Soon && c.Waiting != nil {
		c.Waiting(within)
	}
	limited, done := context.WithTimeout(ctx, within)
	defer done()
	if err := node.Run(limited); err != nil {
		return p, false, err
	}
	if now, err = c.Store.Plan(ctx, p.ID); err != nil {
		return p, false, err
	}
	return now, !now.State.Ended(), nil
}

// Name names a node that is in a process beside what that is for: several are on one host at once.
func Name() (host string, name plan.NodeName, err error) {
	if host, err = os.Hostname(); err != nil {
		return "", "", fmt.Errorf("the host's name is not known: %w", err)
	}
	return host, plan.NodeName(fmt.Sprintf("%s.%d", host, os.Getpid())), nil
}
