package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/report"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
)

type retrySettings struct {
	downstream *bool
	dryRun     *bool
	with       *string // nil where a command has no such flag
	params     map[string]string
	output     *format
	items      bool                               // lists are compared with the items that there are
	quiet      bool                               // the run prints only failures
	changed    []string                           // what is to be said of params that are others now
	reacted    []string                           // what is to be said of tasks that are kept although they ran because others failed
	below      string                             // the command that also runs what is kept below; "": there is none
	run        func(store.Store, plan.Plan) error // what runs the plan after; nil: any node does
}

func retryFlags(cmd *cobra.Command) retrySettings {
	return retrySettings{
		downstream: cmd.Flags().Bool("downstream", false, "also run all tasks below, even if they succeeded"),
		dryRun:     cmd.Flags().Bool("dry-run", false, "only show what would run"),
		output:     outputFlag(cmd),
	}
}

func planRetry(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "retry PLAN [TASK…]",
		Short: "Retry the tasks that did not succeed",
		Long: "Retry the tasks that did not succeed, or only the tasks you name. Skipped and " +
			"cancelled tasks below them run too. Tasks that succeeded are kept, with their " +
			"outputs. A task below whose when is not all_succeeded is decided again, such as a " +
			"clean-up or a mail about a failure. The command first shows what will run.\n" +
			"\n" +
			"With --with, the tasks that run again take their definition from the file. Params " +
			"keep the plan's values, unless --param gives another.\n" +
			"\n" +
			"With --items, the tasks run again that print lists of items, and this machine reads " +
			"the files of lines and glob. Then the lists are compared with the items: those that " +
			"are still there keep their results, new ones run, and those that are gone are " +
			"skipped. If any come or go, the tasks below run again. Name tasks with items to " +
			"compare only their lists, and those that follow from them. The command waits for " +
			"the tasks that make lists. If it is interrupted, give it again.\n" +
			"\n" + planHelp,
		Example: "  sluice plan retry nightly --dry-run\n  sluice plan retry nightly --run\n  sluice plan retry nightly 'copy[3]'\n  sluice plan retry nightly --with mended.yaml\n" +
			"  sluice plan retry nightly --with nightly.yaml --param level=1 --run\n  sluice plan retry nightly --items --run",
	}
	s := retryFlags(cmd)
	s.with = cmd.Flags().String("with", "", "take the tasks from this `FILE`, which may change only tasks that have not succeeded")
	cmd.Flags().BoolVar(&s.items, "items", false, "read the lists of items again, and run what is new in them")
	params := cmd.Flags().StringArray("param", nil, "with --with, another value for a param of the plan, as `NAME=VALUE`; may be repeated")
	completeBy(cmd, "param", completeParam)
	run := cmd.Flags().Bool("run", false, "then run it here, to its end, as \"sluice plan run --resume\" does, with its flags "+
		"and exit codes")
	how := runSettings{output: format{choice{value: "text"}}}
	how.flags(a, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if s.output.json() {
			how.output.value = "json"
		}
		if err := how.check(); err != nil {
			return err
		}
		if *run {
			if err := a.needsStore(cmd, "--run runs a node here", ", or leave --run out, and wait with \"sluice plan wait PLAN\""); err != nil {
				return err
			}
		}
		var err error
		if s.params, err = pairs("--param", *params); err != nil {
			return err
		}
		if len(s.params) > 0 && *s.with == "" {
			return usagef("--param changes a param of the plan, and its file says which tasks that changes: add --with FILE")
		}
		for _, flag := range []string{"threads", "timeout", "grace", "quiet", "logs", "junit", "plugin-dir", "allow-net"} {
			if cmd.Flags().Changed(flag) && !*run {
				return usagef("--%s says how it is run: add --run", flag)
			}
		}
		if s.items && *s.downstream {
			return usagef("--items keeps the results of the items that are still there, and --downstream keeps none: leave one out")
		}
		if *run && *s.dryRun {
			return usagef("--dry-run only shows what --run would do: leave one out")
		}
		ctx := cmd.Context()
		if *run {
			if err := a.canReport(how.junit); err != nil {
				return err
			}
			stop, release := a.stoppable(ctx, true)
			defer release()
			outlivePipes()
			ctx = stop.ctx
			unwatch, err := a.plugInto(ctx, how.programs)
			if err != nil {
				return err
			}
			defer unwatch()
			s.quiet, a.quiet = how.quiet, how.quiet
			s.run = func(st store.Store, p plan.Plan) error { return a.runStored(stop, st, p, &how) }
		}
		return a.withPlan(ctx, args[0], func(st store.Store, p plan.Plan) error {
			if *run {
				if err := onlyOwnersWrite(st); err != nil {
					return err
				}
			}
			var chosen []plan.TaskID
			for _, word := range args[1:] {
				t, err := findTaskOf(ctx, st, p, word)
				if err != nil {
					return err
				}
				chosen = append(chosen, t.ID)
			}
			if s.items {
				return a.retryItems(ctx, st, p, chosen, s)
			}
			return a.retry(ctx, st, p, chosen, s)
		})
	}
	return cmd
}

