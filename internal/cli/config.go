package cli

import (
	"cmp"
	"errors"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/config"
	"github.com/seed-1177d267/sluice/internal/textfile"
)

// A checked is what a configuration file says, in JSON.
type checked struct {
	File     string    `json:"file"`
	Settings []setting `json:"settings"`
	Mistakes []mistake `json:"mistakes"`
	Warnings []mistake `json:"warnings"`
	Notes    []mistake `json:"notes"`
}

type setting struct {
	Key     string `json:"key"`
	Value   string `json:"value"`
	Default bool   `json:"default"`
	Effect  string `json:"effect"`
}

func configCheck(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Explain a configuration file, and report every mistake",
		Long: "Explain a configuration file, key by key, and report every mistake with its " +
			"place. It is the file of Disbatch 4, JSON with comments and trailing commas, by " +
			"default " + config.DefaultFile + ". Passwords are shown as ***. Nothing is\n" +
			"connected to.",
		Example: "  sluice config check\n  sluice config check ./config.json",
	}
	output := outputFlag(cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		path := cmp.Or(a.configFlag, config.DefaultFile)
		if len(args) > 0 {
			path = args[0]
		}
		c, err := config.Read(path)
		found, ok := errors.AsType[textfile.Errors](err)
		if err != nil && !ok {
			return asUsage(err)
		}
		if output.json() {
			settings := api.Each(c.Settings, func(s *config.Setting) setting { return setting(*s) })
			doc := checked{File: path, Settings: settings, Mistakes: mistakesOf(found), Warnings: mistakesOf(c.Warnings), Notes: mistakesOf(c.Notes)}
			if printed := view.JSON(a.Stdout, doc); printed != nil || err == nil {
				return printed
			}
			return &saidError{asUsage(err)}
		}
		if err != nil {
			a.told("warning", c.Warnings)
			return asUsage(err)
		}
		t := view.Table{Head: []string{"KEY", "VALUE", "FROM", "EFFECT"}}
		for _, s := range c.Settings {
			from := "file"
			if s.Default {
				from = "default"
			}
			t.Add(s.Key, s.Value, from, s.Effect)
		}
		if err := t.Print(a.Stdout); err != nil {
			return err
		}
		a.told("warning", c.Warnings)
		a.told("note", c.Notes)
		return nil
	}
	return cmd
}

// mistakesOf is what is said of a file, in JSON.
func mistakesOf(errs []textfile.Error) []mistake {
	return api.Each(errs, func(e *textfile.Error) mistake { return mistake{e.File, e.Line, e.Column, e.Message} })
}
