package v1

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/fold"
	"github.com/seed-1177d267/sluice/internal/layout"
	"github.com/seed-1177d267/sluice/plan"
)

// A grouped says which tasks are drawn as one node.
type grouped struct {
	nodes []node
	of    []int32 // of each task: its node
}

// A node is one task, a foreach task with its items, or some tasks of a key.
type node struct {
	task  int32          // the foreach task where the node is closed; -1: of a group
	group api.GraphGroup // if its Of is 0, the node is one task
	name  string
	level int  // of its first task
	aside bool // it is handlers alone
	last  bool // it is tasks of finally alone
}

// foreach reports whether the node is a foreach task with its items.
func (n *node) foreach() bool { return n.task >= 0 && n.group.Of > 0 }

// window is how many tasks of an open group are shown one by one.
const window = 200

// itemsOf begins the key of what the items of a foreach task are. The name of the task follows.
const itemsOf = "of:"

// A unit is what a fold keeps together: a task, or a foreach task with its items.
type unit struct {
	task  int32 // the foreach task, or the one
	level int   // the first level in which anything of it is
}

// folding draws at most most nodes, with at most four times as many edges, in the first way that
// fits. The finest way shows each unit alone. The next ones fold units of a level whose names
// differ only in numbers, whole levels, and several levels. A foreach task and its items are one
// unit. There are two exceptions: the open one, and single tasks if whole asks for them and there
// is room for all.
//
// In the open group, up to window units from the given one are nodes of their own. The units before
// and after them stay together. Needs lead from level to level, so a group of one level, or of
// neighbouring levels, makes no cycle. A unit of items lies in the level of the items: all their
// parents are before it. The children of an item, or of the foreach task, are after it.
func (w *drawing) folding(edges [][2]int, l laid) grouped {
	if l.whole && len(w.names) <= l.most && len(edges) <= 4*l.most {
		return w.collect(w.units(false), each, "", 0)
	}
	units := w.units(true)
	depth := 0
	for _, u := range units {
		depth = max(depth, u.level+1)
	}
	band := 1 + (depth-1)/max(l.most, 1)
	ways := []way{
		each,
		{fold.Smallest, func(u unit) string { return strconv.Itoa(u.level) + ":" + fold.Pattern(w.names[u.task]) }},
		{fold.Smallest, func(u unit) string { return strconv.Itoa(u.level) }},
		{1, func(u unit) string {
			l := u.level / band
			return strconv.Itoa(l*band) + "-" + strconv.Itoa(l*band+band-1)
		}},
	}
	if len(units) > l.most {
		ways = ways[1:]
	}
	var f grouped
	for i, by := range ways {
		f = w.collect(units, by, "", 0)
		if i < len(ways)-1 && (len(f.nodes) > l.most || !f.fits(edges, 4*l.most)) {
			continue
		}
		if l.open != "" {
			if opened := w.collect(w.opened(units, l.open), by, l.open, l.from); opened.fits(edges, 4*(l.most+window)) {
				return opened
			}
		}
		break
	}
	return f
}

// A way of folding makes one node of the units with one key, where there are enough of them. An empty key is that of no group.
type way struct {
	enough int
	of     func(unit) (key string)
}

// each is the way that draws each unit for itself.
var each = way{1, func(unit) string { return "" }}

// units returns the units, in the order of the plan.
func (w *drawing) units(closed bool) []unit {
	units := make([]unit, 0, len(w.names))
	for i, n := range w.items {
		switch {
		case closed && w.runs[i].Of >= 0:
		case closed && n > 0:
			units = append(units, unit{int32(i), w.level[i] - 1}) // its items are one level before it
		default:
			units = append(units, unit{int32(i), w.level[i]})
		}
	}
	return units
}

// opened returns the units with those of the foreach task that has the key in place of its unit.
func (w *drawing) opened(units []unit, key string) []unit {
	name, ok := strings.CutPrefix(key, itemsOf)
	if !ok {
		return units
	}
	at := slices.IndexFunc(units, func(u unit) bool { return w.names[u.task] == name && w.items[u.task] > 0 })
	if at < 0 {
		return units
	}
	of := units[at].task
	parts := []unit{{of, w.level[of]}}
	for i := range w.runs {
		if w.runs[i].Of == of {
			parts = append(parts, unit{int32(i), w.level[i]})
		}
	}
	return slices.Concat(units[:at], parts, units[at+1:])
}

// fits reports whether there are at most so many different edges between nodes.
func (f *grouped) fits(edges [][2]int, most int) bool {
	seen := make(map[[2]int32]bool, min(len(edges), most))
	for _, e := range edges {
		if ends := [2]int32{f.of[e[0]], f.of[e[1]]}; ends[0] != ends[1] {
			seen[ends] = true
		}
		if len(seen) > most {
			return false
		}
	}
	return true
}

