package storetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
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
	holding map[plan.TaskID]protocol.ClaimedTask
	shares  protocol.Shares
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
	n := &node{w: w, s: s, id: plan.InstanceID{ID: w.newID()}, name: name, holding: map[plan.TaskID]protocol.ClaimedTask{}}
	return n, s.Register(w.ctx, plan.Instance{
		ID: n.id, Node: name, Host: "host", Lease: time.Minute, Threads: 8, Plugins: []string{"exec"},
	})
}

// turn does one turn; its instance and plugins are filled in.
func (n *node) turn(t protocol.Turn) protocol.Turned {
	n.w.Helper()
	did, err := n.try(t)
	n.w.no(err)
	return did
}

func (n *node) try(t protocol.Turn) (protocol.Turned, error) {
	t.Instance, t.Shares = n.id, &n.shares
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
func (n *node) claim(slots int) []protocol.ClaimedTask {
	n.w.Helper()
	return n.turn(protocol.Turn{Slots: slots, Start: true}).Claimed
}

// one claims and starts the one task that there is to claim.
func (n *node) one() protocol.ClaimedTask {
	n.w.Helper()
	c := n.claim(2)
	if len(c) != 1 {
		n.w.Fatalf("claimed %d tasks, want 1: %v", len(c), names(c))
	}
	return c[0]
}

// take claims and starts as many tasks as there are names, and returns them in the order of the names.
func (n *node) take(want ...string) []protocol.ClaimedTask {
	n.w.Helper()
	got := n.claim(len(want) + 1)
	out := make([]protocol.ClaimedTask, len(want))
	for i, name := range want {
		k := slices.IndexFunc(got, func(c protocol.ClaimedTask) bool { return c.Name == name })
		if k < 0 || len(got) != len(want) {
			n.w.Fatalf("claimed %v, want %v", names(got), want)
		}
		out[i] = got[k]
	}
	return out
}

// end hands in endings and turns, claiming nothing, until nothing is left to release.
func (n *node) end(endings ...protocol.Ending) protocol.Turned {
	n.w.Helper()
	did := n.turn(protocol.Turn{Ended: endings})
	for more := did.More; more; {
		next := n.turn(protocol.Turn{})
		did.Queued, did.Ended, more = did.Queued+next.Queued, append(did.Ended, next.Ended...), next.More
	}
	return did
}

// sweep sweeps, and turns, until nothing is left.
func (n *node) sweep() (queued int) {
	n.w.Helper()
	for {
		did := must(n.s.Sweep(n.w.ctx, protocol.Sweep{Instance: n.id, Holding: slices.Collect(maps.Keys(n.holding))}))(n.w)
		queued += did.Queued
		if turned := n.end(); !did.More {
			return queued + turned.Queued
		}
	}
}

// run claims and ends tasks as do says until there is nothing to claim, and returns the names of what it ran, in order.
func (n *node) run(do func(protocol.ClaimedTask) protocol.Ending) (ran []string) {
	n.w.Helper()
	var ended []protocol.Ending
	for {
		did := n.turn(protocol.Turn{Ended: ended, Slots: 100, Start: true})
		if ended = nil; len(did.Claimed) == 0 && !did.More {
			return ran
		}
		for _, c := range did.Claimed {
			ran = append(ran, c.Name)
			ended = append(ended, do(c))
		}
	}
}

func names(c []protocol.ClaimedTask) []string {
	out := make([]string, len(c))
	for i := range c {
		out[i] = c[i].Name
	}
	return out
}

// succeed is an ending with an output, which may be empty.
func succeed(c protocol.ClaimedTask, output string) protocol.Ending {
	return protocol.Ending{Claim: c.Claim, Status: plan.Succeeded, Output: json.RawMessage(output)}
}

func ok(c protocol.ClaimedTask) protocol.Ending { return succeed(c, "") }

func fail(c protocol.ClaimedTask) protocol.Ending {
	return protocol.Ending{Claim: c.Claim, Status: plan.Failed, Detail: "it failed"}
}

// skip ends an attempt that found nothing to do.
func skip(c protocol.ClaimedTask) protocol.Ending {
	return protocol.Ending{Claim: c.Claim, Status: plan.Cancelled, Reason: plan.ReasonSkipped, Detail: "nothing to do"}
}

func giveBack(c protocol.ClaimedTask) protocol.Ending {
	return protocol.Ending{Claim: c.Claim, Status: plan.Queued}
}

// notBegun gives back a task that its node could not begin.
func notBegun(c protocol.ClaimedTask) protocol.Ending {
	return protocol.Ending{Claim: c.Claim, Status: plan.Queued, Detail: rules.NotBegunDetail("n1", "no such folder")}
}

func later(c protocol.ClaimedTask, d time.Duration) protocol.Ending {
	return protocol.Ending{Claim: c.Claim, Status: plan.Held, Delay: d}
}

// oneOf returns one of the claims that a node holds.
func oneOf(n *node) protocol.ClaimedTask {
	n.w.Helper()
	for _, c := range n.holding {
		return c
	}
	n.w.Fatal("the node holds nothing")
	panic("unreachable")
}

// expand ends the claim of a foreach task with the items that its node made.
func expand(c protocol.ClaimedTask, items ...string) protocol.Ending {
	e := protocol.Ending{Claim: c.Claim, Status: plan.Held, Expand: true}
	for _, i := range items {
		e.Items = append(e.Items, json.RawMessage(i))
	}
	return e
}

// ordinals is a JSON list of n numbers.
func ordinals(n int) json.RawMessage {
	b := []byte{'['}
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Append(b, i)
	}
	return append(b, ']')
}

