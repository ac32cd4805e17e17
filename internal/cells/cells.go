// Package cells measures text in the cells of a terminal, and cuts and pads it to a number of
// cells. So wide characters, combining marks and control characters do not move the text next to
// them.
package cells

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// Width returns how many cells the text takes. Escape sequences are not known to it: measure first, colour after.
func Width(s string) int {
	n := 0
	for _, r := range s {
		n += of(r)
	}
	return n
}

// of returns the cells of one character: two for the wide ones of Unicode's annex 11, none for marks that combine and for control
// characters.
func of(r rune) int {
	switch {
	case r < 0x20 || r == 0x7f:
		return 0
	case r < 0x7f:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Cc):
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Cut returns the text, if it takes more than n cells with its end replaced by mark, so that it takes at most n.
func Cut(s string, n int, mark string) string {
	if Width(s) <= n {
		return s
	}
	room := n - Width(mark)
	if room < 0 {
		return ""
	}
	for i, r := range s {
		if room -= of(r); room < 0 {
			return s[:i] + mark
		}
	}
	return s + mark
}

// Pad returns the text with spaces after it, to at least n cells.
func Pad(s string, n int) string {
	return s + strings.Repeat(" ", max(0, n-Width(s)))
}

// PadLeft returns the text with spaces before it, to at least n cells.
func PadLeft(s string, n int) string {
	return strings.Repeat(" ", max(0, n-Width(s))) + s
}

// escapes are the sequences by which programs colour what they print, move the cursor and name the window.
var escapes = regexp.MustCompile("\x1b\\[[0-9;:?]*[ -/]*[@-~]|\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?")

// Clean returns a line of text that is safe to show: it cannot move the cursor or change the
// terminal, and it is valid UTF-8 that XML can hold. Clean removes escape sequences. It keeps only
// the last text where carriage returns overwrite text. A tab becomes four spaces and a newline one.
// The replacement character takes the place of any other control character, invalid UTF-8, and a
// noncharacter. So it does for separators of lines and paragraphs, and for characters that change
// the direction of writing.
func Clean(s string) string {
	if strings.IndexFunc(s, odd) < 0 {
		return s
	}
	s = strings.TrimRight(escapes.ReplaceAllString(s, ""), "\r\n")
	s = strings.ReplaceAll(s[strings.LastIndexByte(s, '\r')+1:], "\t", "    ")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return ' '
		case odd(r):
			return utf8.RuneError
		}
		return r
	}, s)
}

// Tame returns text, of any number of lines, that is safe for a terminal. Colours, tabs and
// carriage returns stay. Any other escape sequence is removed. Other characters that Clean replaces
// become the replacement character.
func Tame(s string) string {
	var b strings.Builder
	plain := func(s string) {
		b.WriteString(strings.Map(func(r rune) rune {
			if odd(r) && r != '\n' && r != '\r' && r != '\t' {
				return utf8.RuneError
			}
			return r
		}, s))
	}
	from := 0
	for _, at := range escapes.FindAllStringIndex(s, -1) {
		plain(s[from:at[0]])
		if sequence := s[at[0]:at[1]]; colours.MatchString(sequence) {
			b.WriteString(sequence)
		}
		from = at[1]
	}
	plain(s[from:])
	return b.String()
}

// colours are those escapes that change how what follows looks, and nothing else.
var colours = regexp.MustCompile("^\x1b\\[[0-9;:]*m$")

func odd(r rune) bool {
	return r == utf8.RuneError || unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Noncharacter_Code_Point, unicode.Zl, unicode.Zp)
}
