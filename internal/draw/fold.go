package draw

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-1177d267/sluice/internal/fold"
)

// folded returns the graph and its levels with each group of siblings as one node. The siblings are
// of one level, have one rule, and have names that differ only in numbers, as copy[0] to copy[99].
// At least three make a group. The node is called copy[0..99]. It has the state of the member that
// most needs a look, and the edges of all members. Edges lead from level to level, so a fold makes
// no cycle.
func folded(g Graph, level []int, note func(members []Node) string) (Graph, []int) {
	out := Graph{Title: g.Title, Totals: g.Totals}
	var levels []int
	of := make([]int, len(g.Nodes))
	for i, class := range fold.Classes(len(g.Nodes), fold.Smallest, func(v int) string {
		n := g.Nodes[v]
		if p := fold.Pattern(n.Name); p != n.Name {
			return strconv.Itoa(level[v]) + "\x00" + n.When + "\x00" + p
		}
		return ""
	}) {
		members := make([]Node, len(class))
		for k, v := range class {
			members[k], of[v] = g.Nodes[v], i
		}
		n := members[0]
		if len(members) > 1 {
			n = Node{
				Name: together(members), When: n.When, Note: note(members),
				State: slices.MaxFunc(members, func(a, b Node) int { return cmp.Compare(urgency(a.State), urgency(b.State)) }).State,
			}
		}
		out.Nodes, levels = append(out.Nodes, n), append(levels, level[class[0]])
	}
	out.Edges, _ = fold.Edges(g.Edges, of)
	for e := range g.Along {
		if out.Along == nil {
			out.Along = map[[2]int]bool{}
		}
		out.Along[[2]int{of[e[0]], of[e[1]]}] = true
	}
	return out, levels
}

// counted is the note of a group where there is room for words.
func counted(members []Node) string {
	var parts []string
	for _, c := range counts(members) {
		parts = append(parts, strconv.Itoa(c.n)+" "+c.word)
	}
	return strings.TrimSuffix(tasks(len(members))+": "+strings.Join(parts, ", "), ": ")
}

// urgency orders states by which of them represents a group: first a state that needs a person,
// then running, then waiting, then done.
func urgency(state string) int {
	return slices.Index([]string{
		"skipped", "succeeded", "waiting", "queued", "starting", "running", "cancelled", "allowed", "lost", "stopped", "failed",
	}, state)
}

// together is what nodes of one pattern are called: the pattern, with the range of the number in
// place of its star if there is but one.
func together(members []Node) string {
	pattern := fold.Pattern(members[0].Name)
	before, after, _ := strings.Cut(pattern, "*")
	if strings.Contains(after, "*") {
		return pattern
	}
	number := func(n Node) string { return n.Name[len(before) : len(n.Name)-len(after)] }
	order := func(a, b Node) int {
		x, y := strings.TrimLeft(number(a), "0"), strings.TrimLeft(number(b), "0")
		return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y))
	}
	return before + number(slices.MinFunc(members, order)) + ".." + number(slices.MaxFunc(members, order)) + after
}
