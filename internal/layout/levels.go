package layout

// lists is a list of numbers for each of many numbers, in two slices: list v is
// to[start[v]:start[v+1]].
type lists struct{ start, to []int32 }

func (l lists) of(v int32) []int32 { return l.to[l.start[v]:l.start[v+1]] }
func (l lists) len(v int32) int    { return int(l.start[v+1] - l.start[v]) }

// newLists returns for each v below n the second numbers of the pairs whose
// first is v, in the order of the pairs.
func newLists(n int, pairs [][2]int32) lists {
	l := lists{start: make([]int32, n+1), to: make([]int32, len(pairs))}
	for _, p := range pairs {
		l.start[p[0]+1]++
	}
	for v := range n {
		l.start[v+1] += l.start[v]
	}
	next := append([]int32(nil), l.start[:n]...)
	for _, p := range pairs {
		l.to[next[p[0]]] = p[1]
		next[p[0]]++
	}
	return l
}

// indexed is the graph as the levels and the parts need it: who is next to whom.
type indexed struct {
	n                 int
	edges             [][2]int
	children, parents lists // without the edges that are given again
}

func index(n int, edges [][2]int) (*indexed, error) {
	pairs := make([][2]int32, 0, len(edges))
	for i, e := range edges {
		for _, v := range e {
			if v < 0 || v >= n {
				return nil, edgeError(i, e, "needs nodes that are in the graph")
			}
		}
		if e[0] == e[1] {
			return nil, edgeError(i, e, "is a cycle")
		}
		pairs = append(pairs, [2]int32{int32(e[0]), int32(e[1])})
	}
	pairs = withoutRepeats(n, pairs)
	in := &indexed{n: n, edges: edges, children: newLists(n, pairs)}
	for i, p := range pairs {
		pairs[i] = [2]int32{p[1], p[0]}
	}
	in.parents = newLists(n, pairs)
	return in, nil
}

// withoutRepeats returns the pairs of numbers below n, each once, ordered by
// their first number and then as they came.
func withoutRepeats(n int, pairs [][2]int32) [][2]int32 {
	all := newLists(n, pairs)
	seen := make([]int32, n) // by which first number, plus 1
	pairs = pairs[:0]
	for v := range int32(n) {
		for _, w := range all.of(v) {
			if seen[w] != v+1 {
				seen[w] = v + 1
				pairs = append(pairs, [2]int32{v, w})
			}
		}
	}
	return pairs
}

// order returns the nodes so that each comes after its parents, by Kahn's
// method; those on a cycle and those below one are missing.
func (in *indexed) order() []int32 {
	waits := make([]int32, in.n)
	order := make([]int32, 0, in.n)
	for v := range int32(in.n) {
		waits[v] = int32(in.parents.len(v))
		if waits[v] == 0 {
			order = append(order, v)
		}
	}
	for i := 0; i < len(order); i++ {
		for _, w := range in.children.of(order[i]) {
			if waits[w]--; waits[w] == 0 {
				order = append(order, w)
			}
		}
	}
	return order
}

// levels returns the length of the longest path to each node.
func (in *indexed) levels() ([]int32, error) {
	level := make([]int32, in.n)
	order := in.order()
	if len(order) < in.n {
		return nil, in.cycleError(order)
	}
	for _, v := range order {
		for _, w := range in.children.of(v) {
			level[w] = max(level[w], level[v]+1)
		}
	}
	return level, nil
}

// cycleError names an edge of a cycle, given the nodes that are not held up by
// any. Each other node has a parent among the others: upwards one comes around.
func (in *indexed) cycleError(free []int32) error {
	held := make([]bool, in.n)
	for v := range held {
		held[v] = true
	}
	for _, v := range free {
		held[v] = false
	}
	heldParent := func(v int32) int32 {
		for _, u := range in.parents.of(v) {
			if held[u] {
				return u
			}
		}
		panic("layout: a node that no cycle holds up was not put in order")
	}
	var v int32
	for !held[v] {
		v++
	}
	for range in.n { // after so many steps v is on a cycle
		v = heldParent(v)
	}
	u := heldParent(v)
	for i, e := range in.edges {
		if e == [2]int{int(u), int(v)} {
			return edgeError(i, e, "is part of a cycle")
		}
	}
	panic("layout: a parent without its edge")
}

// tighten moves nodes down, towards their children, if that makes the edges shorter in all. It
// moves nodes with more children than parents. It also moves nodes whose ancestors have no other
// descendants, because these can follow. Without tighten, every node without parents would lie in
// the first level, and its edges would pass all the other nodes.
func (in *indexed) tighten(level []int32) {
	order := in.order()
	alone := make([]bool, in.n) // all ancestors are there for this node only
	for _, v := range order {
		alone[v] = true
		for _, u := range in.parents.of(v) {
			alone[v] = alone[v] && alone[u] && in.children.len(u) == 1
		}
	}
	for i := len(order) - 1; i >= 0; i-- {
		v := order[i]
		children := in.children.of(v)
		if len(children) == 0 || !alone[v] && len(children) <= in.parents.len(v) {
			continue
		}
		least := level[children[0]]
		for _, w := range children {
			least = min(least, level[w])
		}
		level[v] = least - 1
	}
}
