package draw

import (
	"fmt"
	"math/rand/v2"
)

// build makes a graph of lines like "copy: list" (copy needs list); a node's
// state and note may follow its name, as in "list/succeeded/1.2 s: ".
func migration() Graph {
	return Graph{
		Title: "migrate-example-com",
		Nodes: []Node{
			{Name: "list", State: "succeeded", Note: "1.2 s"},
			{Name: "copy-alice", State: "succeeded", Note: "14 s"},
			{Name: "copy-bob", State: "running", Note: "31 s"},
			{Name: "copy-carol", State: "failed", Note: "exit status 7"},
			{Name: "dns", State: "queued"},
			{Name: "verify", State: "waiting"},
			{Name: "report", State: "waiting"},
		},
		Edges: [][2]int{{0, 1}, {0, 2}, {0, 3}, {1, 5}, {2, 5}, {3, 5}, {4, 6}, {5, 6}, {0, 6}},
	}
}

func fanout(n int) Graph {
	g := Graph{Title: "batch", Nodes: []Node{{Name: "split", State: "succeeded"}}}
	states := []string{"succeeded", "succeeded", "running", "queued", "failed"}
	for i := range n {
		g.Nodes = append(g.Nodes, Node{Name: fmt.Sprintf("copy[%d]", i), State: states[i*7%len(states)]})
		g.Edges = append(g.Edges, [2]int{0, i + 1}, [2]int{i + 1, n + 1})
	}
	g.Nodes = append(g.Nodes, Node{Name: "join", State: "waiting"})
	return g
}

// layered is levels of width nodes, each with edges from degree random ones up to reach levels above.
func layered(levels, width, degree, reach int, seed uint64) Graph {
	r := rand.New(rand.NewPCG(seed, 0))
	g := Graph{}
	for l := range levels {
		for i := range width {
			g.Nodes = append(g.Nodes, Node{Name: fmt.Sprintf("t%c%c", 'a'+l, 'a'+i), State: looks[r.IntN(len(looks))].word})
			for range degree {
				if l > 0 {
					g.Edges = append(g.Edges, [2]int{max(l-1-r.IntN(reach), 0)*width + r.IntN(width), l*width + i})
				}
			}
		}
	}
	return g
}
