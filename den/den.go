// Package den is the execution node. A node claims tasks, runs them by their plugins, and finishes
// them. It also rescues the tasks of dead nodes. [Run] makes a process a node of a store that
// package sluice has opened:
//
//	err := den.Run(ctx, st, den.Config{Threads: 8, Plugins: reg})
//
// [Node.Run] lives through sessions. In each session it is one instance of the store, from its
// registration until it leaves or is declared dead. Each goroutine of a session owns one thing:
//
// The loop (loop.go) owns all state: the running tasks, their endings, and the time of the next
// turn. Each attempt (attempt.go) runs one claimed task and hands the loop its ending. The heart
// (heart.go) beats each second and does nothing else. It alone decides that the lease is lost,
// because the others may hang in a call to the store. The watch (watch.go) reads the other
// instances and rescues the dead ones. The keeper (keep.go) deletes expired plans. The balancer
// (balance.go) of some nodes sets the threads of queues while no other node does. No call to the
// store hangs for ever (bounded.go).
package den

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/seed-1177d267/sluice/backoff"
	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/runner/procid"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// Config is what a node needs to know. The zero value of a field means its default.
type Config struct {
	Plugins *plugins.Registry // required: what this node can run; it may change meanwhile

	Name    plan.NodeName // default: the host's name
	Sole    bool          // no other node that says so too may have the name; see Run
	Host    string        // default: the host's name
	Process plan.Process  // default: this process, as far as the system tells it from others
	// Dead reports whether it is certain that the instance's process, on this very host, does not live.
	// Default: the operating system says it. Where that does not know, leases tell.
	Dead func(plan.Instance) bool
	// Linger is how long a rescue waits after Dead said so: the commands of a process that died may
	// outlive it for so long. Default: 500 ms, which package plugins/exec needs. Less than 0: no time.
	Linger time.Duration

	Threads int            // how many tasks run at once, at most plan.MaxThreads; default: the number of CPUs
	Active  []plan.QueueID // the only queues it serves; default: all of its plugins but those in Ignored
	Ignored []plan.QueueID // queues that it leaves alone; it counts only where Active is empty
	Plan    plan.PlanID    // claim only tasks of this plan, and return from Run when the plan has ended in any way
	Lease   time.Duration  // without a beat for that long others take over; default 10 s
	Beat    time.Duration  // the interval of heartbeats, sweeps and looks at other instances; default 1 s
	Grace   time.Duration  // how long running tasks may continue when the node stops; default 10 s
	Idle    backoff.Idle   // how long to wait between polls that find nothing
	Balance *Balance       // how it balances the queues whenever no other node does; nil: it does not. The store has to be a Balancer
	GFS     protocol.GFS   // where MongoDB keeps what tasks of no plan print; default protocol.GFSAuto
	Version string

	// Schedules starts what the schedules of the store say, whenever no other node does. A node with
	// a Plan never does. Default: the node starts nothing.
	Schedules Scheduler
	// Rolls hands finished tasks over to the receivers of their groups, whenever no other node does. A
	// node with a Plan never does. Default: the node hands over nothing.
	Rolls Roller
	// Logger gets a warning for each failed attempt, and at slog.LevelDebug a line for each attempt
	// that starts or succeeds. Lines about a task have its plan, task_name, task (the id) and
	// attempt. A node with a Plan, which somebody follows, logs failures at slog.LevelDebug too.
	// Default: nothing is logged.
	Logger *slog.Logger

	// Outside runs tasks in processes of their own; the store has to be a Handover. Default: the node
	// runs all itself.
	Outside Outside
	// Foreign does the work of RunClaimed in place of the task's plugin. It writes the task's end
	// into the database itself, as another program's task runner does. If it is a plugins.Tenant,
	// it learns of the lease. Default: the task's plugin.
	Foreign plugins.Plugin

	Observer Observer // learns what the node does; default: none

	// OnReady is called in each session when the node has registered. OnBeat is called after each
	// heartbeat that the store took: so while the node lives and its store answers. They must
	// return at once. Default: nothing is called.
	OnReady, OnBeat func()
}

