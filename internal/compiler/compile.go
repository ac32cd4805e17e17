// Package compiler finds the mistakes of a spec, and makes a plan and its tasks of it. It also
// resolves the params of a task that runs.
package compiler

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/seed-1177d267/sluice/internal/expr"
	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/plan"
)

// Compile makes the plan and its tasks, held, with ids that ascend in the order of the spec. The
// tasks have the same order, unless a task of the spec stands before one of its parents. Then they
// have an order in which parents come first, as stores need it. The spec must be valid. queue
// returns the id of each queue that Queues names. Compile replaces expressions over params, plan
// and task.
func Compile(s *plan.Spec, now time.Time, queue func(QueueNeed) (plan.QueueID, error)) (plan.Plan, []plan.Task, error) {
	return compile(s, plan.NewIDs(now, 1+len(s.Tasks)), now, queue)
}

// Again is Compile for a plan that was compiled before, maybe by another process. The same spec
// makes the same tasks with the same ids. The id of the plan is the first of a sequence, and the
// ids of its tasks follow it.
func Again(s *plan.Spec, p plan.PlanID, now time.Time, queue func(QueueNeed) (plan.QueueID, error)) (plan.Plan, []plan.Task, error) {
	return compile(s, plan.SameIDs(p.ID), now, queue)
}

func compile(s *plan.Spec, ids *plan.IDs, now time.Time, queue func(QueueNeed) (plan.QueueID, error)) (plan.Plan, []plan.Task, error) {
	p := plan.Plan{
		ID: plan.PlanID{ID: ids.Next()}, Name: s.Name, State: plan.PlanSubmitting, OnFailure: s.OnFailure, Overlap: s.Overlap, Priority: s.Priority, Source: s.Source, File: s.File, By: s.By, Keep: s.Keep, Timeout: s.Timeout,
		Size: len(s.Tasks), Secrets: secret.Kept(s.Secrets), Created: now, Modified: now,
	}
	var err error
	if p.Params, err = jsontext.Marshal(nonNil(s.Params)); err != nil {
		return plan.Plan{}, nil, fmt.Errorf("plan %q: params: %w", s.Name, err)
	}
	s = withImplied(s)
	g := s.Graph()
	ranks := ranks(s, g)
	stepsFirst(s, g, ranks)
	need, queues := needsOf(s), map[QueueNeed]plan.QueueID{}
	for _, n := range Queues(s) {
		if queues[n], err = queue(n); err != nil {
			return plan.Plan{}, nil, err
		}
	}
	p.Finally = slices.ContainsFunc(s.Tasks, func(t plan.TaskSpec) bool { return t.Finally })
	tasks := make([]plan.Task, len(s.Tasks))
	for i := range s.Tasks {
		tasks[i].ID = plan.TaskID{ID: ids.Next()}
	}
	var sources []int // of the items of each
	for i := range s.Tasks {
		if err := compileTask(s, &tasks[i], &s.Tasks[i], &p); err != nil {
			return plan.Plan{}, nil, fmt.Errorf("task %q: %w", s.Tasks[i].Name, err)
		}
		t, spec := &tasks[i], &s.Tasks[i]
		if t.Foreach != nil && len(t.Foreach.Each) > 0 {
			if sources == nil {
				sources = sourcesOf(s, s.Index())
			}
			t.Foreach.Key = s.Tasks[sources[i]].Foreach.Key // its items are those
		}
		t.Queue = queues[need(spec)]
		t.Rank = ranks[i]
		for _, parent := range g.Parents(i) {
			t.Needs = append(t.Needs, tasks[parent].ID)
		}
	}
	return p, parentsFirst(tasks, g), nil
}