// retry shows what a retry of the chosen tasks of a plan (none: all that did not succeed) runs again, and does it.
func (a *app) retry(ctx context.Context, st store.Store, p plan.Plan, chosen []plan.TaskID, s retrySettings) error {
	if err := a.mayRetry(ctx, st, &p); err != nil {
		return err
	}
	edited := s.with != nil && !s.replaces() && lasts(p.Source) && (touched(&p) || p.Edits > 0)
	tasks, err := store.AllTasks(ctx, st, store.TaskQuery{Plan: p.ID, Needs: true, Params: s.replaces() || edited})
	if err != nil {
		return err
	}
	selected, err := rules.SelectRetry(tasks, chosen, *s.downstream)
	if errors.Is(err, rules.ErrOnlyAllowed) {
		err = fmt.Errorf("%w: %s", err, a.retryOf(&p, allowed(tasks), s.flags(&replacement{})...))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("retry %s: %w", p.Title(), err), a.noteUnserved(ctx, st, &p, nil))
	}
	again := taken(selected)
	change := &replacement{}
	if s.replaces() || edited {
		if change, err = a.readRetried(ctx, st, &p, tasks, selected, &s); err != nil {
			return err
		}
		s.changed = change.lines
	}
	foreseen := rules.Foresee(tasks, selected)
	reacted := reaction(&foreseen)
	reacted.Below = *s.downstream
	for i := range tasks {
		if slices.Contains(chosen, tasks[i].ID) {
			reacted.Chosen = append(reacted.Chosen, tasks[i].Key())
		}
	}
	flags := s.flags(change)
	s.reacted = report.Again(&p, reacted, a.command, flags...)
	s.below = a.retryOf(&p, reacted.Chosen, append([]string{"--downstream"}, flags...)...)
	if s.run != nil {
		if err := a.checkRetried(ctx, st, &p, again, change.tasks); err != nil {
			return err
		}
	}
	err = a.printRetried(ctx, st, &foreseen, change.tasks, s)
	if s.run != nil && view.Lost(err) {
		err = nil // it is run for its own sake, as by plan run
	}
	if err != nil || *s.dryRun {
		return err
	}
	ask := rules.Ask{Tasks: chosen, Downstream: *s.downstream, Replace: change.tasks, Params: change.params, Choices: change.choices, Timeout: change.timeout}
	if _, err := st.Retry(ctx, p.ID, ask); err != nil {
		return fmt.Errorf("retry %s: %w", p.Title(), err)
	}
	if p, err = st.Plan(ctx, p.ID); err != nil {
		return err
	}
	if s.run != nil {
		return s.run(st, p)
	}
	return a.noteUnserved(ctx, st, &p, nil)
}

// retryOf returns the command that retries tasks of a plan; without any, what did not succeed.
func (a *app) retryOf(p *plan.Plan, names []string, flags ...string) string {
	return a.command(slices.Concat([]string{"plan", "retry", p.Title()}, names, flags)...)
}

// allowed names what failed as the plan allows. If several items of a task did, it names the task.
func allowed(tasks []plan.Task) (names []string) {
	items := map[plan.TaskID]int{}
	for i := range tasks {
		if tasks[i].Allowed() {
			items[tasks[i].Of]++
		}
	}
	for i := range tasks {
		t := &tasks[i]
		if t.Allowed() && (t.Of.IsZero() || items[t.Of] == 1) || items[t.ID] > 1 {
			names = append(names, t.Key())
		}
	}
	return report.Few(names)
}

