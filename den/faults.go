package den

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-1177d267/sluice/backoff"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// faults is what a node remembers of tasks that it could not begin, and of the queues that it leaves
// alone for that. It outlives a session. Attempts add to it, the loop asks it what to claim, the
// heart tells the store of it, and the watch takes from it what was no fault of the node.
type faults struct {
	mu      sync.Mutex
	queues  map[plan.QueueID]*faulty
	version int           // of what the store is to know
	sent    int           // which it knows
	told    chan struct{} // closed, and replaced, as sent changes
	hurry   chan struct{} // has a value if the store is to know now

	failed map[plan.TaskID]bool // here, of a plugins.Wanderer, and will be tried again
}

// mostFailed is how many failed tasks a node remembers. It forgets all of them then, which costs an
// attempt each on the same node.
const mostFailed = 10_000

// A faulty queue has tasks that the node could not begin.
type faulty struct {
	queue  plan.Queue // as the claim described it
	why    string
	tasks  []unbegun     // the oldest first
	each   time.Duration // the present pause; 0: the queue is not paused
	until  time.Time     // when the pause ends, and one task is tried
	tried  int           // how many pauses followed each other
	trying *attempt      // the one task that is tried; nil: none is
	since  time.Time     // since when
}

// An unbegun task is one that the node could not begin.
type unbegun struct {
	id     plan.TaskID
	plan   plan.PlanID
	at     time.Time
	atTask bool // the task is at fault, so that the queue is not paused for it
}

// mostUnbegun is how many tasks of a queue a node remembers. More pauses than one for each of its
// threads say nothing new.
const mostUnbegun = 100

// mostWhy is how many bytes of a reason each reader of nodes gets.
const mostWhy = 500

func newFaults() *faults {
	return &faults{queues: map[plan.QueueID]*faulty{}, told: make(chan struct{}), hurry: make(chan struct{}, 1), failed: map[plan.TaskID]bool{}}
}

// failedHere remembers that a task failed on the node, and will be tried again.
func (f *faults) failedHere(id plan.TaskID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.failed) >= mostFailed {
		clear(f.failed)
	}
	f.failed[id] = true
}

// didFail reports, once, whether a task failed on the node before.
func (f *faults) didFail(id plan.TaskID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	was := f.failed[id]
	delete(f.failed, id)
	return was
}

// note remembers that the node could not begin a task. It returns the version of the news with it.
func (f *faults) note(a *attempt, why string) (version int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := f.queues[a.task.Queue]
	if q == nil {
		q = &faulty{queue: plan.Queue{ID: a.task.Queue, Name: a.task.QueueName, Plugin: a.task.Plugin}}
		f.queues[a.task.Queue] = q
	}
	q.why = strings.ToValidUTF8(why[:min(len(why), mostWhy)], "")
	q.forget(a.task.Task)
	q.tasks = append(q.tasks, unbegun{id: a.task.Task, plan: a.task.Plan, at: time.Now()})
	q.tasks = q.tasks[max(0, len(q.tasks)-mostUnbegun):]
	f.version++
	return f.version
}