// parentsFirst puts the tasks, which are in the order of the graph, in one in which none stands before a task that it needs.
func parentsFirst(tasks []plan.Task, g *plan.Graph) []plan.Task {
	ordered := true
	for i := range tasks {
		for _, parent := range g.Parents(i) {
			ordered = ordered && int(parent) < i
		}
	}
	if ordered {
		return tasks
	}
	order, _ := g.Order()
	out := make([]plan.Task, len(order))
	for k, i := range order {
		out[k] = tasks[i]
	}
	return out
}

// attempts is how often the tasks of a plugin are tried where nothing says it. A worker of Disco says
// ERROR because it counts on another attempt.
var attempts = map[string]int{pluginDisco: 5}

// whenOf returns the when of a task. A task of finally that says nothing runs however the others ended.
func whenOf(t *plan.TaskSpec) plan.When {
	if t.Finally && t.When == "" {
		return plan.AllDone
	}
	return t.When
}

func compileTask(s *plan.Spec, t *plan.Task, spec *plan.TaskSpec, p *plan.Plan) error {
	t.Plan, t.Name, t.Status, t.Created, t.Modified = p.ID, spec.Name, plan.Held, p.Created, p.Created
	t.Definition = plan.Definition{
		Description: spec.Description, Subject: spec.Subject, When: whenOf(spec), SkipOn: spec.SkipOn, Approve: spec.Approve, Foreach: spec.Foreach, Retry: spec.Retry, Timeout: spec.Timeout,
		OnLost: spec.OnLost, MaxRescues: spec.MaxRescues, ContinueOnError: spec.ContinueOnError, Finally: spec.Finally, MaxFailures: spec.MaxFailures, Estimate: spec.Estimate,
	}
	if t.Retry.Attempts == 0 {
		t.Retry.Attempts = attempts[pluginOf(spec)]
	}
	params, err := rawObject(spec.Params)
	if err != nil {
		return err
	}
	t.Secrets = secretsOf(s, params)
	scope := scopeOf(s, p, spec)
	params, err = expr.EachText(params, func(keys []string, text string) (json.RawMessage, error) {
		v, err := expr.Evaluate(text, scope, true)
		if err == nil {
			err = mayBe(pluginOf(spec), keys, v)
		}
		return v, expr.Under(keys, secretsIn(s).Uncited(strconv.Quote(text), err))
	})
	if err != nil {
		return fmt.Errorf("params.%w", err)
	}
	if data, ok := expr.UnquoteJSON(params); ok {
		params = data
	} else if params, err = unquoteGiven(params); err == nil {
		t.Template = true
	} else {
		return err
	}
	switch pluginOf(spec) {
	case plan.DefaultPlugin:
		params = withPlanParams(s, params, t.Template, func(string) bool { return true })
	case pluginHTTP:
		params = withPlanParams(s, params, t.Template, fillsURL(spec))
	}
	t.Params = params
	if t.If, err = compileIf(spec.If, scope); err != nil {
		return err
	}
	if t.Approve, err = compileApprove(spec.Approve, scope); err != nil {
		return secretsIn(s).Uncited("approve: its text", err)
	}
	if t.Subject, err = compileSubject(spec, scope); err != nil {
		return secretsIn(s).Uncited("subject: its text", err)
	}
	if f := spec.Foreach; f != nil {
		f, err = compileForeach(f, scope)
		if err != nil {
			return secretsIn(s).Uncited("foreach: its list", err)
		}
		t.Foreach = f
	}
	return nil
}

// compileApprove replaces the expressions in a question.
func compileApprove(a *plan.Approval, scope expr.Scope) (*plan.Approval, error) {
	if a == nil || !expr.Has(a.Question) {
		return a, nil
	}
	value, err := expr.Evaluate(a.Question, scope, false)
	if err != nil {
		return nil, fmt.Errorf("approve: %w", err)
	}
	c := *a
	c.Question = rules.SubjectText(value)
	return &c, rules.CheckQuestion(c.Question)
}

