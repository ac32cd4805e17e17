package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/explain"
	"github.com/seed-1177d267/sluice/internal/hint"
	"github.com/seed-1177d267/sluice/internal/items"
	"github.com/seed-1177d267/sluice/internal/states"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// A chain of reasons that is longer than this is shown by its start and its end.
const (
	mostLinks = 20
	lastLinks = 5
)

func planExplain(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain {PLAN TASK | ID}",
		Short: "Explain why a task is not running now",
		Long:  "Say why a task is not running now, in one chain of reasons.\n\n" + taskHelp,
	}
	output := outputFlag(cmd)
	cmd.RunE = a.onTask(func(ctx context.Context, st store.Store, t plan.Task) error {
		links, err := explain.Task(ctx, st, t.ID)
		if err != nil {
			return err
		}
		if err := a.dropVain(ctx, st, links); err != nil {
			return err
		}
		if err := adviseBalance(ctx, st, links); err != nil {
			return err
		}
		values, err := itemKeys(ctx, st, api.Each(links, func(l *explain.Link) plan.Task { return l.Task }))
		if err != nil {
			return err
		}
		if output.json() {
			reasons := make([]api.Reason, len(links))
			for i, l := range links {
				reasons[i] = api.Reason{
					ID: l.Task.ID, Name: l.Task.Name, ItemLabel: items.Label(values[l.Task.ID], "…"), State: l.Task.State(), Status: l.Task.Status, Why: l.Why,
				}
				if l.Do != nil {
					reasons[i].Do = a.command(l.Do...)
				}
			}
			return view.JSON(a.Stdout, reasons)
		}
		return a.printChain(links, values)
	})
	return cmd
}

// dropVain removes from a chain the advice to run the plan, or a node, here, if this program lacks
// the plugins. It notes that.
func (a *app) dropVain(ctx context.Context, r store.Reader, links []explain.Link) error {
	for i := range links {
		l := &links[i]
		var needed []string
		switch {
		case l.Do == nil:
			continue
		case l.Task.Plan.IsZero():
			if l.Key != hint.StartNode {
				continue
			}
			queues, err := r.Queues(ctx)
			if err != nil {
				return err
			}
			needed = pluginsOfTasks([]plan.Task{l.Task}, queues)
		default:
			p, err := r.Plan(ctx, l.Task.Plan)
			if err != nil {
				return err
			}
			if l.Key != hint.ResumePlan {
				continue
			}
			if a.served() {
				l.Hint, l.Why = hint.Hint{}, l.Why+"; "+startThere
				continue
			}
			if needed, err = pluginsLeft(ctx, r, &p); err != nil {
				return err
			}
		}
		for _, plugin := range needed {
			if _, ok := a.Plugins.Get(plugin); !ok {
				l.Hint = hint.Hint{}
				l.Why += fmt.Sprintf("; this program has no plugin %s: start one that has", plugin)
				break
			}
		}
	}
	return nil
}

// adviseBalance replaces the advice to give a queue other threads, where QueueBalance would set them again.
func adviseBalance(ctx context.Context, r store.Reader, links []explain.Link) error {
	for i := range links {
		l := &links[i]
		if l.Key != hint.QueueThreads {
			continue
		}
		b, _, err := balancing(ctx, r, l.Queue)
		if err != nil {
			return err
		}
		if b != nil {
			l.Why, l.Hint = l.Why+"; QueueBalance sets its threads", hint.Balance()
		}
	}
	return nil
}

func (a *app) printChain(links []explain.Link, values values) error {
	colour := a.paint(a.Stdout)
	for i, l := range links {
		if cut := len(links) - mostLinks; cut > 0 && i >= mostLinks-lastLinks && i < len(links)-lastLinks {
			if i == mostLinks-lastLinks {
				fmt.Fprintf(a.Stdout, "%s %d more, each of which waits for the next %[1]s\n", a.ellipsis(), cut)
			}
			continue
		}
		arrow := ""
		if i > 0 {
			arrow = "→ "
			if !a.unicode() {
				arrow = "> "
			}
		}
		name, state := colour.Bold(cells.Clean(values.label(&l.Task, a.ellipsis()))), colour.State(states.OfTask(&l.Task), states.OfTask(&l.Task))
		if _, err := fmt.Fprintf(a.Stdout, "%s%s is %s: %s\n", arrow, name, state, cells.Clean(l.Why)); err != nil {
			return err
		}
		if l.Do != nil {
			fmt.Fprintf(a.Stdout, "  %s\n", a.command(l.Do...))
		}
	}
	return nil
}
