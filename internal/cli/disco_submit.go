package cli

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/jobpack"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins/disco/host"
)

func discoSubmit(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "submit PACK",
		Short: "Put the job of a job pack into the store, for nodes to run",
		Long: "Put the job of a Disco job pack into the store, as a plan with a task for each stage, " +
			"and print the plan's id. Each node unpacks the pack once, from the path that PACK has " +
			"here: on several machines, put it into a folder that all have. The pack stays there " +
			"until the plan has ended.\n" +
			"\n" +
			"The job fails with the first task that fails for good. docs/disco.md explains packs.",
		Args:    exactly(1),
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
		spec, err := a.discoJob(args[0], *inputs, further)
		if err != nil {
			return err
		}
		return a.submitSpec(cmd.Context(), spec, key, output)
	}
	return cmd
}

// discoJob reads a job pack, and returns the plan of its job.
func (a *app) discoJob(path string, inputs []string, env map[string]string) (*plan.Spec, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, asUsage(err)
	case !info.Mode().IsRegular():
		return nil, usagef("%s is no file; name a job pack", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, asUsage(err)
	}
	defer f.Close()
	p, err := jobpack.Read(f, info.Size())
	if err != nil {
		return nil, usagef("%s: %w", path, err)
	}
	if inputs != nil {
		p.Inputs = nil
		for _, url := range inputs {
			p.Inputs = append(p.Inputs, jobpack.InputOf(url))
		}
	}
	for i, in := range p.Inputs {
		if err := host.CheckReplicas(in.URLs); err != nil {
			return nil, usagef("%s: input %d: %w", path, i, err)
		}
	}
	for _, note := range p.Notes() {
		a.note("%s", note)
	}
	return p.Spec(path, env)
}
