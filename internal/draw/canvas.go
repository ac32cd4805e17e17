package draw

import (
	"strings"

	"github.com/seed-1177d267/sluice/internal/cells"
)

// canvas is a rectangle of terminal cells that lines and text are put on.
type canvas struct {
	width int
	rows  [][]cell
}

// cell is a text of one cell's width, or the first of two; or arms of lines.
type cell struct {
	text string // "" for none; wideTail for the second half of a wide character
	sgr  string // its colour: the parameters of the escape sequence
	arms arms   // of lines, which are drawn where there is no text
}

const wideTail = "\x00"

// arms are the sides of a cell that lines go to.
type arms uint8

const (
	up arms = 1 << iota
	down
	left
	right
	over  // another line passes below a vertical one, without touching it
	twice // the line is a double one
)

func newCanvas(width, height int) *canvas {
	c := &canvas{width: width, rows: make([][]cell, height)}
	all := make([]cell, width*height)
	for y := range c.rows {
		c.rows[y] = all[y*width : (y+1)*width : (y+1)*width]
	}
	return c
}

// print puts the text at the cell, one or two cells for each character. Text outside the canvas is
// lost.
func (c *canvas) print(x, y int, text, sgr string) {
	at := -1
	for _, r := range text {
		wide := cells.Width(string(r))
		switch {
		case wide == 0 && at >= 0: // combines with the one before
			c.rows[y][at].text += string(r)
			continue
		case wide == 0 || x+wide > c.width:
			continue
		}
		at = x
		c.rows[y][x].text, c.rows[y][x].sgr = string(r), sgr
		if wide == 2 {
			c.rows[y][x+1].text, c.rows[y][x+1].sgr = wideTail, sgr
		}
		x += wide
	}
}

// frame draws the upper or lower side of a box, with the two corners.
func (c *canvas) frame(x, y, width int, corners, sgr string, ascii bool) {
	line := "─"
	if ascii {
		line = "-"
	}
	ends := []rune(corners)
	c.print(x, y, string(ends[0])+strings.Repeat(line, width-2)+string(ends[1]), sgr)
}

// attach puts the end of a line on the side of a box, in the colour of the box.
func (c *canvas) attach(x, y int, end string) { c.rows[y][x].text = end }

// vertical draws a line from the upper side of row y1 to the lower side of y2.
func (c *canvas) vertical(x, y1, y2 int, double bool) {
	a := up | down
	if double {
		a |= twice
	}
	for y := y1; y <= y2; y++ {
		c.rows[y][x].arms |= a
	}
}

// lineRunes are the characters for the arms of a cell.
var lineRunes = map[arms]string{
	up: "│", down: "│", up | down: "│", left: "─", right: "─", left | right: "─",
	up | left: "╯", up | right: "╰", down | left: "╮", down | right: "╭",
	up | down | left: "┤", up | down | right: "├", up | left | right: "┴", down | left | right: "┬",
	up | down | left | right: "┼",
}

// doubleRunes are those of double lines.
var doubleRunes = map[string]string{
	"│": "║", "─": "═", "╯": "╝", "╰": "╚", "╮": "╗", "╭": "╔", "┤": "╣", "├": "╠", "┴": "╩", "┬": "╦", "┼": "╬",
}

var asciiLines = map[string]string{"│": "|", "─": "-"} // all others are +

func (a arms) rune(ascii bool) string {
	double := a&twice != 0
	if a &^= twice; a&over != 0 {
		a = up | down
	}
	s, ok := lineRunes[a]
	switch {
	case !ok:
		return " "
	case !ascii && double:
		return doubleRunes[s]
	case !ascii:
		return s
	case asciiLines[s] != "":
		return asciiLines[s]
	}
	return "+"
}

// lines returns the rows as text, with no spaces at their ends.
func (c *canvas) lines(ascii, color bool) []string {
	lines := make([]string, len(c.rows))
	for y, row := range c.rows {
		var b strings.Builder
		sgr := ""
		end := len(row)
		for end > 0 && row[end-1].blank() {
			end--
		}
		for _, cell := range row[:end] {
			if cell.text == wideTail {
				continue
			}
			want := cell.sgr
			if cell.text == "" && cell.arms != 0 {
				want = dim
			}
			if color && want != sgr && !cell.blank() {
				b.WriteString(escape(sgr, want))
				sgr = want
			}
			if cell.text != "" {
				b.WriteString(cell.text)
			} else {
				b.WriteString(cell.arms.rune(ascii))
			}
		}
		if color && sgr != "" {
			b.WriteString(escape(sgr, ""))
		}
		lines[y] = b.String()
	}
	return lines
}

func (c cell) blank() bool { return c.arms == 0 && (c.text == "" || c.text == " ") }

const (
	dim  = "2"
	bold = "1"
)

// escape returns the sequence that goes from one colour to another.
func escape(from, to string) string {
	switch {
	case to == "":
		return "\x1b[0m"
	case from == "":
		return "\x1b[" + to + "m"
	}
	return "\x1b[0;" + to + "m"
}

// painted returns the text in a colour, if it is to have one.
func painted(text, sgr string, color bool) string {
	if !color || sgr == "" || text == "" {
		return text
	}
	return escape("", sgr) + text + escape(sgr, "")
}
