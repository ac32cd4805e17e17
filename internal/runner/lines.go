package runner

import (
	"bytes"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seed-1177d267/sluice/internal/secret"
)

// longestLine is how many bytes of a line go into one entry, unless the limit of the Output is small. Made storable they can be
// four times as many, which has to fit into half of the limit.
const longestLine = 16 << 10

// lines turns the bytes of one stream into entries of an Output. One goroutine uses it.
type lines struct {
	out    *Output
	stream Stream
	mask   secret.Masker
	most   int       // bytes of text in one entry, before they are made valid
	part   []byte    // a line whose end was not read yet
	partAt time.Time // when its first byte was read
	batch  []Entry   // used again and again
}

func newLines(out *Output, stream Stream) *lines {
	return &lines{out: out, stream: stream, mask: secret.NewMasker(out.secrets), most: min(longestLine, out.half/8)}
}

// write takes what was read at an instant; it does not keep data.
func (l *lines) write(data []byte, at time.Time) { l.split(l.mask.Next(data), at) }

// close takes the rest when the stream has ended.
func (l *lines) close(at time.Time) {
	l.split(l.mask.Rest(), at)
	if len(l.part) > 0 {
		l.out.add([]Entry{l.entry(string(l.part), l.partAt)})
		l.part = nil
	}
}

func (l *lines) split(data []byte, at time.Time) {
	if len(l.part) == 0 {
		l.partAt = at
	}
	// All whole lines share one string. It costs one allocation for each read instead of one for
	// each line.
	if end := bytes.LastIndexByte(data, '\n') + 1; end > 0 {
		var text string
		if len(l.part) == 0 {
			text = string(data[:end])
		} else {
			text = string(append(l.part, data[:end]...))
		}
		l.part, data = l.part[:0], data[end:]
		l.batch = l.batch[:0]
		for text != "" {
			line := text[:strings.IndexByte(text, '\n')+1]
			text = text[len(line):]
			for len(line) > l.most {
				n := cut(line, l.most)
				l.batch = append(l.batch, l.entry(line[:n], l.partAt))
				line = line[n:]
			}
			l.batch = append(l.batch, l.entry(line, l.partAt))
			l.partAt = at
		}
		l.out.add(l.batch)
		clear(l.batch)
	}
	l.part = append(l.part, data...)
	for len(l.part) > l.most {
		n := cut(l.part, l.most)
		l.out.add([]Entry{l.entry(string(l.part[:n]), l.partAt)})
		l.part = append(l.part[:0], l.part[n:]...)
		l.partAt = at
	}
}

// cut returns where to cut a longer text into a piece of at most n bytes: not within a character, if it is one.
func cut[T string | []byte](text T, n int) int {
	for back := range utf8.UTFMax {
		if utf8.RuneStart(text[n-back]) {
			return n - back
		}
	}
	return n
}

func (l *lines) entry(text string, at time.Time) Entry {
	return Entry{At: at, Stream: l.stream, Text: storable(text)}
}

// storable returns text with each byte that is not part of valid UTF-8, and each NUL, written as \xNN.
func storable(text string) string {
	if utf8.ValidString(text) && strings.IndexByte(text, 0) < 0 {
		return text
	}
	const digits = "0123456789abcdef"
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		if r == utf8.RuneError && n == 1 || r == 0 {
			b.WriteString(`\x`)
			b.WriteByte(digits[text[0]>>4])
			b.WriteByte(digits[text[0]&15])
		} else {
			b.WriteString(text[:n])
		}
		text = text[n:]
	}
	return b.String()
}
