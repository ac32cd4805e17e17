package draw

import (
	"encoding/binary"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Fold returns the graph with each group of siblings as one node. A group has at least three nodes
// whose names differ only in a number at their end, as copy[0] to copy[99]. The nodes have the same
// rule, and the same parents and children once their own groups are folded. The node is called
// copy[0..99]. It has the state of the member that most needs a look, and the number of members in
// each state.
func Fold(g Graph) Graph {
	return fold(g, func(members []Node) string {
		var parts []string
		for _, c := range counts(members) {
			parts = append(parts, strconv.Itoa(c.n)+" "+c.word)
		}
		return groupNote(len(members), parts)
	})
}

func groupNote(n int, parts []string) string {
	if len(parts) == 0 {
		return tasks(n)
	}
	return tasks(n) + ": " + strings.Join(parts, ", ")
}

const smallestGroup = 3

func fold(g Graph, note func(members []Node) string) Graph {
	class := siblings(g)
	members := make([][]int, len(g.Nodes)) // by class
	for v, c := range class {
		members[c] = append(members[c], v)
	}

	folded := Graph{Title: g.Title, Totals: g.Totals}
	index := make([]int, len(g.Nodes)) // of the class, in the folded graph
	for v, c := range class {
		if members[c][0] != v {
			continue
		}
		index[c] = len(folded.Nodes)
		n := g.Nodes[v]
		if len(members[c]) > 1 {
			n = group(g, members[c], note)
		}
		folded.Nodes = append(folded.Nodes, n)
	}
	seen := map[[2]int]bool{}
	for _, e := range g.Edges {
		e = [2]int{index[class[e[0]]], index[class[e[1]]]}
		if !seen[e] {
			seen[e] = true
			folded.Edges = append(folded.Edges, e)
		}
	}
	return folded
}

func group(g Graph, members []int, note func([]Node) string) Node {
	nodes := make([]Node, len(members))
	first, last := members[0], members[0]
	state, worst := "", -2
	for i, v := range members {
		nodes[i] = g.Nodes[v]
		if number(g.Nodes[v].Name) < number(g.Nodes[first].Name) {
			first = v
		}
		if number(g.Nodes[v].Name) > number(g.Nodes[last].Name) {
			last = v
		}
		if rank := urgency(nodes[i].State); rank > worst {
			state, worst = nodes[i].State, rank
		}
	}
	from, _ := split(g.Nodes[first].Name)
	to, _ := split(g.Nodes[last].Name)
	return Node{
		Name: from.before + from.digits + ".." + to.digits + from.after, State: state, When: g.Nodes[members[0]].When, Note: note(nodes),
	}
}

// urgency orders states by which of them represents a group: first a state that needs a person,
// then running, then waiting, then done.
func urgency(state string) int {
	return slices.Index([]string{
		"skipped", "succeeded", "waiting", "queued", "starting", "running", "cancelled", "allowed", "lost", "stopped", "failed",
	}, state)
}

// numbered is a name with a number at its end, in brackets or not.
type numbered struct{ before, digits, after string }

var numberAtEnd = regexp.MustCompile(`^(.*?)([0-9]+)(\]?)$`)

func split(name string) (numbered, bool) {
	m := numberAtEnd.FindStringSubmatch(name)
	if m == nil {
		return numbered{}, false
	}
	return numbered{m[1], m[2], m[3]}, true
}

// number returns the number at the end of the name; one that is longer than 18
// digits counts as none.
func number(name string) int {
	n, _ := split(name)
	i, err := strconv.Atoi(n.digits)
	if err != nil || len(n.digits) > 18 {
		return -1
	}
	return i
}

// siblings returns a class for each node, which is a number below len(g.Nodes). Nodes of one class
// are to be folded. Classes begin as the nodes with one rule and one name but for the number.
// siblings splits them until the members of each have the same classes around them, so that the
// fold hides no edge.
func siblings(g Graph) []int {
	s := &sorter{g: g, around: make([][]int, len(g.Nodes)), class: make([]int, len(g.Nodes))}
	for i, e := range g.Edges {
		s.around[e[0]] = append(s.around[e[0]], i)
		s.around[e[1]] = append(s.around[e[1]], i)
	}
	s.regroup(func(v int) string {
		n, ok := split(g.Nodes[v].Name)
		if !ok || number(g.Nodes[v].Name) < 0 {
			return "" // alone
		}
		return n.before + "\x00" + n.after + "\x00" + g.Nodes[v].When
	})
	s.dissolve(s.withEdgesInside())
	// A few rounds settle what plans look like. A class that is not settled by
	// then would hide an edge: it is dissolved, and so is what that unsettles.
	for range 8 {
		if !s.regroup(s.signature) {
			break
		}
	}
	for s.dissolve(s.unsettled()) {
	}
	return s.class
}

type sorter struct {
	g      Graph
	around [][]int // the edges of each node
	class  []int   // named by the class's first node
}

// regroup splits the classes by key; nodes whose key is empty, and those left in
// too small a class, are alone. It reports whether anything changed.
func (s *sorter) regroup(key func(v int) string) bool {
	type id struct {
		class int
		key   string
	}
	groups := map[id][]int{}
	var order []id
	for v := range s.g.Nodes {
		k := id{s.class[v], key(v)}
		if k.key == "" {
			k.class = -1 - v
		}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], v)
	}
	changed := false
	next := make([]int, len(s.class))
	for _, k := range order {
		members := groups[k]
		for _, v := range members {
			next[v] = members[0]
			if len(members) < smallestGroup {
				next[v] = v
			}
			changed = changed || next[v] != s.class[v]
		}
	}
	s.class = next
	return changed
}

// signature returns the classes around a node, and on which side each is.
func (s *sorter) signature(v int) string {
	near := make([]int64, 0, len(s.around[v]))
	for _, i := range s.around[v] {
		if e := s.g.Edges[i]; e[0] == v {
			near = append(near, int64(s.class[e[1]])<<1)
		} else {
			near = append(near, int64(s.class[e[0]])<<1|1)
		}
	}
	slices.Sort(near)
	b := []byte{' '} // not empty: that would be alone
	for _, n := range slices.Compact(near) {
		b = binary.AppendVarint(b, n)
	}
	return string(b)
}

// withEdgesInside returns the classes whose members need each other: those are
// no siblings.
func (s *sorter) withEdgesInside() map[int]bool {
	classes := map[int]bool{}
	for _, e := range s.g.Edges {
		if s.class[e[0]] == s.class[e[1]] {
			classes[s.class[e[0]]] = true
		}
	}
	return classes
}

// unsettled returns the classes whose members do not all have the same classes around them. When
// there are none, folding cannot make a cycle. On such a cycle each member of a class would have a
// parent in the class before, for ever.
func (s *sorter) unsettled() map[int]bool {
	classes, first := map[int]bool{}, map[int]string{}
	for v, c := range s.class {
		sign := s.signature(v)
		if was, ok := first[c]; !ok {
			first[c] = sign
		} else if was != sign {
			classes[c] = true
		}
	}
	return classes
}

// dissolve makes each member of the classes alone, and reports whether there
// were any.
func (s *sorter) dissolve(classes map[int]bool) bool {
	for v, c := range s.class {
		if classes[c] {
			s.class[v] = v
		}
	}
	return len(classes) > 0
}
