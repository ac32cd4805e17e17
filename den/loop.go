package den

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/backoff"
	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// A loop makes the turns of one session. One goroutine runs it and owns all of it, except done, on
// which attempts report.
type loop struct {
	node *Node
	cfg  *settings
	log  *slog.Logger
	me   plan.Instance
	h    *heart

	teller *teller

	running map[*attempt]bool // by attempt, since the node may claim a task again while an earlier attempt at it has not gone yet
	done    chan report
	left    chan struct{}     // closed when what did not end is left behind: nobody takes its reports
	ended   []protocol.Ending // not yet in the store,
	whose   []*attempt        // and their attempts
	max     int               // tasks at once: threads, or less if a person says so
	limit   int               // what a person says all instances of the node may have; < 0: nothing, as far as is known

	foreign  *attempt // of a runner whose task another program runs
	passed   bool     // a task is to be left to another node
	freed    bool     // something ended here that is not for the store, so that a thread is free
	more     bool     // release work is left: turn again at once; with no thread free, soon
	shares   protocol.Shares
	poll     backoff.Poll
	look     *time.Timer   // when to ask for work next, if nothing happens before
	sweep    *time.Timer   // when to sweep next,
	sweepAt  time.Time     // which is then
	swept    time.Time     // when it last was
	turned   time.Time     // when the last turn was over
	took     time.Duration // how long it was
	usage    usage         // of the processors
	lastWork time.Time
	room     int       // how many tasks ran when the node had no room for another; 0: it has
	roomAt   time.Time // when that last changed
	wake     int64
	draining bool
	over     bool             // the node's own plan has ended, or is gone
	retry    <-chan time.Time // the store failed, and is not asked again before
	final    bool             // what the store does not take now is given up
	lost     int              // how many tasks that was of
}

// A report is how an attempt ended; ok is false if its claim is lost.
type report struct {
	of     *attempt
	ending protocol.Ending
	ok     bool
}

// mostReports is how many reports may wait while the loop makes a turn. Attempts beyond wait with theirs until it takes them.
const mostReports = 1024

func newLoop(n *Node, log *slog.Logger, me plan.Instance, h *heart) *loop {
	return &loop{
		node: n, cfg: &n.cfg, log: log, me: me, h: h, teller: &teller{plans: offers[Plans](n.store), log: log, ended: make(chan endedPlan, mostEnded)},
		running: map[*attempt]bool{}, done: make(chan report, min(n.cfg.Threads, mostReports)), left: make(chan struct{}), max: n.cfg.Threads, limit: -1,
		poll: backoff.Poll{Idle: n.cfg.Idle}, look: time.NewTimer(0), sweep: time.NewTimer(0), lastWork: time.Now(),
		usage: usage{used: processorTime},
	}
}

