package cli

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/jobpack"
	"github.com/seed-1177d267/sluice/internal/submit"
)

func discoSubmit(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "submit PACK",
		Short: "Put the job of a job pack into the store, for nodes to run",
		Long: "Put the job of a Disco job pack into the store, as a plan with a task for each stage, " +
			"and print the plan's id. The store keeps the pack beside the plan, and each node unpacks " +
			"it once. The plan and the pack are deleted together.\n" +
			"\n" +
			"The job fails with the first task that fails for good. docs/disco.md explains packs.",
		Example: "  p=$(sluice disco submit count.pack --input http://127.0.0.1:8000/text)\n  sluice plan wait $p",
	}
	output := outputFlag(cmd)
	inputs := cmd.Flags().StringArray("input", nil, "a `URL` to read, instead of the inputs in the pack; may be repeated")
	env := cmd.Flags().StringArray("env", nil, "a further variable of the worker, `NAME=VALUE`; may be repeated")
	var key string
	keyFlag(cmd, &key, "an idempotency `KEY`: submit the job once for each key, however often this is repeated")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		further, err := pairs("--env", *env)
		if err != nil {
			return err
		}
		f, pack, err := openPack(args[0])
		if err != nil {
			return err
		}
		defer f.Close()
		if *inputs != nil {
			pack.SetInputs(*inputs)
		}
		for _, note := range pack.Notes() {
			a.note("%s", note)
		}
		spec, err := pack.Spec(further)
		if err != nil {
			return usagef("%s: %w", f.Name(), err)
		}
		return a.submitSpec(cmd.Context(), spec, key, &submit.Pack{Content: pack.Content(), MaxTasks: pack.MaxTasks()}, output)
	}
	return cmd
}

// openPack reads a job pack. The pack reads from the file, which the caller closes.
func openPack(path string) (*os.File, *jobpack.Pack, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, nil, asUsage(err)
	case !info.Mode().IsRegular():
		return nil, nil, usagef("%s is no file; name a job pack", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, asUsage(err)
	}
	p, err := jobpack.Read(f, info.Size())
	if err != nil {
		_ = f.Close() // it was read
		return nil, nil, usagef("%s: %w", path, err)
	}
	return f, p, nil
}
