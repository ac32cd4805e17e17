package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/duration"
	"github.com/seed-1177d267/sluice/internal/explain"
	"github.com/seed-1177d267/sluice/internal/report"
	"github.com/seed-1177d267/sluice/internal/states"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// logPoll is how often a log that is followed is read. Its task's state is read with it.
const logPoll = 200 * time.Millisecond

func taskLogs(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "logs {PLAN TASK | ID}",
		Short: "Print the log of a task",
		Long: "Print the log of a task: its standard output, its standard error, and lines of " +
			"Sluice. Each stream is in order. Lines of the two streams that come at the same " +
			"time may be in any order; if that matters, end the command with 2>&1. If there " +
			"are several attempts, a line in brackets begins each. The log keeps the first and " +
			"the last 512 KiB of a command's attempt; the last half appears when the attempt " +
			"has ended.\n" +
			"\n" +
			"For a task that another program ran, such as Disbatch, the command prints its " +
			"standard output, then its standard error: the first and the last 512 KiB of each. " +
			"If there is no output, it prints that of the task runner itself. --stdout and " +
			"--stderr print only that stream. They print all of it for tasks of no plan and " +
			"for tasks of other programs, because the store keeps these streams beside the " +
			"log.\n" +
			"\n" +
			"For a foreach task, the command prints the logs of its items, each line behind " +
			"the name of its item.\n" +
			"\n" +
			"With --server, --follow waits up to a minute for a server that does not answer, " +
			"for example during a restart.\n" +
			"\n" + taskHelp,
		Example: "  sluice task logs nightly 'copy[3]'\n  sluice task logs -f nightly copy\n  sluice task logs nightly copy --attempt -1\n  sluice task logs --stdout 571fac85ee63413233049fbd > all-of-it",
	}
	var s logSettings
	s.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := s.check(cmd); err != nil {
			return err
		}
		ctx := cmd.Context()
		return a.withTask(ctx, args, func(st store.Store, t plan.Task) error {
			if s.follow {
				ctx = a.patient(ctx, nil)
			}
			switch {
			case (t.Items > 0 || s.follow && t.Foreach != nil) && !s.output.json():
				return a.printItemLogs(ctx, st, &t, s)
			case s.stdout:
				return a.printStream(ctx, st, &t, plan.Stdout)
			case s.stderr:
				return a.printStream(ctx, st, &t, plan.Stderr)
			}
			return a.printLog(ctx, st, &t, s)
		})
	}
	return cmd
}

// logSettings are what of a log is printed, and how.
type logSettings struct {
	output                                    *format
	follow, times, stdout, stderr, withRunner bool
	since                                     time.Duration
	tail, attempt                             int
}

func (s *logSettings) flags(cmd *cobra.Command) {
	s.output = outputFlag(cmd)
	f := cmd.Flags()
	f.BoolVarP(&s.follow, "follow", "f", false, "continue until the task has ended")
	spanFlag(cmd, &s.since, "since", 0, "only what was printed within the last while, as in 10m")
	numberFlag(cmd, &s.tail, "tail", "", -1, "only the last so many lines")
	numberFlag(cmd, &s.attempt, "attempt", "", 0, "only of this attempt, counted since the task was last retried; -1: only of the last one")
	f.BoolVar(&s.times, "timestamps", false, "begin each line with its local time")
	f.BoolVar(&s.stdout, "stdout", false, "only its standard output; all of it if the store keeps it beside the log")
	f.BoolVar(&s.stderr, "stderr", false, "only its standard error, as --stdout")
	f.BoolVar(&s.withRunner, "runner", false, "also the output of another program's task runner itself")
}

