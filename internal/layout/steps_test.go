package layout

import (
	"slices"
	"testing"
)

func same(n int, size Node) (nodes []Node) { return slices.Repeat([]Node{size}, n) }

func TestWhereNodesLie(t *testing.T) {
	size := Node{Width: 10, Height: 4}
	o := Options{NodeGap: 6, EdgeGap: 2, LevelGap: 8}
	for _, c := range []struct {
		name string
		n    int
		e    [][2]int
		o    Options
		want []Point // corners
	}{
		{"a chain is straight", 3, chainOf(3), o, []Point{{0, 0}, {0, 12}, {0, 24}}},
		{"a chain to the right is straight", 3, chainOf(3), Options{Direction: Right, NodeGap: 6, LevelGap: 8},
			[]Point{{0, 0}, {18, 0}, {36, 0}}},
		{"the ends of a fan lie in its middle", 5, fan(3), o,
			[]Point{{16, 0}, {0, 12}, {16, 12}, {32, 12}, {16, 24}}},
		{"of an even fan too", 4, fan(2), o, []Point{{8, 0}, {0, 12}, {16, 12}, {8, 24}}},
		{"what only a late node needs lies above it, not on top", 5, [][2]int{{0, 1}, {1, 2}, {2, 3}, {4, 3}}, o,
			[]Point{{0, 0}, {0, 12}, {0, 24}, {8, 36}, {16, 24}}},
		{"and takes its own ancestors along", 6, [][2]int{{0, 1}, {1, 2}, {2, 3}, {4, 3}, {5, 4}}, o,
			[]Point{{0, 0}, {0, 12}, {0, 24}, {8, 36}, {16, 24}, {16, 12}}},
		{"nodes cross over where edges would", 4, [][2]int{{0, 3}, {1, 2}}, o,
			[]Point{{0, 0}, {16, 0}, {16, 12}, {0, 12}}},
		{"levels that read backwards are turned", 5, [][2]int{{0, 3}, {2, 3}, {1, 4}, {0, 4}}, o,
			[]Point{{16, 0}, {32, 0}, {0, 0}, {8, 12}, {24, 12}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := arrange(t, Graph{Nodes: same(c.n, size), Edges: c.e}, c.o)
			var got []Point
			for _, b := range l.Nodes {
				got = append(got, Point{b.X, b.Y})
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("nodes lie at %v, want %v", got, c.want)
			}
		})
	}
}

func TestUnconnectedPartsFillRows(t *testing.T) {
	g := Graph{Nodes: same(7, Node{Width: 10, Height: 4}), Edges: [][2]int{{5, 6}}}
	l := arrange(t, g, Options{NodeGap: 2, LevelGap: 2, Breadth: 36})
	want := []Box{ // the tall part first, then as they come; a row is 36 wide at most
		{12, 0, 10, 4, 0}, {24, 0, 10, 4, 0}, {0, 12, 10, 4, 0}, {12, 12, 10, 4, 0}, {24, 12, 10, 4, 0},
		{0, 0, 10, 4, 0}, {0, 6, 10, 4, 1},
	}
	if !slices.Equal(l.Nodes, want) {
		t.Errorf("nodes lie at %v, want %v", l.Nodes, want)
	}
}

func TestLongEdgesAreStraightAndShared(t *testing.T) {
	// Every link of a chain needs 0. Its edges run down next to the chain as one line and leave
	// that line one by one.
	edges := append(chainOf(6), [][2]int{{0, 2}, {0, 3}, {0, 4}, {0, 5}}...)
	l := arrange(t, Graph{Nodes: same(6, Node{Width: 10, Height: 4}), Edges: edges}, Options{NodeGap: 6, EdgeGap: 2, LevelGap: 8})
	beside := map[int]bool{}
	for _, r := range l.Routes[5:] {
		for _, p := range r[1 : len(r)-1] {
			beside[p.X] = true
		}
		if len(r) != 4 {
			t.Errorf("a long edge runs %v, want two bends", r)
		}
	}
	if len(beside) != 1 {
		t.Errorf("the long edges run at x = %v, want one line", beside)
	}
}

