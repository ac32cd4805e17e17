package textfile

import (
	"bufio"
	"bytes"
	"io"
)

// Mark is the byte order mark of UTF-8, which some editors and programs put before a text. It is no
// part of the text.
const Mark = "\uFEFF"

// WithoutMark returns a text without the mark at its beginning. Each reader of a text that others
// wrote calls it, or Reader.
func WithoutMark(text []byte) []byte { return bytes.TrimPrefix(text, []byte(Mark)) }

// Reader returns a reader of the text without the mark at its beginning.
func Reader(r io.Reader) io.Reader {
	b := bufio.NewReader(r)
	if begin, err := b.Peek(len(Mark)); err == nil && string(begin) == Mark {
		_, _ = b.Discard(len(Mark)) // it is in the buffer
	}
	return b
}