// mayRetry refuses to retry a plan of which nothing has run, or that is not to run again now, whatever is chosen of it.
func (a *app) mayRetry(ctx context.Context, st store.Store, p *plan.Plan) error {
	if p.State == plan.PlanSubmitting || p.State == plan.PlanAbandoned {
		return fmt.Errorf("%s is %s: nothing of it has run", p.Title(), p.State)
	}
	if err := rules.CheckRetry(p, p.Counts.Stored()); err != nil {
		return err
	}
	if active := p.Counts.Claimed + p.Counts.Running; p.Closing.Stops() && active > 0 {
		return fmt.Errorf("%s is still stopping %s; wait before you retry: %s",
			p.Title(), view.Number(active, "task"), a.command("plan", "wait", p.Title()))
	}
	if p.State.Ended() {
		if err := submit.CheckOverlap(ctx, st, p); err != nil {
			return fmt.Errorf("retry %s: %w", p.Title(), err)
		}
	}
	return nil
}

// replaces reports whether the tasks are to be taken from a file.
func (s *retrySettings) replaces() bool { return s.with != nil && *s.with != "" }

// flags returns the flags of a command that asks for the same retry, without secrets.
func (s *retrySettings) flags(change *replacement) (flags []string) {
	if s.replaces() {
		flags = append(flags, "--with", *s.with)
		for _, name := range slices.Sorted(maps.Keys(s.params)) {
			value := s.params[name]
			if change.secrets.Named(name) {
				value = "VALUE"
			}
			flags = append(flags, "--param", name+"="+value)
		}
	}
	if s.run != nil {
		flags = append(flags, "--run")
	}
	return flags
}

// readRetried reads the file that the tasks are to be taken from, and returns what that changes. Without one it says so where the file that the
// plan came from has other tasks by now, and changes nothing.
func (a *app) readRetried(ctx context.Context, st store.Store, p *plan.Plan, tasks []plan.Task, selected []rules.Retried, s *retrySettings) (*replacement, error) {
	whole, stored, err := unhidden(ctx, st, p)
	if err == nil && whole != st {
		tasks, err = tasksOf(ctx, whole, p)
	}
	if err != nil {
		return nil, err
	}
	if !s.replaces() {
		return &replacement{}, a.noteChanged(ctx, whole, stored, tasks, selected, s.flags(&replacement{})...)
	}
	file, err := a.readReplacing(ctx, whole, stored, tasks, *s.with, s.params)
	if err != nil {
		return nil, err
	}
	change, err := file.replacements(selected, false, false)
	if err != nil {
		return nil, err
	}
	if change.stays != "" {
		a.note("%s", change.stays)
	}
	return change, nil
}

// checkRetried says whether this program can run what a retry leaves to be run, as replace has it, and what else has not finished.
func (a *app) checkRetried(ctx context.Context, st store.Store, p *plan.Plan, again map[plan.TaskID]bool, replace []plan.Task) error {
	changed := map[plan.TaskID]*plan.Task{}
	for i := range replace {
		changed[replace[i].ID] = &replace[i]
	}
	return a.checkStored(ctx, st, p, func(t *plan.Task) *plan.Task {
		switch {
		case changed[t.ID] != nil:
			return changed[t.ID]
		case again[t.ID] || !t.Status.Finished():
			return t
		}
		return nil
	})
}

// retryPlain runs a task of no plan again.
func (a *app) retryPlain(ctx context.Context, st store.Store, t plan.Task, s retrySettings) error {
	selected, err := rules.SelectRetry([]plan.Task{t}, []plan.TaskID{t.ID}, *s.downstream)
	if err != nil {
		return err
	}
	foreseen := rules.Foresee([]plan.Task{t}, selected)
	if !*s.dryRun {
		if _, err := st.Retry(ctx, plan.PlanID{}, rules.Ask{Tasks: []plan.TaskID{t.ID}, Downstream: *s.downstream}); err != nil {
			return err
		}
	}
	return a.printRetried(ctx, st, &foreseen, nil, s)
}
