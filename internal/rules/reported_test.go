package rules

import (
	"errors"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/seed-1177d267/sluice/plan"
)

func TestProgress(t *testing.T) {
	for _, c := range []struct {
		name     string
		fraction float64
		text     string
		want     string // "": refused
	}{
		{"a fraction and a text", 0.4, "copied 400 of 1000", "40% copied 400 of 1000"},
		{"a fraction alone", 0.29, "", "29%"},
		{"below 0 is 0", -3, "x", "0% x"},
		{"above 1 is 1", 40, "x", "100% x"},
		{"nearly done is not done", 0.9999, "", "99%"},
		{"lines and colours become one line", 0.5, " a\n\x1b[31mb\t", "50% a  [31mb"},
		{"bytes that are no text", 0.5, "a\xffb", "50% a\uFFFDb"},
		{"no number", math.NaN(), "x", ""},
		{"infinity is no number", math.Inf(1), "x", ""},
	} {
		p, err := NewProgress(c.fraction, c.text)
		if got := p.String(); err == nil && got != c.want || (err != nil) != (c.want == "") || err != nil && !errors.Is(err, plan.ErrProgress) {
			t.Errorf("%s: %q, %v; want %q", c.name, got, err, c.want)
		}
	}
	for _, text := range []string{strings.Repeat("x", 300), strings.Repeat("ä", 150), "x" + strings.Repeat("€", 100)} {
		p, err := NewProgress(0.5, text)
		if n := len(p.Text); err != nil || n > plan.MaxProgressText || n < plan.MaxProgressText-2 || !utf8.ValidString(p.Text) || !strings.HasPrefix(text, p.Text) {
			t.Errorf("of %d bytes %d are kept, %v: %q", len(text), n, err, p.Text)
		}
	}
}

func TestParseProgress(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"0.4 copied 400 of 1000", "40% copied 400 of 1000"},
		{"  1\t", "100%"},
		{"0.25\tä  b", "25% ä  b"},
		{"40% done", ""},
		{"copied 400", ""},
		{"", ""},
		{"nan x", ""},
	} {
		fraction, text, err := ParseProgress(c.line)
		var p plan.Progress
		if err == nil {
			p, err = NewProgress(fraction, text)
		}
		if got := p.String(); err == nil && got != c.want || (err != nil) != (c.want == "") || err != nil && !errors.Is(err, plan.ErrProgress) {
			t.Errorf("%q: %q, %v; want %q", c.line, got, err, c.want)
		}
	}
}
