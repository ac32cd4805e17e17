package runner

import (
	"bytes"
	"iter"
	"slices"
	"strings"
)

// mask stands for a secret.
const mask = "***"

// shortestPart is how long a line of a secret of several lines has to be to count as a secret by itself, and how long the beginning
// of a secret at the end of a stream.
const shortestPart = 4

// secrets are the values that must not be seen. They do not change, so any number of goroutines may use them.
type secrets struct {
	values [][]byte
}

// newSecrets returns nil if there is nothing to hide.
func newSecrets(values []string) *secrets {
	s := &secrets{}
	for part := range parts(values, shortestPart) {
		for _, v := range append(inJSON(part), part) {
			if !slices.ContainsFunc(s.values, func(have []byte) bool { return string(have) == v }) {
				s.values = append(s.values, []byte(v))
			}
		}
	}
	if s.values == nil {
		return nil
	}
	return s
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

// find returns where secrets are in text, in order, those that overlap as one.
func (s *secrets) find(text []byte) []span {
	var found []span
	for _, v := range s.values {
		for from := 0; ; {
			i := bytes.Index(text[from:], v)
			if i < 0 {
				break
			}
			found = append(found, span{from + i, from + i + len(v)})
			from += i + 1 // a secret may overlap itself
		}
	}
	slices.SortFunc(found, func(a, b span) int { return a.from - b.from })
	joined := found[:0]
	for _, f := range found {
		if last := len(joined) - 1; last >= 0 && f.from < joined[last].to {
			joined[last].to = max(joined[last].to, f.to)
		} else {
			joined = append(joined, f)
		}
	}
	return joined
}

// begins returns where at the end of text a secret may begin whose rest is not there yet; len(text) if none does.
func (s *secrets) begins(text []byte) int {
	begin := len(text)
	for _, v := range s.values {
		for at := max(0, len(text)-len(v)+1); at < begin; at++ {
			i := bytes.IndexByte(text[at:begin], v[0])
			if i < 0 {
				break
			}
			if at += i; bytes.HasPrefix(v, text[at:]) {
				begin = at
			}
		}
	}
	return begin
}

// A masker replaces secrets in one stream, however it is cut into pieces. One goroutine uses it.
type masker struct {
	secrets *secrets // nil: nothing to hide
	held    []byte   // the end of what was read: a secret may begin in it
	covered int      // so many bytes of held belong to a secret whose mask is out already
	out     []byte
}

// next takes a piece and returns what can be shown by now. It holds back what may be the beginning of a secret; nothing that ends
// in a newline is, unless it is of a secret of several lines. The result is valid until the next call.
func (m *masker) next(data []byte) []byte {
	if m.secrets == nil {
		return data
	}
	m.held = append(m.held, data...)
	return m.show(m.secrets.begins(m.held))
}

// rest returns what was held back, at the end of the stream. A beginning of a secret there counts as the secret, except its first
// three bytes, which too much else ends in: a command may have been killed while it printed the secret.
func (m *masker) rest() []byte {
	if m.secrets == nil {
		return nil
	}
	at := m.secrets.begins(m.held)
	if len(m.held)-at < shortestPart {
		return m.show(len(m.held))
	}
	out := m.show(at)
	if m.covered == 0 { // else the mask of a secret that it overlaps stands for it
		out = append(out, mask...)
	}
	return out
}

// show returns the held text up to the byte until, masked, and goes on holding the rest.
func (m *masker) show(until int) []byte {
	m.out = m.out[:0]
	done := min(m.covered, until)
	covered := m.covered
	for _, f := range m.secrets.find(m.held) {
		if f.from >= until {
			break
		}
		if f.from >= covered { // else the mask of the secret that it overlaps stands for it too
			m.out = append(m.out, m.held[done:f.from]...)
			m.out = append(m.out, mask...)
		}
		covered = max(covered, f.to)
		done = min(covered, until)
	}
	m.out = append(m.out, m.held[done:until]...)
	m.covered = max(0, covered-until)
	m.held = append(m.held[:0], m.held[until:]...)
	return m.out
}
