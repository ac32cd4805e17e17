package textfile

import (
	"strings"
	"testing"
)

func TestLongValuesOfAMessageAreCut(t *testing.T) {
	x, spaced := strings.Repeat("x", 500_000), strings.Repeat("x y ", 100_000)
	for _, c := range []struct{ name, message, want string }{
		{"a short message", `timeout is "x y"; write 30s`, `timeout is "x y"; write 30s`},
		{"a long message of short values", strings.Repeat(`"a b" or c, `, 100), strings.Repeat(`"a b" or c, `, 100)},
		{"a quoted value", `timeout is "` + spaced + `"; write 30s`, `timeout is "` + spaced[:200] + `…"; write 30s`},
		{"a word", "attempts is " + x + "; it is a number", "attempts is " + x[:200] + "… it is a number"},
		{"a word within an expression", "${{ " + x + " }} is not known", "${{ " + x[:200] + "… }} is not known"},
		{"two values", `task "` + x + `" needs "` + spaced + `" twice`, `task "` + x[:200] + `…" needs "` + spaced[:200] + `…" twice`},
		{"a value with quotes in it", `when is "` + x[:300] + `\" ` + spaced + `"; drop it`, `when is "` + x[:200] + `…"; drop it`},
		{"no half of an escape", `when is "` + x[:199] + `\"` + x + `"`, `when is "` + x[:199] + `…"`},
		{"no half of a character", `when is "` + x[:199] + `é` + x + `"`, `when is "` + x[:199] + `…"`},
		{"a value of 200 bytes", `when is "` + x[:200] + `"`, `when is "` + x[:200] + `"`},
	} {
		if got := Brief(c.message); got != c.want {
			t.Errorf("%s: got %.400q, want %.400q", c.name, got, c.want)
		}
		if got := (&Source{Text: []byte("x")}).Error(0, c.message).Message; got != c.want {
			t.Errorf("%s: an error says %.400q, want %.400q", c.name, got, c.want)
		}
	}
}
