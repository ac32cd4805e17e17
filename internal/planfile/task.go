package planfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/expr"
	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// A task is a task while it is read.
type task struct {
	r      *reader
	spec   *plan.TaskSpec
	run    []byte // JSON, as are the next; nil for what is not there
	shell  []byte
	dir    string
	stdin  []byte
	env    []variable
	params []byte
	files  string // the path of a foreach over files, as it is written
}

var taskShape = &schema{Type: []string{"object"}, want: "a mapping with run or plugin, like {run: make}", must: true}

// ofCommands are the keys that say how a command runs, and mean nothing to other plugins.
var ofCommands = []string{"run", "shell", "env", "dir", "stdin"}

// taskKeys are the keys of a task.
func taskKeys() *table[*task] {
	return newTable(aTask, taskHints,
		key[*task]{name: "description", value: (&schema{Type: []string{"string"}, want: "text", quote: true}).about("A text for people."),
			read: func(t *task, n *yaml.Node) { t.spec.Description = n.Value }},
		key[*task]{name: "subject", value: subjectShape.about("What the task is about, such as an order number: unfinished tasks are found by it."),
			read: func(t *task, n *yaml.Node) {
				if text, ok := t.r.text(n, "subject"); ok {
					t.spec.Subject = text
				}
			}},
		key[*task]{name: "run", value: runShape.about("A line for sh -e -c, or a list: a program and its arguments."),
			read: (*task).readRun},
		key[*task]{name: "shell", value: shellShape.about("Another shell for the line, such as bash."),
			read: func(t *task, n *yaml.Node) {
				if shell, ok := t.r.constant(n, "shell"); ok {
					t.shell = jsontext.AppendText(nil, shell)
				}
			}},
		key[*task]{name: "env", value: envShape.about("Environment variables of the command."),
			read: func(t *task, n *yaml.Node) { t.env = t.r.readEnv(n) }},
		key[*task]{name: "dir", value: textShape.about("The folder in which the command runs, relative to the plan file's folder, which is the default."),
			read: func(t *task, n *yaml.Node) { t.dir = t.r.readDir(n) }},
		key[*task]{name: "stdin", value: (&schema{Type: []string{"string"}, Enum: []string{"params"}, want: "params"}).
			about("params: the command reads its params as JSON. Default: nothing."),
			read: (*task).readStdin},
		key[*task]{name: "plugin", value: pluginShape.about("The plugin that does the task, instead of a command."),
			read: func(t *task, n *yaml.Node) { t.spec.Plugin, _ = t.r.constant(n, "plugin") }},
		key[*task]{name: "params", value: paramsShape.about("The params of the plugin."),
			read: func(t *task, n *yaml.Node) { t.params = t.r.appendJSON(nil, n) }},
		key[*task]{name: "needs", value: needsShape.about("The parents, which have to finish first."),
			read: (*task).readNeeds},
		key[*task]{name: "when", value: whenShape().about("Whether it runs, given how its parents ended. Default: all_succeeded."),
			read: (*task).readWhen},
		key[*task]{name: "approve", value: (&schema{Type: []string{"string"}, Pattern: `\S`, want: "a question, like Switch the mailboxes?", quote: true}).about("A question that a person answers. The task runs nothing, and timeout limits the wait."),
			read: func(t *task, n *yaml.Node) {
				if err := rules.CheckQuestion(n.Value); err != nil {
					t.r.errorf(n, "%v", err)
					return
				}
				t.r.noteExpressions(n)
				t.approval().Question = n.Value
			}},
		key[*task]{name: "not_submitter", value: (&schema{Type: []string{"boolean"}, want: "true or false"}).about("Whoever submitted the plan cannot answer."),
			read: func(t *task, n *yaml.Node) { t.approval().NotSubmitter = strings.EqualFold(n.Value, "true") }},
		key[*task]{name: "if", value: (&schema{Type: []string{"string", "boolean"}, want: "a condition, like needs.check.changed > 0", quote: true}).
			about("A condition on values, asked as an attempt begins. If it does not hold, the task is skipped. Each item is asked."),
			read: (*task).readIf},
		key[*task]{name: "skip_on", value: statusesShape.about("The exit statuses by which the command says that there was nothing to do: the task is skipped."),
			read: (*task).readSkipOn},
		key[*task]{name: "foreach", value: foreachShape.about("Makes a task for each item."),
			read: (*task).readForeach},
		key[*task]{name: "each", value: eachShape.about("Makes a task for each item of these tasks. It needs the items with the same index."),
			read: (*task).readEach},
		key[*task]{name: "key", value: (&schema{Type: []string{"string"}, Pattern: `\$\{\{\s*item\b`, want: "a text with an expression over the item, like ${{ item.name }}"}).
			about("Names each item, for people and commands: copy[anna]. Default: the item itself, if it is a text or a number."),
			read: (*task).readKey},
		key[*task]{name: "max_failures", value: maxFailuresShape.about("How many items may fail, as a number or a share such as 1%, rounded down. Beyond that no more items start."),
			read: func(t *task, n *yaml.Node) {
				if err := plan.CheckMaxFailures(n.Value); err != nil {
					t.r.errorf(n, "%v", err)
					return
				}
				t.spec.MaxFailures = n.Value
			}},
		key[*task]{name: "queue", value: queueShape.about("The queue of the task. Default: the queue named as the plugin."),
			read: func(t *task, n *yaml.Node) { t.spec.Queue, _ = t.r.constant(n, "queue") }},
		key[*task]{name: "retry", value: retryShape().about("The number of attempts, and the waits between them."),
			read: func(t *task, n *yaml.Node) {
				found := make([]entry, len(t.r.retryKeys.keys))
				all := t.r.retryKeys.collect(t.r, n, found)
				t.r.retryKeys.apply(t.r, t, found)
				if i := t.r.retryKeys.index["attempts"]; found[i].k == nil && all {
					t.r.errorf(n, "retry does not say how often; add attempts, which counts the first too, as in {attempts: 3}")
				}
			}},
		key[*task]{name: "timeout", value: durationShape.about("The limit of one attempt."),
			read: func(t *task, n *yaml.Node) { t.spec.Timeout = t.r.duration(n, "timeout") }},
		key[*task]{name: "on_lost", value: (&schema{Type: []string{"string"}, Enum: []string{string(plan.OnLostRetry), string(plan.OnLostFail)}, want: "retry or fail"}).
			about("If its node dies while it runs: retry queues it again; fail is for a task that must not run twice. Default: as its queue says, else retry."),
			read: func(t *task, n *yaml.Node) {
				word, _ := t.r.constant(n, "on_lost")
				t.spec.OnLost = plan.OnLost(word)
			}},
		key[*task]{name: "max_rescues", value: countShape.about("How often it is queued again after its node died. Default: 3."),
			read: func(t *task, n *yaml.Node) {
				if n.Value == "0" {
					t.r.errorf(n, "%v", rules.ErrNoRescues)
					return
				}
				t.spec.MaxRescues = t.r.count(n, "max_rescues")
			}},
		key[*task]{name: "continue-on-error", value: (&schema{Type: []string{"boolean"}, want: "true or false"}).
			about("Its children and the plan count its failure as success."),
			read: func(t *task, n *yaml.Node) { t.spec.ContinueOnError = strings.EqualFold(n.Value, "true") }},
		key[*task]{name: "estimate", value: durationShape.about("How long it probably runs. The longest path to the end goes first."),
			read: func(t *task, n *yaml.Node) { t.spec.Estimate = t.r.duration(n, "estimate") }},
	)
}