// tell returns when the store has that version of the news. A node that gets a task next therefore
// sees who gave it back before.
func (f *faults) tell(ctx context.Context, version int) error {
	select {
	case f.hurry <- struct{}{}:
	default: // the heart is to hurry already
	}
	for {
		f.mu.Lock()
		known, told := f.sent >= version, f.told
		f.mu.Unlock()
		if known {
			return nil
		}
		select {
		case <-told:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (q *faulty) forget(id plan.TaskID) {
	q.tasks = slices.DeleteFunc(q.tasks, func(u unbegun) bool { return u.id == id })
}

// decided says whose fault it was that a noted task did not begin.
func (f *faults) decided(a *attempt, fault rules.Fault, log *slog.Logger, level slog.Level) {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := f.queues[a.task.Queue]
	if q == nil {
		return
	}
	switch fault {
	case rules.TaskAtFault:
		for i := range q.tasks {
			q.tasks[i].atTask = q.tasks[i].atTask || q.tasks[i].id == a.task.Task
		}
		if q.trying == a {
			q.trying = nil
		}
		f.end(q, log)
	case rules.NodeAtFault:
		if now := time.Now(); q.each == 0 || q.trying == a { // tasks that were claimed before the pause make it no longer
			q.tried++
			q.each, q.trying = backoff.Retry{}.Delay(q.tried, nil), nil
			q.until = now.Add(q.each)
			f.version++
			log.Log(context.Background(), level, "leaves a queue to other nodes, since it could not begin a task", "queue", q.queue.Name,
				"pause", q.each.Round(time.Millisecond), "task_name", a.task.Name, "task", a.task.Task, "error", a.why)
		}
	}
}

// end ends the pause of a queue if no task is left that the node is at fault for.
func (f *faults) end(q *faulty, log *slog.Logger) bool {
	if q.each == 0 || slices.ContainsFunc(q.tasks, func(u unbegun) bool { return !u.atTask }) {
		return false
	}
	f.open(q, log)
	return true
}

// open lets the node take tasks of a queue again.
func (f *faults) open(q *faulty, log *slog.Logger) {
	q.each, q.tried, q.trying, q.until = 0, 0, nil, time.Time{}
	f.version++
	log.Info("takes tasks of a queue again", "queue", q.queue.Name)
}

// ended says how the attempt at a task that was tried went.
func (f *faults) ended(a *attempt, log *slog.Logger) {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := f.queues[a.task.Queue]
	if q == nil {
		return
	}
	if a.lacks == plan.LacksNothing {
		q.forget(a.task.Task)
	}
	switch {
	case q.trying != a:
	case a.lacks == plan.LacksNothing:
		f.begun(q, log)
	default: // it was given back for want of room, which says nothing of the queue
		q.trying, q.until = nil, time.Now()
	}
	if len(q.tasks) == 0 && q.each == 0 {
		delete(f.queues, a.task.Queue)
		f.version++
	}
}

// begun says that the node began the task that it tried. The node may now begin the tasks that it
// could not begin before.
func (f *faults) begun(q *faulty, log *slog.Logger) {
	q.tasks = slices.DeleteFunc(q.tasks, func(u unbegun) bool { return !u.atTask })
	f.open(q, log)
}

// A ration is what a turn may claim, and which queue it tries; that is zero if it tries none.
type ration struct {
	slots           int
	active, ignored []plan.QueueID
	try             plan.QueueID
}

// ration takes paused queues from what a turn may claim. If the pause of a queue is over, the turn
// may claim one task of it, and nothing else.
func (f *faults) ration(r ration, beat time.Duration, log *slog.Logger) ration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.queues) == 0 {
		return r // as nearly always
	}
	now := time.Now()
	var paused []plan.QueueID
	for _, id := range slices.SortedFunc(maps.Keys(f.queues), func(a, b plan.QueueID) int { return cmp.Compare(a.String(), b.String()) }) {
		q := f.queues[id]
		if q.trying != nil && now.Sub(q.since) >= beat { // what cannot begin says so sooner
			f.begun(q, log)
		}
		switch {
		case q.each == 0:
			continue
		case q.trying == nil && !q.until.After(now) && r.try.IsZero():
			r.try = id
		}
		paused = append(paused, id)
	}
	switch {
	case len(paused) == 0 || r.slots == 0:
		r.try = plan.QueueID{}
	case !r.try.IsZero():
		r.slots, r.active, r.ignored = 1, []plan.QueueID{r.try}, nil
	case len(r.active) > 0:
		r.active = slices.DeleteFunc(slices.Clone(r.active), func(id plan.QueueID) bool { return slices.Contains(paused, id) })
		if len(r.active) == 0 {
			r.slots = 0
		}
	default:
		r.ignored = append(slices.Clone(r.ignored), paused...)
	}
	return r
}

// tries says which attempt a turn claimed from the queue that it tried; nil: the queue had no task,
// and is tried again after a heartbeat.
func (f *faults) tries(id plan.QueueID, a *attempt, beat time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := f.queues[id]
	if q == nil || q.each == 0 {
		return
	}
	q.trying, q.since = a, time.Now()
	if a == nil {
		q.until = q.since.Add(beat)
	}
}

// next returns how long it is until the node takes tasks again that it leaves alone now; 0: it leaves none alone.
func (f *faults) next(beat time.Duration) (in time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, q := range f.queues {
		at := q.until
		switch {
		case q.each == 0:
			continue
		case q.trying != nil:
			at = q.since.Add(beat)
		}
		if left := max(time.Until(at), time.Millisecond); in == 0 || left < in {
			in = left
		}
	}
	return in
}

// news returns what a heartbeat is to tell of the pauses, unless the store knows it already.
func (f *faults) news(said int) (pauses []plan.Pause, version int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.version == said {
		return nil, said
	}
	pauses = []plan.Pause{}
	for id, q := range f.queues {
		p := plan.Pause{Queue: id, Each: q.each, Why: q.why}
		for _, u := range q.tasks {
			p.Tasks = append(p.Tasks, u.id)
		}
		pauses = append(pauses, p)
	}
	slices.SortFunc(pauses, func(a, b plan.Pause) int { return cmp.Compare(a.Queue.String(), b.Queue.String()) })
	return pauses, f.version
}

// knows says that the store took that version of the news.
func (f *faults) knows(version int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if version > f.sent {
		f.sent = version
		close(f.told)
		f.told = make(chan struct{})
	}
}

// any reports whether the node remembers anything.
func (f *faults) any() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.queues) > 0
}

