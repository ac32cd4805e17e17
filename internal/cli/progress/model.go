// Package progress is what a person sees of a plan that runs: a model fed by the store's changes, a pure function from it to lines
// of text, and a screen that redraws those lines in place on a terminal.
package progress

import (
	"cmp"
	"sort"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// A Model knows how far a plan is. It is one goroutine's.
type Model struct {
	title   string
	began   time.Time
	threads int
	counts  plan.Counts
	running map[plan.TaskID]runningTask
	most    int // that ran at once so far
	eta     estimator

	// The estimate that is shown changes at most once a second, else its last digit is a blur.
	left   time.Duration
	leftAt time.Time
}

type runningTask struct {
	item    bool // of a foreach task
	name    string
	since   time.Time // by this process's clock
	started time.Time // by the store's
	attempt int
	node    plan.NodeName
}

// New returns the model of a plan that is watched from the given time on. threads is how many of its tasks can run at once, 0 if that
// is not known.
func New(title string, began time.Time, threads int) *Model {
	return &Model{title: title, began: began, threads: threads, running: map[plan.TaskID]runningTask{}, eta: newEstimator(), left: -1}
}

// Load adds tasks as they are in the store: what they are estimated to take, and that they run already. Tasks may be loaded in
// any order, before or after changes about them were applied.
func (m *Model) Load(tasks []plan.Task) {
	for i := range tasks {
		t := &tasks[i]
		m.eta.load(t)
		if _, known := m.running[t.ID]; t.Status == plan.Running && !known && !m.eta.ended(t.ID) {
			m.running[t.ID] = runningTask{item: !t.Of.IsZero(), name: t.Key(), since: t.Started, started: t.Started, attempt: t.Attempt, node: t.Node}
		}
	}
}

// SetCounts says how many tasks are where.
func (m *Model) SetCounts(c plan.Counts) { m.counts = c }

// Runs reports whether the task is known to run.
func (m *Model) Runs(id plan.TaskID) bool {
	_, ok := m.running[id]
	return ok
}

// Apply takes in a change of one of the plan's tasks that was seen at the time now. started is when an attempt that has ended began, for
// a task that nobody saw run, if it is known. It returns how long the attempt ran that ended with the change, or less than zero if
// nobody knows.
func (m *Model) Apply(c store.Change, started, now time.Time) (took time.Duration) {
	m.eta.item(c)
	r, ran := m.running[c.Task]
	if c.Status == plan.Running {
		if !ran || r.attempt != c.Attempt {
			m.running[c.Task] = runningTask{item: !c.Of.IsZero(), name: cmp.Or(c.Name, c.Task.String()), since: now, started: c.At, attempt: c.Attempt, node: c.Node}
			m.most = max(m.most, len(m.running))
		}
		return -1
	}
	if ran {
		delete(m.running, c.Task)
		started = r.started
	}
	took = -1
	if !started.IsZero() {
		took = max(0, c.At.Sub(started))
	}
	if c.Status.Finished() {
		m.eta.end(c.Task, took)
	}
	return took
}

// A View is what there is to show at one instant.
type View struct {
	Title   string
	Elapsed time.Duration
	Counts  plan.Counts
	Running []Run         // longest first
	Left    time.Duration // less than zero if nobody can tell
	Note    string        // what the person should know just now, or nothing
}

// A Run is a task that runs.
type Run struct {
	Task    plan.TaskID
	Item    bool // of a foreach task
	Name    string
	For     time.Duration
	Attempt int
	Node    plan.NodeName

	Progress *plan.Progress // how far it said it is; nil: it said nothing
}

// View returns what there is to show.
func (m *Model) View(now time.Time) View {
	v := View{Title: m.title, Elapsed: now.Sub(m.began), Counts: m.counts, Running: make([]Run, 0, len(m.running))}
	for id, r := range m.running {
		v.Running = append(v.Running, Run{Task: id, Item: r.item, Name: r.name, For: max(0, now.Sub(r.since)), Attempt: r.attempt, Node: r.node})
	}
	sort.Slice(v.Running, func(a, b int) bool {
		x, y := &v.Running[a], &v.Running[b]
		return cmp.Or(cmp.Compare(y.For, x.For), strings.Compare(x.Name, y.Name)) < 0
	})
	if now.Sub(m.leftAt) >= time.Second || m.leftAt.IsZero() {
		m.left, m.leftAt = m.remaining(now), now
	}
	v.Left = m.left
	if v.Left >= 0 {
		v.Left = max(0, v.Left-now.Sub(m.leftAt))
	}
	return v
}

// remaining estimates how long the plan still takes. Where tasks wait for a thread, what runs now is all that can run at once;
// otherwise the plan's shape is what limits it.
func (m *Model) remaining(now time.Time) time.Duration {
	if m.counts.Unfinished() == 0 {
		return 0
	}
	active := m.counts.Running + m.counts.Claimed
	parallel := max(1, m.threads, m.most)
	if m.counts.Queued > 0 && active > 0 {
		parallel = active
	}
	left := m.eta.left(m.running, parallel, now)
	if !m.eta.hasEstimates && m.counts.Unfinished() < enough && left < least {
		return -1
	}
	return left
}
