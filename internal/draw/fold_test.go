package draw

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
)

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
		{"who needs something else is no sibling",
			named([]string{"x", "c1", "c2", "c3", "c4"}, [2]string{"x", "c4"}),
			[]string{"x", "c1..3", "c4"}, [][2]int{{0, 2}}},
		{"nor is who is needed by something else, up to the last of them",
			named([]string{"c1", "c2", "c3", "x"}, [2]string{"c1", "x"}),
			[]string{"c1", "c2", "c3", "x"}, [][2]int{{0, 3}}},
		{"members that need each other stay apart",
			named([]string{"c1", "c2", "c3"}, [2]string{"c1", "c2"}, [2]string{"c2", "c3"}),
			[]string{"c1", "c2", "c3"}, [][2]int{{0, 1}, {1, 2}}},
		{"and so do groups that take turns",
			named([]string{"a1", "b1", "a2", "b2", "a3", "b3"},
				[2]string{"a1", "b1"}, [2]string{"b1", "a2"}, [2]string{"a2", "b2"}, [2]string{"b2", "a3"}, [2]string{"a3", "b3"}),
			[]string{"a1", "b1", "a2", "b2", "a3", "b3"}, [][2]int{{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}}},
		{"a number beyond all measure is a name",
			named([]string{"c1234567890123456789", "c1234567890123456788", "c1234567890123456787"}),
			[]string{"c1234567890123456789", "c1234567890123456788", "c1234567890123456787"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Fold(c.g)
			var nodes []string
			for _, n := range got.Nodes {
				nodes = append(nodes, n.Name)
			}
			if !slices.Equal(nodes, c.nodes) || !slices.Equal(got.Edges, c.edges) {
				t.Errorf("Fold = %v %v, want %v %v", nodes, got.Edges, c.nodes, c.edges)
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
	if got := Fold(g).Nodes; !slices.Equal(got, want) {
		t.Errorf("Fold = %+v, want %+v", got, want)
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
	if got := Fold(g); !reflect.DeepEqual(got, g) {
		t.Errorf("Fold changed a chain of 400 to one of %d", len(got.Nodes))
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
		got := Fold(g).Nodes[0]
		if got.State != c.state || got.Note != c.note {
			t.Errorf("%v became %q, %q; want %q, %q", c.states, got.State, got.Note, c.state, c.note)
		}
	}
}
