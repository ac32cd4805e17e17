package layout

import (
	"cmp"
	"math"
	"slices"
)

// pack returns the corners of the unconnected parts. They are in rows, the tallest first, so that
// each row is filled well. Parts of one height keep their order.
func pack(sizes []Node, o Options) []Point {
	order := make([]int, len(sizes))
	area, widest := 0.0, 0
	for i, s := range sizes {
		order[i] = i
		area += float64(s.Width+o.NodeGap) * float64(s.Height+o.LevelGap)
		widest = max(widest, s.Width)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sizes[b].Height, sizes[a].Height) })
	breadth := o.Breadth
	if breadth == 0 {
		side := 1.5 // Right is turned at the end: there the rows are columns
		if o.Direction == Right {
			side = 1 / side
		}
		breadth = max(widest, int(math.Sqrt(area*side)))
	}
	corners := make([]Point, len(sizes))
	x, y, tallest := 0, 0, 0
	for _, i := range order {
		if x > 0 && x+sizes[i].Width > breadth {
			x, y, tallest = 0, y+tallest+o.LevelGap, 0
		}
		corners[i] = Point{x, y}
		x += sizes[i].Width + o.NodeGap
		tallest = max(tallest, sizes[i].Height)
	}
	return corners
}
