package storetest

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// A node claims and ends tasks as its test says.
type node struct {
	w       *world
	s       store.Store
	id      plan.InstanceID
	name    plan.NodeName
	only    plan.PlanID // the plan whose tasks it claims in a crowd; none: of all
	holding map[plan.TaskID]plan.ClaimedTask
}

func (w *world) node(name plan.NodeName) *node {
	w.Helper()
	return w.nodeOn(w.s, name)
}

// nodeOn registers a node that uses another handle.
func (w *world) nodeOn(s store.Store, name plan.NodeName) *node {
	w.Helper()
	return must(w.register(s, name))(w)
}

func (w *world) register(s store.Store, name plan.NodeName) (*node, error) {
	n := &node{w: w, s: s, id: plan.InstanceID{ID: w.newID()}, name: name, holding: map[plan.TaskID]plan.ClaimedTask{}}
	return n, s.Register(w.ctx, plan.Instance{
		ID: n.id, Node: name, Host: "host", Lease: time.Minute, Threads: 8, Plugins: []string{"exec"},
	})
}

// turn does one turn; its instance and plugins are filled in.
func (n *node) turn(t plan.Turn) plan.Turned {
	n.w.Helper()
	did, err := n.try(t)
	n.w.no(err)
	return did
}

func (n *node) try(t plan.Turn) (plan.Turned, error) {
	t.Instance = n.id
	if t.Plugins == nil {
		t.Plugins = []string{"exec"}
	}
	did, err := n.s.Turn(n.w.ctx, t)
	if err != nil {
		return did, err
	}
	for _, e := range t.Ended {
		delete(n.holding, e.Task)
	}
	for _, c := range did.Claimed {
		n.holding[c.Task] = c
	}
	return did, nil
}

// claim claims and starts up to that many tasks.
func (n *node) claim(slots int) []plan.ClaimedTask {
	n.w.Helper()
	return n.turn(plan.Turn{Slots: slots, Start: true}).Claimed
}

// one claims and starts the one task that there is to claim.
func (n *node) one() plan.ClaimedTask {
	n.w.Helper()
	c := n.claim(2)
	if len(c) != 1 {
		n.w.Fatalf("claimed %d tasks, want 1: %v", len(c), names(c))
	}
	return c[0]
}

// take claims and starts as many tasks as there are names, and returns them in the order of the names.
func (n *node) take(want ...string) []plan.ClaimedTask {
	n.w.Helper()
	got := n.claim(len(want) + 1)
	out := make([]plan.ClaimedTask, len(want))
	for i, name := range want {
		k := slices.IndexFunc(got, func(c plan.ClaimedTask) bool { return c.Name == name })
		if k < 0 || len(got) != len(want) {
			n.w.Fatalf("claimed %v, want %v", names(got), want)
		}
		out[i] = got[k]
	}
	return out
}

// end hands in endings and turns, claiming nothing, until nothing is left to release.
func (n *node) end(endings ...plan.Ending) plan.Turned {
	n.w.Helper()
	did := n.turn(plan.Turn{Ended: endings})
	for more := did.More; more; {
		next := n.turn(plan.Turn{})
		did.Queued, did.Ended, more = did.Queued+next.Queued, append(did.Ended, next.Ended...), next.More
	}
	return did
}

// sweep sweeps, and turns, until nothing is left.
func (n *node) sweep() (queued int) {
	n.w.Helper()
	for {
		did := must(n.s.Sweep(n.w.ctx, plan.Sweep{Instance: n.id, Holding: slices.Collect(maps.Keys(n.holding))}))(n.w)
		queued += did.Queued
		if turned := n.end(); !did.More {
			return queued + turned.Queued
		}
	}
}

// run claims and ends tasks as do says until there is nothing to claim, and returns the names of what it ran, in order.
func (n *node) run(do func(plan.ClaimedTask) plan.Ending) (ran []string) {
	n.w.Helper()
	var ended []plan.Ending
	for {
		did := n.turn(plan.Turn{Ended: ended, Slots: 100, Start: true})
		if ended = nil; len(did.Claimed) == 0 && !did.More {
			return ran
		}
		for _, c := range did.Claimed {
			ran = append(ran, c.Name)
			ended = append(ended, do(c))
		}
	}
}

func names(c []plan.ClaimedTask) []string {
	out := make([]string, len(c))
	for i := range c {
		out[i] = c[i].Name
	}
	return out
}

// succeed is an ending with an output, which may be empty.
func succeed(c plan.ClaimedTask, output string) plan.Ending {
	return plan.Ending{Claim: c.Claim, Status: plan.Succeeded, Output: json.RawMessage(output)}
}

func ok(c plan.ClaimedTask) plan.Ending { return succeed(c, "") }

func fail(c plan.ClaimedTask) plan.Ending {
	return plan.Ending{Claim: c.Claim, Status: plan.Failed, Detail: "it failed"}
}

func giveBack(c plan.ClaimedTask) plan.Ending {
	return plan.Ending{Claim: c.Claim, Status: plan.Queued}
}

func later(c plan.ClaimedTask, d time.Duration) plan.Ending {
	return plan.Ending{Claim: c.Claim, Status: plan.Held, Delay: d}
}
