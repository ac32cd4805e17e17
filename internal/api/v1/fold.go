package v1

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/layout"
	"github.com/seed-1177d267/sluice/plan"
)

// A fold says which tasks are drawn as one node.
type fold struct {
	nodes  []node
	of     []int32 // of each task: its node
	folded bool
}

// A node is one task, or some of a key's.
type node struct {
	task  int32 // -1: a group
	group api.GraphGroup
	name  string
	level int // of its first task
}

// window is how many tasks of an open group are shown one by one.
const window = 200

// smallest is how many tasks are worth a group.
const smallest = 3

// apart is how many items of a foreach task are drawn each for itself where nobody asks for more: a column of them that is seen at once.
const apart = 20

// folding draws at most most nodes, with at most four times as many edges, in the gentlest way that does: each task for itself; then, where of
// tells which foreach task each is an item of, the items as one of those that have more than apart; then the tasks of
// a level whose names differ in numbers only; then whole levels; then several levels. Items of many are one, too, where there is room for all.
// Where a way leaves tasks of one level or of neighbouring levels together no cycle comes of it, since needs lead from level to level. Of the
// group with the key open up to window tasks from the given one are shown for themselves; what is before and after them stays together.
func folding(names []string, level []int, edges [][2]int, of []int32, most int, open string, from int) fold {
	n := len(names)
	items := make(map[int32]int)
	for _, foreach := range of {
		if foreach >= 0 {
			items[foreach]++
		}
	}
	maps.DeleteFunc(items, func(_ int32, count int) bool { return count <= apart })
	if n <= most && len(edges) <= 4*most && len(items) == 0 {
		f := fold{of: make([]int32, n), nodes: make([]node, n)}
		for i := range names {
			f.of[i], f.nodes[i] = int32(i), node{task: int32(i), name: names[i], level: level[i]}
		}
		return f
	}
	depth := 0
	for _, l := range level {
		depth = max(depth, l+1)
	}
	if len(items) > 0 {
		f := collect(names, level, func(i int) (string, string) {
			if foreach := of[i]; foreach >= 0 && items[foreach] > 0 {
				return "of:" + names[foreach], names[foreach] + "[*]"
			}
			return strconv.Itoa(i), names[i]
		}, smallest, open, from)
		if len(f.nodes) <= most+window && f.fits(edges, 4*(most+window)) {
			return f
		}
	}
	band := 1 + (depth-1)/max(most, 1)
	for _, way := range []func(i int) (key, name string){
		func(i int) (string, string) {
			p := pattern(names[i])
			return strconv.Itoa(level[i]) + ":" + p, p
		},
		func(i int) (string, string) { return strconv.Itoa(level[i]), "" },
	} {
		f := collect(names, level, way, smallest, open, from)
		if len(f.nodes) <= most+window && f.fits(edges, 4*(most+window)) {
			return f
		}
	}
	return collect(names, level, func(i int) (string, string) {
		l := level[i] / band
		return strconv.Itoa(l*band) + "-" + strconv.Itoa(l*band+band-1), ""
	}, 1, open, from)
}

// fits reports whether there are at most so many different edges between nodes.
func (f *fold) fits(edges [][2]int, most int) bool {
	seen := make(map[[2]int32]bool, min(len(edges), most))
	for _, e := range edges {
		if seen[[2]int32{f.of[e[0]], f.of[e[1]]}] = true; len(seen) > most {
			return false
		}
	}
	return true
}

// collect makes nodes of the tasks with one key, where there are enough of them.
func collect(names []string, level []int, way func(int) (key, name string), enough int, open string, from int) fold {
	type class struct {
		key, name string
		members   []int32
	}
	byKey := map[string]int{}
	var classes []class
	for i := range names {
		key, name := way(i)
		c, ok := byKey[key]
		if !ok {
			c = len(classes)
			byKey[key] = c
			classes = append(classes, class{key: key, name: name})
		}
		classes[c].members = append(classes[c].members, int32(i))
	}
	f := fold{of: make([]int32, len(names)), folded: true}
	add := func(n node, members ...int32) {
		for _, m := range members {
			f.of[m] = int32(len(f.nodes))
		}
		f.nodes = append(f.nodes, n)
	}
	for _, c := range classes {
		// Of several levels, level by level: what is before a window then needs nothing of what is in it.
		slices.SortStableFunc(c.members, func(a, b int32) int { return level[a] - level[b] })
		count := len(c.members)
		first, last := count, count // shown one by one; none
		switch {
		case count < enough || count == 1:
			first = 0
		case c.key == open:
			first = min(max(from, 0), count-1)
			last = min(first+window, count)
		}
		part := func(from, to int) {
			switch {
			case to == from:
			case to == from+1:
				add(node{task: c.members[from], name: names[c.members[from]], level: level[c.members[from]]}, c.members[from])
			default:
				name := c.name
				if name == "" {
					name = common(names, c.members[from:to])
				}
				add(node{task: -1, name: name, level: level[c.members[from]], group: api.GraphGroup{Key: c.key, From: from, Count: to - from, Of: count}}, c.members[from:to]...)
			}
		}
		part(0, first)
		for i := first; i < last; i++ {
			part(i, i+1)
		}
		part(last, count)
	}
	return f
}

