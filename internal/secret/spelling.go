package secret

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// The letters that JSON has after a backslash, with the character of each.
const (
	escapeLetters  = `"\/bfnrt`
	escapeMeanings = "\"\\/\b\f\n\r\t"
)

// InJSON returns how the usual libraries write a text into JSON, without the quotes, if that
// differs from the text. One form has the fewest escapes, with or without escapes for /, <, > and &
// (PHP, Go). Others write characters beyond ASCII as \u00e4 (Python, PHP) or \u00E4 (Java). InJSON
// returns none for a text that is not valid UTF-8.
func InJSON(text string) []string {
	if !utf8.ValidString(text) {
		return nil
	}
	var forms []string
	for _, ascii := range []string{"", "%04x", "%04X"} {
		for _, more := range []string{"", "/", "<>&"} {
			if form := escapeJSON(text, ascii, more); form != text && !slices.Contains(forms, form) {
				forms = append(forms, form)
			}
		}
	}
	return forms
}

// escapeJSON writes a text as JSON does between quotes. It also escapes the letters of more. If
// ascii is set, it is the format of characters beyond ASCII.
func escapeJSON(text, ascii, more string) string {
	number := ascii
	if number == "" {
		number = "%04x"
	}
	var b strings.Builder
	for _, r := range text {
		i := strings.IndexRune(escapeMeanings, r)
		switch {
		case i >= 0 && (r != '/' || more == "/"):
			b.WriteByte('\\')
			b.WriteByte(escapeLetters[i])
		case r < ' ', r > '~' && ascii != "", r != '/' && strings.ContainsRune(more, r):
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u`+number, unit)
			}
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
