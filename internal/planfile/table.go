package planfile

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A key is a word that a mapping of a plan file may have. It has a reader, and a description of its
// value for editors and errors.
type key[T any] struct {
	name  string
	value *schema
	read  func(T, *yaml.Node)
	kinds kind // of value
}

// A table is the keys of one kind of mapping, in the order in which they are read.
type table[T any] struct {
	what  string // as in "a task"
	keys  []key[T]
	index map[string]int
	hints map[string]string // words of other tools: what to write instead
}

func newTable[T any](what string, hints map[string]string, keys ...key[T]) *table[T] {
	t := &table[T]{what: what, keys: keys, index: make(map[string]int, len(keys)), hints: hints}
	for i := range keys {
		keys[i].kinds = keys[i].value.kinds()
		t.index[keys[i].name] = i
	}
	return t
}

// An entry is a key of a mapping and its value; without a key there is none.
type entry struct{ k, v *yaml.Node }

// collect finds the entries of a mapping, by the number of their key in the table. It reports
// whether all keys are in the table, and notes the others.
func (t *table[T]) collect(r *reader, n *yaml.Node, found []entry) (all bool) {
	all = true
	r.entries(n, "key", func(k, v *yaml.Node) {
		if i, ok := t.index[k.Value]; ok {
			found[i] = entry{k, v}
			return
		}
		all = false
		hint, ok := t.hints[k.Value]
		if !ok {
			hint, ok = r.elsewhere(t.what, k.Value)
		}
		if ok {
			r.errorf(k, "%q is not a key of %s: %s", k.Value, t.what, hint)
			return
		}
		r.add(fault{at: r.at(k), text: fmt.Sprintf("%s has no key %q", t.what, k.Value), word: k.Value, known: t.names(),
			none: "; it has " + strings.Join(t.names(), ", ")})
	})
	return all
}

// apply reads the entries into the target, after a look at what kind of value each is.
func (t *table[T]) apply(r *reader, target T, found []entry) {
	for i := range t.keys {
		if k := &t.keys[i]; found[i].k != nil && r.fits(found[i], k.name, k.kinds, k.value) {
			k.read(target, follow(found[i].v))
		}
	}
}

func (t *table[T]) names() []string {
	names := make([]string, len(t.keys))
	for i := range t.keys {
		names[i] = t.keys[i].name
	}
	return names
}

func (t *table[T]) schema() *schema {
	s := &schema{Type: []string{"object"}, Properties: make(map[string]*schema, len(t.keys)), AdditionalProperties: false}
	for _, k := range t.keys {
		s.Properties[k.name] = k.value
	}
	return s
}

// fits reports whether a value is of one of the kinds of its schema, and notes it if not.
func (r *reader) fits(e entry, name string, kinds kind, s *schema) bool {
	is := kindOf(e.v)
	if is&kinds != 0 {
		return true
	}
	v, want := follow(e.v), s.want
	not := is.String()
	if is == boolean {
		not = v.Value
	}
	switch {
	case is == null && s.must:
		r.errorf(e.k, "%s has no value; it must be %s", name, want)
	case is == null:
		r.errorf(e.k, "%s has no value; it must be %s, or be left out", name, want)
	case is == text && kinds == boolean:
		r.errorf(v, "%s must be %s, not the text %q", name, want, v.Value)
	case s.quote && is&(number|boolean) != 0:
		r.errorf(v, "%s must be %s, not %s; to mean the text %s put it in quotes", name, want, not, v.Value)
	case name == "on_failure" && is&(list|mapping) != 0:
		r.errorf(v, "%s must be %s, not %s; %s", name, want, not, finallyWord)
	default:
		r.errorf(v, "%s must be %s, not %s", name, want, not)
	}
	return false
}

// entries calls visit for each key of a mapping, in the order of the file. Then it visits the keys
// of merged mappings that the mapping itself does not have. what names a key in errors. entries
// notes keys that occur twice or are not texts, and leaves them out.
func (r *reader) entries(n *yaml.Node, what string, visit func(k, v *yaml.Node)) {
	const few = 32
	var seen map[string]*yaml.Node
	if len(n.Content) > few {
		seen = make(map[string]*yaml.Node, len(n.Content)/2)
	}
	merges := false
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := follow(n.Content[i])
		if isMerge(k) {
			merges = true
			continue
		}
		if !r.isKey(k, what) {
			continue
		}
		first := seen[k.Value]
		if seen != nil && first == nil {
			seen[k.Value] = k
		} else if seen == nil {
			first = earlier(n.Content[:i], k.Value)
		}
		if first != nil {
			line, _ := r.src.Place(r.at(first))
			r.errorf(k, "%s %q is there twice; the first is on line %d", what, k.Value, line)
			continue
		}
		visit(k, n.Content[i+1])
	}
	if merges {
		r.merge(n, what, visit)
	}
}

func earlier(content []*yaml.Node, word string) *yaml.Node {
	for i := 0; i+1 < len(content); i += 2 {
		if k := follow(content[i]); k.Value == word && kindOf(k) == text && !isMerge(k) {
			return k
		}
	}
	return nil
}

// isKey reports whether a node may be a key, and notes why not.
func (r *reader) isKey(k *yaml.Node, what string) bool {
	switch is := kindOf(k); {
	case is == null && k.Value == "":
		r.errorf(k, "a %s is missing before the colon", what)
	case is != text:
		remedy := ""
		if k.Kind == yaml.ScalarNode {
			remedy = "; put it in quotes"
		}
		r.errorf(k, "a %s must be text, not %s%s", what, is, remedy)
	case strings.Contains(k.Value, "${{"):
		r.errorf(k, "an expression cannot stand in a %s; only in a value", what)
	default:
		return true
	}
	return false
}

// merge visits what "<<" brings into a mapping. Earlier mappings win over later ones, as YAML's merge key has it.
func (r *reader) merge(n *yaml.Node, what string, visit func(k, v *yaml.Node)) {
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if k := follow(n.Content[i]); !isMerge(k) {
			seen[k.Value] = true
		}
	}
	one := func(from *yaml.Node) {
		if from.Kind != yaml.MappingNode {
			r.errorf(from, "<< merges a mapping, as in <<: *anchor, and this is %s", kindOf(from))
			return
		}
		r.entries(from, what, func(k, v *yaml.Node) {
			if !seen[k.Value] {
				seen[k.Value] = true
				visit(k, v)
			}
		})
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if !isMerge(follow(n.Content[i])) {
			continue
		}
		if from := follow(n.Content[i+1]); from.Kind == yaml.SequenceNode {
			for _, c := range from.Content {
				one(follow(c))
			}
		} else {
			one(from)
		}
	}
}
