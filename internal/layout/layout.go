// Package layout owns the positions of nodes and edges in a drawing of a directed acyclic graph.
// Nodes are in levels, each node below all that it needs, with few crossings. The package knows
// sizes, but neither what is drawn nor with what. So one layout serves a terminal (a unit is a
// cell), a picture and a page (a unit is a pixel).
//
// The method is that of Sugiyama, Tagawa and Toda (1981). It assigns levels, gives long edges a
// place in each level that they pass, orders each level, and finds coordinates. Each step is
// documented at its function. The result depends on the input alone. Nothing here recurses. Time
// and memory are close to linear in nodes and edges, however deep, wide or tangled the graph is.
package layout

import (
	"cmp"
	"fmt"
	"slices"
)

// Graph is the input of a layout. Edges are pairs of indices of Nodes, from the node that comes
// first to the node that needs it. An edge that is given twice is drawn twice on the same route.
type Graph struct {
	Nodes []Node
	Edges [][2]int

	// Aside marks the nodes that are drawn apart, in a lane of their own, such as handlers: the
	// other nodes can be read without them. They keep their levels, and lie beyond all other nodes
	// of their part. Nil marks none. A part whose nodes are all marked is drawn as if none were.
	Aside []bool
}

// Node is the size of a node in units, neither below 0.
type Node struct{ Width, Height int }

// Direction is the way in which edges point.
type Direction int

const (
	Down  Direction = 0 // levels are rows, the first on top
	Right Direction = 1 // levels are columns, the first on the left
)

// Options are distances in units and a preference. A field that is 0 has its default.
type Options struct {
	Direction Direction // default Down

	NodeGap  int // between neighbours in a level, and between unconnected parts; default 32
	EdgeGap  int // between an edge that passes a level and its neighbours there; default half of NodeGap
	LevelGap int // between levels; default 48
	AsideGap int // between the lane of Graph.Aside and the others of its part; default NodeGap

	// Slope limits how flat edges lie. The gap below a level grows until no edge there runs more
	// than Slope units sideways for one along, but to at most four times LevelGap. By default the
	// gap does not grow.
	Slope int

	// Breadth is how far the parts of a graph that no edge connects are put side
	// by side before the next row of them begins. The default makes the whole
	// about 3:2. A single part that is wider stays as it is.
	Breadth int
}

// Layout is a finished drawing; all of it lies within [0, Width] by [0, Height].
type Layout struct {
	Width, Height int
	Nodes         []Box     // as in Graph.Nodes
	Routes        [][]Point // as in Graph.Edges
	Aside         Box       // the lane of Graph.Aside, with the edges that run along it; zero if there is none
}

// Box is where a node lies: X and Y are its corner nearest to the origin. Level
// counts from 0 within the connected part of the graph that the node is in.
type Box struct {
	X, Y, Width, Height int
	Level               int
}

// Point is a bend or an end of an edge. A route starts in the middle of the far side of its first
// node, ends in the middle of the near side of its second, and crosses no node. Within a level a
// route runs straight along the direction; it turns only between levels.
type Point struct{ X, Y int }

// Arrange lays g out. It returns an error, and says which edge is at fault, if an
// edge names no node or edges form a cycle.
func Arrange(g Graph, o Options) (*Layout, error) {
	o = o.withDefaults()
	nodes := g.Nodes
	if o.Direction == Right {
		nodes = turned(nodes)
	}
	in, err := index(len(nodes), g.Edges)
	if err != nil {
		return nil, err
	}
	level, err := in.levels()
	if err != nil {
		return nil, err
	}
	in.tighten(level)

	l := &Layout{Nodes: make([]Box, len(nodes)), Routes: make([][]Point, len(g.Edges))}
	parts := together(split(in, level), g.Aside)
	sizes := make([]Node, len(parts))
	for i, p := range parts {
		if p.aside != nil {
			sizes[i] = p.drawAside(l, nodes, in, o)
			continue
		}
		sizes[i] = p.draw(l, nodes, in, o)
	}
	corners := pack(sizes, o)
	for i, p := range parts {
		p.move(l, corners[i])
		l.Width = max(l.Width, corners[i].X+sizes[i].Width)
		l.Height = max(l.Height, corners[i].Y+sizes[i].Height)
	}
	if o.Direction == Right {
		l.turn()
	}
	return l, nil
}