// run makes turns until one of these happens. If stop ends and the tasks have ended, or the node's
// own plan has ended or is gone, run returns nil. If the store is gone, it returns
// plan.ErrStoreGone. If alive ends, the claims are lost, and it returns errSessionLost. run returns
// when no attempt runs any more. A node that has to end at once leaves the running attempts behind
// (errLeftBehind).
func (l *loop) run(stop, alive context.Context) error {
	defer l.look.Stop()
	defer l.sweep.Stop()
	wakes := l.cfg.store.Wakes(alive)
	stopping, gone := stop.Done(), l.node.store.gone
	var hurry <-chan struct{} // watched once it drains
	var grace, giveUp, leave <-chan time.Time
	at := make(chan struct{}) // at once: always ready to receive from
	close(at)
	due, release := true, false
	if !l.me.Runner && stop.Err() == nil {
		l.sweepNow(alive) // before it claims: the time of a plan may have ended while no node ran
	}
	for {
		if alive.Err() != nil {
			lost := len(l.running) - l.outside() + len(l.ended) // runners continue
			l.drop(stop)
			if stop.Err() != nil && l.node.store.lost() == nil {
				l.tellLeft(lost)
			}
			return cmp.Or(l.node.store.lost(), errSessionLost)
		}
		if gone == nil && len(l.running) == 0 {
			return l.node.store.lost()
		}
		if stopping != nil && stop.Err() != nil { // before a turn, which may claim: the select below may have chosen the end of a task
			if l.log.Info("stopping", "running", len(l.running), "grace", l.cfg.Grace); l.outside() > 0 {
				l.log.Info("task runners go on", "tasks", l.outside())
			}
			l.draining, stopping, hurry = true, nil, l.node.hurry
			grace = time.After(l.cfg.Grace)
			l.leaveOutside()
		}
		if gone != nil && l.retry == nil && (due || release || l.freed || len(l.ended) > 0) {
			l.gather()
			l.turn(alive, release)
		}
		if l.draining && len(l.running) == 0 && len(l.ended) == 0 {
			return l.node.store.lost() // the last turn may have been told so
		}
		if l.over {
			l.stopAll(plugins.ErrLeaseLost) // a plan does not end while anything of it is claimed
			l.drop(stop)
			return nil
		}
		due, release, l.freed = false, false, false
		var again <-chan struct{}
		var later <-chan time.Time
		switch {
		case l.more && len(l.running) < l.max:
			again = at // but stops and cancellations come first
		case l.more:
			later = time.After(time.Until(l.turned.Add(l.patience())))
		}
		look, sweep := l.look.C, l.sweep.C
		if l.retry != nil || gone == nil || l.me.Runner { // a runner has nothing to look after but its task
			look, sweep = nil, nil
		}
		select {
		case <-again:
			release = true
		case <-later:
			release = true
		case r := <-l.done:
			l.take(r)
		case <-l.retry:
			l.retry, due = nil, true
		case <-look:
			due = true
			if l.idle() && time.Since(l.swept) >= l.cfg.Beat {
				l.sweepNow(alive)
			}
		case <-sweep:
			due = l.sweepNow(alive)
		case _, open := <-wakes:
			if !open {
				wakes = nil
			}
			l.poll.Reset()
			due = true
		case <-l.h.rescued:
			l.poll.Reset()
			due = true
		case news := <-l.h.news:
			due = l.heed(news)
			release = news.Over // so a turn is made also with no thread free: it tells for good whether the plan is over
		case <-stopping:
		case <-grace:
			l.stopAll(plugins.ErrDraining)
			grace, giveUp = nil, time.After(l.cfg.Lease)
		case <-giveUp:
			l.retry, l.final, giveUp = nil, true, nil
		case <-gone: // nobody can keep its result, so it gets no grace period
			l.log.Info("the store is gone", "running", len(l.running))
			l.stopAll(plugins.ErrDraining)
			l.more, gone = false, nil
		case <-hurry:
			l.stopAll(plugins.ErrDraining)
			l.retry, l.final, grace, hurry = nil, true, nil, nil
			leave = time.After(leftWithin)
		case <-leave:
			leave = nil
			if l.reported(); len(l.running) > 0 {
				l.leaveBehind()
				return cmp.Or(l.node.store.lost(), errLeftBehind)
			}
		case <-alive.Done():
		}
	}
}

// tellLeft says of a node that stops without its store what becomes of the tasks that it had.
func (l *loop) tellLeft(tasks int) {
	if tasks > 0 {
		l.log.Warn("what ran could not be given back; other nodes rescue it when the lease is over", "tasks", tasks, "lease", l.cfg.Lease)
	}
}

// drop waits for the stopped attempts, and drops their results: others own the tasks.
func (l *loop) drop(stop context.Context) {
	stopping, hurry, leave := stop.Done(), (<-chan struct{})(nil), (<-chan time.Time)(nil)
	if l.node.store.lost() != nil { // nobody can take over the tasks left behind, or is harmed by them
		leave = time.After(leftWithin)
	}
	for len(l.running) > 0 {
		select {
		case r := <-l.done:
			l.gone(r.of)
		case <-stopping:
			stopping, hurry = nil, l.node.hurry
		case <-hurry:
			hurry, leave = nil, time.After(leftWithin)
		case <-leave:
			l.leaveBehind()
			return
		}
	}
}

// leftWithin is how long a node that has to end at once waits for stopped attempts. It is longer
// than a killed command takes, and as short as a person may wait for a program that said it ends at
// once.
const leftWithin = 5 * time.Second

// errLeftBehind means that an attempt did not end although it was stopped. Its process hangs in the
// system, where no signal ends it, or its plugin ignores its context.
var errLeftBehind = errors.New("left behind what did not end")

// reported takes the reports that are there already.
func (l *loop) reported() {
	for {
		select {
		case r := <-l.done:
			l.take(r)
		default:
			return
		}
	}
}

// leaveBehind says what did not end. Its attempts may still report, and nobody reads it.
func (l *loop) leaveBehind() {
	close(l.left)
	names := make([]string, 0, len(l.running))
	for a := range l.running {
		names = append(names, a.task.Name)
	}
	slices.Sort(names)
	if more := len(names) - mostNamed; more > 0 {
		names = append(names[:mostNamed], fmt.Sprintf("and %d more", more))
	}
	l.log.Warn("left behind what did not end though it was stopped", "tasks", strings.Join(names, ", "))
}

