package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/internal/config"
	"github.com/seed-1177d267/sluice/internal/dtr"
	"github.com/seed-1177d267/sluice/internal/hint"
	"github.com/seed-1177d267/sluice/internal/roll"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/runner"
	"github.com/seed-1177d267/sluice/internal/schedule"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/hiding"
	"github.com/seed-1177d267/sluice/internal/store/mongodb"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
	"github.com/seed-1177d267/sluice/plugins/http"
)

func workerCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "worker",
		Aliases: []string{"den"},
		Short:   "Run tasks of the store as a node, until it is stopped",
		Long: "Run an execution node: it claims tasks from the store and runs them, until " +
			"Ctrl-C, SIGTERM or SIGHUP. Then it drains: it claims nothing more, lets running " +
			"tasks continue for a grace period, and gives the others back. The second signal, " +
			"or SIGQUIT, ends that at once.\n" +
			"\n" +
			"On a SQLite store, which only its owner can write, a node runs every plugin. On " +
			"MongoDB it runs only plugins named by --allow, or by the file of --config, " +
			"because everybody who can write to the database chooses the commands. The " +
			"programs in a --plugin-dir are plugins too (docs/plugins.md); the node notices " +
			"changes there within seconds.\n" +
			"\n" +
			"Once started, a node waits for a store that cannot be reached. If a SQLite file " +
			"is deleted or replaced, the node ends with 4.\n" +
			"\n" +
			"With --config or --log-file, SIGHUP does not stop the node: it reads the file " +
			"again, and reopens its log. Under systemd it reports its state (Type=notify). A " +
			"name belongs to one process: if another process has it, this one ends with 2.",
		Example: "  sluice worker --threads 16\n  sluice worker --store mongodb://db.example.com/sluice --allow exec\n" +
			"  sluice worker --queues imap,mail --plugin-dir /etc/sluice/plugins",
	}
	s := &denSettings{flags: cmd.Flags()}
	threadsFlag(cmd, &s.threads)
	f := cmd.Flags()
	f.StringVar(&s.name, "name", "", "the node's name (default: the host's)")
	f.StringSliceVar(&s.allow, "allow", nil, "plugins that it runs (default on MongoDB: those of the file of --config): "+strings.Join(a.Plugins.Names(), ", "))
	completeWords(cmd, "allow", a.Plugins.Names())
	f.StringSliceVar(&s.only, "queues", nil, "the only queues that the node serves, by name or id")
	f.StringSliceVar(&s.but, "ignore-queues", nil, "queues that the node leaves alone, by name or id")
	spanFlag(cmd, &s.grace, "grace", grace, "how long what runs may go on after the first signal; "+afterGrace)
	spanFlag(cmd, &s.lease, "lease", 10*time.Second, "how long it may be silent before others take its tasks over")
	pluginDirFlag(cmd, &s.dirs)
	s.net = a.allowNetFlag(cmd)
	f.StringArrayVar(&s.outside, "task-runner", nil, "the runner of tasks, `[QUEUE=]PROGRAM`: inside (the node), sluice (a process for each "+
		"task), or the path of another task runner (default: task_runner in the file of "+
		"--config, for its plugins; else inside)")
	f.BoolVar(&s.anyName, "runner-ignores-name", false, "start another program's task runner although --name is not the host's name: that "+
		"runner ignores the name")
	f.StringVar(&s.file, "config", "", "Disbatch's configuration `FILE`. It names the store (its user is disbatchd), unless "+
		"--store does; the queues (activequeues, ignorequeues), unless --queues or "+
		"--ignore-queues do; and gfs, unless --gfs does. With its balance.enabled the node "+
		"balances queues (docs/balance.md)")
	s.gfs = gfsFlag(cmd)
	s.web.flags(cmd, "serve", "", "serve the REST API and the pages too, as \"sluice serve\" does, on this `ADDRESS`")
	a.disco.flags(cmd)
	forDisbatch(f, "config", "gfs", "task-runner")
	f.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "dci" { // as Disbatch calls it
			name = "serve"
		}
		return pflag.NormalizedName(name)
	})
	s.logFormat = choice{"text", []string{"text", "json"}}
	f.Var(&s.logFormat, "log", "how to log")
	s.logLevel = choice{"", []string{"debug", "info", "warn", "error"}}
	f.Var(&s.logLevel, "log-level", "the lowest level that is logged (default: log4perl of the file of --config, else info)")
	f.StringVar(&s.logFile, "log-file", "", "the `FILE` to log to, -: standard error (default: log4perl of the file of --config, "+
		"else standard error)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := a.needsStore(cmd, "claims tasks and keeps their leases", ""); err != nil {
			return err
		}
		collectSeldom()
		d, err := a.setUpDen(s)
		if err != nil {
			return err
		}
		return d.run(cmd.Context())
	}
	return cmd
}

