package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// A task that another program ran has no log here. There is only its standard output and standard
// error, as that program kept them. There is also the output of its task runner, if a node of ours
// started that.

// keptHalf is how many bytes are shown of the beginning, and of the end, of a stream that another
// program stored. Logs have as much.
const keptHalf = 512 << 10

// shownLog puts what another program left of its last attempt before the entries that the log has
// of that attempt. It returns which entries these are.
func shownLog(ctx context.Context, r store.Reader, t *plan.Task, entries []plan.LogEntry) (all, printed []plan.LogEntry, err error) {
	last := len(entries)
	for last > 0 && entries[last-1].Attempt == t.Attempt && !rules.IsGivenBack(&entries[last-1]) {
		if last--; entries[last].Stream == plan.Stdout || entries[last].Stream == plan.Stderr {
			return entries, nil, nil // it is our own
		}
	}
	if !t.Status.Finished() {
		return entries, nil, nil
	}
	printed, err = printedBy(ctx, r, t)
	return slices.Insert(entries, last, printed...), printed, err
}

// withoutRunner leaves out what a task runner printed itself in that attempt, and returns how many lines that is.
func withoutRunner(entries []plan.LogEntry, attempt int) (others []plan.LogEntry, lines int) {
	for _, e := range entries {
		if e.Stream == plan.Runner && e.Attempt == attempt {
			lines++
		} else {
			others = append(others, e)
		}
	}
	return others, lines
}

// printedBy returns what another program left of a task's streams, as the entries of a log; none if there is nothing.
func printedBy(ctx context.Context, r store.Reader, t *plan.Task) (entries []plan.LogEntry, err error) {
	kept, ok := r.(store.Results)
	if !ok {
		return nil, nil
	}
	for _, s := range []plan.Stream{plan.Stdout, plan.Stderr} {
		in, _, err := kept.OpenResult(ctx, t.ID, s)
		if err != nil {
			return nil, err
		}
		begin, end, dropped, err := bothEnds(in, keptHalf)
		if err = errors.Join(err, in.Close()); err != nil {
			return nil, fmt.Errorf("%s of task %s: %w", api.StreamWord(s), t.ID, err)
		}
		if n := len(entries); n > 0 && begin != "" && !strings.HasSuffix(entries[n-1].Text, "\n") {
			entries[n-1].Text += "\n"
		}
		for _, e := range []plan.LogEntry{{Stream: s, Text: begin}, {Stream: plan.System, Text: leftOut(t, s, dropped)}, {Stream: s, Text: end}} {
			if e.Text != "" {
				e.At, e.Attempt = t.Ended, t.Attempt
				entries = append(entries, e)
			}
		}
	}
	return entries, nil
}

func leftOut(t *plan.Task, s plan.Stream, bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return fmt.Sprintf("[%d bytes are left out here; all of it: sluice task logs --%s %s]\n", bytes, api.StreamWord(s), t.ID)
}

// bothEnds reads a text and returns that much of its beginning and of its end, and the number of
// bytes between. It returns whole lines if they are not longer.
func bothEnds(r io.Reader, half int) (begin, end string, dropped int64, err error) {
	head := make([]byte, half)
	n, err := io.ReadFull(r, head)
	if head = head[:n]; err != nil {
		if err == io.EOF || err == io.ErrUnexpectedEOF { // so ReadFull says that there was less
			err = nil
		}
		return string(head), "", 0, err
	}
	var tail []byte
	for block := make([]byte, 64<<10); err == nil; {
		n, err = r.Read(block)
		tail = append(tail, block[:n]...)
		if more := len(tail) - half - 1; more > half { // seldom, so that little is copied
			dropped += int64(more)
			tail = append(tail[:0], tail[more:]...)
		}
	}
	if err != io.EOF {
		return "", "", 0, err
	}
	if more := len(tail) - half - 1; more > 0 { // the byte before tells whether a line begins there
		dropped += int64(more)
		tail = tail[more:]
	}
	if dropped > 0 {
		if i := bytes.LastIndexByte(head, '\n') + 1; i > 0 {
			dropped += int64(len(head) - i)
			head = head[:i]
		} else {
			head = append(head, '\n')
		}
		if i := bytes.IndexByte(tail, '\n') + 1; i < len(tail) {
			dropped += int64(i)
			tail = tail[i:]
		}
	}
	return string(head), string(tail), dropped, nil
}

// noteForeign says whose output is printed instead of a log, and that its task runner printed some lines itself that are not shown.
func (a *app) noteForeign(t *plan.Task, printed []plan.LogEntry, hidden int) {
	has := func(s plan.Stream) bool {
		return slices.ContainsFunc(printed, func(e plan.LogEntry) bool { return e.Stream == s })
	}
	what := "its standard output"
	switch {
	case has(plan.Stdout) && has(plan.Stderr):
		what += ", and after it its standard error"
	case has(plan.Stderr):
		what = "its standard error"
	}
	if hidden > 0 {
		what += fmt.Sprintf("; what its task runner printed itself, %s, is shown with --runner", view.Number(hidden, "line"))
	}
	a.note("another program ran %s: this is %s", t.Key(), what)
}

// printStream prints the complete output of a task on a stream, whatever its size, a piece at a
// time. A task of a plan that ran here has only its log.
func (a *app) printStream(ctx context.Context, st store.Store, t *plan.Task, s plan.Stream) (err error) {
	w := io.Writer(a.Stdout)
	if view.IsTerminal(a.Stdout) {
		tame := &view.Tame{W: w}
		defer func() { err = errors.Join(err, tame.Flush()) }()
		w = tame
	}
	if kept, ok := st.(store.Results); ok {
		in, size, err := kept.OpenResult(ctx, t.ID, s)
		if err != nil {
			return err
		}
		defer in.Close()
		if size >= 0 {
			if _, err = io.Copy(w, in); err != nil {
				return fmt.Errorf("%s of task %s: %w", api.StreamWord(s), t.ID, err)
			}
			return nil
		}
	}
	entries, _, err := readLog(ctx, st, t.ID, 0)
	if err != nil {
		return err
	}
	some := false
	for _, e := range view.OfAttempt(view.Tries(entries, t), t.Attempt) {
		if e.Stream != s {
			continue
		}
		some = true
		if _, err := io.WriteString(w, e.Text); err != nil {
			return err
		}
	}
	switch {
	case t.Attempt > 0 && t.Plan.IsZero() && t.Status.Finished() && !some: // it printed nothing on this stream
	case t.Attempt > 0:
		a.note("%s of %s is kept in its log alone, which has the first and the last 512 KiB", api.StreamWord(s), t.Key())
	default:
		a.note("%s has not run", t.Key())
	}
	return nil
}

// sizes fills in the sizes of a task's standard output and standard error, if the store keeps them
// beside its log.
func (d *taskDetails) sizes(ctx context.Context, r store.Reader) error {
	kept, ok := r.(store.Results)
	if !ok {
		return nil
	}
	for s, to := range map[plan.Stream]**int64{plan.Stdout: &d.Stdout, plan.Stderr: &d.Stderr} {
		in, size, err := kept.OpenResult(ctx, d.ID, s)
		if err != nil {
			return err
		}
		if size >= 0 {
			*to = &size
		}
		if err := in.Close(); err != nil {
			return err
		}
	}
	return nil
}
