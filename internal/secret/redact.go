package secret

import (
	"bytes"
	"iter"
	"slices"
	"strings"
)

// shortestPart is how long a line of a secret of several lines must be to count as a secret. It is
// also how long the beginning of a secret at the end of a stream must be.
const shortestPart = 4

// Values are the values that must not be seen. They do not change, so any number of goroutines may use them.
type Values struct {
	values  []value
	longest int // bytes of the longest of them
}

// A value is one text to hide.
type value struct {
	text []byte

	// mark is the byte in which a spelling first differs from the secret itself; 0 for the secret.
	// Without that byte a text has no such spelling, and the beginning of one only where the secret
	// itself may begin. So most texts cost no search for spellings.
	mark byte
}

// NewValues returns nil if there is nothing to hide.
func NewValues(values []string) *Values {
	s := &Values{}
	for part := range parts(values, shortestPart) {
		s.add(part)
	}
	if s.values == nil {
		return nil
	}
	return s
}

// add adds a secret with its spellings.
func (s *Values) add(secret string) {
	s.put(secret, 0)
	for _, form := range Spellings(secret) {
		same := 0
		for same < min(len(form), len(secret)) && form[same] == secret[same] {
			same++
		}
		mark := byte(0)
		if same < len(form) {
			mark = form[same]
		}
		s.put(form, mark)
	}
}

func (s *Values) put(text string, mark byte) {
	for i := range s.values {
		if v := &s.values[i]; string(v.text) == text {
			if v.mark != mark {
				v.mark = 0 // the text stands for two secrets
			}
			return
		}
	}
	s.values = append(s.values, value{[]byte(text), mark})
	s.longest = max(s.longest, len(text))
}

// marks are the bytes of a text that are marks of values.
type marks [256]bool

// marksIn returns the marks that a text has. That of a secret itself is in every text.
func (s *Values) marksIn(text []byte) (in marks) {
	var searched marks
	in[0], searched[0] = true, true
	for i := range s.values {
		if m := s.values[i].mark; !searched[m] {
			searched[m], in[m] = true, bytes.IndexByte(text, m) >= 0
		}
	}
	return in
}

// parts returns what counts as a secret: the values, and of one of several lines also each line of so many bytes or more. Blank space
// around them does not count.
func parts(values []string, shortest int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, v := range values {
			v = strings.TrimSpace(v) // a secret from a file ends in a newline that belongs to the file
			if v != "" && !yield(v) {
				return
			}
			if !strings.Contains(v, "\n") {
				continue
			}
			for line := range strings.Lines(v) { // programs print keys and the like line by line, indented or with \r\n
				if line = strings.TrimSpace(line); len(line) >= shortest && !yield(line) {
					return
				}
			}
		}
	}
}

// span is a part of a text: from the byte from on, up to the byte to.
type span struct{ from, to int }

// find returns the places of secrets in text, in order, and joins those that overlap. Invisible
// sequences between the bytes of a secret, as a colour, are part of it. If seen is true, text has
// no invisible sequences, and find is faster.
func (s *Values) find(text []byte, seen bool) []span {
	var found []span
	for at, v := range s.all(text, seen) {
		if length, alike, _ := match(text[at:], v); alike == len(v) {
			found = append(found, span{at, at + length})
		}
	}
	return joined(found)
}

// joined returns the spans in order, and makes one of spans that overlap.
func joined(found []span) []span {
	slices.SortFunc(found, func(a, b span) int { return a.from - b.from })
	out := found[:0]
	for _, f := range found {
		if last := len(out) - 1; last >= 0 && f.from < out[last].to {
			out[last].to = max(out[last].to, f.to)
		} else {
			out = append(out, f)
		}
	}
	return out
}

// in reports whether any of them is in text.
func (s *Values) in(text []byte) bool {
	for at, v := range s.all(text, !anyUnseen(text)) {
		if _, alike, _ := match(text[at:], v); alike == len(v) {
			return true
		}
	}
	return false
}

// all returns where secrets may be in text, and which; where all of it is seen, only where they are.
func (s *Values) all(text []byte, seen bool) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		in := s.marksIn(text)
		for i := range s.values {
			if !in[s.values[i].mark] {
				continue
			}
			v := s.values[i].text
			first := v[:1]
			if seen {
				first = v
			}
			for from := 0; ; from++ { // a secret may overlap itself
				i := bytes.Index(text[from:], first)
				if i < 0 {
					break
				}
				from += i
				if !yield(from, v) {
					return
				}
			}
		}
	}
}

