package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/bulk"
	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/expr"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/states"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/internal/timetable"
	"github.com/seed-1177d267/sluice/plan"
)

func taskSet(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set {ID | FILTER}",
		Short: "Change tasks of no plan that wait",
		Long: "Change a task of no plan that waits: for an instant, for its parents, for its next attempt " +
			"or in its queue. What is not named stays. A task that a node has claimed does not change. " +
			"A queued task with an --at to come is held until then; --at now ends the wait for an " +
			"instant. A task of a plan changes by \"sluice plan retry PLAN --with FILE\".\n" +
			"\n" +
			"The task is named by its id, or by the first digits of it.\n\n" + filterHelp,
		Example: "  sluice task set 6740f1c2a1b2c3d4e5000001 \\\n    --at 2027-12-24T18:00 --zone Europe/Berlin\n" +
			"  sluice task set 6740f1c2a1b2c3d4e5000001 --at now\n" +
			"  sluice task set 6740f1c2 --params '{\"run\": \"date -u\"}' --timeout 1m\n" +
			"  sluice task set --queue imap --subject 'order 4711' --at now",
		ValidArgsFunction: onlyFirst(a.completeWaiting),
	}
	f := cmd.Flags()
	at := f.String("at", "", "the `TIME` until which to hold it, RFC 3339 or local; now, or one that has passed: not any more")
	zone := f.String("zone", "UTC", "the `ZONE` of a local --at, of the tz database")
	params := f.String("params", "", "its new params, as a JSON object; - reads them from standard input")
	var c rules.TaskChange
	var timeout time.Duration
	attemptsFlag(cmd, &c.Attempts, "the largest number of attempts")
	spanFlag(cmd, &timeout, "timeout", 0, "how long an attempt may run, as in 30m; 0: no limit of its own")
	subject := f.String("new-subject", "", "what it is about, such as an order number")
	mayRemove(cmd, "new-subject")
	filter := a.filterFlags(cmd, rules.BulkSet)
	cmd.Args = filter.orTask
	completeWords(cmd, "zone", timetable.Zones())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		changed := f.Changed
		switch {
		case changed("zone") && !changed("at"):
			return usagef("--zone is of a local time: add --at TIME")
		case !changed("at") && !changed("params") && !changed("attempts") && !changed("timeout") && !changed("new-subject") && !filter.check:
			return usagef("say what to change: --at, --params, --attempts, --timeout or --new-subject")
		}
		if changed("at") {
			until, err := atFlag(*at, *zone)
			if err != nil {
				return err
			}
			c.NotBefore = &until
		}
		if changed("timeout") {
			c.Timeout = &timeout
		}
		if changed("new-subject") {
			c.Subject = subject
			if err := checkSubject("new-subject", *subject); err != nil {
				return err
			}
		}
		if changed("params") && *params == "-" {
			if err := a.readParams(params); err != nil {
				return err
			}
		}
		if len(args) == 0 {
			if changed("params") {
				raw, err := plainParams(*params, "")
				if err != nil {
					return err
				}
				data, ok := expr.UnquoteJSON(raw)
				if !ok {
					return usagef("--params: the tasks of a filter may have other parents, so that an expression has no value; name one task, or write the value itself")
				}
				c.Params = data
			}
			return a.inBulk(cmd.Context(), filter, "changed", bulk.Order{Change: c})
		}
		return a.withTask(cmd.Context(), args, func(st store.Store, t plan.Task) (err error) {
			ctx := cmd.Context()
			if changed("params") && rules.CheckSetTask(&t, false) == nil {
				if c.Params, err = plainParams(*params, t.Name); err != nil {
					return err
				}
			}
			if err := submit.SetTask(ctx, st, &t, c, a.refusedParams); err != nil {
				return err
			}
			return a.printSet(ctx, st, t.ID)
		})
	}
	return cmd
}

// printSet says what a task is after a change.
func (a *app) printSet(ctx context.Context, st store.Store, id plan.TaskID) error {
	t, err := st.Task(ctx, id)
	if err != nil && !errors.Is(err, plan.ErrTooMuchOutput) {
		return err
	}
	is := "is " + states.OfTask(&t)
	switch {
	case t.Status != plan.Held:
	case t.NotBefore.IsZero():
		is = "waits for its parents"
	default:
		is = "is held until " + t.NotBefore.UTC().Format(time.RFC3339)
	}
	return a.say("%s %s", cells.Clean(t.Key()), is)
}
