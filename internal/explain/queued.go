package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/duration"
	"github.com/seed-1177d267/sluice/internal/hint"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// queued explains a task that any node may claim: its queue's limit, or that no node can, or that all are busy.
func (e *explainer) queued(t *plan.Task) (Link, *plan.Task, error) {
	queues, err := e.r.Queues(e.ctx)
	if err != nil {
		return Link{}, nil, err
	}
	i := slices.IndexFunc(queues, func(q plan.Queue) bool { return q.ID == t.Queue })
	if i < 0 {
		return Link{Why: "its queue is gone"}, nil, nil
	}
	if err := e.r.CountQueues(e.ctx, queues[i:i+1]); err != nil {
		return Link{}, nil, err
	}
	q := &queues[i]
	in, err := e.groupsOf(q)
	if err != nil {
		return Link{}, nil, err
	}
	if g := rules.PausedGroup(in); g != nil {
		why, h := hint.Paused(g)
		return Link{Why: why, Hint: h}, nil, nil
	}
	if why, h := hint.Full(q); why != "" {
		return Link{Why: why, Hint: h}, nil, nil
	}
	nodes, err := e.r.Instances(e.ctx)
	if err != nil {
		return Link{}, nil, err
	}
	able, why, h := able(nodes, t.Plan, q)
	if len(able) == 0 {
		if h.Do == nil {
			h = e.start(t)
		}
		return Link{Why: why, Hint: h}, nil, nil
	}
	behind, err := e.behind(t, q)
	if err != nil {
		return Link{}, nil, err
	}
	if why, h, err := e.full(able, nodes, q); why != "" || err != nil {
		if behind != "" {
			why += "; it is " + behind
		}
		return Link{Why: why, Hint: h}, nil, err
	}
	if why, err := e.rate(q, in); why != "" || err != nil {
		return Link{Why: why}, nil, err
	}
	why = "it can run: a node is about to claim it"
	if behind != "" {
		why = fmt.Sprintf("it can run, and waits its turn in queue %s, %s", q.Name, behind)
	}
	if t.Detail != "" { // of the attempt before
		why += "; " + t.Detail
	}
	return Link{Why: why}, nil, nil
}

// groupsOf returns the groups whose limits count for a queue.
func (e *explainer) groupsOf(q *plan.Queue) ([]*plan.Group, error) {
	if q.Group == "" {
		return nil, nil
	}
	groups, err := e.r.Groups(e.ctx)
	return rules.GroupsOf(groups, q.Group), err
}

// rate says which rate, of the queue and its groups, lets the next task start last; "" if one may start now.
func (e *explainer) rate(q *plan.Queue, in []*plan.Group) (why string, err error) {
	if q.Rate.Starts == 0 && len(in) == 0 {
		return "", nil
	}
	now, err := e.r.Now(e.ctx)
	if err != nil {
		return "", err
	}
	longest := time.Duration(0)
	one := func(what, name string, r plan.Rate, spent time.Time) {
		if wait := rules.RateWait(r, spent, now); wait > longest {
			longest, why = wait, fmt.Sprintf("the rate of %s %s is %s: the next task starts in %s", what, name, r, wait.Round(10*time.Millisecond))
		}
	}
	one("queue", q.Name, q.Rate, q.Spent)
	for _, g := range in {
		one("group", g.Name, g.Rate, g.Spent)
	}
	return why, nil
}

// A fullness is why a node has no room for a task.
type fullness int

const (
	room fullness = iota
	fullThreads
	fullNode  // its maxthreads
	fullQueue // what the queue lets one node have
	pauses    // it leaves the queue alone
)

// full says which limit each node that can run a task of the queue has reached, and what may help.
// It returns "" if one of the nodes has room. Tasks in runners take threads of their node.
func (e *explainer) full(able, nodes []plan.Instance, q *plan.Queue) (why string, h hint.Hint, err error) {
	limits, err := e.r.MaxThreads(e.ctx)
	if err != nil {
		return "", h, err
	}
	busy, err := e.r.Tasks(e.ctx, store.TaskQuery{Statuses: []plan.Status{plan.Claimed, plan.Running}, Limit: 10_000})
	if err != nil {
		return "", h, err
	}
	runners := map[plan.InstanceID]bool{}
	for _, n := range nodes {
		runners[n.ID] = n.Runner
	}
	has, outside, ofNode, ofQueue := map[plan.InstanceID]int{}, map[plan.NodeName]int{}, map[plan.NodeName]int{}, map[plan.NodeName]int{}
	for i := range busy {
		t := &busy[i]
		if has[t.Instance]++; runners[t.Instance] {
			outside[t.Node]++
		}
		if ofNode[t.Node]++; t.Queue == q.ID {
			ofQueue[t.Node]++
		}
	}
	by := map[fullness]int{}
	var parts, words []string // without and with what it is full by
	for _, n := range able {
		kind, part, word, help := room, "", "", hint.Hint{}
		limit, limited := limits[n.Node]
		pause := n.Paused(q.ID)
		switch taken := has[n.ID] + outside[n.Node]; { // of a node that is full by several, what has to give first
		case pause != nil:
			kind, word = pauses, fmt.Sprintf("%s tries one each %s (%s)", n.Node, duration.Text(pause.Each), pause.Why)
		case taken >= n.Threads:
			kind, part, word = fullThreads, fmt.Sprintf("%s %d of %d", n.Node, taken, n.Threads), " threads"
		case limited && ofNode[n.Node] >= limit:
			kind, part, word = fullNode, fmt.Sprintf("%s %d of %d", n.Node, ofNode[n.Node], limit), " that its maxthreads are"
			help = hint.MoreThreads(n.Node, limit)
		case q.NodeThreads > 0 && ofQueue[n.Node] >= q.NodeThreads:
			kind, part, word = fullQueue, fmt.Sprintf("%s %d of %d", n.Node, ofQueue[n.Node], q.NodeThreads), " that the queue lets it have"
			help = hint.MoreEach(q)
		default:
			return "", hint.Hint{}, nil
		}
		by[kind]++
		parts, words = append(parts, part), append(words, part+word)
		if h.Do == nil {
			h = help
		}
	}
	switch len(able) {
	case by[pauses]:
		why = fmt.Sprintf("every node that can run it leaves queue %s alone for a while, since it could not begin tasks: %s", q.Name, few(words))
	case by[fullThreads]:
		why = "every node that can run it has its threads full: " + few(parts) + "; it starts when one of their tasks ends, or on another node"
	case by[fullNode]:
		why = "every node that can run it has as many tasks as its maxthreads let it: " + few(parts)
	case by[fullQueue]:
		why = fmt.Sprintf("queue %s lets one node run %d of its tasks at once, and each that serves it does", q.Name, q.NodeThreads)
	default:
		why = "every node that can run it is full: " + few(words)
	}
	return why, h, nil
}

const mostWords = 3

// few lists the first of some words.
func few(words []string) string {
	if more := len(words) - mostWords; more > 0 {
		words = append(words[:mostWords:mostWords], fmt.Sprintf("%d more", more))
	}
	return strings.Join(words, ", ")
}
