package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/internal/approve"
	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/explain"
	"github.com/seed-1177d267/sluice/internal/forsaken"
	"github.com/seed-1177d267/sluice/internal/hint"
	"github.com/seed-1177d267/sluice/internal/runner"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/hiding"
	"github.com/seed-1177d267/sluice/plan"
)

// runSettings are how a plan is run.
type runSettings struct {
	threads  int
	params   []string
	timeout  time.Duration
	grace    time.Duration
	failFast bool
	junit    string
	resume   string
	key      string
	anew     bool // the plan was just submitted
	quiet    bool
	logs     choice
	progress choice
	output   format
	programs []string // folders
	web      string   // address of the pages; "": there are none
}

// flags gives a command those flags that say how its node runs a plan.
func (s *runSettings) flags(a *app, cmd *cobra.Command) {
	threadsFlag(cmd, &s.threads)
	spanFlag(cmd, &s.timeout, "timeout", 0, "stop after so long, and what runs then at once, without --grace; --resume continues the plan")
	spanFlag(cmd, &s.grace, "grace", grace, "how long what runs may go on after the first Ctrl-C; "+afterGrace)
	pluginDirFlag(cmd, &s.programs)
	a.allowNetFlag(cmd)
	cmd.Flags().StringVar(&s.web, "web", "", "serve the pages during the run, to this host only, on this `ADDRESS` (default, with "+
		"--web alone: any free port)")
	cmd.Flags().Lookup("web").NoOptDefVal = "127.0.0.1:0"
	s.logs = logsChoice()
	cmd.Flags().Var(&s.logs, "logs", "the output of tasks to show: the last lines of failed tasks, all lines of each task "+
		"when it ends, or none")
	s.progress = choice{progressSome, []string{progressSome, progressEach}}
	cmd.Flags().Var(&s.progress, "progress", "the ends with a line in a log: where more than 20 tasks are to run some (failures, "+
		"retries, the tasks beside many items, and the progress every 10s or 5%), or each")
	cmd.Flags().BoolVarP(&s.quiet, "quiet", "q", false, "print only failures and the command that continues")
	cmd.Flags().StringVar(&s.junit, "junit", "", "write a report to this `FILE`, as JUnit XML")
}

// How much of what goes well a run tells in a log.
const (
	progressSome = "some"
	progressEach = "each"
)

// check refuses what those flags cannot mean, and fills in what was not given.
func (s *runSettings) check() error {
	if s.logs.value != logsFailed && s.output.json() {
		return usagef("--logs shows the output of tasks to people, and --output json does not have it; leave one out")
	}
	if s.quiet && (s.logs.value == logsAll || s.output.json()) {
		return usagef("--quiet prints only failures, and --logs all and --output json print everything: " +
			"leave one out")
	}
	return nil
}

// noteShared names the other nodes that may run tasks of a plan which is about to run here. They have environments and threads of their own.
func (a *app) noteShared(ctx context.Context, st store.Store, p *plan.Plan, s *runSettings) error {
	if s.quiet {
		return nil
	}
	nodes, err := st.Instances(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, n := range nodes {
		if explain.Serves(n, p.ID) {
			names = append(names, string(n.Node))
		}
	}
	word, run, own := "node", "runs", "its"
	switch {
	case len(names) == 0:
		return nil
	case len(names) > 1:
		word, run, own = "nodes", "run", "their"
	}
	alone := ""
	if s.anew {
		alone = "; to keep a run to this process, name another store: --store sqlite:FILE"
	}
	a.note("%s %s %s tasks of %s too, with %s own environment and threads%s", word, firstNames(names, 5), run, p.Title(), own, alone)
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

// runStored runs the rest of a stored plan.
func (a *app) runStored(stop stopping, st store.Store, p plan.Plan, s *runSettings) error {
	ctx := stop.ctx
	if p.State == plan.PlanSucceeded {
		a.note("%s has succeeded already: nothing is left to run", p.Title())
		return a.conclude(ctx, st, p, s, nil, nil)
	}
	if err := st.Adopt(ctx, p.ID); err != nil {
		return err
	}
	return a.runPlan(stop, st, p, s)
}

// runPlan runs a plan that is in the store to its end, in a node of its own, and shows it.
func (a *app) runPlan(stop stopping, st store.Store, p plan.Plan, s *runSettings) (failed error) {
	ctx := context.WithoutCancel(stop.ctx) // the view and the final report continue after Ctrl-C
	host, name, err := forsaken.Name()
	if err := errors.Join(err, a.noteShared(stop.ctx, st, &p, s)); err != nil {
		return err
	}
	w, err := a.newWatcher(ctx, st, p, s, name)
	if err != nil {
		return goOnBy(fmt.Errorf("%w; nothing of %s runs yet", err, p.Title()), a.command(hint.Resume(&p).Do...))
	}
	log := slog.New(&noteHandler{notes: w.notes})
	defer a.cleanDisco(ctx, st, log)()
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
	wg.Go(func() { untilAwaited(ctx, st, p.ID, done, func() { noMore(errAwaits) }) })
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
	if errors.Is(cause, errAwaits) {
		answered, err := a.askPerson(ctx, st, p.ID)
		if err == nil {
			p, err = planAfter(ctx, st, p)
		}
		if err == nil && answered && !p.State.Ended() {
			return errors.Join(watched, a.runStored(stop, st, p, s))
		}
		if err == nil {
			w.awaits, err = approve.Waiting(ctx, st, p.ID)
		}
		if err != nil {
			return errors.Join(watched, err)
		}
	}
	return errors.Join(a.conclude(ctx, st, p, s, w, cause), watched)
}

// control stops the node when it is time. A signal counts after the grace; the second signal, and
// the end of the run's time, count at once.
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
	w.lines = s.output.json() || !terminal
	switch {
	case s.quiet:
		w.lines, w.counts = false, true
		w.view = &view.Quiet{Notes: a.Stderr}
	case s.output.json():
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
		w.view, w.live, w.drawn.own = view.NewLive(a.Stdout, a.paint(a.Stdout), all), true, own
	default:
		fmt.Fprintf(a.Stdout, "%s: %s, %d at once here, in %s\n", p.Title(), view.Number(p.Counts.Total(), "task"), s.threads, a.Redact(a.storeURI()))
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
		if w.from, err = st.Now(ctx); err == nil {
			err = w.know(ctx)
		}
	case w.feed != nil:
		err = w.catchUp(ctx)
	}
	return w, err
}

// planAfter reads a plan again after a command has waited for its end.
func planAfter(ctx context.Context, st store.Store, p plan.Plan) (plan.Plan, error) {
	now, err := st.Plan(ctx, p.ID)
	if errors.Is(err, plan.ErrNotFound) { // not what was typed is wrong
		err = fmt.Errorf("%s has ended and was deleted meanwhile; its end is unknown", p.Title())
	}
	return now, err
}
