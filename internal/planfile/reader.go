package planfile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/seed-1177d267/sluice/internal/expr"
	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/internal/textfile"
	"github.com/seed-1177d267/sluice/plan"
)

// The names of tables in errors.
const (
	aPlan = "a plan"
	aTask = "a task"
)

// A reader makes a Spec of the nodes of a file.
type reader struct {
	faults
	dir       string
	given     map[string]string
	hidden    secret.Names               // see Options.Secrets
	flag      string                     // see Options.Given
	unless    map[string]json.RawMessage // what params are unless they are given; nil: nobody asks
	declared  *[]Param                   // the same
	choices   map[string]rules.Choices   // by param
	about     map[string]string          // the same
	draft     bool
	check     func(*plan.Spec) plan.Problems
	notes     func(*plan.Spec) plan.Problems
	noted     func(Error)
	unplaced  string        // see Options.Unplaced
	placeless plan.Problems // at most one: what that says, of where it first matters
	spec      *plan.Spec
	planKeys  *table[*reader]
	taskKeys  *table[*task]
	retryKeys *table[*task]
	limitKeys *table[*limit]

	found    []entry    // of the plan, by key
	defaults []entry    // of a task, by key
	own      []entry    // of the task that is being read, by key
	nodes    []taskNode // by task of the spec

	env         []variable // of the plan and of the defaults
	workDir     string     // as the plan says
	queue       string     // as the plan says
	exprs       []*yaml.Node
	sharedExprs []*yaml.Node // those that stand outside of tasks
	size        int          // bytes of params so far
	most        int          // how many there may be
	params      json.RawMessage
	lookups     map[string]error // by path of an expression: whether params have it
	durations   map[string]time.Duration
}

func newReader(name string, data []byte, o Options) *reader {
	r := &reader{faults: faults{src: &source{textfile.Source{Name: name, Text: data}}}, dir: o.Dir, given: o.Params, flag: cmp.Or(o.Given, "--param "),
		unless: o.Defaults, declared: o.Declared, draft: o.Draft, check: o.Check,
		notes: o.Notes, noted: o.Note, unplaced: o.Unplaced, spec: &plan.Spec{}, most: maxParams, hidden: o.Secrets}
	r.planKeys, r.taskKeys, r.retryKeys, r.limitKeys = planKeys(), taskKeys(), retryKeys(), limitKeys()
	r.found = make([]entry, len(r.planKeys.keys))
	r.defaults = make([]entry, len(r.taskKeys.keys))
	r.own = make([]entry, len(r.taskKeys.keys))
	r.lookups, r.durations = map[string]error{}, map[string]time.Duration{}
	return r
}

// at returns the byte at which a node begins.
func (r *reader) at(n *yaml.Node) int { return r.src.Offset(n.Line, n.Column) }

func (r *reader) errorf(n *yaml.Node, format string, args ...any) {
	r.add(fault{at: r.at(n), text: fmt.Sprintf(format, args...)})
}

