package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/planfile"
	"github.com/seed-1177d267/sluice/internal/report"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

func planRun(a *app) *cobra.Command {
	s := runSettings{output: format{choice{"text", []string{"text", "json"}}}}
	cmd := &cobra.Command{
		Use:   "run {FILE | --resume PLAN}",
		Short: "Run a plan here, to its end",
		Long: "Run a plan here, to its end, and show its progress.\n" +
			"\n" +
			"The store has the plan from its first task on. If this process or the machine " +
			"dies, --resume continues the plan, and finished tasks do not run again. The first " +
			"Ctrl-C starts no more tasks, and lets running ones continue for a grace period. " +
			"The second, or Ctrl-\\, stops them at once. Other nodes on the same store may " +
			"help. FILE may be -, for standard input: then commands run in the current folder.\n" +
			"\n" +
			"Exit codes: 0 succeeded, 1 failed, 2 bad usage or a file that is not valid, 3 not " +
			"finished in time, 4 the store cannot be reached, 5 cancelled, 130 interrupted.",
		Example: "  sluice plan run plan.yaml\n  sluice plan run --help-params plan.yaml\n  sluice plan run plan.yaml --param domain=example.com --threads 16\n  sluice plan run --resume nightly",
	}
	s.flags(a, cmd)
	f := cmd.Flags()
	f.StringArrayVar(&s.params, "param", nil, "a value for a param of the plan, as `NAME=VALUE`; may be repeated")
	completeBy(cmd, "param", completeParam)
	keyFlag(cmd, &s.key, "an idempotency `KEY`: if a plan was submitted with it before, continue that plan, as --resume does")
	f.BoolVar(&s.failFast, "fail-fast", false, failFastHelp)
	helpParams := helpParamsFlag(cmd)
	f.StringVar(&s.resume, "resume", "", "continue this interrupted `PLAN`")
	f.VarP(&s.output, "output", "o", "the output: text, or json, one object per line for each change")
	completeBy(cmd, "resume", a.completePlans(unended))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *helpParams {
			values, err := pairs("--param", s.params)
			if err != nil {
				return err
			}
			return a.helpParams(args, values, &s.output)
		}
		if err := a.needsStore(cmd, "runs a node here", ", or have other nodes run it: \"sluice plan submit FILE\", then \"sluice plan wait PLAN\""); err != nil {
			return err
		}
		collectSeldom()
		if err := cmp.Or(s.check(), a.canReport(s.junit)); err != nil {
			return err
		}
		a.quiet = s.quiet
		switch {
		case len(args) == 0 && s.resume == "":
			return usagef("name the plan's file, or a plan to go on with by --resume")
		case len(args) == 1 && s.resume != "":
			return usagef("give a FILE for a new run, or --resume for an interrupted plan, not both")
		case s.resume != "" && (len(s.params) > 0 || s.failFast || s.key != ""):
			return usagef("--param, --key and --fail-fast are for new plans; leave them out with --resume")
		}
		stop, release := a.stoppable(cmd.Context(), true)
		defer release()
		outlivePipes()
		unwatch, err := a.plugInto(stop.ctx, s.programs)
		if err != nil {
			return err
		}
		defer unwatch()
		if s.resume != "" {
			return a.withStore(stop.ctx, func(st store.Store) error { return a.resumePlan(stop, st, &s) })
		}
		return a.runFile(stop, args[0], &s)
	}
	return cmd
}

func (a *app) runFile(stop stopping, path string, s *runSettings) error {
	values, err := pairs("--param", s.params)
	if err != nil {
		return err
	}
	// A pipe may never end: the first signal leaves it.
	spec, err := plugins.Within(stop.ctx, func() (*plan.Spec, error) {
		return planfile.LoadWith(path, a.noting(planfile.Options{Params: values, Check: a.checkRun}, s.failFast))
	})
	if errors.Is(err, fs.ErrNotExist) && filepath.Base(path) == path && filepath.Ext(path) == "" { // it may be a plan's name
		return usagef("%w; to continue a plan of the store: %s", err, a.command("plan", "run", "--resume", path))
	}
	if err != nil {
		return asUsage(err)
	}
	if len(a.written) > 0 {
		_, tasks, err := compiler.Compile(spec, time.Now(), func(compiler.QueueNeed) (plan.QueueID, error) { return plan.QueueID{}, nil })
		if err = cmp.Or(err, a.spareInputs(tasks)); err != nil {
			return err
		}
	}
	if err := a.canRun(spec); err != nil {
		return err
	}
	if s.failFast {
		spec.OnFailure = plan.Stop
	}
	return a.makingStore(stop.ctx, func(st store.Store) error {
		if err := cmp.Or(onlyOwnersWrite(st), a.spareDefaults(stop.ctx, st)); err != nil {
			return err
		}
		if s.key == "" && spec.Overlap != plan.OverlapSkip { // else the key says which run is meant, or the store starts none beside another
			if err := a.noteUnfinished(stop.ctx, st, spec.Source); err != nil {
				return err
			}
		}
		p, repeated, err := submit.Once(stop.ctx, st, spec, s.key, true)
		switch {
		case repeated && errors.Is(err, plan.ErrConflict):
			return err
		case repeated && err == nil:
			a.note("%s was submitted with this key before", p.Title())
			s.resume = p.ID.String()
			return a.resumePlan(stop, st, s)
		case errors.Is(err, plan.ErrPlanEnded): // a person cancelled it while it was submitted
			now, unread := st.Plan(stop.ctx, p.ID)
			if unread != nil || now.Closing != plan.ClosedByPerson {
				return a.stoppedSubmission(&p, err)
			}
			return a.runPlan(stop, st, now, s)
		case err != nil:
			if errors.Is(context.Cause(stop.ctx), errInterrupted) {
				err = fmt.Errorf("%w before all of the plan was in the store", errInterrupted)
			}
			return a.stoppedSubmission(&p, err)
		}
		a.noteQueues(stop.ctx, st, spec)
		s.anew = true
		return a.runPlan(stop, st, p, s)
	})
}

