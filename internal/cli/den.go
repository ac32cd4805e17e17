package cli

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/internal/config"
	"github.com/seed-1177d267/sluice/internal/runner"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

func denCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "den",
		Short: "Run an execution node, until it is stopped",
		Long: "Run an execution node: it claims tasks from the store and runs them, until Ctrl-C, SIGTERM or SIGHUP. Then it claims nothing more, lets\n" +
			"what runs go on for a while, and gives back what is left; the second signal, or SIGQUIT, ends that at once.\n\n" +
			"On a SQLite store, which only its owner can write, a node runs every plugin. On MongoDB it runs only those named by --allow, since\n" +
			"whoever can write to the database chooses the commands. The programs in a --plugin-dir are plugins too (docs/plugins.md); what is put\n" +
			"there, or taken away, is noticed within seconds.\n\n" +
			"A store that cannot be reached later is waited for. A SQLite file that is deleted or replaced ends the node, with 4.\n\n" +
			"With --config or --log-file SIGHUP does not stop the node: it reads the file again, and opens its log anew. Under systemd it says how\n" +
			"it is (Type=notify). A name is one node's: another one that runs under it keeps it, and this one ends, with 2.",
		Args: exactly(0),
		Example: "  sluice den --threads 16\n  sluice den --store mongodb://db.example.com/sluice --allow exec --queues imap,mail\n" +
			"  sluice den --plugin-dir /etc/sluice/plugins",
	}
	var threads int
	threadsFlag(cmd, &threads)
	f := cmd.Flags()
	name := f.String("name", "", "the node's name (default: the host's)")
	allow := f.StringSlice("allow", nil, "plugins that it runs: "+strings.Join(a.Plugins.Names(), ", "))
	completeWords(cmd, "allow", a.Plugins.Names())
	only := f.StringSlice("queues", nil, "the only queues that it serves, by name or id")
	but := f.StringSlice("ignore-queues", nil, "queues that it leaves alone, by name or id")
	var wait, lease time.Duration
	spanFlag(cmd, &wait, "grace", grace, "how long what runs may go on after the first signal; "+afterGrace)
	spanFlag(cmd, &lease, "lease", 10*time.Second, "how long it may be silent before others take its tasks over")
	var dirs []string
	pluginDirFlag(cmd, &dirs)
	outside := f.StringArray("task-runner", nil, "what runs the tasks, `[QUEUE=]PROGRAM`: inside (the node), sluice (a process of its own for each), or the path of\nanother task runner (default: task_runner in the file of --config, for its plugins; else inside)")
	file := f.String("config", "", "Disbatch's configuration `FILE`: the store is the one it names, as its user disbatchd, unless --store or SLUICE_STORE\nnames one, the queues its activequeues and ignorequeues, unless --queues or --ignore-queues is given, its gfs, unless --gfs is given,\nand with its balance.enabled the node balances queues (docs/balance.md)")
	gfs := gfsFlag(cmd)
	logFormat := choice{"text", []string{"text", "json"}}
	f.Var(&logFormat, "log", "how to log")
	logLevel := choice{"", []string{"debug", "info", "warn", "error"}}
	f.Var(&logLevel, "log-level", "the least that is logged (default: what log4perl says in the file of --config, else info)")
	logFile := f.String("log-file", "", "the `FILE` to log to, -: standard error (default: what log4perl says in the file of --config, else standard error)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := checkThreads(threads); err != nil {
			return err
		}
		if len(*only) > 0 && len(*but) > 0 {
			return usagef("--queues and --ignore-queues: give one of them; a node that serves only some queues leaves alone all others anyway")
		}
		conf := &config.Config{}
		if *file != "" {
			var err error
			if conf, err = a.configured(*file); err != nil {
				return err
			}
		}
		names, given := *allow, cmd.Flags().Changed("allow")
		ofFile := !given && len(conf.Plugins) > 0
		if ofFile {
			names, given = conf.Plugins, true
		}
		runners, err := taskRunners(*outside, conf)
		if err != nil {
			return err
		}
		allowed, err := a.allowed(names, given, ofFile || len(dirs) > 0 || runners.Foreign())
		if err != nil {
			return err
		}
		if len(runners.Programs) == 0 {
			runners.Programs = names
		}
		runners.Args = runnerArgs(*file, names, given, dirs, lease, wait, gfs)
		if a.storeFlag != "" {
			runners.Env = append(runners.Env, "SLUICE_STORE="+a.storeFlag)
		}
		if runners.Node = plan.NodeName(*name); *name == "" {
			host, _ := os.Hostname() // if it is not known den.New says so
			runners.Node = plan.NodeName(host)
		}
		if runners.Executable, err = os.Executable(); err != nil {
			return fmt.Errorf("where this program lies: %w", err)
		}
		log, err := newDenLog(a.Stderr, logFormat.value, logLevel.value, *logFile, conf.Log)
		if err != nil {
			return err
		}
		defer log.out.Close()
		service := newService(log.Logger, time.Second)
		reloads := *file != "" || *logFile != ""
		if reloads {
			now := conf
			defer onHangup(func() { service.reload(func() { now = log.reload(now) }) })()
		}
		stop, release := a.stoppable(cmd.Context(), !reloads)
		defer release()
		defer service.stopsWith(stop.ctx)()
		outlivePipes()
		return a.makingStore(stop.ctx, func(st store.Store) error {
			log.mistakes(slog.LevelWarn, conf.Warnings)
			active, ignored := conf.ActiveQueues, conf.IgnoreQueues
			if cmd.Flags().Changed("queues") || cmd.Flags().Changed("ignore-queues") {
				var err error
				if active, err = queueIDs(stop.ctx, st, *only); err == nil {
					ignored, err = queueIDs(stop.ctx, st, *but)
				}
				if err != nil {
					return err
				}
			}
			var only []string
			if given {
				only = names
			}
			unwatch, err := a.watchPrograms(stop.ctx, dirs, only, allowed, log.Logger)
			if err != nil {
				return err
			}
			defer unwatch()
			missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool { _, there := allowed.Get(name); return there })
			others, err := runners.Elsewhere(stop.ctx, st, missing)
			if err != nil {
				return err
			}
			some := len(active) > 0
			for _, name := range missing {
				switch _, runs := others[name]; {
				case runs:
					allowed.Register(name, ofTaskRunner)
					ignored = append(ignored, others[name]...)
					active = slices.DeleteFunc(active, func(q plan.QueueID) bool { return slices.Contains(others[name], q) })
				case len(dirs) == 0:
					log.Warn("an allowed plugin is not there, and no task runner has it; its queues are left to others", "plugin", name)
				}
			}
			if some && len(active) == 0 {
				return usagef("none of the queues that are to be served has a plugin that this node or its task runner has")
			}
			cfg := den.Config{
				Store: st, Plugins: allowed, Active: active, Ignored: ignored, Name: plan.NodeName(*name), Sole: true, Process: runner.Process(), Dead: runner.Gone, Linger: runner.GuardGrace, Threads: threads,
				Lease: lease, Grace: atLeast(wait), GFS: gfsOf(gfs, conf), Balance: balanceOf(conf.Balance), Version: a.version().Version, Logger: log.Logger,
				OnReady: service.ready, OnBeat: service.beaten,
			}
			if runners.Any() {
				cfg.Outside = runners
			}
			node, err := den.New(cfg)
			if err != nil {
				return asUsage(err)
			}
			log.Info("store", "uri", a.Redact(a.storeURI()), "plugins", allowed.Names())
			switch {
			case len(active) > 0:
				log.Info("only these queues are served", "queues", active)
			case len(ignored) > 0:
				log.Info("these queues are left alone", "queues", ignored)
			}
			lookOver(stop.ctx, st, allowed.Names(), log.Logger)
			defer hurrying(node, stop)()
			return node.Run(stop.ctx)
		})
	}
	return cmd
}

