package planfile

import (
	"bytes"
	"errors"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/internal/textfile"
)

// Hide returns the text of a plan file without its secrets. It replaces each value that has a
// secret name, of a param, a variable or a field, by secret.Hidden. It also replaces each other
// occurrence of such a value. The caller may give further secret values, found elsewhere. If
// anything is secret and the text is not YAML, Hide hides all of it.
func Hide(file string, s secret.Names, values []string) string {
	if s.None() && len(values) == 0 {
		return file
	}
	data := textfile.WithoutMark([]byte(file))
	h := hider{src: &textfile.Source{Text: data}, secrets: s}
	doc, err := decode(yaml.NewDecoder(bytes.NewReader(data)))
	if err != nil || !sound(&faults{src: &source{*h.src}}, doc, 0) {
		return secret.Hidden
	}
	h.walk(doc)
	h.plan(doc.Content[0])
	return secret.HideText(h.cut(), secret.LongestFirst(append(h.values, values...)))
}

// withoutSecrets returns what is wrong with a plan without the secrets in it. It shows no line in which one stands.
func (r *reader) withoutSecrets(root *yaml.Node, err error) error {
	var errs Errors
	names := r.secrets()
	if names.None() || !errors.As(err, &errs) {
		return err
	}
	h := hider{src: &r.src.Source, secrets: names}
	h.walk(root)
	h.plan(root)
	slices.Sort(h.starts)
	for name, value := range r.given {
		if names.Named(name) {
			h.values = append(h.values, names.ValuesIn(map[string]any{name: value})...)
		}
	}
	values := secret.LongestFirst(h.values)
	for i := range errs {
		e := &errs[i]
		e.Message = secret.HideText(e.Message, values)
		if e.Line > 0 && h.stands(e.Line, values) {
			e.Text, e.Caret = "", 0
		}
	}
	return errs
}

// stands reports whether a secret, or a part of one, stands in a line.
func (h *hider) stands(line int, values []string) bool {
	from := h.src.Offset(line, 1)
	text, _, _ := bytes.Cut(h.src.Text[from:], []byte("\n"))
	for _, n := range h.secret {
		if end, _ := h.end(n); h.at(n) < from+len(text) && end > from {
			return true
		}
	}
	return secret.HideText(string(text), values) != string(text)
}

// masked is secret.Hidden as YAML, in which a plain * begins an alias.
const masked = `"` + secret.Hidden + `"`

// A hider finds out where in a file secrets stand.
type hider struct {
	src     *textfile.Source
	secrets secret.Names
	starts  []int // of all nodes
	secret  []*yaml.Node
	values  []string
}

// walk notes where nodes begin.
func (h *hider) walk(n *yaml.Node) {
	h.starts = append(h.starts, h.at(n))
	for _, c := range n.Content {
		h.walk(c)
	}
}

func (h *hider) at(n *yaml.Node) int { return h.src.Offset(n.Line, n.Column) }

// plan looks for secrets where names are those of params: a task may be called like one.
func (h *hider) plan(root *yaml.Node) {
	each(root, func(k string, v *yaml.Node) {
		switch k {
		case "tasks", "finally":
			each(v, func(_ string, task *yaml.Node) { h.task(task) })
		case "defaults":
			h.task(v)
		case "params", "choices", "env":
			h.find(v)
		}
	})
}

func (h *hider) task(n *yaml.Node) {
	each(n, func(_ string, v *yaml.Node) { h.find(v) })
}

// each calls do with the entries of a mapping.
func each(n *yaml.Node, do func(k string, v *yaml.Node)) {
	n = follow(n)
	if n.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		do(follow(n.Content[i]).Value, n.Content[i+1])
	}
}

// find notes the secrets below a node. It also visits the node of an alias at its own place.
func (h *hider) find(n *yaml.Node) {
	n = follow(n)
	if n.Kind != yaml.MappingNode {
		for _, c := range n.Content {
			h.find(c)
		}
		return
	}
	each(n, func(k string, v *yaml.Node) {
		if v = follow(v); h.secrets.Named(k) {
			h.hide(v)
		} else {
			h.find(v)
		}
	})
}

// onlyExpression is a text that says where a value comes from, and has nothing of the value.
var onlyExpression = regexp.MustCompile(`^\$\{\{[^{}]*\}\}$`)

// hide notes that a node is secret.
func (h *hider) hide(n *yaml.Node) {
	if kindOf(n) == null || n.Kind == yaml.ScalarNode && onlyExpression.MatchString(strings.TrimSpace(n.Value)) {
		return
	}
	h.secret = append(h.secret, n)
	var gather func(n *yaml.Node) any
	gather = func(n *yaml.Node) any {
		n = follow(n)
		if len(n.Content) == 0 {
			return n.Value
		}
		var all []any
		for i, c := range n.Content {
			if n.Kind != yaml.MappingNode || i%2 == 1 { // a name of a field is no secret
				all = append(all, gather(c))
			}
		}
		return all
	}
	named := secret.Names{}.And([]string{"value"})
	h.values = append(h.values, named.ValuesIn(map[string]any{"value": gather(n)})...)
}

// cut returns the text with each secret node replaced.
func (h *hider) cut() string {
	slices.Sort(h.starts)
	slices.SortFunc(h.secret, func(a, b *yaml.Node) int { return h.at(a) - h.at(b) })
	var b strings.Builder
	from := 0
	for _, n := range h.secret {
		at := h.at(n)
		if at < from {
			continue // it stands in one that is hidden
		}
		end, joined := h.end(n)
		b.Write(h.src.Text[from:at])
		b.WriteString(masked + joined)
		from = end
	}
	b.Write(h.src.Text[from:])
	return b.String()
}

// end returns where a node ends, and what is to stand between it and what follows.
func (h *hider) end(n *yaml.Node) (end int, joined string) {
	text, at := h.src.Text, h.at(n)
	if n.Kind == yaml.ScalarNode && n.Anchor == "" {
		if n.Style == 0 && bytes.HasPrefix(text[at:], []byte(n.Value)) {
			return at + len(n.Value), ""
		}
		if end := quoteEnd(text, at); end > at {
			return end, ""
		}
	}
	last := n // everything up to what follows the last node in it
	for len(last.Content) > 0 {
		last = last.Content[len(last.Content)-1]
	}
	after := h.at(last)
	i, _ := slices.BinarySearch(h.starts, after+1)
	if i == len(h.starts) {
		return len(bytes.TrimRight(text, " \t\r\n")), ""
	}
	next := h.starts[i]
	if line := bytes.LastIndexByte(text[after:next], '\n'); line >= 0 {
		return after + line, ""
	}
	return next, ", "
}

// quoteEnd returns where a text ends that begins with a quote; 0 if it does not.
func quoteEnd(text []byte, at int) int {
	if at >= len(text) || text[at] != '"' && text[at] != '\'' {
		return 0
	}
	quote := text[at]
	for i := at + 1; i < len(text); i++ {
		switch {
		case quote == '"' && text[i] == '\\':
			i++
		case text[i] == quote && quote == '\'' && i+1 < len(text) && text[i+1] == quote:
			i++
		case text[i] == quote:
			return i + 1
		}
	}
	return 0
}
