package planfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf16"
)

// fromJSON returns a text that YAML's reader takes as JSON's would. JSON writes a character beyond 16 bits as a pair of escapes,
// which YAML forbids; in YAML it has an escape of its own. JSON may escape a slash, and YAML's reader does not know that.
func fromJSON(text []byte) []byte {
	if trimmed := bytes.TrimSpace(text); len(trimmed) == 0 || trimmed[0] != '{' {
		return text
	}
	if bytes.IndexByte(text, '\\') < 0 || !json.Valid(text) {
		return text
	}
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		if text[i] != '\\' {
			out = append(out, text[i])
			i++
			continue
		}
		first, ok := surrogate(text[i:])
		if !ok {
			if text[i+1] != '/' { // valid JSON: something follows a backslash
				out = append(out, '\\')
			}
			out = append(out, text[i+1])
			i += 2
			continue
		}
		i += escapeLen
		r := rune(0xFFFD) // half a pair is no character
		if second, ok := surrogate(text[i:]); ok {
			if pair := utf16.DecodeRune(first, second); pair != 0xFFFD {
				r = pair
				i += escapeLen
			}
		}
		out = fmt.Appendf(out, `\U%08x`, r)
	}
	return out
}

const escapeLen = len(`\ud83d`)

// surrogate reads an escape that is half a character.
func surrogate(text []byte) (rune, bool) {
	if len(text) < escapeLen || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	v, err := strconv.ParseUint(string(text[2:escapeLen]), 16, 32)
	return rune(v), err == nil && utf16.IsSurrogate(rune(v))
}