// Most bytes that the params of all tasks may have in all; what plan and defaults give to each task counts each time.
const maxParams = 512 << 20

// readTask reads one task with its inherited entries.
func (r *reader) readTask(spec *plan.TaskSpec, node *taskNode) {
	clear(r.own)
	r.exprs = nil
	all := r.taskKeys.collect(r, node.body, r.own)
	r.inherit(r.own)
	t := task{r: r, spec: spec}
	r.taskKeys.apply(r, &t, r.own)
	if spec.Queue == "" && spec.Approve == nil {
		spec.Queue = r.queue
	}
	if !t.checkKeys(r.own) && all && !r.has("run") && !r.has("plugin") && !r.has("approve") {
		r.errorf(node.name, "task %q says nothing to do; give it run: COMMAND, or plugin: NAME and params:", spec.Name)
	}
	node.exprs = r.exprs
	r.place(&t)
	params := t.params
	switch {
	case spec.Approve != nil:
		spec.Plugin, spec.Queue, params = plan.ApprovalPlugin, "", nil // of others a fault was noted
	case r.has("run"):
		params = t.command()
	case spec.Plugin == ofWorkers:
		params = t.withDir(params)
	case spec.Plugin == ofRequests:
		params = t.placed(params)
	}
	if params != nil {
		spec.Params = json.RawMessage(params)
	}
	if before := r.size; before <= r.most {
		if r.size += len(params); r.size > r.most {
			r.errorf(node.name, "the tasks of this plan have more than %d MiB of params in all; keep large values in files", r.most>>20)
		}
	}
}

