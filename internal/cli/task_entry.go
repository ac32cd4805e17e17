package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/duration"
	"github.com/seed-1177d267/sluice/internal/explain"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/states"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// A taskEntry is a task in JSON listings.
type taskEntry struct {
	ID        plan.TaskID     `json:"id"`
	Name      string          `json:"name"`
	Plan      plan.PlanID     `json:"plan,omitzero"`
	Queue     string          `json:"queue"`
	Subject   string          `json:"subject,omitempty"`
	State     string          `json:"state"`
	Status    plan.Status     `json:"status"`
	Reason    plan.Reason     `json:"reason,omitempty"`
	Allowed   bool            `json:"allowed,omitempty"` // it went wrong, and its plan allows that
	Detail    string          `json:"detail,omitempty"`
	Exit      *plan.Exit      `json:"exit,omitempty"`
	Attempt   int             `json:"attempt,omitempty"`
	Rescues   int             `json:"rescues,omitempty"`
	Node      plan.NodeName   `json:"node,omitempty"`
	Progress  *plan.Progress  `json:"progress,omitempty"` // of a running task that said how far it is
	Of        plan.TaskID     `json:"of,omitzero"`
	Index     *int            `json:"index,omitempty"`
	Item      json.RawMessage `json:"item,omitempty"` // what an item is for
	Items     int             `json:"items,omitempty"`
	Counts    *plan.Counts    `json:"counts,omitempty"` // of the items
	NotBefore time.Time       `json:"not_before,omitzero"`
	Created   time.Time       `json:"created"`
	Started   startTime       `json:"started,omitzero"`
	Ended     time.Time       `json:"ended,omitzero"`
}

// A startTime is when the last attempt at a task was started: zero if there was none, and null in JSON if nobody knows.
type startTime struct {
	time.Time
	unknown bool
}

// IsZero reports whether there is nothing to say of it.
func (s startTime) IsZero() bool { return !s.unknown && s.Time.IsZero() }

// MarshalJSON implements json.Marshaler.
func (s startTime) MarshalJSON() ([]byte, error) {
	if s.unknown {
		return []byte("null"), nil
	}
	return json.Marshal(s.Time)
}

// notKnown is the text of an unknown time in tables.
const notKnown = "-"

// startUnknown reports whether a task ran, and when it began is not known: other programs' nodes and task runners keep no such time.
func startUnknown(t *plan.Task) bool {
	ran := t.Status == plan.Running || t.Status.Finished() && t.Status != plan.Cancelled
	return ran && t.Started.IsZero() && t.Node != "" && !t.Expanded
}

func entryOfTask(t *plan.Task, queues map[plan.QueueID]string) taskEntry {
	e := taskEntry{
		ID: t.ID, Name: t.Name, Plan: t.Plan, Queue: queueOf(t, queues), Subject: t.Subject, State: t.State(), Status: t.Status, Reason: t.Reason, Allowed: t.Allowed(), Detail: t.Detail,
		Exit: t.Exit, Attempt: t.Attempt, Rescues: t.Rescues, Node: t.Node, Progress: t.Progress, Of: t.Of, Items: t.Items, NotBefore: t.NotBefore,
		Created: t.Created, Started: startTime{t.Started, startUnknown(t)}, Ended: t.Ended,
	}
	if !t.Of.IsZero() {
		e.Index = &t.Index
	}
	return e
}

func (a *app) printTasks(output *format, tasks []plan.Task, queues map[plan.QueueID]string, values values, nodes []plan.Instance) error {
	if output.json() {
		return view.JSON(a.Stdout, api.Each(tasks, func(t *plan.Task) taskEntry {
			e := entryOfTask(t, queues)
			e.Item = values[t.ID]
			return e
		}))
	}
	t := a.table("TASK", "STATE", "QUEUE", "SUBJECT", "TOOK", "NODE", "DETAIL", "ID")
	now, about := time.Now(), false
	for i := range tasks {
		task := &tasks[i]
		about = about || task.Subject != ""
		t.Add(values.label(task, a.ellipsis()), states.OfTask(task), queueOf(task, queues), cells.Cut(cells.Clean(task.Subject), 40, a.ellipsis()), tookTask(task, now), string(task.Node),
			a.detail(task, nodes), task.ID.String())
	}
	if !about {
		t.Drop("SUBJECT")
	}
	if !output.wide() {
		t.Drop("ID")
	}
	return t.Print(a.Stdout)
}

func tookTask(t *plan.Task, now time.Time) string {
	switch {
	case startUnknown(t):
		return notKnown
	case t.Started.IsZero():
		return ""
	case t.Status == plan.Running:
		return duration.Text(now.Sub(t.Started))
	case t.Ended.IsZero():
		return ""
	}
	return duration.Text(t.Ended.Sub(t.Started))
}

// detail is what a table says of a task beyond its state, in one line. nodes are those of its store.
func (a *app) detail(t *plan.Task, nodes []plan.Instance) string {
	d, _, _ := strings.Cut(t.Detail, "\n")
	if t.Progress != nil {
		d = t.Progress.String() // of this attempt, and not why the one before failed
	}
	if d = cells.Clean(d); view.IsTerminal(a.Stdout) { // a pipe has no width
		d = cells.Cut(d, 80, a.ellipsis())
	}
	switch {
	case t.Status.Active() && !explain.Holds(nodes, t):
		return explain.NodeGone(t)
	case rules.AnswerOver(t, time.Now()):
		return "its time is over, and the next node fails it: " + d
	case t.Items > 0 && (t.Status == plan.Held && t.Expanded || t.Status == plan.Succeeded):
		return view.Number(t.Items, "item")
	case t.Status > plan.Failed && d == "":
		return fmt.Sprintf("status %d", t.Status)
	case t.Attempt > 1 && d == "":
		return fmt.Sprintf("attempt %d", t.Attempt)
	case t.Attempt > 1:
		return fmt.Sprintf("attempt %d: %s", t.Attempt, d)
	}
	return d
}

// tellSkips gives tasks that were skipped a detail that says why: stores keep none, as it follows from the tasks that they need.
func tellSkips(ctx context.Context, r store.Reader, tasks []plan.Task) error {
	why, err := explain.Skips(ctx, r, tasks)
	for i := range tasks {
		tasks[i].Detail = cmp.Or(why[tasks[i].ID], tasks[i].Detail)
	}
	return err
}