func TestSlopeWidensTheGapOnlyWhereEdgesLieFlat(t *testing.T) {
	g := Graph{Nodes: same(24, Node{Width: 10, Height: 4}), Edges: append(fan(21), [2]int{23, 0})}
	o := Options{NodeGap: 6, LevelGap: 8, Slope: 8}
	l := arrange(t, g, o)
	// The outer edges of the fan run 160 sideways: at 8 for one, 20 along.
	if got := l.Nodes[0].Y - l.Nodes[23].Y; got != 4+8 {
		t.Errorf("the straight edge has %d, want 12", got)
	}
	if got := l.Nodes[1].Y - l.Nodes[0].Y; got != 4+20 {
		t.Errorf("the fan has %d, want 24", got)
	}
	o.Slope = 1
	if got := arrange(t, g, o).Nodes[1].Y; got != 4+8+4+4*8 {
		t.Errorf("with Slope 1 the fan lies at %d, want it four gaps below", got)
	}
}

// build returns the first part of the graph, ready to be ordered.
func build(t *testing.T, n int, edges [][2]int) *proper {
	t.Helper()
	in, err := index(n, edges)
	if err != nil {
		t.Fatal(err)
	}
	level, err := in.levels()
	if err != nil {
		t.Fatal(err)
	}
	return newProper(split(in, level)[0], graph(n, edges).Nodes, in)
}

func TestShapesThatNeedNoCrossingHaveNone(t *testing.T) {
	tree := [][2]int{}
	for i := 1; i < 200; i++ {
		tree = append(tree, [2]int{(i * 7919) % i / 2, i}) // each below some earlier node
	}
	ladder := [][2]int{}
	for i := range 60 {
		ladder = append(ladder, [2]int{2 * i, 2*i + 2}, [2]int{2*i + 1, 2*i + 3}, [2]int{2 * i, 2*i + 3})
	}
	for _, c := range []struct {
		name string
		n    int
		e    [][2]int
	}{
		{"a chain", 50, chainOf(50)},
		{"a tree", 200, tree},
		{"a fan", 300, fan(298)},
		{"a ladder", 122, ladder},
		{"a chain with two hubs", 40, hubs(40)},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := build(t, c.n, c.e)
			g.minimize()
			if got := (&crossings{g: g}).count(); got != 0 {
				t.Errorf("%d crossings, want none", got)
			}
		})
	}
}

func TestMinimizeRemovesMostCrossings(t *testing.T) {
	g := build(t, 200, layered(10, 20, 2, 2, 9))
	c := &crossings{g: g}
	before := c.count()
	g.minimize()
	if after := c.count(); after > before/3 {
		t.Errorf("%d crossings of %d are left, want a third at most", after, before)
	}
}

func TestCrossingsAreCountedRight(t *testing.T) {
	for seed := range uint64(20) {
		g := build(t, 60, layered(4, 15, 3, 3, seed))
		want := int64(0)
		for v := range int32(len(g.level)) {
			for w := range int32(len(g.level)) {
				if g.level[v] != g.level[w] || g.pos[v] >= g.pos[w] {
					continue
				}
				for _, a := range g.down.of(v) {
					for _, b := range g.down.of(w) {
						if g.pos[a] > g.pos[b] {
							want++
						}
					}
				}
			}
		}
		if got := (&crossings{g: g}).count(); got != want {
			t.Errorf("seed %d: counted %d crossings, want %d", seed, got, want)
		}
	}
}

func TestTransposeOnlyRemovesCrossings(t *testing.T) {
	for seed := range uint64(20) {
		g := build(t, 60, layered(4, 15, 3, 2, seed))
		c := &crossings{g: g}
		for {
			before := c.count()
			improved := c.transpose()
			if after := c.count(); improved != (after < before) || after > before {
				t.Fatalf("seed %d: transpose() = %t, and went from %d crossings to %d", seed, improved, before, after)
			}
			if !improved {
				break
			}
		}
	}
}

func TestDummiesAreLimitedAndLanesTakeTheRest(t *testing.T) {
	const n = 500
	edges := tangled(n, n, 5)
	g := build(t, n, edges)
	if got, most := len(g.level)-n, maxDummies(n+len(edges)); got > most {
		t.Errorf("%d dummies, want %d at most", got, most)
	}
	if g.lanes == 0 {
		t.Fatal("no chain became a lane: the test needs a graph with longer edges")
	}
	busy := map[[2]int32]int{}
	for i, c := range g.chains {
		if c.first >= 0 {
			continue
		}
		if c.lane < 0 || c.lane >= g.lanes {
			t.Errorf("chain %d is in lane %d of %d", i, c.lane, g.lanes)
		}
		for l := c.top - 1; l <= c.bottom; l++ {
			if other, taken := busy[[2]int32{c.lane, l}]; taken {
				t.Errorf("chains %d and %d meet in lane %d below level %d", other, i, c.lane, l)
			}
			busy[[2]int32{c.lane, l}] = i
		}
	}
}