// denSettings are the flags of a node.
type denSettings struct {
	flags                           *pflag.FlagSet // which of them were given
	name                            string
	threads                         int
	allow, only, but, dirs, outside []string
	anyName                         bool
	grace, lease                    time.Duration
	file                            string
	net                             *networks
	gfs                             *choice
	logFormat, logLevel             choice
	logFile                         string
	web                             dciSettings
}

// A denSetup is what follows from the settings, and from Disbatch's file, before there is a store.
type denSetup struct {
	*denSettings
	*app
	conf    *config.Config
	names   []string          // of the plugins that may run, by the flag or the file; nil: all that are built in
	allowed *plugins.Registry // those of them that are there
	runners *dtr.Runners
	log     *denLog

	webSetup *dciSetup // nil: it serves nothing
}

func (a *app) setUpDen(s *denSettings) (d *denSetup, err error) {
	if s.flags.Changed("name") {
		if err := rules.CheckNodeName(s.name); err != nil {
			return nil, usagef("--name: %w", err)
		}
	}
	if err := checkLease(s.lease); err != nil {
		return nil, err
	}
	if len(s.only) > 0 && len(s.but) > 0 {
		return nil, usagef("--queues and --ignore-queues exclude each other: a node with --queues leaves all " +
			"other queues alone")
	}
	if err := s.web.check(s.flags, "serve"); err != nil {
		return nil, err
	}
	d = &denSetup{denSettings: s, app: a, conf: &config.Config{}}
	if s.file != "" {
		if d.conf, err = a.configured(s.file, config.Disbatchd); err != nil {
			return nil, err
		}
	}
	if d.runners, err = taskRunners(s.outside, d.conf); err != nil {
		return nil, err
	}
	if d.runners.Foreign() && s.file == "" {
		return nil, usagef("--task-runner: another program's task runner is told of Disbatch's file, where it finds the database: give --config")
	}
	if err := s.checkRunnersName(d.runners); err != nil {
		return nil, err
	}
	if d.names, d.allowed, err = a.named(s.allow, s.flags, d.conf, len(s.dirs) > 0 || d.runners.Foreign()); err != nil {
		return nil, err
	}
	if s.logFile == "" {
		if err := spareConfig(s.file, d.conf.Log.Files); err != nil {
			return nil, err
		}
	}
	if d.log, err = newDenLog(a.Stderr, s.logFormat.value, s.logLevel.value, s.logFile, d.conf.Log, a.spareLater); err != nil {
		return nil, err
	}
	d.web.spare = a.spareLater
	return d, d.equip(d.runners)
}

// checkRunnersName refuses a node whose task runner would not find its tasks. Disbatch's looks for those that are claimed by the name of
// its host, and leaves any other task claimed.
func (s *denSettings) checkRunnersName(r *dtr.Runners) error {
	host, err := os.Hostname()
	if err != nil || s.name == "" || s.name == host || s.anyName || !r.Foreign() {
		return nil // without a name of the host den.New says so
	}
	return usagef("--name %s: Disbatch's task runner runs only tasks that are claimed by its host's name, %s; leave --name out, or, "+
		"if your task runner does not look for that name, add --runner-ignores-name", s.name, host)
}

// equip tells runners what they are to know of their node.
func (d *denSetup) equip(r *dtr.Runners) (err error) {
	if len(r.Programs) == 0 {
		r.Programs = d.names
	}
	if r.Node = plan.NodeName(d.name); d.name == "" {
		host, _ := os.Hostname() // if it is not known den.New says so
		r.Node = plan.NodeName(host)
	}
	r.Args = []string{"--lease", d.lease.String(), "--grace", d.grace.String(), "--log", d.logFormat.value}
	if d.file != "" {
		r.Args = append(r.Args, "--config", d.file)
	}
	if d.names != nil {
		r.Args = append(r.Args, "--allow", strings.Join(d.names, ","))
	}
	if net := d.net.String(); net != "" {
		r.Args = append(r.Args, "--allow-net", net)
	}
	for _, dir := range d.dirs {
		r.Args = append(r.Args, "--plugin-dir", dir)
	}
	if d.gfs.value != "" {
		r.Args = append(r.Args, "--gfs", d.gfs.value)
	}
	r.Args = append(r.Args, d.disco.args()...)
	// With a runner the environment wins, see runTask: everybody can see a command line.
	switch {
	case d.storeFlag != "":
		r.Env = append(r.Env, "SLUICE_STORE="+d.storeFlag)
	case d.file != "": // they reach it as task_runner
		r.Env = append(r.Env, "SLUICE_STORE=")
	}
	r.Log, r.Level = &d.log.out, d.log.level.Level
	if r.Executable, err = os.Executable(); err != nil {
		return fmt.Errorf("find the path of this program: %w", err)
	}
	return nil
}

