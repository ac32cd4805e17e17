package draw

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/seed-1177d267/sluice/internal/layout"
)

// DOT writes g in the language of Graphviz, for its program dot. Colours are those
// of a light page; the state's symbol stands before each name.
func DOT(w io.Writer, g Graph) error {
	if _, err := layout.Levels(len(g.Nodes), g.Edges); err != nil {
		return err
	}
	g = g.cleaned()
	b := bufio.NewWriter(w)
	b.WriteString("digraph {\n\tgraph [")
	if g.Title != "" {
		fmt.Fprintf(b, "label=%s, labelloc=t, ", dotString(g.Title))
	}
	b.WriteString("fontname=\"sans-serif\", nodesep=0.35, ranksep=0.5]\n" +
		"\tnode [shape=box, style=\"rounded,filled\", fontname=\"sans-serif\", fontsize=11, margin=\"0.15,0.08\"]\n" +
		"\tedge [color=\"#8c959f\", arrowsize=0.7]\n")
	for i, n := range g.Nodes {
		l, _ := lookOf(n.State)
		label := []string{n.label()}
		if n.State != "" {
			label[0] = l.symbol + " " + label[0]
		}
		label = append(label, n.below()...)
		fmt.Fprintf(b, "\tn%d [label=%s, tooltip=%s, color=\"%s\", fillcolor=\"%s\"]\n",
			i, dotString(label...), dotString(n.tip()), l.light.line, l.light.fill)
	}
	for _, e := range g.Edges {
		double := ""
		if g.Along[e] {
			double = " [color=\"#8c959f:invis:#8c959f\"]"
		}
		fmt.Fprintf(b, "\tn%d -> n%d%s\n", e[0], e[1], double)
	}
	b.WriteString("}\n")
	return b.Flush()
}

var dotEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "&", "&amp;")

// dotString returns the lines as an escString, the type of DOT's labels and tooltips. A quote, a
// backslash and an entity have a meaning there.
func dotString(lines ...string) string {
	escaped := make([]string, len(lines))
	for i, l := range lines {
		escaped[i] = dotEscapes.Replace(l)
	}
	return `"` + strings.Join(escaped, `\n`) + `"`
}
