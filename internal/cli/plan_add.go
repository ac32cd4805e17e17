package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/expr"
	"github.com/seed-1177d267/sluice/internal/planfile"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
)

func planAdd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add PLAN NAME [-- COMMAND [ARG…]]",
		Short: "Add a task to a plan",
		Long: "Add a task to a plan, and print its id. The flags are keys of a task in a plan " +
			"file, and mean the same. You may add tasks to a running plan: they run when their " +
			"parents have finished, which may be at once.\n" +
			"\n" + planHelp,
		Example: "  sluice plan add nightly count --needs list -- wc -l files\n" +
			"  sluice plan add nightly wait --plugin demo --params '{\"sleep\": \"2s\"}'",
	}
	var flags addedFlags
	flags.add(cmd)
	needs := cmd.Flags().StringSlice("needs", nil, "tasks that have to finish before, by name or id")
	completeWords(cmd, "when", ruleWords())
	completeWords(cmd, "plugin", a.Plugins.Names())
	completeBy(cmd, "queue", a.completeQueueFlag)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		task, err := flags.task(args[2:])
		if err != nil {
			return err
		}
		return a.withPlan(ctx, args[0], func(st store.Store, p plan.Plan) error {
			if underSubmission(&p) {
				return fmt.Errorf("add task %q to %s: it is being submitted with its own %d tasks, and takes others when it is ready", args[1], p.Title(), p.Size)
			}
			parents := make([]plan.Task, len(*needs))
			for i, word := range *needs {
				var err error
				if parents[i], err = findTaskOf(ctx, st, p, word); err != nil {
					return err
				}
			}
			_, whole, err := unhidden(ctx, st, &p)
			if err != nil {
				return err
			}
			spec, err := specOfTask(whole, args[1], task, parents)
			if err != nil {
				return err
			}
			for _, p := range a.Plugins.Refused(spec) {
				return usagef("%s", p.Message)
			}
			t, err := submit.Last(spec, &p, parents, submit.Queues(ctx, st))
			if err != nil {
				return withNearest(err)
			}
			err = st.AddTasks(ctx, p.ID, []plan.Task{t})
			if errors.Is(err, plan.ErrPlanEnded) {
				err = fmt.Errorf("%w; to run the task, submit a new run of the plan with it", err)
			}
			if err != nil {
				return fmt.Errorf("add task %q to %s: %w", t.Name, p.Title(), err)
			}
			return a.say("%v", t.ID)
		})
	}
	return cmd
}

// addedFlags are the keys of a task in a plan file, as flags.
type addedFlags struct {
	run, plugin, params, queue, when, dir, timeout *string
	env                                            *[]string
	attempts                                       int
}

func (a *addedFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	a.run = f.String("run", "", "the shell line to run")
	a.plugin = f.String("plugin", "", "the plugin of the task, if it is not a command")
	a.params = f.String("params", "", "the plugin's params, as a JSON object")
	a.queue = f.String("queue", "", "the queue of the task (default: the queue named as its plugin)")
	a.when = f.String("when", "", "whether it runs, given how its parents ended (default all_succeeded)")
	a.dir = f.String("dir", "", "the command's folder (default: this one)")
	a.env = f.StringArray("env", nil, "a variable of the command, as `NAME=VALUE`; repeat it for more")
	a.timeout = f.String("timeout", "", "how long an attempt may run, as in 30m")
	attemptsFlag(cmd, &a.attempts, "the largest number of attempts")
}

// task returns the task as a plan file has it; argv is the command, if it was not given as a shell line.
func (a *addedFlags) task(argv []string) (map[string]any, error) {
	task := map[string]any{}
	for key, value := range map[string]string{"run": *a.run, "plugin": *a.plugin, "queue": *a.queue, "when": *a.when, "dir": *a.dir, "timeout": *a.timeout} {
		if err := checkUTF8("--"+key, value); err != nil {
			return nil, err
		}
		if value != "" {
			task[key] = value
		}
	}
	for _, arg := range argv {
		if err := checkUTF8("the argument", arg); err != nil {
			return nil, err
		}
	}
	if len(argv) > 0 {
		if *a.run != "" {
			return nil, usagef("give the command with --run or after --, not both")
		}
		task["run"] = argv
	}
	if *a.params != "" {
		raw, err := jsonObject("--params", *a.params)
		if err != nil {
			return nil, err
		}
		task["params"] = raw
	}
	if len(*a.env) > 0 {
		variables, err := pairs("--env", *a.env)
		if err != nil {
			return nil, err
		}
		task["env"] = variables
	}
	if a.attempts > 0 {
		task["retry"] = map[string]int{"attempts": a.attempts}
	}
	return task, nil
}

// specOfTask reads a task with the keys of a plan file. The result is a spec whose last task it is,
// after a stand-in for each of its parents.
func specOfTask(p *plan.Plan, name string, task map[string]any, parents []plan.Task) (*plan.Spec, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	if len(parents) > 0 {
		needs := make([]string, len(parents))
		for i := range parents {
			needs[i] = submit.StandIn(&parents[i], i)
		}
		task["needs"] = needs
	}
	file := map[string]any{"plan": p.Name, "tasks": map[string]any{name: task}}
	if len(p.Secrets) > 0 {
		file["secrets"] = p.Secrets
	}
	if len(p.Params) > 0 {
		file["params"] = expr.QuoteJSON(p.Params) // values without expressions
	}
	for i := range parents {
		file["tasks"].(map[string]any)[submit.StandIn(&parents[i], i)] = map[string]any{"run": []string{"true"}}
	}
	data, err := json.Marshal(file)
	if err != nil {
		return nil, err
	}
	spec, err := planfile.Parse("task "+name, data, planfile.Options{Dir: dir})
	if err != nil {
		if errs, ok := errors.AsType[planfile.Errors](err); ok { // places in a file that nobody wrote help nobody
			messages := api.Each(errs, func(e *planfile.Error) string { return e.Message })
			return nil, usagef("%s", strings.Join(messages, "\n"))
		}
		return nil, asUsage(err)
	}
	i := slices.IndexFunc(spec.Tasks, func(t plan.TaskSpec) bool { return t.Name == name })
	spec.Tasks = append(slices.Delete(slices.Clone(spec.Tasks), i, i+1), spec.Tasks[i])
	return spec, nil
}
