package config

import (
	"maps"
	"slices"
	"strings"
)

// Changed returns the keys whose values differ from those in before, passwords included, in the
// order of the file's documentation. It returns only keys with an effect on a node, or on the
// server beside it. It leaves out the keys of log4perl, which take effect while a node runs.
func (c *Config) Changed(before *Config) (keys []string) {
	counts := func(s Setting) bool {
		return s.Effect != unused && s.Effect != forCreateUsers && s.Effect != forRunners && s.Effect != forCommands
	}
	was := map[string]Setting{}
	for _, s := range before.Settings {
		was[s.Key] = s
	}
	changed := func(s Setting) bool {
		if user, ok := strings.CutPrefix(s.Key, "auth."); ok && c.Auth[User(user)] != before.Auth[User(user)] {
			return true
		}
		old, there := was[s.Key]
		return s.Value != old.Value && (there || !s.Default)
	}
	for _, s := range c.Settings {
		if counts(s) && !strings.HasPrefix(s.Key, "log4perl") && changed(s) {
			keys = append(keys, s.Key)
		}
		delete(was, s.Key)
	}
	for _, key := range slices.Sorted(maps.Keys(was)) { // such as an attribute that is not there any more
		if s := was[key]; counts(s) && !s.Default {
			keys = append(keys, key)
		}
	}
	if uri, err := c.URI(Disbatchd); err == nil && len(keys) == 0 {
		if old, err := before.URI(Disbatchd); err == nil && uri != old {
			keys = append(keys, "mongohost") // its password is not among what is shown
		}
	}
	return keys
}
