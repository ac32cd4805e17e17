package planfile

import (
	"bytes"
	"unicode/utf8"
)

// unreadable says why the bytes are no text, and where; an empty message means that they are.
func unreadable(text []byte) (at int, message string) {
	if bytes.HasPrefix(text, []byte{0xFF, 0xFE}) || bytes.HasPrefix(text, []byte{0xFE, 0xFF}) {
		return 0, "the file is UTF-16; save it as UTF-8"
	}
	for i := 0; i < len(text); {
		if c := text[i]; c < utf8.RuneSelf {
			if c < ' ' && c != '\n' && c != '\r' && c != '\t' || c == 0x7F {
				return i, "a control character: this is not a plan file, or needs it as an escape in double quotes"
			}
			i++
			continue
		}
		r, n := utf8.DecodeRune(text[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			return i, "the file is not UTF-8 text; save it as UTF-8"
		case r >= 0x80 && r < 0xA0 && r != 0x85 || r == 0xFFFE || r == 0xFFFF:
			return i, "a control character: this is not a plan file, or needs it as an escape in double quotes"
		}
		i += n
	}
	return 0, ""
}
