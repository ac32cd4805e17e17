package den

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// An Outside runs tasks of a node in runners: one process for each task. A runner takes over the
// task that its node has claimed, keeps a lease of its own, and ends the task. So the node may be
// stopped, upgraded and started meanwhile, or die.
type Outside interface {
	// Runs reports whether the tasks of a queue, by its name, and of its plugin are run outside.
	Runs(queue, plugin string) bool
	// Run starts a runner that takes the task over as the instance; the runner calls RunClaimed.
	// Run returns when the runner's process has ended, with an error if the runner did not take the
	// task or did not end it. If ctx ends, Run returns as well, and the runner continues. If
	// abandon is closed, Run ends the process with all that it runs. The node closes abandon if the
	// runner has not taken the task in time, has lost it, or is silent and soon will lose it. Any
	// number of goroutines call Run at once.
	Run(ctx context.Context, t *protocol.ClaimedTask, as plan.InstanceID, abandon <-chan struct{}) error
}

// isOutside reports whether a task is left to a runner. To make the items of a foreach task is the node's own work.
func (l *loop) isOutside(c *protocol.ClaimedTask) bool {
	return l.cfg.Outside != nil && !l.me.Runner && (c.Foreach == nil || !c.Foreach.OnNode()) && l.cfg.Outside.Runs(c.QueueName, c.Plugin)
}

// begun marks the claimed tasks that the node runs itself as running. A task for a runner stays
// claimed, as the runner expects to find it. begun returns the tasks to start here, of either kind.
func (l *loop) begun(alive context.Context, claimed []protocol.ClaimedTask) []protocol.ClaimedTask {
	if l.cfg.Outside == nil {
		return claimed
	}
	var own []protocol.Claim
	for i := range claimed {
		if !l.isOutside(&claimed[i]) {
			own = append(own, claimed[i].Claim)
		}
	}
	if len(own) == 0 {
		return claimed
	}
	lost, err := l.cfg.store.Start(alive, own)
	if err != nil && alive.Err() == nil {
		l.log.Warn("start what was claimed; it is given back", "tasks", len(own), "error", err)
	}
	not := map[plan.TaskID]bool{}
	for _, id := range lost {
		not[id] = true
	}
	var start []protocol.ClaimedTask
	for _, c := range claimed {
		switch {
		case not[c.Task]:
		case err != nil && !l.isOutside(&c):
			l.ended = append(l.ended, protocol.Ending{Claim: c.Claim, Status: plan.Queued})
			l.whose = append(l.whose, &attempt{task: c})
		default:
			start = append(start, c)
		}
	}
	return start
}

// outside is how many tasks were left to runners that this process waits for.
func (l *loop) outside() (n int) {
	for a := range l.running {
		if a.outside != nil {
			n++
		}
	}
	return n
}

// leaveOutside stops waiting for runners, which continue. It gives back the tasks that no runner
// has taken yet.
func (l *loop) leaveOutside() {
	for a := range l.running {
		if a.outside != nil {
			a.cancel(plugins.ErrDraining)
		}
	}
}

// runnerPause is how long a thread rests whose runner could not run its task: what is wrong would be wrong again at once.
const runnerPause = 5 * time.Second

// leave leaves the task to a runner. It returns the ending that gives the task back; the store
// refuses that ending if the runner took the task.
func (a *attempt) leave(ctx context.Context) (back bool) {
	err := a.outside.Run(ctx, &a.task, a.runner, a.abandon)
	if err != nil && ctx.Err() == nil {
		about(a.log, &a.task).Error("its task runner failed", "task", a.task.Task, "error", err)
		sleep(ctx, runnerPause)
	}
	back = err != nil || ctx.Err() != nil
	return back && !errors.Is(context.Cause(ctx), plugins.ErrLeaseLost)
}

// runners are those that run tasks of the node. Any number of goroutines may use it.
type runners struct {
	mu    sync.Mutex
	own   map[plan.InstanceID]*expected // that this process waits for
	other int                           // of an earlier process, or session, of the node
}

// An expected runner is one that was started.
type expected struct {
	patience time.Duration // for how long it may be none of the store's instances, before it takes its task or after it ended that
	missed   time.Time     // since when it is none
	beats    int64         // that the store had of it at the last look,
	heard    time.Time     // and since when it has no more; the zero time: it was not there yet
	abandon  chan struct{} // closed when that was too long; then nil,
	ended    time.Time     // and when that was
}

// left returns how long the runner may stay silent. A longer silence means that it hangs, because
// its own heart gives up before. The rest of its lease is for ending it, and all that it runs,
// before anybody takes its task over.
func (e *expected) left(lease time.Duration, at time.Time) time.Duration {
	return lease*3/4 - at.Sub(e.heard)
}

