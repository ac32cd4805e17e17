package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/duration"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func taskShow(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "show {PLAN TASK | ID}",
		Short:             "Show everything about a task, its params and output included",
		Long:              "Show everything about a task, its params and output included.\n\n" + taskHelp,
		Args:              between(1, 2),
		ValidArgsFunction: a.completePlan,
	}
	output := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		return a.withStore(ctx, func(st store.Store) error {
			t, err := findWholeTask(ctx, st, args)
			switch {
			case errors.Is(err, plan.ErrTooMuchOutput):
				hint := ""
				if len(args) == 2 {
					hint = ", as in: " + a.command("task", "show", args[0], plan.ItemName(t.Name, 0))
				}
				a.note("%v%s", err, hint)
			case err != nil:
				return err
			}
			queues, err := queueNames(ctx, st)
			if err != nil {
				return err
			}
			values, err := itemValues(ctx, st, []plan.Task{t})
			if err != nil {
				return err
			}
			shown := detailsOfTask(&t, queues)
			shown.Item = values[t.ID]
			if err := shown.sizes(ctx, st); err != nil { // another program may have left them in pieces
				a.note("what it printed: %v", err)
			}
			if output.json() {
				return printJSON(a.Stdout, shown)
			}
			told := []plan.Task{t}
			if err := tellSkips(ctx, st, told); err != nil {
				return err
			}
			shown.Detail = told[0].Detail
			title := ""
			if !t.Plan.IsZero() {
				p, err := st.Plan(ctx, t.Plan)
				if err != nil && !errors.Is(err, plan.ErrNotFound) { // it may be being deleted
					return err
				}
				if err == nil {
					title = p.Title()
				}
			}
			return a.printTask(ctx, st, &shown, title)
		})
	}
	return cmd
}

// taskDetails is everything about a task; durations are written as in plan files.
type taskDetails struct {
	taskEntry
	Description     string          `json:"description,omitempty"`
	When            plan.When       `json:"when,omitempty"`
	Foreach         *plan.Foreach   `json:"foreach,omitempty"`
	Attempts        int             `json:"attempts,omitempty"` // as in Retry
	Retry           *api.Retry      `json:"retry,omitempty"`
	Timeout         string          `json:"timeout,omitempty"`
	OnLost          plan.OnLost     `json:"on_lost,omitempty"`
	ContinueOnError bool            `json:"continue_on_error,omitempty"`
	Estimate        string          `json:"estimate,omitempty"`
	Rank            int64           `json:"rank,omitempty"`
	Cancel          bool            `json:"cancel,omitempty"`
	Needs           []plan.TaskID   `json:"needs,omitempty"`
	Params          json.RawMessage `json:"params,omitempty"`
	Output          json.RawMessage `json:"output"`
	Stdout          *int64          `json:"stdout_bytes,omitempty"`
	Stderr          *int64          `json:"stderr_bytes,omitempty"`

	took string // for people
}

func detailsOfTask(t *plan.Task, queues map[plan.QueueID]string) taskDetails {
	d := taskDetails{
		taskEntry: entryOfTask(t, queues), Description: t.Description, When: t.When, Foreach: t.Foreach, Attempts: t.Retry.Attempts,
		OnLost: t.OnLost, ContinueOnError: t.ContinueOnError, Rank: t.Rank, Cancel: t.Cancel, Needs: t.Needs, Params: t.Params,
		Output: t.Output, took: tookTask(t, time.Now()), Retry: api.TaskOf(t, "").Retry,
	}
	if len(d.Output) == 0 {
		d.Output = json.RawMessage("null")
	}
	if t.Timeout > 0 {
		d.Timeout = t.Timeout.String()
	}
	if t.Estimate > 0 {
		d.Estimate = t.Estimate.String()
	}
	return d
}

// mostNeeds is how many of the tasks that one needs are named.
const mostNeeds = 20

// printTask prints what a person wants to know of a task, a field a line; what is longer, or has lines of its own, stands below its key.
// title names the task's plan; "" if that is not known.
func (a *app) printTask(ctx context.Context, r store.Reader, d *taskDetails, title string) error {
	needs, err := needNames(ctx, r, d.Needs)
	if err != nil {
		return err
	}
	of := ""
	if !d.Of.IsZero() {
		names, err := needNames(ctx, r, []plan.TaskID{d.Of})
		if err != nil {
			return err
		}
		of = names[0]
	}
	now := time.Now()
	b := &fields{}
	b.add("name", d.Name)
	b.add("id", d.ID.String())
	if !d.Plan.IsZero() {
		b.add("plan", strings.TrimPrefix(title+"  "+d.Plan.String(), "  "))
	}
	b.add("queue", d.Queue)
	b.styled("state", a.paint(a.Stdout).State(plan.WordOf(d.State, d.Allowed), plan.WordOf(d.State, d.Allowed)))
	if d.Status > plan.Failed {
		b.add("status", fmt.Sprint(int(d.Status)))
	}
	if string(d.Reason) != d.State {
		b.add("reason", string(d.Reason))
	}
	if d.Progress != nil {
		b.add("progress", d.Progress.String())
	}
	b.add("detail", d.Detail)
	if d.Exit != nil {
		b.add("exit", cmp.Or(d.Exit.Signal, fmt.Sprintf("status %d", d.Exit.Code)))
	}
	if d.Cancel && !d.Status.Finished() {
		b.add("cancel", "a person cancelled it, and its node has not stopped it yet")
	}
	b.add("description", d.Description)
	b.add("item of", of)
	b.value("item", d.Item)
	if d.Items > 0 {
		b.add("items", fmt.Sprint(d.Items))
	}
	switch {
	case d.Attempt > 0 && d.Attempts > 1:
		b.add("attempt", fmt.Sprintf("%d of %d", d.Attempt, d.Attempts))
	case d.Attempt > 0:
		b.add("attempt", fmt.Sprint(d.Attempt))
	case d.Attempts > 1:
		b.add("attempts", fmt.Sprint(d.Attempts))
	}
	if d.Rescues > 0 {
		b.add("rescues", fmt.Sprint(d.Rescues))
	}
	b.add("node", string(d.Node))
	b.time("created", d.Created, now)
	b.time("not before", d.NotBefore, now)
	if b.time("started", d.Started.Time, now); d.Started.unknown {
		b.add("started", notKnown+" (another program ran it, and keeps no such time)")
	}
	b.time("ended", d.Ended, now)
	b.add("took", d.took)
	b.add("needs", strings.Join(needs, ", "))
	b.add("when", string(d.When))
	b.foreach(d.Foreach)
	b.add("timeout", d.Timeout)
	b.add("estimate", d.Estimate)
	b.add("on_lost", string(d.OnLost))
	if d.ContinueOnError {
		b.add("continue-on-error", "true")
	}
	b.members("params", d.Params)
	b.value("output", d.Output)
	b.add("stdout", bytesText(d.Stdout))
	b.add("stderr", bytesText(d.Stderr))
	_, err = io.WriteString(a.Stdout, b.String())
	return err
}

