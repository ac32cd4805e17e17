package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/expr"
	"github.com/seed-1177d267/sluice/internal/hint"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/internal/textfile"
	"github.com/seed-1177d267/sluice/internal/timetable"
	"github.com/seed-1177d267/sluice/plan"
)

func taskAdd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add QUEUE",
		Short: "Add a task of no plan",
		Long: "Add a task of no plan to a queue, and print its id. It runs when its parents have " +
			"finished, with their outputs among its params. The parents are tasks of no plan, " +
			"and may have finished already.",
		Example: "  sluice task add exec --params '{\"run\": \"date\"}'\n" +
			"  sluice task add exec --params '{\"run\": \"date\"}' " +
			"\\\n    --at 2027-12-24T18:00 --zone Europe/Berlin\n" +
			"  sluice task add exec --needs 6740f1c2a1b2c3d4e5000001 " +
			"\\\n    --params '{\"run\": [\"./report\"], \"stdin\": \"params\"}'",
	}
	f := cmd.Flags()
	needs := f.StringSlice("needs", nil, "tasks of no plan that have to finish before, by id")
	params := f.String("params", "{}", "its params, as a JSON object; - reads them from standard input")
	name := f.String("name", "", "its name among the params of its children (default: its id)")
	subject := f.String("subject", "", "what it is about, such as an order number; at most 200 bytes")
	when := f.String("when", "", "whether it runs, given how its parents ended (default all_succeeded)")
	var timeout time.Duration
	var hold submit.Hold
	spanFlag(cmd, &timeout, "timeout", 0, "how long an attempt may run, as in 30m")
	attempts := 0
	attemptsFlag(cmd, &attempts, "the largest number of attempts")
	spanFlag(cmd, &hold.For, "delay", 0, "how long to hold it at least")
	at := f.String("at", "", "the `TIME` until which to hold it, RFC 3339 or local; now, or one that has passed: not at all")
	zone := f.String("zone", "UTC", "the `ZONE` of a local --at, of the tz database")
	completeWords(cmd, "zone", timetable.Zones())
	completeWords(cmd, "when", ruleWords())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		if *params == "-" {
			if err := a.readParams(params); err != nil {
				return err
			}
		}
		raw, err := plainParams(*params, *name)
		if err != nil {
			return err
		}
		if err := checkSubject("subject", *subject); err != nil {
			return err
		}
		switch changed := f.Changed; {
		case changed("zone") && !changed("at"):
			return usagef("--zone is of a local time: add --at TIME")
		case changed("at") && changed("delay"):
			return usagef("--at and --delay both say until when to hold it: give one of them")
		case changed("at"):
			if hold.Until, err = atFlag(*at, *zone); err != nil {
				return err
			}
		}
		return a.makingStore(ctx, func(st store.Store) error {
			q, err := findQueue(ctx, st, args[0])
			if errors.Is(err, plan.ErrNotFound) && slices.Contains(a.Plugins.Names(), args[0]) {
				q = plan.Queue{Name: args[0], Plugin: args[0]} // which submit makes
			} else if err != nil {
				return err
			}
			if err := a.refusedWith(&q, *name, raw); err != nil {
				return err
			}
			ids := make([]string, len(*needs))
			for i, word := range *needs {
				parent, err := findTask(ctx, st, []string{word})
				if err != nil {
					return err
				}
				ids[i] = parent.ID.String()
			}
			added, err := submit.Add(ctx, st, &plan.Plan{}, []plan.TaskSpec{{
				Name: *name, Subject: *subject, Queue: q.Name, Plugin: q.Plugin, Params: raw, Needs: ids, When: plan.When(*when), Timeout: timeout, Retry: plan.Retry{Attempts: attempts},
			}}, hold)
			if err != nil {
				return fmt.Errorf("add a task to queue %q: %w", q.Name, withNearest(err))
			}
			return a.say("%v", added[0].ID)
		})
	}
	return cmd
}

// checkSubject refuses the value of a flag that is no subject.
func checkSubject(flag, text string) error {
	if err := rules.CheckSubject(text); err != nil {
		return usagef("--%s: %w", flag, err)
	}
	return nil
}

// readParams reads params from standard input.
func (a *app) readParams(params *string) error {
	text, err := io.ReadAll(a.Stdin)
	*params = string(textfile.WithoutMark(text))
	return err
}

// plainParams reads --params of a task of no plan with that name.
func plainParams(text, name string) (json.RawMessage, error) {
	raw, err := jsonObject("--params", text)
	if err == nil {
		if _, wrong := expr.Substitute(raw, ofNoPlan(name)); wrong != nil {
			err = usagef("--params: %v", wrong)
		}
	}
	return raw, err
}

// refusedWith asks the plugin of a queue about params of a task of that name, with the defaults of the queue.
func (a *app) refusedWith(q *plan.Queue, name string, params json.RawMessage) error {
	spec := &plan.Spec{Tasks: []plan.TaskSpec{{Name: name, Plugin: q.Plugin, Params: rules.FillParams(&q.Defaults, params)}}}
	problems := a.Plugins.Refused(spec)
	if len(problems) == 0 {
		return nil
	}
	with := ""
	if rules.ByDefault(&q.Defaults, params, problems[0].Word) {
		with = fmt.Sprintf(" with the defaults of queue %q", q.Name)
	}
	return refusedParam(with, name, &problems[0])
}

// refusedParams asks the plugin of the one task in a spec about its params.
func (a *app) refusedParams(spec *plan.Spec) error {
	for _, p := range a.Plugins.Refused(spec) {
		return refusedParam("", spec.Tasks[0].Name, &p)
	}
	return nil
}

// refusedParam says what is wrong with --params of a task of that name, together with others.
func refusedParam(with, name string, p *plan.Problem) error {
	return usagef("--params%s: %s", with, strings.TrimPrefix(p.Message, fmt.Sprintf("task %q: params.", name)))
}

// atFlag reads --at with --zone. The zero instant is now.
func atFlag(at, zone string) (time.Time, error) {
	in, err := timetable.LoadZone(zone)
	if err != nil {
		p, _ := errors.AsType[plan.Problem](err)
		return time.Time{}, usagef("--zone %s: %w%s", zone, err, hint.Meant(p.Word, p.Known))
	}
	if at == "now" {
		return time.Time{}, nil
	}
	instant, err := timetable.Instant(at, in)
	if err == nil {
		err = api.CheckTime(instant)
	}
	if errors.Is(err, timetable.ErrNoTime) {
		err = fmt.Errorf("%w, or now", err)
	}
	if err != nil {
		return time.Time{}, usagef("--at %s: %w", at, err)
	}
	return instant, nil
}

// ofNoPlan refuses expressions that lead nowhere from a task of no plan.
func ofNoPlan(name string) expr.Scope {
	return func(steps []string) (json.RawMessage, bool, error) {
		switch word := steps[0]; {
		case word == "plan", word == "params":
			return nil, false, fmt.Errorf("${{ %s… }}: the task is of no plan, and has only needs and task.name; write the value itself", word)
		case word == "task" && name == "":
			return nil, false, errors.New("${{ task.name }}: the task has no name; give it one with --name")
		}
		return nil, false, nil
	}
}
