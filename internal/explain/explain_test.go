package explain

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/runner/procid"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// facts is a store that holds still.
type facts struct {
	plan   plan.Plan
	tasks  []plan.Task
	queues []plan.Queue
	groups []plan.Group
	nodes  []plan.Instance
	limits map[plan.NodeName]int
	silent bool // no task printed anything
}

func (f *facts) Log(context.Context, plan.TaskID, int64, int) ([]plan.LogEntry, int64, error) {
	if f.silent {
		return nil, 0, nil
	}
	return make([]plan.LogEntry, 1), 1, nil
}
func (f *facts) Now(context.Context) (time.Time, error) { return now, nil }
func (f *facts) Plan(_ context.Context, id plan.PlanID) (plan.Plan, error) {
	if id == elsewhere {
		return plan.Plan{ID: id, Name: "report", Run: 2}, nil
	}
	return f.plan, nil
}
func (f *facts) Queues(context.Context) ([]plan.Queue, error)       { return f.queues, nil }
func (f *facts) Groups(context.Context) ([]plan.Group, error)       { return f.groups, nil }
func (f *facts) CountQueues(context.Context, []plan.Queue) error    { return nil }
func (f *facts) Instances(context.Context) ([]plan.Instance, error) { return f.nodes, nil }
func (f *facts) MaxThreads(context.Context) (map[plan.NodeName]int, error) {
	return f.limits, nil
}
func (f *facts) Tasks(_ context.Context, q store.TaskQuery) (found []plan.Task, _ error) {
	for _, t := range f.tasks {
		if (q.IDs == nil || slices.Contains(q.IDs, t.ID)) && (q.Of.IsZero() || t.Of == q.Of) &&
			(q.Statuses == nil || slices.Contains(q.Statuses, min(t.Status, plan.Failed))) && len(found) < q.Limit {
			found = append(found, t)
		}
	}
	return found, nil
}

// elsewhere is another plan, of which tasks wait in the same queue.
var elsewhere = plan.PlanID{ID: plan.ID{8}}

var now = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

func task(n byte, name string, s plan.Status, needs ...byte) plan.Task {
	t := plan.Task{ID: taskID(n), Plan: plan.PlanID{ID: plan.ID{9}}, Name: name, Status: s, Queue: plan.QueueID{ID: plan.ID{1}}}
	for _, p := range needs {
		t.Needs = append(t.Needs, taskID(p))
	}
	return t
}

func taskID(n byte) plan.TaskID { return plan.TaskID{ID: plan.ID{n}} }

// with changes a task that was just made.
func with(t plan.Task, change func(*plan.Task)) plan.Task {
	change(&t)
	return t
}

func node(n byte, name plan.NodeName, change func(*plan.Instance)) plan.Instance {
	i := plan.Instance{ID: plan.InstanceID{ID: plan.ID{n}}, Node: name, Threads: 2, Lease: 10 * time.Second, Plugins: []string{"exec"}}
	if change != nil {
		change(&i)
	}
	return i
}

// item is a queued item of a foreach task with a longer path than usual.
func item(n byte, index int) plan.Task {
	return with(task(n, fmt.Sprintf("x[%d]", index), plan.Queued), func(t *plan.Task) { t.Of, t.Index, t.Rank = taskID(99), index, 9 })
}

func ranked(rank int64) func(*plan.Task) { return func(t *plan.Task) { t.Rank = rank } }

// pausing makes an instance leave the queue of the tests alone.
func pausing(each time.Duration) func(*plan.Instance) {
	return func(i *plan.Instance) {
		i.Pauses = []plan.Pause{{Queue: plan.QueueID{ID: plan.ID{1}}, Each: each, Why: "no such folder"}}
	}
}

