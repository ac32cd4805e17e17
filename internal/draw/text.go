package draw

import (
	"cmp"
	"io"
	"strconv"
	"strings"

	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/layout"
)

// TextOptions say what the terminal can show.
type TextOptions struct {
	Width int  // in cells; default 80
	ASCII bool // no lines and symbols beyond ASCII; names stay as they are
	Color bool // with escape sequences
}

// mostBoxes is how many tasks are drawn as boxes: more are no picture any more.
const mostBoxes = 400

// Text draws g for a terminal, with the title above and a count of the states below. It draws boxes
// joined by lines if they fit the width. Else it folds groups of siblings (see folded). Else it
// writes a list by levels, each task with its parents. No line is wider than o.Width, from 16 cells
// up; Text cuts longer names.
//
// A line between boxes goes from the bottom of a task to the arrow at a task that
// needs it, and to no other. Where it crosses a second, the upright one is whole.
func Text(w io.Writer, g Graph, o TextOptions) error {
	o.Width = cmp.Or(o.Width, 80)
	g = g.cleaned()
	level, err := layout.Levels(len(g.Nodes), g.Edges)
	if err != nil {
		return err
	}
	lines, err := o.body(g, level)
	if err != nil {
		return err
	}
	if g.Title != "" {
		lines = append([]string{painted(cells.Cut(g.Title, o.Width, o.ellipsis()), bold, o.Color), ""}, lines...)
	}
	if legend := o.legend(g); len(legend) > 0 {
		lines = append(append(lines, ""), legend...)
	}
	_, err = io.WriteString(w, strings.Join(append(lines, ""), "\n"))
	return err
}

func (o TextOptions) body(g Graph, level []int) ([]string, error) {
	if len(g.Nodes) == 0 {
		return []string{"no tasks"}, nil
	}
	if len(g.Nodes) <= mostBoxes {
		if lines, ok, err := o.boxes(g); ok || err != nil {
			return lines, err
		}
	}
	if short, levels := folded(g, level, o.groupNote); len(short.Nodes) < len(g.Nodes) {
		g, level = short, levels
		if len(g.Nodes) <= mostBoxes {
			if lines, ok, err := o.boxes(g); ok || err != nil {
				return lines, err
			}
		}
	}
	return o.list(g, level), nil
}

// groupNote is the note of a folded group, short enough for a box.
func (o TextOptions) groupNote(members []Node) string {
	var parts []string
	for _, c := range counts(members) {
		parts = append(parts, o.symbol(c.look)+" "+strconv.Itoa(c.n))
	}
	if len(parts) == 0 {
		return tasks(len(members))
	}
	return strings.Join(parts, "  ")
}

// legend says what the symbols mean and how often they occur.
func (o TextOptions) legend(g Graph) (lines []string) {
	width := 0
	for _, c := range g.counts() {
		text := c.word + " " + strconv.Itoa(c.n)
		text = cells.Cut(text, o.Width-2, o.ellipsis())
		entry := painted(o.symbol(c.look), c.sgr, o.Color) + " " + text
		w := cells.Width(text) + 2
		if len(lines) == 0 || width+3+w > o.Width {
			lines, width = append(lines, entry), w
			continue
		}
		lines[len(lines)-1] += "   " + entry
		width += 3 + w
	}
	return lines
}

func (o TextOptions) symbol(l look) string {
	if o.ASCII {
		return l.ascii
	}
	return l.symbol
}

func (o TextOptions) ellipsis() string {
	if o.ASCII {
		return "..."
	}
	return "…"
}