// mostNamed is how many tasks a message names.
const mostNamed = 10

// stopAll cancels the running attempts. Their results are gathered as usual.
func (l *loop) stopAll(cause error) {
	for a := range l.running {
		a.cancel(cause)
	}
}

func (l *loop) take(r report) {
	l.gone(r.of)
	l.heedFault(r.of)
	if !r.ok {
		l.freed = true
		return
	}
	l.ended = append(l.ended, r.ending)
	l.whose = append(l.whose, r.of)
}

// gone says that an attempt is none of this process's any more.
func (l *loop) gone(a *attempt) {
	delete(l.running, a)
	l.h.running.add(a.task.Queue, -1)
	l.h.board.drop(a)
	if a.outside != nil {
		l.node.runners.forget(a.runner)
	}
}

// roomRest is how long a node that had no room for a task waits before it runs one task more.
const roomRest = 10 * time.Second

// most is how many tasks run at once.
func (l *loop) most() int {
	if l.room > 0 {
		return min(l.room, l.max)
	}
	return l.max
}

// heedFault does what follows from an attempt that did not begin, or from one that did.
func (l *loop) heedFault(a *attempt) {
	if a.faults == nil {
		return
	}
	a.faults.ended(a, l.log)
	l.passed = l.passed || a.passed
	if a.fault != rules.NodeFull {
		return
	}
	if room := max(1, len(l.running)); l.room == 0 || room < l.room {
		l.room = room
		l.log.Log(context.Background(), l.cfg.failures(), "runs fewer tasks at once, since it has no room for another", "tasks", room, "task_name", a.task.Name, "task", a.task.Task)
	}
	l.roomAt = time.Now()
}

// makeRoom lets a node that had no room run one task more.
func (l *loop) makeRoom() {
	if l.room == 0 || time.Since(l.roomAt) < roomRest {
		return
	}
	if l.room++; l.room >= l.max {
		l.room = 0
	}
	l.roomAt = time.Now()
}

// forget frees the endings, with their outputs and logs.
func (l *loop) forget() {
	clear(l.ended)
	clear(l.whose)
	l.ended, l.whose = l.ended[:0], l.whose[:0]
}

// gather takes all reports that are there, so turns grow under load. Tasks that do almost nothing
// end as soon as they get to run. gather therefore yields to runnable attempts first: their endings
// belong in this turn, and not in the next one. Without that, turns of 256 no-op tasks were
// alternately of 1 and of 255. The yield costs next to nothing if no attempt is runnable.
func (l *loop) gather() {
	for {
		l.reported()
		if len(l.running) == 0 {
			return
		}
		runtime.Gosched()
		if len(l.done) == 0 {
			break
		}
	}
	close := max(busy, l.took)
	if l.loaded() {
		close = max(close, longest)
	}
	if time.Since(l.turned) < close {
		l.linger()
	}
}

// If turns follow each other closely, a turn may wait a little for attempts that are about to end.
// A turn has a fixed cost, and the tasks keep the processors busy meanwhile. (2,000 commands that
// do nothing took 0.57 instead of 0.70 s of Sluice's own time.) The wait grows with the duration of
// turns. If others write to the same store, or share the processors, small turns cost all of them.
// While more tasks run than there are processors, and keep them busy, a wait costs no throughput.
// The node then waits up to next for each further ending, until a task runs for each processor, or
// enough have ended, and as many as still run: those keep the processors busy while the turn runs.
// (256 requests at once were a seventh faster than with longer waits.)
const (
	busy    = 2 * time.Millisecond
	short   = 200 * time.Microsecond
	next    = 2 * time.Millisecond
	longest = 5 * time.Millisecond
	enough  = 32 // endings, by which the fixed cost of a turn is a small part of it
)

func (l *loop) patience() time.Duration { return min(max(short, l.took/4), longest) }

// linger takes reports until as many tasks have ended as still run, or its patience is over.
func (l *loop) linger() {
	began := time.Now()
	over := time.NewTimer(longest)
	defer over.Stop()
	for {
		left := l.patience() - time.Since(began)
		half := len(l.ended) >= len(l.running)
		if l.loaded() && !(half && len(l.ended) >= enough) {
			left = min(next, longest-time.Since(began))
		} else if half {
			return
		}
		if left <= 0 {
			return
		}
		over.Reset(left)
		select {
		case r := <-l.done:
			l.take(r)
		case <-over.C:
			return
		}
	}
}

