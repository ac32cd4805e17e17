package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/internal/hint"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/runner/procid"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// Alive reports whether an instance lives, as far as this process can tell. It sent a heartbeat
// within its lease, and is not a process of this host that is certainly gone. Nodes rescue by the
// same signs, so that nobody reads of a live node that others have rescued.
func Alive(i plan.Instance) bool { return i.Age <= i.Lease && !procid.Gone(i) }

// NodeState returns the state of an instance, as a word and as a code: alive (1), silent (0), or
// gone (-1) if its process is certainly dead.
func NodeState(i plan.Instance) (word string, code int) {
	switch {
	case procid.Gone(i):
		return "gone", -1
	case !Alive(i):
		return "silent", 0
	}
	return "alive", 1
}

// Serves reports whether an instance lives and claims tasks of the plan; of none, if it is zero.
func Serves(i plan.Instance, p plan.PlanID) bool {
	return Alive(i) && !i.Runner && (i.Plan.IsZero() || i.Plan == p)
}

// Holds reports whether the node of a claimed or running task lives. A task of another program has
// no instance, and nothing is known of that program.
func Holds(nodes []plan.Instance, t *plan.Task) bool {
	return t.Instance.IsZero() || slices.ContainsFunc(nodes, func(i plan.Instance) bool { return i.ID == t.Instance && Alive(i) })
}

// NodeGone says that the node of a task is gone. A store may know no name of such a node any more.
func NodeGone(t *plan.Task) string {
	if t.Node == "" {
		return "its node is gone"
	}
	return fmt.Sprintf("its node %s is gone", t.Node)
}

// Stalled reports whether a plan runs by its state while no node that lives would run it: nothing of it changes until one comes.
func Stalled(nodes []plan.Instance, p *plan.Plan) bool {
	return p.State == plan.PlanRunning && !slices.ContainsFunc(nodes, func(i plan.Instance) bool { return Serves(i, p.ID) })
}

// Strays says how many tasks of a running plan have claims of instances that are not registered,
// and what ends such a claim. It returns "" if there are none. It looks at some thousands.
func Strays(ctx context.Context, r Reader, nodes []plan.Instance, p *plan.Plan) (n int, end string, err error) {
	if p.State != plan.PlanRunning || p.Counts.Claimed+p.Counts.Running == 0 {
		return 0, "", nil
	}
	known := rules.Registered{}
	for _, i := range nodes {
		known[i.ID] = true
	}
	active, err := r.Tasks(ctx, store.TaskQuery{Plan: p.ID, Statuses: []plan.Status{plan.Claimed, plan.Running}, Limit: 10_000})
	if n = len(known.Strays(active)); n == 0 || err != nil {
		return 0, "", err
	}
	return n, rules.StrayEnd(slices.ContainsFunc(nodes, Alive)), nil
}

// Outside returns how many tasks of a plan task runners go on with that live. They end these, and need no node for it.
func Outside(ctx context.Context, r Reader, nodes []plan.Instance, p *plan.Plan) (n int, err error) {
	runners := map[plan.InstanceID]bool{}
	for _, i := range nodes {
		if i.Runner && Alive(i) {
			runners[i.ID] = true
		}
	}
	if len(runners) == 0 {
		return 0, nil
	}
	active, err := r.Tasks(ctx, store.TaskQuery{Plan: p.ID, Statuses: []plan.Status{plan.Claimed, plan.Running}, Limit: 10_000})
	for i := range active {
		if runners[active[i].Instance] {
			n++
		}
	}
	return n, err
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

// able returns the live nodes that may claim a task of that plan and queue. If there are none, why
// says what is missing. h says what may help, unless any node would.
func able(nodes []plan.Instance, p plan.PlanID, q *plan.Queue) (able []plan.Instance, why string, h hint.Hint) {
	var not []plan.Instance // that live, and serve the plan
	has, other := 0, 0      // of those how many have the plugin; of others
	for _, n := range nodes {
		switch {
		case !Alive(n), n.Runner:
		case !Serves(n, p):
			other++
		case n.Serves(q):
			able = append(able, n)
		default:
			not = append(not, n)
			if slices.Contains(n.Plugins, q.Plugin) {
				has++
			}
		}
	}
	switch {
	case len(able) > 0:
		return able, "", h
	case len(q.Pin) > 0:
		why, h = pinned(not, q)
		return nil, why, h
	case len(not) == 0 && other > 0:
		return nil, "every live node runs a plan of its own only", h
	case len(not) == 0:
		return nil, "no node is alive", h
	case has == 0:
		return nil, fmt.Sprintf("no live node has the plugin %s, which queue %s wants", q.Plugin, q.Name), h
	}
	ignored := func(n plan.Instance) bool { return slices.Contains(n.Plugins, q.Plugin) && !q.ServedBy(n.Node) }
	if slices.ContainsFunc(not, ignored) {
		h = hint.Unignore(q)
	}
	return nil, fmt.Sprintf("no node serves queue %s: %s", q.Name, obstacles(not, q)), h
}

// pinned says why none of the nodes that a queue is pinned to serves it. alive are the live nodes
// that do not.
func pinned(alive []plan.Instance, q *plan.Queue) (why string, h hint.Hint) {
	why = fmt.Sprintf("no node serves queue %s: it is pinned to %s", q.Name, listed(q.Pin))
	alive = slices.DeleteFunc(alive, func(n plan.Instance) bool { return !q.ServedBy(n.Node) })
	switch {
	case len(alive) > 0:
		return why + ", and " + obstacles(alive, q), hint.Unpin(q)
	case len(q.Pin) == 1:
		return why + ", which is not alive", hint.Pinned(q)
	}
	return why + ", none of which is alive", hint.Pinned(q)
}

// obstacles says of nodes that live why each does not serve the queue.
func obstacles(nodes []plan.Instance, q *plan.Queue) string {
	var words []string
	for _, n := range nodes {
		why := "leaves it alone (its --ignore-queues, or ignorequeues)"
		switch {
		case !slices.Contains(n.Plugins, q.Plugin):
			why = "has no plugin " + q.Plugin
		case !q.ServedBy(n.Node):
			why = "is one that the queue ignores"
		case len(n.Active) > 0:
			why = "serves others only (its --queues, or activequeues)"
		}
		words = append(words, string(n.Node)+" "+why)
	}
	return few(words)
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
