// Package draw owns what a plan looks like: as text for a terminal, as SVG, and
// as source for Graphviz (DOT) and Mermaid. It knows names, states and edges,
// not tasks, so that a plan file and a plan in a store are drawn alike. Names come
// from users: each format escapes them, and what could change a terminal goes or
// becomes the replacement character (see cells.Clean).
package draw

import (
	"fmt"
	"strings"

	"github.com/seed-1177d267/sluice/internal/cells"
)

// Graph is a plan to draw. Edges are pairs of indices of Nodes, from a task to
// one that needs it. Edges that form a cycle, or name no node, are an error of
// every function that draws.
type Graph struct {
	Title string
	Nodes []Node
	Edges [][2]int
	// Along has the edges whose tasks go over the same items, item by item: they are double lines.
	Along map[[2]int]bool
	// Totals is how many tasks have each state, where nodes stand for tasks that are not drawn. Nil: each node is one task.
	Totals map[string]int
}

// Node is a task.
type Node struct {
	Name  string
	Label string // shown instead of the name where there is little room
	State string // the word that people read for its state; empty where the plan has not run
	When  string // the rule by which it runs, where that is not the usual one; on a line of its own
	Note  string // a few more words, such as the time it took; on a line of its own
}

func (n Node) label() string {
	if n.Label != "" {
		return n.Label
	}
	return n.Name
}

// below returns the lines that stand below the name.
func (n Node) below() (lines []string) {
	if n.When != "" {
		lines = append(lines, "when: "+n.When)
	}
	if n.Note != "" {
		lines = append(lines, n.Note)
	}
	return lines
}

// look is how a state appears: a symbol, so that nobody needs to see colours, and
// a colour.
type look struct {
	word          string
	symbol, ascii string
	sgr           string // the colour on a terminal
	light, dark   paint  // and on a page
	icon          string // the symbol as an SVG path in a square of 16
}

// paint is the colours of a box on a page.
type paint struct{ fill, line string }

// looks are the states in the order in which legends and counts name them: from
// what is good to what needs a person.
var looks = []look{
	{"succeeded", "✓", "+", "32", paint{"#e8f7ec", "#1a7f37"}, paint{"#12301c", "#3fb950"}, "M3 8.5 6.5 12 13 4.5"},
	{"running", "●", "*", "36", paint{"#e6f3fb", "#0969a8"}, paint{"#0d2a3d", "#58b1f0"}, "M5 3 13 8 5 13Z"},
	{"starting", "◐", "%", "36", paint{"#e6f3fb", "#0969a8"}, paint{"#0d2a3d", "#58b1f0"}, "M8 2.5A5.5 5.5 0 1 0 8 13.5ZM8 2.5A5.5 5.5 0 0 1 8 13.5"},
	{"queued", "○", "o", "", paint{"#f6f8fa", "#57606a"}, paint{"#21262d", "#9aa4af"}, "M8 2.5A5.5 5.5 0 1 0 8 13.5 5.5 5.5 0 1 0 8 2.5"},
	{"waiting", "·", ".", "", paint{"#ffffff", "#8c959f"}, paint{"#161b22", "#6e7681"}, "M4 8h.1M8 8h.1M12 8h.1"},
	{"skipped", "»", ">", "33", paint{"#f6f8fa", "#8c959f"}, paint{"#161b22", "#6e7681"}, "M3 4 7 8 3 12M9 4 13 8 9 12"},
	{"cancelled", "⊘", "/", "33", paint{"#fff8e5", "#9a6700"}, paint{"#33270c", "#d29922"}, "M8 2.5A5.5 5.5 0 1 0 8 13.5 5.5 5.5 0 1 0 8 2.5M4 12 12 4"},
	{"allowed", "✗", "x", "33", paint{"#fff8e5", "#9a6700"}, paint{"#33270c", "#d29922"}, "M4 4 12 12M12 4 4 12"},
	{"lost", "?", "?", "31", paint{"#ffeef0", "#cf222e"}, paint{"#3b1519", "#f85149"}, "M5 6A3 3 0 1 1 8 9v1M8 13h.1"},
	{"stopped", "■", "#", "31", paint{"#ffeef0", "#cf222e"}, paint{"#3b1519", "#f85149"}, "M4 4h8v8H4Z"},
	{"failed", "✗", "x", "31", paint{"#ffeef0", "#cf222e"}, paint{"#3b1519", "#f85149"}, "M4 4 12 12M12 4 4 12"},
}

// unknown is the look of a word that is no state of ours; a node without a state
// has its colours and no symbol.
var unknown = look{symbol: "-", ascii: "-", light: paint{"#f6f8fa", "#57606a"}, dark: paint{"#21262d", "#9aa4af"}, icon: "M4 8h8"}

// lookOf returns the look of a state and its rank in looks, -1 for an unknown one.
func lookOf(state string) (look, int) {
	for i, l := range looks {
		if l.word == state {
			return l, i
		}
	}
	l := unknown
	l.word = state
	return l, -1
}

// count is how many nodes have a state.
type count struct {
	look
	n int
}

// counts returns the states that occur, those that most need a look first
// to last as in looks, unknown ones at the end.
func counts(nodes []Node) []count {
	n := map[string]int{}
	var others []string
	for _, node := range nodes {
		if node.State == "" {
			continue
		}
		if n[node.State]++; n[node.State] == 1 {
			if _, rank := lookOf(node.State); rank < 0 {
				others = append(others, node.State)
			}
		}
	}
	return ordered(n, others)
}

// counts is how many tasks have each state.
func (g Graph) counts() []count {
	if g.Totals == nil {
		return counts(g.Nodes)
	}
	return ordered(g.Totals, nil)
}

// ordered returns the states with how many tasks have them: as in looks, the others at the end.
func ordered(n map[string]int, others []string) []count {
	var all []count
	for _, l := range looks {
		if n[l.word] > 0 {
			all = append(all, count{l, n[l.word]})
		}
	}
	for _, word := range others {
		l, _ := lookOf(word)
		all = append(all, count{l, n[word]})
	}
	return all
}

// cleaned returns g with every text clean.
func (g Graph) cleaned() Graph {
	c := Graph{Title: cells.Clean(g.Title), Nodes: make([]Node, len(g.Nodes)), Edges: g.Edges, Along: g.Along, Totals: g.Totals}
	for i, n := range g.Nodes {
		c.Nodes[i] = Node{
			Name: cells.Clean(n.Name), Label: cells.Clean(n.Label), State: cells.Clean(n.State), When: cells.Clean(n.When), Note: cells.Clean(n.Note),
		}
	}
	return c
}

// tip returns all that is known about a node, as a line.
func (n Node) tip() string {
	s := n.Name
	if n.State != "" {
		s += ": " + n.State
	}
	if more := n.below(); len(more) > 0 {
		s += " (" + strings.Join(more, ", ") + ")"
	}
	return s
}

func tasks(n int) string {
	if n == 1 {
		return "1 task"
	}
	return fmt.Sprintf("%d tasks", n)
}
