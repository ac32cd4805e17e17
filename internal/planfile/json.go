package planfile

import (
	"math/big"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/seed-1177d267/sluice/internal/jsontext"
)

// appendJSON writes a value as JSON, straight from its node: no number passes through a float. It notes what has no JSON, and every
// text with an expression in it.
func (r *reader) appendJSON(b []byte, n *yaml.Node) []byte {
	n = follow(n)
	switch n.Kind {
	case yaml.SequenceNode:
		b = append(b, '[')
		for i, c := range n.Content {
			if i > 0 {
				b = append(b, ',')
			}
			b = r.appendJSON(b, c)
		}
		return append(b, ']')
	case yaml.MappingNode:
		b = append(b, '{')
		first := true
		r.entries(n, "key", func(k, v *yaml.Node) {
			if !first {
				b = append(b, ',')
			}
			first = false
			b = append(jsontext.AppendText(b, k.Value), ':')
			b = r.appendJSON(b, v)
		})
		return append(b, '}')
	}
	switch kindOf(n) {
	case null:
		return append(b, "null"...)
	case boolean:
		return append(b, strings.ToLower(n.Value)...)
	case number:
		return r.appendNumber(b, n)
	}
	r.noteExpressions(n)
	return jsontext.AppendText(b, n.Value)
}

// appendNumber writes a number with all its digits.
func (r *reader) appendNumber(b []byte, n *yaml.Node) []byte {
	word := n.Value
	switch {
	case isNotFinite(word):
		r.errorf(n, "%s has no JSON, so no task could be given it; leave it out, or put it in quotes", word)
		return append(b, "null"...)
	case isBased(word):
		base := 16
		if word[1] == 'o' {
			base = 8
		}
		v, _ := new(big.Int).SetString(word[2:], base) // isBased has looked at each digit
		return v.Append(b, 10)
	}
	word = strings.TrimPrefix(word, "+")
	if strings.HasPrefix(word, "-") {
		b, word = append(b, '-'), word[1:]
	}
	whole := digits(word)
	if whole > 1 && word[0] == '0' {
		r.errorf(n, "programs disagree about what a number with a leading zero is; put %s in quotes, or write it without the zero (to base 8 with 0o)", n.Value)
		return append(b, '0')
	}
	if whole == 0 {
		b = append(b, '0')
	}
	b = append(b, word[:whole]...)
	rest := word[whole:]
	if strings.HasPrefix(rest, ".") {
		fraction := digits(rest[1:])
		if fraction > 0 {
			b = append(b, rest[:1+fraction]...)
		}
		rest = rest[1+fraction:]
	}
	return append(b, rest...)
}
