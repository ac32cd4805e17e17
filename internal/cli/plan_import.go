package cli

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/planfile"
)

func planImport(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import --from FORMAT FILE",
		Short: "Make a plan file of another tool's workflow",
		Long: "Make a plan file of another tool's workflow, on standard output. wfformat is the " +
			"JSON of WfCommons (https://wfcommons.org), which records real runs. Each task " +
			"sleeps for its recorded time, scaled.",
		Example: "  sluice plan import --from wfformat --scale 0.01 montage.json.gz > montage.yaml",
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
