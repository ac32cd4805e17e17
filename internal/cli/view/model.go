package view

import (
	"cmp"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// A Model knows how far a plan is. It is one goroutine's.
type Model struct {
	title  string
	began  time.Time
	counts plan.Counts

	running []Run // without For
	cut     bool  // more run

	from    plan.Counts // the first counts
	fromAt  time.Time
	countAt time.Time // of counts
}

// NewModel returns the model of a plan that has gone on since the given time.
func NewModel(title string, began time.Time) *Model {
	return &Model{title: title, began: began}
}

// SetCounts says how many tasks are where at the time now.
func (m *Model) SetCounts(c plan.Counts, now time.Time) {
	if m.fromAt.IsZero() {
		m.from, m.fromAt = c, now
	}
	m.counts, m.countAt = c, now
}

// SetRunning says which tasks run, or some of them if there are more.
func (m *Model) SetRunning(tasks []plan.Task, more bool) {
	m.running, m.cut = m.running[:0], more
	for i := range tasks {
		t := &tasks[i]
		m.running = append(m.running, Run{Task: t.ID, Item: !t.Of.IsZero(), Name: t.Key(), Started: t.Started, Attempt: t.Attempt, Node: t.Node})
	}
}

// A Frame is what there is to show at one instant.
type Frame struct {
	Title   string
	Elapsed time.Duration
	Counts  plan.Counts
	Running []Run         // longest first
	More    int           // run that are not in Running
	Left    time.Duration // less than zero if nobody can tell
	Note    string        // what the person should know just now, or nothing
}

// A Run is a task that runs.
type Run struct {
	Task    plan.TaskID
	Item    bool // of a foreach task
	Name    string
	Started time.Time
	For     time.Duration
	Attempt int
	Node    plan.NodeName

	Progress *plan.Progress // how far it said it is; nil: it said nothing
}

// Frame returns what there is to show.
func (m *Model) Frame(now time.Time) Frame {
	v := Frame{Title: m.title, Elapsed: now.Sub(m.began), Counts: m.counts, Running: slices.Clone(m.running), Left: -1}
	for i := range v.Running {
		r := &v.Running[i]
		r.For = max(0, now.Sub(r.Started)) // the store's clock may be ahead
	}
	sort.Slice(v.Running, func(a, b int) bool {
		x, y := &v.Running[a], &v.Running[b]
		return cmp.Or(cmp.Compare(y.For, x.For), strings.Compare(x.Name, y.Name)) < 0
	})
	if m.cut {
		v.More = max(0, m.counts.Running-len(v.Running))
	}
	if left, ok := rules.TimeLeft(m.from, m.counts, m.countAt.Sub(m.fromAt)); ok {
		v.Left = left
	}
	return v
}
