package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

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
			if output.json() {
				return printJSON(a.Stdout, shown)
			}
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
			return a.printTask(&shown, title)
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
	Attempts        int             `json:"attempts,omitempty"`
	Timeout         string          `json:"timeout,omitempty"`
	OnLost          plan.OnLost     `json:"on_lost,omitempty"`
	ContinueOnError bool            `json:"continue_on_error,omitempty"`
	Estimate        string          `json:"estimate,omitempty"`
	Rank            int64           `json:"rank,omitempty"`
	Cancel          bool            `json:"cancel,omitempty"`
	Needs           []plan.TaskID   `json:"needs,omitempty"`
	Params          json.RawMessage `json:"params,omitempty"`
	Output          json.RawMessage `json:"output"`
}

func detailsOfTask(t *plan.Task, queues map[plan.QueueID]string) taskDetails {
	d := taskDetails{
		taskEntry: entryOfTask(t, queues), Description: t.Description, When: t.When, Foreach: t.Foreach, Attempts: t.Retry.Attempts,
		OnLost: t.OnLost, ContinueOnError: t.ContinueOnError, Rank: t.Rank, Cancel: t.Cancel, Needs: t.Needs, Params: t.Params,
		Output: t.Output,
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

// printTask prints the fields of a task that say something, one a line, in the order of its JSON. title names its plan, of which JSON has
// only the id; "" if that is not known.
func (a *app) printTask(d *taskDetails, title string) error {
	raw, err := json.Marshal(d)
	if err != nil {
		return err
	}
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	if _, err := dec.Token(); err != nil { // the opening brace
		return err
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return err
		}
		text := string(value)
		var s string
		if json.Unmarshal(value, &s) == nil {
			text = s
		}
		if text == "" || text == "null" {
			continue
		}
		if key == "plan" && title != "" {
			text = title + "  " + text
		}
		fmt.Fprintf(a.Stdout, "%-18s %s\n", key, strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", 19)))
	}
	return nil
}
