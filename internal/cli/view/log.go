package view

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// A Try is what one attempt printed.
type Try struct {
	Number  int  // of the attempt; 0: what was said between two, as by a retry
	Again   bool // attempts were counted back before it: the one before it was given back, or a person retried the task
	Entries []plan.LogEntry
}

// Tries divides a task's log into its attempts. The last one may have printed nothing. Attempts
// count from 1 again after a retry by a person, and an attempt that was given back does not count.
// So two consecutive attempts may have the same number; the log says so between them.
func Tries(entries []plan.LogEntry, t *plan.Task) []Try {
	var all []Try
	over := true // the last of them
	begin := func(number int) {
		last := len(all) - 1
		again := last >= 0 && (over || number < all[last].Number)
		all, over = append(all, Try{Number: number, Again: again}), false
	}
	for i := range entries {
		e := &entries[i]
		switch {
		case rules.IsRetried(e):
			begin(0)
		case over:
			begin(cmp.Or(e.Attempt, t.Attempt))
		case e.Attempt != all[len(all)-1].Number && e.Attempt != 0: // 0 is what another program logged, and did not number
			begin(e.Attempt)
		}
		last := &all[len(all)-1]
		last.Entries = append(last.Entries, *e)
		over = rules.IsRetried(e) || rules.IsGivenBack(e)
	}
	if len(all) > 0 && t.Attempt > 0 && (over || all[len(all)-1].Number != t.Attempt) {
		begin(t.Attempt)
	}
	return all
}

// OfAttempt returns what an attempt printed, of those since the task was last retried.
func OfAttempt(tries []Try, number int) []plan.LogEntry {
	for i := len(tries) - 1; i >= 0; i-- {
		if tries[i].Number == number {
			return tries[i].Entries
		}
		if tries[i].Again {
			break
		}
	}
	return nil
}

// A Log writes entries as lines.
type Log struct {
	W       io.Writer
	Times   bool
	Tame    bool // w is a terminal, which what is printed must not change
	One     bool // only one attempt is printed
	Many    bool // there are several: say where each begins
	attempt int
	again   bool // the next attempt counts from 1 again
	open    bool // the last entry had no newline
	runner  bool // the last entry is a task runner's own
	Own     bool // something that the task printed was in its log, in the attempt that is printed
	Foreign bool // what another program left of the task was printed
	Printed bool // something, so that nothing need be said of silence
	Err     error
}

// Begin says where an attempt begins that printed something.
func (p *Log) Begin(t *Try) {
	if len(t.Entries) > 0 && t.Number > 0 {
		p.mark(t.Number, t.Again)
	}
}

func (p *Log) mark(attempt int, again bool) {
	p.attempt, p.again, p.runner, p.Own = attempt, false, false, false
	if p.One || !p.Many {
		return
	}
	p.write(p.newline() + attemptMark(attempt, again) + "\n")
}

// attemptMark is the line where an attempt begins. again says that attempts count from 1 again.
func attemptMark(attempt int, again bool) string {
	if again {
		return fmt.Sprintf("[attempt %d, again]", attempt)
	}
	return fmt.Sprintf("[attempt %d]", attempt)
}

// newline ends a line that is open.
func (p *Log) newline() string {
	if !p.open {
		return ""
	}
	p.open = false
	return "\n"
}

func (p *Log) Print(entries []plan.LogEntry) {
	var b strings.Builder
	for i := range entries {
		e := &entries[i]
		if e.Attempt != p.attempt && e.Attempt != 0 {
			p.write(b.String())
			b.Reset()
			p.Many = p.Many || p.attempt != 0 || p.again || e.Attempt > 1 // while it is followed
			p.mark(e.Attempt, e.Attempt < p.attempt || p.again)
		}
		switch {
		case rules.IsRetried(e), rules.IsGivenBack(e), rules.IsLoss(e): // Sluice's own lines; a line of the task may still be open
			b.WriteString(p.newline())
		case e.Stream == plan.System:
		case e.Stream == plan.Runner && !p.runner:
			b.WriteString(p.newline() + "[task runner]\n")
			p.runner = true
		case e.Stream != plan.Runner:
			if p.Own = true; p.runner {
				b.WriteString(p.newline() + "[task]\n")
				p.runner = false
			}
		}
		if p.Times && !p.open {
			b.WriteString(e.At.Local().Format("2006-01-02T15:04:05.000 "))
		}
		text := e.Text
		if p.Tame {
			text = cells.Tame(text)
		}
		b.WriteString(text)
		p.open = !strings.HasSuffix(e.Text, "\n")
		if rules.IsRetried(e) || rules.IsGivenBack(e) {
			p.attempt, p.again = 0, true
		}
	}
	p.write(b.String())
}

func (p *Log) write(text string) {
	p.Printed = p.Printed || text != ""
	if text != "" && p.Err == nil {
		_, p.Err = io.WriteString(p.W, text)
	}
}

// LastLines returns what the last n lines are of.
func LastLines(entries []plan.LogEntry, n int) []plan.LogEntry {
	for i := len(entries) - 1; i >= 0; i-- {
		if n == 0 {
			return entries[i+1:]
		}
		lines := slices.Collect(strings.Lines(entries[i].Text))
		if n < len(lines) {
			cut := slices.Clone(entries[i:])
			cut[0].Text = strings.Join(lines[len(lines)-n:], "")
			return cut
		}
		n -= len(lines)
	}
	return entries
}
