package view

import "testing"

func TestPaletteThatIsOffChangesNothing(t *testing.T) {
	if got := Palette(false).State("failed", "failed") + Palette(false).Bold("x"); got != "failedx" {
		t.Errorf("got %q", got)
	}
	if got, want := Palette(true).State("failed", "x"), "\x1b[31mx\x1b[0m"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := Palette(true).State("failed (allowed)", "x"), "\x1b[33mx\x1b[0m"; got != want {
		t.Errorf("what the plan allows is %q, want %q", got, want)
	}
}
