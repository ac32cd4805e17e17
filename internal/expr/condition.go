package expr

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/internal/jsontext"
)

// A Condition is an expression that is true or false, as in
//
//	needs.check.changed > 0 && params.env in ['test', 'stage']
//
// It has paths as ${{ }} has them, literals (numbers, texts in single or double quotes, true, false,
// null, lists), the comparisons == != < <= > >= in, and && || ! with brackets. It has no arithmetic and
// no calls. ! binds closest, then comparisons, then &&, then ||.
//
// == compares any two values, and numbers by their value. < and its like compare two numbers or two
// texts. The right side of in is a list that may have the value, or an object that may have the key.
// && and || do not read their right side if the left side decides.
type Condition struct{ root *term }

// MaxCondition is how many bytes a condition has at most: it is kept with its task, and shown with the
// values that decided.
const MaxCondition = 1000

// A term is an operation on terms, a path, or a literal.
type term struct {
	op    string // an operator, or "[" of a list; "": it is a path or a literal
	args  []*term
	path  string
	value json.RawMessage // of a literal
}

// ParseCondition reads a condition. The error says in which column it is wrong.
func ParseCondition(text string) (*Condition, error) {
	if len(text) > MaxCondition {
		return nil, fmt.Errorf("it has %d bytes; a condition has at most %d", len(text), MaxCondition)
	}
	p := conditionParser{text: text}
	root, err := p.binary(0)
	if err != nil {
		return nil, err
	}
	if p.next() != "" {
		return nil, p.unexpected()
	}
	if v := string(root.value); root.op == "[" || v != "" && v != "true" && v != "false" {
		return nil, fmt.Errorf("a condition is true or false, and not a value alone; compare it, as in needs.check.changed > 0")
	}
	return &Condition{root}, nil
}

// Paths returns the paths of a condition, in their order.
func (c *Condition) Paths() []string { return c.root.paths(nil) }

func (t *term) paths(all []string) []string {
	if t.path != "" {
		return append(all, t.path)
	}
	for _, arg := range t.args {
		all = arg.paths(all)
	}
	return all
}

// Known returns the condition as a text in which the paths that the scope knows are literals.
func (c *Condition) Known(scope Scope) (string, error) {
	return c.root.known(scope, 0)
}

func (t *term) known(scope Scope, within int) (string, error) {
	if t.op == "" && t.path == "" {
		return string(t.value), nil
	}
	if t.op == "" {
		value, ok, err := Lookup(t.path, scope)
		if err != nil || !ok {
			return t.path, err
		}
		return string(value), nil
	}
	texts := make([]string, len(t.args))
	bind := binding[t.op]
	for i, arg := range t.args {
		closer := bind
		if i > 0 || bind == binding["=="] { // what is on the right, and beside a comparison, has brackets
			closer++
		}
		var err error
		if texts[i], err = arg.known(scope, closer); err != nil {
			return "", err
		}
	}
	switch {
	case t.op == "[":
		return "[" + strings.Join(texts, ", ") + "]", nil
	case t.op == "!":
		return "!" + texts[0], nil
	case bind < within:
		return "(" + texts[0] + " " + t.op + " " + texts[1] + ")", nil
	}
	return texts[0] + " " + t.op + " " + texts[1], nil
}

// Holds reports whether a condition holds. decided has each path that was read, with its value, as in
// "needs.check.changed is 0".
func (c *Condition) Holds(scope Scope) (holds bool, decided []string, err error) {
	e := evaluation{scope: scope}
	holds, err = e.truth(c.root)
	return holds, e.decided, err
}

type evaluation struct {
	scope   Scope
	decided []string
}

func (e *evaluation) truth(t *term) (bool, error) {
	value, err := e.value(t)
	switch {
	case err != nil:
		return false, err
	case string(value) == "true":
		return true, nil
	case string(value) == "false":
		return false, nil
	}
	return false, fmt.Errorf("%s is %s, and a condition is true or false; compare it, as in %[1]s == %[2]s", cmp.Or(t.path, "a part of the condition"), jsontext.Brief(value))
}

