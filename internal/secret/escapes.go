package secret

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Holds reports whether a text shows one of the secrets. It finds a secret as it is, in its
// Spellings, in any other spelling of JSON, and as JSON within a text of JSON. Colours and other invisible sequences inside
// the secret do not hide it. A secret counts from four bytes on. So does each line of eight bytes
// or more of a secret of several lines.
func Holds(text []byte, secretValues []string) bool {
	const deepest = 4 // JSON in JSON in JSON, and as it is
	s := &Values{}
	for part := range parts(secretValues, shortestLine) {
		if len(part) >= shortestPart {
			s.add(part)
		}
	}
	if len(s.values) == 0 {
		return false
	}
	for range deepest {
		if s.in(text) {
			return true
		}
		plain := unescape(text)
		if len(plain) == len(text) {
			return false
		}
		text = plain
	}
	return false
}

// unescape replaces JSON's backslash escapes anywhere in the text. A backslash that begins no such
// escape stays.
func unescape(text []byte) []byte {
	at := bytes.IndexByte(text, '\\')
	if at < 0 {
		return text
	}
	out := append(make([]byte, 0, len(text)), text[:at]...)
	for at < len(text) {
		if text[at] != '\\' || at+1 == len(text) {
			out = append(out, text[at])
			at++
			continue
		}
		if i := strings.IndexByte(escapeLetters, text[at+1]); i >= 0 {
			out = append(out, escapeMeanings[i])
			at += 2
			continue
		}
		r, n := numbered(text[at:])
		if low, m := numbered(text[at+n:]); utf16.IsSurrogate(r) && m > 0 {
			if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
				r, n = both, n+m
			}
		}
		if n == 0 {
			r, n = '\\', 1
		}
		out = utf8.AppendRune(out, r)
		at += n
	}
	return out
}

// numbered reads an escape as in \u00e4 at the beginning of a text, and returns its length, 0 if there is none.
func numbered(text []byte) (r rune, n int) {
	const length = len(`\u0000`)
	if len(text) < length || text[0] != '\\' || text[1] != 'u' {
		return 0, 0
	}
	v, err := strconv.ParseUint(string(text[2:length]), 16, 16)
	if err != nil {
		return 0, 0
	}
	return rune(v), length
}
