//go:build unix

package exec

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/plan"
)

// A line of any length runs as a short one does, up to its last command.
func TestALongLineIsReadFromAFile(t *testing.T) {
	line := strings.Repeat("# a comment of a line that somebody generated, and so has very many lines\n", 2300) + "echo \"$day\"\nfalse | true\nexit 7\necho never\n"
	if len(line) < 160<<10 {
		t.Fatalf("the line has only %d bytes", len(line))
	}
	for shell, code := range map[string]int{"": 7, "sh -u": 7, "bash": 1, "bash -u": 7} {
		if _, err := exec.LookPath(strings.TrimSuffix(shell, " -u")); shell != "" && err != nil {
			continue
		}
		params := object{"run": line, "day": "monday"}
		if shell != "" {
			params["shell"] = shell
		}
		if r, printed := run(t, params); r.Status != plan.Failed || r.Exit == nil || r.Exit.Code != code || printed != "monday\n" {
			t.Errorf("shell %q: %+v, %q; want exit status %d after monday", shell, r, printed, code)
		}
	}
}