func TestTask(t *testing.T) {
	live := []plan.Instance{node(1, "n1", nil)}
	on := func(n plan.NodeName, since time.Duration) func(*plan.Task) {
		return func(t *plan.Task) {
			t.Node, t.Instance, t.Started, t.Attempt = n, plan.InstanceID{ID: plan.ID{1}}, now.Add(-since), 1
		}
	}
	for _, c := range []struct {
		name   string
		plan   plan.Plan
		queue  plan.Queue // default: unlimited
		groups []plan.Group
		nodes  []plan.Instance
		limits map[plan.NodeName]int
		tasks  []plan.Task // the first is asked about
		chain  []string
		remedy string
	}{
		{
			name:  "a held task waits for a parent that runs",
			nodes: live,
			tasks: []plan.Task{task(1, "b", plan.Held, 2), with(task(2, "a", plan.Running), on("n1", 3*time.Second))},
			chain: []string{"b: it waits for a", "a: it runs on node n1 for 3.0s"},
		},
		{
			name:   "a paused group above the group of its queue",
			nodes:  live,
			queue:  plan.Queue{ID: plan.QueueID{ID: plan.ID{1}}, Name: "imap", Plugin: "exec", Unlimited: true, QueueSettings: plan.QueueSettings{Group: "mail"}},
			groups: []plan.Group{{Name: "acme", GroupSettings: plan.GroupSettings{Paused: true}}, {Name: "mail", GroupSettings: plan.GroupSettings{Parent: "acme"}}},
			tasks:  []plan.Task{task(1, "a", plan.Queued)},
			chain:  []string{"a: group acme is paused"},
			remedy: "group set acme --resume",
		},
		{
			name:  "of the rates of its queue and its groups the one that lets it start last",
			nodes: live,
			queue: plan.Queue{
				ID: plan.QueueID{ID: plan.ID{1}}, Name: "imap", Plugin: "exec", Unlimited: true, Spent: now.Add(300 * time.Millisecond),
				QueueSettings: plan.QueueSettings{Group: "mail", Rate: plan.Rate{Starts: 1, Per: plan.Duration(time.Second)}},
			},
			groups: []plan.Group{{
				Name: "mail", Spent: now.Add(400 * time.Millisecond), GroupSettings: plan.GroupSettings{Rate: plan.Rate{Starts: 1, Per: plan.Duration(time.Second)}},
			}},
			tasks: []plan.Task{task(1, "a", plan.Queued)},
			chain: []string{"a: the rate of group mail is 1/1s: the next task starts in 400ms"},
		},
		{
			name:   "a queue whose group is not there is in none",
			nodes:  live,
			queue:  plan.Queue{ID: plan.QueueID{ID: plan.ID{1}}, Name: "imap", Plugin: "exec", Unlimited: true, QueueSettings: plan.QueueSettings{Group: "gone"}},
			groups: []plan.Group{{Name: "acme", GroupSettings: plan.GroupSettings{Paused: true}}},
			tasks:  []plan.Task{task(1, "a", plan.Queued)},
			chain:  []string{"a: it can run: a node is about to claim it"},
		},
		{
			name:  "a queue that is pinned to a node that is not there",
			nodes: live,
			tasks: []plan.Task{task(1, "a", plan.Queued)},
			queue: plan.Queue{Name: "exec", Plugin: "exec", Unlimited: true, Pin: []plan.NodeName{"n2"}},
			chain: []string{"a: no node serves queue exec: it is pinned to n2, which is not alive"}, remedy: "worker --name n2",
		},
		{
			name:   "a queue that is pinned to a node without its plugin",
			nodes:  []plan.Instance{node(1, "n1", nil), node(2, "n2", func(i *plan.Instance) { i.Plugins = []string{"demo"} })},
			tasks:  []plan.Task{task(1, "a", plan.Queued)},
			queue:  plan.Queue{Name: "exec", Plugin: "exec", Unlimited: true, Pin: []plan.NodeName{"n2"}},
			chain:  []string{"a: no node serves queue exec: it is pinned to n2, and n2 has no plugin exec"},
			remedy: "queue set exec --pin=",
		},
		{
			name:  "a queue of which each node has as many as it lets one have",
			nodes: live,
			tasks: []plan.Task{task(1, "a", plan.Queued), with(task(2, "b", plan.Running), on("n1", time.Second))},
			queue: plan.Queue{Name: "exec", Plugin: "exec", Unlimited: true, NodeThreads: 1},
			chain: []string{"a: queue exec lets one node run 1 of its tasks at once, and each that serves it does"}, remedy: "queue set exec --node-threads 2",
		},
		{
			name:  "the chain goes down through held parents",
			nodes: live,
			tasks: []plan.Task{task(1, "c", plan.Held, 2), task(2, "b", plan.Held, 3), with(task(3, "a", plan.Running), on("n1", time.Minute))},
			chain: []string{"c: it waits for b", "b: it waits for a", "a: it runs on node n1 for 1m00s"},
		},
		{
			name:  "of several parents the one that has come least far is explained",
			nodes: live,
			tasks: []plan.Task{
				task(1, "d", plan.Held, 2, 3, 4), with(task(2, "a", plan.Running), on("n1", time.Second)), task(3, "b", plan.Queued), task(4, "c", plan.Succeeded),
			},
			queue:  plan.Queue{Name: "exec", Plugin: "exec", Threads: 1, Active: 1},
			chain:  []string{"d: it waits for b and 1 more of the 3 that it needs", "b: queue exec runs as many as it may, 1 of 1 threads"},
			remedy: "queue set exec --threads 2",
		},
		{
			name:  "the last of several parents is said to be the last",
			nodes: live,
			tasks: []plan.Task{task(1, "c", plan.Held, 2, 3), task(2, "a", plan.Succeeded), with(task(3, "b", plan.Running), on("n1", time.Second))},
			chain: []string{"c: it waits for b, the last of the 2 that it needs", "b: it runs on node n1 for 1.0s"},
		},
		{
			name:  "a delay before the next attempt says what went wrong",
			nodes: live,
			tasks: []plan.Task{with(task(1, "a", plan.Held), func(t *plan.Task) { t.NotBefore, t.Attempt, t.Detail = now.Add(12*time.Second), 2, "exit 3" })},
			chain: []string{"a: attempt 3 follows in 12.0s, after attempt 2 failed: exit 3"},
		},
		{
			name:  "a task that no attempt was made at is held until its instant",
			nodes: live,
			tasks: []plan.Task{with(task(1, "a", plan.Held), func(t *plan.Task) { t.NotBefore = now.Add(12 * time.Second) })},
			chain: []string{"a: it is held until " + now.Add(12*time.Second).UTC().Format(time.RFC3339) + ", for 12.0s more"},
		},
		{
			name:   "a delay that nobody ends needs a node",
			tasks:  []plan.Task{with(task(1, "a", plan.Held), func(t *plan.Task) { t.NotBefore, t.Attempt, t.Detail = now.Add(12*time.Second), 2, "exit 3" })},
			chain:  []string{"a: attempt 3 follows in 12.0s, after attempt 2 failed: exit 3; no node is alive to do so"},
			remedy: "plan run --resume p#1",
		},
		{
			name:   "a delay that is over needs a node",
			tasks:  []plan.Task{with(task(1, "a", plan.Held), func(t *plan.Task) { t.NotBefore, t.Attempt = now.Add(-time.Second), 2 })},
			chain:  []string{"a: its delay is over: a node's next sweep queues it; no node is alive to do so"},
			remedy: "plan run --resume p#1",
		},
		{
			name: "a question whose time is over needs a node",
			tasks: []plan.Task{with(task(1, "a", plan.Held), func(t *plan.Task) {
				t.Reason, t.Timeout, t.NotBefore = plan.ReasonApproval, time.Hour, now.Add(-time.Second)
			})},
			chain:  []string{"a: nobody answered within 1h00m: a node's next turn fails it; no node is alive to do so"},
			remedy: "plan run --resume p#1",
		},
		{
			name:   "a plan that is not ready holds its tasks",
			plan:   plan.Plan{State: plan.PlanSubmitting},
			tasks:  []plan.Task{task(1, "a", plan.Held)},
			chain:  []string{"a: its plan p#1 is not ready: it is still being submitted"},
			remedy: "plan ready p#1",
		},
		{
			name:  "so does one of which not all tasks are in, and its node goes on with it",
			plan:  plan.Plan{State: plan.PlanSubmitting, Size: 3, Own: true, Counts: plan.Counts{Held: 1, Cancelled: 1}, Modified: now.Add(-time.Minute)},
			tasks: []plan.Task{task(1, "a", plan.Held)},
			chain: []string{"a: its plan p#1 is not ready: 2 of its 3 tasks are in, and it was last touched 1m00s ago"}, remedy: "plan run --resume p#1",
		},
		{
			name:  "or, for any node, the word that makes it ready",
			plan:  plan.Plan{State: plan.PlanSubmitting, Size: 1, Counts: plan.Counts{Held: 1}, Modified: now.Add(-time.Minute)},
			tasks: []plan.Task{task(1, "a", plan.Held)},
			chain: []string{"a: its plan p#1 is not ready: all its tasks are in, and it was last touched 1m00s ago"}, remedy: "plan ready p#1",
		},
		{
			name:  "one that a person closed before it was ready ends its tasks",
			plan:  plan.Plan{State: plan.PlanSubmitting, Size: 3, Closing: plan.ClosedByPerson},
			tasks: []plan.Task{task(1, "a", plan.Held)},
			chain: []string{"a: its plan p#1 is being cancelled"},
		},
		{
			name:  "a plan that a person closed ends its tasks",
			plan:  plan.Plan{Closing: plan.ClosedByPerson},
			tasks: []plan.Task{task(1, "a", plan.Queued)},
			chain: []string{"a: its plan p#1 is being cancelled"},
		},
		{
			name:  "a plan that a failure closed starts nothing more",
			plan:  plan.Plan{Closing: plan.ClosedByFailure},
			tasks: []plan.Task{task(1, "a", plan.Held)},
			chain: []string{"a: its plan p#1 starts nothing more, since a task failed (on_failure: stop)"},
		},
		{
			name:  "a plan whose time is over is stopped before anything starts",
			plan:  plan.Plan{Timeout: time.Hour, Deadline: now},
			nodes: live,
			tasks: []plan.Task{task(1, "a", plan.Queued)},
			chain: []string{"a: the timeout of 1h00m of its plan p#1 is over, and the next node stops the plan"},
		},
		{
			name:  "also if no node runs it",
			plan:  plan.Plan{Timeout: time.Hour, Deadline: now},
			tasks: []plan.Task{task(1, "b", plan.Held)},
			chain: []string{"b: the timeout of 1h00m of its plan p#1 is over, and the next node stops the plan"}, remedy: "plan run --resume p#1",
		},
		{
			name:  "a foreach task whose items are being made waits for that",
			nodes: live,
			tasks: []plan.Task{with(task(1, "copy", plan.Held), func(t *plan.Task) { t.Expanding, t.Items = true, 40 })},
			chain: []string{"copy: its 40 items are being made"},
		},
		{
			name:  "a foreach task waits for its items, and one of them is explained",
			nodes: []plan.Instance{node(1, "n1", func(i *plan.Instance) { i.Plugins = []string{"http"} })},
			tasks: []plan.Task{
				with(task(1, "copy", plan.Held), func(t *plan.Task) { t.Expanded, t.Items = true, 3 }),
				with(task(2, "copy[0]", plan.Succeeded), func(t *plan.Task) { t.Of = taskID(1) }),
				with(task(3, "copy[1]", plan.Running), func(t *plan.Task) { t.Of = taskID(1) }),
				with(task(4, "copy[2]", plan.Queued), func(t *plan.Task) { t.Of = taskID(1) }),
			},
			chain:  []string{"copy: it waits for its items, 2 of 3 have not finished", "copy[2]: no live node has the plugin exec, which queue exec wants"},
			remedy: "plan run --resume p#1",
		},
		{
			name:  "a queue without threads is paused, and nobody knows how many it had",
			nodes: live,
			queue: plan.Queue{Name: "slow", Plugin: "exec"},
			tasks: []plan.Task{task(1, "a", plan.Queued)},
			chain: []string{"a: queue slow is paused, its threads are 0: give it those that it had, a number or unlimited"}, remedy: "queue set slow --threads N",
		},
		{
			name:  "without a node a queued task waits for one",
			tasks: []plan.Task{task(1, "a", plan.Queued)},
			chain: []string{"a: no node is alive"}, remedy: "plan run --resume p#1",
		},
		{
			name:  "a node that has not beaten for its lease is not alive",
			nodes: []plan.Instance{node(1, "n1", func(i *plan.Instance) { i.Age = 11 * time.Second })},
			tasks: []plan.Task{task(1, "a", plan.Queued)},
			chain: []string{"a: no node is alive"}, remedy: "plan run --resume p#1",
		},
		{
			name:  "a node that runs another plan only is of no use",
			nodes: []plan.Instance{node(1, "n1", func(i *plan.Instance) { i.Plan = plan.PlanID{ID: plan.ID{8}} })},
			tasks: []plan.Task{task(1, "a", plan.Queued)},
			chain: []string{"a: every live node runs a plan of its own only"}, remedy: "plan run --resume p#1",
		},
		{
			name:  "a runner, which has its task, is of no use",
			nodes: []plan.Instance{node(1, "n1", func(i *plan.Instance) { i.Runner = true })},
			tasks: []plan.Task{task(1, "a", plan.Queued)},
			chain: []string{"a: no node is alive"}, remedy: "plan run --resume p#1",
		},
		{
			name:  "nodes whose threads are full have no room",
			nodes: live,
			tasks: []plan.Task{
				task(1, "a", plan.Queued), with(task(2, "x", plan.Running), on("n1", 0)), with(task(3, "y", plan.Claimed), on("n1", 0)),
			},
			chain: []string{"a: every node that can run it has its threads full: n1 2 of 2; it starts when one of their tasks ends, or on another node"},
		},
		{
			name:  "what runs in runners takes threads of their node",
			nodes: []plan.Instance{node(1, "n1", nil), node(2, "n1", func(i *plan.Instance) { i.Runner = true })},
			tasks: []plan.Task{
				task(1, "a", plan.Queued), with(task(2, "x", plan.Running), on("n1", 0)),
				with(task(3, "y", plan.Running), func(t *plan.Task) { t.Node, t.Instance = "n1", plan.InstanceID{ID: plan.ID{2}} }),
			},
			chain: []string{"a: every node that can run it has its threads full: n1 2 of 2; it starts when one of their tasks ends, or on another node"},
		},
		{
			name:   "a node that has as many as its maxthreads let it",
			nodes:  live,
			limits: map[plan.NodeName]int{"n1": 1, "n2": 0},
			tasks:  []plan.Task{task(1, "a", plan.Queued), with(task(2, "x", plan.Running), on("n1", 0))},
			chain:  []string{"a: every node that can run it has as many tasks as its maxthreads let it: n1 1 of 1"}, remedy: "node set n1 --maxthreads 2",
		},
		{
			name:   "a node that is to claim nothing more",
			nodes:  live,
			limits: map[plan.NodeName]int{"n1": 0},
			tasks:  []plan.Task{task(1, "a", plan.Queued)},
			chain:  []string{"a: every node that can run it has as many tasks as its maxthreads let it: n1 0 of 0"}, remedy: "node set n1 --maxthreads 1",
		},
		{
			name:   "nodes that are full by different limits",
			nodes:  []plan.Instance{node(1, "n1", func(i *plan.Instance) { i.Threads = 1 }), node(2, "n2", nil)},
			limits: map[plan.NodeName]int{"n1": 1, "n2": 0},
			tasks:  []plan.Task{task(1, "a", plan.Queued), with(task(2, "x", plan.Running), on("n1", 0))},
			chain:  []string{"a: every node that can run it is full: n1 1 of 1 threads, n2 0 of 0 that its maxthreads are"}, remedy: "node set n2 --maxthreads 1",
		},
		{
			name:   "a node with room is enough, whatever the others have",
			nodes:  []plan.Instance{node(1, "n1", nil), node(2, "n2", nil)},
			limits: map[plan.NodeName]int{"n2": 0},
			tasks:  []plan.Task{task(1, "a", plan.Queued)},
			chain:  []string{"a: it can run: a node is about to claim it"},
		},
		{
			name: "nodes that serve other queues say by what",
			nodes: []plan.Instance{
				node(1, "n1", func(i *plan.Instance) { i.Active = []plan.QueueID{{ID: plan.ID{7}}} }),
				node(2, "n2", func(i *plan.Instance) { i.Ignored = []plan.QueueID{{ID: plan.ID{1}}} }),
				node(3, "n3", func(i *plan.Instance) { i.Plugins = nil }),
			},
			tasks: []plan.Task{task(1, "a", plan.Queued)},
			chain: []string{"a: no node serves queue exec: n1 serves others only (its --queues, or activequeues), " +
				"n2 leaves it alone (its --ignore-queues, or ignorequeues), n3 has no plugin exec"},
			remedy: "plan run --resume p#1",
		},
		{
			name:   "a queue that ignores the node that could",
			nodes:  []plan.Instance{node(1, "n1", nil), node(2, "n2", func(i *plan.Instance) { i.Plugins = nil })},
			queue:  plan.Queue{Name: "exec", Plugin: "exec", Unlimited: true, Ignore: []plan.NodeName{"n1"}},
			tasks:  []plan.Task{task(1, "a", plan.Queued)},
			chain:  []string{"a: no node serves queue exec: n1 is one that the queue ignores, n2 has no plugin exec"},
			remedy: "queue set exec --ignore=",
		},
		{
			name:  "a task with room to run waits for its turn",
			nodes: live,
			tasks: []plan.Task{task(2, "a", plan.Queued), task(1, "x", plan.Queued), task(3, "b", plan.Queued)},
			chain: []string{"a: it can run, and waits its turn in queue exec, behind 1 task of p#1"},
		},
		{
			name:  "behind items of its plan, in turn with other plans",
			nodes: live,
			tasks: []plan.Task{
				with(task(3, "a", plan.Queued), ranked(5)), item(1, 0), item(2, 1), with(task(4, "later", plan.Queued), ranked(5)), item(5, 2),
				with(task(6, "r", plan.Queued), func(t *plan.Task) { t.Plan = elsewhere }),
				with(task(7, "p", plan.Queued), func(t *plan.Task) { t.Plan = plan.PlanID{} }), with(task(8, "q", plan.Queued), func(t *plan.Task) { t.Plan = plan.PlanID{} }),
			},
			chain: []string{"a: it can run, and waits its turn in queue exec, behind 3 items of p#1, in turn with 2 tasks of no plan, 1 task of report#2"},
		},
		{
			name:  "in order of age other plans are behind or before",
			nodes: live,
			queue: plan.Queue{Name: "exec", Plugin: "exec", Unlimited: true, Sort: plan.SortFIFO},
			tasks: []plan.Task{
				with(task(3, "a", plan.Queued), ranked(5)), with(task(1, "r", plan.Queued), func(t *plan.Task) { t.Plan = elsewhere }), item(5, 2),
			},
			chain: []string{"a: it can run, and waits its turn in queue exec, behind 1 task of report#2"},
		},
		{
			name:  "a task of an instance that nobody knows is taken back",
			nodes: []plan.Instance{node(2, "n2", nil)},
			tasks: []plan.Task{with(task(1, "a", plan.Running), on("n1", 5*time.Second))},
			chain: []string{"a: its node n1 is gone; a sweep of any node takes it back"},
		},
		{
			name:  "of an instance that nobody knows the name may be lost too",
			nodes: []plan.Instance{node(2, "n2", nil)},
			tasks: []plan.Task{with(task(1, "a", plan.Running), on("", 5*time.Second))},
			chain: []string{"a: its node is gone; a sweep of any node takes it back"},
		},
		{
			name:   "a node that does not serve its queue takes it back as well",
			nodes:  []plan.Instance{node(2, "n2", func(i *plan.Instance) { i.Plugins = nil })},
			tasks:  []plan.Task{with(task(1, "a", plan.Running), on("n1", 5*time.Second))},
			chain:  []string{"a: its node n1 is gone; a sweep of any node takes it back, and then nobody runs it: no live node has the plugin exec, which queue exec wants"},
			remedy: "plan run --resume p#1",
		},
		{
			name:  "nodes that could not begin tasks leave the queue alone",
			nodes: []plan.Instance{node(1, "n1", pausing(8*time.Second)), node(2, "n2", pausing(time.Minute))},
			tasks: []plan.Task{with(task(1, "a", plan.Queued), func(t *plan.Task) { t.Detail = "node n1 could not begin it: no such folder" })},
			chain: []string{"a: every node that can run it leaves queue exec alone for a while, since it could not begin tasks: " +
				"n1 tries one each 8.0s (no such folder), n2 tries one each 1m00s (no such folder)"},
		},
		{
			name:  "a node that takes tasks again does not leave it alone",
			nodes: []plan.Instance{node(1, "n1", pausing(0))},
			tasks: []plan.Task{with(task(1, "a", plan.Queued), func(t *plan.Task) { t.Detail = "node n1 could not begin it: no such folder" })},
			chain: []string{"a: it can run: a node is about to claim it; node n1 could not begin it: no such folder"},
		},
		{
			name:  "a task of a node that is silent is taken over",
			nodes: []plan.Instance{node(1, "n1", func(i *plan.Instance) { i.Age = 15 * time.Second }), node(2, "n2", nil)},
			tasks: []plan.Task{with(task(1, "a", plan.Claimed), on("n1", 5*time.Second))},
			chain: []string{"a: its node n1 was not heard of for 15.0s, so another one takes it over"},
		},
		{
			name:   "a task of a process that died on this host needs a node at once",
			nodes:  []plan.Instance{node(1, "n1", died(t))},
			tasks:  []plan.Task{with(task(1, "a", plan.Running), on("n1", time.Second))},
			chain:  []string{"a: its node n1 is gone, and nobody takes it over: no node is alive"},
			remedy: "plan run --resume p#1",
		},
		{
			name:   "a node of another plan does not take it over",
			nodes:  []plan.Instance{node(2, "n2", func(i *plan.Instance) { i.Plan = plan.PlanID{ID: plan.ID{8}} })},
			tasks:  []plan.Task{with(task(1, "a", plan.Running), on("n1", time.Second))},
			chain:  []string{"a: its node n1 is gone; a sweep of any node takes it back, and then nobody runs it: every live node runs a plan of its own only"},
			remedy: "plan run --resume p#1",
		},
		{
			name:  "of what another program runs its node is all that is known",
			tasks: []plan.Task{with(task(1, "a", plan.Running), func(t *plan.Task) { t.Node, t.Started = "theirs", now.Add(-time.Second) })},
			chain: []string{"a: it runs on node theirs for 1.0s"},
		},
		{
			name:  "another program does not say since when",
			tasks: []plan.Task{with(task(1, "a", plan.Running), func(t *plan.Task) { t.Node = "theirs" })},
			chain: []string{"a: it runs on node theirs"},
		},
		{
			name: "a skipped task leads to the parent that failed",
			tasks: []plan.Task{
				with(task(1, "b", plan.Cancelled, 2, 3), func(t *plan.Task) { t.Reason = plan.ReasonSkipped }),
				task(2, "x", plan.Succeeded),
				with(task(3, "a", 5), func(t *plan.Task) { t.Detail, t.Ended = "exit status 5", now.Add(-time.Hour) }),
			},
			chain:  []string{"b: it needs a, which is failed", "a: exit status 5; it ended 1h00m ago"},
			remedy: "task logs p#1 a",
		},
		{
			name: "a clean-up that ran says after which failure",
			tasks: []plan.Task{
				with(task(1, "b", plan.Succeeded, 2, 3), func(t *plan.Task) { t.When, t.Attempt, t.Ended = plan.AnyFailed, 1, now }),
				task(2, "x", plan.Succeeded),
				with(task(3, "a", plan.Failed), func(t *plan.Task) { t.Detail, t.Ended = "exit status 5", now.Add(-time.Hour) }),
			},
			chain:  []string{"b: it ran because a is failed, and ended 0.0ms ago", "a: exit status 5; it ended 1h00m ago"},
			remedy: "task logs p#1 a",
		},
		{
			name: "a failure that counts as success is said to",
			tasks: []plan.Task{
				with(task(1, "b", plan.Cancelled, 2), func(t *plan.Task) { t.Reason, t.When = plan.ReasonSkipped, plan.AllFailed }),
				with(task(2, "a", plan.Failed), func(t *plan.Task) { t.Detail, t.Ended, t.ContinueOnError = "exit status 1", now, true }),
			},
			chain: []string{
				"b: its when all_failed does not hold: a is failed, which counts as succeeded (continue-on-error)", "a: exit status 1; it ended 0.0ms ago",
			},
			remedy: "task logs p#1 a",
		},
		{
			name: "a task that no parent forbids was skipped by its rule",
			tasks: []plan.Task{
				with(task(1, "b", plan.Cancelled, 2), func(t *plan.Task) { t.Reason, t.When = plan.ReasonSkipped, plan.AnyFailed }), task(2, "a", plan.Succeeded),
			},
			chain: []string{"b: its when any_failed does not hold, as none of what it needs failed: a succeeded"},
		},
		{
			name: "a task that none of its parents forbids was skipped by its rule, and they are told",
			tasks: []plan.Task{
				with(task(1, "b", plan.Cancelled, 2, 3, 4, 5), func(t *plan.Task) { t.Reason, t.When = plan.ReasonSkipped, plan.AnyFailed }),
				task(2, "copy", plan.Succeeded),
				with(task(3, "load", plan.Cancelled), func(t *plan.Task) { t.Reason = plan.ReasonSkipped }),
				with(task(4, "sum", plan.Failed), func(t *plan.Task) { t.ContinueOnError = true }),
				with(task(5, "mail", plan.Cancelled), func(t *plan.Task) { t.Reason = plan.ReasonCancelled }),
			},
			chain: []string{"b: its when any_failed does not hold, as none of what it needs failed: copy succeeded, load was skipped, " +
				"sum failed, which counts as succeeded (continue-on-error), mail was cancelled"},
		},
		{
			name: "of many parents the first are told",
			tasks: append([]plan.Task{
				with(task(1, "b", plan.Cancelled, 2, 3, 4, 5, 6, 7, 8), func(t *plan.Task) { t.Reason, t.When = plan.ReasonSkipped, plan.AnySkipped }),
			}, task(2, "c", plan.Succeeded), task(3, "d", plan.Succeeded), task(4, "e", plan.Failed), task(5, "f", plan.Terminated), task(6, "g", plan.Orphaned), task(7, "h", plan.Succeeded), task(8, "i", plan.Succeeded)),
			chain: []string{"b: its when any_skipped does not hold, as none of what it needs was skipped: c succeeded, d succeeded, e failed, f was stopped, g was lost, and 2 others"},
		},
		{
			name: "a plan that stops at its first failure skips what its parents would allow",
			plan: plan.Plan{OnFailure: plan.Stop, State: plan.PlanFailed},
			tasks: []plan.Task{
				with(task(1, "b", plan.Cancelled, 2), func(t *plan.Task) { t.Reason = plan.ReasonSkipped }), task(2, "a", plan.Succeeded),
			},
			chain: []string{"b: its plan p#1 started nothing more once a task had failed (on_failure: stop)"}, remedy: "plan retry p#1 b",
		},
		{
			name: "a foreach task that failed leads to an item that did",
			tasks: []plan.Task{
				with(task(1, "copy", plan.Failed), func(t *plan.Task) { t.Reason, t.Detail, t.Expanded = plan.ReasonItems, "1 of 2 items failed", true }),
				with(task(2, "copy[1]", plan.Terminated), func(t *plan.Task) { t.Of, t.Detail, t.Ended = taskID(1), "it ran longer than it may", now }),
			},
			chain: []string{"copy: 1 of 2 items failed", "copy[1]: it ran longer than it may; it ended 0.0ms ago"}, remedy: "task logs p#1 copy[1]",
		},
		{
			name: "a task that was stopped says who did that, and when",
			tasks: []plan.Task{
				with(task(1, "b", plan.Cancelled, 2), func(t *plan.Task) { t.Reason = plan.ReasonSkipped }),
				with(task(2, "a", plan.Terminated), func(t *plan.Task) { t.Reason, t.Ended = plan.ReasonCancelled, now.Add(-5*time.Minute) }),
			},
			chain:  []string{"b: it needs a, which is stopped", "a: a person cancelled it or its plan while it ran; it ended 5m00s ago"},
			remedy: "task logs p#1 a",
		},
		{
			name: "a task of no plan was cancelled itself",
			tasks: []plan.Task{with(task(1, "a", plan.Cancelled), func(t *plan.Task) {
				t.Plan, t.Reason, t.Ended = plan.PlanID{}, plan.ReasonCancelled, now.Add(-5*time.Minute)
			})},
			chain: []string{"a: a person cancelled it 5m00s ago"}, remedy: "task retry " + taskID(1).String(),
		},
		{
			name: "a foreach task leads to an item that a person cancelled",
			tasks: []plan.Task{
				with(task(1, "copy", plan.Cancelled), func(t *plan.Task) {
					t.Reason, t.Detail, t.Expanded, t.Ended = plan.ReasonCancelled, "some of its items were cancelled", true, now
				}),
				with(task(2, "copy[1]", plan.Cancelled), func(t *plan.Task) { t.Of, t.Reason, t.Ended = taskID(1), plan.ReasonCancelled, now.Add(-time.Minute) }),
			},
			chain:  []string{"copy: some of its items were cancelled 0.0ms ago", "copy[1]: a person cancelled it or its plan 1m00s ago"},
			remedy: "plan retry p#1 copy[1]",
		},
		{
			name:  "a foreach task whose items are being stopped says so",
			nodes: live,
			tasks: []plan.Task{
				with(task(1, "copy", plan.Held), func(t *plan.Task) { t.Expanded, t.Items, t.Cancel = true, 2, true }),
				with(task(2, "copy[0]", plan.Running), func(t *plan.Task) { t.Of, t.Node, t.Instance, t.Cancel = taskID(1), "n1", live[0].ID, true }),
			},
			chain: []string{
				"copy: it waits for its items, 1 of 2 have not finished, and are being stopped since a person cancelled it",
				"copy[0]: it runs on node n1, and is being stopped since a person cancelled it",
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &facts{plan: c.plan, tasks: c.tasks, nodes: c.nodes, limits: c.limits, queues: []plan.Queue{c.queue}, groups: c.groups}
			f.plan.Name, f.plan.Run = "p", 1
			if f.queues[0].Name == "" {
				f.queues[0] = plan.Queue{Name: "exec", Plugin: "exec", Unlimited: true}
			}
			f.queues[0].ID = plan.QueueID{ID: plan.ID{1}}
			links, err := Task(t.Context(), f, c.tasks[0].ID)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			remedy := ""
			for _, l := range links {
				got = append(got, fmt.Sprintf("%s: %s", l.Task.Name, l.Why))
				if l.Do != nil {
					remedy = strings.Join(l.Do, " ")
				}
			}
			if !slices.Equal(got, c.chain) || remedy != c.remedy {
				t.Errorf("got  %q, %q\nwant %q, %q", got, remedy, c.chain, c.remedy)
			}
		})
	}
}

