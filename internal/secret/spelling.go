package secret

import (
	"bytes"
	"encoding/json"
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

// Spellings returns how the usual programs write a text where it cannot stand as it is, each form
// once. The forms are those of JSON, of shells and of URLs. There is none for a text of letters,
// digits, "-", "_" and ".", and there are never more than mostSpellings.
func Spellings(text string) []string {
	var forms []string
	for _, some := range [][]string{inJSON(text), inShell(text), inURL(text)} {
		for _, form := range some {
			if form != text && !slices.Contains(forms, form) {
				forms = append(forms, form)
			}
		}
	}
	return forms
}

// mostSpellings is the number of forms that inJSON, inShell and inURL return.
const mostSpellings = 26

// inJSON returns how the usual libraries write a text into JSON, without the quotes. One form has
// the fewest escapes, with or without escapes for /, <, > and & (PHP, Go). Others write characters
// beyond ASCII as \u00e4 (Python, PHP) or \u00E4 (Java). Only Go's forms serve a text that is not
// valid UTF-8.
func inJSON(text string) (forms []string) {
	for _, html := range []bool{false, true} { // Go writes U+2028 with an escape, and other bytes than UTF-8 as U+FFFD
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(html)
		if enc.Encode(text) == nil && b.Len() > 3 {
			forms = append(forms, b.String()[1:b.Len()-2])
		}
	}
	if !utf8.ValidString(text) {
		return forms
	}
	for _, ascii := range []string{"", "%04x", "%04X"} {
		for _, more := range []string{"", "/", "<>&"} {
			forms = append(forms, escapeJSON(text, ascii, more))
		}
	}
	return forms
}

// inShell returns how shells and other programs quote a text as a word, without the quotes around
// it. The forms are those of bash -x and zsh -x, of Python's shlex and dash, of printf %q, of
// declare -p, and of $'…'. Bash has $'…' for control characters, and for bytes beyond ASCII if its
// locale is C.
func inShell(text string) []string {
	word := backslashed(text, " \t'\"\\|&;()<>!{}*[]?^$`,")
	if strings.HasPrefix(text, "#") || strings.HasPrefix(text, "~") {
		word = `\` + word
	}
	return []string{
		strings.ReplaceAll(text, "'", `'\''`), strings.ReplaceAll(text, "'", `'"'"'`),
		word, backslashed(text, "\"\\$`"), ansiC(text, false), ansiC(text, true),
	}
}

// backslashed returns a text with a backslash before each of some characters.
func backslashed(text, some string) string {
	var b strings.Builder
	for i := range len(text) {
		if strings.IndexByte(some, text[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// ansiC writes a text as bash does between $' and '. If ascii is set, bytes beyond ASCII are numbers.
func ansiC(text string, ascii bool) string {
	const letters, meanings = `'\abEfnrtv`, "'\\\a\b\x1b\f\n\r\t\v"
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		switch at := strings.IndexByte(meanings, c); {
		case at >= 0:
			b.Write([]byte{'\\', letters[at]})
		case c < ' ', c == del, c >= utf8.RuneSelf && ascii:
			b.Write([]byte{'\\', '0' + c>>6, '0' + c>>3&7, '0' + c&7})
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// urlForms are the ways of libraries to write a text in percent-encoding. They differ in what they
// keep of the characters that are no letter and no digit, in the digits of a number, and in the
// blanks of a form.
var urlForms = []struct{ keep, digits, blank string }{
	{"-._~", "0123456789ABCDEF", "%20"},                 // RFC 3986: curl, jq, PHP
	{"-._~", "0123456789abcdef", "%20"},                 // .NET
	{"-._~", "0123456789ABCDEF", "+"},                   // forms: Go, Python
	{"-._~", "0123456789abcdef", "+"},                   // forms: .NET
	{"-._*", "0123456789ABCDEF", "+"},                   // forms: Java, browsers
	{"-._~/", "0123456789ABCDEF", "%20"},                // Python's quote
	{"-._~!*'()", "0123456789ABCDEF", "%20"},            // JavaScript's encodeURIComponent
	{"-._~$&+=:@", "0123456789ABCDEF", "%20"},           // Go's segments of a path
	{"-._~;/?:@&=+$,#!*'()", "0123456789ABCDEF", "%20"}, // JavaScript's encodeURI
}

// inURL returns a text in percent-encoding.
func inURL(text string) (forms []string) {
	for _, f := range urlForms {
		var b strings.Builder
		for i := range len(text) {
			switch c := text[i]; {
			case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte(f.keep, c) >= 0:
				b.WriteByte(c)
			case c == ' ':
				b.WriteString(f.blank)
			default:
				b.Write([]byte{'%', f.digits[c>>4], f.digits[c&15]})
			}
		}
		forms = append(forms, b.String())
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