// check refuses flags that do not go together, or values that they do not take.
func (s *logSettings) check(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	switch {
	case s.stdout || s.stderr:
		for _, other := range []string{"follow", "since", "tail", "attempt", "timestamps", "runner", "output"} {
			if given(other) {
				return usagef("--%s: --stdout and --stderr print all of one stream as it is; leave one of them out", other)
			}
		}
		if s.stdout && s.stderr {
			return usagef("--stdout and --stderr: give one of them")
		}
	case s.follow && s.output.json():
		return usagef("--follow prints lines; leave --output json out")
	case given("tail") && s.tail < 0:
		return usagef("--tail %d: it is a number of lines, from 0 on", s.tail)
	case s.attempt < -1 || s.attempt == 0 && given("attempt"):
		return usagef("--attempt %d: attempts count from 1; -1 is the last one", s.attempt)
	}
	return nil
}

// printLog prints of a task's log what is wanted, and says what else there is to say of it.
func (a *app) printLog(ctx context.Context, st store.Store, t *plan.Task, s logSettings) error {
	if s.attempt > t.Attempt && t.Attempt > 0 && (t.Status.Finished() || !s.follow) {
		return usagef("--attempt %d: %s has had %s since it was last retried", s.attempt, t.Key(), view.Number(t.Attempt, "attempt"))
	}
	if s.attempt < 0 {
		s.attempt = t.Attempt // if it has none yet, all there is
	}
	entries, cursor, foreign, err := a.wantedLog(ctx, st, t, &s)
	if err != nil {
		return err
	}
	if s.output.json() {
		return view.JSON(a.Stdout, api.Each(entries, api.LogEntryOf))
	}
	tries := view.Tries(entries, t)
	p := view.Log{
		W: a.Stdout, Printed: s.tail == 0, Tame: view.IsTerminal(a.Stdout), Times: s.times, One: s.attempt != 0, Many: t.Attempt > 1 || len(tries) > 1,
	}
	for i := range tries {
		p.Begin(&tries[i])
		p.Print(tries[i].Entries)
	}
	where := ""
	switch {
	case s.attempt > 0:
		where = fmt.Sprintf(" in attempt %d", s.attempt)
	case s.since > 0:
		where = " in the last " + duration.Text(s.since)
	}
	switch {
	case s.follow:
		p.Foreign = foreign
		return a.followLog(ctx, st, t, cursor, s.attempt, &p, where)
	case !p.Printed:
		return a.noteSilence(ctx, st, t, where)
	}
	a.noteLoss(t)
	return p.Err
}

// wantedLog reads the wanted part of a task's log, and the cursor after all of it. foreign says
// that another program left some of it; people are told so.
func (a *app) wantedLog(ctx context.Context, st store.Store, t *plan.Task, s *logSettings) (entries []plan.LogEntry, cursor int64, foreign bool, err error) {
	from := time.Time{}
	if s.since > 0 {
		from = time.Now().Add(-s.since)
	}
	if entries, cursor, err = readLog(ctx, st, t.ID, 0); err != nil {
		return nil, 0, false, err
	}
	entries, left, err := shownLog(ctx, st, t, entries)
	if err != nil {
		return nil, 0, false, err
	}
	if len(left) > 0 && !s.output.json() {
		hidden := 0
		if !s.withRunner {
			entries, hidden = withoutRunner(entries, t.Attempt)
		}
		a.noteForeign(t, left, hidden)
	}
	if s.attempt > 0 {
		entries = view.OfAttempt(view.Tries(entries, t), s.attempt)
	}
	entries = slices.DeleteFunc(entries, func(e plan.LogEntry) bool { return e.At.Before(from) })
	if s.tail >= 0 {
		entries = view.LastLines(entries, s.tail)
	}
	return entries, cursor, len(left) > 0, nil
}

// noteSilence says why a task's log is empty: the state of the task or its end, with the reason of
// "plan explain". where names the wanted part of the log, if not all.
func (a *app) noteSilence(ctx context.Context, st store.Store, t *plan.Task, where string) error {
	values, err := itemValues(ctx, st, []plan.Task{*t})
	if err != nil {
		return err
	}
	links, err := explain.Task(ctx, st, t.ID)
	if err != nil {
		return err
	}
	silent := "it has printed nothing yet"
	switch {
	case t.Attempt == 0:
		silent, where = "it has not run", ""
	case t.Status.Finished():
		silent = "it printed nothing"
	}
	a.note("%s is %s: %s; %s%s", values.label(t, a.ellipsis()), states.OfTask(t), links[0].Why, silent, where)
	return nil
}