func (e *evaluation) value(t *term) (json.RawMessage, error) {
	switch t.op {
	case "":
		return e.read(t)
	case "[":
		list := make([]json.RawMessage, len(t.args))
		for i, arg := range t.args {
			var err error
			if list[i], err = e.value(arg); err != nil {
				return nil, err
			}
		}
		return jsontext.Marshal(list)
	case "!":
		is, err := e.truth(t.args[0])
		return truths[!is], err
	case "&&", "||":
		is, err := e.truth(t.args[0])
		if err == nil && is == (t.op == "&&") {
			is, err = e.truth(t.args[1])
		}
		return truths[is], err
	}
	left, err := e.value(t.args[0])
	if err != nil {
		return nil, err
	}
	right, err := e.value(t.args[1])
	if err != nil {
		return nil, err
	}
	is, err := compare(left, t.op, right)
	return truths[is], err
}

var truths = map[bool]json.RawMessage{true: json.RawMessage("true"), false: json.RawMessage("false")}

func (e *evaluation) read(t *term) (json.RawMessage, error) {
	if t.path == "" {
		return t.value, nil
	}
	value, ok, err := Lookup(t.path, e.scope)
	if err == nil && !ok {
		err = fmt.Errorf("${{ %s }} is not known here", t.path)
	}
	if err != nil {
		return nil, err
	}
	if is := t.path + " is " + jsontext.Brief(value); !slices.Contains(e.decided, is) {
		e.decided = append(e.decided, is)
	}
	return value, nil
}

func compare(left json.RawMessage, op string, right json.RawMessage) (bool, error) {
	switch op {
	case "==":
		return equal(left, right), nil
	case "!=":
		return !equal(left, right), nil
	case "in":
		return contains(right, left)
	}
	var order int
	if a, b := number(left), number(right); a != nil && b != nil {
		order = a.Cmp(b)
	} else {
		a, is := jsontext.TextOf(left)
		b, too := jsontext.TextOf(right)
		if !is || !too {
			return false, fmt.Errorf("%s %s %s compares neither two numbers nor two texts", jsontext.Brief(left), op, jsontext.Brief(right))
		}
		order = strings.Compare(a, b)
	}
	switch op {
	case "<":
		return order < 0, nil
	case "<=":
		return order <= 0, nil
	case ">":
		return order > 0, nil
	}
	return order >= 0, nil
}

func equal(a, b json.RawMessage) bool {
	if x, y := number(a), number(b); x != nil && y != nil {
		return x.Cmp(y) == 0
	}
	return jsontext.Same(a, b)
}

// number returns the number that a value is, with more digits than people write; nil if it is none.
func number(value json.RawMessage) *big.Float {
	text := strings.TrimSpace(string(value))
	if text == "" || text[0] != '-' && (text[0] < '0' || text[0] > '9') {
		return nil
	}
	n, _, err := big.ParseFloat(text, 10, 512, big.ToNearestEven)
	if err != nil {
		return nil
	}
	return n
}

