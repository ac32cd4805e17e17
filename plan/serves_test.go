package plan

import "testing"

func TestWhichQueuesAnInstanceServes(t *testing.T) {
	id := func(n byte) QueueID { return QueueID{ID{n}} }
	for _, c := range []struct {
		name     string
		queue    Queue // of the plugin exec, with the id 1
		instance Instance
		want     bool
	}{
		{"nobody says anything", Queue{}, Instance{}, true},
		{"the plugin is not there", Queue{Plugin: "demo"}, Instance{}, false},
		{"pinned to it", Queue{Pin: []NodeName{"n2", "n1"}}, Instance{}, true},
		{"pinned to another one", Queue{Pin: []NodeName{"n2"}}, Instance{}, false},
		{"ignores it", Queue{Ignore: []NodeName{"n2", "n1"}}, Instance{}, false},
		{"ignores another one", Queue{Ignore: []NodeName{"n2"}}, Instance{}, true},
		{"pinned to it and ignores it: only the pin counts", Queue{Pin: []NodeName{"n1"}, Ignore: []NodeName{"n1"}}, Instance{}, true},
		{"pinned to another one and ignores a third", Queue{Pin: []NodeName{"n2"}, Ignore: []NodeName{"n3"}}, Instance{}, false},
		{"chosen", Queue{}, Instance{Active: []QueueID{id(2), id(1)}}, true},
		{"another one is chosen", Queue{}, Instance{Active: []QueueID{id(2)}}, false},
		{"ignored", Queue{}, Instance{Ignored: []QueueID{id(2), id(1)}}, false},
		{"another one is ignored", Queue{}, Instance{Ignored: []QueueID{id(2)}}, true},
		{"chosen and ignored: only what is chosen counts", Queue{}, Instance{Active: []QueueID{id(1)}, Ignored: []QueueID{id(1)}}, true},
		{"another one is chosen, and a third ignored", Queue{}, Instance{Active: []QueueID{id(2)}, Ignored: []QueueID{id(3)}}, false},
		{"chosen, but pinned to another node", Queue{Pin: []NodeName{"n2"}}, Instance{Active: []QueueID{id(1)}}, false},
		{"a runner", Queue{}, Instance{Runner: true}, false},
		{"pinned to it, but ignored", Queue{Pin: []NodeName{"n1"}}, Instance{Ignored: []QueueID{id(1)}}, false},
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
			turn := Turn{Plugins: i.Plugins, Active: i.Active, Ignored: i.Ignored}
			if got := turn.Serves(&q, "n1"); got != c.want {
				t.Errorf("a turn of it does: %v, want %v", got, c.want)
			}
		})
	}
}
