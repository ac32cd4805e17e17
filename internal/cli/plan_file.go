package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/planfile"
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
		Short: "Check plan files, and say all that is wrong with them",
		Long: "Check plan files, and say all that is wrong with them, each mistake with its place. A plugin that is not built in here is no\n" +
			"mistake, since other nodes may have it, but is noted; nor is a param that must be given as the plan is run. Also noted is what is\n" +
			"valid and probably not meant, such as a clean-up that some failures do not reach. Nothing is run, and no store is touched.",
		Args: between(1, -1),
	}
	output := outputFlag(cmd)
	params := cmd.Flags().StringArray("param", nil, "a value for a param of the plan, as `NAME=VALUE`; repeat it for more")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		values, err := pairs("--param", *params)
		if err != nil {
			return err
		}
		mistakes := []mistake{}
		var errs []error
		for _, path := range args {
			spec, err := planfile.LoadWith(path, a.noting(planfile.Options{Params: values, Draft: true}, false))
			var found planfile.Errors
			switch {
			case errors.As(err, &found):
				for _, e := range found {
					mistakes = append(mistakes, mistake{e.File, e.Line, e.Column, e.Message})
				}
			case err != nil:
				mistakes = append(mistakes, mistake{File: path, Message: err.Error()})
			case !output.json():
				needs := 0
				for i := range spec.Tasks {
					needs += len(spec.Tasks[i].Needs)
				}
				fmt.Fprintf(a.Stdout, "%s: plan %s is valid: %s, %s\n", path, spec.Name, view.Number(len(spec.Tasks), "task"), view.Number(needs, "need"))
			}
			if err != nil {
				errs = append(errs, err)
				continue
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

func planExample(a *app) *cobra.Command {
	examples := planfile.Examples()
	var list strings.Builder
	names := make([]string, len(examples))
	for i, e := range examples {
		names[i] = e.Name
		fmt.Fprintf(&list, "  %-10s  %s\n", e.Name, e.Use)
	}
	return &cobra.Command{
		Use:   "example [NAME]",
		Short: "Print a plan file to begin with",
		Long: "Print a plan file to begin with. Each example runs in an empty folder, and needs a POSIX shell alone:\n\n" + list.String() +
			"\nWithout a NAME the first one is printed. Its first lines name the others.",
		Example:           "  sluice plan example > plan.yaml\n  sluice plan example batch > batch.yaml",
		Args:              between(0, 1),
		ValidArgsFunction: cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp),
		RunE: func(_ *cobra.Command, args []string) error {
			e := examples[0]
			if len(args) == 1 {
				i := slices.Index(names, args[0])
				if i < 0 {
					return usagef("there is no example %q; there are %s%s", args[0], strings.Join(names, ", "), didYouMean(args[0], names))
				}
				e = examples[i]
			}
			_, err := a.Stdout.Write(e.Text())
			return err
		},
	}
}

func planSchema(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON Schema of plan files, for editors",
		Args:    exactly(0),
		Example: "  sluice plan schema > sluice.schema.json",
		RunE: func(*cobra.Command, []string) error {
			_, err := a.Stdout.Write(planfile.Schema())
			return err
		},
	}
}

func planImport(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import --from FORMAT FILE",
		Short: "Make a plan file of another tool's workflow",
		Long: "Make a plan file of another tool's workflow, on standard output. wfformat is the JSON of WfCommons (https://wfcommons.org), in which\n" +
			"real runs are recorded: each task sleeps for the time that it took, scaled.",
		Example: "  sluice plan import --from wfformat --scale 0.01 montage.json.gz > montage.yaml",
		Args:    exactly(1),
	}
	from := choice{"", []string{"wfformat"}}
	cmd.Flags().Var(&from, "from", "the format of the file")
	scale := cmd.Flags().Float64("scale", 1, "what the recorded times are multiplied with")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if from.value == "" {
			return usagef("say what the file is: --from %s", from.words[0])
		}
		f, err := os.Open(args[0])
		if err != nil {
			return asUsage(err)
		}
		defer f.Close()
		text, err := planfile.ImportWfFormat(f, *scale)
		if err != nil {
			return usagef("%s: %w", args[0], err)
		}
		_, err = a.Stdout.Write(text)
		return err
	}
	return cmd
}
