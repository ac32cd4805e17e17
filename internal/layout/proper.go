package layout

import (
	"cmp"
	"slices"
)

// proper is one part with each of its edges cut into segments between neighbouring levels. A long
// edge passes the levels between its ends on dummies, which take up room in the order of a level as
// nodes do. Edges with a common end share dummies. A node that 1,000 others on 1,000 levels need is
// the head of one chain of dummies, and not of half a million.
//
// Vertices below len(nodes) are nodes, the others dummies, by chain and level.
type proper struct {
	nodes  []int32   // vertex to node
	level  []int32   // of each vertex
	extent [][2]int  // how far it reaches to the left and the right of its middle
	layers [][]int32 // the vertices of each level, in their order
	pos    []int32   // of each vertex in its layer
	up     lists     // neighbours in the level above
	down   lists     // and below

	chains  []chain
	chainOf []int32 // of each edge of the part: its chain, or -1 for a short one
	lanes   int32
}

// chain is a line that one long edge, or several that share an end, run along:
// a dummy in each level from top to bottom.
type chain struct {
	top, bottom int32
	first       int32 // the vertex of the dummy in level top; -1 for a lane
	lane        int32 // if first is -1
}

// maxDummies is how many dummies a part with n nodes and edges may have. A deep graph whose edges
// join distant levels at random would have n² of them. The longest chains above the limit become
// lanes. Lanes run straight down next to the whole part and take no part in the ordering.
func maxDummies(n int) int { return 10_000 + 4*n }

func newProper(p *part, nodes []Node, in *indexed) *proper {
	g := &proper{nodes: p.nodes, level: make([]int32, len(p.nodes)), extent: make([][2]int, len(p.nodes))}
	for i, v := range p.nodes {
		g.level[i] = p.level[v]
		w := nodes[v].Width
		g.extent[i] = [2]int{w / 2, w - w/2}
	}
	ends := g.ends(p, in)
	g.makeChains(ends)
	g.makeDummies(maxDummies(len(p.nodes) + len(p.edges)))
	g.connect(ends)

	depth := int32(0)
	for _, l := range g.level {
		depth = max(depth, l+1)
	}
	g.layers = make([][]int32, depth)
	g.pos = make([]int32, len(g.level))
	for v, l := range g.level {
		g.pos[v] = int32(len(g.layers[l]))
		g.layers[l] = append(g.layers[l], int32(v))
	}
	return g
}

// ends returns the edges of the part as pairs of vertices.
func (g *proper) ends(p *part, in *indexed) [][2]int32 {
	vertex := make(map[int]int32, len(p.nodes))
	for i, v := range p.nodes {
		vertex[int(v)] = int32(i)
	}
	ends := make([][2]int32, len(p.edges))
	for i, e := range p.edges {
		ends[i] = [2]int32{vertex[in.edges[e][0]], vertex[in.edges[e][1]]}
	}
	return ends
}

// makeChains gives each long edge to the chain of its first or its second node, to
// that which has more long edges.
func (g *proper) makeChains(ends [][2]int32) {
	long := func(e [2]int32) bool { return g.level[e[1]] > g.level[e[0]]+1 }
	out, in := make([]int32, len(g.nodes)), make([]int32, len(g.nodes))
	for _, e := range ends {
		if long(e) {
			out[e[0]]++
			in[e[1]]++
		}
	}
	g.chainOf = make([]int32, len(ends))
	outChain, inChain := make([]int32, len(g.nodes)), make([]int32, len(g.nodes)) // plus 1
	for i, e := range ends {
		g.chainOf[i] = -1
		if !long(e) {
			continue
		}
		at := &outChain[e[0]]
		if out[e[0]] < in[e[1]] {
			at = &inChain[e[1]]
		}
		if *at == 0 {
			g.chains = append(g.chains, chain{top: g.level[e[0]] + 1, bottom: g.level[e[1]] - 1})
			*at = int32(len(g.chains))
		}
		c := &g.chains[*at-1]
		c.top, c.bottom = min(c.top, g.level[e[0]]+1), max(c.bottom, g.level[e[1]]-1)
		g.chainOf[i] = *at - 1
	}
}

// makeDummies makes the dummies of the chains, the shortest first, and turns
// those that no longer fit into limit into lanes.
func (g *proper) makeDummies(limit int) {
	order := make([]int32, len(g.chains))
	for i := range order {
		order[i] = int32(i)
	}
	length := func(i int32) int { return int(g.chains[i].bottom - g.chains[i].top + 1) }
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(length(a), length(b)) })
	fit := 0
	for fit < len(order) && limit >= length(order[fit]) {
		limit -= length(order[fit])
		fit++
	}
	// In the order of the edges again, so that vertices that belong together
	// have numbers that do.
	slices.Sort(order[:fit])
	for _, i := range order[:fit] {
		c := &g.chains[i]
		c.first = int32(len(g.level))
		for l := c.top; l <= c.bottom; l++ {
			g.level = append(g.level, l)
			g.extent = append(g.extent, [2]int{})
		}
	}
	g.makeLanes(order[fit:])
}

// makeLanes gives each of the chains a lane that is free where it runs.
func (g *proper) makeLanes(chains []int32) {
	byBottom := slices.Clone(chains)
	slices.SortStableFunc(chains, func(a, b int32) int { return cmp.Compare(g.chains[a].top, g.chains[b].top) })
	slices.SortStableFunc(byBottom, func(a, b int32) int { return cmp.Compare(g.chains[a].bottom, g.chains[b].bottom) })
	var free []int32
	for _, i := range chains {
		c := &g.chains[i]
		// A chain comes to its lane above its top and leaves it below its bottom. The next chain in
		// the lane begins a level later, so that the two do not touch.
		for g.chains[byBottom[0]].bottom < c.top-1 {
			free = append(free, g.chains[byBottom[0]].lane)
			byBottom = byBottom[1:]
		}
		if len(free) == 0 {
			free = append(free, g.lanes)
			g.lanes++
		}
		c.first, c.lane = -1, free[len(free)-1]
		free = free[:len(free)-1]
	}
}

// connect makes the segments.
func (g *proper) connect(ends [][2]int32) {
	var segments [][2]int32
	for i, c := range g.chains {
		if c.first < 0 {
			continue
		}
		for l := c.top; l < c.bottom; l++ {
			segments = append(segments, [2]int32{g.at(int32(i), l), g.at(int32(i), l+1)})
		}
	}
	for i, e := range ends {
		switch c := g.chainOf[i]; {
		case c < 0:
			segments = append(segments, e)
		case g.chains[c].first >= 0:
			segments = append(segments,
				[2]int32{e[0], g.at(c, g.level[e[0]]+1)}, [2]int32{g.at(c, g.level[e[1]]-1), e[1]})
		}
	}
	segments = withoutRepeats(len(g.level), segments)
	g.down = newLists(len(g.level), segments)
	for i, s := range segments {
		segments[i] = [2]int32{s[1], s[0]}
	}
	g.up = newLists(len(g.level), segments)
}

// at returns the dummy of chain c in level l.
func (g *proper) at(c, l int32) int32 { return g.chains[c].first + l - g.chains[c].top }

func (g *proper) dummy(v int32) bool { return int(v) >= len(g.nodes) }
