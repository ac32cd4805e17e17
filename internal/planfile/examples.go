package planfile

import (
	"embed"
	"fmt"
	"strings"
)

// An Example is a plan file to begin with. It is valid, and runs in an empty folder with a POSIX shell alone.
type Example struct {
	Name string
	Use  string // a noun phrase: what the example shows
}

// Examples returns the examples by their use. The first one is for a first try.
func Examples() []Example {
	return []Example{
		{"hello", "a first plan: three tasks, of which one is made for each item of a list"},
		{"migration", "copy each item, verify it, switch over, and clean up after a failure"},
		{"batch", "fan out over files, and sum up the results"},
		{"ci", "checks that run at the same time, a package, and a report in any case"},
		{"gate", "wait for a condition, measure, and go on only if the figure is good"},
	}
}

//go:embed examples/*.yaml
var exampleFiles embed.FS

// Text returns the example as a plan file. Its first line tells editors which schema it has. The next
// lines are comments that describe it and name the other examples.
func (e Example) Text() []byte {
	text, err := exampleFiles.ReadFile("examples/" + e.Name + ".yaml")
	if err != nil {
		panic(err) // a test reads each
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# yaml-language-server: $schema=%s\n#\n# %s: %s.\n#\n#   sluice plan run plan.yaml       run this file\n#   sluice serve                    see the run in a browser\n#\n# Other examples:\n#\n", SchemaAddress, e.Name, e.Use)
	for _, other := range Examples() {
		if other.Name != e.Name {
			fmt.Fprintf(&b, "#   sluice plan example %-10s  %s\n", other.Name, other.Use)
		}
	}
	b.WriteByte('\n')
	b.Write(text)
	return []byte(b.String())
}
