package draw

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/layout"
)

// Sizes in pixels. Names are set in a fixed-width font, so that their
// width is known without it.
const (
	svgMargin   = 20
	svgCell     = 8 // of a name's font, at 13 pixels
	svgSmall    = 7 // of a note's, at 11
	svgIcon     = 16
	svgNameMost = 40 // cells of a name; the tooltip has all of it
	svgTitle    = 36 // the height of the line with the title
	svgBelow    = 16 // of a line below a name
	svgLegend   = 22 // and of one of the legend
)

// SVG writes g as a picture that needs no other file. It has colours for light and dark pages, a
// symbol for each state, and a tooltip with the whole name at each task. It goes from top to
// bottom, or from left to right if that shape suits a page better.
func SVG(w io.Writer, g Graph) error {
	g = g.cleaned()
	p := svg{g: g}
	if err := p.layOut(); err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	p.write(b)
	return b.Flush()
}

type svg struct {
	g      Graph
	across bool // from left to right
	at     *layout.Layout
}

func (p *svg) layOut() error {
	levels, err := layout.Levels(len(p.g.Nodes), p.g.Edges)
	if err != nil {
		return err
	}
	in := layout.Graph{Nodes: make([]layout.Node, len(p.g.Nodes)), Edges: p.g.Edges}
	for i, n := range p.g.Nodes {
		in.Nodes[i] = svgSize(n)
	}
	p.across = wide(levels, in.Nodes)
	o := layout.Options{NodeGap: 28, EdgeGap: 14, LevelGap: 44, Slope: 5}
	if p.across {
		o = layout.Options{Direction: layout.Right, NodeGap: 16, EdgeGap: 12, LevelGap: 56, Slope: 4}
	}
	p.at, err = layout.Arrange(in, o)
	return err
}

func svgSize(n Node) layout.Node {
	width, height := cells.Width(svgLabel(n))*svgCell+24, 34
	if n.State != "" {
		width += svgIcon + 4
	}
	for _, text := range n.below() {
		width, height = max(width, cells.Width(svgNote(text))*svgSmall+24), height+svgBelow
	}
	return layout.Node{Width: width, Height: height}
}

func svgLabel(n Node) string  { return cells.Cut(n.label(), svgNameMost, "…") }
func svgNote(s string) string { return cells.Cut(s, svgNameMost, "…") }

// wide reports whether levels from left to right come nearer to the shape of a
// page, 3:2, than levels from top to bottom.
func wide(levels []int, nodes []layout.Node) bool {
	if len(nodes) == 0 {
		return false
	}
	population := map[int]int{}
	most, width, height := 0, 0, 0
	for i, l := range levels {
		population[l]++
		most = max(most, population[l])
		width += nodes[i].Width
		height += nodes[i].Height
	}
	w, h := float64(width)/float64(len(nodes)), float64(height)/float64(len(nodes))
	depth, breadth := float64(len(population)), float64(most)
	off := func(width, height float64) float64 { return math.Abs(math.Log(width / height / 1.5)) }
	return off(depth*(w+56), breadth*(h+16)) < off(breadth*(w+28), depth*(h+44))
}

func (p *svg) write(b *bufio.Writer) {
	legend, legendWidth := p.legend()
	top := svgMargin
	if p.g.Title != "" {
		top += svgTitle
	}
	title := cells.Cut(p.g.Title, 60, "…")
	width := max(p.at.Width, legendWidth, cells.Width(title)*10) + 2*svgMargin
	height := top + p.at.Height + svgMargin
	if len(legend) > 0 {
		height += svgLegend + 8
	}

	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" class="sluice" role="img" width="%d" height="%d" viewBox="0 0 %d %d">`+"\n",
		width, height, width, height)
	fmt.Fprintf(b, "<title>%s</title>\n", svgText(p.summary()))
	p.style(b)
	b.WriteString(`<defs><marker id="sluice-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">` +
		`<path class="head" d="M0 .5 8 4 0 7.5Z"/></marker></defs>` + "\n")
	fmt.Fprintf(b, `<rect class="page" width="%d" height="%d"/>`+"\n", width, height)
	if title != "" {
		fmt.Fprintf(b, `<text class="title" x="%d" y="%d">%s</text>`+"\n", svgMargin, svgMargin+16, svgText(title))
	}
	fmt.Fprintf(b, `<g transform="translate(%d %d)">`+"\n", svgMargin+(width-2*svgMargin-p.at.Width)/2, top)
	for i, route := range p.at.Routes {
		path := p.path(route)
		if p.g.Along[p.g.Edges[i]] {
			fmt.Fprintf(b, `<path class="edge double" d="%s"/><path class="within" d="%[1]s"/>`+"\n", path)
		} else {
			fmt.Fprintf(b, `<path class="edge" d="%s"/>`+"\n", path)
		}
	}
	for i, n := range p.g.Nodes {
		writeNode(b, n, p.at.Nodes[i])
	}
	b.WriteString("</g>\n")
	x := svgMargin
	for _, c := range legend {
		fmt.Fprintf(b, `<g class="%s" transform="translate(%d %d)"><path class="icon" d="%s"/><text class="note" x="20" y="12">%s</text></g>`+"\n",
			c.class(), x, height-svgMargin-svgIcon, c.icon, svgText(c.text()))
		x += c.width()
	}
	b.WriteString("</svg>\n")
}