// withOutput ends an item with its index, doubled.
func withOutput(c protocol.ClaimedTask) protocol.Ending {
	if _, _, item := strings.Cut(c.Name, "["); !item {
		return ok(c)
	}
	return succeed(c, fmt.Sprint(2*c.Index))
}

// holdOne claims tasks until it has the one of that name, and returns it.
func (n *node) holdOne(name string) protocol.ClaimedTask {
	n.w.Helper()
	n.claim(99)
	for _, c := range n.holding {
		if c.Name == name {
			return c
		}
	}
	n.w.Fatalf("there is no %q to claim", name)
	panic("unreachable")
}

// failing ends the named tasks as failed and the others well.
func failing(names ...string) func(protocol.ClaimedTask) protocol.Ending {
	return func(c protocol.ClaimedTask) protocol.Ending {
		if slices.Contains(names, c.Name) {
			return fail(c)
		}
		return withOutput(c)
	}
}

// checkSettledAfter sweeps and then checks that nobody is held without a reason.
func (w *world) checkSettledAfter(n *node) {
	w.Helper()
	n.sweep()
	w.checkSettled()
}

// held returns what a node holds, by name.
func held(n *node) []protocol.ClaimedTask {
	return slices.SortedFunc(maps.Values(n.holding), func(a, b protocol.ClaimedTask) int {
		return strings.Compare(a.Name+a.Task.String(), b.Name+b.Task.String())
	})
}

// runner registers a runner of the node's name.
func (w *world) runner(name plan.NodeName) *node {
	w.Helper()
	return w.runnerOn(w.s, name)
}

// runnerOn registers a runner that uses another handle from then on.
func (w *world) runnerOn(s store.Store, name plan.NodeName) *node {
	w.Helper()
	r := &node{w: w, s: s, id: plan.InstanceID{ID: plan.NewID(time.Now())}, name: name, holding: map[plan.TaskID]protocol.ClaimedTask{}}
	w.no(w.s.Register(w.ctx, plan.Instance{ID: r.id, Node: name, Host: "host", Lease: time.Minute, Runner: true}))
	return r
}

func (n *node) tryTake(id plan.TaskID, start bool) (protocol.ClaimedTask, error) {
	c, err := n.s.Take(n.w.ctx, protocol.Take{Instance: n.id, Task: id, Start: start})
	if err == nil {
		n.holding[id] = c
	}
	return c, err
}

func (n *node) takeOver(id plan.TaskID, start bool) protocol.ClaimedTask {
	n.w.Helper()
	return must(n.tryTake(id, start))(n.w)
}

// claimOnly claims the one task that there is to claim, and does not start it.
func (n *node) claimOnly() protocol.ClaimedTask {
	n.w.Helper()
	did := n.turn(protocol.Turn{Slots: 2})
	if len(did.Claimed) != 1 {
		n.w.Fatalf("claimed %v, want one task", names(did.Claimed))
	}
	return did.Claimed[0]
}

// cancels returns what a beat tells the instance to end.
func (n *node) cancels() []plan.TaskID {
	n.w.Helper()
	return must(n.s.Beat(n.w.ctx, protocol.Beat{Instance: n.id}))(n.w).Cancel
}
