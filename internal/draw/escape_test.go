package draw

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/seed-1177d267/sluice/internal/cells"
)

// hostile are texts that mean something in one format or another.
var hostile = []string{
	`"`, `\`, `\"`, `a\`, "\\N\\n", "&lt;", "&amp;amp;", "#quot;", "#60;", "</title><script>alert(1)</script>", "]]>", "<!--", "-->",
	"a\nb", "a\r\nb", "\x00", "\x1b[31mred", "\u202eevil\u2069", "\u2028", "\ufffe", "\xff\xfe", "\u009b31m", "%%{init: {}}%%", "%% c",
	"1. one", "- x", "---", "[x](y)", "`code`", "**b**", "end", "subgraph", "classDef a:#1;", "a --> b", `"]`, "https://x.example",
	"日本語", "e\u0301", "🚀", "\u200d", "\t", " ", "    x", "", "copy[17]", strings.Repeat("long ", 40),
}

func FuzzEscaping(f *testing.F) {
	for i, s := range hostile {
		other := hostile[len(hostile)-1-i]
		f.Add(s, other, "", "failed", s, 80)
		f.Add("title", s, other, s, other, 20)
	}
	f.Fuzz(func(t *testing.T, title, name, label, state, note string, width int) {
		g := Graph{
			Title: title,
			Nodes: []Node{{Name: name, Label: label, State: state, Note: note}, {Name: "other", State: "running"}},
			Edges: [][2]int{{0, 1}},
		}
		// The same graph with harmless texts: what is written must not differ
		// from it in more than texts.
		plain := g
		plain.Nodes = []Node{{Name: "n", Label: harmless(label), State: state, Note: harmless(note)}, g.Nodes[1]}
		plain.Title = harmless(title)
		if _, rank := lookOf(state); rank < 0 {
			plain.Nodes[0].State = harmless(state)
		}
		checkText(t, g, 16+min(max(width, 0), 200))
		checkSVG(t, g, plain)
		checkDOT(t, g, plain)
		checkMermaid(t, g, plain)
	})
}

func harmless(s string) string {
	if cells.Clean(s) == "" {
		return ""
	}
	return "x"
}

func drawn(t *testing.T, draw func(io.Writer, Graph) error, g Graph) string {
	t.Helper()
	var b bytes.Buffer
	if err := draw(&b, g); err != nil {
		t.Fatal(err)
	}
	if !utf8.Valid(b.Bytes()) {
		t.Errorf("not UTF-8: %q", b.String())
	}
	return b.String()
}

func checkText(t *testing.T, g Graph, width int) {
	t.Helper()
	for _, ascii := range []bool{false, true} {
		o := TextOptions{Width: width, ASCII: ascii}
		text := drawn(t, func(w io.Writer, g Graph) error { return Text(w, g, o) }, g)
		for line := range strings.SplitSeq(text, "\n") {
			if w := cells.Width(line); w > width {
				t.Errorf("a line of %d cells where %d are allowed: %q", w, width, line)
			}
			for _, r := range line {
				if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
					t.Errorf("%U in %q", r, line)
				}
			}
		}
	}
}

var (
	numbers  = regexp.MustCompile(`[0-9]+`)
	pathData = regexp.MustCompile(`^[MVHCAZh0-9. -]*$`)
)

