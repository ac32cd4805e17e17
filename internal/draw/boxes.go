package draw

import (
	"cmp"
	"slices"

	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/layout"
)

const (
	nodeGap  = 3
	edgeGap  = 2  // so that a line can pass between two others
	boxLimit = 36 // cells of a name in a box
)

// box is what is in the box of a node.
type box struct {
	symbol, label string
	below         []string
	sgr           string
}

func (o TextOptions) box(n Node) box {
	b := box{label: cells.Cut(n.label(), boxLimit, o.ellipsis())}
	for _, text := range n.below() {
		b.below = append(b.below, cells.Cut(text, boxLimit+2, o.ellipsis()))
	}
	if n.State != "" {
		l, _ := lookOf(n.State)
		b.symbol, b.sgr = o.symbol(l), l.sgr
	}
	return b
}

// width is odd, so that a box has a middle column.
func (b box) width() int {
	inner := cells.Width(b.label)
	if b.symbol != "" {
		inner += 2
	}
	for _, text := range b.below {
		inner = max(inner, cells.Width(text))
	}
	return inner/2*2 + 5
}

// boxes draws the graph as boxes joined by lines; ok is false if they do not fit
// the width.
func (o TextOptions) boxes(g Graph) (lines []string, ok bool, err error) {
	p := picture{o: o, g: g, boxes: make([]box, len(g.Nodes))}
	in := layout.Graph{Nodes: make([]layout.Node, len(g.Nodes)), Edges: g.Edges}
	for i, n := range g.Nodes {
		p.boxes[i] = o.box(n)
		in.Nodes[i] = layout.Node{Width: p.boxes[i].width(), Height: 1}
	}
	// A level is one unit high, and so is a gap; both get their rows below.
	p.at, err = layout.Arrange(in, layout.Options{NodeGap: nodeGap, EdgeGap: edgeGap, LevelGap: 1, Breadth: o.Width})
	if err != nil {
		return nil, false, err
	}
	p.width = p.at.Width + 1 // a line that passes on the right edge has no width there
	if p.width > o.Width {
		return nil, false, nil
	}
	lines, ok = p.draw()
	return lines, ok, nil
}

// picture is a graph on its way to the canvas. Its bands are the units of the
// layout's height: even ones hold boxes, odd ones the gaps between.
type picture struct {
	o     TextOptions
	g     Graph
	boxes []box
	at    *layout.Layout
	width int
}

// draw returns the lines, or false if the graph cannot be drawn so that each line
// can be followed.
func (p *picture) draw() ([]string, bool) {
	steps := p.steps()
	bands := len(steps)
	nets := make([][]*net, bands)
	first, height := make([]int, bands+1), make([]int, bands)
	for band, links := range steps {
		if band%2 == 0 {
			height[band] = 3
			continue
		}
		var ok bool
		if nets[band], ok = p.bundle(links); !ok {
			return nil, false
		}
		if height[band], ok = channel(nets[band], p.width); !ok {
			return nil, false
		}
		height[band] = max(height[band], 1)
	}
	for i, b := range p.at.Nodes {
		height[b.Y] = max(height[b.Y], 3+len(p.boxes[i].below))
	}
	for band := range bands {
		first[band+1] = first[band] + height[band]
	}

	c := newCanvas(p.width, first[bands])
	for i, b := range p.at.Nodes {
		p.boxes[i].draw(c, b.X, first[b.Y], b.Width, height[b.Y], p.o.ASCII)
	}
	for band, links := range steps {
		if band%2 == 1 {
			for _, n := range nets[band] {
				n.draw(c, first[band], first[band+1]-1, p.o.ASCII)
			}
			continue
		}
		for _, l := range links { // they pass a level
			c.vertical(l.from.x, first[band], first[band+1]-1, l.double)
		}
	}
	return c.lines(p.o.ASCII, p.o.Color), true
}

// draw draws the box with its corner at the cell.
func (b box) draw(c *canvas, x, y, width, height int, ascii bool) {
	top, bottom, side := "╭╮", "╰╯", "│"
	if ascii {
		top, bottom, side = "++", "++", "|"
	}
	c.frame(x, y, width, top, b.sgr, ascii)
	c.frame(x, y+height-1, width, bottom, b.sgr, ascii)
	for row := y + 1; row < y+height-1; row++ {
		c.print(x, row, side, b.sgr)
		c.print(x+width-1, row, side, b.sgr)
	}
	text, sgr := x+2, ""
	if b.symbol != "" {
		c.print(text, y+1, b.symbol, b.sgr)
		text += 2
	}
	c.print(text, y+1, b.label, sgr)
	for i, line := range b.below {
		c.print(x+2, y+2+i, line, dim)
	}
}

// vertex is a place in a level that edges come to: a node, or, where node is -1,
// a column in which they pass.
type vertex struct{ node, x int }

// link is the step of an edge from one vertex to one below, or past a level.
type link struct {
	from, to vertex
	double   bool // all edges that it is a step of are double
}

// steps returns the links in each band, each once, from left to right.
func (p *picture) steps() [][]link {
	all := make([][]link, p.at.Height)
	for i, e := range p.g.Edges {
		route := p.at.Routes[i]
		end := route[len(route)-1]
		vertexAt := func(pt layout.Point) vertex {
			switch pt {
			case route[0]:
				return vertex{e[0], pt.X}
			case end:
				return vertex{e[1], pt.X}
			}
			return vertex{-1, pt.X}
		}
		for j, to := range route[1:] {
			from := route[j]
			for y := from.Y; y < to.Y; y++ { // more than one only where it goes straight
				x := to.X
				if y == from.Y {
					x = from.X
				}
				all[y] = append(all[y], link{vertexAt(layout.Point{X: x, Y: y}), vertexAt(layout.Point{X: to.X, Y: y + 1}), p.g.Along[e]})
			}
		}
	}
	for band, links := range all {
		slices.SortFunc(links, func(a, b link) int {
			return cmp.Or(cmp.Compare(a.from.x, b.from.x), cmp.Compare(a.to.x, b.to.x))
		})
		once := links[:0]
		for _, l := range links {
			if k := len(once) - 1; k >= 0 && once[k].from == l.from && once[k].to == l.to {
				once[k].double = once[k].double && l.double
			} else {
				once = append(once, l)
			}
		}
		all[band] = once
	}
	return all
}