// has reports whether the task that is being read has the key, its own or by default.
func (r *reader) has(name string) bool { return r.own[r.taskKeys.index[name]].k != nil }

// inherit completes a task's entries with the defaults. env is merged elsewhere. If the task does
// its work in another way than the defaults (run or plugin), it inherits none of the keys of that
// way.
func (r *reader) inherit(own []entry) {
	run, plugin := r.taskKeys.index["run"], r.taskKeys.index["plugin"]
	runs := own[run].k != nil || own[plugin].k == nil && r.defaults[run].k != nil
	plugs := own[plugin].k != nil || own[run].k == nil && r.defaults[plugin].k != nil
	for i, d := range r.defaults {
		name := r.taskKeys.keys[i].name
		switch {
		case d.k == nil || own[i].k != nil || name == "env" || own[r.taskKeys.index["approve"]].k != nil: // a question is no work that defaults are for
		case name == "max_failures" && own[r.taskKeys.index["foreach"]].k == nil && own[r.taskKeys.index["each"]].k == nil: // it has no items
		case plugs && slices.Contains(ofCommands, name):
		case runs && (name == "plugin" || name == "params"):
		default:
			own[i] = d
		}
	}
}

// checkKeys notes keys that do not go together, and reports whether it did.
func (t *task) checkKeys(found []entry) bool {
	r := t.r
	key := func(name string) *yaml.Node { return found[r.taskKeys.index[name]].k }
	run, plugin, params := key("run"), key("plugin"), key("params")
	switch {
	case key("approve") != nil:
		misplaced := false
		for _, name := range append(slices.Clone(ofCommands), "plugin", "params", "queue") {
			if k := key(name); k != nil {
				misplaced = true
				r.errorf(k, "%s and approve exclude each other: a task with approve runs nothing; put what is to run into a task that needs it", name)
			}
		}
		if v := found[r.taskKeys.index["timeout"]].v; v != nil {
			r.limit(v, "timeout")
		}
		return misplaced
	case key("not_submitter") != nil:
		t.spec.Approve = nil
		r.errorf(key("not_submitter"), "not_submitter says who may not answer a question; write it beside approve")
	case run != nil && plugin != nil:
		r.errorf(plugin, "run and plugin exclude each other; drop one of them")
	case t.spec.Plugin == plan.DefaultPlugin:
		r.errorf(plugin, "the plugin %s is what runs commands; write run: COMMAND instead", plan.DefaultPlugin)
	case run != nil && params != nil:
		r.errorf(params, "params are for a plugin; a command gets values by env:, or by params: of the plan")
	case plugin != nil:
		misplaced := false
		for _, name := range ofCommands {
			if k := key(name); k != nil {
				misplaced = true
				r.errorf(k, "%s is for commands (run); a plugin gets all it needs by params:", name)
			}
		}
		return misplaced
	case key("shell") != nil && len(t.run) > 0 && t.run[0] == '[':
		r.errorf(key("shell"), compiler.UnusedShell)
	default:
		return false
	}
	return true
}

// ofWorkers is the plugin whose tasks run a program that may be named relative to the plan's dir.
const ofWorkers = "disco"

// withDir adds the folder of the plan to the params of such a task, unless they have another one.
func (t *task) withDir(params []byte) []byte {
	var own map[string]json.RawMessage
	if params != nil && json.Unmarshal(params, &own) != nil || own["dir"] != nil {
		return params
	}
	dir := t.r.workDir
	if dir == "" {
		dir = expr.Quote(t.r.dir)
	}
	if dir == "" {
		return params
	}
	b := []byte("{")
	if len(own) > 0 {
		b = append(bytes.TrimSuffix(bytes.TrimSpace(params), []byte("}")), ',')
	}
	return append(jsontext.AppendText(append(b, `"dir":`...), dir), '}')
}

// ofRequests is the plugin that takes secrets for its headers, its query and its signatures, as env does for variables.
const ofRequests = "http"

