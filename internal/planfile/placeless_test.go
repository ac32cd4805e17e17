package planfile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/plan"
)

// Where nobody chose the folder it is said at the first place that depends on it, and nowhere where none does.
func TestWhereAFolderMattersThatNobodyChose(t *testing.T) {
	for _, c := range []struct{ name, file, want string }{
		{"a pattern", "  a: {foreach: {glob: 'data/*.txt'}, run: wc}\n  b: {foreach: {glob: '*.txt'}, run: wc}\n", "4:16"},
		{"a file of lines", "  a: {run: 'true'}\n  b: {foreach: {lines: names}, run: wc}\n", "5:16"},
		{"a pattern of a plugin", "  a: {foreach: {glob: '*.txt'}, plugin: demo}\n", "4:16"},
		{"the plan's dir", "  a: {run: ls}\ndir: work\n", "5:6"},
		{"a task's dir", "  a: {dir: work, run: ls}\n", "4:12"},
		{"a dir by a param", "  a: {dir: '${{ params.into }}', run: ls}\n", "4:12"},
		{"a command of the folder", "  a: {run: 'cd x && ./copy'}\n", "4:12"},
		{"a command as a list", "  a: {run: [sh, ../copy]}\n", "4:12"},
		{"a command by default", "  a: {}\ndefaults: {run: ./copy}\n", "5:17"},
		{"none", "  a: {run: 'echo ... a./b'}\n  b: {foreach: {glob: /data/*}, run: wc}\n  c: {plugin: demo}\n", ""},
		{"a dir that is absolute", "  a: {foreach: {glob: '*.txt'}, run: ./copy}\ndir: /srv\n", ""},
		{"a task's dir that is absolute", "  a: {dir: /srv, run: ./copy}\ndir: /srv\n", ""},
		{"a dir that shows later", "  a: {needs: [b], dir: '${{ needs.b }}', run: ./copy}\n  b: {run: 'true'}\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := "plan: x\nparams: {into: work}\ntasks:\n" + c.file
			for _, unplaced := range []string{"no folder", ""} {
				var got []string
				_, err := Parse("f", []byte(file), Options{Dir: "/", Unplaced: unplaced, Notes: func(*plan.Spec) plan.Problems { return nil },
					Note: func(e Error) { got = append(got, fmt.Sprintf("%d:%d", e.Line, e.Column)) }})
				want := c.want
				if unplaced == "" {
					want = ""
				}
				if err != nil || strings.Join(got, " ") != want {
					t.Errorf("noted at %q (%v), want %q", got, err, want)
				}
			}
		})
	}
}
