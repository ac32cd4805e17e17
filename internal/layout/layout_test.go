package layout

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// The shapes that plans have, and those that break layouts.

func chainOf(n int) (edges [][2]int) {
	for i := range n - 1 {
		edges = append(edges, [2]int{i, i + 1})
	}
	return edges
}

// fan is a node before and a node behind width others.
func fan(width int) (edges [][2]int) {
	for i := range width {
		edges = append(edges, [2]int{0, i + 1}, [2]int{i + 1, width + 1})
	}
	return edges
}

// hubs is a chain each link of which needs the first node and is needed by the last.
func hubs(n int) (edges [][2]int) {
	edges = chainOf(n)
	for i := 2; i < n; i++ {
		edges = append(edges, [2]int{0, i})
	}
	for i := 1; i < n-2; i++ {
		edges = append(edges, [2]int{i, n - 1})
	}
	return edges
}

// layered is levels of width nodes, each with edges to random nodes one to reach
// levels above.
func layered(levels, width, degree, reach int, seed uint64) (edges [][2]int) {
	r := rand.New(rand.NewPCG(seed, 0))
	for l := 1; l < levels; l++ {
		for i := range width {
			for range degree {
				from := max(l-1-r.IntN(reach), 0)
				edges = append(edges, [2]int{from*width + r.IntN(width), l*width + i})
			}
		}
	}
	return edges
}

// tangled joins random nodes of a chain, so that edges are as long as can be.
func tangled(n, more int, seed uint64) (edges [][2]int) {
	r := rand.New(rand.NewPCG(seed, 1))
	edges = chainOf(n)
	for range more {
		a, b := r.IntN(n), r.IntN(n)
		if a != b {
			edges = append(edges, [2]int{min(a, b), max(a, b)})
		}
	}
	return edges
}

func graph(n int, edges [][2]int) Graph {
	g := Graph{Nodes: make([]Node, n), Edges: edges}
	for i := range g.Nodes {
		g.Nodes[i] = Node{Width: 60 + i*7%50, Height: 20 + i%3*5}
	}
	return g
}