// placed returns the params of such a task with absolute paths of the files of its secrets.
func (t *task) placed(params []byte) []byte {
	var own map[string]json.RawMessage
	if !bytes.Contains(params, []byte(`"from_file"`)) || json.Unmarshal(params, &own) != nil {
		return params
	}
	for _, key := range []string{"headers", "query"} {
		var values map[string]json.RawMessage
		if json.Unmarshal(own[key], &values) != nil { // the plugin says what is wrong with it
			continue
		}
		for name, value := range values {
			values[name] = t.placedSecret(value)
		}
		own[key], _ = jsontext.Marshal(values)
	}
	var keys []json.RawMessage
	switch raw := own["sign"]; {
	case raw == nil:
	case json.Unmarshal(raw, &keys) == nil:
		for i := range keys {
			keys[i] = t.placedSecret(keys[i])
		}
		own["sign"], _ = jsontext.Marshal(keys)
	default:
		own["sign"] = t.placedSecret(raw)
	}
	params, _ = jsontext.Marshal(own) // of JSON that was just decoded
	return params
}

// placedSecret returns a value with the absolute path of its file, if it is {from_file: PATH}.
func (t *task) placedSecret(value json.RawMessage) json.RawMessage {
	var from map[string]string
	if json.Unmarshal(value, &from) != nil || len(from) != 1 || from["from_file"] == "" {
		return value
	}
	return append(jsontext.AppendText([]byte(`{"from_file":`), t.r.absolute(from["from_file"])), '}')
}

// command writes the params of the exec plugin.
func (t *task) command() []byte {
	r := t.r
	b := append(make([]byte, 0, len(t.run)+len(r.dir)+32), `{"run":`...)
	if t.run == nil {
		b = append(b, `""`...) // a fault was noted
	}
	b = append(b, t.run...)
	if t.shell != nil {
		b = append(append(b, `,"shell":`...), t.shell...)
	}
	dir := t.dir
	if dir == "" {
		dir = r.workDir
	}
	if dir == "" {
		dir = expr.Quote(r.dir)
	}
	if dir != "" {
		b = jsontext.AppendText(append(b, `,"dir":`...), dir)
	}
	if t.stdin != nil {
		b = append(append(b, `,"stdin":`...), t.stdin...)
	}
	if env := overlay(r.env, t.env); len(env) > 0 {
		b = append(b, `,"env":`...)
		for i, v := range env {
			b = append(b, "{,"[min(i, 1)])
			b = append(append(jsontext.AppendText(b, v.name), ':'), v.value...)
		}
		b = append(b, '}')
	}
	return append(b, '}')
}

func (t *task) approval() *plan.Approval {
	if t.spec.Approve == nil {
		t.spec.Approve = &plan.Approval{}
	}
	return t.spec.Approve
}

func (t *task) readRun(n *yaml.Node) {
	if n.Kind == yaml.SequenceNode {
		t.readArguments(n)
		return
	}
	line, ok := t.r.text(n, "run")
	if !ok || expr.Unclosed(line) != "" { // which was noted
		return
	}
	if expr.Has(line) {
		t.refuseExpressions(n, "an expression in a shell line could become a command", inLine)
		return
	}
	t.run = jsontext.AppendText(nil, line)
}

// refuseExpressions reports each expression of a text that a program reads as code, and each param of these that the plan lacks.
// instead says how a command has the value of an expression without its being read as code.
func (t *task) refuseExpressions(n *yaml.Node, why string, instead func(path string) string) {
	before := map[string]int{}
	for _, path := range expr.Paths(n.Value) {
		before[path]++
		way := instead(path)
		if t.listsOutputs(path) {
			way = fmt.Sprintf("the value is the list of the outputs of all items, which no variable takes; the command reads it as %s in the JSON file \"$SLUICE_PARAMS\", or with stdin: params in its standard input", path)
		}
		f := fault{at: t.r.expressionAt(n, path, before[path]), text: why + "; " + way}
		if name, ok := variableOf(path); ok && strings.HasPrefix(path, "params.") && t.r.spec.Params[name] == nil {
			f.text += fmt.Sprintf("; the plan has no param %q", name)
			f.word, f.known = name, slices.Sorted(maps.Keys(t.r.spec.Params))
		}
		t.r.add(f)
	}
}

