package cli

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/internal/config"
	"github.com/seed-1177d267/sluice/internal/dtr"
	"github.com/seed-1177d267/sluice/internal/runner"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

func runnerCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "runner --task ID",
		Short: "Run one task that a node has claimed",
		Long: "Run one task that a node has claimed, and end it: Disbatch's task runner. Nodes start it, `sluice den --task-runner sluice` and\n" +
			"Disbatch's alike; no person has to. It keeps a lease of its own, so that the node may be stopped and started meanwhile.\n\n" +
			"On MongoDB it runs only plugins that --allow names, or the file of --config among its plugins.\n\n" +
			"It ends with 0 when the task has ended, however that was, and with 1 if the task is not claimed, or was lost.",
		Args:    exactly(0),
		Example: "  sluice runner --config /etc/disbatch/config.json --task 571fac85ee63413233049fbd --gfs auto --quiet",
	}
	f := cmd.Flags()
	task := f.String("task", "", "the task's id")
	file := f.String("config", "", "Disbatch's configuration `FILE`: the store is the one it names, as its user task_runner, unless --store or\nSLUICE_STORE names one")
	allow := f.StringSlice("allow", nil, "plugins that it runs (default: those of the file of --config)")
	completeWords(cmd, "allow", a.Plugins.Names())
	var dirs []string
	pluginDirFlag(cmd, &dirs)
	quiet := f.Bool("quiet", false, "say only what is wrong")
	testing := f.Bool("testing", false, "say everything")
	var lease, wait time.Duration
	spanFlag(cmd, &lease, "lease", 10*time.Second, "how long it may be silent before others take the task over")
	spanFlag(cmd, &wait, "grace", grace, "how long the task may go on after the first signal; "+afterGrace)
	gfs := gfsFlag(cmd)
	as := f.String("as", "", "")
	program := f.String("program", "", "")
	node := f.String("node", "", "")
	attempt := f.Int("attempt", 0, "")
	logFormat := choice{"text", []string{"text", "json"}}
	f.Var(&logFormat, "log", "")
	logLevel := f.String("log-level", "", "")
	for _, name := range []string{"as", "program", "node", "attempt", "log", "log-level"} { // between a node and its runners
		_ = f.MarkHidden(name)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		id, err := plan.ParseID(*task)
		if err != nil || id.IsZero() {
			return usagef("--task %q: give the id of a task, 24 hex digits", *task)
		}
		me := plan.InstanceID{ID: plan.NewID(time.Now())}
		if *as != "" {
			if me.ID, err = plan.ParseID(*as); err != nil {
				return usagef("--as %q: %v", *as, err)
			}
		}
		conf := &config.Config{}
		if *file != "" {
			if conf, err = a.configuredAs(*file, config.TaskRunner); err != nil {
				return err
			}
		}
		// Of the names that a node gives its runners some may be those of another task runner's plugins.
		runs, err := a.runs(*allow, cmd.Flags().Changed("allow"), conf.Plugins, len(dirs) > 0 || *as != "")
		if err != nil {
			return err
		}
		level := slog.LevelInfo
		switch {
		case *testing:
			level = slog.LevelDebug
		case *quiet:
			level = slog.LevelWarn
		}
		if *logLevel != "" {
			if err := level.UnmarshalText([]byte(*logLevel)); err != nil {
				return usagef("--log-level %s: %w", *logLevel, err)
			}
		}
		log := slog.New(slog.NewTextHandler(a.Stderr, &slog.HandlerOptions{Level: level}))
		if logFormat.value == "json" {
			log = slog.New(slog.NewJSONHandler(a.Stderr, &slog.HandlerOptions{Level: level}))
		}
		stop, release := a.stoppable(cmd.Context(), true)
		defer release()
		outlivePipes()
		return a.withStore(stop.ctx, func(st store.Store) error {
			t, err := claimedTask(stop.ctx, st, plan.TaskID{ID: id})
			if err != nil {
				return err
			}
			if *node != "" && (t.Node != plan.NodeName(*node) || t.Attempt != *attempt) {
				return fmt.Errorf("task %s is claimed by node %s, with attempt %d, and not any more by %s with attempt %d", t.ID, t.Node, t.Attempt, *node, *attempt)
			}
			unwatch, err := a.watchPrograms(stop.ctx, dirs, *allow, runs, log)
			if err != nil {
				return err
			}
			defer unwatch()
			cfg := den.Config{
				Store: st, Plugins: runs, Name: t.Node, Process: runner.Process(), Dead: runner.Gone, Linger: runner.GuardGrace, Lease: lease,
				Grace: atLeast(wait), GFS: gfsOf(gfs, conf), Version: a.version().Version, Logger: log,
			}
			if *program != "" {
				cfg.Foreign = &dtr.Program{Path: *program, Config: *file, GFS: string(gfsOf(gfs, conf)), Quiet: *quiet, Testing: *testing, Grace: wait}
			} else if err := mayRun(stop.ctx, st, t, runs); err != nil {
				return err
			}
			node, err := den.New(cfg)
			if err != nil {
				return asUsage(err)
			}
			defer hurrying(node, stop)()
			return node.RunClaimed(stop.ctx, t.ID, me)
		})
	}
	return cmd
}

