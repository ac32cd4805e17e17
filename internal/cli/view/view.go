// Package view owns what a person sees of plans on a terminal, in a log and as JSON lines: tables, live progress, logs and colours. A
// view receives values; it opens no store and reads no flag.
package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/duration"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/states"
	"github.com/seed-1177d267/sluice/plan"
)

// A Moment is the input of a view of a run: the events since the last moment, and the state of the
// plan.
type Moment struct {
	Now    time.Time
	Plan   *plan.Plan
	Events []Event
	Said   []string // further notes since the last moment
	Note   string   // what a person should know just now
	Brief  bool     // lines are for failures and retries alone
	Frame  Frame    // the drawing of a live view; no other view uses it
}

// An Event is a change of a task.
type Event struct {
	At      time.Time
	Task    plan.TaskID
	Of      plan.TaskID // of an item, its foreach task
	Name    string
	Label   string // names the task to people
	Status  plan.Status
	Reason  plan.Reason
	Allowed bool // the task went wrong, and its plan allows that
	Detail  string
	Attempt int
	Node    plan.NodeName

	Took  time.Duration // how long the attempt ran that ended with the change, less than zero if nobody knows
	Again bool          // the attempt failed, and is followed by another
	Stays bool          // it is of one of few tasks beside many items: it is shown in any case
	Past  bool          // of an attempt that was over, and followed by another, before anybody looked: it failed, or was lost

	Below []string // the lines that stand below the one of the event
}

// A Watch shows a plan that runs.
type Watch interface {
	// Tells reports whether the view has a line for an event. Only then are the lines below it read.
	Tells(m *Moment, e *Event) bool
	Show(m *Moment) error
	// Close ends the view: what is printed after stands on lines of its own.
	Close()
}

// End is the line that says how a task, or an attempt that is tried again, ended; "" for a change that is no end.
func (e *Event) End(p Palette) string {
	word := states.WordOf(plan.State(e.Status, e.Reason), e.Allowed)
	note, _, _ := strings.Cut(e.Detail, "\n")
	switch {
	case e.Status.Finished():
	case e.Reason == plan.ReasonApproval:
		word = "asks"
	case e.Again, e.Past:
		how := "failed"
		if e.Past {
			how = "did not succeed"
		}
		word, note = "retry", strings.TrimSuffix(fmt.Sprintf("attempt %d %s: %s", e.Attempt, how, note), ": ")
	default:
		return ""
	}
	shown := word
	if states.SaysAllowed(word) {
		shown = "allowed" // all of it is wider than the column
	}
	line := p.State(word, cells.Pad(shown, 10)) + " " + e.Label
	if e.Took >= 0 && e.Attempt > 0 {
		line += "  " + p.Dim(duration.Text(e.Took))
	}
	if note != "" {
		line += "  " + cells.Clean(note)
	}
	return line
}

// Broken reports whether a task with that status went wrong.
func Broken(s plan.Status) bool {
	return rules.OutcomeOf(s, plan.ReasonNone, false) == rules.OutcomeFailed
}

// told writes the lines of those events that a view tells of, and the lines below them.
func told(v Watch, m *Moment, p Palette) (all []string) {
	for i := range m.Events {
		if e := &m.Events[i]; v.Tells(m, e) {
			all = append(append(all, e.End(p)), e.Below...)
		}
	}
	return all
}
