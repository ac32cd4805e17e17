package cli

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/plugins"
	"github.com/seed-1177d267/sluice/plugins/program"
)

// A pluginEntry is a plugin, or what cannot be one, in JSON listings.
type pluginEntry struct {
	Name   string `json:"name"`
	Kind   string `json:"kind"`             // built in, program
	State  string `json:"state"`            // valid, invalid
	Status int    `json:"status"`           // 1, 0
	Path   string `json:"path,omitempty"`   // of a program
	Detail string `json:"detail,omitempty"` // why it is invalid
}

func pluginList(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the plugins that a node here can run",
		Long: "List the plugins that a node here can run: built-in ones, and the programs in the " +
			"folders of --plugin-dir. Files that cannot be plugins are listed with the reason. " +
			"The plugins of a store's nodes: sluice node list",
		Example: "  sluice plugin list --plugin-dir /etc/sluice/plugins",
	}
	var dirs []string
	pluginDirFlag(cmd, &dirs)
	output := outputFlag(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		if err := checkPluginDirs(dirs); err != nil {
			return err
		}
		entries := api.Each(a.Plugins.Names(), func(name *string) pluginEntry {
			return pluginEntry{Name: *name, Kind: "built in", State: "valid", Status: 1}
		})
		for _, f := range program.Find(dirs, a.Plugins.Names()) {
			e := pluginEntry{Name: f.Name, Kind: "program", State: "valid", Status: 1, Path: f.Path}
			if f.Err != nil {
				e.State, e.Status, e.Detail = "invalid", 0, f.Err.Error()
			}
			entries = append(entries, e)
		}
		if output.json() {
			return view.JSON(a.Stdout, entries)
		}
		t := view.Table{Head: []string{"PLUGIN", "KIND", "STATE", "PATH", "DETAIL"}}
		for i := range entries {
			e := &entries[i]
			t.Add(e.Name, e.Kind, e.State, e.Path, strings.TrimPrefix(strings.TrimPrefix(e.Detail, e.Path), ": "))
		}
		return t.Print(a.Stdout)
	}
	return cmd
}

// watchPrograms registers the programs of the folders, or only those in allow if it is not nil. It
// continues until ctx ends or stop is called, which waits for its end.
func (a *app) watchPrograms(ctx context.Context, dirs, allow []string, r *plugins.Registry, log *slog.Logger) (stop func(), err error) {
	if len(dirs) == 0 {
		return func() {}, nil
	}
	if err := checkPluginDirs(dirs); err != nil {
		return nil, err
	}
	f := &program.Folders{Paths: dirs, BuiltIn: a.Plugins.Names(), Registry: r, Commands: a.Commands, Logger: log}
	if allow != nil {
		f.Allow = func(name string) bool { return slices.Contains(allow, name) }
	}
	f.Look(ctx)
	for _, name := range allow {
		if _, there := r.Get(name); !there {
			log.Warn("an allowed plugin is not there; it is taken when it comes", "plugin", name)
		}
	}
	return beside(ctx, f.Watch), nil
}

// plugInto is watchPrograms for a command that runs a plan: what is no plugin is said once, before it begins.
func (a *app) plugInto(ctx context.Context, dirs []string) (stop func(), err error) {
	if err := checkPluginDirs(dirs); err != nil {
		return nil, err
	}
	a.pluginDirs = dirs
	for _, f := range program.Find(dirs, a.Plugins.Names()) {
		if f.Err != nil {
			a.note("not a plugin: %v", f.Err)
		}
	}
	return a.watchPrograms(ctx, dirs, nil, a.Plugins, slog.New(slog.DiscardHandler))
}
