package view

import (
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/cli/vttest"
)

func check(t *testing.T, v *vttest.Terminal, want ...string) {
	t.Helper()
	if got := v.Text(); got != strings.Join(want, "\n") {
		t.Errorf("the terminal shows\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

func fixed(lines ...string) func(int, int) []string { return func(int, int) []string { return lines } }

func TestScreen(t *testing.T) {
	t.Run("live lines are redrawn in place", func(t *testing.T) {
		v := vttest.New(t, 40, 10)
		s := NewScreen(v, v.Size)
		_ = s.Show(nil, fixed("one", "two long", "three"))
		_ = s.Show(nil, fixed("ONE", "two"))
		check(t, v, "ONE", "two")
	})
	t.Run("lasting lines stay above", func(t *testing.T) {
		v := vttest.New(t, 40, 10)
		s := NewScreen(v, v.Size)
		_ = s.Show(nil, fixed("live 1", "live 2"))
		_ = s.Show([]string{"a failed"}, fixed("live 1", "live 2"))
		_ = s.Show([]string{"b failed", "c failed"}, fixed("live 3"))
		check(t, v, "a failed", "b failed", "c failed", "live 3")
	})
	t.Run("a lasting line may be longer than the terminal is wide", func(t *testing.T) {
		v := vttest.New(t, 10, 10)
		s := NewScreen(v, v.Size)
		_ = s.Show(nil, fixed("live 1", "live 2"))
		_ = s.Show([]string{"0123456789abc"}, fixed("live 1", "live 2"))
		check(t, v, "0123456789", "abc", "live 1", "live 2")
	})
	t.Run("more live lines scroll the terminal", func(t *testing.T) {
		v := vttest.New(t, 20, 3)
		s := NewScreen(v, v.Size)
		_ = s.Show([]string{"x", "y", "z"}, fixed("live 1", "live 2"))
		_ = s.Show(nil, fixed("LIVE 1", "LIVE 2"))
		check(t, v, "x", "y", "z", "LIVE 1", "LIVE 2")
	})
	t.Run("a terminal that became narrower has wrapped the lines", func(t *testing.T) {
		v := vttest.New(t, 20, 10)
		s := NewScreen(v, v.Size)
		_ = s.Show([]string{"kept"}, fixed("0123456789abcdef", "漢字漢字漢字漢"))
		v.Resize(8)
		_ = s.Show(nil, fixed("short", "lines"))
		check(t, v, "kept", "short", "lines")
	})
	t.Run("colours do not count when it is resized", func(t *testing.T) {
		v := vttest.New(t, 20, 10)
		s := NewScreen(v, v.Size)
		_ = s.Show([]string{"kept"}, fixed("\x1b[31m01234567\x1b[0m", "b"))
		v.Resize(8)
		_ = s.Show(nil, fixed("short"))
		check(t, v, "kept", "short")
	})
	t.Run("nothing is written when nothing changed", func(t *testing.T) {
		v := vttest.New(t, 20, 10)
		s := NewScreen(v, v.Size)
		_ = s.Show(nil, fixed("live"))
		_ = s.Show(nil, fixed("live"))
		if v.Writes() != 1 {
			t.Errorf("%d writes, want 1", v.Writes())
		}
	})
	t.Run("clearing leaves what lasts", func(t *testing.T) {
		v := vttest.New(t, 20, 10)
		s := NewScreen(v, v.Size)
		_ = s.Show([]string{"kept"}, fixed("live 1", "live 2"))
		_ = s.Clear()
		_ = s.Clear()
		check(t, v, "kept", "")
	})
}
