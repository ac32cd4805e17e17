package plugins

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/seed-1177d267/sluice/internal/rules"
)

// CheckName returns why a plugin cannot have the name, nil if it can. The rule is Disbatch's, [\w:]+ in ASCII: queues name plugins, and
// other nodes on the database load what a queue names.
func CheckName(name string) error {
	if err := rules.CheckPluginName(name); err != nil {
		return fmt.Errorf("plugin name %q: %w", name, err)
	}
	return nil
}

// A Registry has the plugins that a node can run, by name. It may be changed while nodes run: any
// number of goroutines may use it at once. A node reads the names before each turn and claims only
// for those. If a plugin has gone by then, the node gives its claims back.
type Registry struct {
	mu     sync.RWMutex
	byName map[string]Plugin
}

// NewRegistry returns an empty registry.
func NewRegistry() *Registry { return &Registry{byName: map[string]Plugin{}} }

// Register adds a plugin; it panics if the name is taken, or no name by CheckName, which is a mistake in the program.
func (r *Registry) Register(name string, p Plugin) {
	if err := r.Add(name, p); err != nil {
		panic(err)
	}
}

// Add adds a plugin, or says why it cannot: the name is taken, or none by CheckName.
func (r *Registry) Add(name string, p Plugin) error {
	if err := CheckName(name); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, taken := r.byName[name]; taken {
		return fmt.Errorf("plugin %q is registered already; give one of the two another name", name)
	}
	r.byName[name] = p
	return nil
}

// Remove takes a plugin away. Its running tasks continue.
func (r *Registry) Remove(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byName, name)
}

// Get returns the plugin of that name.
func (r *Registry) Get(name string) (Plugin, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	p, ok := r.byName[name]
	return p, ok
}

// Names returns the names, sorted.
func (r *Registry) Names() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Sorted(maps.Keys(r.byName))
}