// claimedTask returns what has to be known of a task before it is taken.
func claimedTask(ctx context.Context, r store.Reader, id plan.TaskID) (plan.Task, error) {
	found, err := r.Tasks(ctx, store.TaskQuery{IDs: []plan.TaskID{id}, Limit: 1})
	switch {
	case err != nil:
		return plan.Task{}, err
	case len(found) == 0:
		return plan.Task{}, fmt.Errorf("task %s: %w; check --task, and the store", id, plan.ErrNotFound)
	case found[0].Status != plan.Claimed || found[0].Node == "":
		return plan.Task{}, fmt.Errorf("task %s is %s: a runner runs what a node has claimed and not started", id, found[0].State())
	}
	return found[0], nil
}

// mayRun returns an error if the plugin of the task's queue is none that may run here. Then the task stays the node's.
func mayRun(ctx context.Context, r store.Reader, t plan.Task, runs *plugins.Registry) error {
	queues, err := r.Queues(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(queues, func(q plan.Queue) bool { return q.ID == t.Queue })
	if i < 0 {
		return fmt.Errorf("the queue of task %s: %w", t.ID, plan.ErrNotFound)
	}
	if _, ok := runs.Get(queues[i].Plugin); !ok {
		return usagef("queue %s wants plugin %s, which is not among those that may run here: %s; see --allow", queues[i].Name, queues[i].Plugin,
			strings.Join(runs.Names(), ", "))
	}
	return nil
}

// runs returns the plugins that a runner may run: those that are named, or those of Disbatch's file; on a store that only its owner can
// write, all.
func (a *app) runs(names []string, given bool, ofFile []string, others bool) (*plugins.Registry, error) {
	if !given && len(ofFile) > 0 {
		names, given, others = ofFile, true, true
	}
	return a.allowed(names, given, others)
}

// hurrying has a node end at once with the second signal. What it returns is called when the node has ended.
func hurrying(node *den.Node, stop stopping) func() {
	done, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		select {
		case <-stop.again:
			node.Hurry()
		case <-done:
		}
	}()
	return func() {
		close(done)
		<-over
	}
}

// taskRunners reads --task-runner, each [QUEUE=]PROGRAM, beside the default of Disbatch's file.
func taskRunners(words []string, conf *config.Config) (*dtr.Runners, error) {
	r := &dtr.Runners{Default: dtr.Inside, ByQueue: map[string]string{}, Programs: conf.Plugins}
	if conf.TaskRunner != "" {
		r.Default = conf.TaskRunner
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
			return nil, usagef("--task-runner %q: a program is given by its absolute path; else there are %s and %s", w, dtr.Sluice, dtr.Inside)
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
