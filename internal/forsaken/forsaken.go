// Package forsaken ends cancelled plans that no live node serves, and that would never end
// otherwise. For such a plan it acts as a node that can run nothing. It takes tasks from dead nodes
// by the rules that hold for all nodes.
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
	// Soon is how long the end, or one more task's end, takes at most where nothing is to be waited for.
	Soon = 5 * time.Second
	// most is how long a lease is waited for, and the end after it.
	most = 30 * time.Second
)

// Look returns by when a process that is not a node of a cancelled plan can have ended it. It
// returns 0 if a live node ends the plan, or the plan has ended. others reports that another
// program has some of the tasks, from which nothing is taken. gone tells which instances are
// certainly dead; the leases of the others have to be over first.
func Look(ctx context.Context, r store.Reader, p *plan.Plan, gone func(plan.Instance) bool) (within time.Duration, others bool, err error) {
	nodes, err := r.Instances(ctx)
	if err != nil || !explain.Stalled(nodes, p) {
		return 0, false, err
	}
	within = Soon
	err = store.EachTask(ctx, r, store.TaskQuery{Plan: p.ID, Statuses: []plan.Status{plan.Claimed, plan.Running}}, func(t *plan.Task) error {
		others = others || t.Instance.IsZero()
		for k := range nodes {
			if nodes[k].ID == t.Instance && !gone(nodes[k]) {
				within = max(within, min(nodes[k].Lease+Soon, most))
			}
		}
		return nil
	})
	if err != nil {
		return 0, false, err
	}
	return within, others, nil
}

// RunsFinally reports whether a plan that was cancelled runs its tasks of finally now, which need a node that
// can run them.
func RunsFinally(p *plan.Plan) bool { return p.InFinally() && p.Closing == plan.Open }

// Config says where plans are ended, and by whom.
type Config struct {
	Store   store.Store
	Version string // of this program
	// Waiting, unless it is nil, is called if a node's lease has to be over first. within is the
	// time by when the plan has ended.
	Waiting func(within time.Duration)
}

// End ends a cancelled plan if no live node does. It returns the plan as it is then. It also
// reports whether nobody ends the plan: another program may have some of the tasks, or a node may
// have been silent for less than its lease. End takes at most half a minute, and longer only as
// long as tasks end.
func (c Config) End(ctx context.Context, p plan.Plan) (now plan.Plan, left bool, err error) {
	within, others, err := Look(ctx, c.Store, &p, procid.Gone)
	if RunsFinally(&p) && err == nil {
		return p, within > 0, nil
	}
	if err != nil || within == 0 || others {
		return p, others, err
	}
	host, name, err := Name()
	if err != nil {
		return p, false, err
	}
	if within > Soon && c.Waiting != nil {
		c.Waiting(within)
	}
	for {
		node, err := den.New(c.Store, den.Config{
			Plugins: plugins.NewRegistry(), Name: name, Host: host, Linger: runner.GuardGrace, Threads: 1, Plan: p.ID, Beat: 200 * time.Millisecond, Version: c.Version,
		})
		if err != nil {
			return p, false, err
		}
		limited, done := context.WithTimeout(ctx, within)
		err = node.Run(limited)
		done()
		if err != nil {
			return p, false, err
		}
		if now, err = c.Store.Plan(ctx, p.ID); err != nil || now.State.Ended() || RunsFinally(&now) || now.Counts == p.Counts {
			return now, !now.State.Ended(), err
		}
		p = now
	}
}

// Name returns a name for a node inside a process with another purpose. Several such nodes may be
// on one host at once.
func Name() (host string, name plan.NodeName, err error) {
	if host, err = os.Hostname(); err != nil {
		return "", "", fmt.Errorf("the host's name is not known: %w", err)
	}
	return host, plan.NodeName(fmt.Sprintf("%s.%d", host, os.Getpid())), nil
}