func TestMissing(t *testing.T) {
	own := plan.PlanID{ID: plan.ID{1}}
	nodes := []plan.Instance{
		node(1, "n1", nil),
		node(2, "n2", func(i *plan.Instance) { i.Age, i.Plugins = time.Minute, []string{"http"} }),
		node(3, "n3", func(i *plan.Instance) { i.Plan, i.Plugins = own, []string{"disco"} }),
	}
	for _, c := range []struct {
		name    string
		nodes   []plan.Instance
		plan    plan.PlanID
		needed  []string
		missing []string
	}{
		{"a live node of all plans serves every plan", nodes, plan.PlanID{}, []string{"exec"}, nil},
		{"a dead node serves nothing", nodes, own, []string{"exec", "http"}, []string{"http"}},
		{"a node of one plan serves that one", nodes, own, []string{"disco"}, nil},
		{"a node of one plan serves no other", nodes, plan.PlanID{}, []string{"disco"}, []string{"disco"}},
		{"without nodes everything is missing", nil, own, []string{"exec"}, []string{"exec"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if missing := Missing(c.nodes, c.plan, c.needed); !slices.Equal(missing, c.missing) {
				t.Errorf("got %q, want %q", missing, c.missing)
			}
		})
	}
}

func TestStalled(t *testing.T) {
	mine := plan.Plan{ID: plan.PlanID{ID: plan.ID{1}}}
	for _, c := range []struct {
		name  string
		plan  plan.Plan
		nodes []plan.Instance
		want  bool
	}{
		{"a plan that a node of all plans runs is not", mine, []plan.Instance{node(1, "n1", nil)}, false},
		{"a plan that a node of its own runs is not", mine, []plan.Instance{node(1, "n1", func(i *plan.Instance) { i.Plan = mine.ID })}, false},
		{"a plan without nodes is", mine, nil, true},
		{"a plan whose node is silent is", mine, []plan.Instance{node(1, "n1", func(i *plan.Instance) { i.Age = 11 * time.Second })}, true},
		{"a plan whose node's process died on this host is, at once", mine, []plan.Instance{node(1, "n1", died(t))}, true},
		{"a plan beside another's node is", mine, []plan.Instance{node(1, "n1", func(i *plan.Instance) { i.Plan = plan.PlanID{ID: plan.ID{2}} })}, true},
		{"a plan that is not submitted yet is not", plan.Plan{State: plan.PlanSubmitting}, nil, false},
		{"a plan that has ended is not", plan.Plan{State: plan.PlanFailed}, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Stalled(c.nodes, &c.plan); got != c.want {
				t.Errorf("stalled: %v, want %v", got, c.want)
			}
		})
	}
}

