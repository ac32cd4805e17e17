package cli

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

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

func configCommands(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "config",
		Short: "Look at a configuration file, as Disbatch 4 has it",
	}, configCheck(a))
}

func configCheck(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Say what a configuration file means here, and all that is wrong with it",
		Long: "Say what a configuration file means here, key by key, and all that is wrong with it, each mistake with its place. It is the file of\n" +
			"Disbatch 4, JSON with comments and trailing commas, by default " + config.DefaultFile + ". Passwords are shown as ***. Nothing is\n" +
			"connected to.",
		Args:    between(0, 1),
		Example: "  sluice config check\n  sluice config check ./config.json",
	}
	output := outputFlag(cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		path := cmp.Or(a.configFlag, config.DefaultFile)
		if len(args) > 0 {
			path = args[0]
		}
		c, err := config.Read(path)
		var found textfile.Errors
		if err != nil && !errors.As(err, &found) {
			return asUsage(err)
		}
		if output.json() {
			doc := checked{File: path, Settings: []setting{}, Mistakes: mistakesOf(found), Warnings: mistakesOf(c.Warnings), Notes: mistakesOf(c.Notes)}
			for _, s := range c.Settings {
				doc.Settings = append(doc.Settings, setting(s))
			}
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

// told prints what stands in a file and is no mistake: as a compiler does, with the place first.
func (a *app) told(kind string, found []textfile.Error) {
	for _, e := range found {
		e.Message = kind + ": " + e.Message
		fmt.Fprintln(a.Stderr, e.Error())
	}
}

// mistakesOf is what is said of a file, in JSON.
func mistakesOf(errs []textfile.Error) []mistake {
	all := []mistake{}
	for _, e := range errs {
		all = append(all, mistake{e.File, e.Line, e.Column, e.Message})
	}
	return all
}

// configured reads the file that a node is given. The file names the store, unless --store does.
func (a *app) configured(path string) (c *config.Config, err error) {
	return a.configuredAs(path, config.Disbatchd)
}

// configuredAs is configured for another of Disbatch's processes. A flag that is given comes before a variable that may have been set long ago.
func (a *app) configuredAs(path string, u config.User) (c *config.Config, err error) {
	if c, err = config.Read(path); err != nil {
		return c, asUsage(err)
	}
	if a.storeFlag != "" {
		return c, nil
	}
	if a.storeOfFile, err = c.URI(u); err != nil {
		return c, asUsage(err)
	}
	if _, named := a.DefaultStore(); named {
		a.note("SLUICE_STORE is not used, since --config names the store; to use it, give --store")
	}
	return c, nil
}

// readConfigFlag reads the file of --config, if one is given and names the store, for commands that want nothing else of it: they connect as
// the user that Disbatch's web server is. What is probably not meant in it is for `config check` to say.
func (a *app) readConfigFlag() error {
	if a.configFlag == "" || a.storeFlag != "" || a.storeOfFile != "" {
		return nil
	}
	_, err := a.configuredAs(a.configFlag, config.DisbatchWeb)
	return err
}
