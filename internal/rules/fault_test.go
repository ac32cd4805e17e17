package rules_test

import (
	"reflect"
	"testing"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

func TestWhoseFault(t *testing.T) {
	id := func(n byte) plan.ID { return plan.ID{n} }
	task, q, p, otherPlan := plan.TaskID{ID: id(1)}, plan.QueueID{ID: id(2)}, plan.PlanID{ID: id(3)}, plan.PlanID{ID: id(4)}
	node := func(n byte, change ...func(*plan.Instance)) plan.Instance {
		i := plan.Instance{ID: plan.InstanceID{ID: id(n)}, Node: plan.NodeName(rune('a' + n)), Plugins: []string{"exec"}}
		for _, c := range change {
			c(&i)
		}
		return i
	}
	gave := func(tasks ...plan.TaskID) func(*plan.Instance) {
		return func(i *plan.Instance) { i.Pauses = []plan.Pause{{Queue: q, Each: 1, Tasks: tasks}} }
	}
	elsewhere := func(i *plan.Instance) {
		i.Pauses = []plan.Pause{{Queue: plan.QueueID{ID: id(9)}, Each: 1, Tasks: []plan.TaskID{task}}}
	}
	here := node(10)
	for _, c := range []struct {
		name   string
		lacks  plan.Lack
		beside int
		pin    []plan.NodeName
		nodes  []plan.Instance
		want   rules.Fault
	}{
		{"of a node that is alone the task is at fault", plan.LacksMeans, 0, nil, []plan.Instance{here}, rules.TaskAtFault},
		{"so it is if other tasks run there", plan.LacksMeans, 3, nil, []plan.Instance{here}, rules.TaskAtFault},
		{"another node may begin it", plan.LacksMeans, 0, nil, []plan.Instance{node(11), here}, rules.NodeAtFault},
		{"another node gave it back", plan.LacksMeans, 0, nil, []plan.Instance{node(11, gave(task)), here}, rules.TaskAtFault},
		{"another node gave another task back", plan.LacksMeans, 0, nil, []plan.Instance{node(11, gave(plan.TaskID{ID: id(8)})), here}, rules.NodeAtFault},
		{"another node gave it back from another queue", plan.LacksMeans, 0, nil, []plan.Instance{node(11, elsewhere), here}, rules.NodeAtFault},
		{"one of two others is left", plan.LacksMeans, 0, nil, []plan.Instance{node(11, gave(task)), node(12), here}, rules.NodeAtFault},
		{"all others gave it back", plan.LacksMeans, 0, nil, []plan.Instance{node(11, gave(task)), node(12, gave(task)), here}, rules.TaskAtFault},
		{"the node's own note does not count", plan.LacksMeans, 0, nil, []plan.Instance{node(10, gave(task)), node(11)}, rules.NodeAtFault},
		{"the other node has not the plugin", plan.LacksMeans, 0, nil, []plan.Instance{node(11, func(i *plan.Instance) { i.Plugins = nil }), here}, rules.TaskAtFault},
		{"the other node ignores the queue", plan.LacksMeans, 0, nil, []plan.Instance{node(11, func(i *plan.Instance) { i.Ignored = []plan.QueueID{q} }), here}, rules.TaskAtFault},
		{"the queue is pinned to the node", plan.LacksMeans, 0, []plan.NodeName{here.Node}, []plan.Instance{node(11), here}, rules.TaskAtFault},
		{"a runner is no node", plan.LacksMeans, 0, nil, []plan.Instance{node(11, func(i *plan.Instance) { i.Runner = true }), here}, rules.TaskAtFault},
		{"the other node runs another plan", plan.LacksMeans, 0, nil, []plan.Instance{node(11, func(i *plan.Instance) { i.Plan = otherPlan }), here}, rules.TaskAtFault},
		{"the other node runs this plan", plan.LacksMeans, 0, nil, []plan.Instance{node(11, func(i *plan.Instance) { i.Plan = p }), here}, rules.NodeAtFault},
		{"a node without room is full while it runs other tasks", plan.LacksRoom, 1, nil, []plan.Instance{here}, rules.NodeFull},
		{"it is full whoever else is there", plan.LacksRoom, 1, nil, []plan.Instance{node(11, gave(task)), here}, rules.NodeFull},
		{"without other tasks it has no room at all", plan.LacksRoom, 0, nil, []plan.Instance{node(11), here}, rules.NodeAtFault},
		{"and if it is alone the task is at fault", plan.LacksRoom, 0, nil, []plan.Instance{here}, rules.TaskAtFault},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := rules.Unbegun{Task: task, Plan: p, Queue: plan.Queue{ID: q, Plugin: "exec", Pin: c.pin}, Lacks: c.lacks, Beside: c.beside, Node: here, Nodes: c.nodes}
			if got := rules.WhoseFault(&u); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func TestAnAttemptThatDidNotBeginDoesNotCount(t *testing.T) {
	for _, c := range []struct {
		name  string
		claim rules.Claim
		want  rules.Step
	}{
		{"it is queued, with the reason, and did not run", rules.Claim{Status: plan.Running}, rules.Step{Status: plan.Queued, Detail: "why", Attempts: -1}},
		{"so is a task for a runner", rules.Claim{Status: plan.Claimed}, rules.Step{Status: plan.Queued, Detail: "why", Attempts: -1}},
		{"in a stopped plan it is skipped", rules.Claim{Status: plan.Running, Closing: plan.ClosedByFailure},
			rules.Step{Status: plan.Cancelled, Reason: plan.ReasonSkipped, Detail: rules.ByFailure, Attempts: -1}},
		{"if an earlier attempt ran, it is terminated there", rules.Claim{Status: plan.Running, Ran: true, Closing: plan.ClosedByPerson},
			rules.Step{Status: plan.Terminated, Reason: plan.ReasonCancelled, Detail: rules.ByPerson, Nobody: true, Attempts: -1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := protocol.Ending{Status: plan.Queued, Detail: "why"}
			if got := rules.Ended(c.claim, &e); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
