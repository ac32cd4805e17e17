package draw

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/seed-1177d267/sluice/internal/layout"
)

// mermaidEdges is how many edges Mermaid draws unless its configuration, which a
// diagram cannot change, says otherwise.
const mermaidEdges = 500

// Mermaid writes g as a Mermaid flowchart. With more than 500 edges, at which
// Mermaid gives up by default, groups of siblings are folded (see folded).
func Mermaid(w io.Writer, g Graph) error {
	level, err := layout.Levels(len(g.Nodes), g.Edges)
	if err != nil {
		return err
	}
	g = g.cleaned()
	if len(g.Edges) > mermaidEdges {
		g, _ = folded(g, level, counted)
	}
	b := bufio.NewWriter(w)
	if g.Title != "" {
		fmt.Fprintf(b, "---\ntitle: %s\n---\n", yamlString(g.Title))
	}
	if n := len(g.Edges); n > mermaidEdges {
		fmt.Fprintf(b, "%%%% Mermaid draws %d edges only: initialize it with maxEdges: %d or more.\n", mermaidEdges, n)
	}
	b.WriteString("flowchart TD\n")
	used := map[string][]string{}
	for i, n := range g.Nodes {
		l, _ := lookOf(n.State)
		label := n.label()
		if n.State != "" {
			label = l.symbol + " " + label
			used[n.State] = append(used[n.State], "n"+strconv.Itoa(i))
		}
		label = mermaidString(label)
		for _, text := range n.below() {
			label += "<br/>" + mermaidString(text)
		}
		fmt.Fprintf(b, "  n%d[\"%s\"]\n", i, label)
	}
	for _, e := range g.Edges {
		line := "-->"
		if g.Along[e] {
			line = "==>" // Mermaid has no double line
		}
		fmt.Fprintf(b, "  n%d %s n%d\n", e[0], line, e[1])
	}
	for _, l := range looks { // an unknown state has no class: its word is a user's
		if nodes := used[l.word]; len(nodes) > 0 {
			fmt.Fprintf(b, "  classDef %s fill:%s,stroke:%s,color:#1f2328\n", l.word, l.light.fill, l.light.line)
			fmt.Fprintf(b, "  class %s %s\n", strings.Join(nodes, ","), l.word)
		}
	}
	return b.Flush()
}

// mermaidString returns the text so that Mermaid shows it literally within the quotes of a label.
// Mermaid reads labels as Markdown and HTML, with lists and links that it then refuses, and looks
// for directives and styles everywhere. It decodes entities, its only escape, after that. So
// mermaidString writes every character as an entity, except letters, digits, brackets, a space
// between words and a hyphen within one. Mermaid has no escape for the patterns that it looks for
// later. For it \n is a new line, $$ begins a formula, and fa:fa-x is an icon.
func mermaidString(s string) string {
	if s == "" {
		return " " // empty quotes are a syntax error
	}
	runes := []rune(s)
	plain := func(i int) bool {
		return i >= 0 && i < len(runes) && (unicode.IsLetter(runes[i]) || unicode.IsDigit(runes[i]) || runes[i] > unicode.MaxASCII)
	}
	var b strings.Builder
	for i, r := range runes {
		switch {
		case plain(i), r == '[', r == ']',
			r == '-' && plain(i-1) && plain(i+1),
			r == ' ' && i > 0 && i+1 < len(runes) && runes[i-1] != ' ':
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "#%d;", r)
		}
	}
	return b.String()
}

// yamlString returns the text as a string of JSON, which is also one of YAML. It has no percent
// signs, which could begin a directive of Mermaid.
func yamlString(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // there is no string that JSON cannot hold
	}
	return strings.ReplaceAll(string(b), "%", `\u0025`)
}
