package program

import (
	"context"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/plugins"
	"github.com/seed-1177d267/sluice/plugins/exec"
)

// Every is how often the folders are read.
const Every = time.Second

// Folders keep a registry in step with some folders. They register new plugins, and remove plugins
// that vanish or become invalid. Plugins stay while their file or folder cannot be read, as on a
// file server that fails. One goroutine at a time uses them.
type Folders struct {
	Paths    []string
	BuiltIn  []string               // names that no program can have
	Allow    func(name string) bool // whether a node runs a plugin; nil: any
	Registry *plugins.Registry
	Commands *exec.Plugin // runs them; default: one of their own, whose files a later process removes
	Logger   *slog.Logger // gets a line for each change, a warning for what is there and not used; default: nothing is logged

	looked     bool
	seen       map[string]stamp  // by path
	registered map[string]string // path by name
	told       map[string]string // why, by path
}

// Watch reads the folders about each second, until ctx ends.
func (f *Folders) Watch(ctx context.Context) {
	tick := time.NewTicker(Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f.Look(ctx)
		}
	}
}

// Look updates the registry to the present content of the folders. The first look takes everything
// at once. Later, a new file is taken at the next look if it has not changed by then, because
// somebody may still be writing it.
func (f *Folders) Look(ctx context.Context) {
	if f.Commands == nil {
		f.Commands = exec.New(exec.Options{})
	}
	if f.Logger == nil {
		f.Logger = slog.New(slog.DiscardHandler)
	}
	found, err := plugins.Within(ctx, func() ([]Found, error) { return Find(f.Paths, f.BuiltIn), nil })
	if err != nil {
		return // ctx has ended while a file system hung
	}
	seen, told, valid, unread := map[string]stamp{}, map[string]string{}, map[string]Found{}, map[string]bool{}
	for _, p := range found {
		seen[p.Path] = p.stamp
		if unread[p.Path] = p.unread(); p.Err != nil {
			if told[p.Path] = p.Err.Error(); told[p.Path] != f.told[p.Path] {
				f.Logger.Warn("not a plugin", "path", p.Path, "error", p.Err)
			}
			continue
		}
		if f.Allow == nil || f.Allow(p.Name) {
			valid[p.Name] = p
		}
	}
	for name, path := range f.registered {
		if unread[path] || unread[filepath.Dir(path)] {
			seen[path] = f.seen[path]
			continue
		}
		if p, there := valid[name]; there && p.Path == path {
			if p.stamp != f.seen[path] {
				f.Logger.Info("plugin changed", "plugin", name, "path", path)
			}
			continue
		}
		f.Registry.Remove(name)
		delete(f.registered, name)
		f.Logger.Info("plugin gone", "plugin", name, "path", path)
	}
	for _, name := range slices.Sorted(maps.Keys(valid)) {
		p := valid[name]
		if _, have := f.registered[name]; have || f.looked && f.seen[p.Path] != p.stamp {
			continue
		}
		if err := f.Registry.Add(name, New(p.Path, f.Commands)); err != nil {
			f.Logger.Warn("not a plugin", "path", p.Path, "error", err)
			continue
		}
		if f.registered == nil {
			f.registered = map[string]string{}
		}
		f.registered[name] = p.Path
		f.Logger.Info("plugin found", "plugin", name, "path", p.Path)
	}
	f.looked, f.seen, f.told = true, seen, told
}
