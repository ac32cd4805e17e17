package layout

import "slices"

// together makes one part of those that have nodes which are drawn aside, so
// that there is one lane, and tells it which these are. It comes where the first of
// them was.
func together(parts []*part, aside []bool) []*part {
	if aside == nil {
		return parts
	}
	var one *part
	rest := parts[:0]
	for _, p := range parts {
		n := 0
		for _, v := range p.nodes {
			if aside[v] {
				n++
			}
		}
		switch {
		case n == 0 || n == len(p.nodes):
		case one == nil:
			one = p
			p.aside = aside
		default:
			one.nodes, one.edges = append(one.nodes, p.nodes...), append(one.edges, p.edges...)
			continue
		}
		rest = append(rest, p)
	}
	if one != nil {
		slices.Sort(one.nodes)
		slices.Sort(one.edges)
	}
	return rest
}

// drawAside is draw for a part with nodes that lie aside. Both kinds are laid out alone, in the
// same levels, and one comes beyond the other. The edges between them turn between levels, as all
// edges do. A long edge passes the levels between its ends on a track between the two kinds. The
// edges of one aside node share a track.
func (p *part) drawAside(l *Layout, nodes []Node, in *indexed, o Options) Node {
	main, side := &part{level: p.level}, &part{level: p.level}
	for _, v := range p.nodes {
		if p.aside[v] {
			side.nodes = append(side.nodes, v)
		} else {
			main.nodes = append(main.nodes, v)
		}
	}
	var between []int32
	for _, e := range p.edges {
		switch a, b := p.aside[in.edges[e][0]], p.aside[in.edges[e][1]]; {
		case a && b:
			side.edges = append(side.edges, e)
		case !a && !b:
			main.edges = append(main.edges, e)
		default:
			between = append(between, e)
		}
	}

	rs := [2]router{}
	widths := [2]int{}
	for i, p := range []*part{main, side} {
		g := newProper(p, nodes, in)
		g.minimize()
		x := g.place(o)
		width := g.span(x)[1]
		widths[i] = width + int(g.lanes)*o.EdgeGap
		rs[i] = router{g: g, x: x, ends: g.ends(p, in)}
		rs[i].setLevels(nodes, o)
	}
	top, bottom := levelsOf(&rs[0], &rs[1], o)

	tracks := map[int]int{} // of nodes that are aside: where their long edges to the others run
	begin := widths[0] + o.AsideGap
	for _, e := range between {
		from, to := in.edges[e][0], in.edges[e][1]
		at := to
		if p.aside[from] {
			at = from
		}
		if _, ok := tracks[at]; !ok && p.level[to] > p.level[from]+1 {
			tracks[at] = begin + (len(tracks)+1)*o.EdgeGap
		}
	}
	shift := begin
	if len(tracks) > 0 {
		shift += (len(tracks) + 1) * o.EdgeGap
	}
	for v := range rs[1].x {
		rs[1].x[v] += shift
	}
	middle := make(map[int]int, len(p.nodes))
	for i, p := range []*part{main, side} {
		r, width := &rs[i], rs[i].g.span(rs[i].x)[1]
		r.top, r.bottom = top, bottom
		r.lane = func(c chain) int { return width + int(c.lane+1)*o.EdgeGap }
		r.place(l, p, nodes)
		for k, e := range p.edges {
			l.Routes[e] = r.route(k, l)
		}
		for k, v := range p.nodes {
			middle[int(v)] = r.x[k]
		}
	}
	for _, e := range between {
		from, to := in.edges[e][0], in.edges[e][1]
		track, ok := tracks[to]
		if p.aside[from] {
			track, ok = tracks[from]
		}
		if !ok {
			track = 0 // there is no level between
		}
		l.Routes[e] = bends(middle[from], middle[to], l.Nodes[from], l.Nodes[to], p.level[from], p.level[to], top, bottom, func(int32) int { return track })
	}
	size := Node{Width: shift + widths[1], Height: bottom[len(bottom)-1]}
	l.Aside = Box{X: begin, Width: size.Width - begin, Height: size.Height}
	return size
}

// levelsOf returns the positions of the levels that two routers share. Each level is as tall as the
// taller of the two, and has as much room below it as the larger of the two.
func levelsOf(a, b *router, o Options) (top, bottom []int) {
	tall := func(r *router, l int) int {
		if l >= len(r.top) {
			return 0
		}
		return r.bottom[l] - r.top[l]
	}
	gap := func(r *router, l int) int {
		if l+1 >= len(r.top) {
			return o.LevelGap
		}
		return r.top[l+1] - r.bottom[l]
	}
	y := 0
	for l := range max(len(a.top), len(b.top)) {
		t := max(tall(a, l), tall(b, l))
		top, bottom = append(top, y), append(bottom, y+t)
		y += t + max(gap(a, l), gap(b, l))
	}
	return top, bottom
}
