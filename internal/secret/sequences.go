package secret

import "bytes"

// The bytes that a terminal takes for a command and not for text. Escape sequences are those of
// ECMA-48. As in xterm, its strings (OSC and others) also end with BEL.
const (
	bel, cancel, substitute, esc, del = 0x07, 0x18, 0x1a, 0x1b, 0x7f

	// c1 is the first byte of the control characters from U+0080 to U+009F in UTF-8; the second is their number.
	c1         = 0xc2
	terminator = 0x9c // in c1: ends a string
)

// unseen are the bytes with which something may begin that displays drop.
var unseen = func() (set [256]bool) {
	for b := range byte(' ') {
		set[b] = b != '\n' && b != '\t' // which are seen
	}
	set[del], set[c1] = true, true
	return set
}()

// anyUnseen reports whether there is anything in text that displays may drop. Nearly no text has it.
func anyUnseen(text []byte) bool {
	for _, b := range text {
		if unseen[b] {
			return true
		}
	}
	return false
}

// Sequence returns the length of the escape sequence or the control character at the beginning of
// text, or 0. open is true if the end of the sequence is not in text. An invalid sequence ends
// where a newline comes, or a byte that cannot be part of it.
func Sequence(text []byte) (length int, open bool) {
	if len(text) == 0 || !unseen[text[0]] {
		return 0, false
	}
	introducer, at := text[0], 1
	switch introducer {
	default:
		return 1, false
	case c1:
		if len(text) == 1 {
			return 1, true
		}
		if text[1] < 0x80 || text[1] > 0x9f {
			return 0, false
		}
		introducer, at = text[1]-0x40, 2 // the letter that means the same after an escape
	case esc:
		charset := false // as in ESC ( B: its last byte begins nothing
		for ; at < len(text) && (text[at] >= ' ' && text[at] < '0' || inside(text[at])); at++ {
			charset = charset || text[at] >= ' ' && text[at] < '0'
		}
		if at == len(text) {
			return at, true
		}
		if introducer = text[at]; introducer < '0' || introducer > '~' {
			return at + aborts(introducer), false
		}
		if at++; charset {
			return at, false
		}
	}
	switch introducer {
	case '[':
		for ; at < len(text); at++ {
			switch b := text[at]; {
			case b >= '@' && b <= '~':
				return at + 1, false
			case b >= ' ' && b < '@' || inside(b):
			default:
				return at + aborts(b), false
			}
		}
		return at, true
	case ']', 'P', 'X', '^', '_':
		for ; at < len(text); at++ {
			switch b := text[at]; {
			case b == bel && introducer == ']', b == cancel, b == substitute:
				return at + 1, false
			case b == '\n', b == esc: // which may be that of the terminator ESC \
				return at, false
			case b == c1 && at+1 == len(text):
				return at + 1, true // it may be the terminator
			case b == c1 && text[at+1] == terminator:
				return at + 2, false
			}
		}
		return at, true
	}
	return at, false
}

// inside reports whether b is a control character that a terminal obeys within a sequence, which
// then continues.
func inside(b byte) bool {
	return b < ' ' && b != '\n' && b != cancel && b != substitute && b != esc || b == del
}

// aborts returns how much of the sequence that it aborts a byte is.
func aborts(b byte) int {
	if b == cancel || b == substitute {
		return 1
	}
	return 0
}

// match follows value through text, which begins with the first byte of it, past what displays drop. It returns how many bytes of text
// and of value that is; more is true if text ends before the value does.
func match(text, value []byte) (length, alike int, more bool) {
	for alike < len(value) {
		if length == len(text) {
			return length, alike, true
		}
		if text[length] == value[alike] {
			length++
			alike++
			continue
		}
		n, open := Sequence(text[length:])
		if n == 0 || open {
			return length, alike, open
		}
		length += n
	}
	return length, alike, false
}

// unended returns so much of a sequence that has not ended that what follows is read as the rest of it.
func unended(text []byte) []byte {
	if len(text) == 0 {
		return nil
	}
	at := 1
	for text[0] == esc && at < len(text) && inside(text[at]) {
		at++
	}
	return append([]byte{text[0]}, text[at:min(at+1, len(text))]...)
}

// coloursOf appends the sequences of text that change how what follows looks, without which what stands after it would look otherwise.
func coloursOf(to, text []byte) []byte {
	for {
		at := bytes.IndexByte(text, esc)
		if at < 0 {
			return to
		}
		text = text[at:]
		n, open := Sequence(text)
		if !open && n > 2 && text[1] == '[' && text[n-1] == 'm' && len(bytes.Trim(text[2:n-1], "0123456789;:")) == 0 {
			to = append(to, text[:n]...)
		}
		text = text[n:]
	}
}