// died makes an instance's process one of this host that has ended, of which it was heard just now.
func died(t *testing.T) func(*plan.Instance) {
	t.Helper()
	id, err := procid.Self()
	if err != nil {
		t.Fatal(err)
	}
	id.Start-- // an earlier one of the same number
	return func(i *plan.Instance) { i.Process = plan.Process{PID: id.PID, Identity: id.String()} }
}

func TestSkipsSayWhy(t *testing.T) {
	skipped := func(n byte, name string, when plan.When, needs ...byte) plan.Task {
		return with(task(n, name, plan.Cancelled, needs...), func(t *plan.Task) { t.Reason, t.When = plan.ReasonSkipped, when })
	}
	f := &facts{tasks: []plan.Task{
		task(1, "good", plan.Succeeded), task(2, "bad", plan.Failed),
		skipped(3, "after", "", 1, 2),
		skipped(4, "below", "", 3),
		skipped(5, "clean-up", plan.AnyFailed, 1),
		skipped(6, "sum", plan.NoneFailed, 1, 2),
		with(skipped(8, "stopped", "", 1), func(t *plan.Task) { t.Detail = "the plan was stopped by a failure" }),
		with(task(10, "ended", plan.Cancelled, 2), func(t *plan.Task) { t.Reason = plan.ReasonCancelled }),
	}}
	got, err := Skips(t.Context(), f, f.tasks)
	if err != nil {
		t.Fatal(err)
	}
	want := map[plan.TaskID]string{
		taskID(3): "bad failed", taskID(4): "after skipped", taskID(5): "when any_failed does not hold",
		taskID(6): "when none_failed: bad failed",
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}
