package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/explain"
	"github.com/seed-1177d267/sluice/internal/forsaken"
	"github.com/seed-1177d267/sluice/internal/planfile"
	"github.com/seed-1177d267/sluice/internal/report"
	"github.com/seed-1177d267/sluice/internal/runner"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/hiding"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// grace is how long running tasks may go on after the first Ctrl-C.
const grace = 10 * time.Second

// afterGrace says what comes then.
var afterGrace = fmt.Sprintf("a command then gets SIGTERM, and SIGKILL %v later", runner.DefaultGrace)

func cpus() int { return runtime.GOMAXPROCS(0) }

const failFastHelp = "start nothing more once a task has failed, clean-ups neither; to run one then: sluice plan retry PLAN TASK --run"

// atLeast is the grace that a node is given: none at all is as good as none, but would be what it takes by itself.
func atLeast(grace time.Duration) time.Duration { return max(grace, time.Nanosecond) }

// runSettings are how a plan is run.
type runSettings struct {
	threads  int
	params   []string
	timeout  time.Duration
	grace    time.Duration
	failFast bool
	junit    string
	resume   string
	anew     bool // the plan was just submitted
	quiet    bool
	logs     choice
	progress choice
	output   choice
	programs []string // folders
	web      string   // address of the pages; "": there are none
}

// flags gives a command those flags that say how its node runs a plan.
func (s *runSettings) flags(cmd *cobra.Command) {
	threadsFlag(cmd, &s.threads)
	spanFlag(cmd, &s.timeout, "timeout", 0, "stop after so long; the plan can be resumed")
	spanFlag(cmd, &s.grace, "grace", grace, "how long what runs may go on after the first Ctrl-C; "+afterGrace)
	pluginDirFlag(cmd, &s.programs)
	cmd.Flags().StringVar(&s.web, "web", "", "serve the pages while it runs, to this host only, on this `ADDRESS` (default, with --web alone: any port that is free)")
	cmd.Flags().Lookup("web").NoOptDefVal = "127.0.0.1:0"
	s.logs = logsChoice()
	cmd.Flags().Var(&s.logs, "logs", "what to show of what tasks print: the last lines of those that failed, all of each when it ends, or none")
	s.progress = choice{progressSome, []string{progressSome, progressEach}}
	cmd.Flags().Var(&s.progress, "progress", "which ends have a line in a log: of a plan of more than 20 tasks some (failures and retries, beside how far it is every 10s or 5%), or each")
	cmd.Flags().BoolVarP(&s.quiet, "quiet", "q", false, "print nothing if nothing fails, as a cron job should; else what failed, and how to go on")
	cmd.Flags().StringVar(&s.junit, "junit", "", "write how it went to this `FILE`, as JUnit XML")
}

// How much of what goes well a run tells in a log.
const (
	progressSome = "some"
	progressEach = "each"
)

// check refuses what those flags cannot mean, and fills in what was not given.
func (s *runSettings) check() error {
	if err := checkThreads(s.threads); err != nil {
		return err
	}
	if s.logs.value != logsFailed && s.output.value == "json" {
		return usagef("--logs shows what tasks print to people, and --output json has it not: leave one out")
	}
	if s.quiet && (s.logs.value == logsAll || s.output.value == "json") {
		return usagef("--quiet prints nothing of what goes well, and --logs all and --output json print all of it: leave one out")
	}
	return canWrite("junit", s.junit)
}

