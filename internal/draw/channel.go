package draw

import (
	"cmp"
	"slices"
)

// columns returns the columns of all lines that touch the net's track.
func (n *net) columns() []int {
	var all []int
	for _, p := range n.tops {
		all = append(all, p.column)
	}
	for _, p := range n.bottoms {
		if i := n.jog(p.column); i >= 0 {
			all = append(all, n.jogs[i].via)
		} else {
			all = append(all, p.column)
		}
	}
	return all
}

func (n *net) jog(bottom int) int {
	return slices.IndexFunc(n.jogs, func(j jog) bool { return j.bottom == bottom })
}

func (n *net) span() (lo, hi int) {
	c := n.columns()
	return slices.Min(c), slices.Max(c)
}

// channel gives the nets of one gap tracks, so that no two lie on one another, and returns how many
// rows the gap needs. This is channel routing. A line of one net from above and a line of another
// net to below may share a column. Then the first one has to turn off above the second. If such
// demands form a cycle, a line takes a jog through a free column. ok is false if there is no free
// column.
func channel(nets []*net, width int) (rows int, ok bool) {
	var waiting []*net
	for _, n := range nets {
		n.track = -1
		if lo, hi := n.span(); lo < hi {
			waiting = append(waiting, n)
		}
	}
	for ; len(waiting) > 0; rows++ {
		free := slices.DeleteFunc(slices.Clone(waiting), func(n *net) bool { return len(blockers(n, waiting)) > 0 })
		if len(free) == 0 {
			n := slices.MinFunc(waiting, func(a, b *net) int {
				return cmp.Compare(len(blockers(a, waiting)), len(blockers(b, waiting)))
			})
			if !n.goAround(blockers(n, waiting), nets, width) {
				return 0, false
			}
			free = []*net{n}
		}
		for _, n := range chooseTrack(free, waiting) {
			n.track = rows
			waiting = slices.DeleteFunc(waiting, func(w *net) bool { return w == n })
		}
	}
	return rows + jogTracks(nets, rows), true
}

// blockers returns the columns of n's bottoms that the line from above of
// another waiting net is in.
func blockers(n *net, waiting []*net) (columns []int) {
	for _, p := range n.bottoms {
		taken := func(w *net) bool {
			return w != n && slices.ContainsFunc(w.tops, func(q pin) bool { return q.column == p.column })
		}
		if n.jog(p.column) < 0 && slices.ContainsFunc(waiting, taken) {
			columns = append(columns, p.column)
		}
	}
	return columns
}

// chooseTrack returns the free nets that go side by side in the next track. It first takes the net
// that saves most crossings by lying above the waiting ones.
func chooseTrack(free, waiting []*net) (chosen []*net) {
	type scored struct {
		*net
		score int
	}
	var order []scored
	for _, n := range free {
		s := scored{n, 0}
		for _, w := range waiting {
			if w != n {
				s.score += crossings(n, w) - crossings(w, n)
			}
		}
		order = append(order, s)
	}
	slices.SortStableFunc(order, func(a, b scored) int { return cmp.Compare(a.score, b.score) })
	for i, s := range order {
		if i > 0 && s.score > 0 {
			break // it is better off further down
		}
		lo, hi := s.span()
		if !slices.ContainsFunc(chosen, func(c *net) bool {
			l, h := c.span()
			return lo <= h+1 && l <= hi+1
		}) {
			chosen = append(chosen, s.net)
		}
	}
	return chosen
}

// crossings returns how often the two cross if a lies above b.
func crossings(a, b *net) int {
	n := 0
	lo, hi := a.span()
	for _, p := range b.tops {
		if lo < p.column && p.column < hi {
			n++
		}
	}
	lo, hi = b.span()
	for _, p := range a.bottoms {
		if lo < p.column && p.column < hi {
			n++
		}
	}
	return n
}

// goAround gives the net a jog for each of the bottoms, through the nearest
// column that no line in the gap uses. It returns false if there is none.
func (n *net) goAround(bottoms []int, nets []*net, width int) bool {
	used := map[int]bool{}
	for _, other := range nets {
		for _, p := range slices.Concat(other.tops, other.bottoms) {
			used[p.column] = true
		}
		for _, j := range other.jogs {
			used[j.via] = true
		}
	}
	for _, b := range bottoms {
		via := -1
		for x := range width {
			if !used[x] && (via < 0 || max(x-b, b-x) < max(via-b, b-via)) {
				via = x
			}
		}
		if via < 0 {
			return false
		}
		n.jogs = append(n.jogs, jog{via: via, bottom: b})
		used[via] = true
	}
	return true
}

// jogTracks gives the jogs tracks below the first rows, and returns how many.
func jogTracks(nets []*net, rows int) int {
	var ends [][][2]int // of each track, what is taken
	for _, n := range nets {
		for i := range n.jogs {
			j := &n.jogs[i]
			lo, hi := min(j.via, j.bottom), max(j.via, j.bottom)
			t := slices.IndexFunc(ends, func(taken [][2]int) bool {
				return !slices.ContainsFunc(taken, func(e [2]int) bool { return lo <= e[1]+1 && e[0] <= hi+1 })
			})
			if t < 0 {
				t = len(ends)
				ends = append(ends, nil)
			}
			ends[t] = append(ends[t], [2]int{lo, hi})
			j.track = rows + t
		}
	}
	return len(ends)
}
