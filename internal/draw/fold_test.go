package draw

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/seed-1177d267/sluice/internal/layout"
)

// foldedOf folds a graph that has no cycle.
func foldedOf(t *testing.T, g Graph) Graph {
	t.Helper()
	level, err := layout.Levels(len(g.Nodes), g.Edges)
	if err != nil {
		t.Fatal(err)
	}
	f, levels := folded(g, level, counted)
	if want, err := layout.Levels(len(f.Nodes), f.Edges); err != nil || !slices.Equal(levels, want) {
		t.Errorf("the folded graph has the levels %v, want %v (%v)", levels, want, err)
	}
	return f
}

// named makes a graph of names and of edges written as pairs of names.
func named(names []string, edges ...[2]string) Graph {
	g := Graph{}
	for _, n := range names {
		g.Nodes = append(g.Nodes, Node{Name: n})
	}
	for _, e := range edges {
		g.Edges = append(g.Edges, [2]int{slices.Index(names, e[0]), slices.Index(names, e[1])})
	}
	return g
}

func TestFold(t *testing.T) {
	for _, c := range []struct {
		name  string
		g     Graph
		nodes []string
		edges [][2]int
	}{
		{"siblings become one",
			named([]string{"a", "c[0]", "c[1]", "c[2]", "z"},
				[2]string{"a", "c[0]"}, [2]string{"a", "c[1]"}, [2]string{"a", "c[2]"},
				[2]string{"c[0]", "z"}, [2]string{"c[1]", "z"}, [2]string{"c[2]", "z"}),
			[]string{"a", "c[0..2]", "z"}, [][2]int{{0, 1}, {1, 2}}},
		{"a number needs no brackets, and keeps its zeros",
			named([]string{"s-08", "s-09", "s-10"}), []string{"s-08..10"}, nil},
		{"the range is of numbers, not of texts",
			named([]string{"c[10]", "c[9]", "c[11]"}), []string{"c[9..11]"}, nil},
		{"two are not yet a group",
			named([]string{"c[0]", "c[1]"}), []string{"c[0]", "c[1]"}, nil},
		{"other names are other groups",
			named([]string{"a1", "b1", "a2", "b2", "a3", "b3"}), []string{"a1..3", "b1..3"}, nil},
		{"groups behind groups",
			named([]string{"a1", "a2", "a3", "b1", "b2", "b3"}, [2]string{"a1", "b1"}, [2]string{"a2", "b2"}, [2]string{"a3", "b3"}),
			[]string{"a1..3", "b1..3"}, [][2]int{{0, 1}}},
		{"a task of another level is no sibling",
			named([]string{"x", "c1", "c2", "c3", "c4"}, [2]string{"x", "c4"}),
			[]string{"x", "c1..3", "c4"}, [][2]int{{0, 2}}},
		{"a group has the edges of all its members",
			named([]string{"c1", "c2", "c3", "x"}, [2]string{"c1", "x"}),
			[]string{"c1..3", "x"}, [][2]int{{0, 1}}},
		{"members that need each other stay apart",
			named([]string{"c1", "c2", "c3"}, [2]string{"c1", "c2"}, [2]string{"c2", "c3"}),
			[]string{"c1", "c2", "c3"}, [][2]int{{0, 1}, {1, 2}}},
		{"and so do groups that take turns",
			named([]string{"a1", "b1", "a2", "b2", "a3", "b3"},
				[2]string{"a1", "b1"}, [2]string{"b1", "a2"}, [2]string{"a2", "b2"}, [2]string{"b2", "a3"}, [2]string{"a3", "b3"}),
			[]string{"a1", "b1", "a2", "b2", "a3", "b3"}, [][2]int{{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}}},
		{"a number may be beyond all measure",
			named([]string{"c12345678901234567899", "c12345678901234567898", "c12345678901234567897"}),
			[]string{"c12345678901234567897..12345678901234567899"}, nil},
		{"a number may be within the name",
			named([]string{"c9-end", "c10-end", "c11-end"}), []string{"c9..11-end"}, nil},
		{"several numbers are stars",
			named([]string{"c1-of-3", "c2-of-3", "c3-of-3"}), []string{"c*-of-*"}, nil},
		{"names without a number stay apart",
			named([]string{"c", "c", "c", "*", "*", "*"}), []string{"c", "c", "c", "*", "*", "*"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := foldedOf(t, c.g)
			var nodes []string
			for _, n := range got.Nodes {
				nodes = append(nodes, n.Name)
			}
			if !slices.Equal(nodes, c.nodes) || !slices.Equal(got.Edges, c.edges) {
				t.Errorf("folded = %v %v, want %v %v", nodes, got.Edges, c.nodes, c.edges)
			}
		})
	}
}

func TestWhatRunsByAnotherRuleIsNoSibling(t *testing.T) {
	g := named([]string{"c1", "c2", "c3", "c4"})
	for i := range g.Nodes {
		g.Nodes[i].When = "all_done"
	}
	g.Nodes[3].When = ""
	want := []Node{{Name: "c1..3", When: "all_done", Note: "3 tasks"}, {Name: "c4"}}
	if got := foldedOf(t, g).Nodes; !slices.Equal(got, want) {
		t.Errorf("folded = %+v, want %+v", got, want)
	}
}

func TestLongTurnsOfGroupsStayApart(t *testing.T) {
	// The ends of the chain differ from the rest; it takes many rounds until
	// that has come to its middle.
	g := Graph{}
	for i := range 400 {
		g.Nodes = append(g.Nodes, Node{Name: fmt.Sprintf("%c%d", 'a'+i%2, i/2)})
		if i > 0 {
			g.Edges = append(g.Edges, [2]int{i - 1, i})
		}
	}
	if got := foldedOf(t, g); !reflect.DeepEqual(got, g) {
		t.Errorf("folded changed a chain of 400 to one of %d", len(got.Nodes))
	}
}

func TestAFoldedGroupSaysHowItIs(t *testing.T) {
	for _, c := range []struct {
		states      []string
		state, note string
	}{
		{[]string{"succeeded", "failed", "running", "succeeded"}, "failed", "4 tasks: 2 succeeded, 1 running, 1 failed"},
		{[]string{"succeeded", "waiting", "running"}, "running", "3 tasks: 1 succeeded, 1 running, 1 waiting"},
		{[]string{"succeeded", "queued", "succeeded"}, "queued", "3 tasks: 2 succeeded, 1 queued"},
		{[]string{"skipped", "skipped", "skipped"}, "skipped", "3 tasks: 3 skipped"},
		{[]string{"odd", "odd", "odd"}, "odd", "3 tasks: 3 odd"},
		{[]string{"", "", ""}, "", "3 tasks"},
	} {
		g := Graph{}
		for i, s := range c.states {
			g.Nodes = append(g.Nodes, Node{Name: fmt.Sprint("c", i), State: s})
		}
		got := foldedOf(t, g).Nodes[0]
		if got.State != c.state || got.Note != c.note {
			t.Errorf("%v became %q, %q; want %q, %q", c.states, got.State, got.Note, c.state, c.note)
		}
	}
}
