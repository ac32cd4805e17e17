package draw

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// drawing is a text that is read back.
type drawing struct {
	t     *testing.T
	rows  [][]rune
	boxes map[string]rect
}

type rect struct{ left, right, top, bottom int }

// read finds the boxes in the text; names have one cell a character, and
// no two boxes share a name.
func read(t *testing.T, text string, g Graph) drawing {
	t.Helper()
	d := drawing{t: t, boxes: map[string]rect{}}
	for row := range strings.SplitSeq(text, "\n") {
		d.rows = append(d.rows, []rune(row))
	}
	for y, row := range d.rows {
		for x := range row {
			if d.at(x, y) != '│' || y == 0 || !strings.ContainsRune("╭", d.at(x, y-1)) {
				continue
			}
			right := x + 1
			for d.at(right, y-1) == '─' || d.at(right, y-1) == '▼' {
				right++
			}
			bottom := y
			for d.at(x, bottom) == '│' {
				bottom++
			}
			if d.at(right, y) != '│' || d.at(x, bottom) != '╰' || d.at(right, bottom) != '╯' {
				continue // a line that turns
			}
			name := strings.Fields(string(row[x+1 : right]))
			if len(name) == 0 {
				continue
			}
			d.boxes[name[len(name)-1]] = rect{x, right, y - 1, bottom}
		}
	}
	for _, n := range g.Nodes {
		if _, ok := d.boxes[n.Name]; !ok {
			t.Fatalf("no box of %q in\n%s", n.Name, text)
		}
	}
	return d
}

func (d drawing) at(x, y int) rune {
	if y < 0 || y >= len(d.rows) || x < 0 || x >= len(d.rows[y]) {
		return ' '
	}
	return d.rows[y][x]
}

// armsOf is lineRunes, read backwards.
func armsOf(r rune) arms {
	switch r {
	case '│':
		return up | down
	case '─':
		return left | right
	}
	for a, s := range lineRunes {
		if s == string(r) {
			return a
		}
	}
	return 0
}

// follow returns the names of the boxes that the lines from a box lead to, as an eye follows them.
// It goes down and sideways, and straight on at a crossing.
func (d drawing) follow(from string) []string {
	type step struct {
		x, y int
		way  arms
	}
	box := d.boxes[from]
	var todo []step
	for x := box.left; x <= box.right; x++ {
		if d.at(x, box.bottom) == '┬' {
			todo = append(todo, step{x, box.bottom + 1, down})
		}
	}
	found, seen := map[string]bool{}, map[step]bool{}
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[s] {
			continue
		}
		seen[s] = true
		r := d.at(s.x, s.y)
		a := armsOf(r)
		switch {
		case r == '▼' && s.way == down:
			for name, b := range d.boxes {
				if b.top == s.y && b.left <= s.x && s.x <= b.right {
					found[name] = true
				}
			}
			continue
		case s.way == down && a&up == 0, s.way == left && r != '│' && a&right == 0, s.way == right && r != '│' && a&left == 0:
			d.t.Errorf("the lines from %s break off at column %d of row %d, at %q", from, s.x, s.y, r)
			continue
		case s.way != down && r == '│':
			a = s.way
		}
		if a&down != 0 {
			todo = append(todo, step{s.x, s.y + 1, down})
		}
		if a&left != 0 && s.way != right {
			todo = append(todo, step{s.x - 1, s.y, left})
		}
		if a&right != 0 && s.way != left {
			todo = append(todo, step{s.x + 1, s.y, right})
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func TestLinesLeadJustWhereEdgesDo(t *testing.T) {
	drawn := 0
	for seed := range uint64(200) {
		r := int(seed)
		g := layered(2+r%5, 2+r%7, 1+r%4, 1+r%3, seed)
		switch r % 10 {
		case 8:
			g = fanout(1 + r%9)
		case 9: // all to all, and more
			g = layered(3, 4, 1, 1, seed)
			for i := range 4 {
				for j := range 4 {
					g.Edges = append(g.Edges, [2]int{i, 4 + j})
				}
			}
		}
		var text strings.Builder
		if err := Text(&text, g, TextOptions{Width: 220}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text.String(), "╭") {
			continue
		}
		drawn++
		d := read(t, text.String(), g)
		want := map[string][]string{}
		for _, e := range g.Edges {
			from := g.Nodes[e[0]].Name
			want[from] = append(want[from], g.Nodes[e[1]].Name)
		}
		for _, n := range g.Nodes {
			w := slices.Compact(slices.Sorted(slices.Values(want[n.Name])))
			if got := d.follow(n.Name); !slices.Equal(got, w) {
				t.Errorf("seed %d: the lines from %s lead to %v, want %v", seed, n.Name, got, w)
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d:\n%s", seed, text.String())
		}
	}
	if drawn < 150 {
		t.Errorf("only %d of 200 graphs were drawn as boxes", drawn)
	}
}
