package view

import (
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// A Many writes the logs of many tasks, each line behind the name of its task.
type Many struct {
	W       io.Writer
	Palette Palette
	Tame    bool // W is a terminal, which what is printed must not change
	Times   bool
	Printed bool // something
}

// A Named is how far the log of one task was written.
type Named struct {
	Label   string
	attempt int             // whose entry came last; 0: none yet
	again   bool            // the next attempt counts from 1 again
	rest    strings.Builder // of a line that has not ended
}

// mostRest is how long a line gets before it is printed without its end.
const mostRest = 64 << 10

// Entries writes the lines that end with entries of a task's log. It says where each attempt begins
// if these entries are of several, or of a later one than the first.
func (m *Many) Entries(o *Named, entries []plan.LogEntry) error {
	several := o.attempt != 0 || slices.ContainsFunc(entries, func(e plan.LogEntry) bool { return e.Attempt > 1 })
	for i := range entries {
		if err := m.entry(o, &entries[i], several); err != nil {
			return err
		}
	}
	return nil
}

func (m *Many) entry(o *Named, e *plan.LogEntry, several bool) error {
	if (o.again || e.Attempt != o.attempt) && e.Attempt != 0 {
		if err := m.line(o, "", e.At, false); err != nil { // that the attempt before it left without an end
			return err
		}
		if several {
			if err := m.line(o, attemptMark(e.Attempt, o.again || e.Attempt < o.attempt), e.At, true); err != nil {
				return err
			}
		}
		o.attempt, o.again = e.Attempt, false
	}
	o.again = o.again || rules.IsRetried(e)
	for text := range strings.Lines(e.Text) {
		if err := m.line(o, strings.TrimSuffix(text, "\n"), e.At, strings.HasSuffix(text, "\n")); err != nil {
			return err
		}
	}
	return nil
}

// End writes a line of the task that has no end.
func (m *Many) End(o *Named) error { return m.line(o, "", time.Time{}, false) }

// line prints a line, if text is the end of one. Text that is neither is kept; no text at all ends the line that there is.
func (m *Many) line(o *Named, text string, at time.Time, ends bool) error {
	if o.rest.WriteString(text); !ends && (text != "" && o.rest.Len() < mostRest || o.rest.Len() == 0) {
		return nil
	}
	text = o.rest.String()
	o.rest.Reset()
	if m.Tame {
		text = cells.Tame(text)
	}
	if m.Times && !at.IsZero() {
		text = at.Local().Format("2006-01-02T15:04:05.000 ") + text
	}
	h := fnv.New32()
	h.Write([]byte(o.Label))
	label := cells.Clean(o.Label)
	_, err := fmt.Fprintf(m.W, "%s %s\n", m.Palette.Among(h.Sum32(), label+" |"), text)
	m.Printed = true
	return err
}