// loaded reports whether more tasks run here than there are processors, and keep these busy.
func (l *loop) loaded() bool { return len(l.running) > runtime.NumCPU() && l.usage.full() }

// turn hands the store the endings and starts the claimed tasks. With release it runs also without
// endings, because there is more to release.
func (l *loop) turn(alive context.Context, release bool) {
	slots := 0
	if !l.draining && !l.passed { // else this turn would claim what it gives back
		slots = max(0, l.most()-len(l.running)-l.node.runners.others())
	}
	may := l.node.faults.ration(ration{slots: slots, active: l.me.Active, ignored: l.me.Ignored}, l.cfg.Beat, l.log)
	if may.slots == 0 && len(l.ended) == 0 && !release {
		if in := l.node.faults.next(l.cfg.Beat); in > 0 && slots > 0 {
			l.look.Reset(in)
		}
		return // nothing to ask for until something ends
	}
	t := protocol.Turn{
		Instance: l.me.ID, Ended: l.ended, Slots: may.slots, Plugins: l.cfg.Plugins.Names(), Active: may.active, Ignored: may.ignored, Plan: l.cfg.Plan,
		Start: l.cfg.Outside == nil, Shares: &l.shares, Running: l.h.running.now(),
	}
	began := time.Now()
	turned, err := l.cfg.store.Turn(alive, t)
	if err != nil {
		l.failed(alive, err)
		return
	}
	l.observe(&turned)
	l.tellLost(turned.Lost)
	l.tellEnded(alive, turned.Ended)
	l.refused(turned.Refused)
	l.turned = time.Now()
	l.took = l.turned.Sub(began)
	worked := len(l.ended) > 0 || len(turned.Claimed) > 0
	l.forget()
	l.more = turned.More
	var started *attempt
	rules.StartOrder(turned.Claimed)
	tasks := l.begun(alive, turned.Claimed)
	for i := range tasks {
		started = l.start(alive, &tasks[i])
	}
	if !may.try.IsZero() {
		l.node.faults.tries(may.try, started, l.cfg.Beat)
		l.more = true // the other queues
	}
	if turned.Delay > 0 && time.Now().Add(turned.Delay).Before(l.sweepAt) {
		l.sweepIn(turned.Delay) // later ones are found by the sweep that comes before them
	}
	if worked {
		l.lastWork = time.Now()
		l.poll.Reset()
		if time.Until(l.sweepAt) > l.cfg.Beat { // as it was idle; and the time of a plan may be over before
			l.sweepIn(l.cfg.Beat)
		}
	}
	l.over = turned.Over
	// With work at hand the next look comes with the next ending; it is here for what others queue.
	wait := l.poll.Next()
	if in := l.node.faults.next(l.cfg.Beat); in > 0 {
		wait = min(wait, in)
	}
	if turned.Rest > 0 {
		wait = min(wait, turned.Rest)
	}
	if l.passed {
		l.passed, wait = false, l.cfg.Beat/4
	}
	l.look.Reset(wait)
}

// refused logs what the store says of single tasks.
func (l *loop) refused(what []string) {
	for _, s := range what {
		l.log.Warn("refused by the store", "what", s)
	}
}

// failed keeps the endings for the next try, after a pause in which the loop still obeys stops and
// cancellations. A node that has to end at once, or that stopped a whole lease ago, tries no more.
// Tasks whose endings it could not store run again elsewhere, as if the node had died. An instance
// that is gone also learns so from its heart.
func (l *loop) failed(alive context.Context, err error) {
	if errors.Is(err, plan.ErrInstanceGone) {
		l.h.die(plugins.ErrLeaseLost)
		return
	}
	if alive.Err() != nil {
		return
	}
	l.more = false
	if l.final {
		l.log.Warn("turn; what ended is given up", "tasks", len(l.ended), "error", err)
		l.lost += len(l.ended)
		l.forget()
		return
	}
	if !errors.Is(err, plan.ErrStoreGone) { // which Run returns
		l.log.Warn("turn", "error", err)
	}
	l.retry = time.After(l.poll.Next())
}

