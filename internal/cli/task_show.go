package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/states"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func taskShow(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show {PLAN TASK | ID}",
		Short: "Show everything about a task, its params and output included",
		Long:  "Show everything about a task, its params and output included.\n\n" + taskHelp,
	}
	output := outputFlag(cmd)
	cmd.RunE = a.onStore(func(ctx context.Context, st store.Store, args []string) error {
		t, err := findWholeTask(ctx, st, args)
		switch {
		case errors.Is(err, plan.ErrTooMuchOutput):
			example := ""
			if len(args) == 2 {
				example = ", as in: " + a.command("task", "show", args[0], rules.ItemName(t.Name, 0))
			}
			a.note("%v%s", err, example)
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
			return view.JSON(a.Stdout, shown)
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
	return cmd
}

// taskDetails is everything about a task.
type taskDetails struct {
	taskEntry
	api.Definition
	Subject  string          `json:"subject,omitempty"`  // both of them have it
	Attempts int             `json:"attempts,omitempty"` // as in Retry
	Cancel   bool            `json:"cancel,omitempty"`
	Needs    []plan.TaskID   `json:"needs,omitempty"`
	Params   json.RawMessage `json:"params,omitempty"`
	Output   json.RawMessage `json:"output"`
	Batch    plan.ID         `json:"batch,omitzero"`
	Stdout   *int64          `json:"stdout_bytes,omitempty"`
	Stderr   *int64          `json:"stderr_bytes,omitempty"`

	took string // for people
}

func detailsOfTask(t *plan.Task, queues map[plan.QueueID]string) taskDetails {
	d := taskDetails{
		taskEntry: entryOfTask(t, queues), Definition: api.TaskOf(t, "").Definition, Subject: t.Subject, Attempts: t.Retry.Attempts,
		Cancel: t.Cancel, Needs: t.Needs, Params: t.Params, Output: t.Output, Batch: t.Batch, took: tookTask(t, time.Now()),
	}
	if len(d.Output) == 0 {
		d.Output = json.RawMessage("null")
	}
	return d
}

// limitOf is a duration for people; "" for none.
func limitOf(d api.Duration) string {
	if d <= 0 {
		return ""
	}
	return d.String()
}

// mostNeeds is how many of the tasks that one needs are named.
const mostNeeds = 20

// printTask prints the fields of a task for people, one per line. Long values, and those of several
// lines, are below their key. title names the task's plan, or is "".
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
	b := &view.Fields{}
	b.Add("name", d.Name)
	b.Add("id", d.ID.String())
	if !d.Plan.IsZero() {
		b.Add("plan", strings.TrimPrefix(title+"  "+d.Plan.String(), "  "))
	}
	b.Add("queue", d.Queue)
	b.Styled("state", a.paint(a.Stdout).State(states.WordOf(d.State, d.Allowed), states.WordOf(d.State, d.Allowed)))
	if d.Status > plan.Failed {
		b.Add("status", fmt.Sprint(int(d.Status)))
	}
	if string(d.Reason) != d.State {
		b.Add("reason", string(d.Reason))
	}
	if d.Progress != nil {
		b.Add("progress", d.Progress.String())
	}
	b.Add("detail", d.Detail)
	if d.Exit != nil {
		b.Add("exit", cmp.Or(d.Exit.Signal, fmt.Sprintf("status %d", d.Exit.Code)))
	}
	if d.Cancel && !d.Status.Finished() {
		b.Add("cancel", "a person cancelled it, and its node has not stopped it yet")
	}
	b.Add("subject", d.Subject)
	b.Add("description", d.Description)
	b.Add("item of", of)
	b.Value("item", d.Item)
	if d.Items > 0 {
		b.Add("items", fmt.Sprint(d.Items))
	}
	switch {
	case d.Attempt > 0 && d.Attempts > 1:
		b.Add("attempt", fmt.Sprintf("%d of %d", d.Attempt, rules.Most(d.Attempts, d.Rescues)))
	case d.Attempt > 0:
		b.Add("attempt", fmt.Sprint(d.Attempt))
	case d.Attempts > 1:
		b.Add("attempts", fmt.Sprint(d.Attempts))
	}
	if d.Rescues > 0 {
		b.Add("rescues", fmt.Sprint(d.Rescues))
	}
	b.Add("node", string(d.Node))
	b.Time("created", d.Created, now)
	b.Time("not before", d.NotBefore, now)
	if b.Time("started", d.Started.Time, now); d.Started.unknown {
		b.Add("started", notKnown+" (another program ran it, and keeps no such time)")
	}
	b.Time("ended", d.Ended, now)
	b.Add("took", d.took)
	if !d.Batch.IsZero() {
		b.Add("batch", d.Batch.String()+", which is being handed over")
	}
	b.Add("needs", strings.Join(needs, ", "))
	b.Add("when", string(d.When))
	b.Add("if", d.If)
	b.Add("skip_on", strings.Join(d.SkipOn.List(), ", "))
	if d.Approve != nil {
		b.Add("approve", d.Approve.Question)
	}
	b.Foreach(d.Foreach)
	b.Add("timeout", limitOf(d.Timeout))
	b.Add("estimate", limitOf(d.Estimate))
	b.Add("on_lost", string(d.OnLost))
	b.Add("key", d.ItemKey)
	b.Add("max_failures", d.MaxFailures)
	if d.ContinueOnError {
		b.Add("continue-on-error", "true")
	}
	if d.Finally {
		b.Add("finally", "true")
	}
	b.Members("params", d.Params)
	b.Value("output", d.Output)
	b.Add("stdout", view.Bytes(d.Stdout))
	b.Add("stderr", view.Bytes(d.Stderr))
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