// begins returns where a secret may begin at the end of text, the rest of which has not come yet,
// and its part in text. It returns len(text) if there is none.
func (s *Values) begins(text []byte, seen bool) (begin int, part []byte) {
	begin = len(text)
	in := s.marksIn(text)
	for i := range s.values {
		if !in[s.values[i].mark] {
			continue
		}
		v, at := s.values[i].text, 0
		if seen {
			at = max(0, len(text)-len(v)+1)
		}
		for ; at < begin; at++ {
			i := bytes.IndexByte(text[at:begin], v[0])
			if i < 0 {
				break
			}
			at += i
			if _, alike, more := match(text[at:], v); more {
				begin, part = at, v[:alike]
			}
		}
	}
	return begin, part
}

// WithoutBegun returns a text that was cut at its end without the beginning of a secret there.
func WithoutBegun(text []byte, values []string) []byte {
	s := NewValues(values)
	if s == nil {
		return text
	}
	if begin, part := s.begins(text, !anyUnseen(text)); len(part) >= shortestPart {
		return text[:begin]
	}
	return text
}

// A Masker replaces secrets in one stream, at whatever bytes it is cut. One goroutine uses it.
type Masker struct {
	secrets *Values // nil: nothing to hide
	held    []byte  // the end of what was read: a secret may begin in it
	covered int     // so many bytes of held belong to a secret whose mask is out already
	out     []byte
}

// NewMasker returns a masker of a stream; values is nil if there is nothing to hide.
func NewMasker(values *Values) Masker { return Masker{secrets: values} }

// mostUnseen is how many bytes of invisible sequences the masker holds back, because they may be
// inside a secret. An image in an escape sequence can be larger. It is then lost if it follows text
// that may begin a secret.
const mostUnseen = 64 << 10

// Next takes a piece and returns what can be shown by now. It holds back a text that may be the
// beginning of a secret. A text that ends in a newline is held back only for a secret of several
// lines. The result is valid until the next call.
func (m *Masker) Next(data []byte) []byte {
	if m.secrets == nil {
		return data
	}
	m.held = append(m.held, data...)
	seen := !anyUnseen(m.held)
	begin, part := m.secrets.begins(m.held, seen)
	out := m.show(begin, seen)
	if len(m.held) > m.secrets.longest+mostUnseen {
		m.shorten(part)
	}
	return out
}

// shorten drops what displays drop of what is held, which else is part of a secret.
func (m *Masker) shorten(part []byte) {
	covered, at := 0, 0
	for alike := 0; alike < len(part); {
		if m.held[at] != part[alike] {
			n, _ := Sequence(m.held[at:])
			at += n
			continue
		}
		if at < m.covered {
			covered++
		}
		alike++
		at++
	}
	for at < len(m.held) {
		n, open := Sequence(m.held[at:])
		if open {
			break
		}
		at += n
	}
	m.held = append(append(m.held[:0], part...), unended(m.held[at:])...)
	m.covered = covered
}

// Rest returns the held bytes at the end of the stream. A beginning of a secret there counts as the
// secret, because the command may have been killed while it printed the secret. Up to three bytes
// do not count: too many other texts end in these.
func (m *Masker) Rest() []byte {
	if m.secrets == nil {
		return nil
	}
	seen := !anyUnseen(m.held)
	at, part := m.secrets.begins(m.held, seen)
	if len(part) < shortestPart {
		return m.show(len(m.held), seen)
	}
	out := m.show(at, seen)
	if m.covered == 0 { // else the mask of an overlapping secret replaces it
		out = append(out, Hidden...)
	}
	return m.colours(out, m.held[m.covered:])
}

// show returns the held text up to the byte until, masked, and keeps the rest.
func (m *Masker) show(until int, seen bool) []byte {
	m.out = m.out[:0]
	done := min(m.covered, until)
	covered := m.covered
	for _, f := range m.secrets.find(m.held, seen) {
		if f.from >= until {
			break
		}
		if f.from >= covered { // else the mask of the overlapping secret replaces it too
			m.out = append(m.out, m.held[done:f.from]...)
			m.out = append(m.out, Hidden...)
		}
		m.out = m.colours(m.out, m.held[min(max(covered, f.from), f.to):f.to])
		covered = max(covered, f.to)
		done = min(covered, until)
	}
	m.out = append(m.out, m.held[done:until]...)
	m.covered = max(0, covered-until)
	m.held = append(m.held[:0], m.held[until:]...)
	return m.out
}

// colours appends the colours that begin or end within a secret, unless they hold one themselves.
func (m *Masker) colours(to, text []byte) []byte {
	kept := coloursOf(nil, text)
	if kept == nil || m.secrets.in(kept) {
		return to
	}
	return append(to, kept...)
}
