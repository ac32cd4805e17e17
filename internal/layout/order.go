package layout

import (
	"cmp"
	"slices"
)

// minimize orders the layers so that few segments cross. It tries two first
// orders, depth first along the edges and against them, improves each by sweeps,
// and keeps the best it saw, in the direction in which nodes read best (see falls).
func (g *proper) minimize() {
	if len(g.layers) < 2 {
		return
	}
	c := &crossings{g: g}
	sweeps, patience := effort(len(g.level) + len(g.down.to))
	best, least := g.snapshot(), c.count()
	keep := func() bool {
		n := c.count()
		if n >= least {
			return false
		}
		best, least = g.snapshot(), n
		return true
	}
	for _, upwards := range [2]bool{false, true} {
		if least == 0 {
			break
		}
		g.depthFirst(upwards)
		keep()
		for i, idle := 0, 0; i < sweeps && idle < patience && least > 0; i++ {
			g.sweep(i)
			for range rounds(sweeps) {
				if !c.transpose() {
					break
				}
			}
			if idle++; keep() {
				idle = 0
			}
		}
	}
	g.restore(best)
	if g.falls() > 0 {
		for l := range g.layers {
			slices.Reverse(g.layers[l])
		}
		g.number()
	}
}

// falls returns in how many more places a layer has a node before an earlier one than the other way
// round. If there are any, the layers read backwards. Reversing all of them changes no crossing.
func (g *proper) falls() (n int) {
	for _, layer := range g.layers {
		last := int32(-1)
		for _, v := range layer {
			if int(v) >= len(g.nodes) {
				continue
			}
			if last > v {
				n++
			} else if last >= 0 {
				n--
			}
			last = v
		}
	}
	return n
}

// effort returns how many sweeps to make for a graph of that size, and how many without success end
// the search. A small graph gets as many as help. A large one gets as many as about half a second
// allows.
func effort(size int) (sweeps, patience int) {
	sweeps = min(max(2_000_000/size, 4), 40)
	return sweeps, max(sweeps/4, 3)
}

// rounds is how often all layers are transposed after a sweep, at most.
func rounds(sweeps int) int { return max(sweeps/4, 1) }

func (g *proper) snapshot() []int32 { return slices.Clone(g.pos) }

func (g *proper) restore(pos []int32) {
	copy(g.pos, pos)
	for v, l := range g.level {
		g.layers[l][pos[v]] = int32(v)
	}
}

// depthFirst orders each layer as a walk meets its vertices that follows edges
// downwards (or upwards), from those that nothing leads to. Trees then
// have no crossings at all.
func (g *proper) depthFirst(upwards bool) {
	to, from := g.down, g.up
	if upwards {
		to, from = from, to
	}
	for l := range g.layers {
		g.layers[l] = g.layers[l][:0]
	}
	met := make([]bool, len(g.level))
	var stack []int32
	for first := range int32(len(g.level)) {
		if from.len(first) > 0 {
			continue
		}
		for stack = append(stack, first); len(stack) > 0; {
			v := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if met[v] {
				continue
			}
			met[v] = true
			g.layers[g.level[v]] = append(g.layers[g.level[v]], v)
			next := to.of(v)
			for i := len(next) - 1; i >= 0; i-- {
				stack = append(stack, next[i])
			}
		}
	}
	g.number()
}

// number sets pos from layers.
func (g *proper) number() {
	for _, layer := range g.layers {
		for i, v := range layer {
			g.pos[v] = int32(i)
		}
	}
}

// sweep orders layer by layer by the mean places of the neighbours in the previous layer:
// downwards, upwards, and then both with reversed ties. Reversed ties escape from orders that the
// first two keep.
func (g *proper) sweep(i int) {
	turn := i/2%2 == 1
	var keyed []placed
	if i%2 == 0 {
		for l := 1; l < len(g.layers); l++ {
			keyed = g.sortByMeans(l, g.up, turn, keyed)
		}
		return
	}
	for l := len(g.layers) - 2; l >= 0; l-- {
		keyed = g.sortByMeans(l, g.down, turn, keyed)
	}
}

