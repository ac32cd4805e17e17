package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// logPoll is how often a log that is followed is read. Its task's state is read with it.
const logPoll = 200 * time.Millisecond

// A logEntry is a piece of a log in JSON listings.
type logEntry struct {
	At      time.Time `json:"at"`
	Attempt int       `json:"attempt"`
	Stream  string    `json:"stream"`
	Text    string    `json:"text"`
}

func streamWord(s plan.Stream) string {
	switch s {
	case plan.Stdout:
		return "stdout"
	case plan.Stderr:
		return "stderr"
	}
	return "system"
}

func taskLogs(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "logs {PLAN TASK | ID}",
		Short:             "Print what a task printed, in its order",
		Long:              "Print what a task printed, in its order: its standard output, its standard error, and what Sluice says about it.\n\n" + taskHelp,
		Args:              between(1, 2),
		Example:           "  sluice task logs nightly 'copy[3]'\n  sluice task logs -f nightly copy",
		ValidArgsFunction: a.completePlan,
	}
	output := outputFlag(cmd)
	f := cmd.Flags()
	follow := f.BoolP("follow", "f", false, "go on until the task has ended")
	since := f.Duration("since", 0, "only what was printed within the last while, as in 10m")
	tail := f.Int("tail", -1, "only the last so many lines")
	attempt := f.Int("attempt", 0, "only of this attempt; -1: only of the last one")
	times := f.Bool("timestamps", false, "write before each line when it was printed")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		if *follow && output.json() {
			return usagef("--follow prints lines; leave --output json out")
		}
		return a.withStore(ctx, func(st store.Store) error {
			t, err := findTask(ctx, st, args)
			if err != nil {
				return err
			}
			if *attempt < 0 {
				*attempt = t.Attempt
			}
			from := time.Time{}
			if *since > 0 {
				from = time.Now().Add(-*since)
			}
			want := func(e *plan.LogEntry) bool { return !e.At.Before(from) && (*attempt == 0 || e.Attempt == *attempt) }
			entries, cursor, err := readLog(ctx, st, t.ID, 0, want)
			if err != nil {
				return err
			}
			if *tail >= 0 {
				entries = lastLines(entries, *tail)
			}
			if output.json() {
				return printLogJSON(a.Stdout, entries)
			}
			p := logPrinter{w: a.Stdout, times: *times, many: t.Attempt > 1 && *attempt == 0}
			p.print(entries)
			if len(entries) == 0 && !*follow {
				a.note("%s", silence(&t))
			}
			if *follow {
				return a.followLog(ctx, st, t.ID, cursor, want, &p)
			}
			return p.err
		})
	}
	return cmd
}

// silence says why a task's log is empty.
func silence(t *plan.Task) string {
	switch {
	case t.Items > 0:
		return fmt.Sprintf("%s has %d items, and each has a log: its first is %s", t.Key(), t.Items, plan.ItemName(t.Name, 0))
	case t.Attempt == 0:
		return fmt.Sprintf("%s is %s, and has not run", t.Key(), t.State())
	}
	return fmt.Sprintf("%s is %s, and printed nothing of that", t.Key(), t.State())
}

// readLog reads the log after the cursor to its present end.
func readLog(ctx context.Context, r store.Reader, id plan.TaskID, after int64, want func(*plan.LogEntry) bool) ([]plan.LogEntry, int64, error) {
	const page = 1000
	var kept []plan.LogEntry
	for {
		entries, next, err := r.Log(ctx, id, after, page)
		if err != nil {
			return nil, after, err
		}
		for i := range entries {
			if want == nil || want(&entries[i]) {
				kept = append(kept, entries[i])
			}
		}
		after = next
		if len(entries) < page {
			return kept, after, nil
		}
	}
}

func (a *app) followLog(ctx context.Context, st store.Store, id plan.TaskID, after int64, want func(*plan.LogEntry) bool, p *logPrinter) error {
	tick := time.NewTicker(logPoll)
	defer tick.Stop()
	for {
		// The state first: what a task printed is there before its end is.
		tasks, err := st.Tasks(ctx, store.TaskQuery{IDs: []plan.TaskID{id}, Limit: 1})
		if err != nil {
			return err
		}
		var entries []plan.LogEntry
		if entries, after, err = readLog(ctx, st, id, after, want); err != nil {
			return err
		}
		p.print(entries)
		if p.err != nil || len(tasks) == 0 || tasks[0].Status.Finished() {
			return p.err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// A logPrinter writes entries as lines.
type logPrinter struct {
	w       io.Writer
	times   bool
	many    bool // say where an attempt begins
	attempt int
	open    bool // the last entry had no newline
	err     error
}

func (p *logPrinter) print(entries []plan.LogEntry) {
	var b bytes.Buffer
	for i := range entries {
		e := &entries[i]
		if p.many && e.Attempt != p.attempt {
			p.attempt = e.Attempt
			if p.open {
				b.WriteByte('\n')
			}
			fmt.Fprintf(&b, "[attempt %d]\n", e.Attempt)
			p.open = false
		}
		if p.times && !p.open {
			b.WriteString(e.At.Local().Format("2006-01-02T15:04:05.000 "))
		}
		b.WriteString(e.Text)
		p.open = !strings.HasSuffix(e.Text, "\n")
	}
	if b.Len() > 0 && p.err == nil {
		_, p.err = p.w.Write(b.Bytes())
	}
}

// lastLines returns what the last n lines are of.
func lastLines(entries []plan.LogEntry, n int) []plan.LogEntry {
	for i := len(entries) - 1; i >= 0; i-- {
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

func printLogJSON(w io.Writer, entries []plan.LogEntry) error {
	out := make([]logEntry, len(entries))
	for i, e := range entries {
		out[i] = logEntry{e.At, e.Attempt, streamWord(e.Stream), e.Text}
	}
	return printJSON(w, out)
}

// tailOf returns the last n lines of a task's last attempt, without newlines. The attempts of a task that a person retried count from 1
// again, so that only the time tells which are the last one's; the clocks of the node and the store may differ a little.
func tailOf(ctx context.Context, r store.Reader, t *plan.Task, n int) ([]string, error) {
	entries, _, err := readLog(ctx, r, t.ID, 0, func(e *plan.LogEntry) bool { return e.Attempt == t.Attempt || e.Attempt == 0 })
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	const slack = 2 * time.Second
	if i := slices.IndexFunc(entries, func(e plan.LogEntry) bool { return e.At.After(t.Started.Add(-slack)) }); i > 0 {
		entries = entries[i:]
	}
	var b strings.Builder
	for _, e := range entries {
		b.WriteString(e.Text)
	}
	lines := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	return lines[max(0, len(lines)-n):], nil
}
