package v1

import (
	"slices"
	"testing"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/layout"
	"github.com/seed-1177d267/sluice/plan"
)

func TestPartsThatReadUpwardsAreTurned(t *testing.T) {
	box := func(x, y, level int) layout.Box { return layout.Box{X: x, Y: y, Width: 10, Height: 10, Level: level} }
	line := func(xy ...int) (points []layout.Point) {
		for i := 0; i < len(xy); i += 2 {
			points = append(points, layout.Point{X: xy[i], Y: xy[i+1]})
		}
		return points
	}
	l := &layout.Layout{
		Nodes: []layout.Box{
			box(0, 20, 0), box(50, 40, 1), box(50, 20, 1), box(50, 0, 1), // one and three that need it, upside down
			box(0, 60, 0), box(50, 60, 1), box(50, 80, 1), // one and two that need it, as they should be
			box(0, 100, 0), // alone
		},
		Routes: [][]layout.Point{line(10, 25, 50, 45), line(10, 25, 50, 25), line(10, 25, 50, 5), line(10, 65, 50, 65), line(10, 65, 30, 95, 50, 85)},
	}
	inOrder(l, [][2]int{{0, 1}, {0, 2}, {0, 3}, {4, 5}, {4, 6}})
	var y []int
	for _, b := range l.Nodes {
		y = append(y, b.Y)
	}
	if want := []int{20, 0, 20, 40, 60, 60, 80, 100}; !slices.Equal(y, want) {
		t.Errorf("the boxes are at %v, want %v", y, want)
	}
	for i, want := range [][]layout.Point{line(10, 25, 50, 5), line(10, 25, 50, 25), line(10, 25, 50, 45), line(10, 65, 50, 65), line(10, 65, 30, 95, 50, 85)} {
		if !slices.Equal(l.Routes[i], want) {
			t.Errorf("line %d goes %v, want %v", i, l.Routes[i], want)
		}
	}
}

func TestAForeachTaskIsNotCountedBesideItsItems(t *testing.T) {
	failed := stateIndex(plan.Failed, plan.ReasonItems)
	w := &drawing{state: []uint8{failed, failed, failed, failed}, items: []int32{2, 0, 0, 1}}
	f := fold{nodes: []node{{task: 0, group: api.GraphGroup{Of: 2}}, {task: 3}}, of: []int32{0, 0, 0, 1}}
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

func TestNumbersInNamesAreStars(t *testing.T) {
	for name, want := range map[string]string{
		"copy": "copy", "copy[17]": "copy[*]", "t12": "t*", "7of-10": "*of-*", "größe3": "größe*", "": "",
	} {
		if got := pattern(name); got != want {
			t.Errorf("%q is like %q, want %q", name, got, want)
		}
	}
}