type placed struct {
	mean float64
	v    int32
}

// sortByMeans orders layer l. A vertex without neighbours keeps its place.
func (g *proper) sortByMeans(l int, neighbours lists, turnTies bool, keyed []placed) []placed {
	layer := g.layers[l]
	keyed = keyed[:0]
	for _, v := range layer {
		if near := neighbours.of(v); len(near) > 0 {
			sum := int64(0)
			for _, w := range near {
				sum += int64(g.pos[w])
			}
			keyed = append(keyed, placed{float64(sum) / float64(len(near)), v})
		}
	}
	if turnTies {
		slices.Reverse(keyed)
	}
	slices.SortStableFunc(keyed, func(a, b placed) int { return cmp.Compare(a.mean, b.mean) })
	next := 0
	for i, v := range layer {
		if neighbours.len(v) > 0 {
			layer[i] = keyed[next].v
			next++
		}
	}
	for i, v := range layer {
		g.pos[v] = int32(i)
	}
	return keyed
}

// crossings counts crossings and removes some. It keeps its tables from one
// count to the next.
type crossings struct {
	g     *proper
	tree  []int32
	lower []int32
	above lists // of each vertex, the places of its neighbours above, ascending
	below lists
}

// count returns how many pairs of segments cross.
func (c *crossings) count() int64 {
	total := int64(0)
	for l := 0; l+1 < len(c.g.layers); l++ {
		total += c.between(l)
	}
	return total
}

// between counts the crossings below layer l: the pairs of segments whose ends are in opposite
// orders. It uses the accumulator tree of Barth, Mutzel and Jünger, "Simple and Efficient Bilayer
// Cross Counting" (2004).
func (c *crossings) between(l int) int64 {
	g := c.g
	width := 1
	for width < len(g.layers[l+1]) {
		width *= 2
	}
	c.tree = append(c.tree[:0], make([]int32, 2*width)...)
	total := int64(0)
	for _, v := range g.layers[l] {
		c.lower = c.lower[:0]
		for _, w := range g.down.of(v) {
			c.lower = append(c.lower, g.pos[w])
		}
		slices.Sort(c.lower)
		for _, p := range c.lower {
			for i := int(p) + width; i > 0; i /= 2 {
				c.tree[i]++
				if i%2 == 0 {
					total += int64(c.tree[i+1])
				}
			}
		}
	}
	return total
}

// transpose exchanges neighbours in all layers where that removes crossings, and
// reports whether it did.
func (c *crossings) transpose() bool {
	g := c.g
	if c.above.to == nil {
		c.above = lists{start: g.up.start, to: make([]int32, len(g.up.to))}
		c.below = lists{start: g.down.start, to: make([]int32, len(g.down.to))}
	}
	improved := false
	for _, layer := range g.layers {
		for _, v := range layer {
			c.places(c.above.of(v), g.up.of(v))
			c.places(c.below.of(v), g.down.of(v))
		}
		for i := 0; i+1 < len(layer); i++ {
			v, w := layer[i], layer[i+1]
			gain := gain(c.above.of(v), c.above.of(w)) + gain(c.below.of(v), c.below.of(w))
			if gain > 0 {
				layer[i], layer[i+1] = w, v
				g.pos[v], g.pos[w] = int32(i+1), int32(i)
				improved = true
			}
		}
	}
	return improved
}

func (c *crossings) places(to, of []int32) {
	for i, v := range of {
		to[i] = c.g.pos[v]
	}
	slices.Sort(to)
}

// gain returns how many crossings fewer there are if the vertex with neighbours
// at a, now left of that with neighbours at b, goes to its right. Both ascend.
func gain(a, b []int32) int {
	return inversions(a, b) - inversions(b, a)
}

// inversions counts the pairs of one of a and a smaller one of b.
func inversions(a, b []int32) int {
	n, j := 0, 0
	for _, p := range a {
		for j < len(b) && b[j] < p {
			j++
		}
		n += j
	}
	return n
}