func planRun(a *app) *cobra.Command {
	s := runSettings{output: choice{"text", []string{"text", "json"}}}
	cmd := &cobra.Command{
		Use:   "run {FILE | --resume PLAN}",
		Short: "Run a plan here, to its end",
		Long: "Run a plan here, to its end, and show how it goes.\n\n" +
			"The plan is in the store from its first task on, so whatever happens to this process, or to the machine, --resume goes on where it\n" +
			"stopped: what has finished does not run again. The first Ctrl-C starts nothing more and lets what runs go on for a while; the second,\n" +
			"or Ctrl-\\, stops it at once. Other nodes on the same store may help.\n\n" +
			"Exit codes: 0 succeeded, 1 failed, 2 bad usage or a file that is not valid, 3 not finished in time, 4 the store cannot be reached,\n" +
			"5 cancelled, 130 interrupted.",
		Example: "  sluice plan run plan.yaml\n  sluice plan run plan.yaml --param domain=example.com --threads 16\n  sluice plan run --resume nightly",
		Args:    between(0, 1),
	}
	s.flags(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&s.params, "param", nil, "a value for a param of the plan, as `NAME=VALUE`; repeat it for more")
	f.BoolVar(&s.failFast, "fail-fast", false, failFastHelp)
	f.StringVar(&s.resume, "resume", "", "go on with this `PLAN`, which was interrupted")
	f.VarP(&s.output, "output", "o", "what to print: text, or json, an object a line for each change")
	completeBy(cmd, "resume", a.completePlans(unended))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := a.needsStore(cmd, "runs a node here", ", or have other nodes run it: \"sluice plan submit FILE\", then \"sluice plan wait PLAN\""); err != nil {
			return err
		}
		if err := s.check(); err != nil {
			return err
		}
		switch {
		case len(args) == 0 && s.resume == "":
			return usagef("name the plan's file, or a plan to go on with by --resume")
		case len(args) == 1 && s.resume != "":
			return usagef("give a FILE to run it anew, or --resume to go on with a plan that was interrupted, not both")
		case s.resume != "" && (len(s.params) > 0 || s.failFast):
			return usagef("--param and --fail-fast say how a plan begins; leave them out with --resume")
		}
		stop, release := a.interruptible(cmd.Context())
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

// stopping is how a person stops a command that runs tasks: ctx ends with the first signal, again is closed by the second.
type stopping struct {
	ctx   context.Context
	again <-chan struct{}
}

// interruptible lets Ctrl-C, SIGTERM and SIGHUP stop what runs. A third signal kills the process, as the first one does without this. Call
// release when nothing runs any more.
//
// A terminal that is closed sends SIGHUP, and the shell in it may send another: it is good for the first signal, and never for the
// second. One that the process was started to ignore, as by nohup, stays ignored. SIGQUIT (Ctrl-\) is both at once.
func (a *app) interruptible(parent context.Context) (s stopping, release func()) {
	return a.stoppable(parent, true)
}

// stoppable is interruptible for who has a meaning of its own for SIGHUP: then hangup is false.
func (a *app) stoppable(parent context.Context, hangup bool) (s stopping, release func()) {
	ctx, cancel := context.WithCancelCause(parent)
	again, over := make(chan struct{}), make(chan struct{})
	signals, hangups := make(chan os.Signal, 2), make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if hangup && !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(hangups, syscall.SIGHUP) // to the end of the process, which the second one is not to kill either
	}
	quits := a.quit.heed()
	var wg sync.WaitGroup
	wg.Go(func() {
		defer a.quit.leave()
		defer signal.Stop(signals)
		first := hangups
		for _, act := range []func(){func() { cancel(errInterrupted) }, func() { close(again) }} {
			select {
			case <-signals:
			case <-first:
			case <-quits:
				cancel(errInterrupted)
				close(again)
				return
			case <-over:
				return
			}
			act()
			first = nil
		}
	})
	return stopping{ctx, again}, func() {
		close(over)
		wg.Wait()
		cancel(nil)
	}
}

// outlivePipes lets the process go on when whoever read what it prints is gone, as tee is after Ctrl-C: what runs is to have its grace, and
// a run is not over because of "head -1". From then on a write to such a pipe fails, as one to a full disk does. Commands are not affected,
// as they would be if the signal was ignored. It lasts as long as the process, whose last words may go to that pipe too.
func outlivePipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