// review ends the pauses for tasks of which all other nodes have said that they cannot begin them
// either, and forgets old tasks. It reports whether the node takes tasks again. nodes are all
// registered instances, and queues all queues, if they are known.
func (f *faults) review(me *plan.Instance, nodes []plan.Instance, queues []plan.Queue, keep time.Duration, log *slog.Logger) (opened bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, q := range f.queues {
		if k := slices.IndexFunc(queues, func(q plan.Queue) bool { return q.ID == id }); k >= 0 {
			q.queue = queues[k]
		}
		for i := range q.tasks {
			u := &q.tasks[i]
			u.atTask = u.atTask || rules.WhoseFault(&rules.Unbegun{Task: u.id, Plan: u.plan, Queue: q.queue, Node: *me, Nodes: nodes}) == rules.TaskAtFault
		}
		opened = f.end(q, log) || opened
		before := len(q.tasks)
		q.tasks = slices.DeleteFunc(q.tasks, func(u unbegun) bool { return u.atTask && time.Since(u.at) > keep })
		if len(q.tasks) < before {
			f.version++
		}
		if len(q.tasks) == 0 && q.each == 0 {
			delete(f.queues, id)
		}
	}
	return opened
}

// peers is what an attempt asks about other nodes.
type peers interface {
	Queues
	Instances(ctx context.Context) ([]plan.Instance, error)
}

// ask asks the store which other nodes may run the task.
func (a *attempt) ask(ctx context.Context, u *rules.Unbegun) error {
	u.Task, u.Plan, u.Node = a.task.Task, a.task.Plan, *a.me
	u.Queue = plan.Queue{ID: a.task.Queue, Name: a.task.QueueName, Plugin: a.task.Plugin}
	queues, err := a.peers.Queues(ctx)
	if k := slices.IndexFunc(queues, func(q plan.Queue) bool { return q.ID == u.Queue.ID }); k >= 0 {
		u.Queue = queues[k]
	}
	if err == nil {
		u.Nodes, err = a.peers.Instances(ctx)
	}
	return err
}

// wanders reports whether the plugin is a plugins.Wanderer, in a node that can give tasks back.
func (a *attempt) wanders() bool {
	_, is := a.plugin.(plugins.Wanderer)
	return is && a.faults != nil
}

// passes reports whether the attempt is left to another node, since the last one failed here.
func (a *attempt) passes(ctx context.Context) bool {
	return a.wanders() && a.faults.didFail(a.task.Task) && a.othersMayRun(ctx)
}

// othersMayRun reports whether another node may run the task, as far as the store says.
func (a *attempt) othersMayRun(ctx context.Context) bool {
	var u rules.Unbegun
	err := a.ask(ctx, &u)
	return err == nil && !u.Alone()
}

// blame finds out whose fault it is that the attempt did not begin. If the store does not answer, it
// is the node's: then nothing is lost.
func (a *attempt) blame(ctx context.Context, r *plan.Result) (rules.Fault, error) {
	u := rules.Unbegun{Lacks: r.Lacks, Beside: a.beside()}
	if rules.WhoseFault(&u) == rules.NodeFull {
		return rules.NodeFull, nil
	}
	err := a.ask(ctx, &u)
	if err == nil && u.Alone() {
		return rules.TaskAtFault, nil
	}
	a.why = a.shown(r.Detail)
	version := a.faults.note(a, a.why)
	if err == nil {
		err = a.faults.tell(ctx, version)
	}
	if err == nil {
		u.Nodes, err = a.peers.Instances(ctx)
	}
	if err != nil {
		return rules.NodeAtFault, fmt.Errorf("find out who else may begin it: %w", err)
	}
	return rules.WhoseFault(&u), nil
}