// compileSubject replaces what is known at submission. The subject of a foreach task keeps the rest for
// its items: see rules.ItemTask.
func compileSubject(spec *plan.TaskSpec, scope expr.Scope) (string, error) {
	text := spec.Subject
	value, err := expr.Evaluate(text, scope, spec.Foreach != nil)
	if err != nil {
		return "", fmt.Errorf("subject: %w", err)
	}
	if value != nil {
		text = rules.SubjectText(value)
	}
	return text, rules.CheckSubject(text)
}

// compileForeach replaces what is known at submission: a list from the plan's params, and paths with expressions in them.
func compileForeach(f *plan.Foreach, scope expr.Scope) (*plan.Foreach, error) {
	c := *f
	if c.Value != "" {
		value, ok, err := expr.Lookup(c.Value, scope)
		if err != nil {
			return nil, fmt.Errorf("foreach: %w", err)
		}
		if ok {
			c.List, c.Value = value, ""
		}
	} else if c.List != nil {
		var err error
		c.List, err = expr.EachText(c.List, func(keys []string, s string) (json.RawMessage, error) {
			v, err := expr.Evaluate(s, scope, false)
			return v, expr.Under(keys, err)
		})
		if err != nil {
			return nil, fmt.Errorf("foreach: %w", err)
		}
	}
	if c.List != nil {
		if _, err := rules.ExpandItems(&c, nil); err != nil {
			return nil, err
		}
	}
	for _, path := range []*string{&c.Lines, &c.Glob} {
		v, err := expr.Evaluate(*path, scope, false)
		if err != nil {
			return nil, fmt.Errorf("foreach: %w", err)
		}
		if v == nil {
			continue
		}
		text, ok := jsontext.TextOf(v)
		if !ok {
			return nil, fmt.Errorf("foreach: %q is %s, not a path", *path, jsontext.Excerpt(v))
		}
		if text == "" {
			return nil, fmt.Errorf("foreach: %q is empty, not a path", *path)
		}
		*path = text
	}
	if c.Glob != "" {
		return &c, CheckPattern(c.Glob)
	}
	return &c, nil
}

// CheckPattern refuses a malformed pattern of files, and one that means something to shells and would
// match nothing here.
func CheckPattern(pattern string) error {
	if !doublestar.ValidatePattern(filepath.ToSlash(filepath.Clean(pattern))) {
		return fmt.Errorf("glob %q is no pattern: a [ or { in it has no end; close it, or write \\[ or \\{ for the sign itself", pattern)
	}
	text := escaped.ReplaceAllString(pattern, "-") // which begins and ends no span
	if is := namedClass.FindString(text); is != "" {
		return fmt.Errorf("glob %q is no pattern: %s names a class as only shells know it; write its letters, as in [a-zA-Z]", pattern, is)
	}
	if is := sequence.FindString(text); is != "" {
		return fmt.Errorf("glob %q is no pattern: %s is a sequence as only shells know it; write [a-c] for letters, or {8,9,10}", pattern, is)
	}
	for _, m := range letters.FindAllStringSubmatch(text, -1) {
		for _, span := range spans.FindAllString(m[1], -1) {
			if ends := []rune(span); ends[0] > ends[2] {
				return fmt.Errorf("glob %q is no pattern: %s ends before it begins; write %c-%c", pattern, span, ends[2], ends[0])
			}
		}
	}
	return nil
}

var (
	escaped    = regexp.MustCompile(`\\.`)
	namedClass = regexp.MustCompile(`\[:\w+:\]`)
	sequence   = regexp.MustCompile(`\{-?\w+\.\.-?\w+(\.\.-?\d+)?\}`)
	letters    = regexp.MustCompile(`\[[!^]?([^\]]*)\]`)
	spans      = regexp.MustCompile(`[^-]-[^-]`)
)

// firstWords are those that an expression may begin with.
var firstWords = []string{"params", "needs", "results", "failures", "item", "plan", "task"}