// listsOutputs reports whether a path leads to the outputs of all items of a task that stands above in the file.
func (t *task) listsOutputs(path string) bool {
	name, ok := strings.CutPrefix(path, "needs.")
	if each := t.r.own[t.r.taskKeys.index["each"]].v; !ok || each != nil && (each.Value == name || slices.ContainsFunc(each.Content, func(n *yaml.Node) bool { return n.Value == name })) {
		return false // of the items that it goes along with, it has the output of one
	}
	return slices.ContainsFunc(t.r.spec.Tasks, func(above plan.TaskSpec) bool { return above.Name == name && above.Foreach != nil })
}

// inLine says how a shell line has the value of an expression.
func inLine(path string) string {
	name, ok := variableOf(path)
	if ok {
		return fmt.Sprintf("write \"$%s\", the variable that holds it", name)
	}
	return byEnv(path) + " and write \"$VALUE\""
}

func byEnv(path string) string {
	return fmt.Sprintf("pass the value by env: {VALUE: \"${{ %s }}\"}", path)
}

// inScript says how the script at an argument of a list, which a program reads, has the value of an
// expression.
func inScript(argv []string, i int, program string) func(path string) string {
	return func(path string) string {
		name, ok := variableOf(path)
		if !ok {
			name = "VALUE"
		}
		read := expr.StandardInput(argv, i, program, name)
		switch {
		case ok && read != "":
			return read
		case ok:
			return fmt.Sprintf("read the environment variable %s in the script", name)
		case read != "":
			return byEnv(path) + "; " + read
		}
		return byEnv(path) + " and read the environment variable VALUE in the script"
	}
}

// variablePath is an expression whose value a command has as a variable.
var variablePath = regexp.MustCompile(`^(?:params\.([a-z][a-z0-9_]*)|(item))$`)

// variableOf returns the name of the variable that holds the value of an expression, as docs/plan-files.md says under "What a command sees".
func variableOf(path string) (string, bool) {
	m := variablePath.FindStringSubmatch(path)
	if m == nil || strings.HasSuffix(path, "_proxy") || slices.Contains(ofCommands, m[1]) || m[1] == "needs" || m[1] == "args" || m[1] == "results" || m[1] == "failures" {
		return "", false
	}
	return m[1] + m[2], true
}

func (t *task) readArguments(n *yaml.Node) {
	if len(n.Content) == 0 {
		t.r.errorf(n, "run is an empty list; give it a program and its arguments")
		return
	}
	b, argv := []byte{'['}, make([]string, len(n.Content))
	for i, c := range n.Content {
		c = follow(c)
		switch kindOf(c) {
		case text, number, boolean: // as they are written
		case null:
			t.r.errorf(c, `an argument is missing here; write "" for an empty one`)
		default:
			t.r.errorf(c, "an argument must be text, not %s", kindOf(c))
		}
		if err := rules.CheckNUL("an argument", c.Value); err != nil {
			t.r.errorf(c, "%v", err)
		}
		if i > 0 {
			b = append(b, ',')
		} else if strings.TrimSpace(c.Value) == "" && kindOf(c) == text {
			t.r.errorf(c, "the program to run is empty; name one")
		}
		t.r.noteExpressions(c)
		b = jsontext.AppendText(b, c.Value)
		argv[i] = c.Value
	}
	hasExpression := func(word string) bool { return expr.Unclosed(word) == "" && len(expr.Paths(word)) > 0 }
	if i, program := expr.Script(argv, hasExpression); i >= 0 {
		t.refuseExpressions(follow(n.Content[i]), fmt.Sprintf("an expression in a script of %s could be read as code", program), inScript(argv, i, program))
		return
	}
	t.run = append(b, ']')
}

func (t *task) readStdin(n *yaml.Node) {
	word, ok := t.r.constant(n, "stdin")
	if ok && word != "params" {
		t.r.errorf(n, "stdin is %q; it can only be params, or be left out for an empty one", word)
		return
	}
	t.stdin = jsontext.AppendText(nil, word)
}

// readNeeds reads a list of names, or one name.
func (t *task) readNeeds(n *yaml.Node) {
	t.spec.Needs = t.names(n, "a need")
}

// names reads a list of names of tasks, or one name.
func (t *task) names(n *yaml.Node, what string) []string {
	if n.Kind == yaml.ScalarNode {
		return []string{n.Value}
	}
	names := make([]string, 0, len(n.Content))
	for _, c := range n.Content {
		if c = follow(c); t.r.fits(entry{c, c}, what, text, needShape) {
			names = append(names, c.Value)
		}
	}
	return names
}