// checkSVG compares elements and attributes, without lengths and places.
func checkSVG(t *testing.T, g, plain Graph) {
	t.Helper()
	skeleton := func(text string) (s string, titles []string) {
		dec := xml.NewDecoder(strings.NewReader(text))
		for {
			token, err := dec.Token()
			if err == io.EOF {
				return s, titles
			}
			if err != nil {
				t.Fatalf("not XML: %v\n%s", err, text)
			}
			switch token := token.(type) {
			case xml.StartElement:
				s += "<" + token.Name.Local
				for _, a := range token.Attr {
					if a.Name.Local == "d" && pathData.MatchString(a.Value) {
						continue // the way of a line
					}
					s += " " + a.Name.Local + "=" + numbers.ReplaceAllString(a.Value, "0")
				}
				if token.Name.Local == "title" {
					titles = append(titles, "")
				}
			case xml.EndElement:
				s += ">"
			case xml.CharData:
				if strings.HasSuffix(s, "<title") {
					titles[len(titles)-1] += string(token)
				}
			default:
				t.Errorf("%T in the picture", token)
			}
		}
	}
	got, titles := skeleton(drawn(t, SVG, g))
	want, _ := skeleton(drawn(t, SVG, plain))
	if got != want {
		t.Errorf("a text changed the picture: got\n%s\nwant\n%s", got, want)
	}
	if want := g.cleaned().Nodes[0].tip(); titles[1] != want {
		t.Errorf("the tooltip says %q, want %q", titles[1], want)
	}
}

var dotQuoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

func checkDOT(t *testing.T, g, plain Graph) {
	t.Helper()
	got, want := drawn(t, DOT, g), drawn(t, DOT, plain)
	if dotQuoted.ReplaceAllString(got, "S") != dotQuoted.ReplaceAllString(want, "S") {
		t.Errorf("a text got out of its quotes: got\n%s\nwant it to be like\n%s", got, want)
	}
	node := got[strings.Index(got, "n0 ["):]
	tip := dotQuoted.FindAllString(node, 2)[1]
	// As Graphviz reads it: first the quoted string, then the escString, then entities.
	tip = strings.ReplaceAll(tip[1:len(tip)-1], `\"`, `"`)
	tip = strings.ReplaceAll(strings.ReplaceAll(tip, `\\`, `\`), "&amp;", "&")
	if want := g.cleaned().Nodes[0].tip(); tip != want {
		t.Errorf("the tooltip says %q, want %q", tip, want)
	}
}

var (
	mermaidNode   = regexp.MustCompile(`^  n[0-9]+\["([^"<>&%` + "`" + `\\]|<br/>)*"\]$`)
	mermaidEntity = regexp.MustCompile(`#[0-9]+;`)
)

func checkMermaid(t *testing.T, g, plain Graph) {
	t.Helper()
	got, want := strings.Split(drawn(t, Mermaid, g), "\n"), strings.Split(drawn(t, Mermaid, plain), "\n")
	if len(got) != len(want) {
		t.Fatalf("%d lines, want %d: %q", len(got), len(want), got)
	}
	for i, line := range want {
		switch {
		case strings.HasPrefix(line, "title: "):
			if unquoted, err := strconv.Unquote(strings.TrimPrefix(got[i], "title: ")); err != nil || unquoted != cells.Clean(g.Title) {
				t.Errorf("the title is written as %s (%v), want it to be %q", got[i], err, cells.Clean(g.Title))
			}
		case strings.HasPrefix(line, "  n0["):
			if !mermaidNode.MatchString(got[i]) {
				t.Errorf("a label got out of its quotes: %s", got[i])
			}
			label := strings.TrimSuffix(strings.TrimPrefix(got[i], `  n0["`), `"]`)
			label = mermaidEntity.ReplaceAllStringFunc(label, func(e string) string {
				n, err := strconv.Atoi(e[1 : len(e)-1])
				if err != nil {
					t.Error(err)
				}
				return string(rune(n))
			})
			if want := mermaidWant(g.cleaned().Nodes[0]); label != want {
				t.Errorf("the label is %q, want %q", label, want)
			}
		case got[i] != line:
			t.Errorf("line %d is %q, want %q", i, got[i], line)
		}
	}
}

func mermaidWant(n Node) string {
	s := n.label()
	if n.State != "" {
		l, _ := lookOf(n.State)
		s = fmt.Sprintf("%s %s", l.symbol, s)
	}
	if s == "" {
		s = " "
	}
	if n.Note != "" {
		s += "<br/>" + n.Note
	}
	return s
}
