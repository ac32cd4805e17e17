package exec

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/internal/source"
	"github.com/seed-1177d267/sluice/plugins"
)

// mayBeLiteral matches commands with an env or a folder in which a variable may stand.
var mayBeLiteral = regexp.MustCompile(`"(?:env|dir)":(?:\{|")[^\x00]*\$`)

// literals returns notes of variables in values of env and in dir. No shell reads these, so
// PATH: "$PATH:/opt/x" is that text. A name that nothing known sets may be part of any text, and gets
// no note.
func (s *settings) literals(given map[string]json.RawMessage, as map[string]string) (notes []plugins.Note) {
	note := func(key, variable, text, where string) {
		for _, m := range dollar.FindAllStringSubmatch(text, -1) {
			name := m[1]
			_, node := os.LookupEnv(name)
			node = node && !source.Private(name)
			remedy := fmt.Sprintf("set it in the line, as in %s=\"%s\"", variable, text)
			switch {
			case has(as, name) && name != "item":
				remedy = fmt.Sprintf("write ${{ params.%s }}", name)
			case has(as, name):
				remedy = "write ${{ item }}"
			case !node && !has(s.env, name) && !slices.Contains(sluicesOwn, name):
				continue
			case key == "dir":
				remedy = "write the path, or cd in the line"
			}
			notes = append(notes, plugins.Note{Key: key, Item: -1, Word: variable, Text: fmt.Sprintf("$%s in %s stays as it is written, because no shell reads it; %s", name, where, remedy)})
			return
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.env)) {
		if v := s.env[name]; !v.Secret() {
			note("env", name, v.Text, "env "+name)
		}
	}
	if strings.Contains(s.dir, "$") {
		note("dir", "", s.dir, "dir")
	}
	return notes
}