// A Node is one execution node. Make it with New and run it once.
type Node struct {
	cfg     settings
	store   *bounded
	kept    plugins.Reporter // what keeps reports; nil: nothing does
	results Results          // what keeps results; the same
	evens   Balancer         // sets threads of queues; nil: it does not
	log     *slog.Logger
	hurry   chan struct{}
	once    sync.Once

	runners runners
	faults  *faults
	former  []plan.InstanceID // earlier instances of this process, or attempts at one; none of their tasks runs any more
}

// settings are a configuration in which every field has its value, and the store.
type settings struct {
	Config
	store *bounded
}

// Run makes this process a node of the store until ctx ends. With Config.Plan it also ends when
// that plan has ended or is gone. Run is New and Node.Run, whose contracts hold. An error means
// that the configuration is not valid, or that the store could not be reached when the node began.
// plan.ErrStoreGone means that the store is gone for good, and plan.ErrNameTaken that the name
// belongs to another process. Failed tasks are no error.
//
// Any number of nodes may run in one process, and any number of processes on one store.
func Run(ctx context.Context, st Store, cfg Config) error {
	n, err := New(st, cfg)
	if err != nil {
		return err
	}
	if !cfg.Plan.IsZero() {
		if err := n.store.adopt(ctx, cfg.Plan); err != nil && !errors.Is(err, plan.ErrNotFound) {
			return fmt.Errorf("run plan %s: %w", cfg.Plan, err)
		}
	}
	return n.Run(ctx)
}

// New checks the configuration and returns a node on the store. If the store is a plugins.Reporter,
// tasks report to it.
func New(st Store, cfg Config) (*Node, error) {
	if st == nil || cfg.Plugins == nil {
		return nil, errors.New("a node needs a store and plugins")
	}
	if cfg.Threads < 0 {
		return nil, fmt.Errorf("a node cannot run %d tasks at once; give it at least 1 thread", cfg.Threads)
	}
	if cfg.Threads > plan.MaxThreads {
		return nil, fmt.Errorf("a node cannot run %d tasks at once; give it at most %d threads", cfg.Threads, plan.MaxThreads)
	}
	if err := cfg.GFS.Check(); err != nil {
		return nil, err
	}
	for _, name := range cfg.Plugins.Names() {
		p, _ := cfg.Plugins.Get(name)
		if s, ok := p.(plugins.Starter); ok {
			if err := s.CheckStart(); err != nil {
				return nil, fmt.Errorf("plugin %q: %w", name, err)
			}
		}
	}
	for _, d := range []struct {
		name string
		is   time.Duration
	}{{"lease", cfg.Lease}, {"beat", cfg.Beat}, {"grace", cfg.Grace}} {
		if d.is < 0 {
			return nil, fmt.Errorf("a node cannot have a %s of %v; give it 0 for the default, or more", d.name, d.is)
		}
	}
	if cfg.Host == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("the host's name is not known: %w; give the node a name", err)
		}
		cfg.Host = host
	}
	if cfg.Name == "" {
		cfg.Name = plan.NodeName(cfg.Host)
	}
	if cfg.Process.PID == 0 {
		cfg.Process = procid.Process()
	}
	if cfg.Dead == nil {
		cfg.Dead = procid.Gone
	}
	defaultTo(&cfg.Linger, 500*time.Millisecond)
	defaultTo(&cfg.Threads, runtime.GOMAXPROCS(0))
	defaultTo(&cfg.Lease, 10*time.Second)
	defaultTo(&cfg.Beat, time.Second)
	defaultTo(&cfg.Grace, 10*time.Second)
	if cfg.Lease < 3*cfg.Beat {
		return nil, fmt.Errorf("a lease of %v is too short for a beat each %v; make it at least %v", cfg.Lease, cfg.Beat, 3*cfg.Beat)
	}
	for _, call := range []*func(){&cfg.OnReady, &cfg.OnBeat} {
		if *call == nil {
			*call = func() {}
		}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Observer == nil {
		cfg.Observer = nobody{}
	}
	store := newBounded(innermost(st), cfg.Lease, cfg.Observer)
	if cfg.Outside != nil && store.handover == nil {
		return nil, errors.New("a node cannot run tasks outside: this store cannot hand a claimed task to a runner")
	}
	kept, results := offers[plugins.Reporter](store), offers[Results](store)
	var evens Balancer
	if cfg.Balance != nil {
		if evens = store.balancer(); evens == nil {
			return nil, errors.New("a node cannot balance the queues of this store, which has no balance document")
		}
		balance := *cfg.Balance
		if balance.Every < 0 {
			return nil, fmt.Errorf("a node cannot balance each %v; give it 0 for the default, or more", balance.Every)
		}
		defaultTo(&balance.Every, balanceEvery)
		defaultTo(&balance.Zone, time.Local)
		cfg.Balance = &balance
	}
	return &Node{cfg: settings{cfg, store}, store: store, kept: kept, results: results, evens: evens, log: cfg.Logger.With("node", cfg.Name), hurry: make(chan struct{}), faults: newFaults()}, nil
}

