package planfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/seed-1177d267/sluice/internal/expr"
	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/plan"
)

// Texts returns the values of params as a person gives them: a text as it is, and anything else as JSON.
func Texts(params map[string]json.RawMessage) map[string]string {
	values := make(map[string]string, len(params))
	for name, value := range params {
		var text string
		if json.Unmarshal(value, &text) != nil {
			text = string(value)
		}
		values[name] = text
	}
	return values
}

var paramsShape = &schema{Type: []string{"object"}, want: "a mapping like {name: value}"}

// readSecrets reads which params are never shown.
func (r *reader) readSecrets(n *yaml.Node) {
	for _, v := range n.Content {
		if v = follow(v); r.fits(entry{v, v}, "a secret", text, secretsShape.Items) {
			name, ok := r.constant(v, "a secret")
			if !ok {
				continue
			}
			if _, err := secret.CheckNames([]string{name}); err != nil {
				r.errorf(v, "%v", err)
				continue
			}
			r.spec.Secrets = append(r.spec.Secrets, name)
		}
	}
}

var (
	choicesShape   = &schema{Type: []string{"object"}, AdditionalProperties: choicesOfParam, want: "a mapping of params to lists, like {site: [test, prod]}"}
	choicesOfParam = &schema{Type: []string{"array"}, MinItems: 1, Items: choiceShape, want: "a list of values, like [test, prod]"}
	choiceShape    = &schema{AnyOf: []*schema{{Type: []string{"string"}, Pattern: `\S`, Not: &schema{Pattern: expressionPattern}}, {Type: []string{"number", "boolean"}}},
		want: "text, a number, true or false", must: true}
	aboutShape = &schema{Type: []string{"object"}, AdditionalProperties: aboutParam, want: "a mapping of params to texts, like {site: Where to}"}
	aboutParam = &schema{Type: []string{"string"}, Pattern: `\S`, Not: &schema{Pattern: expressionPattern}, want: "a text", quote: true}
)

// readChoices reads the values that params may have.
func (r *reader) readChoices(n *yaml.Node) {
	r.choices = map[string]rules.Choices{}
	r.entries(n, "param", func(k, v *yaml.Node) {
		switch {
		case !r.fits(entry{k, v}, "choices."+k.Value, list, choicesOfParam):
		case r.secrets().Named(k.Value):
			r.errorf(k, "param %q is secret, and choices are shown to people; drop its choices", k.Value)
		default:
			r.readChoicesOf(k, follow(v))
		}
	})
}

// readChoicesOf reads the values that one param may have. It keeps no list that has a mistake.
func (r *reader) readChoicesOf(k, n *yaml.Node) {
	var choices rules.Choices
	before := len(r.list)
	for _, v := range n.Content {
		if !r.fits(entry{v, v}, "a choice", choiceShape.kinds(), choiceShape) {
			continue
		}
		v = follow(v)
		if _, ok := r.constant(v, "a choice"); ok {
			choices = append(choices, r.appendJSON(nil, v))
		}
	}
	if len(r.list) > before {
		return
	}
	if at, err := choices.Check(); err != nil {
		if at > 0 {
			n = n.Content[at]
		}
		r.errorf(n, "%v", err)
		return
	}
	r.choices[k.Value] = choices
}

// readAbout reads what params are for.
func (r *reader) readAbout(n *yaml.Node) {
	r.about = map[string]string{}
	r.entries(n, "param", func(k, v *yaml.Node) {
		if r.fits(entry{k, v}, "about."+k.Value, text, aboutParam) {
			r.about[k.Value], _ = r.constant(follow(v), "about."+k.Value)
		}
	})
}

// checkNamed refuses the names in a mapping of the plan that are no params.
func (r *reader) checkNamed(key string) {
	all := r.found[r.planKeys.index[key]]
	if r.params == nil || all.k == nil || kindOf(all.v) != mapping {
		return // nobody knows the params, or what is wrong was said
	}
	r.entries(follow(all.v), "param", func(k, _ *yaml.Node) {
		if _, there := r.spec.Params[k.Value]; !there {
			r.add(fault{at: r.at(k), text: fmt.Sprintf("%s: the plan has no param %q; add it to params, or drop this", key, k.Value),
				word: k.Value, known: slices.Sorted(maps.Keys(r.spec.Params))})
		}
	})
}

// The reader refuses a value that is surely too large for a plan's params before it decodes the
// value. A value in JSON has at least a fourth of its bytes in YAML: the worst case is a number in
// base 2.
const (
	yamlPerJSON = 4
	mostYAML    = yamlPerJSON * plan.MaxPlanParams
)

// sizeUpTo returns how many bytes a value has in YAML with its aliases written out, or some number
// above most if it has more than that.
func sizeUpTo(n *yaml.Node, most int) int {
	n = follow(n)
	size := 1 + len(n.Value)
	for _, c := range n.Content {
		if size > most {
			break
		}
		size += sizeUpTo(c, most-size)
	}
	return size
}

