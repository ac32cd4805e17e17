package draw

import (
	"cmp"
	"fmt"
	"slices"
)

// net is a set of lines in the gap between two rows of boxes. It joins each of its tops with each
// of its bottoms, and with nothing else.
type net struct {
	tops, bottoms []pin
	track         int // the row in the gap of its horizontal line; -1 for a straight net
	jogs          []jog
	single        bool // some link of it is no double line
}

// pin is where a line of a net meets a vertex, in a column.
type pin struct {
	vertex
	column int
}

// jog is a detour: the line to a bottom comes down from the net's track in another column. It
// reaches its own column in a track further down.
type jog struct{ via, bottom, track int }

// bundle makes nets of the links of a gap; ok is false if some box has too few
// columns for them.
//
// Links share a net only if the graph has all edges that the net shows. So a reader can follow a
// line from any box, and it leads exactly where its edges do. A box can have several nets on a
// side, in columns of their own. An edge that passes a level has one column there: all lines to it
// are one net, and all lines from it are one net.
func (p *picture) bundle(links []link) (nets []*net, ok bool) {
	meet := map[vertex]bool{} // all that leads here is one net
	for {
		nets = gather(links, meet)
		crowded := false
		for v, n := range ends(nets, bottomsOf) {
			if len(n) > p.room(v) && !meet[v] {
				meet[v], crowded = true, true
			}
		}
		if !crowded {
			break
		}
	}
	return nets, p.pin(nets, topsOf, bottomsOf) && p.pin(nets, bottomsOf, topsOf)
}

// gather makes a net of the links to each vertex in meet. The others make one of
// each vertex that they come from, or of several that lead to all the same.
func gather(links []link, meet map[vertex]bool) (nets []*net) {
	named := map[string]*net{}
	find := func(name string) *net {
		if named[name] == nil {
			named[name] = &net{}
			nets = append(nets, named[name])
		}
		return named[name]
	}
	out := map[vertex]int{}
	doubles := map[vertex]int{}
	for _, l := range links {
		if out[l.from]++; l.double {
			doubles[l.from]++
		}
	}
	type start struct {
		vertex
		double bool
	}
	leads := map[start][]pin{}
	var from []start
	for _, l := range links { // from left to right
		if meet[l.to] && (l.from.node >= 0 || out[l.from] == 1) {
			n := find(fmt.Sprint("to", l.to))
			n.tops, n.bottoms = append(n.tops, pin{vertex: l.from}), []pin{{vertex: l.to}}
			n.single = n.single || !l.double
			continue
		}
		at := start{l.from, l.double && (l.from.node >= 0 || out[l.from] == doubles[l.from])}
		if leads[at] == nil {
			from = append(from, at)
		}
		leads[at] = append(leads[at], pin{vertex: l.to})
	}
	for _, v := range from {
		n := find(fmt.Sprint("all", v.double, leads[v]))
		n.tops, n.bottoms, n.single = append(n.tops, pin{vertex: v.vertex}), leads[v], !v.double
	}
	return nets
}

func topsOf(n *net) []pin    { return n.tops }
func bottomsOf(n *net) []pin { return n.bottoms }

// ends returns the nets at each vertex of a side.
func ends(nets []*net, side func(*net) []pin) map[vertex][]*net {
	at := map[vertex][]*net{}
	for _, n := range nets {
		for _, p := range side(n) {
			at[p.vertex] = append(at[p.vertex], n)
		}
	}
	return at
}

// room returns how many columns for lines there are on a side of a vertex, with
// one between.
func (p *picture) room(v vertex) int {
	if v.node < 0 {
		return 1
	}
	return (p.at.Nodes[v.node].Width - 1) / 2
}

// pin gives each net a column at each vertex of one side. The columns have the left-to-right order
// of the nets' other ends. A net that comes straight from there is in the middle. pin returns false
// if a box is too narrow.
func (p *picture) pin(nets []*net, side, other func(*net) []pin) bool {
	columns := map[vertex]map[*net]int{}
	for v, at := range ends(nets, side) {
		columns[v] = map[*net]int{}
		if len(at) > p.room(v) {
			return false
		}
		mean := func(n *net) float64 {
			sum := 0
			for _, q := range other(n) {
				sum += q.x
			}
			return float64(sum) / float64(len(other(n)))
		}
		slices.SortStableFunc(at, func(a, b *net) int { return cmp.Compare(mean(a), mean(b)) })
		straight := slices.IndexFunc(at, func(n *net) bool {
			return slices.ContainsFunc(other(n), func(q pin) bool { return q.x == v.x })
		})
		start, reach := v.x-(len(at)-1), p.room(v)-1 // columns lie within reach of the middle
		if s := v.x - 2*straight; straight >= 0 && s >= v.x-reach && s+2*(len(at)-1) <= v.x+reach {
			start = s
		}
		for i, n := range at {
			columns[v][n] = start + 2*i
		}
	}
	for _, n := range nets {
		pins := side(n)
		for i, q := range pins {
			pins[i].column = columns[q.vertex][n]
		}
	}
	return true
}

// draw draws the net in the gap between the two rows, and its ends into the boxes
// above and below.
func (n *net) draw(c *canvas, first, last int, ascii bool) {
	joint, arrow := "┬", "▼"
	switch {
	case ascii:
		joint, arrow = "+", "v"
	case !n.single:
		joint = "╥"
	}
	for _, p := range n.tops {
		if p.node >= 0 {
			c.attach(p.column, first-1, joint)
		}
	}
	for _, p := range n.bottoms {
		if p.node >= 0 {
			c.attach(p.column, last+1, arrow)
		}
	}

	s := sketch{}
	if n.track < 0 {
		s.down(n.tops[0].column, first, last)
		s.add(n.tops[0].column, first, up)
		s.add(n.tops[0].column, last, down)
		s.ink(c, !n.single)
		return
	}
	track := first + n.track
	lo, hi := n.span()
	s.across(lo, hi, track)
	for _, p := range n.tops {
		s.add(p.column, first, up)
		s.down(p.column, first, track)
	}
	for _, p := range n.bottoms {
		s.add(p.column, last, down)
		i := n.jog(p.column)
		if i < 0 {
			s.down(p.column, track, last)
			continue
		}
		j := n.jogs[i]
		s.down(j.via, track, first+j.track)
		s.across(min(j.via, j.bottom), max(j.via, j.bottom), first+j.track)
		s.down(j.bottom, first+j.track, last)
	}
	s.ink(c, !n.single)
}

// sketch is the lines of one net, before they are put on a canvas where lines of
// others may cross them.
type sketch map[[2]int]arms

func (s sketch) add(x, y int, a arms) { s[[2]int{x, y}] |= a }

// down draws from the middle of a cell to that of one below.
func (s sketch) down(x, y1, y2 int) {
	for y := y1; y < y2; y++ {
		s.add(x, y, down)
		s.add(x, y+1, up)
	}
}

// across draws from the middle of a cell to that of one to its right.
func (s sketch) across(x1, x2, y int) {
	for x := x1; x < x2; x++ {
		s.add(x, y, right)
		s.add(x+1, y, left)
	}
}

func (s sketch) ink(c *canvas, double bool) {
	for at, a := range s {
		cell := &c.rows[at[1]][at[0]]
		upright := a&(up|down) != 0
		if cell.arms != 0 {
			if a |= over; upright { // the line that is whole is this one
				cell.arms &^= twice
			}
		}
		if double && (cell.arms == 0 || upright) {
			a |= twice
		}
		cell.arms |= a
	}
}
