package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// queued explains a task that any node may claim: its queue's limit, or that no node can, or that all are busy.
func (e *explainer) queued(t *plan.Task) (Link, error) {
	queues, err := e.r.Queues(e.ctx)
	if err != nil {
		return Link{}, err
	}
	i := slices.IndexFunc(queues, func(q plan.Queue) bool { return q.ID == t.Queue })
	if i < 0 {
		return Link{Why: "its queue is gone"}, nil
	}
	if err := e.r.CountQueues(e.ctx, queues[i:i+1]); err != nil {
		return Link{}, err
	}
	q := &queues[i]
	switch {
	case !q.Unlimited && q.Threads <= 0:
		return Link{ // how many it had is kept nowhere, and a number that is wrong makes a queue serial that others use too
			Why: fmt.Sprintf("queue %s is paused, its threads are 0: give it those that it had, a number or unlimited", q.Name),
			Do:  []string{"queue", "set", q.Name, "--threads", "N"},
		}, nil
	case !q.Unlimited && q.Active >= q.Threads:
		return Link{
			Why: fmt.Sprintf("queue %s runs as many as it may, %d of %d threads", q.Name, q.Active, q.Threads),
			Do:  []string{"queue", "set", q.Name, "--threads", fmt.Sprint(2 * q.Threads)},
		}, nil
	}
	nodes, err := e.r.Instances(e.ctx)
	if err != nil {
		return Link{}, err
	}
	able, why, do := able(nodes, t.Plan, q)
	if len(able) == 0 {
		if do == nil {
			do = start(t, e.plans[t.Plan])
		}
		return Link{Why: why, Do: do}, nil
	}
	busy, err := e.r.Tasks(e.ctx, store.TaskQuery{Statuses: []plan.Status{plan.Claimed, plan.Running}, Limit: 10_000})
	if err != nil {
		return Link{}, err
	}
	has := map[plan.InstanceID]int{}
	ofQueue := map[plan.NodeName]int{}
	for i := range busy {
		has[busy[i].Instance]++
		if busy[i].Queue == q.ID {
			ofQueue[busy[i].Node]++
		}
	}
	if q.NodeThreads > 0 && !slices.ContainsFunc(able, func(i plan.Instance) bool { return ofQueue[i.Node] < q.NodeThreads }) {
		return Link{
			Why: fmt.Sprintf("queue %s lets one node run %d of its tasks at once, and each that serves it does", q.Name, q.NodeThreads),
			Do:  []string{"queue", "set", q.Name, "--node-threads", fmt.Sprint(2 * q.NodeThreads)},
		}, nil
	}
	var full []string
	for _, n := range able {
		if has[n.ID] >= n.Threads {
			full = append(full, fmt.Sprintf("%s %d of %d", n.Node, has[n.ID], n.Threads))
		}
	}
	if len(full) == len(able) {
		const most = 3
		if len(full) > most {
			full = append(full[:most], fmt.Sprintf("%d more", len(full)-most))
		}
		return Link{Why: "every node that can run it has its threads full: " + strings.Join(full, ", ")}, nil
	}
	if q.Queued > 1 {
		return Link{Why: fmt.Sprintf("it can run, and waits its turn among the %d tasks of queue %s", q.Queued, q.Name)}, nil
	}
	return Link{Why: "it can run: a node is about to claim it"}, nil
}
