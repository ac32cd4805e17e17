package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/internal/config"
	"github.com/seed-1177d267/sluice/internal/dtr"
	"github.com/seed-1177d267/sluice/internal/runner"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/hiding"
	"github.com/seed-1177d267/sluice/plan"
)

func runnerCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "runner --task ID",
		Short: "Run one task that a node has claimed",
		Long: "Run one task that a node has claimed, and end it: Disbatch's task runner. Nodes " +
			"start it (\"sluice worker --task-runner sluice\", and Disbatch's), not people. It " +
			"keeps a lease of its own, so that you may stop and start the node meanwhile.\n" +
			"\n" +
			"On MongoDB it runs only plugins that --allow names, or the file of --config.\n" +
			"\n" +
			"It ends with 0 when the task has ended in any way, and with 1 if the task is not " +
			"claimed, or was lost.",
		Example: "  sluice runner --config /etc/disbatch/config.json " +
			"\\\n    --task 571fac85ee63413233049fbd --gfs auto --quiet",
	}
	s := &runnerSettings{flags: cmd.Flags()}
	f := cmd.Flags()
	f.StringVar(&s.task, "task", "", "the task's id")
	f.StringVar(&s.file, "config", "", "Disbatch's configuration `FILE`. It names the store (its user is task_runner), unless "+
		"--store does")
	f.StringSliceVar(&s.allow, "allow", nil, "plugins that it runs (default: those of the file of --config)")
	completeWords(cmd, "allow", a.Plugins.Names())
	pluginDirFlag(cmd, &s.dirs)
	a.allowNetFlag(cmd)
	f.BoolVar(&s.quiet, "quiet", false, "print only mistakes")
	f.BoolVar(&s.testing, "testing", false, "print everything")
	spanFlag(cmd, &s.lease, "lease", 10*time.Second, "how long it may be silent before others take the task over")
	spanFlag(cmd, &s.grace, "grace", grace, "how long the task may go on after the first signal; "+afterGrace)
	s.gfs = gfsFlag(cmd)
	a.disco.flags(cmd)
	// Between a node and its runners:
	f.StringVar(&s.as, "as", "", "")
	f.StringVar(&s.node, "node", "", "")
	f.StringVar(&s.plugin, "plugin", "", "")
	f.StringVar(&s.program, "program", "", "")
	s.logFormat = choice{"text", []string{"text", "json"}}
	f.Var(&s.logFormat, "log", "")
	f.StringVar(&s.logLevel, "log-level", "", "")
	for _, name := range []string{"as", "node", "plugin", "program", "log", "log-level", "disco-data", "disco-host", "disco-listen"} {
		_ = f.MarkHidden(name)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := a.needsStore(cmd, "keeps the lease of the task that it runs", ""); err != nil {
			return err
		}
		if err := checkLease(s.lease); err != nil {
			return err
		}
		return a.runTask(cmd.Context(), s)
	}
	return cmd
}

// runnerSettings are the flags of a runner.
type runnerSettings struct {
	flags          *pflag.FlagSet // which of them were given
	task           string
	file           string
	allow, dirs    []string
	quiet, testing bool
	lease, grace   time.Duration
	gfs            *choice

	as, node, plugin string // what its node says of it: the instance it is to be, the node's name, the plugin of the task's queue
	program          string // that runs the task; "": the plugin does
	logFormat        choice
	logLevel         string
}

// logger is where the runner logs: what its node says, else by its flags.
func (s *runnerSettings) logger(w io.Writer) (*slog.Logger, error) {
	o := &slog.HandlerOptions{Level: slog.LevelInfo}
	switch {
	case s.logLevel != "":
		var level slog.Level
		if err := level.UnmarshalText([]byte(s.logLevel)); err != nil {
			return nil, usagef("--log-level %s: %w", s.logLevel, err)
		}
		o.Level = level
	case s.testing:
		o.Level = slog.LevelDebug
	case s.quiet:
		o.Level = slog.LevelWarn
	}
	if s.logFormat.value == "json" {
		return slog.New(slog.NewJSONHandler(w, o)), nil
	}
	return slog.New(slog.NewTextHandler(w, o)), nil
}