func contains(all, one json.RawMessage) (bool, error) {
	var list []json.RawMessage
	if json.Unmarshal(all, &list) == nil && list != nil {
		return slices.ContainsFunc(list, func(v json.RawMessage) bool { return equal(v, one) }), nil
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(all, &object) != nil || object == nil {
		return false, fmt.Errorf("%s is neither a list nor an object, in which in could look for %s", jsontext.Brief(all), jsontext.Brief(one))
	}
	key, is := jsontext.TextOf(one)
	if !is {
		return false, fmt.Errorf("%s is no text, and in looks for a key of an object here", jsontext.Brief(one))
	}
	_, there := object[key]
	return there, nil
}

// binding says how close an operator binds: a higher one closer.
var binding = map[string]int{"||": 1, "&&": 2, "==": 3, "!=": 3, "<": 3, "<=": 3, ">": 3, ">=": 3, "in": 3, "!": 4}

var (
	token      = regexp.MustCompile(`^(?:'(?:[^']|'')*'|"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|[A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+|\.\*|\[\d+\])*|==|!=|<=|>=|&&|\|\||[<>!(),\[\]])`)
	wordSyntax = regexp.MustCompile(`^[A-Za-z_]`)
)

// conditionParser reads a text token by token. ahead is the next token; "" at the end, or where none begins.
type conditionParser struct {
	text  string
	at    int
	ahead string
}

func (p *conditionParser) next() string {
	if p.ahead == "" {
		p.at += len(p.text[p.at:]) - len(strings.TrimLeft(p.text[p.at:], " \t\r\n"))
		p.ahead = token.FindString(p.text[p.at:])
	}
	if p.ahead == "" && p.at < len(p.text) {
		return p.text[p.at : p.at+1] // which no rule expects
	}
	return p.ahead
}

func (p *conditionParser) take() { p.at, p.ahead = p.at+len(p.ahead), "" }

// binary reads operations whose operators bind at least so close.
func (p *conditionParser) binary(least int) (*term, error) {
	left, err := p.unary()
	for err == nil {
		op := p.next()
		bind := binding[op]
		if op == "!" || bind == 0 || bind < least {
			break
		}
		p.take()
		var right *term
		if right, err = p.binary(bind + 1); err == nil {
			left = &term{op: op, args: []*term{left, right}}
		}
		if again := p.next(); bind == binding["=="] && binding[again] == bind {
			return nil, p.errorf("%s %s compares the result of a comparison; join comparisons by && or ||", op, again)
		}
	}
	return left, err
}

func (p *conditionParser) unary() (*term, error) {
	switch t := p.next(); {
	case t == "!":
		p.take()
		of, err := p.unary()
		return &term{op: "!", args: []*term{of}}, err
	case t == "(":
		p.take()
		in, err := p.binary(0)
		if err == nil {
			err = p.expect(")")
		}
		return in, err
	case t == "[":
		p.take()
		return p.list()
	case t == "{":
		return p.object()
	case t == "true", t == "false", t == "null":
		p.take()
		return &term{value: json.RawMessage(t)}, nil
	case t == "" || p.ahead == "" || t == "in":
		return nil, p.unexpected()
	case t[0] == '\'':
		p.take()
		return &term{value: jsontext.AppendText(nil, strings.ReplaceAll(t[1:len(t)-1], "''", "'"))}, nil
	case t[0] == '"' || t[0] == '-' || '0' <= t[0] && t[0] <= '9':
		if !json.Valid([]byte(t)) {
			return nil, p.errorf("%s is no JSON", t)
		}
		p.take()
		return &term{value: json.RawMessage(t)}, nil
	case instead[t] != "":
		return nil, p.unexpected()
	case wordSyntax.MatchString(t):
		p.take()
		if p.next() == "(" {
			return nil, p.errorf("%s(…) is a call, and a condition has none", t)
		}
		return &term{path: t}, nil
	}
	return nil, p.unexpected()
}

func (p *conditionParser) list() (*term, error) {
	list := &term{op: "["}
	for p.next() != "]" {
		if len(list.args) > 0 {
			if err := p.expect(","); err != nil {
				return nil, err
			}
		}
		item, err := p.binary(0)
		if err != nil {
			return nil, err
		}
		list.args = append(list.args, item)
	}
	p.take()
	return list, nil
}

// object reads an object of JSON, as a param may be one.
func (p *conditionParser) object() (*term, error) {
	var value json.RawMessage
	d := json.NewDecoder(strings.NewReader(p.text[p.at:]))
	if err := d.Decode(&value); err != nil {
		return nil, p.errorf("{ begins no object of JSON")
	}
	p.at += int(d.InputOffset())
	return &term{value: value}, nil
}

func (p *conditionParser) expect(what string) error {
	if p.next() != what {
		return p.unexpected()
	}
	p.take()
	return nil
}

// instead has what a condition has in place of signs and words of other languages.
var instead = map[string]string{
	"=": "write == to compare", "&": "write && for and", "|": "write || for or", "and": "write && for and", "or": "write || for or", "not": "write ! for not", "is": "write == to compare",
	"$": "write the path without ${{ }}", "~": "there are no patterns", "?": "there is no choice between values",
	"+": "there is no arithmetic", "-": "there is no arithmetic", "*": "there is no arithmetic", "/": "there is no arithmetic", "%": "there is no arithmetic",
	"'": "the text has no end", `"`: "the text has no end",
}

// unexpected says what is wrong with the token where the parser stands.
func (p *conditionParser) unexpected() error {
	t := p.next()
	if t == "" {
		return p.errorf("it ends where a value is missing")
	}
	why, known := instead[t]
	if !known {
		why = "it is no value, path or operator in this place"
	}
	return p.errorf("%s: %s", t, why)
}

func (p *conditionParser) errorf(format string, args ...any) error {
	return fmt.Errorf("column %d: %w", p.at+1, fmt.Errorf(format, args...))
}
