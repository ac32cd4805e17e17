// Package paint writes for people: words in colours, or plain where colours are not wanted, and durations at a glance.
package paint

import (
	"fmt"
	"time"
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

// State colours a text by the word of the state of a task, plan, node or queue that it stands for.
func (p Palette) State(word, text string) string {
	switch word {
	case "succeeded", "alive":
		return p.Good(text)
	case "failed", "terminated", "orphaned", "silent", "gone":
		return p.Bad(text)
	case "running", "claimed":
		return p.Busy(text)
	case "cancelled", "skipped", "abandoned", "full", "paused":
		return p.Warn(text)
	}
	return text
}

// Span writes a duration in the two units that matter, as in "0.4s", "12.3s", "4m05s", "3h20m" or "2d04h"; below a tenth of a second
// in milliseconds.
func Span(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1fms", float64(d)/float64(time.Millisecond))
	case d < 100*time.Millisecond:
		return fmt.Sprintf("%dms", d/time.Millisecond)
	case d < time.Minute:
		return fmt.Sprintf("%d.%ds", d/time.Second, d%time.Second/(100*time.Millisecond))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%02dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}
