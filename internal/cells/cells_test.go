package cells

import "testing"

func TestWidth(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       int
	}{
		{"a letter takes one cell", "a", 1},
		{"nothing takes none", "", 0},
		{"an ideograph takes two cells", "漢字", 4},
		{"an emoji takes two cells", "🚀", 2},
		{"a combining mark takes none of its own", "e\u0301", 1},
		{"a joiner takes none", "a\u200db", 2},
		{"a control character takes none", "\x1b\a", 0},
		{"a full-width letter takes two", "Ａ", 2},
		{"a half-width katakana takes one", "ｱ", 1},
		{"a line drawing character takes one", "─", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Width(c.text); got != c.want {
				t.Errorf("Width(%q) = %d, want %d", c.text, got, c.want)
			}
		})
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		name, text string
		n          int
		want       string
	}{
		{"what fits stays as it is", "abc", 3, "abc"},
		{"what does not ends with the mark", "abcd", 3, "ab…"},
		{"a wide character is not cut in two", "漢字漢", 4, "漢…"},
		{"a mark stays with its letter", "e\u0301e\u0301e\u0301", 2, "e\u0301…"},
		{"no room is no text", "abc", 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Cut(c.text, c.n, "…")
			if got != c.want {
				t.Errorf("Cut(%q, %d) = %q, want %q", c.text, c.n, got, c.want)
			}
			if Width(got) > c.n {
				t.Errorf("Cut(%q, %d) takes %d cells", c.text, c.n, Width(got))
			}
		})
	}
}

func TestPad(t *testing.T) {
	if got, want := Pad("漢", 4)+"|"+PadLeft("漢", 4)+"|"+Pad("long", 2), "漢  |  漢|long"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestClean(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"what can be shown stays", "漢字 é", "漢字 é"},
		{"colours go", "\x1b[1;31mred\x1b[0m", "red"},
		{"the cursor is not moved", "a\x1b[2Jb\x1b[10A", "ab"},
		{"windows are not named", "\x1b]0;mine\ax", "x"},
		{"of what is written over the last is left", "10 %\r50 %\r100 %\r\n", "100 %"},
		{"a tab is four spaces", "a\tb", "a    b"},
		{"other control characters are replaced", "a\x07\u202eb", "a\ufffd\ufffdb"},
		{"a line stays one", "a\nb\n", "a b"},
		{"also as Unicode writes it", "a\u2028b\u2029c", "a\ufffdb\ufffdc"},
		{"what is not UTF-8 is replaced", "a\xffb", "a\ufffdb"},
		{"so is what is no character", "a\ufffeb", "a\ufffdb"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Clean(c.text); got != c.want {
				t.Errorf("Clean(%q) = %q, want %q", c.text, got, c.want)
			}
		})
	}
}

func TestTame(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"lines stay", "one\n\ttwo\r\n", "one\n\ttwo\r\n"},
		{"colours stay", "\x1b[1;31mred\x1b[m", "\x1b[1;31mred\x1b[m"},
		{"a cleared screen does not", "a\x1b[2J\x1b[Hb", "ab"},
		{"nor a title", "a\x1b]0;title\x07b", "ab"},
		{"nor a reset", "a\x1bcb", "a\ufffdcb"},
		{"nor what turns the direction", "a\u202eb\x08", "a\ufffdb\ufffd"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Tame(c.text); got != c.want {
				t.Errorf("Tame(%q) = %q, want %q", c.text, got, c.want)
			}
		})
	}
}
