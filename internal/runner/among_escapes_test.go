package runner

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/seed-1177d267/sluice/internal/cells"
)

// Invisible sequences may be anywhere between the bytes of a secret. Neither the kept nor the shown
// text then holds the secret, and the text around it stays.
func FuzzASecretAmongEscapes(f *testing.F) {
	f.Add("tok-secret-9876", []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}, 7)
	f.Add("pässwörd", []byte{15, 16, 17, 18, 19, 20, 2, 2, 2, 0x13}, 3)
	f.Add("m1m1", []byte{2, 6, 2}, 1)
	between := []string{
		"", "\x1b[m", "\x1b[01;31m\x1b[K", "\x1b[38;5;196m", "\x1b[38:2::1:2:3m", "\x1b[?25l", "\x1b[2J\x1b[1;1H", "\x1b]0;title\x07", "\x1b]8;;http://a/\x1b\\", "\x1b]0;open\x1b[m",
		"\x1b(B\x1b[m", "\x1bP1$r0m\x1b\\", "\x1b_apc\x1b\\", "\x1b7\x1b8\x1bc", "\x07", "\x08", "\x00", "\x7f", "\u009b31m", "\u009d0;t\u009c", "\u0085", "\x0e\x0f", "\x1b\x1b[m",
		"\x1b[3\x071m", "\x1b[\x18", "\r", "\x1b]1337;File=" + strings.Repeat("AAAA", 1000) + "\x07",
	}
	strip := func(s string) string { // as the simplest display: without control characters
		return strings.Map(func(r rune) rune {
			if unicode.IsControl(r) {
				return -1
			}
			return r
		}, s)
	}
	f.Fuzz(func(t *testing.T, secret string, put []byte, size int) {
		secret = strings.TrimSpace(secret)
		if len(secret) < 4 || strip(secret) != secret || !utf8.ValidString(secret) || strings.ContainsAny(secret, "* ") || size < 1 {
			return
		}
		var text strings.Builder
		for i, r := range []rune(secret) {
			text.WriteRune(r)
			if i < len(put) && i < utf8.RuneCountInString(secret)-1 {
				text.WriteString(between[int(put[i])%len(between)])
			}
		}
		out := NewOutput(8<<20, secret)
		l := newLines(out, Stdout)
		for piece := range slices.Chunk([]byte("< "+text.String()+" >\n"), size) {
			l.write(piece, instant(0))
		}
		l.close(instant(0))
		got := strings.Join(texts(out.Drain()), "")
		for how, shown := range map[string]string{
			"kept": got, "cleaned": cells.Clean(got), "tamed": cells.Tame(got), "tamed, without colours": cells.Clean(cells.Tame(got)), "stripped": strip(got),
		} {
			if strings.Contains(shown, secret) {
				t.Errorf("%s: %q, of %q", how, shown, text.String())
			}
		}
		if want := "< *** >"; cells.Clean(got) != want {
			t.Errorf("shown: %q, want %q, of %q", cells.Clean(got), want, text.String())
		}
	})
}
