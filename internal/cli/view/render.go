package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/duration"
	"github.com/seed-1177d267/sluice/internal/states"
	"github.com/seed-1177d267/sluice/plan"
)

// MostRunning is how many running tasks are listed, however tall the terminal is.
const MostRunning = 20

// Render returns the lines that show the view on a terminal of that many columns and rows. No line takes all columns, so that none
// wraps, and there are fewer lines than rows.
func Render(v Frame, columns, rows int, p Palette) []string {
	room := max(1, columns-1)
	lines := []string{summary(v, room, p), counts(v, room, p)}
	if v.Note != "" {
		l := line{room: room}
		l.put(v.Note, p.Warn)
		lines = append(lines, l.String())
	}
	lines = append(lines, runs(&v, room, max(0, rows-1-len(lines)), p)...)
	return lines[:max(1, min(len(lines), rows-1))]
}

// summary is the first line: what runs, for how long, how far it is and how long it still takes.
func summary(v Frame, room int, p Palette) string {
	share, text := far(v.Counts)
	if v.Left >= 0 && share < 1 {
		text += ", about " + duration.Roughly(v.Left) + " left"
	}
	l := line{room: room}
	l.put(v.Title, p.Bold)
	l.put("  "+clock(v.Elapsed)+"  "+text, nil)
	return l.String()
}

// counts is the second line: how many tasks are in each state.
func counts(v Frame, room int, p Palette) string {
	c := v.Counts
	l := line{room: room}
	l.put(" ", nil)
	for _, part := range []struct {
		n      int
		word   string
		colour func(string) string
	}{
		{c.Running + c.Claimed, "running", p.Busy}, {c.Queued, "queued", nil}, {c.Held, states.OfStatus(plan.Held), nil}, {c.Succeeded, "succeeded", p.Good},
		{c.Failed, "failed", p.Bad}, {c.Allowed, "allowed", p.Warn}, {c.Terminated, states.OfStatus(plan.Terminated), p.Bad}, {c.Orphaned, states.OfStatus(plan.Orphaned), p.Bad},
		{c.Skipped, "skipped", p.Warn},
		{c.Cancelled, "cancelled", p.Warn},
	} {
		if part.n == 0 {
			continue
		}
		if l.used > 1 {
			l.put(",", nil)
		}
		l.put(" ", nil)
		l.put(fmt.Sprintf("%d %s", part.n, part.word), part.colour)
	}
	return l.String()
}

// runs lists what runs in at most the given number of lines.
func runs(v *Frame, room, most int, p Palette) []string {
	running := v.Running
	if len(running) == 0 || most == 0 {
		return nil
	}
	shown := min(len(running), most, MostRunning)
	if shown < len(running)+v.More {
		shown = min(shown, most-1)
	}
	names := 0
	for _, r := range running[:shown] {
		names = max(names, cells.Width(cells.Clean(r.Name)))
	}
	names = min(names, max(8, room/2))
	var lines []string
	for _, r := range running[:shown] {
		l := line{room: room}
		l.put("  "+cells.Pad(cells.Cut(cells.Clean(r.Name), names, cutMark), names), nil)
		l.put(cells.PadLeft(clock(r.For), 9), p.Busy)
		if r.Progress != nil {
			l.put("  "+r.Progress.String(), nil)
		}
		if r.Attempt > 1 {
			l.put(fmt.Sprintf("  attempt %d", r.Attempt), p.Warn)
		}
		if r.Node != "" {
			l.put("  on "+cells.Clean(string(r.Node)), p.Dim)
		}
		lines = append(lines, l.String())
	}
	if more := len(running) + v.More - shown; more > 0 {
		l := line{room: room}
		l.put(fmt.Sprintf("  and %d more", more), p.Dim)
		lines = append(lines, l.String())
	}
	return lines
}

// clock writes how long something has gone on; what changes ten times a second shows no more than tenths.
func clock(d time.Duration) string {
	if d < 100*time.Millisecond {
		return "0.0s"
	}
	return duration.Text(d)
}

const cutMark = "~"

// A line is put together from pieces until its room is used up.
type line struct {
	b    strings.Builder
	room int
	used int
}

func (l *line) put(text string, colour func(string) string) {
	text = cells.Cut(cells.Clean(text), l.room, cutMark)
	if text == "" {
		return
	}
	w := cells.Width(text)
	l.room -= w
	l.used += w
	if colour != nil {
		text = colour(text)
	}
	l.b.WriteString(text)
}

func (l *line) String() string { return strings.TrimRight(l.b.String(), " ") }