func (o Options) withDefaults() Options {
	o.NodeGap = cmp.Or(o.NodeGap, 32)
	o.EdgeGap = cmp.Or(o.EdgeGap, (o.NodeGap+1)/2)
	o.LevelGap = cmp.Or(o.LevelGap, 48)
	o.AsideGap = cmp.Or(o.AsideGap, o.NodeGap)
	return o
}

// turned exchanges width and height: a layout to the right is one downwards,
// mirrored at the diagonal.
func turned(nodes []Node) []Node {
	t := make([]Node, len(nodes))
	for i, n := range nodes {
		t[i] = Node{Width: n.Height, Height: n.Width}
	}
	return t
}

func (l *Layout) turn() {
	l.Width, l.Height = l.Height, l.Width
	l.Aside = Box{X: l.Aside.Y, Y: l.Aside.X, Width: l.Aside.Height, Height: l.Aside.Width}
	for i, b := range l.Nodes {
		l.Nodes[i] = Box{X: b.Y, Y: b.X, Width: b.Height, Height: b.Width, Level: b.Level}
	}
	for _, route := range l.Routes {
		for i, p := range route {
			route[i] = Point{X: p.Y, Y: p.X}
		}
	}
}

// Levels returns for each of n nodes the number of edges on the longest path
// that leads to it: 0 for a node that needs nothing. It fails as [Arrange] does.
// (Arrange draws some nodes lower, next to what needs them.)
func Levels(n int, edges [][2]int) ([]int, error) {
	in, err := index(n, edges)
	if err != nil {
		return nil, err
	}
	level, err := in.levels()
	if err != nil {
		return nil, err
	}
	out := make([]int, n)
	for i, l := range level {
		out[i] = int(l)
	}
	return out, nil
}

// part is a connected part of the graph.
type part struct {
	nodes []int32 // ascending
	edges []int32 // ascending
	level []int32 // of all the graph's nodes; those of this part begin at 0
	aside []bool  // as in Graph; nil: none of its nodes is
}

// split returns the connected parts, in the order of their first nodes, and
// moves the levels of each so that they begin at 0.
func split(in *indexed, level []int32) []*part {
	partOf := make([]int32, len(level))
	for i := range partOf {
		partOf[i] = -1
	}
	var parts []*part
	var stack []int32
	for first := range int32(len(level)) {
		if partOf[first] >= 0 {
			continue
		}
		id := int32(len(parts))
		p := &part{level: level}
		partOf[first] = id
		for stack = append(stack, first); len(stack) > 0; {
			v := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			p.nodes = append(p.nodes, v)
			for _, next := range [2][]int32{in.children.of(v), in.parents.of(v)} {
				for _, w := range next {
					if partOf[w] < 0 {
						partOf[w] = id
						stack = append(stack, w)
					}
				}
			}
		}
		slices.Sort(p.nodes)
		parts = append(parts, p)
	}
	for e, edge := range in.edges {
		p := parts[partOf[edge[0]]]
		p.edges = append(p.edges, int32(e))
	}
	for _, p := range parts {
		least := level[p.nodes[0]]
		for _, v := range p.nodes {
			least = min(least, level[v])
		}
		for _, v := range p.nodes {
			level[v] -= least
		}
	}
	return parts
}

// move shifts the finished part to its corner of the whole.
func (p *part) move(l *Layout, to Point) {
	if p.aside != nil {
		l.Aside.X += to.X
		l.Aside.Y += to.Y
	}
	for _, v := range p.nodes {
		l.Nodes[v].X += to.X
		l.Nodes[v].Y += to.Y
	}
	for _, e := range p.edges {
		for i := range l.Routes[e] {
			l.Routes[e][i].X += to.X
			l.Routes[e][i].Y += to.Y
		}
	}
}

// edgeError names the edge, for the code that built the graph.
func edgeError(i int, e [2]int, what string) error {
	return fmt.Errorf("layout: edge %d, from node %d to node %d, %s", i, e[0], e[1], what)
}
