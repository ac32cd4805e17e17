package den

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

// register makes an instance known. If two processes start at once, the store decides which of them
// gets the name. The loser decides here whether the owner of the name still lives.
func (n *Node) register(ctx context.Context, me plan.Instance) error {
	former := n.former
	n.former = append(n.former, me.ID)
	var seen plan.Instance
	var p pulse
	for {
		err := n.store.Register(ctx, me)
		if err == nil {
			n.former = n.former[len(n.former)-1:]
			return nil
		}
		if !errors.Is(err, plan.ErrNameTaken) {
			return fmt.Errorf("register node %s: %w", n.cfg.Name, err)
		}
		i, err := n.holder(ctx)
		if err != nil {
			return fmt.Errorf("find the owner of the node name %s: %w", n.cfg.Name, err)
		}
		now := time.Now()
		gone := i.Host == me.Host && n.cfg.Dead(i)
		var wait time.Duration
		switch {
		case i.ID.ID.IsZero(): // it has just left
			seen, wait = i, n.cfg.Beat/10
		case slices.Contains(former, i.ID):
		case i.ID != seen.ID:
			seen, p = i, pulse{beats: i.Beats, since: now}
			if !gone {
				n.log.Info("another process has the name; waiting until it is known whether it lives", "host", i.Host, "pid", i.Process.PID, "since", since(i),
					"at_most", i.Lease)
			}
			fallthrough
		default:
			if gone && p.gone.IsZero() {
				p.gone = now
			}
			switch {
			case i.Beats != p.beats:
				return &nameTakenError{i}
			case gone:
				wait = n.cfg.Linger - now.Sub(p.gone)
			default:
				wait = i.Lease - now.Sub(p.since)
			}
		}
		if wait > 0 {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(min(wait, n.cfg.Beat)):
			}
			continue
		}
		tasks, err := n.store.Rescue(ctx, i.ID, i.Beats)
		switch {
		case errors.Is(err, plan.ErrConflict): // it beat after all
		case err != nil:
			return fmt.Errorf("rescue the tasks of an earlier node %s: %w", n.cfg.Name, err)
		default:
			n.log.Info("rescued what an earlier process of this name had claimed", "dead", i.ID, "host", i.Host, "pid", i.Process.PID, "tasks", tasks,
				"process_gone", gone)
		}
	}
}

// holder returns the instance that has this node's name, a zero one if there is none any more.
func (n *Node) holder(ctx context.Context) (plan.Instance, error) {
	all, err := n.store.Instances(ctx)
	for _, i := range all {
		if i.Sole && i.Node == n.cfg.Name {
			return i, err
		}
	}
	return plan.Instance{}, err
}

// since is when an instance began, by the clock of its process.
func since(i plan.Instance) string { return i.ID.Time().UTC().Format(time.RFC3339) }

// A nameTakenError says who has the name.
type nameTakenError struct{ by plan.Instance }

func (e *nameTakenError) Error() string {
	return fmt.Sprintf("a node named %s runs already: process %d on host %s, since %s; stop that one, or give this one another name with --name",
		e.by.Node, e.by.Process.PID, e.by.Host, since(e.by))
}

func (e *nameTakenError) Unwrap() error { return plan.ErrNameTaken }