// readKey reads what names the items of a foreach.
func (t *task) readKey(n *yaml.Node) {
	switch {
	case t.r.has("each"):
		t.r.errorf(n, "with each, the items have the keys of the tasks that it names; write key beside their foreach")
	case !t.r.has("foreach"):
		t.r.errorf(n, "key names the items of a foreach, and this task has none")
	case t.spec.Foreach != nil: // else a fault was noted
		if text, ok := t.r.text(n, "key"); ok {
			t.r.noteExpressions(n)
			t.spec.Foreach.Key = text
		}
	}
}

// readEach reads the tasks whose items a task goes along with: a list of names, or one name.
func (t *task) readEach(n *yaml.Node) {
	if t.r.has("foreach") {
		t.r.errorf(n, "each and foreach exclude each other; with each, the items are those of the tasks that it names")
		return
	}
	names := t.names(n, "a task")
	if len(n.Content) == 0 && n.Kind == yaml.SequenceNode {
		t.r.errorf(n, "each is an empty list; name the tasks whose items it goes over")
		return
	}
	t.spec.Foreach = &plan.Foreach{Each: names}
}

// readIf reads a condition. Its paths stand in it without the braces that other texts need.
func (t *task) readIf(n *yaml.Node) {
	if paths := expr.Paths(n.Value); len(paths) > 0 {
		t.r.errorf(n, "if is a condition as a whole; write it without the braces, as in if: %s", strings.TrimSpace(bare.ReplaceAllString(n.Value, "$1")))
		return
	}
	if _, err := expr.ParseCondition(n.Value); err != nil {
		t.r.errorf(n, "if: %v", err)
		return
	}
	t.spec.If = n.Value
}

var bare = regexp.MustCompile(`\$\{\{\s*(.*?)\s*\}\}`)

func (t *task) readSkipOn(n *yaml.Node) {
	if t.spec.SkipOn = t.r.causes(n, "skip_on", statusShape); compiler.CheckSkipOn(t.spec.SkipOn) != nil {
		t.r.errorf(n, "%v", compiler.CheckSkipOn(t.spec.SkipOn))
	}
}

func (t *task) readWhen(n *yaml.Node) {
	if paths := expr.Paths(n.Value); len(paths) > 0 {
		condition := paths[0]
		if _, err := expr.Parse(condition); err == nil {
			condition += " == true"
		}
		t.r.add(fault{at: t.r.expressionAt(n, "", 1),
			text: "when cannot have an expression; it is a rule about how those that it needs ended. A condition on values is if, as in if: " + condition})
		return
	}
	word, ok := t.r.constant(n, "when")
	if !ok {
		return
	}
	rule, other := whenHints[word]
	if other {
		t.r.errorf(n, "when is %q; the rule is called %s here", word, rule)
		word = string(rule) // what follows is judged by the rule that is meant
	}
	t.spec.When = plan.When(word)
}

// readForeach reads over what a task is repeated.
func (t *task) readForeach(n *yaml.Node) {
	f := &plan.Foreach{}
	switch n.Kind {
	case yaml.SequenceNode:
		f.List = t.r.appendJSON(nil, n)
	case yaml.ScalarNode:
		if f.Value = t.wholeExpression(n, "foreach", foreachShape); f.Value == "" {
			return
		}
		t.checkItems(n, f)
	default:
		read := t.readFiles
		if earlier(n.Content, "matrix") != nil || earlier(n.Content, "exclude") != nil {
			read = t.readMatrix
		} else if earlier(n.Content, "group") != nil || earlier(n.Content, "of") != nil {
			read = t.readGroup
		}
		if !read(n, f) {
			return
		}
	}
	t.spec.Foreach = f
}

// wholeExpression returns the path of a text that is one expression; "" if it is not.
func (t *task) wholeExpression(n *yaml.Node, name string, shape *schema) string {
	whole := strings.TrimSpace(n.Value)
	paths := expr.Paths(whole)
	if len(paths) != 1 || !strings.HasPrefix(whole, "${{") || strings.Index(whole, "}}") != len(whole)-2 {
		t.r.errorf(n, "%s must be %s, not the text %q", name, shape.want, n.Value)
		return ""
	}
	t.r.noteExpressions(n)
	return paths[0]
}