// start runs a claimed task in a goroutine of its own.
func (l *loop) start(alive context.Context, c *protocol.ClaimedTask) *attempt {
	ctx, cancel := context.WithCancelCause(alive)
	p, _ := l.cfg.Plugins.Get(c.Plugin) // which may have gone since the store was told what there is
	a := &attempt{
		store: l.cfg.store, log: l.log, failures: l.cfg.failures(), node: l.cfg.Name, task: *c, plugin: p,
		reports: l.node.kept, cancel: cancel, hurry: l.h.hurry, began: time.Now(), board: &l.h.board,
	}
	switch {
	case l.isOutside(c):
		a.outside = l.cfg.Outside
		a.runner, a.abandon = l.node.runners.expect(l.cfg.Lease)
	case l.me.Runner && l.cfg.Foreign != nil:
		a.plugin, a.foreign = l.cfg.Foreign, true
	case c.Plan.IsZero(): // a plan's tasks are for who has logs
		if _, silent := p.(plugins.Silent); !silent {
			a.results, a.gfs = l.node.results, l.cfg.GFS
		}
	}
	if !l.me.Runner {
		a.faults, a.peers, a.me = l.node.faults, l.cfg.store, &l.me
		a.beside = l.h.running.beside()
	}
	l.running[a] = true
	l.h.running.add(c.Queue, 1)
	go func() {
		r := report{of: a}
		r.ok = a.run(alive, ctx, &r.ending)
		cancel(nil)
		l.tell(&r)
	}()
	return a
}

// tell hands a report to the loop, unless the loop has left the attempt behind.
func (l *loop) tell(r *report) {
	select {
	case l.done <- *r:
	case <-l.left:
	}
}

// heed does what the store told with a beat, and reports whether a turn is due.
func (l *loop) heed(news protocol.Beaten) bool {
	for a := range l.running {
		if !a.cancelled && slices.Contains(news.Cancel, a.task.Task) {
			a.cancelled = true // each beat tells it again until the task has ended
			about(l.log, &a.task).Info("cancelled by a person", "task", a.task.Task)
			a.cancel(plugins.ErrCancelled)
		}
	}
	// The limit is for all instances of the node. If it is raised or removed, an instance that
	// other limits held back may get more as well.
	raised := l.limit >= 0 && (news.MaxThreads < 0 || news.MaxThreads > l.limit)
	l.limit, l.max = news.MaxThreads, l.cfg.Threads
	if news.MaxThreads >= 0 {
		l.max = min(l.max, news.MaxThreads)
	}
	woken := news.Wake != l.wake
	l.wake = news.Wake
	if woken {
		l.poll.Reset()
	}
	return raised || woken
}

// sweepNow has the store put right what no turn does, and reports whether a turn is due.
func (l *loop) sweepNow(alive context.Context) bool {
	holding := make([]plan.TaskID, 0, len(l.running)+len(l.ended))
	for a := range l.running {
		holding = append(holding, a.task.Task)
	}
	for _, e := range l.ended {
		holding = append(holding, e.Task)
	}
	swept, err := l.cfg.store.Sweep(alive, protocol.Sweep{Instance: l.me.ID, Plan: l.cfg.Plan, Holding: holding})
	if err != nil {
		if errors.Is(err, plan.ErrInstanceGone) {
			l.h.die(plugins.ErrLeaseLost)
		} else if alive.Err() == nil && !errors.Is(err, plan.ErrStoreGone) {
			l.log.Warn("sweep", "error", err)
		}
		l.sweepIn(l.cfg.Beat)
		return false
	}
	for _, p := range swept.Ended {
		l.cfg.Observer.PlanEnded(p)
	}
	l.tellEnded(alive, swept.Ended)
	l.refused(swept.Refused)
	l.swept = time.Now()
	l.makeRoom()
	l.over = swept.Over
	if swept.Queued > 0 || swept.More || len(swept.Ended) > 0 {
		l.lastWork = time.Now()
	}
	next := l.cfg.Beat
	if l.idle() {
		next = l.cfg.Idle.Delay(math.MaxInt) // it goes with the looks for work, which are more often
	}
	if swept.More { // mostly what turns do too, and they are paced
		l.more = true
		next = min(next, sweepAgain)
	}
	if swept.Pending > 0 {
		next = min(next, swept.Pending)
	}
	l.sweepIn(next)
	if swept.Queued > 0 || swept.More {
		l.poll.Reset()
		return true
	}
	return false
}

// sweepAgain is when the next sweep comes if one left something.
const sweepAgain = 100 * time.Millisecond

// idle reports whether nothing runs, and nothing has happened for a while.
func (l *loop) idle() bool { return len(l.running) == 0 && time.Since(l.lastWork) >= l.cfg.Beat }

// sweepIn says when the next sweep is to come.
func (l *loop) sweepIn(d time.Duration) {
	l.sweepAt = time.Now().Add(d)
	l.sweep.Reset(d)
}
