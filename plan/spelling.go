package plan

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// The letters that JSON has after a backslash, and what each stands for.
const (
	escapeLetters  = `"\/bfnrt`
	escapeMeanings = "\"\\/\b\f\n\r\t"
)

// InJSON returns how the usual libraries write a text into JSON, without the quotes and as far as that differs from the text: with no more
// escapes than there have to be, with /, <, > and & as they are or not (PHP, Go), and with what is not ASCII as \u00e4 (Python, PHP) or \u00E4
// (Java). Of what is not valid UTF-8 it returns none.
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

// escapeJSON writes a text as JSON does between quotes: also the letters of more with escapes, and, if ascii is how to write a number, what is
// not ASCII.
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