// needNames returns what tasks are called that another one needs, in its order; of many only the first.
func needNames(ctx context.Context, r store.Reader, ids []plan.TaskID) ([]string, error) {
	shown := ids[:min(len(ids), mostNeeds)]
	if len(shown) == 0 {
		return nil, nil
	}
	tasks, err := r.Tasks(ctx, store.TaskQuery{IDs: shown, Limit: len(shown)})
	if err != nil {
		return nil, err
	}
	byID := make(map[plan.TaskID]string, len(tasks))
	for i := range tasks {
		byID[tasks[i].ID] = tasks[i].Key()
	}
	names := make([]string, len(shown), len(shown)+1)
	for i, id := range shown {
		if names[i] = byID[id]; names[i] == "" {
			names[i] = id.String() + " (deleted)"
		}
	}
	if more := len(ids) - len(shown); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return names, nil
}

// fields are keys with what they say, each on a line or more.
type fields struct {
	strings.Builder
	indent string // of the keys
}

const keyWidth = 19 // of the longest key and two spaces

// add writes a field, unless it says nothing. Each line of it is clean: it may come from who wrote the plan, or from a command.
func (b *fields) add(key, text string) {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, l := range lines {
		lines[i] = cells.Clean(l)
	}
	b.styled(key, strings.Join(lines, "\n"+strings.Repeat(" ", keyWidth)))
}

// styled writes a field whose text is fit to be shown.
func (b *fields) styled(key, text string) {
	if text != "" {
		b.WriteString(cells.Pad(b.indent+cells.Clean(key), keyWidth-1) + " " + text + "\n")
	}
}

// time writes a time by the clock on the wall, and how long ago it was, or in how long it will be.
func (b *fields) time(key string, t, now time.Time) {
	switch {
	case t.IsZero():
	case t.After(now):
		b.add(key, fmt.Sprintf("%s (in %s)", t.Local().Format(time.DateTime), duration.Text(t.Sub(now))))
	default:
		b.add(key, fmt.Sprintf("%s (%s)", t.Local().Format(time.DateTime), ago(t, now)))
	}
}

// value writes a JSON value: a text as it is, what fits on a line on one, and what does not indented.
func (b *fields) value(key string, value json.RawMessage) {
	var s string
	if len(value) == 0 || string(value) == "null" {
		return
	}
	if json.Unmarshal(value, &s) == nil {
		b.add(key, cmp.Or(s, `""`))
		return
	}
	const oneLine = 80 // bytes
	var out bytes.Buffer
	if json.Compact(&out, value) != nil {
		return
	}
	if out.Len() > oneLine {
		out.Reset()
		_ = json.Indent(&out, value, "", "  ") // it compacted
	}
	b.add(key, readable(out.String()))
}

// members writes the members of a JSON object, each as a field of its own, in their order.
func (b *fields) members(key string, object json.RawMessage) {
	dec := json.NewDecoder(bytes.NewReader(object))
	if _, err := dec.Token(); err != nil || !dec.More() {
		return
	}
	b.WriteString(key + "\n")
	b.indent = "  "
	defer func() { b.indent = "" }()
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return
		}
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			return
		}
		if string(value) == "null" {
			b.add(fmt.Sprint(name), "null")
		}
		b.value(fmt.Sprint(name), value)
	}
}

// foreach writes over what a task is repeated.
func (b *fields) foreach(f *plan.Foreach) {
	switch {
	case f == nil:
	case f.Value != "":
		b.add("foreach", "${{ "+f.Value+" }}")
	case f.Lines != "":
		b.add("foreach", "lines: "+f.Lines)
	case f.Glob != "":
		b.add("foreach", "glob: "+f.Glob)
	default:
		b.value("foreach", f.List)
	}
}

// escaped is how encoders write what HTML would take for its own; the first alternative keeps an escaped backslash from beginning one.
var escaped = regexp.MustCompile(`\\\\|\\u00(?:3c|3e|26)`)

// readable returns JSON with < > & as themselves: commands are full of them.
func readable(s string) string {
	return escaped.ReplaceAllStringFunc(s, func(e string) string {
		switch e {
		case `\u003c`:
			return "<"
		case `\u003e`:
			return ">"
		case `\u0026`:
			return "&"
		}
		return e
	})
}
