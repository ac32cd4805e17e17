package layout

// draw lays the part out with its corner at the origin, writes its boxes and
// routes to l, and returns its size.
func (p *part) draw(l *Layout, nodes []Node, in *indexed, o Options) Node {
	if len(p.nodes) == 1 {
		n := nodes[p.nodes[0]]
		l.Nodes[p.nodes[0]] = Box{Width: n.Width, Height: n.Height}
		return n
	}
	g := newProper(p, nodes, in)
	g.minimize()
	x := g.place(o)
	width := g.span(x)[1]
	lane := func(c chain) int { return width + int(c.lane+1)*o.EdgeGap }

	r := router{g: g, x: x, lane: lane, ends: g.ends(p, in)}
	r.setLevels(nodes, o)
	r.place(l, p, nodes)
	for i, e := range p.edges {
		l.Routes[e] = r.route(i, l)
	}
	return Node{Width: width + int(g.lanes)*o.EdgeGap, Height: r.bottom[len(r.bottom)-1]}
}

// router turns the places of vertices into the routes of edges.
type router struct {
	g           *proper
	x           []int
	lane        func(chain) int
	ends        [][2]int32
	top, bottom []int // of each level
}

// place writes the boxes of a part.
func (r *router) place(l *Layout, p *part, nodes []Node) {
	for i, v := range p.nodes {
		n, level := nodes[v], p.level[v]
		tall := r.bottom[level] - r.top[level]
		l.Nodes[v] = Box{
			X: r.x[i] - r.g.extent[i][0], Y: r.top[level] + (tall-n.Height)/2,
			Width: n.Width, Height: n.Height, Level: int(level),
		}
	}
}

// setLevels gives each level the height of its tallest node.
func (r *router) setLevels(nodes []Node, o Options) {
	depth := len(r.g.layers)
	tall, reach := make([]int, depth), make([]int, depth)
	for i, v := range r.g.nodes {
		l := r.g.level[i]
		tall[l] = max(tall[l], nodes[v].Height)
	}
	if o.Slope > 0 {
		for v, l := range r.g.level {
			for _, w := range r.g.down.of(int32(v)) {
				reach[l] = max(reach[l], r.x[v]-r.x[w], r.x[w]-r.x[v])
			}
		}
	}
	r.top, r.bottom = make([]int, depth), make([]int, depth)
	y := 0
	for l := range depth {
		r.top[l], r.bottom[l] = y, y+tall[l]
		y += tall[l] + o.LevelGap
		if o.Slope > 0 {
			y += min(max(reach[l]/o.Slope-o.LevelGap, 0), 3*o.LevelGap)
		}
	}
}

// at returns where the edge passes level l, between its ends.
func (r *router) at(edge int, l int32) int {
	i := r.g.chainOf[edge]
	if c := r.g.chains[i]; c.first < 0 {
		return r.lane(c)
	}
	return r.x[r.g.at(i, l)]
}

// route returns the bends of the edge. Within the levels of its ends, and within those that it
// passes, the edge is straight, because a low node may have a tall neighbour.
func (r *router) route(edge int, l *Layout) []Point {
	from, to := r.ends[edge][0], r.ends[edge][1]
	first, last := r.g.level[from], r.g.level[to]
	head, tail := l.Nodes[r.g.nodes[from]], l.Nodes[r.g.nodes[to]]

	return bends(r.x[from], r.x[to], head, tail, first, last, r.top, r.bottom, func(level int32) int { return r.at(edge, level) })
}

// bends returns the route from the middle of a node, at from, to that of another one. at is where it passes each level between theirs.
func bends(from, to int, head, tail Box, first, last int32, top, bottom []int, at func(level int32) int) []Point {
	points := []Point{{from, head.Y + head.Height}}
	add := func(x, y int) {
		n := len(points)
		switch end := points[n-1]; {
		case end == Point{x, y}:
		case n > 1 && end.X == x && points[n-2].X == x:
			points[n-1].Y = y
		default:
			points = append(points, Point{x, y})
		}
	}
	add(from, bottom[first])
	for level := first + 1; level < last; level++ {
		x := at(level)
		add(x, top[level])
		add(x, bottom[level])
	}
	add(to, top[last])
	add(to, tail.Y)
	return points
}
