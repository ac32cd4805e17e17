package draw

import (
	"bytes"
	"encoding/xml"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// formats are all ways to draw, by the ends of their golden files.
var formats = map[string]func(io.Writer, Graph) error{
	"txt":   func(w io.Writer, g Graph) error { return Text(w, g, TextOptions{}) },
	"ascii": func(w io.Writer, g Graph) error { return Text(w, g, TextOptions{ASCII: true}) },
	"color": func(w io.Writer, g Graph) error { return Text(w, g, TextOptions{Color: true}) },
	"list":  func(w io.Writer, g Graph) error { return Text(w, g, TextOptions{Width: 32}) },
	"dot":   DOT,
	"mmd":   Mermaid,
	"svg":   SVG,
}

func TestGolden(t *testing.T) {
	plain := migration()
	for i := range plain.Nodes {
		plain.Nodes[i].State, plain.Nodes[i].Note = "", ""
	}
	names := Graph{
		Title: "names \"as\" users <write> them & \\",
		Nodes: []Node{
			{Name: "日本語の名前", State: "succeeded", Note: "全角"},
			{Name: "</text><script>", State: "failed", Note: "\"quoted\" & <b>"},
			{Name: "turned \u202eevil\u2069", State: "half done"},
			{Name: "two\nlines\x1b[31m", State: "waiting"},
			{Name: "e\u0301te\u0301", Label: "label for a very long name that no box is wide enough for"},
		},
		Edges: [][2]int{{0, 1}, {0, 2}, {1, 3}, {2, 3}, {3, 4}},
	}
	states := Graph{Title: "every state"}
	for _, l := range looks {
		states.Nodes = append(states.Nodes, Node{Name: "is-" + l.word, State: l.word})
	}
	rules := Graph{
		Title: "rules",
		Nodes: []Node{
			{Name: "copy", State: "succeeded", Note: "14 s"},
			{Name: "verify", State: "failed", Note: "exit status 1"},
			{Name: "switch-over", State: "skipped"},
			{Name: "clean-up", State: "running", When: "any_failed", Note: "1.2 s"},
			{Name: "report", State: "waiting", When: "all_done"},
		},
		Edges: [][2]int{{0, 1}, {1, 2}, {0, 3}, {1, 3}, {2, 4}, {3, 4}},
	}
	for name, g := range map[string]Graph{
		"migration": migration(),
		"rules":     rules,
		"plain":     plain,
		"names":     names,
		"states":    states,
		"fan-out":   fanout(100),
		"tangle":    layered(5, 4, 2, 3, 5),
		"nothing":   {Title: "nothing"},
	} {
		for format, draw := range formats {
			t.Run(name+"."+format, func(t *testing.T) {
				if draws := map[string]string{"ascii": "migration", "color": "migration"}; draws[format] != "" && draws[format] != name {
					return // the same but for the lines
				}
				var got bytes.Buffer
				if err := draw(&got, g); err != nil {
					t.Fatal(err)
				}
				path := filepath.Join("testdata", name+"."+format)
				if *update {
					if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if got.String() != string(want) {
					t.Errorf("got\n%s\nwant\n%s\n(go test -run TestGolden -update rewrites the file)", got.String(), want)
				}
			})
		}
	}
}

func TestWhatIsNoDAGIsNotDrawn(t *testing.T) {
	for name, edges := range map[string][][2]int{
		"a cycle":         {{0, 1}, {1, 0}},
		"an unknown node": {{0, 2}},
	} {
		for format, draw := range formats {
			t.Run(name+" as "+format, func(t *testing.T) {
				var out bytes.Buffer
				err := draw(&out, Graph{Nodes: []Node{{Name: "a"}, {Name: "b"}}, Edges: edges})
				if err == nil || out.Len() > 0 {
					t.Errorf("draw = %v, and wrote %q; want an error and nothing", err, out.String())
				}
			})
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestErrorsOfTheWriterAreReported(t *testing.T) {
	for format, draw := range formats {
		if err := draw(full{}, migration()); err != io.ErrShortWrite {
			t.Errorf("%s: draw = %v, want the writer's error", format, err)
		}
	}
}

func TestTextShowsWhatFits(t *testing.T) {
	for _, c := range []struct {
		name  string
		g     Graph
		width int
		want  string
	}{
		{"boxes where they fit", fanout(4), 80, "│ ● copy[1] │"},
		{"siblings folded where they do not", fanout(4), 60, "│ ● copy[0..3] "},
		{"a list where that does not either", fanout(4), 16, "1    ✗ copy[0..…"},
		{"a list where nothing can be folded", migration(), 50, "1    ✓ copy-alice  14 s  ← list"},
		{"siblings folded where there are too many to see", fanout(500), 1 << 20, "│ ✗ copy[0..499] "},
		{"a list where there are too many others", layered(20, 26, 1, 1, 1), 1 << 20, "\n 1    "},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name == "siblings folded where they do not" {
				for i := range c.g.Nodes {
					c.g.Nodes[i].State = "running"
				}
			}
			var out strings.Builder
			if err := Text(&out, c.g, TextOptions{Width: c.width}); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out.String(), c.want) {
				t.Errorf("got\n%s\nwant it to have %q", out.String(), c.want)
			}
		})
	}
}

func TestListNamesWhatFitsOfManyParents(t *testing.T) {
	g := Graph{Nodes: []Node{{Name: "join"}}}
	for _, name := range []string{"apples", "pears", "plums", "quinces"} {
		g.Nodes = append(g.Nodes, Node{Name: name})
		g.Edges = append(g.Edges, [2]int{len(g.Nodes) - 1, 0}, [2]int{len(g.Nodes) - 1, 0})
	}
	for width, want := range map[int]string{
		48: "1    join  ← apples, pears, plums, quinces",
		40: "1    join  ← apples, pears and 2 more",
		31: "1    join  ← apples and 3 more",
		16: "1    join  ← ap…",
	} {
		var out strings.Builder
		if err := Text(&out, g, TextOptions{Width: width}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), want+"\n") {
			t.Errorf("at %d cells: got\n%s\nwant it to have %q", width, out.String(), want)
		}
	}
}

func TestListOfADeepPlanStaysInTheLine(t *testing.T) {
	g := Graph{}
	for i := range 1000 {
		g.Nodes = append(g.Nodes, Node{Name: "step-" + strings.Repeat("x", i%5)})
		if i > 0 {
			g.Edges = append(g.Edges, [2]int{i - 1, i})
		}
	}
	var out strings.Builder
	if err := Text(&out, g, TextOptions{Width: 40}); err != nil {
		t.Fatal(err)
	}
	if want := "999            step-xxxx  ← step-xxx\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("got ...%q, want it to end with %q", out.String()[out.Len()-60:], want)
	}
}

