package view

import (
	"github.com/seed-1177d267/sluice/internal/states"
)

// A Palette colours words, or leaves them as they are if it is false.
type Palette bool

func (p Palette) code(code, s string) string {
	if !p || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// Good, Bad, Warn, Busy, Dim and Bold return the text in that colour.
func (p Palette) Good(s string) string { return p.code("32", s) }
func (p Palette) Bad(s string) string  { return p.code("31", s) }
func (p Palette) Warn(s string) string { return p.code("33", s) }
func (p Palette) Busy(s string) string { return p.code("36", s) }
func (p Palette) Dim(s string) string  { return p.code("2", s) }
func (p Palette) Bold(s string) string { return p.code("1", s) }

// Among returns the text in one of some colours, chosen by a number, to distinguish several names.
func (p Palette) Among(n uint32, s string) string {
	colours := []string{"36", "33", "32", "35", "34", "96", "93", "95"}
	return p.code(colours[n%uint32(len(colours))], s)
}

// State colours a text by the word of a state of a task, plan, node or queue.
func (p Palette) State(word, text string) string {
	if states.SaysAllowed(word) {
		return p.Warn(text)
	}
	switch word {
	case "succeeded", "alive":
		return p.Good(text)
	case "failed", "terminated", "stopped", "orphaned", "lost", "silent", "gone":
		return p.Bad(text)
	case "running", "claimed", "starting":
		return p.Busy(text)
	case "cancelled", "skipped", "abandoned", "full", "paused":
		return p.Warn(text)
	}
	return text
}

// States colours the cells of one column of a table by the states in them.
func (p Palette) States(column int) func(int, string, string) string {
	return func(c int, word, padded string) string {
		if c != column {
			return padded
		}
		return p.State(word, padded)
	}
}
