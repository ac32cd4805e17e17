package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/cli/paint"
	"github.com/seed-1177d267/sluice/internal/cli/progress"
	"github.com/seed-1177d267/sluice/internal/duration"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// Of a plan with up to so many tasks each task's end is kept on the terminal; of a larger one only what went wrong.
const keepEnds = 100

// How much of a failed task's log is shown, and of how many tasks.
const (
	tailLines = 20
	mostTails = 10
)

// endLine says how a task, or an attempt that is tried again, ended; "" for a change that is no end.
func endLine(e *event, p paint.Palette) string {
	word := plan.WordOf(plan.State(e.Status, e.Reason), e.Allowed)
	note, _, _ := strings.Cut(e.Detail, "\n")
	switch {
	case e.Status.Finished():
	case e.lost:
		word, note = "retry", fmt.Sprintf("attempt %d failed, or was lost with its node", e.Attempt)
	case e.again, e.past:
		word = "retry"
		if note = strings.TrimSuffix(fmt.Sprintf("attempt %d failed: %s", e.Attempt, note), ": "); e.said != "" {
			note += "; it said last: " + e.said
		}
	default:
		return ""
	}
	line := p.State(word, cells.Pad(word, 10)) + " " + e.label
	if e.took >= 0 && e.Attempt > 0 {
		line += "  " + p.Dim(duration.Text(e.took))
	}
	if note != "" {
		line += "  " + cells.Clean(note)
	}
	return line
}

// A liveView redraws a few lines in place on a terminal.
type liveView struct {
	model  *progress.Model
	screen *progress.Screen
	style  progress.Style
	own    plan.NodeName // not worth naming beside each task
	r      store.Reader
	values values // of the items that run and were shown

	reached map[plan.TaskID]*plan.Progress // of those that run and were shown,
	asked   time.Time                      // and when that was read
	logs    *outputs                       // nil: the logs of tasks that failed are shown at the end only
}

func (a *app) newLiveView(f *os.File, r store.Reader, model *progress.Model, own plan.NodeName) *liveView {
	size := func() (int, int) {
		columns, rows, err := term.GetSize(int(f.Fd()))
		if err != nil || columns <= 0 || rows <= 0 {
			return 80, 24
		}
		return columns, rows
	}
	return &liveView{
		model: model, screen: progress.NewScreen(a.Stdout, size), style: progress.Style{Palette: a.paint(f), Unicode: a.unicode()}, own: own, r: r,
	}
}

func (v *liveView) show(ctx context.Context, m *moment) error {
	var lasting []string
	var failed error
	for i := range m.events {
		e := &m.events[i]
		if v.logs == nil && e.Status == plan.Succeeded && (m.plan.Counts.Total() > keepEnds || !e.Of.IsZero()) {
			continue
		}
		line := endLine(e, v.style.Palette)
		if line == "" {
			continue
		}
		lasting = append(lasting, line)
		if v.logs != nil {
			below, err := v.logs.below(ctx, e)
			failed = errors.Join(failed, err)
			lasting = append(lasting, below...)
		}
	}
	shown := v.model.View(m.now)
	for i := range shown.Running {
		if shown.Running[i].Node == v.own {
			shown.Running[i].Node = ""
		}
	}
	shown.Note = m.note
	listed := shown.Running[:min(len(shown.Running), progress.MostRunning)]
	err := errors.Join(v.name(ctx, listed), v.reach(ctx, m.now, listed))
	return errors.Join(failed, err, v.screen.Show(lasting, func(columns, rows int) []string { return progress.Render(shown, columns, rows, v.style) }))
}

// reach gives those that run what they said of how far they are, which is read once a second, as often as nodes tell it.
func (v *liveView) reach(ctx context.Context, now time.Time, runs []progress.Run) error {
	if len(runs) > 0 && now.Sub(v.asked) >= time.Second {
		ids := make([]plan.TaskID, len(runs))
		for i := range runs {
			ids[i] = runs[i].Task
		}
		tasks, err := v.r.Tasks(ctx, store.TaskQuery{IDs: ids, Reached: true, Limit: len(ids)})
		if err != nil {
			return err
		}
		v.asked, v.reached = now, map[plan.TaskID]*plan.Progress{}
		for i := range tasks {
			v.reached[tasks[i].ID] = tasks[i].Progress
		}
	}
	for i := range runs {
		runs[i].Progress = v.reached[runs[i].Task]
	}
	return nil
}

// name gives items their labels. What an item is for is read once, when it is first shown; of the others nobody asks.
func (v *liveView) name(ctx context.Context, runs []progress.Run) error {
	known := make(values, len(runs))
	var unknown []plan.Task
	for i := range runs {
		r := &runs[i]
		item, ok := v.values[r.Task]
		switch {
		case ok:
			known[r.Task] = item
		case r.Item:
			known[r.Task] = nil // also if it says nothing of what it is for
			unknown = append(unknown, plan.Task{ID: r.Task, Of: r.Task})
		}
	}
	read, err := itemValues(ctx, v.r, unknown)
	if err != nil {
		return err
	}
	maps.Copy(known, read)
	v.values = known
	for i := range runs {
		if r := &runs[i]; r.Item {
			r.Name = known.label(&plan.Task{ID: r.Task, Name: r.Name}, ellipsis(v.style.Unicode))
		}
	}
	return nil
}

