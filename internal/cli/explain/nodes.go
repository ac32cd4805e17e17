package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/internal/runner"
	"github.com/seed-1177d267/sluice/plan"
)

// Alive reports whether an instance lives, as far as can be told from here: it was heard of within its lease, and is not a process of
// this host that is certainly gone. Nodes rescue by the same signs, so that whoever asks is not told of a node that others have buried.
func Alive(i plan.Instance) bool { return i.Age <= i.Lease && !runner.Gone(i) }

// Serves reports whether an instance lives and claims tasks of the plan; of none, if it is zero.
func Serves(i plan.Instance, p plan.PlanID) bool {
	return Alive(i) && !i.Runner && (i.Plan.IsZero() || i.Plan == p)
}

// Holds reports whether the node of a claimed or running task lives. One that another program claimed is of no instance, and nothing is
// known of that program.
func Holds(nodes []plan.Instance, t *plan.Task) bool {
	return t.Instance.IsZero() || slices.ContainsFunc(nodes, func(i plan.Instance) bool { return i.ID == t.Instance && Alive(i) })
}

// Stalled reports whether a plan runs by its state while no node that lives would run it: nothing of it changes until one comes.
func Stalled(nodes []plan.Instance, p *plan.Plan) bool {
	return p.State == plan.PlanRunning && !slices.ContainsFunc(nodes, func(i plan.Instance) bool { return Serves(i, p.ID) })
}

// Missing returns the plugins among those given for which no live node claims tasks of the plan.
func Missing(nodes []plan.Instance, p plan.PlanID, needed []string) (missing []string) {
	for _, plugin := range needed {
		can := func(i plan.Instance) bool { return Serves(i, p) && slices.Contains(i.Plugins, plugin) }
		if !slices.ContainsFunc(nodes, can) {
			missing = append(missing, plugin)
		}
	}
	return missing
}

// able returns the live nodes that may claim a task of that plan and queue; if there are none, why says what is missing, and do what may
// help, if that is not a node as any other.
func able(nodes []plan.Instance, p plan.PlanID, q *plan.Queue) (able []plan.Instance, why string, do []string) {
	var has []plan.Instance // the plugin, but do not serve the queue
	alive, other := 0, 0
	for _, n := range nodes {
		switch {
		case !Alive(n), n.Runner:
		case !Serves(n, p):
			other++
		case n.Serves(q):
			able = append(able, n)
		case slices.Contains(n.Plugins, q.Plugin):
			has = append(has, n)
		default:
			alive++
		}
	}
	switch {
	case len(able) > 0:
		return able, "", nil
	case len(q.Pin) > 0:
		why, do = pinned(nodes, q)
		return nil, why, do
	case len(has) > 0 && !slices.ContainsFunc(has, func(i plan.Instance) bool { return q.ServedBy(i.Node) }):
		return nil, fmt.Sprintf("no node serves queue %s: it ignores %s, and no other is alive that has the plugin %s", q.Name, listed(q.Ignore), q.Plugin),
			[]string{"queue", "set", q.Name, "--ignore="}
	case len(has) > 0:
		return nil, fmt.Sprintf("no node serves queue %s: those that are alive were started for other queues", q.Name), nil
	case alive > 0:
		return nil, fmt.Sprintf("no live node has the plugin %s", q.Plugin), nil
	case other > 0:
		return nil, "every live node runs a plan of its own only", nil
	}
	return nil, "no node is alive", nil
}

// pinned says why none of the nodes that a queue is pinned to serves it.
func pinned(nodes []plan.Instance, q *plan.Queue) (why string, do []string) {
	why = fmt.Sprintf("no node serves queue %s: it is pinned to %s, ", q.Name, listed(q.Pin))
	alive := slices.ContainsFunc(nodes, func(i plan.Instance) bool { return Serves(i, plan.PlanID{}) && q.ServedBy(i.Node) })
	switch {
	case alive && len(q.Pin) == 1:
		return why + "which is alive but lacks its plugin " + q.Plugin + ", or was started for other queues", []string{"queue", "set", q.Name, "--pin="}
	case alive:
		return why + "of which those that are alive lack its plugin " + q.Plugin + ", or were started for other queues", []string{"queue", "set", q.Name, "--pin="}
	case len(q.Pin) == 1:
		return why + "which is not alive", []string{"den", "--name", string(q.Pin[0])}
	}
	return why + "none of which is alive", []string{"den", "--name", string(q.Pin[0])}
}

// listed names nodes.
func listed(nodes []plan.NodeName) string {
	const most = 5
	var names []string
	for _, n := range nodes[:min(most, len(nodes))] {
		names = append(names, string(n))
	}
	if more := len(nodes) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}