// scopeOf knows what is known at submission, and leaves the rest for the time when the task runs.
func scopeOf(s *plan.Spec, p *plan.Plan, t *plan.TaskSpec) expr.Scope {
	return func(steps []string) (json.RawMessage, bool, error) {
		word := steps[0]
		if waits(strings.Join(steps, ".")) {
			return nil, false, nil
		}
		switch word {
		case "params":
			return p.Params, true, nil
		case "plan":
			return fmt.Appendf(nil, `{"id":%q,"name":%q}`, p.ID, p.Name), true, nil
		case "task":
			return fmt.Appendf(nil, `{"name":%q}`, t.Name), true, nil
		}
		return nil, false, fmt.Errorf("${{ %s… }} is not known; it is one of %s", word, strings.Join(firstWords, ", "))
	}
}

// pluginHTTP is the plugin that fills the address of a request with params.
const pluginHTTP = "http"

// settingsHTTP are the params that the plugin http reads itself. None of them fills an address.
var settingsHTTP = []string{"body", "headers", "method", "query", "sign", "timeout", "url"}

// fillsURL returns which params the address of an http task names in braces, as in {id} and
// {?page,size}, apart from its expressions.
func fillsURL(t *plan.TaskSpec) func(name string) bool {
	raw, _ := rawObject(t.Params)
	var own struct {
		URL string `json:"url"`
	}
	if json.Unmarshal(raw, &own) != nil { // a task says so itself
		return func(string) bool { return false }
	}
	var names []string
	for _, m := range fieldsOfURL.FindAllStringSubmatch(expressionsInURL.ReplaceAllString(own.URL, ""), -1) {
		for field := range strings.SplitSeq(m[1], ",") {
			names = append(names, fieldName.FindString(field))
		}
	}
	return func(name string) bool { return slices.Contains(names, name) && !slices.Contains(settingsHTTP, name) }
}

var (
	expressionsInURL = regexp.MustCompile(`\$\{\{.*?\}\}`)
	fieldsOfURL      = regexp.MustCompile(`\{[./;?&]?([^{}]*)\}`)
	fieldName        = regexp.MustCompile(`^[A-Za-z0-9_%.]+`)
)