// planKeys are the keys of a plan, in the order in which they are read: tasks and finally last, since they lean on all others.
func planKeys() *table[*reader] {
	return newTable(aPlan, planHints,
		key[*reader]{name: "plan", value: nameShape.about("The name of the plan. Runs of one name are numbered."),
			read: func(r *reader, n *yaml.Node) { r.spec.Name, _ = r.constant(n, "plan") }},
		key[*reader]{name: "secrets", value: secretsShape.about("Names of params, and of fields in outputs, that are never shown. A * stands for any letters."),
			read: (*reader).readSecrets},
		key[*reader]{name: "choices", value: choicesShape.about("The values that params may have, by name: texts, numbers, true and false."),
			read: (*reader).readChoices},
		key[*reader]{name: "about", value: aboutShape.about("Texts for people who fill in params, by name."),
			read: (*reader).readAbout},
		key[*reader]{name: "params", value: paramsShape.about("Values for the whole plan, with their defaults. null: the value must be given by --param."),
			read: (*reader).readParams},
		key[*reader]{name: "env", value: envShape.about("Environment variables of the commands of all tasks. A task's own win."),
			read: (*reader).readSharedEnv},
		key[*reader]{name: "dir", value: textShape.about("The folder in which commands run, relative to the plan file's folder, which is the default."),
			read: func(r *reader, n *yaml.Node) {
				r.exprs = nil
				r.workDir = r.readDir(n)
				r.sharedExprs = append(r.sharedExprs, r.exprs...)
			}},
		key[*reader]{name: "queue", value: queueShape.about("The queue of all tasks that name none."),
			read: func(r *reader, n *yaml.Node) { r.queue, _ = r.constant(n, "queue") }},
		key[*reader]{name: "queues", value: queuesShape().about("How many tasks of a queue may run at once. All plans share queues. A missing queue is made with this limit; an existing queue with a higher limit is refused."),
			read: (*reader).readQueues},
		key[*reader]{name: "defaults", value: &schema{Type: []string{"object"}, AllOf: []*schema{{Ref: "#/definitions/task"}}, want: "a mapping of keys of a task, like {timeout: 30m}",
			Description: "Keys for all tasks that do not set them."},
			read: (*reader).readDefaults},
		key[*reader]{name: "on_failure", value: (&schema{Type: []string{"string"}, Enum: []string{string(plan.Continue), string(plan.Stop)}, want: "continue or stop"}).
			about("After a failure, other branches run on (continue, the default), or nothing more is started (stop)."),
			read: func(r *reader, n *yaml.Node) {
				word, _ := r.constant(n, "on_failure")
				r.spec.OnFailure = plan.OnFailure(word)
			}},
		key[*reader]{name: "priority", value: (&schema{Type: []string{"integer"}, Minimum: ptr(1), Maximum: ptr(plan.MaxPriority), want: fmt.Sprint("a whole number from 1 to ", plan.MaxPriority)}).
			about("How many turns this plan takes in queues that it shares with other plans; default 10."),
			read: func(r *reader, n *yaml.Node) { r.spec.Priority = r.countUpTo(n, "priority", plan.MaxPriority) }},
		key[*reader]{name: "overlap", value: (&schema{Type: []string{"string"}, Enum: []string{string(plan.OverlapAllow), string(plan.OverlapSkip)}, want: "allow or skip"}).
			about("While another run of this name has not ended, this plan starts beside it (allow, the default), or is refused (skip)."),
			read: func(r *reader, n *yaml.Node) {
				word, _ := r.constant(n, "overlap")
				r.spec.Overlap = plan.Overlap(word)
			}},
		key[*reader]{name: "keep", value: keepShape.about("How long the finished plan stays in the store, as in 30d, or forever."),
			read: func(r *reader, n *yaml.Node) {
				if n.Value == forever {
					r.spec.Keep = -1
				} else {
					r.spec.Keep = r.duration(n, "keep")
				}
			}},
		key[*reader]{name: "timeout", value: durationShape.about("How long the plan may run, from its begin or its last retry on, as in 8h. Then what runs is stopped, and the plan has failed."),
			read: func(r *reader, n *yaml.Node) { r.spec.Timeout = r.limit(n, "timeout") }},
		key[*reader]{name: "schedule", value: scheduleShape().about("When the plan starts by itself, once sluice schedule apply has read it."), read: (*reader).readSchedule},
		key[*reader]{name: "tasks", value: &schema{Type: []string{"object"}, MinProperties: 1, PropertyNames: nameShape,
			AdditionalProperties: &schema{Ref: "#/definitions/task"}, want: "a mapping of names to tasks, like {build: {run: make}}", must: true,
			Description: "The tasks, by name."},
			read: (*reader).readTasks},
		key[*reader]{name: "finally", value: &schema{Type: []string{"object"}, PropertyNames: nameShape,
			AdditionalProperties: &schema{Ref: "#/definitions/task"}, want: "a mapping of names to tasks, like {tell: {run: ./mail}}",
			Description: "Tasks that run when all others have ended, whatever ended them. Their when asks how all of these ended together; default all_done."},
			read: (*reader).readFinally},
	)
}