// checkItems looks whether what a task is repeated over is a list, if that is known already.
func (t *task) checkItems(n *yaml.Node, f *plan.Foreach) {
	path := f.Value
	word, _, _ := strings.Cut(path, ".")
	switch word {
	case "plan", "task":
		t.r.errorf(n, "${{ %s }} is not a list", path)
	case "params":
		if value, _, err := expr.Lookup(path, t.r.scope); err == nil {
			if _, err := rules.ExpandItems(&plan.Foreach{List: value, Group: f.Group}, nil); err != nil {
				is := "${{ " + path + " }}"
				t.r.errorf(n, "%v", t.r.secrets().Uncited(is, fmt.Errorf("%s: %w", is, err)))
			}
		}
	}
}

// readGroup reads {group: GROUPING, of: EXPRESSION}. The task needs the parent that it groups the outputs of.
func (t *task) readGroup(n *yaml.Node, f *plan.Foreach) bool {
	ok := true
	t.r.entries(n, "key", func(k, v *yaml.Node) {
		switch k.Value {
		case "group":
			if !t.r.fits(entry{k, v}, "group", text, groupingShape) {
				ok = false
				return
			}
			if f.Group = follow(v).Value; rules.CheckGrouping(f.Group) != nil {
				t.r.add(fault{at: t.r.at(follow(v)), text: rules.CheckGrouping(f.Group).Error(), word: f.Group, known: rules.Groupings()})
				ok = false
			}
		case "of":
			if !t.r.fits(entry{k, v}, "of", text, groupedShape) {
				ok = false
				return
			}
			f.Value = t.wholeExpression(follow(v), "of", groupedShape)
			ok = ok && f.Value != ""
		default:
			t.r.add(fault{at: t.r.at(k), text: fmt.Sprintf("a foreach with a group has no key %q", k.Value), word: k.Value,
				known: []string{"group", "of"}, none: "; it has group and of"})
			ok = false
		}
	})
	switch {
	case !ok:
		return false
	case f.Group == "":
		t.r.errorf(n, "of says which inputs are grouped, and not how; add group, as in {group: split, of: \"${{ params.inputs }}\"}")
		return false
	case f.Value == "":
		t.r.errorf(n, "group says how inputs are grouped, and not which; add of, as in {group: split, of: \"${{ params.inputs }}\"}")
		return false
	}
	t.checkItems(follow(earlier(n.Content, "of")), f)
	from, tasks := rules.ListFrom(f), follow(t.r.found[t.r.planKeys.index["tasks"]].v)
	if earlier(tasks.Content, from) != nil && !slices.Contains(t.spec.Needs, from) { // else it is a mistake, which is found later
		t.spec.Needs = append(t.spec.Needs, from)
	}
	return true
}

// readFiles reads {lines: FILE} or {glob: PATTERN}.
func (t *task) readFiles(n *yaml.Node, f *plan.Foreach) bool {
	ok := true
	count := 0
	t.r.entries(n, "key", func(k, v *yaml.Node) {
		into := map[string]*string{"lines": &f.Lines, "glob": &f.Glob}[k.Value]
		count++
		switch {
		case into == nil:
			t.r.add(fault{at: t.r.at(k), text: fmt.Sprintf("foreach has no key %q", k.Value), word: k.Value,
				known: []string{"lines", "glob", "matrix", "group"}, none: "; it has lines, glob, matrix or group"})
			ok = false
		case !t.r.fits(entry{k, v}, k.Value, text, pathShape):
			ok = false
		default:
			path, good := t.r.text(follow(v), k.Value)
			t.files = path
			if value, err := expr.Substitute(jsontext.AppendText(nil, path), t.r.scope); good && err == nil && value[0] != '"' {
				t.r.errorf(follow(v), "%s: %s is not the path of a file", path, value)
				good = false
			}
			// A command's node takes paths from the command's dir; other plugins have none.
			if !t.r.has("run") {
				path = t.r.absolute(path)
			}
			if pattern, known := t.r.known(path); k.Value == "glob" && known {
				if err := compiler.CheckPattern(pattern); err != nil {
					t.r.errorf(follow(v), "%v", err)
				}
			}
			*into, ok = path, ok && good
		}
	})
	if ok && count != 1 {
		t.r.errorf(n, "foreach takes one of lines, glob, matrix and group, as in {lines: FILE}")
		return false
	}
	return ok
}