// withPlanParams adds those params of the plan to a task's params that the plugin takes. The task's
// own win. So the params of a plan become variables of a command, and fields of an address.
func withPlanParams(s *plan.Spec, params json.RawMessage, template bool, takes func(name string) bool) json.RawMessage {
	if len(s.Params) == 0 {
		return params
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(params, &m) != nil {
		return params // rawObject has made it an object
	}
	for k, v := range s.Params {
		if _, own := m[k]; own || !takes(k) {
			continue
		}
		if template {
			v = expr.QuoteJSON(v)
		}
		m[k] = v
	}
	params, _ = jsontext.Marshal(m) // raw values that were decoded before
	return params
}

// rawObject returns params as a JSON object.
func rawObject(params any) (json.RawMessage, error) {
	var raw json.RawMessage
	switch v := params.(type) {
	case nil:
		return json.RawMessage("{}"), nil
	case json.RawMessage:
		raw = bytes.TrimSpace(v)
		if len(raw) == 0 || string(raw) == "null" {
			return json.RawMessage("{}"), nil
		}
		if !json.Valid(raw) {
			return nil, fmt.Errorf("params are not JSON: %s", jsontext.Excerpt(raw))
		}
		if name := jsontext.Twice(raw); name != "" {
			return nil, fmt.Errorf("params have %q twice in one object; give it once", name)
		}
	default:
		var err error
		if raw, err = jsontext.Marshal(params); err != nil {
			return nil, fmt.Errorf("params: %w", err)
		}
	}
	if raw[0] != '{' {
		return nil, fmt.Errorf("params are not a JSON object: %s", jsontext.Excerpt(raw))
	}
	return raw, nil
}

func nonNil(m map[string]json.RawMessage) map[string]json.RawMessage {
	if m == nil {
		return map[string]json.RawMessage{}
	}
	return m
}

// ranks returns, for each task, the longest path from its start to the end of the plan in
// microseconds, by estimates. A task without an estimate counts as a second. So without any
// estimates the rank is the number of tasks in a row.
func ranks(s *plan.Spec, g *plan.Graph) []int64 {
	order, _ := g.Order()
	ranks := make([]int64, len(s.Tasks))
	for _, i := range slices.Backward(order) {
		t := &s.Tasks[i]
		own := t.Estimate
		if own <= 0 {
			own = time.Second
		}
		ranks[i] += max(1, own.Microseconds())
		for _, parent := range g.Parents(i) {
			ranks[parent] = max(ranks[parent], ranks[i])
		}
	}
	return ranks
}

// validateExpressions reports expressions that cannot be resolved, as far as that can be told before anything has run.
func validateExpressions(s *plan.Spec, i int, index map[string]int, add addProblem) {
	t := &s.Tasks[i]
	if t.Params != nil {
		raw, err := rawObject(t.Params)
		if err != nil {
			add(i, "params", -1, "task %q: %v", t.Name, err)
		} else {
			validateParams(s, i, raw, add)
		}
	}
	validateIf(s, i, add)
	if t.Approve != nil {
		for _, path := range expr.Paths(t.Approve.Question) {
			switch {
			case waits(path):
				add(i, "approve", -1, "task %q: ${{ %s }} is not known yet when the question is read, at submission; it takes params, plan and task", t.Name, path).Expr = path
			case tells(secretsIn(s), path):
				add(i, "approve", -1, "task %q: ${{ %s }} is secret, and people see the question", t.Name, path).Expr = path
			default:
				validatePath(s, i, "approve", path, add)
			}
		}
	}
	for _, path := range expr.Paths(t.Subject) {
		if head(path) != "item" && waits(path) {
			add(i, "subject", -1, "task %q: ${{ %s }} is not known yet when the subject is read, at submission; it takes params, plan and task, and item of a foreach", t.Name, path).Expr = path
			continue
		}
		if tellsItem(secretsIn(s), path) {
			add(i, "subject", -1, "task %q: ${{ %s }} is secret, and tasks are listed with their subjects", t.Name, path).Expr = path
			continue
		}
		validatePath(s, i, "subject", path, add)
	}
	f := t.Foreach
	if f == nil {
		return
	}
	validateKey(s, i, add)
	if f.Value != "" {
		validatePath(s, i, "foreach", f.Value, add)
		switch word := head(f.Value); {
		case word == "item":
			add(i, "foreach", -1, "task %q: foreach cannot go over ${{ %s }}, which it makes itself", t.Name, f.Value)
		case word != "needs" && waits(f.Value):
			add(i, "foreach", -1, "task %q: foreach goes over params and outputs, and not over ${{ %s }}; let a task return it, and go over its output", t.Name, f.Value)
		}
	}
	validateGroup(s, i, index, add)
	paths := slices.Concat(expr.Paths(f.Lines), expr.Paths(f.Glob))
	_, _ = expr.EachText(f.List, func(_ []string, text string) (json.RawMessage, error) { // a list that is no JSON is found below
		paths = append(paths, expr.Paths(text)...)
		return nil, nil
	})
	for _, path := range paths {
		if waits(path) {
			add(i, "foreach", -1, "task %q: ${{ %s }} is not known yet when this is read, at submission; foreach takes only a whole output, as in foreach: ${{ needs.list }}", t.Name, path).Expr = path
			continue
		}
		validatePath(s, i, "foreach", path, add)
	}
}

// pluginDisco is the plugin whose outputs a foreach may group.
const pluginDisco = "disco"

// validateGroup refuses to group what is neither a param nor the whole output of a task whose output is a list of inputs.
func validateGroup(s *plan.Spec, i int, index map[string]int, add addProblem) {
	t := &s.Tasks[i]
	if f := t.Foreach; f.Group == "" || f.Value == "" {
		return
	}
	steps, err := expr.Parse(t.Foreach.Value)
	switch {
	case err != nil || steps[0] != "needs" && steps[0] != "results": // what is wrong with others is told elsewhere
	case steps[0] != "needs" || len(steps) != 2:
		add(i, "foreach", -1, "task %q: ${{ %s }} cannot be grouped; group takes a param, or all outputs of a task of the plugin disco, as in of: ${{ needs.map }}",
			t.Name, t.Foreach.Value).Expr = t.Foreach.Value
	default:
		if parent, there := index[steps[1]]; there && pluginOf(&s.Tasks[parent]) != pluginDisco {
			add(i, "foreach", -1, "task %q: ${{ %s }} cannot be grouped, since task %q is not of the plugin disco; leave out group, as in foreach: ${{ %[2]s }}",
				t.Name, t.Foreach.Value, steps[1]).Expr = t.Foreach.Value
		}
	}
}

// validateKey checks the key of a foreach: it has expressions, and these are over the item.
func validateKey(s *plan.Spec, i int, add addProblem) {
	t := &s.Tasks[i]
	key := t.Foreach.Key
	if key == "" {
		return
	}
	paths := expr.Paths(key)
	if len(paths) == 0 {
		add(i, "key", -1, "task %q: key is %q for each item; name what tells them apart, as in key: ${{ item.name }}", t.Name, key)
	}
	for _, path := range paths {
		if head(path) != "item" {
			add(i, "key", -1, "task %q: ${{ %s }}: a key is made of the item alone, as in key: ${{ item.name }}", t.Name, path).Expr = path
			continue
		}
		if tellsItem(secretsIn(s), path) {
			add(i, "key", -1, "task %q: ${{ %s }} is secret, and items are listed with their keys; name them by something else", t.Name, path).Expr = path
			continue
		}
		validatePath(s, i, "key", path, add)
	}
}

// validateParams checks the expressions in a task's params. A shell line may have none, because a
// value could be read as commands there.
func validateParams(s *plan.Spec, i int, params json.RawMessage, add addProblem) {
	if !expr.MayHold(params) {
		return
	}
	t := &s.Tasks[i]
	var own map[string]json.RawMessage
	command := pluginOf(t) == plan.DefaultPlugin && json.Unmarshal(params, &own) == nil
	line := command && jsontext.IsText(own[shellLine])
	if command && !line {
		if at, why := expr.InScript(own[shellLine]); at >= 0 {
			add(i, shellLine, at, "task %q: an expression %s", t.Name, why)
		}
	}
	_, _ = expr.EachText(params, func(keys []string, text string) (json.RawMessage, error) { // rawObject has looked whether it is JSON
		if line && keys[0] == shellLine && expr.Has(text) {
			add(i, shellLine, -1, "task %q: an expression in a shell line could become a command; pass the value by env", t.Name)
		}
		for _, path := range expr.Paths(text) {
			validatePath(s, i, "params", path, add)
			if command && keys[0] == "env" && text == "${{ "+path+" }}" && listOf(s, t, path) {
				add(i, "params", -1, "task %q: ${{ %s }} is the list of the outputs of all items, and a variable takes one value; the list is in $SLUICE_PARAMS", t.Name, path).Expr = path
			}
			if given(keys) && waits(path) {
				add(i, "params", -1, "task %q: ${{ %s }} stands in params.%s, which is made of what parents and foreach give; choose another name", t.Name, path, keys[0]).Expr = path
			}
		}
		return nil, nil
	})
}

// listOf reports whether a path leads to the list of the outputs of a foreach task. To a task that goes along
// with it, it leads to that of one item.
func listOf(s *plan.Spec, t *plan.TaskSpec, path string) bool {
	steps, err := expr.Parse(path)
	if err != nil || len(steps) != 2 || steps[0] != "needs" || t.Foreach != nil && slices.Contains(t.Foreach.Each, steps[1]) {
		return false
	}
	return slices.ContainsFunc(s.Tasks, func(other plan.TaskSpec) bool { return other.Name == steps[1] && other.Foreach != nil })
}

// head returns the word that a path begins with, up to its first dot or bracket.
func head(path string) string {
	if i := strings.IndexAny(path, ".["); i >= 0 {
		return path[:i]
	}
	return path
}

// notNeeded reports that an expression is over a task that its own task does not need.
func notNeeded(s *plan.Spec, i int, name string, add func(format string, args ...any) *plan.Problem) {
	t := &s.Tasks[i]
	if t.Finally && slices.ContainsFunc(s.Tasks, func(other plan.TaskSpec) bool { return other.Name == name && !other.Finally }) {
		add("%q is none of finally, so that its output may not be there; have it write what the task reads to a file", name)
		return
	}
	p := add("the task does not need %q; add it to needs", name)
	p.Word, p.Known = name, slices.Clone(t.Parents())
}

func validatePath(s *plan.Spec, i int, key, path string, note addProblem) {
	t := &s.Tasks[i]
	add := func(task int, key string, item int, format string, args ...any) *plan.Problem {
		p := note(task, key, item, format, args...)
		p.Expr = path
		return p
	}
	steps, err := expr.Parse(path)
	if err != nil {
		add(i, key, -1, "task %q: %v", t.Name, err)
		return
	}
	about := func(format string, args ...any) *plan.Problem {
		return add(i, key, -1, "task %q: ${{ %s }}: "+format, append([]any{t.Name, path}, args...)...)
	}
	var known []string
	word := steps[0]
	switch steps[0] {
	case "params":
		if len(steps) == 1 {
			return
		}
		if _, ok := s.Params[steps[1]]; ok {
			return
		}
		for k := range s.Params {
			known = append(known, k)
		}
		slices.Sort(known)
		word = steps[1]
		p := add(i, key, -1, "task %q: ${{ %s }}: the plan has no param %q; add it to params", t.Name, path, word)
		p.Word, p.Known = word, known
		return
	case "needs":
		if len(steps) == 1 || slices.Contains(t.Parents(), steps[1]) {
			return
		}
		notNeeded(s, i, steps[1], about)
		return
	case "results", "failures":
		switch {
		case word == "results" && len(steps) > 1 && !slices.Contains(t.Parents(), steps[1]):
			notNeeded(s, i, steps[1], about)
		case !rules.TellsResults(whenOf(t)):
			add(i, key, -1, "task %q: ${{ %s }}: the task runs only when all that it needs has succeeded; %s are for one with another when", t.Name, path, word)
		case t.Foreach != nil && len(t.Foreach.Each) == 0:
			add(i, key, -1, "task %q: ${{ %s }}: items have no %s of what their foreach task needs; have a task in between return them", t.Name, path, word)
		}
		return
	case "item":
		if t.Foreach == nil {
			add(i, key, -1, "task %q: ${{ %s }}: only a task with foreach or each has an item", t.Name, path)
		}
		return
	case "plan":
		known = []string{"id", "name", "state"}
	case "task":
		known = []string{"name"}
	default:
		known = firstWords
		p := add(i, key, -1, "task %q: ${{ %s }}: %q is not known; it is one of %s", t.Name, path, word, strings.Join(known, ", "))
		p.Word, p.Known = word, known
		return
	}
	if len(steps) != 2 || !slices.Contains(known, steps[1]) {
		p := add(i, key, -1, "task %q: ${{ %s }}: %s has only %s", t.Name, path, steps[0], strings.Join(known, ", "))
		if len(steps) > 1 {
			p.Word = steps[1]
		}
		p.Known = known
	}
}
