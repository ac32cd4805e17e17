package v1

import (
	"slices"
	"testing"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/plan"
)

func TestAForeachTaskIsNotCountedBesideItsItems(t *testing.T) {
	failed := stateIndex(plan.Failed, plan.ReasonItems)
	w := &drawing{state: []uint8{failed, failed, failed, failed}, items: []int32{2, 0, 0, 1}}
	f := grouped{nodes: []node{{task: 0, group: api.GraphGroup{Of: 2}}, {task: 3}}, of: []int32{0, 0, 0, 1}}
	state, counts := f.states(w)
	want := make([]int, 1+len(stateWords))
	want[1+failed] = 2
	if len(counts) != 1 || !slices.Equal(counts[0], want) {
		t.Errorf("the group counts %v, want %v", counts, want)
	}
	if !slices.Equal(state, []int{int(failed), int(failed)}) {
		t.Errorf("the nodes have states %v; want both to be failed", state)
	}
}

func TestAForeachHasOneState(t *testing.T) {
	for _, c := range []struct {
		name string
		of   plan.Status
		each []plan.Status
		want string
	}{
		{"nothing of it has begun", plan.Held, []plan.Status{plan.Held, plan.Held}, "held"},
		{"its items wait for a node", plan.Held, []plan.Status{plan.Queued, plan.Held}, "queued"},
		{"one of them starts", plan.Held, []plan.Status{plan.Queued, plan.Claimed}, "claimed"},
		{"one of them runs, and one has failed", plan.Held, []plan.Status{plan.Failed, plan.Running, plan.Queued}, "running"},
		{"they have ended, and it has not yet", plan.Held, []plan.Status{plan.Succeeded}, "held"},
		{"it failed", plan.Failed, []plan.Status{plan.Succeeded, plan.Failed}, "failed"},
		{"it makes its list", plan.Running, nil, "running"},
	} {
		items := make([]int, len(stateWords))
		for _, s := range c.each {
			items[stateIndex(s, "")]++
		}
		if got := stateWords[foreachState(stateIndex(c.of, ""), items)]; got != c.want {
			t.Errorf("%s: it is %s, want %s", c.name, got, c.want)
		}
	}
}