func writeNode(b *bufio.Writer, n Node, box layout.Box) {
	l, _ := lookOf(n.State)
	fmt.Fprintf(b, `<g class="%s" transform="translate(%d %d)"><title>%s</title><rect class="box" width="%d" height="%d" rx="7"/>`,
		count{look: l}.class(), box.X, box.Y, svgText(n.tip()), box.Width, box.Height)
	x := 12
	if n.State != "" {
		fmt.Fprintf(b, `<path class="icon" transform="translate(%d 9)" d="%s"/>`, x, l.icon)
		x += svgIcon + 4
	}
	fmt.Fprintf(b, `<text x="%d" y="22">%s</text>`, x, svgText(svgLabel(n)))
	for i, text := range n.below() {
		fmt.Fprintf(b, `<text class="note" x="12" y="%d">%s</text>`, 40+i*svgBelow, svgText(svgNote(text)))
	}
	b.WriteString("</g>\n")
}

// path returns the route as a line that is straight within levels and curved
// between them.
func (p *svg) path(route []layout.Point) string {
	var b strings.Builder
	fmt.Fprintf(&b, "M%d %d", route[0].X, route[0].Y)
	for i, to := range route[1:] {
		from := route[i]
		switch {
		case from.X == to.X:
			fmt.Fprintf(&b, "V%d", to.Y)
		case from.Y == to.Y:
			fmt.Fprintf(&b, "H%d", to.X)
		case p.across:
			middle := (from.X + to.X) / 2
			fmt.Fprintf(&b, "C%d %d %d %d %d %d", middle, from.Y, middle, to.Y, to.X, to.Y)
		default:
			middle := (from.Y + to.Y) / 2
			fmt.Fprintf(&b, "C%d %d %d %d %d %d", from.X, middle, to.X, middle, to.X, to.Y)
		}
	}
	return b.String()
}

// style writes the colours, first those of a light page. Its rules name the class of the picture,
// so that they change nothing else in the page around it.
func (p *svg) style(b *bufio.Writer) {
	b.WriteString("<style>\n" +
		".sluice text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,\"DejaVu Sans Mono\",monospace}\n" +
		".sluice .note{font-size:11px}.sluice .title{font:600 17px system-ui,sans-serif}\n" +
		".sluice .box{stroke-width:1.3}.sluice .waiting .box,.sluice .skipped .box{stroke-dasharray:4 3}\n" +
		".sluice .edge{fill:none;stroke-width:1.3;marker-end:url(#sluice-arrow)}\n" +
		".sluice .icon{fill:none;stroke-width:2;stroke-linecap:round;stroke-linejoin:round}\n")
	if len(p.g.Along) > 0 {
		b.WriteString(".sluice .double{stroke-width:4.2;marker-end:none}.sluice .within{fill:none;stroke-width:1.8;marker-end:url(#sluice-arrow)}\n")
	}
	writePalette(b, len(p.g.Along) > 0, "#fff", "#1f2328", "#57606a", "#8c959f", func(l look) paint { return l.light })
	b.WriteString("@media (prefers-color-scheme:dark){\n")
	writePalette(b, len(p.g.Along) > 0, "#0d1117", "#e6edf3", "#9aa4af", "#6e7681", func(l look) paint { return l.dark })
	b.WriteString("}\n</style>\n")
}

func writePalette(b *bufio.Writer, double bool, page, text, note, edge string, of func(look) paint) {
	fmt.Fprintf(b, ".sluice .page{fill:%s}.sluice text{fill:%s}.sluice .note{fill:%s}.sluice .edge{stroke:%s}.sluice .head{fill:%s}\n",
		page, text, note, edge, edge)
	if double {
		fmt.Fprintf(b, ".sluice .within{stroke:%s}\n", page)
	}
	for _, l := range append([]look{unknown}, looks...) {
		class, c := count{look: l}.class(), of(l)
		fmt.Fprintf(b, ".sluice .%s .box{fill:%s;stroke:%s}.sluice .%s .icon{stroke:%s}\n", class, c.fill, c.line, class, c.line)
	}
}

// class is the name of a state's rules. An unknown state's word is a user's, and
// has no place there.
func (c count) class() string {
	if _, rank := lookOf(c.word); rank < 0 {
		return "other"
	}
	return c.word
}

func (c count) text() string { return c.word + " " + strconv.Itoa(c.n) }
func (c count) width() int   { return svgIcon + 4 + cells.Width(c.text())*svgSmall + 16 }

// legend returns the states that occur, and how much room they take side by side.
func (p *svg) legend() (all []count, width int) {
	all = p.g.counts()
	for i := range all {
		all[i].word = cells.Cut(all[i].word, svgNameMost, "…")
		width += all[i].width()
	}
	return all, width
}

// summary is the picture in words, for who cannot see it.
func (p *svg) summary() string {
	s := tasks(len(p.g.Nodes))
	if p.g.Title != "" {
		s = p.g.Title + ", " + s
	}
	for i, c := range p.g.counts() {
		s += []string{": ", ", "}[min(i, 1)] + c.text()
	}
	return s
}

func svgText(s string) string {
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(s)); err != nil {
		panic(err) // a strings.Builder takes everything
	}
	return b.String()
}
