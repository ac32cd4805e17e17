package view

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/plan"
)

var update = flag.Bool("update", false, "write the golden files anew")

func running(n int) []Run {
	rs := make([]Run, n)
	for i := range rs {
		rs[i] = Run{Name: fmt.Sprintf("copy[%d]", i), For: time.Duration(n-i) * 1300 * time.Millisecond, Attempt: 1}
	}
	return rs
}

// views are what the golden files show, by their names.
var views = map[string]struct {
	view          Frame
	columns, rows int
	palette       Palette
}{
	"midway": {
		Frame{
			Title: "nightly#3", Elapsed: 64 * time.Second, Running: running(3), Left: 58 * time.Second,
			Counts: plan.Counts{Running: 3, Queued: 20, Held: 560, Succeeded: 409, Failed: 2, Allowed: 1, Skipped: 5},
		}, 100, 24, false,
	},
	"colours": {
		Frame{
			Title: "nightly#3", Elapsed: 64 * time.Second, Running: []Run{{Name: "copy[1] (bob@example.com)", For: 3 * time.Second, Attempt: 2, Node: "host.17", Progress: &plan.Progress{Fraction: 0.4, Text: "copied 400 of 1000"}}}, Left: -1,
			Counts: plan.Counts{Running: 1, Succeeded: 3, Failed: 1},
		}, 80, 24, true,
	},
	"narrow": {
		Frame{
			Title: "a-plan-with-a-long-name#12", Elapsed: 2 * time.Hour, Left: 90 * time.Minute, Note: "stopping: what runs may go on for 10s more",
			Running: []Run{
				{Name: "a-task-with-a-very-long-name-indeed[12345]", For: time.Hour, Attempt: 3, Node: "host.17"},
				{Name: "漢字漢字漢字漢字漢字漢字漢字", For: time.Minute, Attempt: 1},
				{Name: "copy[7] (漢字漢字)", For: time.Minute, Attempt: 1},
			},
			Counts: plan.Counts{Running: 2, Succeeded: 1},
		}, 30, 24, false,
	},
	"low": {
		Frame{
			Title: "nightly#3", Elapsed: 64 * time.Second, Running: running(50), Left: 58 * time.Second,
			Counts: plan.Counts{Running: 50, Succeeded: 50},
		}, 80, 6, false,
	},
	"tall": {
		Frame{Title: "nightly#3", Elapsed: 64 * time.Second, Running: running(64), Left: -1, Counts: plan.Counts{Running: 64}}, 80, 200, false,
	},
	"one-row": {
		Frame{Title: "p#1", Elapsed: time.Second, Running: running(2), Left: -1, Counts: plan.Counts{Running: 2}}, 80, 1, false,
	},
	"nothing-yet": {Frame{Title: "p#1", Left: -1}, 80, 24, false},
	"all-done":    {Frame{Title: "p#1", Elapsed: time.Second, Left: 0, Counts: plan.Counts{Succeeded: 12}}, 80, 24, false},
}

func TestRender(t *testing.T) {
	for name, c := range views {
		t.Run(name, func(t *testing.T) {
			lines := Render(c.view, c.columns, c.rows, c.palette)
			for _, l := range lines {
				if w := cells.Width(plain(l)); w >= c.columns {
					t.Errorf("a line takes %d of %d columns: %q", w, c.columns, l)
				}
			}
			if len(lines) >= c.rows && len(lines) > 1 {
				t.Errorf("%d lines on a terminal of %d rows", len(lines), c.rows)
			}
			got := strings.ReplaceAll(strings.Join(lines, "\n"), "\x1b", "^[") + "\n"
			file := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%swant\n%s", got, want)
			}
		})
	}
}

func TestRenderFitsEveryTerminal(t *testing.T) {
	v := views["narrow"].view
	v.Running = append(v.Running, running(30)...)
	for columns := 1; columns < 120; columns++ {
		for rows := 1; rows < 40; rows += 3 {
			lines := Render(v, columns, rows, false)
			if len(lines) > max(1, rows-1) {
				t.Fatalf("%d lines on %d rows", len(lines), rows)
			}
			for _, l := range lines {
				if w := cells.Width(l); w > max(1, columns-1) {
					t.Fatalf("%d cells on %d columns: %q", w, columns, l)
				}
			}
		}
	}
}