// readPlan reads the whole file.
func (r *reader) readPlan(root *yaml.Node) {
	if root.Kind != yaml.MappingNode {
		r.errorf(root, "a plan file is a mapping with plan: NAME and tasks:, not %s", kindOf(root))
		return
	}
	r.planKeys.collect(r, root, r.found)
	for _, name := range []string{"plan", "tasks"} {
		if r.found[r.planKeys.index[name]].k == nil {
			r.add(fault{text: map[string]string{
				"plan": "the plan has no name; add plan: NAME", "tasks": "the plan has no tasks; add tasks:, as in {build: {run: make}}"}[name]})
		}
	}
	if r.found[r.planKeys.index["params"]].k == nil {
		r.readParams(&yaml.Node{Kind: yaml.MappingNode, Line: 1, Column: 1})
	}
	r.planKeys.apply(r, r, r.found)
	r.checkNamed("choices")
	r.checkNamed("about")
}

// readQueues reads the limits of queues.
func (r *reader) readQueues(n *yaml.Node) {
	r.entries(n, "queue", func(k, v *yaml.Node) {
		if !r.fits(entry{k, v}, k.Value, mapping, limitShape()) {
			return
		}
		l := &limit{r: r, QueueLimit: plan.QueueLimit{Queue: k.Value}}
		found := make([]entry, len(r.limitKeys.keys))
		all := r.limitKeys.collect(r, follow(v), found)
		r.limitKeys.apply(r, l, found)
		if found[r.limitKeys.index["threads"]].k == nil && all {
			r.errorf(k, "queue %q does not say how many of its tasks may run at once; add threads, as in {threads: 4}", k.Value)
		}
		if l.Threads > 0 { // else a fault was noted
			r.spec.Limits = append(r.spec.Limits, l.QueueLimit)
		}
	})
}

// readSharedEnv puts variables over those that all commands get.
func (r *reader) readSharedEnv(n *yaml.Node) {
	r.exprs = nil
	r.env = overlay(r.env, r.readEnv(n))
	r.sharedExprs = append(r.sharedExprs, r.exprs...)
}

// readDefaults keeps the defaults for the tasks, and reads them once for themselves: their mistakes count even if no task takes them.
func (r *reader) readDefaults(n *yaml.Node) {
	r.taskKeys.collect(r, n, r.defaults)
	run, plugin := r.defaults[r.taskKeys.index["run"]], r.defaults[r.taskKeys.index["plugin"]]
	if run.k != nil && plugin.k != nil {
		r.errorf(plugin.k, "run and plugin exclude each other; drop one of them")
	}
	r.taskKeys.apply(r, &task{r: r, spec: &plan.TaskSpec{}}, r.defaults)
	if env := r.defaults[r.taskKeys.index["env"]]; env.k != nil && kindOf(env.v) == mapping {
		r.readSharedEnv(follow(env.v))
	}
}

// readTasks reads tasks, in the order of the file.
func (r *reader) readTasks(n *yaml.Node) {
	r.spec.Tasks = slices.Grow(r.spec.Tasks, len(n.Content)/2)
	r.nodes = slices.Grow(r.nodes, len(n.Content)/2)
	r.entries(n, "task", func(k, v *yaml.Node) {
		r.spec.Tasks = append(r.spec.Tasks, plan.TaskSpec{Name: k.Value})
		r.nodes = append(r.nodes, taskNode{name: k, body: follow(v)})
		if kindOf(v) == mapping || r.fits(entry{k, v}, fmt.Sprintf("task %q", k.Value), mapping, taskShape) {
			r.readTask(&r.spec.Tasks[len(r.spec.Tasks)-1], &r.nodes[len(r.nodes)-1])
		}
	})
}

// readFinally reads tasks of finally, which come after all others.
func (r *reader) readFinally(n *yaml.Node) {
	first := len(r.spec.Tasks)
	r.readTasks(n)
	for i := first; i < len(r.spec.Tasks); i++ {
		r.spec.Tasks[i].Finally = true
	}
}

