package view

import (
	"io"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/internal/cells"
)

// A Table is printed in columns that are as wide as their widest cell.
type Table struct {
	Head []string
	rows [][]string
	// Paint colours a cell that was padded already; nil leaves it as it is.
	Paint func(column int, word, padded string) string
}

// Add adds a row. Other people may have written the cells: nothing in them moves the cursor, or
// breaks the line.
func (t *Table) Add(row ...string) {
	for i := range row {
		row[i] = cells.Clean(row[i])
	}
	t.rows = append(t.rows, row)
}

// narrow is how wide a column stays at least that is cut.
const narrow = 12

// fit cuts cells so that no row is wider than the terminal. It cuts the last column first, because
// that one is prose. Then it cuts the widest column, and the first column last, because that one
// names the row.
func (t *Table) fit(columns int, widths []int) {
	over := 2*(len(widths)-1) - columns
	for _, w := range widths {
		over += w
	}
	least := func(i int) int { return min(widths[i], max(narrow, cells.Width(t.Head[i]))) }
	cut := func(i int) {
		by := min(max(over, 0), widths[i]-least(i))
		widths[i], over = widths[i]-by, over-by
	}
	last := len(widths) - 1
	cut(last)
	for over > 0 && last > 1 {
		widest := 1
		for i := 2; i < last; i++ {
			if widths[i]-least(i) > widths[widest]-least(widest) {
				widest = i
			}
		}
		if widths[widest] == least(widest) {
			break
		}
		cut(widest)
	}
	cut(0)
	for _, row := range t.rows {
		for i := range row {
			row[i] = cells.Cut(row[i], widths[i], "~")
		}
	}
}

// Print writes the table. Columns are cut on a terminal that is too narrow for them, unless the last one has ids.
func (t *Table) Print(w io.Writer) error {
	widths := make([]int, len(t.Head))
	for _, row := range append([][]string{t.Head}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], cells.Width(cell))
		}
	}
	if columns, _ := Size(w); columns > 0 && t.Head[len(t.Head)-1] != "ID" {
		t.fit(columns, widths)
	}
	var b strings.Builder
	line := func(row []string, paint func(int, string, string) string) {
		var l strings.Builder
		for i, cell := range row {
			padded := cell
			if i < len(row)-1 {
				padded = cells.Pad(cell, widths[i]+2)
			}
			if paint != nil {
				padded = paint(i, cell, padded)
			}
			l.WriteString(padded)
		}
		b.WriteString(strings.TrimRight(l.String(), " "))
		b.WriteByte('\n')
	}
	line(t.Head, nil)
	for _, row := range t.rows {
		line(row, t.Paint)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Drop takes out the named columns.
func (t *Table) Drop(names ...string) {
	t.drop(names, func(int) bool { return true })
}

// DropEmpty takes out those of the named columns that no row has a cell for.
func (t *Table) DropEmpty(names ...string) {
	t.drop(names, func(column int) bool {
		return !slices.ContainsFunc(t.rows, func(row []string) bool { return row[column] != "" })
	})
}

func (t *Table) drop(names []string, when func(column int) bool) {
	for i := len(t.Head) - 1; i >= 0; i-- {
		if !slices.Contains(names, t.Head[i]) || !when(i) {
			continue
		}
		t.Head = slices.Delete(t.Head, i, i+1)
		for r := range t.rows {
			t.rows[r] = slices.Delete(t.rows[r], i, i+1)
		}
	}
}
