package plan_test

import (
	"testing"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
)

func TestWhichQueuesAnInstanceServes(t *testing.T) {
	id := func(n byte) plan.QueueID { return plan.QueueID{ID: plan.ID{n}} }
	for _, c := range []struct {
		name     string
		queue    plan.Queue // of the plugin exec, with the id 1
		instance plan.Instance
		want     bool
	}{
		{"nobody says anything", plan.Queue{}, plan.Instance{}, true},
		{"the plugin is not there", plan.Queue{Plugin: "demo"}, plan.Instance{}, false},
		{"pinned to it", plan.Queue{Pin: []plan.NodeName{"n2", "n1"}}, plan.Instance{}, true},
		{"pinned to another one", plan.Queue{Pin: []plan.NodeName{"n2"}}, plan.Instance{}, false},
		{"ignores it", plan.Queue{Ignore: []plan.NodeName{"n2", "n1"}}, plan.Instance{}, false},
		{"ignores another one", plan.Queue{Ignore: []plan.NodeName{"n2"}}, plan.Instance{}, true},
		{"pinned to it and ignores it: only the pin counts", plan.Queue{Pin: []plan.NodeName{"n1"}, Ignore: []plan.NodeName{"n1"}}, plan.Instance{}, true},
		{"pinned to another one and ignores a third", plan.Queue{Pin: []plan.NodeName{"n2"}, Ignore: []plan.NodeName{"n3"}}, plan.Instance{}, false},
		{"chosen", plan.Queue{}, plan.Instance{Active: []plan.QueueID{id(2), id(1)}}, true},
		{"another one is chosen", plan.Queue{}, plan.Instance{Active: []plan.QueueID{id(2)}}, false},
		{"ignored", plan.Queue{}, plan.Instance{Ignored: []plan.QueueID{id(2), id(1)}}, false},
		{"another one is ignored", plan.Queue{}, plan.Instance{Ignored: []plan.QueueID{id(2)}}, true},
		{"chosen and ignored: only what is chosen counts", plan.Queue{}, plan.Instance{Active: []plan.QueueID{id(1)}, Ignored: []plan.QueueID{id(1)}}, true},
		{"another one is chosen, and a third ignored", plan.Queue{}, plan.Instance{Active: []plan.QueueID{id(2)}, Ignored: []plan.QueueID{id(3)}}, false},
		{"chosen, but pinned to another node", plan.Queue{Pin: []plan.NodeName{"n2"}}, plan.Instance{Active: []plan.QueueID{id(1)}}, false},
		{"a runner", plan.Queue{}, plan.Instance{Runner: true}, false},
		{"pinned to it, but ignored", plan.Queue{Pin: []plan.NodeName{"n1"}}, plan.Instance{Ignored: []plan.QueueID{id(1)}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			q, i := c.queue, c.instance
			q.ID, i.Node, i.Plugins = id(1), "n1", []string{"exec"}
			if q.Plugin == "" {
				q.Plugin = "exec"
			}
			if got := i.Serves(&q); got != c.want {
				t.Errorf("an instance of n1 serves it: %v, want %v", got, c.want)
			}
			if i.Runner { // its turns have no slots
				return
			}
			turn := protocol.Turn{Plugins: i.Plugins, Active: i.Active, Ignored: i.Ignored}
			if got := turn.Serves(&q, "n1"); got != c.want {
				t.Errorf("a turn of it does: %v, want %v", got, c.want)
			}
		})
	}
}
