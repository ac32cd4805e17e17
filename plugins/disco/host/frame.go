package host

import (
	"bytes"
	"strconv"
)

const (
	// MaxMessage is the most bytes of the body of a message.
	MaxMessage = 100 << 20

	// longestWord is the most bytes of a name, and of a length as text.
	longestWord = 10

	// longestHead is the most bytes before a body.
	longestHead = 2 * (longestWord + 1)
)

// A fault is what is wrong with a frame. Its text is the word of the 2016 master.
type fault string

const (
	invalidType   fault = "invalid_type"
	invalidLength fault = "invalid_length"
	tooBig        fault = "message_too_big"
	invalidBody   fault = "invalid_body"
)

// A frame is a message as it lies in a buffer.
type frame struct {
	name, body []byte
	size       int // of the whole message in bytes, if its head is complete, else 0
}

// parse reads the message at the beginning of b. ok is false while b has only a part of it. The
// length is judged as soon as it is there, and the newline as soon as the body is.
func parse(b []byte) (f frame, ok bool, wrong fault) {
	name, ok, fits := word(b)
	if !fits {
		return f, false, invalidType
	}
	if !ok {
		return f, false, ""
	}
	text, ok, fits := word(b[len(name)+1:])
	if !fits {
		return f, false, invalidLength
	}
	if !ok {
		return f, false, ""
	}
	length, err := strconv.ParseInt(string(text), 10, 64) // at most ten digits: it is not out of range
	switch {
	case err != nil, length < 0:
		return f, false, invalidLength
	case length > MaxMessage:
		return f, false, tooBig
	}
	head := len(name) + len(text) + 2
	f.size = head + int(length) + 1
	if len(b) < f.size {
		return f, false, ""
	}
	if b[f.size-1] != '\n' {
		return f, false, invalidBody
	}
	f.name, f.body = name, b[head:f.size-1]
	return f, true, ""
}

// word returns the bytes before the first space. A space at the very beginning belongs to the word.
// A word has 1 to 10 bytes: fits is false if it has more. ok is false while its space is missing.
func word(b []byte) (w []byte, ok, fits bool) {
	if len(b) == 0 {
		return nil, false, true
	}
	if i := bytes.IndexByte(b[1:min(len(b), longestWord+1)], ' '); i >= 0 {
		return b[:i+1], true, true
	}
	return nil, false, len(b) <= longestWord
}
