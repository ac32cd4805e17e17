package draw

import (
	"slices"
	"strconv"
	"strings"

	"github.com/seed-1177d267/sluice/internal/cells"
)

// list draws the graph as a line for each task with the tasks that it needs. Each level is indented
// a little further.
func (o TextOptions) list(g Graph, level []int) []string {
	order := make([]int, len(g.Nodes))
	deepest := 0
	for v := range order {
		order[v] = v
		deepest = max(deepest, level[v])
	}
	slices.SortStableFunc(order, func(a, b int) int { return level[a] - level[b] })
	needs := make([][]int, len(g.Nodes))
	for _, e := range g.Edges {
		needs[e[1]] = append(needs[e[1]], e[0])
	}
	for v, n := range needs {
		slices.Sort(n)
		needs[v] = slices.Compact(n)
	}
	numbers := len(strconv.Itoa(deepest))
	// A deep plan must not run out of the line. Beyond a third of the line, all levels have the
	// same indent, and only their numbers differ.
	furthest := max(o.Width/3-numbers, 0)

	lines := make([]string, 0, len(order))
	for _, v := range order {
		l := line{room: o.Width, color: o.Color, mark: o.ellipsis()}
		number := ""
		if len(lines) == 0 || level[v] != level[order[len(lines)-1]] {
			number = strconv.Itoa(level[v])
		}
		l.put(cells.PadLeft(number, numbers)+"  "+strings.Repeat("  ", min(level[v], furthest/2)), dim)
		n := g.Nodes[v]
		if n.State != "" {
			look, _ := lookOf(n.State)
			l.put(o.symbol(look)+" ", look.sgr)
		}
		l.put(n.Name, "")
		for _, text := range n.below() {
			l.put("  "+text, dim)
		}
		if len(needs[v]) > 0 {
			l.put("  "+o.from()+" "+o.names(g, needs[v], l.room-4), dim)
		}
		lines = append(lines, l.String())
	}
	return lines
}

// names returns as many of the names as there is room for, and how many more
// there are.
func (o TextOptions) names(g Graph, nodes []int, room int) string {
	text := ""
	for i, v := range nodes {
		next := text
		if i > 0 {
			next += ", "
		}
		next += g.Nodes[v].Name
		more := ""
		if left := len(nodes) - i - 1; left > 0 {
			more = " and " + strconv.Itoa(left) + " more"
		}
		if i > 0 && cells.Width(next)+len(more) > room {
			return text + " and " + strconv.Itoa(len(nodes)-i) + " more"
		}
		text = next
	}
	return text
}

func (o TextOptions) from() string {
	if o.ASCII {
		return "<-"
	}
	return "←"
}

// line is a line of text that is cut where the room ends.
type line struct {
	strings.Builder
	room  int
	color bool
	mark  string
}

func (l *line) put(text, sgr string) {
	cut := cells.Cut(text, l.room, l.mark)
	l.room -= cells.Width(cut)
	if cut != text {
		l.room = 0
	}
	l.WriteString(painted(cut, sgr, l.color))
}