// beside starts the server and the observer of the node, and returns a function that ends them.
func (d *denSetup) beside(ctx context.Context, st store.Store, cfg *den.Config) (end func() error, err error) {
	observer, figures, end, err := d.watched(ctx, st, d.webSetup, d.log.Logger)
	if err != nil {
		return nil, err
	}
	cfg.Observer = observer
	if s, ok := schedule.StoreOf(st); ok {
		var fired func(time.Duration)
		if figures != nil {
			fired = figures.Fired
		}
		cfg.Schedules = schedule.NewFirer(s, fired)
	}
	if s, ok := roll.StoreOf(st); ok && d.Requests != nil {
		if _, runs := d.allowed.Get(http.Name); runs {
			cfg.Rolls = roll.New(s, d.Requests, d.log.Logger)
		}
	}
	return end, nil
}

// run runs the node until it is stopped.
func (d *denSetup) run(ctx context.Context) error {
	defer d.log.out.Close()
	service := newService(d.log.Logger, time.Second)
	reloads := d.file != "" || d.logFile != ""
	if reloads {
		now := d.conf
		defer onHangup(func() { service.reload(func() { now = d.log.reload(now) }) })()
	}
	if d.web.listen != "" {
		var err error
		if d.webSetup, err = d.web.setUp(d.log.Logger); err != nil {
			return err
		}
		defer d.webSetup.close()
		d.webSetup.conf = d.conf
	}
	stop, release := d.stoppable(ctx, !reloads)
	defer release()
	defer service.stopsWith(stop.ctx)()
	outlivePipes()
	begun := false
	err := d.makingStore(stop.ctx, func(st store.Store) (failed error) {
		st = hiding.Of(st)
		if err := onlyOwnersWrite(st); err != nil {
			return err
		}
		d.log.mistakes(slog.LevelWarn, d.conf.Warnings)
		unwatch, err := d.watchPrograms(stop.ctx, d.dirs, d.names, d.allowed, d.log.Logger)
		if err != nil {
			return err
		}
		defer unwatch()
		active, ignored, err := d.serves(stop.ctx, st)
		if err != nil {
			return err
		}
		cfg := den.Config{
			Plugins: d.allowed, Active: active, Ignored: ignored, Name: plan.NodeName(d.name), Sole: true, Linger: runner.GuardGrace, Threads: d.threads, Lease: d.lease, Grace: atLeast(d.grace), GFS: gfsOf(d.gfs, d.conf),
			Balance: balanceOf(d.conf.Balance), Version: d.version().Version, Logger: d.log.Logger, OnReady: service.ready, OnBeat: service.beaten,
		}
		if d.runners.Any() {
			cfg.Outside = d.runners
		}
		shared, err := d.serveDisco(stop.ctx, d.log.Logger)
		if err != nil {
			return err
		}
		defer shared()
		defer d.cleanDisco(stop.ctx, st, d.log.Logger)()
		end, err := d.beside(stop.ctx, st, &cfg)
		if err != nil {
			return err
		}
		defer func() { failed = errors.Join(failed, end()) }()
		node, err := den.New(st, cfg)
		if err != nil {
			return asUsage(err)
		}
		d.log.Info("store", "uri", d.Redact(d.storeURI()), "plugins", d.allowed.Names())
		switch {
		case len(active) > 0:
			d.log.Info("only these queues are served", "queues", active)
		case len(ignored) > 0:
			d.log.Info("these queues are left alone", "queues", ignored)
		}
		makeIndexes(stop.ctx, st, d.log.Logger)
		defer watchQueues(stop.ctx, st, d.allowed.Names, d.log.Logger)()
		defer hurrying(node, stop)()
		begun = true
		return node.Run(stop.ctx)
	})
	if !begun && stop.ctx.Err() != nil && (errors.Is(err, stop.ctx.Err()) || errors.Is(err, errInterrupted) || errors.Is(err, plan.ErrUnavailable)) {
		d.log.Info("stopped before the node had begun")
		return nil
	}
	return err
}

