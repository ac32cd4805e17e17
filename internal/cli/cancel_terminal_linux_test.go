package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/polltest"
)

func TestACancellationAsksAboutCleanUpsOnATerminal(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	there := func(name string) bool { _, err := os.Stat(at(name)); return err == nil }
	const file = `plan: move
tasks:
  copy: {run: 'touch begun; while ! test -e go; do sleep 0.05; done'}
  undo: {needs: [copy], when: any_failed, run: touch undone}
`
	if err := os.WriteFile(at("move.yaml"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		lines  []any
		code   int
		want   string
		undone bool
	}{
		{"nothing", []any{"what?", "n"}, 1, "was not cancelled", false},
		{"no answer", []any{"\x04"}, 1, "was not cancelled: no answer", false},
		{"what runs", []any{"r"}, 0, "goes on, with 1 task being cancelled", true},
		{"all", []any{"", "all"}, 0, "is cancelled", false},
	} {
		for _, name := range []string{"begun", "undone", "go"} {
			_ = os.Remove(at(name))
		}
		run := exec.Command(self, "plan", "run", "move.yaml", "--store", "sqlite:s.db")
		run.Args[0], run.Dir = "sluice", dir
		if err := run.Start(); err != nil {
			t.Fatal(err)
		}
		polltest.Until(t, patience, "copy runs", func() bool { return there("begun") })
		screen, code, _ := typing(t, []string{"plan", "cancel", "move", "--store", "sqlite:" + at("s.db")}, c.lines...)
		if code != c.code || !strings.Contains(screen, c.want) || !strings.Contains(screen, "clean-ups will not finish: undo") {
			t.Errorf("%s: exit code %d, want %d\n%s", c.name, code, c.code, screen)
		}
		if c.code != 0 { // nothing stops copy
			if err := os.WriteFile(at("go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_ = run.Wait()
		if there("undone") != c.undone {
			t.Errorf("%s: undo ran: %v, want %v", c.name, !c.undone, c.undone)
		}
	}
}
