package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/planfile"
	"github.com/seed-1177d267/sluice/internal/states"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// plainUsages removes the marks of value words from the usages of all flags. The help texts do so
// by themselves, but a shell shows the usage of a flag as it is. A completion needs no help.
func plainUsages(cmd *cobra.Command) {
	plain := func(f *pflag.Flag) { _, f.Usage = pflag.UnquoteUsage(f) }
	cmd.Flags().VisitAll(plain)
	cmd.PersistentFlags().VisitAll(plain)
	for _, c := range cmd.Commands() {
		plainUsages(c)
	}
}

// completePlans offers the plans that an act is for: the latest run of a name by that name, others by their run.
func (a *app) completePlans(keep func(*plan.Plan) bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		return a.offerPlans(cmd, func(p *plan.Plan, word string) bool { return keep(p) && !slices.Contains(args, word) })
	}
}

// offerPlans offers the plans to keep, each by the word that names it.
func (a *app) offerPlans(cmd *cobra.Command, keep func(p *plan.Plan, word string) bool) ([]string, cobra.ShellCompDirective) {
	return a.lookUp(cmd, func(ctx context.Context, st store.Store) (words []string, err error) {
		plans, _, err := somePlans(ctx, st, store.PlanQuery{NoParams: true}, 200)
		seen := map[string]bool{}
		for i := range plans {
			p := &plans[i]
			word := p.Title()
			if !seen[p.Name] {
				word, seen[p.Name] = p.Name, true
			}
			if keep(p, word) {
				words = append(words, fmt.Sprintf("%s\t%s, %s", word, p.Title(), p.State))
			}
		}
		return words, err
	})
}

func unended(p *plan.Plan) bool { return !p.State.Ended() }

// deletable reports whether "plan delete" takes the plan.
func deletable(p *plan.Plan) bool { return p.State.Ended() || underSubmission(p) }

// onlyFirst offers nothing for the arguments after the first one.
func onlyFirst(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return offer(nil, nil)
		}
		return complete(cmd, args, word)
	}
}

// completeQueueFlag offers the names of queues.
func (a *app) completeQueueFlag(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.lookUp(cmd, func(ctx context.Context, st store.Store) (words []string, err error) {
		queues, err := st.Queues(ctx)
		return api.Each(queues, func(q *plan.Queue) string {
			e := entryOfQueue(q)
			return fmt.Sprintf("%s\t%s, %s threads", e.Name, e.Plugin, e.threads())
		}), err
	})
}

// patience is how long a key press waits for a store, unless the program says so. The shell takes no
// other key meanwhile.
const patience = time.Second

// lookUp offers the words that a store knows, and none if the store does not answer in time. The
// goroutine of a store that hangs ends with the process, which completes one word.
func (a *app) lookUp(cmd *cobra.Command, words func(context.Context, store.Store) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	ctx, stop := context.WithTimeout(cmd.Context(), cmp.Or(a.Patience, patience))
	defer stop()
	type answer struct {
		words []string
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		var got answer
		got.err = a.withStore(ctx, func(st store.Store) (err error) {
			got.words, err = words(ctx, st)
			return err
		})
		done <- got
	}()
	select {
	case got := <-done:
		return offer(got.words, got.err)
	case <-ctx.Done():
		return offer(nil, ctx.Err())
	}
}

// offer is the answer to a shell.
func offer(words []string, err error) ([]string, cobra.ShellCompDirective) {
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// completeBy lets shells complete the values of a flag, which is there.
func completeBy(cmd *cobra.Command, flag string, by cobra.CompletionFunc) {
	_ = cmd.RegisterFlagCompletionFunc(flag, by)
}

// completeParam offers the params of the plan file that a command names, by --with or as its first argument, and
// the choices of one.
func completeParam(cmd *cobra.Command, args []string, word string) (words []string, _ cobra.ShellCompDirective) {
	file := ""
	if with := cmd.Flags().Lookup("with"); with != nil {
		file = with.Value.String()
	} else if len(args) > 0 {
		file = args[0]
	}
	var declared []planfile.Param
	if _, err := planfile.LoadWith(file, planfile.Options{Draft: true, Declared: &declared}); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp // the command itself says what is wrong with it
	}
	name, _, chosen := strings.Cut(word, "=")
	for _, p := range declared {
		switch {
		case !chosen:
			words = append(words, fmt.Sprintf("%s=\t%s", p.Name, p.About))
		case p.Name == name:
			for _, choice := range p.Choices.Words() {
				words = append(words, name+"="+choice)
			}
		}
	}
	if !chosen {
		return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// completeFlag offers the names of plans for a flag that takes one.
func (a *app) completeFlag(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
	return a.completePlan(cmd, nil, word)
}

// completePlan offers the names of plans to a shell, and those of its tasks after one.
func (a *app) completePlan(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return a.offerPlans(cmd, func(p *plan.Plan, word string) bool { return word == p.Name })
	}
	return a.lookUp(cmd, func(ctx context.Context, st store.Store) (words []string, err error) {
		p, err := findPlan(ctx, st, args[0])
		if err != nil {
			return nil, err
		}
		tasks, err := st.Tasks(ctx, store.TaskQuery{Plan: p.ID, NoItems: true, Limit: 1000})
		return api.Each(tasks, func(t *plan.Task) string { return t.Name + "\t" + states.OfTask(t) }), err
	})
}

// completeWaiting offers the ids of tasks of no plan that wait.
func (a *app) completeWaiting(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.lookUp(cmd, func(ctx context.Context, st store.Store) (words []string, err error) {
		tasks, err := st.Tasks(ctx, store.TaskQuery{NoPlan: true, Statuses: []plan.Status{plan.Held, plan.Queued}, Newest: true, Limit: 200})
		return api.Each(tasks, func(t *plan.Task) string {
			return fmt.Sprintf("%s\t%s", t.ID, strings.TrimSpace(t.Name+" "+states.OfTask(t)))
		}), err
	})
}