// serves returns which queues the node serves, or leaves alone: those of flags, else of the file.
// Another program's task runner may have some of the plugins; serves registers these, and leaves
// out queues of theirs that only other nodes can serve.
func (d *denSetup) serves(ctx context.Context, st store.Store) (active, ignored []plan.QueueID, err error) {
	active, ignored = d.conf.ActiveQueues, d.conf.IgnoreQueues
	if d.flags.Changed("queues") || d.flags.Changed("ignore-queues") {
		if active, err = queueIDs(ctx, st, d.only); err == nil {
			ignored, err = queueIDs(ctx, st, d.but)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	missing := slices.DeleteFunc(slices.Clone(d.names), func(name string) bool { _, there := d.allowed.Get(name); return there })
	others, err := d.runners.Elsewhere(ctx, st, missing)
	if err != nil {
		return nil, nil, err
	}
	only := len(active) > 0
	for _, name := range missing {
		switch not, runs := others[name]; {
		case runs:
			d.allowed.Register(name, ofTaskRunner)
			ignored = append(ignored, not...)
			active = slices.DeleteFunc(active, func(q plan.QueueID) bool { return slices.Contains(not, q) })
		case len(d.dirs) == 0:
			d.log.Warn("an allowed plugin is not there, and no task runner has it; its queues are left to others", "plugin", name)
		}
	}
	if only && len(active) == 0 {
		return nil, nil, usagef("neither this node nor its task runner has the plugin of any queue to serve")
	}
	return active, ignored, nil
}

// ofTaskRunner represents a plugin that only another program's task runner has. A task may reach it
// all the same, from a queue that was made later and is not that runner's. The node gives such a
// task back.
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

// named returns the plugins that --allow permits a node or a runner to run, by name. Without
// --allow, Disbatch's file permits them. It returns nil if neither names any. Some plugins of the
// file may be missing here. With tolerant, some of --allow may be missing too.
func (a *app) named(allow []string, flags *pflag.FlagSet, conf *config.Config, tolerant bool) (names []string, r *plugins.Registry, err error) {
	given := flags.Changed("allow")
	switch {
	case given:
		names = allow
	case len(conf.Plugins) > 0:
		names, given, tolerant = conf.Plugins, true, true
	}
	r, err = a.allowed(names, given, tolerant)
	return names, r, err
}

// onlyOwnersWrite refuses a store in a file that others than its owner can write, where what is in the store is to be run.
func onlyOwnersWrite(st store.Store) error {
	s, ok := hiding.Of(st).(interface{ WritableByOthers() string })
	if !ok {
		return nil
	}
	if path := s.WritableByOthers(); path != "" {
		return usagef("%s is writable by users other than its owner, who could choose what runs here; chmod 600 %s", path, path)
	}
	return nil
}

// allowed returns the plugins that a node may run. These are all plugins on a store that only its
// owner can write, else those that were named. With programs, names that are not built in are those
// of programs, which may be put there later.
func (a *app) allowed(names []string, given, programs bool) (*plugins.Registry, error) {
	all := a.Plugins.Names()
	if uri := a.storeURI(); !given && strings.HasPrefix(uri, "mongodb") {
		if database, err := mongodb.Database(uri); err == nil && database == "" { // of two things that are missing the first
			return nil, usagef("%q names no database: write mongodb://HOST:PORT/DATABASE", a.Redact(uri))
		}
		return nil, usagef("on MongoDB everyone who can write to the database chooses what runs here; name the plugins that may run, as in --allow %s", plan.DefaultPlugin)
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
			return nil, usagef("--allow %s: there is no such plugin; there are %s%s", n, strings.Join(all, ", "), hint.Meant(n, all))
		}
		if !slices.Contains(r.Names(), n) {
			r.Register(n, p)
		}
	}
	if p, ok := a.Plugins.Get(plan.ApprovalPlugin); ok && len(names) > 0 && !slices.Contains(r.Names(), plan.ApprovalPlugin) {
		r.Register(plan.ApprovalPlugin, p) // which runs nothing that anybody could choose
	}
	if len(r.Names()) == 0 && len(names) == 0 {
		return nil, fmt.Errorf("--allow names no plugin: a node that runs nothing is of no use")
	}
	return r, nil
}
