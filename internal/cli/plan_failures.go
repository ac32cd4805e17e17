package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/failures"
	"github.com/seed-1177d267/sluice/internal/report"
	"github.com/seed-1177d267/sluice/internal/states"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// How many tasks of each way of failing are named: in a table, and in JSON.
const (
	mostAlike     = 3
	mostAlikeJSON = 10
)

func planFailures(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "failures PLAN",
		Short: "Show in how many ways tasks of a plan failed",
		Long: "Show in how many ways tasks of a plan failed, the most frequent way first.\n" +
			"\n" +
			"Tasks that failed with the same detail are one way. Numbers and ids in the detail " +
			"do not count, nor do quoted words: where tasks differ by them, they are left out. The detail of a command is its last line of " +
			"standard error.\n" +
			"\n" + planHelp,
	}
	output := outputFlag(cmd)
	cmd.RunE = a.onPlan(func(ctx context.Context, st store.Store, p plan.Plan) error {
		f, err := failures.Read(ctx, st, p.ID, mostAlikeJSON)
		if err != nil {
			return err
		}
		if output.json() {
			return view.JSON(a.Stdout, entryOfFailures(f))
		}
		return a.printFailures(ctx, st, &p, f)
	})
	return cmd
}

// A failuresEntry says in JSON how tasks of a plan failed.
type failuresEntry struct {
	Failed  int          `json:"failed"`
	Allowed int          `json:"allowed"`
	Ways    []failureWay `json:"ways"`
}

type failureWay struct {
	Count   int         `json:"count"`
	State   string      `json:"state"`
	Reason  plan.Reason `json:"reason,omitempty"`
	Allowed bool        `json:"allowed,omitempty"` // by the plan
	How     string      `json:"how"`               // without what differs from task to task
	Detail  string      `json:"detail"`            // of the first task, as it is
	Tasks   []string    `json:"tasks"`             // the first of them
}

func entryOfFailures(f *failures.Ways) failuresEntry {
	e := failuresEntry{Failed: f.Failed, Allowed: f.Allowed, Ways: make([]failureWay, len(f.Kinds))}
	for i, k := range f.Kinds {
		e.Ways[i] = failureWay{Count: k.Count, State: k.State, Reason: k.Reason, Allowed: k.Allowed, How: k.Told(), Detail: k.First[0].Detail, Tasks: keys(k.First)}
	}
	return e
}

func (a *app) printFailures(ctx context.Context, st store.Store, p *plan.Plan, f *failures.Ways) error {
	if len(f.Kinds) == 0 {
		a.note("nothing failed in %s", p.Title())
		return nil
	}
	t := a.table("FAILED", "STATE", "HOW", "TASKS")
	for _, k := range f.Kinds {
		values, err := itemValues(ctx, st, k.First[:min(len(k.First), mostAlike)])
		if err != nil {
			return err
		}
		names := make([]string, 0, mostAlike+1)
		for i := range k.First[:min(len(k.First), mostAlike)] {
			names = append(names, values.label(&k.First[i], a.ellipsis()))
		}
		if k.Count > len(names) {
			names = append(names, a.ellipsis())
		}
		t.Add(report.Thousands(k.Count), states.WordOf(k.State, k.Allowed), cells.Clean(k.Told()), strings.Join(names, ", "))
	}
	if err := t.Print(a.Stdout); err != nil {
		return err
	}
	for _, k := range f.Kinds {
		if first := &k.First[0]; first.Approve == nil { // a question prints nothing
			a.note("to see what the first of them printed: %s", a.command("task", "logs", p.Title(), first.Key()))
			break
		}
	}
	return nil
}

// noteFailures sums up how those of the tasks of a list failed that did.
func (a *app) noteFailures(tasks []plan.Task) {
	var f failures.Ways
	for i := range tasks {
		f.Add(&tasks[i])
	}
	f.Sort()
	if line := report.Failed(&f); line != "" {
		a.note("%s", line)
	}
}

// failuresRow is what plan status says of several tasks that failed, "" of fewer.
func failuresRow(ctx context.Context, r store.Reader, p *plan.Plan) (string, error) {
	if p.Counts.Broken()+p.Counts.Allowed < 2 {
		return "", nil
	}
	f, err := failures.Read(ctx, r, p.ID, 1)
	line := report.Failed(f)
	if f.Allowed == 0 {
		line = strings.Replace(line, " failed in", " in", 1)
	}
	return line, err
}