func defaultTo[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Hurry ends the grace period of a node that stops, now or later. The node stops its tasks at once,
// and leaves behind those that do not end within 5 s. Hurry may be called at any time, and again.
func (n *Node) Hurry() { n.once.Do(func() { close(n.hurry) }) }

// Run claims and runs tasks until ctx ends. With a plan of its own, it also ends when that plan has
// ended or was deleted, by anybody and even before it began. It then stops its remaining tasks,
// whose claims it must have lost.
//
// When ctx ends, the node drains. It claims nothing more, lets its tasks continue for the grace
// period, stops the others and gives them back. Run returns when no task of it runs any more. Tasks
// that it left behind (see Hurry) are logged; others take them over as if the node had died.
//
// Run returns nil, or the store's error if the store could not be reached from the start. Later the
// node waits for a store that cannot be reached, and stops its tasks before its lease is over. On
// plan.ErrStoreGone it does not wait: it stops its tasks at once and returns that error. A call
// without an answer is given up after a minute, a small one after a lease, and repeated. A node
// that stops gives up each call after a lease, and after 3 s once it has to hurry.
//
// A node that is Sole first checks who else has its name. A live process keeps the name: Run
// returns plan.ErrNameTaken, which names that process. It does so too after a session was lost and
// another process took the name. If that process is silent, Run waits until its lease is over. It
// waits only for Linger if the process, on this host, is certainly gone. Then Run rescues the
// claims of that process, and nothing else, before it claims anything.
func (n *Node) Run(ctx context.Context) error {
	over := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(over)
	wg.Go(func() { n.shorten(ctx, over) })
	first := true
	var wait backoff.Poll
	for {
		err := n.session(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil && errors.Is(err, ctx.Err()): // told to stop before it was registered
			return nil
		case errors.Is(err, plan.ErrStoreGone), errors.Is(err, plan.ErrNameTaken):
			return err
		case first && !errors.Is(err, errSessionLost):
			return err
		case ctx.Err() != nil:
			return nil
		}
		if errors.Is(err, errSessionLost) {
			wait.Reset()
		}
		first = false
		n.log.Warn("start again", "error", err)
		if sleep(ctx, wait.Next()); ctx.Err() != nil {
			return nil
		}
	}
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// shorten has a node that stops wait less for its store, until over.
func (n *Node) shorten(ctx context.Context, over <-chan struct{}) {
	select {
	case <-ctx.Done():
		n.store.shorten(n.cfg.Lease)
	case <-over:
		return
	}
	select {
	case <-n.hurry:
		n.store.shorten(hurriedWithin)
	case <-over:
	}
}

// errSessionLost means that others declared this instance dead, or soon will: it has stopped its
// tasks, and others own them.
var errSessionLost = errors.New("lost touch with the store")

// session is the node's life as one instance. It returns nil when the node is to end.
func (n *Node) session(ctx context.Context) error {
	me := n.instance(plan.InstanceID{ID: plan.NewID(time.Now())})
	me.Sole = n.cfg.Sole
	if err := n.register(ctx, me); err != nil {
		return err
	}
	n.log.Info("node started", "instance", me.ID, "threads", n.cfg.Threads)
	n.cfg.OnReady()
	if err := n.live(ctx, me, plan.TaskID{}); err != nil {
		return err
	}
	n.log.Info("node stopped", "instance", me.ID)
	return nil
}

// instance is what the node is to its store.
func (n *Node) instance(id plan.InstanceID) plan.Instance {
	return plan.Instance{
		ID: id, Node: n.cfg.Name, Host: n.cfg.Host, Process: n.cfg.Process, Lease: n.cfg.Lease, Threads: n.cfg.Threads,
		Plugins: n.cfg.Plugins.Names(), Active: n.cfg.Active, Ignored: n.cfg.Ignored, Plan: n.cfg.Plan, Version: n.cfg.Version,
	}
}

// live is the life of an instance from when it is registered until it has left. With a task it is a runner's, which takes that one over.
func (n *Node) live(ctx context.Context, me plan.Instance, task plan.TaskID) error {
	log := n.log.With("instance", me.ID)
	// The writes of a draining node must not end with ctx.
	alive, die := context.WithCancelCause(context.WithoutCancel(ctx))
	defer die(nil)
	h := &heart{
		cfg: &n.cfg, log: log, me: me, die: die, tenants: map[string]plugins.Tenant{},
		news: make(chan protocol.Beaten, 1), rescued: make(chan struct{}, 1), hurry: make(chan struct{}), faults: n.faults,
	}
	w := &watch{cfg: &n.cfg, log: log, me: me, rescued: h.rescued, runners: &n.runners, faults: n.faults}
	l := newLoop(n, log, me, h)
	var wg sync.WaitGroup
	began := time.Now()
	h.lease(began) // before anything runs
	if n.cfg.Schedules != nil && !me.Runner && n.cfg.Plan.IsZero() {
		h.firing = &firing{s: n.cfg.Schedules, beat: n.cfg.Beat, log: log, me: me.ID, queued: h.rescued, due: make(chan *time.Duration, 1)}
		wg.Go(func() { h.firing.run(alive) })
	}
	wg.Go(func() { h.run(alive, began) })
	wg.Go(func() {
		defer close(h.hurry)
		select {
		case <-n.hurry:
		case <-alive.Done():
		}
	})
	telling, toldAll := context.WithCancel(context.WithoutCancel(ctx))
	defer toldAll()
	wg.Go(func() { l.teller.run(telling) })
	claiming, noMore := context.WithCancel(ctx)
	defer noMore()
	var err error
	if me.Runner {
		err = l.takeOver(alive, task)
	} else {
		if me.Sole {
			w.look(alive) // what runs of its name, and counts as its threads, is known before anything is claimed
		}
		wg.Go(func() { w.run(alive) })
		wg.Go(func() { (&keeper{n.store, log}).run(claiming) })
		if n.cfg.Rolls != nil && n.cfg.Plan.IsZero() {
			wg.Go(func() { (&rolling{n.cfg.Rolls, log, me.ID}).run(claiming) })
		}
		if n.evens != nil {
			b := &balancer{cfg: n.cfg.Balance, beat: n.cfg.Beat, store: n.evens, log: log, me: me.ID, pretends: map[plan.QueueID]int{}}
			wg.Go(func() { b.run(alive) })
		}
	}
	if err == nil {
		err = l.run(ctx, alive)
	}
	noMore()
	die(nil)
	close(l.teller.ended)
	defer time.AfterFunc(lastEnded, toldAll).Stop()
	wg.Wait()
	if errors.Is(err, errLeftBehind) {
		return nil // it does not say that it left, as its tasks may still run: others take them over as those of a process that died
	}
	if err != nil && !errors.Is(err, errNotTaken) {
		return err
	}
	if me.Runner && err == nil {
		err = l.endsForeign(context.WithoutCancel(ctx))
	}
	if failed := n.store.Leave(context.WithoutCancel(ctx), me.ID); failed != nil {
		log.Warn("leave the store", "error", failed) // others find the instance dead when its lease is over
		l.tellLeft(l.lost)
	}
	return err
}