func (a *app) runFile(stop stopping, path string, s *runSettings) error {
	values, err := pairs("--param", s.params)
	if err != nil {
		return err
	}
	// A pipe may never end: the first signal leaves it.
	spec, err := plugins.Within(stop.ctx, func() (*plan.Spec, error) {
		return planfile.LoadWith(path, a.noting(planfile.Options{Params: values, Check: a.checkSpec}, s.failFast))
	})
	if errors.Is(err, fs.ErrNotExist) && filepath.Base(path) == path && filepath.Ext(path) == "" { // it may be a plan's name
		return usagef("%w; a plan that is in the store goes on with: %s", err, a.command("plan", "run", "--resume", path))
	}
	if err != nil {
		return asUsage(err)
	}
	if err := a.canRun(spec); err != nil {
		return err
	}
	if s.failFast {
		spec.OnFailure = plan.Stop
	}
	return a.makingStore(stop.ctx, func(st store.Store) error {
		if err := onlyOwnersWrite(st); err != nil {
			return err
		}
		if err := a.noteUnfinished(stop.ctx, st, spec.Source); err != nil {
			return err
		}
		p, err := submit.Submit(stop.ctx, st, spec, true)
		if err != nil {
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

// justBegun is how long after its submission a plan may be without a node, though one that runs it has started.
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
		if p := &plans[i]; underSubmission(p) {
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
			p.Title(), done(p.Counts), view.Ago(p.Created, time.Now()), a.command("plan", "run", "--resume", p.Title()))
	}
	return nil
}

// runsPlan returns the live node that runs this plan only.
func runsPlan(nodes []plan.Instance, p plan.PlanID) *plan.Instance {
	for i := range nodes {
		if nodes[i].Plan == p && explain.Alive(nodes[i]) {
			return &nodes[i]
		}
	}
	return nil
}

func (a *app) resumePlan(stop stopping, st store.Store, s *runSettings) error {
	if err := onlyOwnersWrite(st); err != nil {
		return err
	}
	ctx := stop.ctx
	p, err := findPlan(ctx, st, s.resume)
	if err != nil {
		return err
	}
	if underSubmission(&p) {
		if p, err = a.endSubmission(ctx, st, p); err != nil {
			return err
		}
	}
	again := "to run again what did not succeed: " + report.GoOn(&p, a.command)
	reaction, err := reactedStored(ctx, st, &p)
	if err != nil {
		return err
	}
	if len(reaction.Undone) > 0 {
		again = strings.Join((&report.Run{Plan: p, Reacted: reaction}).Ways(a.command), "; ")
	}
	switch p.State {
	case plan.PlanSubmitting:
		return fmt.Errorf("%s is still being submitted; when all its tasks are in: %s", p.Title(), a.command("plan", "ready", p.Title()))
	case plan.PlanFailed:
		return fmt.Errorf("%s: %w; %s", p.Title(), errPlanFailed, again)
	case plan.PlanCancelled:
		if err := p.CheckRetry(p.Counts.Total()); err != nil {
			return fmt.Errorf("%s: %w; %s", p.Title(), errPlanCancelled, a.submitAnew(&p))
		}
		return fmt.Errorf("%s: %w; %s", p.Title(), errPlanCancelled, again)
	case plan.PlanAbandoned:
		return fmt.Errorf("%s was never submitted to its end; %s", p.Title(), a.submitAnew(&p))
	case plan.PlanRunning:
		if err := errors.Join(a.noteEdited(ctx, st, &p), a.checkStored(ctx, st, &p, nil)); err != nil {
			return err
		}
	}
	return a.runStored(stop, st, p, s)
}

// runStored runs what is left of a plan that is in the store.
func (a *app) runStored(stop stopping, st store.Store, p plan.Plan, s *runSettings) error {
	ctx := stop.ctx
	if p.State == plan.PlanSucceeded {
		a.note("%s has succeeded already: nothing is left to run", p.Title())
		return a.conclude(ctx, st, p, s, nil, nil)
	}
	nodes, err := st.Instances(ctx)
	if err != nil {
		return err
	}
	if n := runsPlan(nodes, p.ID); n != nil {
		a.note("node %s runs %s too; they share its tasks", n.Node, p.Title())
	}
	if err := st.Adopt(ctx, p.ID); err != nil {
		return err
	}
	return a.runPlan(stop, st, p, s)
}

// runPlan runs a plan that is in the store to its end, in a node of its own, and shows it.
func (a *app) runPlan(stop stopping, st store.Store, p plan.Plan, s *runSettings) (failed error) {
	ctx := context.WithoutCancel(stop.ctx) // what is shown, and said at the end, goes on after Ctrl-C
	host, name, err := forsaken.Name()
	if err != nil {
		return err
	}
	w, err := a.newWatcher(ctx, st, p, s, name)
	if err != nil {
		return goOnBy(fmt.Errorf("%w; nothing of %s runs yet", err, p.Title()), a.command(explain.Resume(&p)...))
	}
	log := slog.New(&noteHandler{notes: w.notes})
	observer, beside, err := a.besideRun(ctx, st, p.ID, s.web, log)
	if err != nil {
		return err
	}
	defer func() { failed = errors.Join(failed, beside()) }()
	node, err := den.New(hiding.Of(st), den.Config{
		Plugins: a.Plugins, Name: name, Host: host, Linger: runner.GuardGrace,
		Threads: s.threads, Plan: p.ID, Grace: atLeast(s.grace), Version: a.version().Version, Logger: log, Observer: observer,
	})
	if err != nil {
		return err
	}
	claiming, noMore := context.WithCancelCause(stop.ctx)
	defer noMore(nil)
	w.ending = claiming.Done()
	done := make(chan struct{})
	var wg sync.WaitGroup
	var ran error
	wg.Go(func() {
		defer close(done)
		ran = node.Run(claiming)
	})
	wg.Go(func() { a.control(stop, node, noMore, w.notes, done, s) })
	watched := w.watch(ctx, done)
	wg.Wait()
	if ran != nil {
		return goOnBy(fmt.Errorf("run %s: %w", p.Title(), ran), a.command("plan", "run", "--resume", p.Title()))
	}
	if p, err = planAfter(ctx, st, p); err != nil {
		return errors.Join(watched, err)
	}
	var cause error
	if !p.State.Ended() {
		cause = context.Cause(claiming)
	}
	return errors.Join(a.conclude(ctx, st, p, s, w, cause), watched)
}

// goOnBy adds to why a plan was left the command that goes on with it, if the plan is anywhere.
func goOnBy(err error, command string) error {
	if errors.Is(err, plan.ErrStoreGone) {
		return err
	}
	return fmt.Errorf("%w; to go on with it: %s", err, command)
}

// control stops the node when it is time: at a signal after the grace, at the second signal or the end of the run's time at once.
func (a *app) control(stop stopping, node *den.Node, noMore context.CancelCauseFunc, notes chan<- note, done <-chan struct{}, s *runSettings) {
	var over <-chan time.Time
	if s.timeout > 0 {
		timer := time.NewTimer(s.timeout)
		defer timer.Stop()
		over = timer.C
	}
	say := func(text string) {
		select {
		case notes <- note{text, true}:
		case <-done:
		}
	}
	stopped, again := stop.ctx.Done(), (<-chan struct{})(nil)
	for {
		select {
		case <-done:
			return
		case <-stopped:
			stopped, again = nil, stop.again
			say(fmt.Sprintf("stopping: what runs may go on for %v; Ctrl-C again ends it at once", s.grace))
		case <-again:
			again = nil
			node.Hurry()
			say("stopping at once")
		case <-over:
			over = nil
			noMore(errNotFinished)
			node.Hurry()
			say(fmt.Sprintf("stopping: the %v of --timeout are over", s.timeout))
		}
	}
}

// newWatcher makes what follows the plan and shows it as the settings and the terminal have it.
func (a *app) newWatcher(ctx context.Context, st store.Store, p plan.Plan, s *runSettings, own plan.NodeName) (*watcher, error) {
	p, err := st.Plan(ctx, p.ID) // with its counts
	if err != nil {
		return nil, err
	}
	w := &watcher{
		st: st, p: p, model: view.NewModel(p.Title(), time.Now()), notes: make(chan note, 8), mark: a.ellipsis(), fresh: s.anew, reset: s.resume == "",
	}
	terminal := a.redraws()
	w.lines = s.output.value == "json" || !terminal
	switch {
	case s.quiet:
		w.lines, w.counts = false, true
		w.view = &view.Quiet{Notes: a.Stderr}
	case s.output.value == "json":
		if w.view, err = view.NewEvents(a.Stdout, a.Stderr, &p); err != nil {
			return nil, err
		}
	case terminal:
		all := s.logs.value == logsAll
		if s.logs.value != logsFailed {
			w.logs = newOutputs(st, s.logs.value)
		}
		if w.most = view.KeepEnds; all {
			w.most = 0
		}
		w.view, w.live, w.drawn.own = view.NewLive(a.Stdout, a.style(), all), true, own
	default:
		fmt.Fprintf(a.Stdout, "%s: %s, %d at once, in %s\n", p.Title(), view.Number(p.Counts.Total(), "task"), s.threads, a.Redact(a.storeURI()))
		w.logs = newOutputs(st, s.logs.value)
		if s.progress.value == progressSome && s.logs.value != logsAll {
			w.most = fewTasks
		}
		w.view = &view.Plain{W: a.Stdout, Notes: a.Stderr, Palette: a.paint(a.Stdout), Progress: &view.Reporter{}}
	}
	if err := w.follow(ctx); err != nil {
		return nil, err
	}
	switch {
	case !s.anew: // before a node of this process runs the plan: whatever it ends is news
		w.prepare()
		err = errors.Join(w.know(ctx), w.knowFlaky(ctx))
	case w.feed != nil:
		err = w.catchUp(ctx)
	}
	return w, err
}
