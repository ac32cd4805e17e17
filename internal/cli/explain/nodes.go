package explain

import (
	"fmt"
	"slices"

	"github.com/seed-1177d267/sluice/internal/runner"
	"github.com/seed-1177d267/sluice/plan"
)

// Alive reports whether an instance lives, as far as can be told from here: it was heard of within its lease, and is not a process of
// this host that is certainly gone. Nodes rescue by the same signs, so that whoever asks is not told of a node that others have buried.
func Alive(i plan.Instance) bool { return i.Age <= i.Lease && !runner.Gone(i) }

// Serves reports whether an instance lives and claims tasks of the plan; of none, if it is zero.
func Serves(i plan.Instance, p plan.PlanID) bool { return Alive(i) && (i.Plan.IsZero() || i.Plan == p) }

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
		if serving, _ := able(nodes, p, plugin); len(serving) == 0 {
			missing = append(missing, plugin)
		}
	}
	return missing
}

// able returns the live nodes that may claim a task of that plan and plugin; if there are none, why says what is missing.
func able(nodes []plan.Instance, p plan.PlanID, plugin string) (able []plan.Instance, why string) {
	alive, other := 0, 0
	for _, n := range nodes {
		switch {
		case !Alive(n):
		case !Serves(n, p):
			other++
		case slices.Contains(n.Plugins, plugin):
			able = append(able, n)
		default:
			alive++
		}
	}
	switch {
	case len(able) > 0:
		return able, ""
	case alive > 0:
		return nil, fmt.Sprintf("no live node has the plugin %s", plugin)
	case other > 0:
		return nil, "every live node runs a plan of its own only"
	}
	return nil, "no node is alive"
}