func TestSVGTurnsToTheShapeOfAPage(t *testing.T) {
	chain := Graph{}
	for i := range 30 {
		chain.Nodes = append(chain.Nodes, Node{Name: "step"})
		if i > 0 {
			chain.Edges = append(chain.Edges, [2]int{i - 1, i})
		}
	}
	fork := Graph{Nodes: slices.Concat(chain.Nodes, chain.Nodes[:4]), Edges: slices.Clone(chain.Edges)}
	for i := range 4 {
		fork.Edges = append(fork.Edges, [2]int{3, 30 + i})
	}
	for _, c := range []struct {
		name          string
		g             Graph
		width, height int // at most
	}{
		{"a fan of 30 is as high as its tasks", fanout(30), 700, 1700},
		{"a chain of 30 goes down", chain, 150, 2500},
		{"a chain with a fan in it goes down too", fork, 600, 2500},
	} {
		var out strings.Builder
		if err := SVG(&out, c.g); err != nil {
			t.Fatal(err)
		}
		var root struct {
			Width  int `xml:"width,attr"`
			Height int `xml:"height,attr"`
		}
		if err := xml.Unmarshal([]byte(out.String()), &root); err != nil {
			t.Fatal(err)
		}
		if root.Width > c.width || root.Height > c.height {
			t.Errorf("%s: it is %d by %d, want %d by %d at most", c.name, root.Width, root.Height, c.width, c.height)
		}
	}
}

func TestMermaidFoldsWhatItWouldNotDraw(t *testing.T) {
	tangle := layered(10, 26, 3, 1, 1)
	for _, c := range []struct {
		name        string
		g           Graph
		first, want string
	}{
		{"250 siblings make 500 edges, which it draws", fanout(250), "---\ntitle: \"batch\"\n---\nflowchart TD\n  n0", "copy[249]"},
		{"251 are folded", fanout(251), "---\ntitle: \"batch\"\n---\nflowchart TD\n  n0", "copy[0#46;#46;250]"},
		{"what cannot be folded comes with what to do", tangle,
			"%% Mermaid draws 500 edges only: initialize it with maxEdges: 671 or more.\nflowchart TD\n  n0", "n259"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			if err := Mermaid(&out, c.g); err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(out.String(), c.first) || !strings.Contains(out.String(), c.want) {
				t.Errorf("got\n%.400s...\nwant it to begin with\n%s\nand to have %q", out.String(), c.first, c.want)
			}
		})
	}
}

func TestAGroupWithoutStatesSaysHowManyItHas(t *testing.T) {
	g := fanout(40)
	for i := range g.Nodes {
		g.Nodes[i].State = ""
	}
	var out strings.Builder
	if err := Text(&out, g, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "│ 40 tasks    │") {
		t.Errorf("got\n%s\nwant a box that says 40 tasks", out.String())
	}
}

func TestTasksOverTheSameItemsHaveDoubleLines(t *testing.T) {
	g := Graph{
		Nodes: []Node{{Name: "list"}, {Name: "copy"}, {Name: "check"}, {Name: "undo"}, {Name: "report"}},
		Edges: [][2]int{{0, 1}, {1, 2}, {1, 3}, {2, 3}, {1, 4}},
		Along: map[[2]int]bool{{1, 2}: true, {1, 3}: true, {2, 3}: true},
	}
	for _, c := range []struct {
		name      string
		write     func(io.Writer, Graph) error
		has, lack string
	}{
		{"text", func(w io.Writer, g Graph) error { return Text(w, g, TextOptions{}) }, "║", "xx"},
		{"ASCII", func(w io.Writer, g Graph) error { return Text(w, g, TextOptions{ASCII: true}) }, "copy", "║"},
		{"DOT", DOT, `n1 -> n2 [color="#8c959f:invis:#8c959f"]`, "n0 -> n1 ["},
		{"Mermaid", Mermaid, "n1 ==> n2", "n0 ==> n1"},
		{"SVG", SVG, `class="within"`, "xx"},
	} {
		var b strings.Builder
		if err := c.write(&b, g); err != nil || !strings.Contains(b.String(), c.has) || strings.Contains(b.String(), c.lack) {
			t.Errorf("%s (%v): it lacks %s, or has %s:\n%s", c.name, err, c.has, c.lack, b.String())
		}
	}
}