func (v *liveView) close() { _ = v.screen.Clear() } // what follows says whether the terminal is gone

// unicode reports whether the locale can show more than ASCII.
func (a *app) unicode() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToUpper(a.Getenv(name)); v != "" {
			return strings.Contains(v, "UTF-8") || strings.Contains(v, "UTF8")
		}
	}
	return false
}

// ellipsis is what stands for what was cut off, where people read it.
func ellipsis(unicode bool) string {
	if unicode {
		return "…"
	}
	return "..."
}

func (a *app) ellipsis() string { return ellipsis(a.unicode()) }

// A plainView prints a line for each end, and what tasks had printed. Where the moment is brief it prints a line for each failure and
// each retry, and in place of the others how far the plan is.
type plainView struct {
	w        io.Writer
	notes    io.Writer
	colour   paint.Palette
	logs     *outputs
	progress *progress.Reporter // nil: none is told
}

func (v *plainView) show(ctx context.Context, m *moment) error {
	printNotes(v.notes, m.said)
	var b strings.Builder
	var failed error
	for i := range m.events {
		e := &m.events[i]
		line := endLine(e, v.colour)
		if line == "" || m.brief && e.Status.Finished() && !broken(e.Status) {
			continue
		}
		b.WriteString(line + "\n")
		below, err := v.logs.below(ctx, e)
		failed = errors.Join(failed, err)
		for _, l := range below {
			b.WriteString(l + "\n")
		}
	}
	if m.brief && v.progress != nil {
		if line := v.progress.Line(m.plan.Counts, m.now); line != "" {
			b.WriteString(line + "\n")
		}
	}
	if b.Len() == 0 {
		return failed
	}
	_, err := io.WriteString(v.w, b.String())
	return errors.Join(failed, err)
}

func (v *plainView) close() {}

// printNotes prints notes. Where that fails nobody can be told, and the rest of what is to be shown does not suffer.
func printNotes(w io.Writer, said []string) {
	for _, text := range said {
		fmt.Fprintln(w, text)
	}
}

// broken reports whether a task with that status went wrong.
func broken(s plan.Status) bool {
	return plan.OutcomeOf(s, plan.ReasonNone, false) == plan.OutcomeFailed
}

// An eventView prints each change as a JSON object on a line of its own.
type eventView struct {
	enc   *json.Encoder
	notes io.Writer
}

// An eventLine is one line of plan run --output json. Event is plan (first), task (each change of a task) or end (last).
type eventLine struct {
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
	Sums    *plan.Sums                 `json:"sums,omitempty"`
	Outputs map[string]json.RawMessage `json:"outputs,omitempty"` // of the plan's last tasks
	Resume  string                     `json:"resume,omitempty"`  // the command that goes on with the plan

	Outdated []string `json:"outdated,omitempty"` // the tasks that a retry kept, and whose inputs ran again since
}

// newEventView begins with how the plan stands.
func newEventView(w, notes io.Writer, p *plan.Plan) (*eventView, error) {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return &eventView{enc: enc, notes: notes}, enc.Encode(planLine("plan", p, time.Now()))
}

func planLine(event string, p *plan.Plan, at time.Time) eventLine {
	sums := p.Counts.Sums()
	return eventLine{Time: at.UTC(), Event: event, ID: p.ID.String(), Name: p.Name, State: p.State.String(), Status: int(p.State), Run: p.Run, Counts: &p.Counts, Sums: &sums}
}

func (v *eventView) show(_ context.Context, m *moment) error {
	printNotes(v.notes, m.said)
	for i := range m.events {
		e := &m.events[i]
		if e.past {
			continue // what a change is was never seen
		}
		l := eventLine{
			Time: e.At.UTC(), Event: "task", ID: e.Task.String(), Name: e.Name, State: plan.State(e.Status, e.Reason), Status: int(e.Status),
			Reason: e.Reason, Allowed: e.Allowed, Detail: e.Detail, Attempt: e.Attempt, Node: e.Node, Of: e.Of,
		}
		if e.took >= 0 {
			seconds := e.took.Seconds()
			l.Seconds = &seconds
		}
		if err := v.enc.Encode(l); err != nil {
			return err
		}
	}
	return nil
}

func (v *eventView) close() {}

// A quietView shows nothing until the end.
type quietView struct{ notes io.Writer }

func (v *quietView) show(_ context.Context, m *moment) error {
	printNotes(v.notes, m.said)
	return nil
}

func (v *quietView) close() {}

// terminal returns standard output if live progress can be shown on it.
func (a *app) terminal() (*os.File, bool) {
	f, ok := fileOf(a.Stdout)
	return f, ok && isTerminal(f) && a.Getenv("TERM") != "dumb" && enableSequences(f)
}
