package layout

import "slices"

// place returns the middle of each vertex across its level, by the method of Brandes and Köpf,
// "Fast and Simple Horizontal Coordinate Assignment" (2001). It aligns each vertex with a median
// neighbour, from above and from below, leftmost and rightmost. It scales the four results to one
// breadth, and takes the mean of the middle two for each vertex. Aligned vertices are a block.
// Blocks are pushed together in the order of their dependencies, without recursion, as the erratum
// of 2020 and the usual implementations do.
func (g *proper) place(o Options) []int {
	bounds := g.innerBounds()
	var xs [4][]int
	var spans [4][2]int
	narrowest := 0
	for i := range xs {
		below, right := i/2 == 1, i%2 == 1
		xs[i] = g.compact(g.align(below, right, bounds), right, o)
		spans[i] = g.span(xs[i])
		if spans[i][1]-spans[i][0] < spans[narrowest][1]-spans[narrowest][0] {
			narrowest = i
		}
	}
	for i := range xs {
		side := i % 2 // the left ones meet at the left, the right ones at the right
		shift := spans[narrowest][side] - spans[i][side]
		for v := range xs[i] {
			xs[i][v] += shift
		}
	}
	x := make([]int, len(g.level))
	for v := range x {
		four := [4]int{xs[0][v], xs[1][v], xs[2][v], xs[3][v]}
		slices.Sort(four[:])
		// Order and distances survive: they hold in each of the four, so they
		// hold for each of the sorted four, and halving rounds all alike.
		x[v] = (four[1] + four[2]) >> 1
	}
	left := g.span(x)[0]
	for v := range x {
		x[v] -= left
	}
	return x
}

// span returns how far vertices at x reach.
func (g *proper) span(x []int) [2]int {
	s := [2]int{x[0] - g.extent[0][0], x[0] + g.extent[0][1]}
	for v, at := range x {
		s[0], s[1] = min(s[0], at-g.extent[v][0]), max(s[1], at+g.extent[v][1])
	}
	return s
}

// inner reports whether the segment between u and v, in either order, is a piece of a long edge.
// Such pieces become straight before all others.
func (g *proper) inner(u, v int32) bool { return g.dummy(u) && g.dummy(v) }

// innerBounds returns for each vertex the places in the level above between
// which a segment from there crosses no inner segment.
func (g *proper) innerBounds() [][2]int32 {
	bounds := make([][2]int32, len(g.level))
	for l := 1; l < len(g.layers); l++ {
		layer, least, most := g.layers[l], int32(0), int32(len(g.layers[l-1])-1)
		for _, v := range layer {
			bounds[v][0] = least
			for _, u := range g.up.of(v) {
				if g.inner(u, v) {
					least = max(least, g.pos[u])
				}
			}
		}
		for _, v := range slices.Backward(layer) {
			bounds[v][1] = most
			for _, u := range g.up.of(v) {
				if g.inner(u, v) {
					most = min(most, g.pos[u])
				}
			}
		}
	}
	return bounds
}

// align returns for each vertex the first vertex of its block.
func (g *proper) align(below, right bool, bounds [][2]int32) []int32 {
	root := make([]int32, len(g.level))
	for v := range root {
		root[v] = int32(v)
	}
	neighbours := g.up
	if below {
		neighbours = g.down
	}
	var near []int32
	for i := range g.layers {
		layer := g.layers[i]
		if below {
			layer = g.layers[len(g.layers)-1-i]
		}
		last := int32(-1) // the place of the last neighbour taken; the next lies beyond
		if right {
			last = int32(len(g.level))
		}
		for j := range layer {
			v := layer[j]
			if right {
				v = layer[len(layer)-1-j]
			}
			near = g.candidates(near[:0], v, neighbours.of(v))
			if len(near) == 0 {
				continue
			}
			medians := [2]int32{near[(len(near)-1)/2], near[len(near)/2]}
			if right {
				medians[0], medians[1] = medians[1], medians[0]
			}
			for _, u := range medians {
				beyond := g.pos[u] > last
				if right {
					beyond = g.pos[u] < last
				}
				if beyond && !g.conflict(u, v, below, bounds) {
					root[v], last = root[u], g.pos[u]
					break
				}
			}
		}
	}
	return root
}

// candidates appends the neighbours that v may be aligned with, from left to
// right: the next piece of its long edge if there is one, else all.
func (g *proper) candidates(to []int32, v int32, neighbours []int32) []int32 {
	for _, u := range neighbours {
		if g.inner(u, v) {
			return append(to, u)
		}
	}
	to = append(to, neighbours...)
	slices.SortFunc(to, func(a, b int32) int { return int(g.pos[a] - g.pos[b]) })
	return to
}

// conflict reports whether the segment between v and its neighbour u crosses an
// inner one and therefore cannot be straight.
func (g *proper) conflict(u, v int32, below bool, bounds [][2]int32) bool {
	if g.inner(u, v) {
		return false
	}
	if below {
		u, v = v, u
	}
	return g.pos[u] < bounds[v][0] || g.pos[u] > bounds[v][1]
}

// compact puts the blocks side by side, as far left as possible (or right). Then it moves each as
// close to its neighbour on the other side as that allows.
func (g *proper) compact(root []int32, right bool, o Options) []int {
	pairs := make([][2]int32, len(root))
	for v, r := range root {
		pairs[v] = [2]int32{r, int32(v)}
	}
	members := newLists(len(root), pairs)

	ahead := int32(1) // where the next vertex of a level is, in the direction of packing
	if right {
		ahead = -1
	}
	// beyond calls f with each block that lies beyond the block, and how far
	// it must at least be.
	beyond := func(block int32, f func(next int32, distance int)) {
		for _, v := range members.of(block) {
			layer, i := g.layers[g.level[v]], g.pos[v]+ahead
			if i < 0 || int(i) >= len(layer) {
				continue
			}
			if w := layer[i]; right {
				f(root[w], g.distance(w, v, o))
			} else {
				f(root[w], g.distance(v, w, o))
			}
		}
	}

	waits := make([]int32, len(root))
	for v, r := range root {
		if i := g.pos[v] - ahead; i >= 0 && int(i) < len(g.layers[g.level[v]]) {
			waits[r]++
		}
	}
	var order []int32
	for v, r := range root {
		if int32(v) == r && waits[r] == 0 {
			order = append(order, r)
		}
	}
	x := make([]int, len(root))
	for i := 0; i < len(order); i++ {
		beyond(order[i], func(next int32, distance int) {
			x[next] = max(x[next], x[order[i]]+distance)
			if waits[next]--; waits[next] == 0 {
				order = append(order, next)
			}
		})
	}
	for _, block := range slices.Backward(order) {
		nearest, any := 0, false
		beyond(block, func(next int32, distance int) {
			if at := x[next] - distance; !any || at < nearest {
				nearest, any = at, true
			}
		})
		if any {
			x[block] = nearest
		}
	}
	for v, r := range root {
		x[v] = x[r]
	}
	if right {
		for v := range x {
			x[v] = -x[v]
		}
	}
	return x
}

// distance returns how far the middles of two neighbours are apart at least.
func (g *proper) distance(left, right int32, o Options) int {
	gap := o.NodeGap
	if g.dummy(left) || g.dummy(right) {
		gap = o.EdgeGap
	}
	return g.extent[left][1] + gap + g.extent[right][0]
}