// end has the runner ended.
func (e *expected) end(now time.Time) {
	if e.abandon != nil {
		close(e.abandon)
		e.abandon, e.ended = nil, now
	}
}

// expect returns the instance that a runner is to be, and what is closed when it is not there for that long.
func (r *runners) expect(patience time.Duration) (plan.InstanceID, <-chan struct{}) {
	now := time.Now()
	id, abandon := plan.InstanceID{ID: plan.NewID(now)}, make(chan struct{})
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.own == nil {
		r.own = map[plan.InstanceID]*expected{}
	}
	r.own[id] = &expected{patience: patience, missed: now, abandon: abandon}
	return id, abandon
}

// forget says that this process does not wait for a runner any more.
func (r *runners) forget(id plan.InstanceID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.own, id)
}

// isEnding reports whether this process is ending a runner that it waits for. Until the runner has
// ended, nobody else may have its task. A runner that hangs in the system, where no signal ends it,
// is waited for no longer than a lease.
func (r *runners) isEnding(i *plan.Instance) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	own := r.own[i.ID]
	return own != nil && own.abandon == nil && time.Since(own.ended) < i.Lease
}

// count counts the other runners, and reports whether they have become fewer. It ends own runners
// that are not registered, or that have been silent for too long. all is the store's answer at some
// time after asked. count also returns when to look again at the latest; 0 means with the next
// heartbeat.
func (r *runners) count(me *plan.Instance, all []plan.Instance, asked time.Time) (fewer bool, again time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, before := time.Now(), r.other
	r.other = 0
	for i := range all {
		if !all[i].Runner || all[i].Node != me.Node {
			continue
		}
		own := r.own[all[i].ID]
		if own == nil {
			r.other++
			continue
		}
		own.missed = now
		if own.heard.IsZero() || own.beats != all[i].Beats {
			own.beats, own.heard = all[i].Beats, now
		}
		// The answer of the store is as old as the question: this process may have stood still
		// itself since then.
		if left := own.left(all[i].Lease, asked); left <= 0 {
			own.end(now)
		} else if again == 0 || left < again {
			again = left
		}
	}
	for _, own := range r.own {
		if asked.Sub(own.missed) > own.patience {
			own.end(now)
		}
	}
	return r.other < before, again
}

// others are threads of the node that are taken.
func (r *runners) others() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.other
}

// errNotTaken means that a runner did not get its task.
var errNotTaken = errors.New("the task was not taken")

// RunClaimed, used in place of Run, runs one task that a node of the configured Name has claimed.
// That may be a node of Sluice, or a program that speaks Disbatch. RunClaimed registers as the
// instance, takes the task over, and returns nil when the task has ended. When ctx ends, it stops
// the task after the grace period, as Run does. It returns plan.ErrConflict or plan.ErrNotFound if
// it could not take the task, and an error if it lost the lease.
func (n *Node) RunClaimed(ctx context.Context, id plan.TaskID, as plan.InstanceID) error {
	if n.store.handover == nil {
		return fmt.Errorf("take task %s: this store cannot hand a claimed task to a runner", id)
	}
	me := n.instance(as)
	me.Runner, me.Threads = true, 1
	if err := n.store.Register(ctx, me); err != nil {
		return fmt.Errorf("register a runner of node %s: %w", n.cfg.Name, err)
	}
	return n.live(ctx, me, id)
}

// endsForeign checks whether another program's task runner, which has exited, has ended its task.
// If not, the task is lost, as one that ran: the effects of the dead runner are unknown. A runner
// that died before it said that it began would die so each time.
func (l *loop) endsForeign(ctx context.Context) error {
	if l.foreign == nil {
		return nil
	}
	if _, err := l.cfg.store.Start(ctx, []protocol.Claim{l.foreign.task.Claim}); err != nil {
		return fmt.Errorf("check whether the task runner ended its task: %w", err)
	}
	lost, err := l.cfg.store.Rescue(ctx, l.me.ID, -1)
	if err == nil && lost > 0 {
		err = fmt.Errorf("the task runner ended before its task: the task is lost%s", l.foreign.last)
	}
	return err
}

// takeOver makes the task the runner's. A store that cannot be reached is asked again, for as long as the lease lasts.
func (l *loop) takeOver(alive context.Context, id plan.TaskID) error {
	for {
		c, err := l.cfg.store.Take(alive, protocol.Take{Instance: l.me.ID, Task: id, Start: l.cfg.Foreign == nil})
		if err == nil {
			l.draining = true
			a := l.start(alive, &c)
			if a.foreign {
				l.foreign = a
			}
			return nil
		}
		if !errors.Is(err, plan.ErrUnavailable) || alive.Err() != nil {
			return fmt.Errorf("take task %s: %w: %w", id, errNotTaken, err)
		}
		sleep(alive, l.poll.Next())
	}
}