// runTask takes the claimed task over and runs it to its end.
func (a *app) runTask(ctx context.Context, s *runnerSettings) error {
	id, err := plan.ParseID(s.task)
	if err != nil || id.IsZero() {
		return usagef("--task %q: give the id of a task, 24 hex digits", s.task)
	}
	me := plan.InstanceID{ID: plan.NewID(time.Now())}
	if s.as != "" {
		if me.ID, err = plan.ParseID(s.as); err != nil {
			return usagef("--as %q: %v", s.as, err)
		}
	}
	if uri, named := a.DefaultStore(); named && s.as != "" && a.storeFlag == "" {
		a.storeFlag = uri // a node tells its runners by the variable what its own --store is
	}
	conf := &config.Config{}
	if s.file != "" {
		if conf, err = a.configured(s.file, config.TaskRunner); err != nil {
			return err
		}
	}
	// Some plugins that a node gives its runners may be those of another task runner.
	names, runs, err := a.named(s.allow, s.flags, conf, len(s.dirs) > 0 || s.as != "")
	if err != nil {
		return err
	}
	log, err := s.logger(a.Stderr)
	if err != nil {
		return err
	}
	stop, release := a.stoppable(ctx, true)
	defer release()
	outlivePipes()
	return a.withStore(stop.ctx, func(st store.Store) error {
		st = hiding.Of(st)
		c := claim{plan.TaskID{ID: id}, plan.NodeName(s.node), s.plugin}
		if c.node == "" { // another program's node has started it, which does not say
			var err error
			if c, err = claimOf(stop.ctx, st, c.task); err != nil {
				return err
			}
		}
		folders := log
		if s.as != "" {
			folders = slog.New(slog.DiscardHandler) // its node says what is in them, once
		}
		unwatch, err := a.watchPrograms(stop.ctx, s.dirs, names, runs, folders)
		if err != nil {
			return err
		}
		defer unwatch()
		cfg := den.Config{
			Plugins: runs, Name: c.node, Linger: runner.GuardGrace, Lease: s.lease,
			Grace: atLeast(s.grace), GFS: gfsOf(s.gfs, conf), Version: a.version().Version, Logger: log,
		}
		if s.program != "" {
			cfg.Foreign = &dtr.Program{
				Path: s.program, Config: s.file, GFS: string(cfg.GFS), Quiet: s.quiet || conf.Quiet, Testing: s.testing || conf.Testing, Grace: s.grace,
				Task: func(ctx context.Context, id plan.TaskID) (plan.Task, error) { return taskOf(ctx, st, id) }, As: me, Begin: 6 * s.lease,
			}
		} else if _, ok := runs.Get(c.plugin); !ok { // then the task stays the node's
			return usagef("its queue has plugin %s, which may not run here; these may: %s; see --allow", c.plugin, strings.Join(runs.Names(), ", "))
		}
		node, err := den.New(st, cfg)
		if err != nil {
			return asUsage(err)
		}
		defer hurrying(node, stop)()
		return node.RunClaimed(stop.ctx, c.task, me)
	})
}

// A claim is what has to be known of a task before it is taken.
type claim struct {
	task   plan.TaskID
	node   plan.NodeName // that claimed it
	plugin string        // of its queue
}

// taskOf reads a task without what is large of it.
func taskOf(ctx context.Context, r store.Reader, id plan.TaskID) (plan.Task, error) {
	found, err := r.Tasks(ctx, store.TaskQuery{IDs: []plan.TaskID{id}, Limit: 1})
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("task %s: %w; check --task, and the store", id, plan.ErrNotFound)
	}
	if err != nil {
		return plan.Task{}, err
	}
	return found[0], nil
}

// claimOf reads what another program's node claimed.
func claimOf(ctx context.Context, r store.Reader, id plan.TaskID) (c claim, err error) {
	is, err := taskOf(ctx, r, id)
	switch {
	case err != nil:
		return c, err
	case is.Status != plan.Claimed || is.Node == "":
		return c, fmt.Errorf("task %s is %s: a runner runs what a node has claimed and not started", id, is.State())
	}
	queues, err := r.Queues(ctx)
	if err != nil {
		return c, err
	}
	i := slices.IndexFunc(queues, func(q plan.Queue) bool { return q.ID == is.Queue })
	if i < 0 {
		return c, fmt.Errorf("the queue of task %s: %w", id, plan.ErrNotFound)
	}
	return claim{id, is.Node, queues[i].Plugin}, nil
}

// hurrying lets a node end at once with the second signal. The returned function is called when the
// node has ended.
func hurrying(node *den.Node, stop stopping) func() {
	return beside(context.Background(), func(over context.Context) {
		select {
		case <-stop.again:
			node.Hurry()
		case <-over.Done():
		}
	})
}

// taskRunners reads --task-runner, each [QUEUE=]PROGRAM, and the default of Disbatch's file.
func taskRunners(words []string, conf *config.Config) (*dtr.Runners, error) {
	r := &dtr.Runners{Default: dtr.Inside, ByQueue: map[string]string{}, Programs: conf.Plugins}
	if conf.TaskRunner != "" {
		path, err := filepath.Abs(conf.TaskRunner) // from here, as Disbatch's node has it
		if err != nil {
			return nil, fmt.Errorf("task_runner %s: %w", conf.TaskRunner, err)
		}
		r.Default = path
	}
	named := ""
	for _, w := range words {
		queue, program, of := strings.Cut(w, "=")
		if !of {
			queue, program = "", w
		}
		switch {
		case program == "", of && queue == "":
			return nil, usagef("--task-runner %q: give [QUEUE=]PROGRAM, where PROGRAM is a path, %s or %s", w, dtr.Sluice, dtr.Inside)
		case program != dtr.Sluice && program != dtr.Inside && !filepath.IsAbs(program):
			return nil, usagef("--task-runner %q: give the absolute path of a program, %s or %s", w, dtr.Sluice, dtr.Inside)
		case of && r.ByQueue[queue] != "", !of && named != "":
			return nil, usagef("--task-runner %q: there is one already", w)
		case of:
			r.ByQueue[queue] = program
		default:
			r.Default, named = program, program
		}
	}
	if err := r.Check(); err != nil {
		return nil, asUsage(err)
	}
	return r, nil
}
