package cli

import (
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/seed-1177d267/sluice/internal/api/v1"
	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/planfile"
	"github.com/seed-1177d267/sluice/internal/secret"
)

// helpParamsFlag gives a command that takes a plan file the flag that lists its params.
func helpParamsFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("help-params", false, "print the params of FILE, with their defaults, choices and texts, and do nothing else")
}

// helpParams prints what a plan file says of its params. values are those that a person gives.
func (a *app) helpParams(args []string, values map[string]string, output *format) error {
	if len(args) != 1 {
		return usagef("--help-params lists the params of a plan file: name the file")
	}
	var declared []planfile.Param
	spec, err := planfile.LoadWith(args[0], planfile.Options{Params: values, Draft: true, Declared: &declared})
	if err != nil {
		return asUsage(err)
	}
	if output.json() {
		return view.JSON(a.Stdout, v1.ParamsOf(declared, values))
	}
	if len(declared) == 0 {
		return a.say("plan %s has no params", spec.Name)
	}
	t := view.Table{Head: []string{"PARAM", "DEFAULT", "CHOICES", "ABOUT"}}
	for _, d := range declared {
		t.Add(d.Name, defaultOf(&d), strings.Join(d.Choices.Words(), ", "), d.About)
	}
	t.DropEmpty("CHOICES", "ABOUT")
	return t.Print(a.Stdout)
}

// defaultOf returns the default of a param for people.
func defaultOf(p *planfile.Param) string {
	text := planfile.Texts(map[string]json.RawMessage{"": p.Default})[""]
	switch {
	case p.Default == nil:
		return "must be given"
	case p.Secret:
		return secret.Hidden
	case text == "":
		return `""`
	}
	return text
}
