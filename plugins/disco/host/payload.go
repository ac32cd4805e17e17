package host

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/seed-1177d267/sluice/internal/jsontext"
)

// A cursor reads a payload in place. The payload is valid JSON, so the cursor looks at no more than
// it needs to tell values apart.
type cursor struct {
	b  []byte
	at int
}

// kind skips blanks and returns the first byte of the next value or mark, and 0 at the end.
func (c *cursor) kind() byte {
	for c.at < len(c.b) {
		switch c.b[c.at] {
		case ' ', '\t', '\r', '\n':
			c.at++
		default:
			return c.b[c.at]
		}
	}
	return 0
}

// mark steps over the byte if it comes next.
func (c *cursor) mark(b byte) bool {
	if c.kind() != b {
		return false
	}
	c.at++
	return true
}

// text steps over a string and returns it with its quotes and escapes.
func (c *cursor) text() (raw []byte, ok bool) {
	if c.kind() != '"' {
		return nil, false
	}
	from := c.at
	for c.at++; c.b[c.at] != '"'; c.at++ {
		if c.b[c.at] == '\\' {
			c.at++
		}
	}
	c.at++
	return c.b[from:c.at], true
}

// integer steps over a number without a fraction and an exponent. A number that int64 does not hold
// becomes the nearest one.
func (c *cursor) integer() (n int64, ok bool) {
	first := c.kind()
	if first != '-' && (first < '0' || first > '9') {
		return 0, false
	}
	if first == '-' {
		c.at++
	}
	for ; c.at < len(c.b) && '0' <= c.b[c.at] && c.b[c.at] <= '9'; c.at++ {
		digit := int64(c.b[c.at] - '0')
		if n < (math.MinInt64+digit)/10 {
			n = math.MinInt64
		} else {
			n = 10*n - digit
		}
	}
	if c.at < len(c.b) && bytes.IndexByte([]byte(".eE"), c.b[c.at]) >= 0 {
		return 0, false
	}
	if first == '-' {
		return n, true
	}
	return -max(n, -math.MaxInt64), true
}

// skip steps over a value of any depth.
func (c *cursor) skip() {
	depth := 0
	for {
		switch c.kind() {
		case '"':
			c.text()
		case '[', '{':
			depth++
			c.at++
			continue
		case ']', '}':
			depth--
			c.at++
		case ',', ':':
			c.at++
			continue
		default:
			for c.at < len(c.b) && bytes.IndexByte([]byte(",:]} \t\r\n"), c.b[c.at]) < 0 {
				c.at++
			}
		}
		if depth == 0 {
			return
		}
	}
}

// integers steps over a list of integers and hands each over. It returns false at the first value
// that is none.
func (c *cursor) integers(each func(int64)) bool {
	if !c.mark('[') {
		return false
	}
	if c.mark(']') {
		return true
	}
	for {
		n, ok := c.integer()
		if !ok {
			return false
		}
		each(n)
		if !c.mark(',') {
			return c.mark(']')
		}
	}
}

// end reports whether nothing follows.
func (c *cursor) end() bool { return c.kind() == 0 }

// isText reports whether a payload is a string.
func isText(body []byte) bool {
	c := cursor{b: body}
	return c.kind() == '"'
}

// A greeting is the payload of WORKER. Another key does not matter, and of equal keys the first
// counts.
func greeting(body []byte) (version string, ok bool) {
	c := cursor{b: body}
	if !c.mark('{') || c.kind() == '}' {
		return "", false
	}
	var raw []byte
	hasPid := false
	for {
		name, _ := c.text()
		c.mark(':')
		switch key := short(name); {
		case key == "version" && raw == nil:
			if raw, ok = c.text(); !ok {
				return "", false
			}
		case key == "pid" && !hasPid:
			if _, hasPid = c.integer(); !hasPid {
				return "", false
			}
		default:
			c.skip()
		}
		if !c.mark(',') {
			return short(raw), raw != nil && hasPid
		}
	}
}

// A choice is the payload of INPUT: every input, or those that a list of ids includes or excludes.
type choice struct {
	word string // "" is every input
	ids  cursor // at the list
}

func choiceOf(body []byte) (ch choice, ok bool) {
	c := cursor{b: body}
	if raw, ok := c.text(); ok {
		return ch, short(raw) == ""
	}
	if !c.mark('[') {
		return ch, false
	}
	raw, ok := c.text()
	ch.word = short(raw)
	if !ok || ch.word != "include" && ch.word != "exclude" || !c.mark(',') {
		return ch, false
	}
	ch.ids = c
	return ch, c.integers(func(int64) {}) && c.mark(']') && c.end()
}

// each hands over the ids of the choice.
func (ch choice) each(do func(id int64)) {
	c := ch.ids
	c.integers(do)
}

// failedReplicas is the payload of INPUT_ERR.
func failedReplicas(body []byte, each func(replica int64)) (input int64, ok bool) {
	c := cursor{b: body}
	if !c.mark('[') {
		return 0, false
	}
	input, ok = c.integer()
	return input, ok && c.mark(',') && c.integers(each) && c.mark(']') && c.end()
}

// outputOf is the payload of OUTPUT. The location is as the worker wrote it.
func outputOf(body []byte) (label int64, location []byte, size int64, ok bool) {
	c := cursor{b: body}
	if !c.mark('[') {
		return
	}
	if label, ok = c.integer(); !ok || !c.mark(',') {
		return 0, nil, 0, false
	}
	if location, ok = c.text(); !ok || !c.mark(',') {
		return 0, nil, 0, false
	}
	size, ok = c.integer()
	return label, location, size, ok && c.mark(']') && c.end()
}

// short returns a string of JSON that is compared with a short one.
func short(raw []byte) string { return decoded(raw, 32) }

// decoded returns the beginning of a string of JSON: about so many bytes.
func decoded(raw []byte, most int) string {
	if len(raw) == 0 {
		return ""
	}
	cut := 1
	for n := 0; cut < len(raw)-1 && n < most; n++ {
		switch {
		case raw[cut] != '\\':
			_, size := utf8.DecodeRune(raw[cut:])
			cut += size
			n += size - 1
		case raw[cut+1] == 'u':
			cut += 6
		default:
			cut += 2
		}
	}
	var text string
	// The cut is after a whole character or escape of a valid string.
	_ = json.Unmarshal(append(bytes.Clone(raw[:cut]), '"'), &text)
	if left := len(raw) - 1 - cut; left > 0 {
		text += fmt.Sprintf("… [%d bytes more]", left)
	}
	return text
}

// excerpt shows the beginning of a body that the session does not understand.
func excerpt(body []byte) string {
	const most = 200
	if len(body) <= most {
		return fmt.Sprintf("%q", body)
	}
	return fmt.Sprintf("%q… (%d bytes)", body[:most], len(body))
}

// valid reports whether the body is one JSON value in UTF-8. Neither it nor a cursor calls itself
// for what lies within a list or an object, and more than 10,000 of these within each other are not
// valid.
func valid(body []byte) bool { return jsontext.Valid(body) }
