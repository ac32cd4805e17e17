package cli

import (
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/cells"
)

func TestATableFitsItsTerminal(t *testing.T) {
	long := strings.Repeat("long", 20)
	for _, c := range []struct {
		name    string
		columns int
		row     []string
		want    []int // how wide the cells are
	}{
		{"what fits is left", 80, []string{"name", "failed", "a text"}, []int{4, 6, 6}},
		{"the last column is cut first", 60, []string{"name", strings.Repeat("x", 30), long}, []int{4, 30, 22}},
		{"then the widest of the others", 60, []string{strings.Repeat("n", 20), strings.Repeat("x", 40), long}, []int{20, 24, 12}},
		{"then the first", 50, []string{long, strings.Repeat("x", 40), long}, []int{22, 12, 12}},
		{"no column is narrower than people can read", 20, []string{long, long, long}, []int{12, 12, 12}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tab := table{head: []string{"A", "B", "C"}}
			tab.add(append([]string(nil), c.row...)...)
			widths := make([]int, len(c.row))
			for i, cell := range c.row {
				widths[i] = cells.Width(cell)
			}
			tab.fit(c.columns, widths)
			for i, cell := range tab.rows[0] {
				if cells.Width(cell) != c.want[i] || widths[i] != c.want[i] {
					t.Errorf("cell %d is %q, %d wide in %d, want %d", i, cell, cells.Width(cell), widths[i], c.want[i])
				}
			}
		})
	}
}