// readParams reads the params of the plan and puts the values that a person gave in the place of their defaults.
func (r *reader) readParams(n *yaml.Node) {
	r.spec.Params = make(map[string]json.RawMessage, len(n.Content)/2)
	if r.declared != nil {
		*r.declared = nil // what was read before may be the same file, in parts
	}
	total, kept, tooMuch := 0, 0, false // of YAML, and of JSON
	r.entries(n, "param", func(k, v *yaml.Node) {
		var value json.RawMessage
		if total += sizeUpTo(v, mostYAML-total); total <= mostYAML {
			value = r.appendJSON(nil, v)
			kept += len(k.Value) + len(value)
		}
		if err := rules.CheckPlanParams(max(kept, total/yamlPerJSON)); err != nil {
			if !tooMuch {
				r.errorf(k, "%v", err)
			}
			tooMuch, r.spec.Params[k.Value] = true, json.RawMessage("null")
			return
		}
		for _, e := range r.exprs {
			if expr.Has(e.Value) {
				r.add(fault{at: r.expressionAt(e, "", 1), text: "a param cannot have an expression; it is what expressions are made from"})
			}
		}
		r.exprs = nil
		if data, ok := expr.UnquoteJSON(value); ok {
			value = data
		}
		if r.unless != nil && kindOf(v) != null {
			r.unless[k.Value] = value
		}
		if r.declared != nil {
			*r.declared = append(*r.declared, r.param(k, v, value))
		}
		choices := r.choices[k.Value]
		if choices != nil && kindOf(v) != null {
			if err := choices.CheckDefault(value); err != nil {
				r.errorf(v, "param %q: %v", k.Value, err)
			}
		}
		if given, ok := r.given[k.Value]; ok && !isText(given) {
			r.errorf(k, "%s%s: the value is not UTF-8, or has a NUL, and would reach the tasks as something else; give the name of a file that holds it", r.flag, k.Value)
		} else if ok && choices != nil {
			if is, err := choices.Choose(given); err != nil {
				r.add(fault{at: r.at(k), text: fmt.Sprintf("%s%s=%s: %v", r.flag, k.Value, given, err), word: given, known: choices.Words()})
			} else {
				value = is
			}
		} else if ok {
			if is, err := typed(given, kindOf(v)); err != nil {
				if r.secrets().Named(k.Value) {
					given = secret.Hidden
				}
				r.errorf(k, "%s%s=%s: %v", r.flag, k.Value, given, err) // the default stays: what uses the param is no mistake for that
			} else {
				value = is
			}
		} else if kindOf(v) == null && r.draft {
			value = json.RawMessage(`""`)
		} else if kindOf(v) == null {
			one := ""
			if choices != nil {
				one = fmt.Sprintf(", one of %s", choices)
			}
			r.errorf(k, "param %q has no default; give it a value%s: %s%s=VALUE", k.Value, one, r.flag, k.Value)
		}
		r.spec.Params[k.Value] = value
	})
	names := slices.Sorted(maps.Keys(r.spec.Params))
	r.params = append(r.params, '{')
	for i, name := range names {
		if i > 0 {
			r.params = append(r.params, ',')
		}
		r.params = append(append(jsontext.AppendText(r.params, name), ':'), r.spec.Params[name]...)
	}
	r.params = append(r.params, '}')
	for _, name := range slices.Sorted(maps.Keys(r.given)) {
		if _, ok := r.spec.Params[name]; !ok {
			r.add(fault{at: nowhere, text: fmt.Sprintf("%s%s: the plan has no such param", r.flag, name), word: name, known: names})
		}
	}
}

// isText reports whether what a person gave reaches a task as it is: JSON is UTF-8, and environment variables end with a NUL.
func isText(given string) bool { return utf8.ValidString(given) && !strings.Contains(given, "\x00") }

// param returns what the file says of a param.
func (r *reader) param(k, v *yaml.Node, value json.RawMessage) Param {
	p := Param{Name: k.Value, Secret: r.secrets().Named(k.Value), Choices: r.choices[k.Value], About: r.about[k.Value]}
	if kindOf(v) != null {
		p.Default = value
	}
	return p
}

func (r *reader) secrets() secret.Names { return r.hidden.And(r.spec.Secrets) }

// typed reads what a person gave for a param whose default is of the given kind.
func typed(given string, want kind) (json.RawMessage, error) {
	if want == text || want == null {
		return jsontext.AppendText(nil, given), nil
	}
	value := bytes.TrimSpace([]byte(given))
	is := text
	if json.Valid(value) {
		if name := jsontext.Twice(value); name != "" {
			return nil, fmt.Errorf("it has %q twice in one object; give it once", name)
		}
		switch value[0] {
		case '{':
			is = mapping
		case '[':
			is = list
		case 't', 'f':
			is = boolean
		case 'n':
			is = null
		case '"':
		default:
			is = number
		}
	}
	if is != want {
		example := map[kind]string{number: "42", boolean: "true", list: `["a","b"]`, mapping: `{"a": 1}`}[want]
		return nil, fmt.Errorf("its default in the file is %s, so its value must be JSON of that kind, as in %s", want, example)
	}
	return value, nil
}

// ChoicesOf returns the choices of params that have some, by name.
func ChoicesOf(params []Param) map[string]rules.Choices {
	choices := map[string]rules.Choices{}
	for _, p := range params {
		if p.Choices != nil {
			choices[p.Name] = p.Choices
		}
	}
	return choices
}

// ChoicesIn returns the choices in a file that was read before: none if it cannot be read any more.
func ChoicesIn(f plan.File) map[string]rules.Choices {
	var params []Param
	if f.Text != "" {
		_, _ = Parse("plan", []byte(f.Text), Options{Declared: &params, Draft: true, Dir: f.Dir}) // what it has beside choices may be wrong by now
	}
	return ChoicesOf(params)
}
