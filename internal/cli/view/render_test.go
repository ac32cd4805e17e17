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
	style         Style
}{
	"midway": {
		Frame{
			Title: "nightly#3", Elapsed: 64 * time.Second, Running: running(3), Left: 58 * time.Second,
			Counts: plan.Counts{Running: 3, Queued: 20, Held: 560, Succeeded: 409, Failed: 2, Allowed: 1, Skipped: 5},
		}, 100, 24, Style{Unicode: true},
	},
	"colours": {
		Frame{
			Title: "nightly#3", Elapsed: 64 * time.Second, Running: []Run{{Name: "copy[1] (bob@example.com)", For: 3 * time.Second, Attempt: 2, Node: "host.17", Progress: &plan.Progress{Fraction: 0.4, Text: "copied 400 of 1000"}}}, Left: -1,
			Counts: plan.Counts{Running: 1, Succeeded: 3, Failed: 1},
		}, 80, 24, Style{Palette: true, Unicode: true},
	},
	"without-unicode": {
		Frame{Title: "nightly#3", Elapsed: 200 * time.Millisecond, Running: running(1), Left: -1, Counts: plan.Counts{Running: 1, Succeeded: 1}},
		80, 24, Style{},
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
		}, 30, 24, Style{Unicode: true},
	},
	"low": {
		Frame{
			Title: "nightly#3", Elapsed: 64 * time.Second, Running: running(50), Left: 58 * time.Second,
			Counts: plan.Counts{Running: 50, Succeeded: 50},
		}, 80, 6, Style{Unicode: true},
	},
	"tall": {
		Frame{Title: "nightly#3", Elapsed: 64 * time.Second, Running: running(64), Left: -1, Counts: plan.Counts{Running: 64}}, 80, 200, Style{Unicode: true},
	},
	"one-row": {
		Frame{Title: "p#1", Elapsed: time.Second, Running: running(2), Left: -1, Counts: plan.Counts{Running: 2}}, 80, 1, Style{},
	},
	"nothing-yet": {Frame{Title: "p#1", Left: -1}, 80, 24, Style{Unicode: true}},
	"all-done":    {Frame{Title: "p#1", Elapsed: time.Second, Left: 0, Counts: plan.Counts{Succeeded: 12}}, 80, 24, Style{Unicode: true}},
}

func TestRender(t *testing.T) {
	for name, c := range views {
		t.Run(name, func(t *testing.T) {
			lines := Render(c.view, c.columns, c.rows, c.style)
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
			lines := Render(v, columns, rows, Style{Unicode: true})
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

func TestABarIsRedAsFarAsTasksFailed(t *testing.T) {
	for _, c := range []struct {
		n                int
		counts           plan.Counts
		good, other, bad int
	}{
		{30, plan.Counts{Succeeded: 30}, 30, 0, 0},
		{30, plan.Counts{Succeeded: 15, Failed: 15}, 15, 0, 15},
		{30, plan.Counts{Succeeded: 9999, Failed: 1}, 29, 0, 1},
		{30, plan.Counts{Succeeded: 10, Skipped: 5, Cancelled: 5, Failed: 5, Orphaned: 5}, 10, 10, 10},
		{30, plan.Counts{Failed: 3}, 0, 0, 30},
		{0, plan.Counts{Succeeded: 1, Failed: 1}, 0, 0, 0},
		{0, plan.Counts{}, 0, 0, 0},
	} {
		if good, other, bad := shares(c.n, c.counts); good != c.good || other != c.other || bad != c.bad {
			t.Errorf("of %d cells for %+v %d, %d and %d are good, other and bad, want %d, %d and %d", c.n, c.counts, good, other, bad, c.good, c.other, c.bad)
		}
	}
}