// collect makes the nodes of a way. In the open group, some units from the given one are nodes.
func (w *drawing) collect(units []unit, by way, open string, from int) grouped {
	apart := map[int32]bool{} // foreach tasks whose items are in other units
	key := func(i int) string {
		u := units[i]
		switch of := w.runs[u.task].Of; {
		case of >= 0 && open != "":
			apart[of] = true
			return itemsOf + w.names[of]
		case open == itemsOf+w.names[u.task]:
			return ""
		}
		return by.of(u)
	}
	f := grouped{of: make([]int32, len(w.names))}
	alone := len(units) == len(w.names)
	for _, class := range fold.Classes(len(units), by.enough, key) {
		key, members := key(class[0]), make([]unit, len(class))
		for i, at := range class {
			members[i] = units[at]
		}
		// A group of several levels is sorted by level. The tasks before a window then need none of
		// the tasks in it.
		slices.SortStableFunc(members, func(a, b unit) int { return a.level - b.level })
		count := len(members)
		part := func(from, to int) {
			if from == to {
				return
			}
			u := members[from]
			n := node{task: -1, group: api.GraphGroup{Key: key, From: from, Count: to - from, Of: count}, level: u.level, aside: true, last: true}
			if to == from+1 {
				n.task, n.name, n.group = u.task, w.names[u.task], api.GraphGroup{}
				if many := int(w.items[u.task]); many > 0 && !alone && !apart[u.task] {
					n.group = api.GraphGroup{Key: itemsOf + n.name, Count: many, Of: many}
				}
			} else if name, ok := strings.CutPrefix(key, itemsOf); ok {
				n.name = name + "[*]"
			} else {
				n.name = common(w.names, members[from:to])
			}
			for _, u := range members[from:to] {
				f.of[u.task] = int32(len(f.nodes))
				n.aside, n.last = n.aside && w.aside[u.task], n.last && w.last[u.task]
			}
			f.nodes = append(f.nodes, n)
		}
		first, last := count, count // shown one by one; none
		if key == open && open != "" {
			first = min(max(from, 0), count-1)
			last = min(first+window, count)
		}
		part(0, first)
		for i := first; i < last; i++ {
			part(i, i+1)
		}
		part(last, count)
	}
	if !alone {
		for i := range w.runs { // items are where their foreach task is, unless they are units
			if of := w.runs[i].Of; of >= 0 && !apart[of] {
				f.of[i] = f.of[of]
			}
		}
	}
	return f
}

// common is what tasks of several patterns are called together: those patterns, as far as they are few.
func common(names []string, members []unit) string {
	var seen []string
	for _, u := range members {
		if p := fold.Pattern(names[u.task]); !slices.Contains(seen, p) {
			if len(seen) == 3 {
				return strings.Join(append(seen, "…"), ", ")
			}
			seen = append(seen, p)
		}
	}
	return strings.Join(seen, ", ")
}

// Pixels. A character of a page's labels is about 7 wide.
const (
	boxHeight  = 40
	narrowBox  = 112
	widestBox  = 232
	labelChar  = 7
	labelFrame = 46 // the mark of its state, and room around
)

// arrange draws a fold; the ids are of tasks. item tells items from other tasks: only items need items, those with their index. There is room for the labels, of nodes that are items; nil: of none.
func (f *grouped) arrange(of [][2]int, ids []plan.TaskID, item func(int) bool, labels []string) (*api.Graph, error) {
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
	if slices.ContainsFunc(f.nodes, func(n node) bool { return n.aside }) {
		g.Aside = api.Each(f.nodes, func(n *node) bool { return n.aside })
	}
	edges, weights := fold.Edges(of, f.of)
	along := map[[2]int]bool{}
	for _, e := range of {
		if item(e[0]) && item(e[1]) {
			along[[2]int{int(f.of[e[0]]), int(f.of[e[1]])}] = true
		}
	}
	g.Edges = edges
	l, err := layout.Arrange(g, layout.Options{Direction: layout.Right, NodeGap: 14, EdgeGap: 10, LevelGap: 56, AsideGap: 40})
	if err != nil {
		return nil, err
	}
	out := &api.Graph{
		Width: l.Width, Height: l.Height, BoxWidth: box.Width, BoxHeight: box.Height, X: make([]int, len(f.nodes)), Y: make([]int, len(f.nodes)),
		Level: make([]int, len(f.nodes)), Names: make([]string, len(f.nodes)), IDs: make([]string, len(f.nodes)), Groups: []api.GraphGroup{}, Edges: []int{},
	}
	for i, b := range l.Nodes {
		out.X[i], out.Y[i], out.Level[i], out.Names[i] = b.X, b.Y, b.Level, f.nodes[i].name
		if t := f.nodes[i].task; t >= 0 {
			out.IDs[i] = ids[t].String()
		}
		if f.nodes[i].group.Of > 0 {
			out.Groups = append(out.Groups, f.nodes[i].group)
		}
	}
	if a := l.Aside; a.Width > 0 {
		out.Lane = []int{a.X, a.Y, a.Width, a.Height}
	}
	out.Finally = f.frameOfLast(out)
	for i, e := range edges {
		if along[e] {
			out.Along = append(out.Along, i)
		}
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

// frameOfLast returns the frame around the tasks of finally: x, y, width and height; nil if there are none.
func (f *grouped) frameOfLast(g *api.Graph) (frame []int) {
	x0, y0, x1, y1 := g.Width, g.Height, 0, 0
	for i := range f.nodes {
		if f.nodes[i].last {
			x0, y0, x1, y1 = min(x0, g.X[i]), min(y0, g.Y[i]), max(x1, g.X[i]+g.BoxWidth), max(y1, g.Y[i]+g.BoxHeight)
			frame = []int{x0, y0, x1 - x0, y1 - y0}
		}
	}
	return frame
}
