package planfile

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A kind is what a YAML value is. Kinds are bits, so that a set of them is their sum.
type kind uint8

const (
	text kind = 1 << iota
	number
	boolean
	null
	list
	mapping
)

func (k kind) String() string {
	switch k {
	case text:
		return "text"
	case number:
		return "a number"
	case boolean:
		return "true or false"
	case null:
		return "nothing"
	case list:
		return "a list"
	}
	return "a mapping"
}

const quoted = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle

// kindOf says what a value is by YAML 1.2's core schema, in which yes, on, dates and 1_000 are text. The library's own tags are
// those of YAML 1.1.
func kindOf(n *yaml.Node) kind {
	switch n.Kind {
	case yaml.MappingNode:
		return mapping
	case yaml.SequenceNode:
		return list
	case yaml.AliasNode:
		return kindOf(n.Alias)
	}
	if n.Style&yaml.TaggedStyle != 0 && n.Tag == "!!str" || n.Style&yaml.TaggedStyle == 0 && n.Style&quoted != 0 {
		return text
	}
	return plainKind(n.Value)
}

// plainKind says what an unquoted word is.
func plainKind(word string) kind {
	switch word {
	case "", "~", "null", "Null", "NULL":
		return null
	case "true", "True", "TRUE", "false", "False", "FALSE":
		return boolean
	}
	if c := word[0]; (c < '0' || c > '9') && c != '-' && c != '+' && c != '.' {
		return text
	}
	if isDecimal(word) || isBased(word) || isNotFinite(word) {
		return number
	}
	return text
}

// isDecimal reports whether a word is [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?
func isDecimal(word string) bool {
	word = strings.TrimLeft(word[:1], "+-") + word[1:]
	whole := digits(word)
	rest := word[whole:]
	fraction := 0
	if strings.HasPrefix(rest, ".") {
		fraction = digits(rest[1:])
		rest = rest[1+fraction:]
	}
	if whole+fraction == 0 {
		return false
	}
	if rest != "" && (rest[0] == 'e' || rest[0] == 'E') {
		rest = rest[1:]
		if rest != "" && (rest[0] == '+' || rest[0] == '-') {
			rest = rest[1:]
		}
		n := digits(rest)
		return n > 0 && n == len(rest)
	}
	return rest == ""
}

func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// isBased reports whether a word is a number to base 16 or 8, as in 0xff and 0o17.
func isBased(word string) bool {
	if len(word) < 3 || word[0] != '0' {
		return false
	}
	switch word[1] {
	case 'x':
		return strings.Trim(word[2:], "0123456789abcdefABCDEF") == ""
	case 'o':
		return strings.Trim(word[2:], "01234567") == ""
	}
	return false
}

func isNotFinite(word string) bool {
	switch strings.TrimLeft(word, "+-") {
	case ".inf", ".Inf", ".INF":
		return strings.Count(word, "+")+strings.Count(word, "-") <= 1
	case ".nan", ".NaN", ".NAN":
		return len(word) == 4
	}
	return false
}

// follow returns the node that an alias refers to.
func follow(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// isMerge reports whether a key is YAML's merge key.
func isMerge(key *yaml.Node) bool {
	return key.Kind == yaml.ScalarNode && key.Style == 0 && key.Value == "<<"
}

// Limits of what a file may nest, and of what its aliases may make of it.
const (
	maxDepth    = 200
	maxExpanded = 64 << 20 // bytes beyond those of the file itself
)

// A survey visits the whole tree once. It finds aliases that contain themselves, aliases that
// expand to gigabytes, and unknown tags, so that later readers need not check for these.
type survey struct {
	faults  *faults
	most    int
	anchors map[*yaml.Node]extent // size 0 while the anchor's own value is being visited
}

// An extent is how large a value is with its aliases written out.
type extent struct{ size, depth int }

// sound reports whether a tree may be read that has so many levels above it, and notes why not.
func sound(f *faults, root *yaml.Node, above int) bool {
	s := survey{faults: f, most: maxExpanded + 2*len(f.src.Text), anchors: map[*yaml.Node]extent{}}
	before := len(f.list)
	s.visit(root, above)
	return len(f.list) == before
}

func (s *survey) visit(n *yaml.Node, above int) extent {
	if n.Kind == yaml.AliasNode {
		e, known := s.anchors[n.Alias]
		switch {
		case known && e.size == 0:
			s.fault(n, "the alias *"+n.Value+" stands inside its own anchor, so it would never end; drop it")
		case above+e.depth > maxDepth:
			s.fault(n, "nested too deeply here; a plan file has at most 200 levels")
		}
		return e
	}
	if n.Anchor != "" {
		s.anchors[n] = extent{}
	}
	s.checkTag(n)
	e := extent{size: 1 + len(n.Value)}
	if above == maxDepth && len(n.Content) > 0 {
		s.fault(n, "nested too deeply here; a plan file has at most 200 levels")
	} else {
		for _, c := range n.Content {
			part := s.visit(c, above+1)
			e.depth = max(e.depth, part.depth+1)
			if e.size <= s.most && e.size+part.size > s.most {
				s.fault(c, "the aliases of this file stand for more than 64 MiB; use fewer of them")
			}
			e.size = min(e.size+part.size, s.most+1) // said once, and no overflow
		}
	}
	if n.Anchor != "" {
		s.anchors[n] = e
	}
	return e
}

func (s *survey) fault(n *yaml.Node, message string) {
	s.faults.add(fault{at: s.faults.src.Offset(n.Line, n.Column), text: message})
}

// tags are those that say no more than what a value is anyway.
var tags = map[yaml.Kind][]string{
	yaml.ScalarNode:   {"!!str", "!!int", "!!float", "!!bool", "!!null"},
	yaml.SequenceNode: {"!!seq"},
	yaml.MappingNode:  {"!!map"},
}

func (s *survey) checkTag(n *yaml.Node) {
	if n.Style&yaml.TaggedStyle == 0 {
		return
	}
	if !slices.Contains(tags[n.Kind], n.Tag) {
		s.fault(n, "the tag "+n.Tag+" means nothing here; drop it")
		return
	}
	if n.Kind != yaml.ScalarNode || n.Tag == "!!str" {
		return
	}
	is := plainKind(n.Value)
	want := map[string]kind{"!!int": number, "!!float": number, "!!bool": boolean, "!!null": null}[n.Tag]
	if is != want || n.Tag == "!!int" && strings.ContainsAny(n.Value, ".eE") && !isBased(n.Value) {
		s.fault(n, "the value is not what its tag "+n.Tag+" says; drop the tag")
	}
}