// canRun refuses a plan for plugins that this program does not have: it would wait for them for ever.
func (a *app) canRun(spec *plan.Spec) error {
	for _, plugin := range pluginsOf(spec) {
		if why := a.notBuiltIn(plugin); why != "" {
			return usagef("the plan has tasks for plugin %q, %s; nodes that have it run the plan after: sluice plan submit", plugin, why)
		}
	}
	return nil
}

// justBegun is how long a plan may be half submitted, or without a node, though the process that
// submits and runs it lives.
const justBegun = time.Second

// noteUnfinished tells of earlier runs of the same file that have not finished.
func (a *app) noteUnfinished(ctx context.Context, st store.Store, source string) error {
	if source == "" {
		return nil
	}
	unfinished, half := plan.PlanRunning, plan.PlanSubmitting
	plans, err := st.Plans(ctx, store.PlanQuery{Source: source, State: &half, Limit: 3})
	if err != nil {
		return err
	}
	for i := range plans {
		if p := &plans[i]; underSubmission(p) && time.Since(p.Created) >= justBegun { // else it is about to be ready
			a.note("this is a new run; %s of this file is not ready: %s", p.Title(), a.submission(p, time.Now()))
		}
	}
	if plans, err = st.Plans(ctx, store.PlanQuery{Source: source, State: &unfinished, Limit: 3}); err != nil || len(plans) == 0 {
		return err
	}
	nodes, err := st.Instances(ctx)
	if err != nil {
		return err
	}
	for i := range plans {
		p := &plans[i]
		if n := runsPlan(nodes, p.ID); n != nil {
			a.note("%s of this file runs just now, by node %s", p.Title(), n.Node)
			continue
		}
		if time.Since(p.Created) < justBegun { // its node is about to register
			continue
		}
		a.note("%s of this file has not finished (%s, begun %s); this is a new run; to go on with that one: %s",
			p.Title(), done(p.Counts), view.Ago(rules.Began(p), time.Now()), a.command("plan", "run", "--resume", p.Title()))
	}
	return nil
}

func (a *app) resumePlan(stop stopping, st store.Store, s *runSettings) error {
	if err := onlyOwnersWrite(st); err != nil {
		return err
	}
	ctx := stop.ctx
	p, err := findPlan(ctx, st, s.resume)
	if err == nil {
		err = a.spare(ctx, st, &p)
	}
	if err != nil {
		return err
	}
	if underSubmission(&p) {
		if p, err = a.endSubmission(ctx, st, p); err != nil {
			return err
		}
	}
	again := "to run again what did not succeed: " + report.GoOn(&p, a.command)
	if p.State == plan.PlanFailed || p.State == plan.PlanCancelled {
		r, err := a.look(ctx, st, p)
		if err == nil {
			err = errors.Join(a.tellGitHub(ctx, st, r), a.writeJUnit(ctx, st, p, s.junit))
		}
		if err != nil {
			return err
		}
		if len(r.Reacted.Undone) > 0 || r.Changed != "" {
			again = strings.Join(r.Ways(a.command), "; ")
		}
	}
	switch p.State {
	case plan.PlanSubmitting:
		return fmt.Errorf("%s is still being submitted; when all its tasks are in: %s", p.Title(), a.command("plan", "ready", p.Title()))
	case plan.PlanFailed:
		return fmt.Errorf("%s: %w; %s", p.Title(), errPlanFailed, again)
	case plan.PlanCancelled:
		if err := rules.CheckRetry(&p, p.Counts.Stored()); err != nil {
			return fmt.Errorf("%s: %w; %s", p.Title(), errPlanCancelled, a.submitAnew(&p))
		}
		return fmt.Errorf("%s: %w; %s", p.Title(), errPlanCancelled, again)
	case plan.PlanAbandoned:
		return fmt.Errorf("%s was not submitted completely; %s", p.Title(), a.submitAnew(&p))
	case plan.PlanRunning:
		if err := errors.Join(a.noteEdited(ctx, st, &p), a.checkStored(ctx, st, &p, nil)); err != nil {
			return err
		}
	}
	return a.runStored(stop, st, p, s)
}