// noteLoss notes what a task's log does not have: that the task was stopped, or lost, while it
// printed.
func (a *app) noteLoss(t *plan.Task) {
	switch {
	case view.Broken(t.Status) && t.Reason != plan.ReasonNone && t.Reason != plan.ReasonItems:
		a.note("%s is %s", t.Key(), report.How(t))
	case t.Rescues > 0:
		a.note("%s was lost with its node or its output, %s: some of what it printed may be missing", t.Key(), view.Number(t.Rescues, "time"))
	}
}

func (a *app) followLog(ctx context.Context, st store.Store, t *plan.Task, after int64, attempt int, p *view.Log, where string) error {
	tick := time.NewTicker(pollOf(st, logPoll))
	defer tick.Stop()
	for {
		// The state first: what a task printed is there before its end is.
		tasks, err := st.Tasks(ctx, store.TaskQuery{IDs: []plan.TaskID{t.ID}, Limit: 1})
		if err != nil {
			return err
		}
		var entries []plan.LogEntry
		if entries, after, err = readLog(ctx, st, t.ID, after); err != nil {
			return err
		}
		p.Print(slices.DeleteFunc(entries, func(e plan.LogEntry) bool { return attempt != 0 && e.Attempt != attempt }))
		if p.Err != nil || len(tasks) == 0 {
			return p.Err
		}
		if tasks[0].Status.Finished() {
			if !p.Own && !p.Foreign && (attempt == 0 || attempt == tasks[0].Attempt) {
				if entries, err = printedBy(ctx, st, &tasks[0]); err != nil {
					return err
				}
				if len(entries) > 0 {
					a.noteForeign(&tasks[0], entries, 0)
					p.Print(entries)
				}
			}
			if !p.Printed {
				return a.noteSilence(ctx, st, &tasks[0], where)
			}
			a.noteLoss(&tasks[0])
			return p.Err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// tailOf returns the last n lines of a task's last attempt, without newlines.
func tailOf(ctx context.Context, r store.Reader, t *plan.Task, n int) ([]string, error) {
	tries, err := triesOf(ctx, r, t)
	if err != nil || len(tries) == 0 || tries[len(tries)-1].Number != t.Attempt {
		return nil, err
	}
	return lastOf(tries[len(tries)-1].Entries, n), nil
}

// earlierOf returns the last n lines of each attempt of a task before its last one, since a person last
// retried it. It returns none of a task that lost attempts with their nodes: the log does not count these.
func earlierOf(ctx context.Context, r store.Reader, t *plan.Task, n int) (earlier [][]string, err error) {
	if t.Rescues > 0 {
		return nil, nil
	}
	tries, err := triesOf(ctx, r, t)
	if err != nil {
		return nil, err
	}
	for _, try := range tries {
		if try.Again {
			earlier = nil
		}
		if try.Number > 0 && try.Number < t.Attempt {
			earlier = append(earlier, lastOf(try.Entries, n))
		}
	}
	return earlier, nil
}

// triesOf returns the attempts of a task with what they printed.
func triesOf(ctx context.Context, r store.Reader, t *plan.Task) ([]view.Try, error) {
	entries, _, err := readLog(ctx, r, t.ID, 0)
	if err != nil {
		return nil, err
	}
	entries, left, err := shownLog(ctx, r, t, entries)
	if len(left) > 0 {
		entries, _ = withoutRunner(entries, t.Attempt)
	}
	return view.Tries(entries, t), err
}

// lastOf returns the last n lines of what was printed.
func lastOf(entries []plan.LogEntry, n int) []string {
	lines := linesOf(entries)
	return lines[max(0, len(lines)-n):]
}