func arrange(t *testing.T, g Graph, o Options) *Layout {
	t.Helper()
	l, err := Arrange(g, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// check reports what a layout must not do, whatever the graph.
func check(t *testing.T, g Graph, o Options, l *Layout) {
	t.Helper()
	o = o.withDefaults()
	if o.Direction == Right { // as if it were Down
		g.Nodes = turned(g.Nodes)
		l = &Layout{Width: l.Width, Height: l.Height, Nodes: slices.Clone(l.Nodes), Routes: slices.Clone(l.Routes)}
		for i, r := range l.Routes {
			l.Routes[i] = slices.Clone(r)
		}
		l.turn()
	}
	checkBoxes(t, g, o, l)
	for i, e := range g.Edges {
		checkRoute(t, i, l.Nodes[e[0]], l.Nodes[e[1]], o, l)
	}
}

func checkBoxes(t *testing.T, g Graph, o Options, l *Layout) {
	t.Helper()
	order := make([]int, len(l.Nodes))
	for i, b := range l.Nodes {
		order[i] = i
		if b.Width != g.Nodes[i].Width || b.Height != g.Nodes[i].Height {
			t.Errorf("node %d is %dx%d, want %dx%d", i, b.Width, b.Height, g.Nodes[i].Width, g.Nodes[i].Height)
		}
		if b.X < 0 || b.Y < 0 || b.X+b.Width > l.Width || b.Y+b.Height > l.Height {
			t.Errorf("node %d at %+v is outside of the %dx%d drawing", i, b, l.Width, l.Height)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return l.Nodes[a].X - l.Nodes[b].X })
	for i, v := range order {
		a := l.Nodes[v]
		for _, w := range order[i+1:] {
			b := l.Nodes[w]
			if b.X >= a.X+a.Width+o.NodeGap {
				break
			}
			if a.Y < b.Y+b.Height && b.Y < a.Y+a.Height {
				t.Errorf("nodes %d at %+v and %d at %+v are nearer than %d", v, a, w, b, o.NodeGap)
			}
		}
	}
}

func checkRoute(t *testing.T, edge int, from, to Box, o Options, l *Layout) {
	t.Helper()
	if from.Level >= to.Level || from.Y+from.Height+o.LevelGap > to.Y {
		t.Errorf("edge %d does not go down: from %+v to %+v", edge, from, to)
	}
	route := l.Routes[edge]
	start := Point{from.X + from.Width/2, from.Y + from.Height}
	end := Point{to.X + to.Width/2, to.Y}
	if route[0] != start || route[len(route)-1] != end {
		t.Errorf("edge %d runs %v, want it to start at %v and end at %v", edge, route, start, end)
	}
	for i, p := range route[1:] {
		q := route[i]
		if p.X < 0 || p.X > l.Width || p.Y > l.Height {
			t.Errorf("edge %d leaves the %dx%d drawing at %v", edge, l.Width, l.Height, p)
		}
		if p.Y <= q.Y {
			t.Errorf("edge %d goes from %v to %v, not down", edge, q, p)
		}
		for v, b := range l.Nodes {
			if meets(q, p, b) {
				t.Errorf("edge %d crosses node %d at %+v on its way from %v to %v", edge, v, b, q, p)
			}
		}
	}
}

// meets reports whether the line downwards from p to q passes through the inside
// of the box.
func meets(p, q Point, b Box) bool {
	y1, y2 := max(p.Y, b.Y), min(q.Y, b.Y+b.Height) // the part of the line at the height of the box
	if y1 >= y2 {
		return false
	}
	// x times the height of the line, to stay with whole numbers
	high := q.Y - p.Y
	at := func(y int) int { return p.X*high + (q.X-p.X)*(y-p.Y) }
	left, right := min(at(y1), at(y2)), max(at(y1), at(y2))
	return left < (b.X+b.Width)*high && right > b.X*high
}

func TestArrangeKeepsNodesAndEdgesApart(t *testing.T) {
	for _, c := range []struct {
		name string
		n    int
		e    [][2]int
	}{
		{"nothing", 0, nil},
		{"one node", 1, nil},
		{"an edge", 2, [][2]int{{1, 0}}},
		{"an edge given three times", 2, [][2]int{{0, 1}, {0, 1}, {0, 1}}},
		{"a long edge given twice", 3, [][2]int{{0, 1}, {1, 2}, {0, 2}, {0, 2}}},
		{"a long chain", 2000, chainOf(2000)},
		{"a wide fan", 500, fan(498)},
		{"a chain with two hubs", 200, hubs(200)},
		{"levels", 100, layered(10, 10, 3, 1, 2)},
		{"levels with longer edges", 100, layered(10, 10, 3, 4, 3)},
		{"a tangle", 60, tangled(60, 120, 4)},
		{"everything joined with everything", 26, func() (e [][2]int) {
			for i := range 26 {
				for j := range i {
					e = append(e, [2]int{j, i})
				}
			}
			return e
		}()},
		{"many unconnected parts", 300, append(layered(3, 20, 1, 1, 6), chainOf(9)...)},
	} {
		for _, o := range []Options{{}, {Direction: Right, Slope: 3}, {NodeGap: 3, EdgeGap: 2, LevelGap: 1, Breadth: 80}} {
			t.Run(fmt.Sprintf("%s %+v", c.name, o), func(t *testing.T) {
				g := graph(c.n, c.e)
				l := arrange(t, g, o)
				check(t, g, o, l)
				if again := arrange(t, g, o); !reflect.DeepEqual(l, again) {
					t.Error("the same graph was laid out differently the second time")
				}
				g.Aside = make([]bool, c.n)
				for i := range g.Aside {
					g.Aside[i] = i%4 == 3
				}
				check(t, g, o, arrange(t, g, o))
			})
		}
	}
}

func TestEdgesInLanesCrossNoNode(t *testing.T) {
	g := graph(500, tangled(500, 500, 5)) // see TestDummiesAreLimitedAndLanesTakeTheRest
	check(t, g, Options{}, arrange(t, g, Options{}))
}

func FuzzArrange(f *testing.F) {
	f.Add([]byte{5, 0, 1, 1, 2, 0, 2, 3, 4}, false)
	f.Add([]byte{9, 0, 8, 0, 7, 1, 8, 1, 2, 2, 3, 3, 8}, true)
	f.Fuzz(func(t *testing.T, data []byte, right bool) {
		if len(data) == 0 || len(data) > 400 { // more finds nothing new, slowly
			return
		}
		n := int(data[0])%40 + 1
		g := Graph{Nodes: make([]Node, n)}
		for i := range g.Nodes {
			size := int(data[i%len(data)])
			g.Nodes[i] = Node{Width: size % 32, Height: size / 32}
		}
		for i := 1; i+1 < len(data); i += 2 {
			a, b := int(data[i])%n, int(data[i+1])%n
			if a != b {
				g.Edges = append(g.Edges, [2]int{min(a, b), max(a, b)})
			}
		}
		o := Options{NodeGap: 2, EdgeGap: 1, LevelGap: 1}
		if right {
			o.Direction = Right
		}
		check(t, g, o, arrange(t, g, o))
		g.Aside = make([]bool, n)
		for i := range g.Aside {
			g.Aside[i] = data[(i+1)%len(data)]%3 == 0
		}
		check(t, g, o, arrange(t, g, o))
	})
}

// checkAside reports nodes that are on the wrong side of the lane's edge.
func checkAside(t *testing.T, g Graph, l *Layout) {
	t.Helper()
	in := func(b Box) bool {
		a := l.Aside
		return b.X >= a.X && b.Y >= a.Y && b.X+b.Width <= a.X+a.Width && b.Y+b.Height <= a.Y+a.Height
	}
	for i, b := range l.Nodes {
		if g.Aside[i] != in(b) {
			t.Errorf("node %d at %+v is in the lane %+v: %v, want %v", i, b, l.Aside, in(b), g.Aside[i])
		}
	}
}

func TestNodesAsideHaveALaneOfTheirOwn(t *testing.T) {
	for _, c := range []struct {
		name  string
		n     int
		e     [][2]int
		aside []int
	}{
		{"a handler at the end", 3, [][2]int{{0, 1}, {1, 2}}, []int{2}},
		{"a handler that the end needs", 4, [][2]int{{0, 1}, {1, 2}, {1, 3}, {2, 3}}, []int{2}},
		{"one for what is far before it", 5, [][2]int{{0, 1}, {1, 2}, {2, 3}, {0, 4}, {3, 4}}, []int{4}},
		{"several, of parts that are connected by nothing", 7, [][2]int{{0, 1}, {0, 2}, {3, 4}, {3, 5}, {5, 6}}, []int{2, 6}},
		{"those that need each other", 6, [][2]int{{0, 1}, {1, 2}, {0, 3}, {3, 4}, {4, 5}, {2, 5}}, []int{3, 4, 5}},
	} {
		for _, d := range []Direction{Down, Right} {
			g := Graph{Nodes: same(c.n, Node{60, 20}), Edges: c.e, Aside: make([]bool, c.n)}
			for _, i := range c.aside {
				g.Aside[i] = true
			}
			l := arrange(t, g, Options{Direction: d})
			t.Run(c.name, func(t *testing.T) {
				check(t, g, Options{Direction: d}, l)
				checkAside(t, g, l)
			})
		}
	}
	g := Graph{Nodes: same(2, Node{60, 20}), Edges: [][2]int{{0, 1}}}
	plain := arrange(t, g, Options{})
	g.Aside = []bool{true, true}
	if l := arrange(t, g, Options{}); !reflect.DeepEqual(l, plain) {
		t.Errorf("where all are aside it is %+v, want %+v", l, plain)
	}
}

func TestArrangeRefusesWhatIsNoDAG(t *testing.T) {
	for _, c := range []struct {
		name string
		n    int
		e    [][2]int
		want string
	}{
		{"an edge from an unknown node", 2, [][2]int{{2, 0}}, "edge 0, from node 2 to node 0, needs nodes that are in the graph"},
		{"an edge to a negative node", 2, [][2]int{{0, 1}, {0, -1}}, "edge 1, from node 0 to node -1, needs nodes that are in the graph"},
		{"an edge to itself", 2, [][2]int{{1, 1}}, "edge 0, from node 1 to node 1, is a cycle"},
		{"a cycle behind and before others", 6, [][2]int{{0, 1}, {1, 2}, {2, 3}, {3, 1}, {3, 4}, {4, 5}}, "is part of a cycle"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Arrange(graph(c.n, c.e), Options{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Arrange(%v) = %v, want %q", c.e, err, c.want)
			}
			if _, again := Levels(c.n, c.e); fmt.Sprint(again) != fmt.Sprint(err) {
				t.Errorf("Levels(%v) = %v, want it to say what Arrange does: %v", c.e, again, err)
			}
		})
	}
}

func TestCycleErrorNamesAnEdgeOfTheCycle(t *testing.T) {
	edges := [][2]int{{4, 5}, {3, 4}, {0, 1}, {1, 2}, {2, 3}, {3, 1}}
	_, err := Levels(6, edges)
	for _, want := range []string{"from node 1 to node 2", "from node 2 to node 3", "from node 3 to node 1"} {
		if strings.Contains(fmt.Sprint(err), want) {
			return
		}
	}
	t.Errorf("Levels = %v, want an edge between nodes 1, 2 and 3", err)
}

func TestLevels(t *testing.T) {
	// 5 needs nothing and is needed by the last only: still a first task.
	got, err := Levels(6, [][2]int{{0, 1}, {1, 2}, {0, 3}, {2, 4}, {3, 4}, {5, 4}})
	if want := []int{0, 1, 2, 1, 3, 0}; err != nil || !slices.Equal(got, want) {
		t.Errorf("Levels = %v, %v; want %v", got, err, want)
	}
}