// ofTaskRunner stands for a plugin that only another program's task runner has. What comes to it nevertheless, of a queue that was made later
// and is not that task runner's, is given back.
var ofTaskRunner notHere

type notHere struct{}

// Run implements plugins.Plugin.
func (notHere) Run(ctx context.Context, t *plugins.Task) plan.Result {
	t.Log.Append(plan.System, fmt.Sprintf("no task runner runs queue %s here, and the node does not have its plugin; see --task-runner", t.Queue))
	select {
	case <-ctx.Done():
	case <-time.After(notHerePause):
	}
	return plan.Result{Status: plan.Queued}
}

// notHerePause leaves what is given back to others for a while.
const notHerePause = 10 * time.Second

// balanceOf is what a file says of QueueBalance.
func balanceOf(c config.Balance) *den.Balance {
	if !c.Enabled {
		return nil
	}
	return &den.Balance{Log: c.Log, Verbose: c.Verbose, Pretend: c.Pretend}
}

// queueIDs returns the ids of queues that a person named.
func queueIDs(ctx context.Context, r store.Reader, words []string) (ids []plan.QueueID, err error) {
	for _, w := range words {
		q, err := findQueue(ctx, r, w)
		if err != nil {
			return nil, err
		}
		ids = append(ids, q.ID)
	}
	return ids, nil
}

// allowed returns the plugins that a node may run: all of them on a store that only its owner can write, else those that were named. With
// programs, names that are not built in are those of programs, which may be put there later.
func (a *app) allowed(names []string, given, programs bool) (*plugins.Registry, error) {
	all := a.Plugins.Names()
	if !given && strings.HasPrefix(a.storeURI(), "mongodb") {
		return nil, usagef("on MongoDB whoever can write to the database chooses what runs here: name the plugins that may, as in --allow %s", plan.DefaultPlugin)
	}
	if !given {
		names = all
	}
	r := plugins.NewRegistry()
	for _, n := range names {
		p, ok := a.Plugins.Get(n)
		if !ok && programs {
			if err := plugins.CheckName(n); err != nil {
				return nil, usagef("--allow: %v", err)
			}
			continue
		}
		if !ok {
			return nil, usagef("--allow %s: there is no such plugin; there are %s%s", n, strings.Join(all, ", "), didYouMean(n, all))
		}
		if !slices.Contains(r.Names(), n) {
			r.Register(n, p)
		}
	}
	if len(r.Names()) == 0 && len(names) == 0 {
		return nil, fmt.Errorf("--allow names no plugin: a node that runs nothing is of no use")
	}
	return r, nil
}
