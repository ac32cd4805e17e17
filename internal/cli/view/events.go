package view

import (
	"encoding/json"
	"io"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// An Events prints each change as a JSON object on a line of its own.
type Events struct {
	enc   *json.Encoder
	notes io.Writer
}

// An EventLine is one line of plan run --output json. Event is plan (first), task (each change of a task) or end (last).
type EventLine struct {
	Time    time.Time                  `json:"time"`
	Event   string                     `json:"event"`
	ID      string                     `json:"id"`
	Name    string                     `json:"name"`
	State   string                     `json:"state"`
	Status  int                        `json:"status"`
	Reason  plan.Reason                `json:"reason,omitempty"`
	Allowed bool                       `json:"allowed,omitempty"` // of a task that went wrong, and whose plan allows that
	Detail  string                     `json:"detail,omitempty"`
	Attempt int                        `json:"attempt,omitempty"`
	Node    plan.NodeName              `json:"node,omitempty"`
	Of      plan.TaskID                `json:"of,omitzero"`
	Seconds *float64                   `json:"seconds,omitempty"` // how long the attempt ran that ended, or the plan
	Run     int                        `json:"run,omitempty"`
	Counts  *plan.Counts               `json:"counts,omitempty"`
	Sums    *rules.Sums                `json:"sums,omitempty"`
	Outputs map[string]json.RawMessage `json:"outputs,omitempty"` // of the plan's last tasks
	Resume  string                     `json:"resume,omitempty"`  // the command that continues the plan

	Outdated []string `json:"outdated,omitempty"` // the tasks that a retry kept, and whose inputs ran again since
}

// NewEvents begins with how the plan stands.
func NewEvents(w, notes io.Writer, p *plan.Plan) (*Events, error) {
	v := &Events{lines(w), notes}
	return v, v.enc.Encode(PlanLine("plan", p, time.Now()))
}

// PlanLine is the line of an event of a plan.
func PlanLine(event string, p *plan.Plan, at time.Time) EventLine {
	sums := rules.SumsOf(p.Counts)
	return EventLine{Time: at.UTC(), Event: event, ID: p.ID.String(), Name: p.Name, State: p.State.String(), Status: int(p.State), Run: p.Run, Counts: &p.Counts, Sums: &sums}
}

// Print writes the line.
func (l *EventLine) Print(w io.Writer) error { return lines(w).Encode(l) }

// Tells implements Watch: an object has no lines below it.
func (v *Events) Tells(*Moment, *Event) bool { return false }

// Show implements Watch.
func (v *Events) Show(m *Moment) error {
	printNotes(v.notes, m.Said)
	for i := range m.Events {
		e := &m.Events[i]
		if e.Past {
			continue // what a change is was never seen
		}
		l := EventLine{
			Time: e.At.UTC(), Event: "task", ID: e.Task.String(), Name: e.Name, State: plan.State(e.Status, e.Reason), Status: int(e.Status),
			Reason: e.Reason, Allowed: e.Allowed, Detail: e.Detail, Attempt: e.Attempt, Node: e.Node, Of: e.Of,
		}
		if e.Took >= 0 {
			seconds := e.Took.Seconds()
			l.Seconds = &seconds
		}
		if err := v.enc.Encode(l); err != nil {
			return err
		}
	}
	return nil
}

// Close implements Watch.
func (v *Events) Close() {}
