package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/planfile"
	"github.com/seed-1177d267/sluice/plan"
)

// A mistake is one thing that is wrong with a file, in JSON.
type mistake struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
}

func planValidate(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "validate FILE…",
		Short: "Check plan files, and report every mistake",
		Long: "Check plan files, and report every mistake with its place. A plugin that is not " +
			"built in here gets a note, because other nodes may have it. So does a variable, a " +
			"file or a worker that a task needs and that is not here. A param that must be " +
			"given at the run is no mistake. Other notes are about parts that are valid and " +
			"probably not meant, such as a clean-up that some failures do not reach. The " +
			"command runs nothing and opens no store.",
	}
	output := outputFlag(cmd)
	params := cmd.Flags().StringArray("param", nil, "a value for a param of the plan, as `NAME=VALUE`; may be repeated")
	completeBy(cmd, "param", completeParam)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		values, err := pairs("--param", *params)
		if err != nil {
			return err
		}
		mistakes := []mistake{}
		options := a.noting(planfile.Options{Params: values, Draft: true}, false)
		notes := options.Notes
		options.Notes = func(spec *plan.Spec) plan.Problems { return append(notes(spec), a.checkSpec(spec)...) }
		var errs []error
		for _, path := range args {
			spec, err := planfile.LoadWith(path, options)
			switch found, ok := errors.AsType[planfile.Errors](err); {
			case ok:
				for _, e := range found {
					mistakes = append(mistakes, mistake{e.File, e.Line, e.Column, e.Message})
				}
			case err != nil:
				mistakes = append(mistakes, mistake{File: path, Message: err.Error()})
			case !output.json():
				needs := 0
				for i := range spec.Tasks {
					needs += len(spec.Tasks[i].Parents())
				}
				fmt.Fprintf(a.Stdout, "%s: plan %s is valid: %s, %s\n", path, spec.Name, view.Number(len(spec.Tasks), "task"), view.Number(needs, "need"))
			}
			if err != nil {
				errs = append(errs, err)
				continue
			}
			if spec.Schedule != nil {
				if over := fires(spec.Schedule); over != nil {
					a.note("%s: %v; sluice schedule apply refuses it until that is changed", path, over)
				}
			}
			for _, plugin := range pluginsOf(spec) {
				if why := a.notBuiltIn(plugin); why != "" {
					a.note("%s: the plan has tasks for plugin %q, %s", path, plugin, why)
				}
			}
		}
		err = errors.Join(errs...)
		if !output.json() {
			return asUsage(err)
		}
		if printed := view.JSON(a.Stdout, mistakes); printed != nil || err == nil {
			return printed
		}
		return &saidError{asUsage(err)}
	}
	return cmd
}