// constant reads a text in which no expression may stand.
func (r *reader) constant(n *yaml.Node, name string) (string, bool) {
	if strings.Contains(n.Value, "${{") {
		r.add(fault{at: r.expressionAt(n, "", 1), text: name + " cannot have an expression; they stand in run's list, env, dir, params and foreach"})
		return "", false
	}
	return r.text(n, name)
}

// text reads a text that ends up in a system call sooner or later.
func (r *reader) text(n *yaml.Node, name string) (string, bool) {
	if err := rules.CheckNUL(name, n.Value); err != nil {
		r.errorf(n, "%v", err)
		return "", false
	}
	if strings.TrimSpace(n.Value) == "" {
		r.errorf(n, "%s is empty; leave it out, or give it a value", name)
		return "", false
	}
	r.noteExpressions(n)
	return n.Value, true
}

// readDir reads a folder and makes it absolute.
func (r *reader) readDir(n *yaml.Node) string {
	dir, ok := r.text(n, "dir")
	if !ok {
		return ""
	}
	return r.absolute(dir)
}

// absolute makes a path absolute. A path that begins with an expression stays as it is, unless a
// param already gives its value.
func (r *reader) absolute(path string) string {
	path = r.led(path)
	start := strings.Index(path, "${{")
	switch lead := expr.Lead(path); {
	case lead == "" || filepath.IsAbs(lead):
		return path
	case start < 0:
		return expr.Quote(filepath.Join(r.dir, path))
	}
	// The text before the first expression is a path already. The value of the expression is left
	// alone.
	under := filepath.Join(r.dir, path[:start])
	if start == 0 || os.IsPathSeparator(path[start-1]) {
		under += string(filepath.Separator)
	}
	return expr.Quote(under) + path[start:]
}

// led returns a path that begins with an expression as it comes out, if params tell already.
func (r *reader) led(path string) string {
	if strings.HasPrefix(path, "${{") {
		value, err := expr.Substitute(jsontext.AppendText(nil, path), r.scope)
		var s string
		if err == nil && json.Unmarshal(value, &s) == nil {
			return s
		}
	}
	return path
}

// known returns the text that one with expressions comes to, if its params tell already.
func (r *reader) known(text string) (s string, ok bool) {
	value, err := expr.Substitute(jsontext.AppendText(nil, text), r.scope)
	if err != nil {
		return "", false
	}
	value, ok = expr.UnquoteJSON(value)
	return s, ok && json.Unmarshal(value, &s) == nil
}

// scope resolves what a file alone tells of expressions: its params.
func (r *reader) scope(steps []string) (json.RawMessage, bool, error) {
	return r.params, steps[0] == "params", nil
}

// noteExpressions remembers a text with expressions, and looks up those over params: they may lead nowhere.
func (r *reader) noteExpressions(n *yaml.Node) {
	if !strings.Contains(n.Value, "${{") {
		return
	}
	r.exprs = append(r.exprs, n)
	if r.params == nil {
		return // these are the params
	}
	if rest := expr.Unclosed(n.Value); rest != "" {
		before := strings.Count(strings.TrimSuffix(n.Value, rest), "${{")
		r.add(fault{at: r.expressionAt(n, "", before+1), text: "an expression begins here and has no }} in its line; close it, or write ${{ '${{' }} if the text itself is meant"})
	}
	for _, path := range expr.Paths(n.Value) {
		rest, ok := strings.CutPrefix(path, "params.")
		if !ok {
			continue
		}
		name := rest
		if end := strings.IndexAny(rest, ".["); end >= 0 {
			name = rest[:end]
		}
		if _, known := r.spec.Params[name]; !known {
			continue // for the domain to say
		}
		err, known := r.lookups[path]
		if !known {
			_, _, err = expr.Lookup(path, r.scope)
			err = r.secrets().Uncited("${{ "+path+" }}", err)
			r.lookups[path] = err
		}
		if err != nil {
			r.add(fault{at: r.expressionAt(n, path, 1), text: err.Error()})
		}
	}
}