// pattern is a name with each of its numbers as a star.
func pattern(name string) string {
	if strings.IndexFunc(name, isDigit) < 0 {
		return name
	}
	b := make([]byte, 0, len(name))
	for i := range len(name) {
		switch digit := isDigit(rune(name[i])); {
		case !digit:
			b = append(b, name[i])
		case i == 0 || !isDigit(rune(name[i-1])):
			b = append(b, '*')
		}
	}
	return string(b)
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

// common is what tasks of several patterns are called together: those patterns, as far as they are few.
func common(names []string, members []int32) string {
	var seen []string
	for _, m := range members {
		if p := pattern(names[m]); !slices.Contains(seen, p) {
			if len(seen) == 3 {
				return strings.Join(append(seen, "…"), ", ")
			}
			seen = append(seen, p)
		}
	}
	return strings.Join(seen, ", ")
}

// edges returns those between different nodes, each once, and how many needs each stands for.
func (f *fold) edges(of [][2]int) (edges [][2]int, weights []int) {
	at := make(map[[2]int]int, len(of))
	for _, e := range of {
		e = [2]int{int(f.of[e[0]]), int(f.of[e[1]])}
		if e[0] == e[1] {
			continue
		}
		i, ok := at[e]
		if !ok {
			i = len(edges)
			at[e] = i
			edges, weights = append(edges, e), append(weights, 0)
		}
		weights[i]++
	}
	return edges, weights
}

// Pixels. A character of a page's labels is about 7 wide.
const (
	boxHeight  = 40
	narrowBox  = 112
	widestBox  = 232
	labelChar  = 7
	labelFrame = 46 // the mark of its state, and room around
)

// arrange draws a fold; the ids are of tasks. There is room for the labels, of nodes that are items; nil: of none.
func (f *fold) arrange(of [][2]int, ids []plan.TaskID, labels []string) (*api.Graph, error) {
	longest := 0
	for i := range f.nodes {
		long := utf8.RuneCountInString(f.nodes[i].name)
		if labels != nil && labels[i] != "" {
			long += len(" ()") + utf8.RuneCountInString(labels[i])
		}
		longest = max(longest, long)
	}
	box := layout.Node{Width: min(max(longest*labelChar+labelFrame, narrowBox), widestBox), Height: boxHeight}
	g := layout.Graph{Nodes: slices.Repeat([]layout.Node{box}, len(f.nodes))}
	edges, weights := f.edges(of)
	g.Edges = edges
	l, err := layout.Arrange(g, layout.Options{Direction: layout.Right, NodeGap: 14, EdgeGap: 10, LevelGap: 56})
	if err != nil {
		return nil, err
	}
	inOrder(l, edges)
	out := &api.Graph{
		Width: l.Width, Height: l.Height, BoxWidth: box.Width, BoxHeight: box.Height, X: make([]int, len(f.nodes)), Y: make([]int, len(f.nodes)),
		Level: make([]int, len(f.nodes)), Names: make([]string, len(f.nodes)), IDs: make([]string, len(f.nodes)), Groups: []api.GraphGroup{}, Edges: []int{},
	}
	for i, b := range l.Nodes {
		out.X[i], out.Y[i], out.Level[i], out.Names[i] = b.X, b.Y, b.Level, f.nodes[i].name
		if t := f.nodes[i].task; t >= 0 {
			out.IDs[i] = ids[t].String()
		} else {
			out.Groups = append(out.Groups, f.nodes[i].group)
		}
	}
	for i, e := range edges {
		bends := l.Routes[i][1 : len(l.Routes[i])-1] // its ends follow from the boxes
		out.Edges = append(out.Edges, e[0], e[1], len(bends))
		for _, p := range bends {
			out.Edges = append(out.Edges, p.X, p.Y)
		}
	}
	if slices.ContainsFunc(weights, func(w int) bool { return w > 1 }) {
		out.Weights = weights
	}
	return out, nil
}

// inOrder turns the connected parts of a layout to the right upside down in which most nodes of a level are below those that come after them:
// lines cross as often, and items are read from the top.
func inOrder(l *layout.Layout, edges [][2]int) {
	part := make([]int, len(l.Nodes))
	for i := range part {
		part[i] = i
	}
	first := func(i int) int { // of a node's part
		for part[i] != i {
			part[i] = part[part[i]]
			i = part[i]
		}
		return i
	}
	for _, e := range edges {
		part[first(e[1])] = first(e[0])
	}
	type extent struct{ top, bottom, falls int }
	parts := map[int]*extent{}
	last := map[[2]int]int{} // by part and level: the node before
	for i, b := range l.Nodes {
		p := first(i)
		x, ok := parts[p]
		if !ok {
			x = &extent{top: b.Y, bottom: b.Y + b.Height}
			parts[p] = x
		}
		x.top, x.bottom = min(x.top, b.Y), max(x.bottom, b.Y+b.Height)
		at := [2]int{p, b.Level}
		if before, ok := last[at]; ok && l.Nodes[before].Y < b.Y {
			x.falls++
		} else if ok {
			x.falls--
		}
		last[at] = i
	}
	for i, e := range edges {
		for _, p := range l.Routes[i] {
			x := parts[first(e[0])]
			x.top, x.bottom = min(x.top, p.Y), max(x.bottom, p.Y)
		}
	}
	for i, e := range edges {
		if x := parts[first(e[0])]; x.falls < 0 {
			for k := range l.Routes[i] {
				l.Routes[i][k].Y = x.top + x.bottom - l.Routes[i][k].Y
			}
		}
	}
	for i := range l.Nodes {
		if x := parts[first(i)]; x.falls < 0 {
			l.Nodes[i].Y = x.top + x.bottom - l.Nodes[i].Y - l.Nodes[i].Height
		}
	}
}
