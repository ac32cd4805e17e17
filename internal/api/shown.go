package api

import (
	"context"
	"maps"
	"time"

	"github.com/seed-1177d267/sluice/internal/explain"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// ShownPlan is PlanOf with what follows from the nodes of the store and the present time.
func ShownPlan(p *plan.Plan, nodes []plan.Instance) Plan {
	w := PlanOf(p)
	w.Stalled = explain.Stalled(nodes, p)
	if left, ok := rules.PlanLeft(p, time.Now()); ok {
		w.Left = int((left + time.Second - 1) / time.Second)
	}
	return w
}

// ReadNodes returns the nodes of a store, in its order. With counts it counts the tasks of each.
func ReadNodes(ctx context.Context, r explain.Reader, counts bool) (*NodesAnswer, error) {
	found, err := r.Instances(ctx)
	if err != nil {
		return nil, err
	}
	limits, err := r.MaxThreads(ctx)
	if err != nil {
		return nil, err
	}
	running := map[plan.InstanceID]int{}
	if counts {
		err := store.EachTask(ctx, r, store.TaskQuery{Statuses: []plan.Status{plan.Claimed, plan.Running}}, func(t *plan.Task) error {
			running[t.Instance]++
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	out := &NodesAnswer{Limits: map[plan.NodeName]int{}}
	maps.Copy(out.Limits, limits)
	out.Nodes = Each(found, func(i *plan.Instance) Node {
		n := NodeOf(i)
		n.State, n.Status = explain.NodeState(*i)
		n.Running = running[n.ID]
		if most, limited := limits[n.Name]; limited {
			n.Most = &most
		}
		return n
	})
	return out, nil
}
