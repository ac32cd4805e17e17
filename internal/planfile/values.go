package planfile

import (
	"math"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/seed-1177d267/sluice/internal/duration"
	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

const forever = "forever"

const (
	expressionPattern = `\$\{\{`
	overPathPattern   = `\$\{\{\s*([^'\s]|$)` // an expression that is no text in quotes
)

// Shapes of values that stand at several keys, or need more than a line.
var (
	textShape     = &schema{Type: []string{"string"}, Pattern: `\S`, want: "text", quote: true}
	subjectShape  = &schema{Type: []string{"string", "number"}, Pattern: `\S`, want: "a line of text"}
	nameShape     = &schema{Type: []string{"string"}, Pattern: `^[A-Za-z0-9_][A-Za-z0-9_-]{0,199}$`, want: "a name", must: true, quote: true}
	shellShape    = &schema{Type: []string{"string"}, Pattern: `\S`, Not: &schema{Pattern: expressionPattern}, want: "the name of a shell"}
	pluginShape   = &schema{Type: []string{"string"}, Pattern: `^[A-Za-z0-9_:]+$`, want: "the name of a plugin", quote: true}
	queueShape    = &schema{Type: []string{"string"}, Pattern: `^[A-Za-z0-9_:.][A-Za-z0-9_:.-]*$`, want: "the name of a queue", quote: true}
	durationShape = &schema{Type: []string{"string"}, Pattern: "^" + duration.Pattern + "$", want: "a duration like 30s, 30m or 1h30m"}
	keepShape     = &schema{Type: []string{"string"}, Pattern: "^(" + forever + "|" + duration.Pattern + ")$", want: "a duration like 30d, or forever"}
	countShape    = &schema{Type: []string{"integer"}, Minimum: ptr(1), Maximum: ptr(math.MaxInt32), want: "a whole number like 3"}
	threadsShape  = &schema{Type: []string{"integer"}, Minimum: ptr(1), Maximum: ptr(plan.MaxThreads), want: "a whole number like 4"}
	needShape     = &schema{Type: []string{"string"}, want: "the name of a task", must: true, quote: true}
	pathShape     = &schema{Type: []string{"string"}, Pattern: `\S`, want: "the path of a file", quote: true}
	secretShape   = &schema{Type: []string{"string"}, Pattern: `\S`, want: "the name of a variable of the node, or the path of a file"}
	secretsShape  = &schema{Type: []string{"array"}, Items: &schema{Type: []string{"string"}, Pattern: `\S`, want: "the name of a param", quote: true},
		want: "a list of names of params, like [password]"}
	needsShape = &schema{AnyOf: []*schema{needShape, {Type: []string{"array"}, Items: needShape}},
		want: "a list of names of tasks, like [build, test]"}
	eachShape = &schema{AnyOf: []*schema{needShape, {Type: []string{"array"}, MinItems: 1, Items: needShape}},
		want: "a list of names of tasks with items, like [copy, check]"}
	maxFailuresShape = &schema{AnyOf: []*schema{
		{Type: []string{"integer"}, Minimum: ptr(0)}, {Type: []string{"string"}, Pattern: `^([0-9]+|([0-9]|[1-9][0-9]|100)%)$`},
	}, want: "a number of items, like 3, or a share of them, like 1%"}
	runShape = &schema{AnyOf: []*schema{
		{Type: []string{"string"}, Pattern: `\S`, Not: &schema{Pattern: overPathPattern}},
		{Type: []string{"boolean"}},
		{Type: []string{"array"}, MinItems: 1, Items: &schema{Type: []string{"string", "number", "boolean"}}},
	}, want: "a command line, or a list of a program and its arguments"}
	envShape = &schema{Type: []string{"object"}, want: "a mapping like {NAME: value}",
		PropertyNames: &schema{Pattern: rules.VariablePattern, Not: &schema{Pattern: rules.OwnPattern}},
		AdditionalProperties: &schema{AnyOf: []*schema{
			{Type: []string{"string", "number", "boolean"}},
			{Type: []string{"object"}, Properties: map[string]*schema{"from_env": secretShape}, Required: []string{"from_env"}, AdditionalProperties: false},
			{Type: []string{"object"}, Properties: map[string]*schema{"from_file": secretShape}, Required: []string{"from_file"}, AdditionalProperties: false},
		}}}
	axisShape = &schema{AnyOf: []*schema{{Type: []string{"array"}, MinItems: 1}, {Type: []string{"string"}, Pattern: `^\s*\$\{\{\s*params\.[^}']*\}\}\s*$`}},
		want: "a list of values, or ${{ params.NAME }}"}
	matrixShape = &schema{Type: []string{"object"}, MinProperties: 1, PropertyNames: &schema{Pattern: fieldName.String()}, AdditionalProperties: axisShape,
		want: "a mapping of fields to lists of values, like {os: [linux, mac], go: [\"1.25\", \"1.26\"]}"}
	exclusionShape = &schema{Type: []string{"object"}, MinProperties: 1, want: "a mapping of fields to values, like {os: mac}"}
	excludeShape   = &schema{Type: []string{"array"}, Items: exclusionShape, want: "a list of products, like [{os: mac, go: \"1.25\"}]"}
	foreachShape   = &schema{AnyOf: []*schema{
		{Type: []string{"array"}},
		{Type: []string{"string"}, Pattern: `^\s*\$\{\{[^}']*\}\}\s*$`},
		{Type: []string{"object"}, Properties: map[string]*schema{"lines": pathShape}, Required: []string{"lines"}, AdditionalProperties: false},
		{Type: []string{"object"}, Properties: map[string]*schema{"glob": pathShape}, Required: []string{"glob"}, AdditionalProperties: false},
		{Type: []string{"object"}, Properties: map[string]*schema{"matrix": matrixShape, "exclude": excludeShape}, Required: []string{"matrix"}, AdditionalProperties: false},
		{Type: []string{"object"}, Properties: map[string]*schema{"group": groupingShape, "of": groupedShape}, Required: []string{"group", "of"}, AdditionalProperties: false},
	}, want: "a list, ${{ needs.TASK }} or another expression, {lines: FILE}, {glob: PATTERN}, {matrix: {FIELD: [VALUE, …]}}, or {group: GROUPING, of: EXPRESSION}"}
	groupingShape = &schema{Type: []string{"string"}, Enum: rules.Groupings(), want: "a grouping, like group_label"}
	groupedShape  = &schema{Type: []string{"string"}, Pattern: `^\s*\$\{\{\s*(params|needs)\.[^}']*\}\}\s*$`, want: "${{ params.NAME }} or ${{ needs.TASK }}"}
)

// fieldName is the name of a field of a matrix, which is part of the name of a variable.
var fieldName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

var (
	causeShape = &schema{AnyOf: []*schema{
		{Type: []string{"integer"}, Minimum: ptr(1), Maximum: ptr(255)}, {Type: []string{"string"}, Enum: []string{plan.CauseTimeout, plan.CauseSignal}},
	}, want: "an exit status from 1 to 255, timeout or signal"}
	causesShape = &schema{AnyOf: append([]*schema{{Type: []string{"array"}, MinItems: 1, Items: causeShape}}, causeShape.AnyOf...),
		want: "a list of exit statuses, timeout and signal, like [75, timeout]"}
	statusShape   = &schema{Type: []string{"integer"}, Minimum: ptr(1), Maximum: ptr(255), want: "an exit status from 1 to 255"}
	statusesShape = &schema{AnyOf: []*schema{{Type: []string{"array"}, MinItems: 1, Items: statusShape}, statusShape}, want: "a list of exit statuses, like [75]"}
)

func ptr(f float64) *float64 { return &f }

func whenShape() *schema {
	s := &schema{Type: []string{"string"}, want: "the name of a rule, like all_done"}
	for _, w := range rules.Whens() {
		s.Enum = append(s.Enum, string(w))
	}
	return s
}

// retryKeys are the keys of retry.
func retryKeys() *table[*task] {
	return newTable("retry", retryHints,
		key[*task]{name: "attempts", value: countShape.about("The number of attempts, the first included and those lost with their nodes left out."),
			read: func(t *task, n *yaml.Node) { t.spec.Retry.Attempts = t.r.count(n, "attempts") }},
		key[*task]{name: "delay", value: durationShape.about("The wait before the second attempt. Default: 1s. 0s is no wait."),
			read: func(t *task, n *yaml.Node) { t.spec.Retry.Delay = t.r.delay(n, "delay") }},
		key[*task]{name: "factor", value: (&schema{Type: []string{"number"}, Minimum: ptr(1), want: "a number like 2"}).
			about("The factor of each further wait. Default: 2."),
			read: func(t *task, n *yaml.Node) {
				f, err := strconv.ParseFloat(n.Value, 64)
				if err != nil || math.IsNaN(f) || math.IsInf(f, 0) || f < 1 {
					t.r.errorf(n, "factor is %s; it is a number of at least 1, like 2", n.Value)
					return
				}
				t.spec.Retry.Factor = f
			}},
		key[*task]{name: "max", value: durationShape.about("The longest wait. Default: 1m."),
			read: func(t *task, n *yaml.Node) { t.spec.Retry.Max = t.r.delay(n, "max") }},
		key[*task]{name: "on", value: causesShape.about("The only failures after which it is tried again: exit statuses, timeout, signal."),
			read: func(t *task, n *yaml.Node) { t.spec.Retry.On = t.r.causes(n, "retry.on", causeShape) }},
		key[*task]{name: "not_on", value: causesShape.about("Failures after which it is not tried again."),
			read: func(t *task, n *yaml.Node) { t.spec.Retry.NotOn = t.r.causes(n, "retry.not_on", causeShape) }},
	)
}

// A limit is a queue's limit while it is read.
type limit struct {
	r *reader
	plan.QueueLimit
}

// limitKeys are the keys of a queue.
func limitKeys() *table[*limit] {
	return newTable("a queue", limitHints,
		key[*limit]{name: "threads", value: threadsShape.about("How many of its tasks may run at once, over all nodes and plans."),
			read: func(l *limit, n *yaml.Node) { l.Threads = l.r.countUpTo(n, "threads", plan.MaxThreads) }},
		key[*limit]{name: "plugin", value: pluginShape.about("The plugin of the queue; by default that of its tasks."),
			read: func(l *limit, n *yaml.Node) { l.Plugin, _ = l.r.constant(n, "plugin") }},
	)
}

func limitShape() *schema {
	s := limitKeys().schema()
	s.Required, s.want, s.must = []string{"threads"}, "a mapping like {threads: 4}", true
	return s
}

func queuesShape() *schema {
	return &schema{Type: []string{"object"}, PropertyNames: queueShape, AdditionalProperties: limitShape(),
		want: "a mapping of names to limits, like {imap: {threads: 4}}"}
}

func retryShape() *schema {
	s := retryKeys().schema()
	s.Required, s.want = []string{"attempts"}, "a mapping like {attempts: 3}"
	return s
}

// count reads a whole number of at least 1.
func (r *reader) count(n *yaml.Node, name string) int { return r.countUpTo(n, name, math.MaxInt32) }

func (r *reader) countUpTo(n *yaml.Node, name string, most int64) int {
	v, err := rules.ParseCount(name, n.Value, most)
	if err != nil {
		r.errorf(n, "%v", err)
	}
	return v
}

// duration reads a duration.
func (r *reader) duration(n *yaml.Node, name string) time.Duration {
	if d, known := r.durations[n.Value]; known {
		return d
	}
	d, err := duration.Parse(n.Value)
	switch err {
	case nil:
		r.durations[n.Value] = d
	case duration.ErrLong:
		r.errorf(n, "%s is %q, which is longer than 292 years; leave it out for none", name, n.Value)
	default:
		r.errorf(n, "%s is %q; %v", name, n.Value, err)
	}
	return d
}

// limit reads a duration that is no limit if it is 0.
func (r *reader) limit(n *yaml.Node, name string) time.Duration {
	d := r.duration(n, name)
	if d, err := duration.Parse(n.Value); err == nil && d == 0 {
		r.errorf(n, "%s is 0, which would leave no time; leave it out for none", name)
	}
	return d
}

// delay reads a duration in which 0 means none, and not the default.
func (r *reader) delay(n *yaml.Node, name string) time.Duration {
	if d := r.duration(n, name); d > 0 {
		return d
	}
	return plan.NoDelay
}

// A variable is one of the environment: its value is JSON, a text or {"from_env": NAME} or {"from_file": PATH}.
type variable struct {
	name  string
	value []byte
}

// overlay returns the variables of both, in the order of their names; over wins.
func overlay(under, over []variable) []variable {
	if len(over) == 0 {
		return under
	}
	all := slices.Clone(over)
	for _, v := range under {
		if !slices.ContainsFunc(over, func(o variable) bool { return o.name == v.name }) {
			all = append(all, v)
		}
	}
	sort.Slice(all, func(a, b int) bool { return all[a].name < all[b].name })
	return all
}

// readEnv reads the variables of a mapping.
func (r *reader) readEnv(n *yaml.Node) []variable {
	var own []variable
	r.entries(n, "variable", func(k, v *yaml.Node) {
		if err := rules.CheckVariable(k.Value); err != nil {
			r.errorf(k, "%v", err)
			return
		}
		v = follow(v)
		switch kindOf(v) {
		case text, number, boolean: // as it is written
			if err := rules.CheckNUL("a variable", v.Value); err != nil {
				r.errorf(v, "%v", err)
				return
			}
			r.noteExpressions(v)
			own = append(own, variable{k.Value, jsontext.AppendText(nil, v.Value)})
		case mapping:
			if secret := r.readSecret(v); secret != nil {
				own = append(own, variable{k.Value, secret})
			}
		case null:
			r.errorf(k, `%s has no value; write "" for an empty one`, k.Value)
		default:
			r.errorf(v, "%s must be text, {from_env: NAME} or {from_file: PATH}, not %s", k.Value, kindOf(v))
		}
	})
	return overlay(nil, own)
}

// readSecret reads where a node finds a value that is not to be in the store.
func (r *reader) readSecret(n *yaml.Node) []byte {
	known := []string{"from_env", "from_file"}
	var secret []byte
	count := 0
	r.entries(n, "key", func(k, v *yaml.Node) {
		count++
		if !slices.Contains(known, k.Value) {
			r.add(fault{at: r.at(k), text: "a secret has no key " + strconv.Quote(k.Value), word: k.Value, known: known, none: "; it has from_env or from_file"})
			return
		}
		if !r.fits(entry{k, v}, k.Value, text, secretShape) {
			return
		}
		v = follow(v)
		value, ok := r.constant(v, k.Value)
		switch {
		case !ok:
		case k.Value == "from_env" && rules.CheckVariableSyntax(value) != nil:
			r.errorf(v, "%v", rules.CheckVariableSyntax(value))
		case k.Value == "from_file":
			secret = append(jsontext.AppendText([]byte(`{"from_file":`), r.absolute(value)), '}')
		default:
			secret = append(jsontext.AppendText([]byte(`{"from_env":`), value), '}')
		}
	})
	if count != 1 {
		r.errorf(n, "a secret is {from_env: NAME} or {from_file: PATH}, one of them")
		return nil
	}
	return secret
}

// causes reads ways to fail: a list, or one.
func (r *reader) causes(n *yaml.Node, key string, each *schema) plan.Causes {
	all := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		all = n.Content
	}
	var words []string
	for _, c := range all {
		c = follow(c)
		if !r.fits(entry{c, c}, "a way to fail", text|number, each) {
			return ""
		}
		if _, err := plan.NewCauses([]string{c.Value}); err != nil {
			r.errorf(c, "%s: %q is not %s", key, c.Value, each.want)
			return ""
		}
		words = append(words, c.Value)
	}
	causes, err := plan.NewCauses(words)
	if err != nil {
		r.errorf(n, "%s names nothing; give %s", key, each.want)
	}
	return causes
}
