package compiler

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dominikbraun/graph"

	"github.com/seed-1177d267/sluice/internal/expr"
	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

var (
	nameSyntax  = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	notInNames  = regexp.MustCompile(`[^\w\x{80}-\x{10FFFF}-]+`) // in ASCII
	queueSyntax = regexp.MustCompile(`^[\w:.-]+$`)
)

// flagLike is the mistake in a name that begins with -: no command that a hint prints would accept
// it. Existing names in stores, and names from other programs, are read and run like any other.
const flagLike = "a name does not begin with -, which commands would take for a flag; choose another name"

// CheckName returns why a plan or a task cannot have the name.
func CheckName(what, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%s has no name; give it one of letters, digits, _ and -", what)
	case len(name) > plan.MaxQueueName:
		return fmt.Errorf("%s %.20q…: a name has at most %d characters", what, name, plan.MaxQueueName)
	case !nameSyntax.MatchString(name):
		as := ""
		if near := strings.Trim(notInNames.ReplaceAllString(name, "-"), "-"); nameSyntax.MatchString(near) {
			as = ", as " + near
		}
		return fmt.Errorf("%s %q: a name has only letters, digits, _ and -%s", what, name, as)
	case strings.HasPrefix(name, "-"):
		return fmt.Errorf("%s %q: "+flagLike, what, name)
	}
	if err := plan.CheckQueueName(name); err != nil {
		return fmt.Errorf("%s %q: %w", what, name, err)
	}
	return nil
}

// CheckPluginName returns why no task, and no queue that is made here, can be for a plugin of that name.
func CheckPluginName(name string) error {
	err := plan.CheckQueueName(name)
	if err == nil {
		err = rules.CheckPluginName(name)
	}
	switch {
	case len(name) > plan.MaxQueueName:
		return fmt.Errorf("plugin %.20q…: %w", name, err)
	case err != nil:
		return fmt.Errorf("plugin %q: %w", name, err)
	}
	return nil
}

// CheckQueueName returns why no queue that is made here can have the name. Other programs may make
// queues of other names in the same database.
func CheckQueueName(what, name string) error {
	err := plan.CheckQueueName(name)
	switch {
	case len(name) > plan.MaxQueueName:
		return fmt.Errorf("%s %.20q…: %w", what, name, err)
	case err != nil:
		return fmt.Errorf("%s %q: %w", what, name, err)
	case !queueSyntax.MatchString(name):
		return fmt.Errorf("%s %q: a name has only letters, digits, _, -, colons and dots; choose another name", what, name)
	case strings.HasPrefix(name, "-"):
		return fmt.Errorf("%s %q: "+flagLike, what, name)
	}
	return nil
}

// Validate returns nil or Problems: everything that is wrong with the plan, as far as it can be told from the plan alone. It takes
// time and memory linear in the number of tasks and needs.
func Validate(s *plan.Spec) error {
	s = withImplied(s)
	var ps plan.Problems
	add := func(task int, key string, item int, format string, args ...any) *plan.Problem {
		ps = append(ps, plan.Problem{Task: task, Key: key, Item: item, Message: fmt.Sprintf(format, args...)})
		return &ps[len(ps)-1]
	}
	checkName := func(task int, key, what, name string) {
		if err := CheckName(what, name); err != nil {
			add(task, key, -1, "%v", err)
		}
	}
	checkName(-1, "plan", "the plan", s.Name)
	if s.OnFailure != "" && s.OnFailure != plan.Continue && s.OnFailure != plan.Stop {
		p := add(-1, "on_failure", -1, "on_failure is %q; it is continue or stop", s.OnFailure)
		p.Word, p.Known = string(s.OnFailure), []string{string(plan.Continue), string(plan.Stop)}
	}
	if s.Overlap != "" && s.Overlap != plan.OverlapAllow && s.Overlap != plan.OverlapSkip {
		p := add(-1, "overlap", -1, "overlap is %q; it is allow or skip for a plan, and queue and replace are for its schedule", s.Overlap)
		p.Word, p.Known = string(s.Overlap), []string{string(plan.OverlapAllow), string(plan.OverlapSkip)}
	}
	if err := plan.CheckPriority(s.Priority); s.Priority != 0 && err != nil {
		add(-1, "priority", -1, "%v", err)
	}
	if s.Timeout < 0 {
		add(-1, "timeout", -1, "timeout is %v; it is how long the plan may run, and more than 0", s.Timeout)
	}
	for name := range s.Params {
		if slices.Contains(reservedParams, name) {
			p := add(-1, "params", -1, "a param cannot be named %q, which means something else to tasks; choose another name", name)
			p.Word = name
		}
	}
	if params, err := jsontext.Marshal(s.Params); err == nil { // else Compile says what is wrong
		if err := rules.CheckPlanParams(len(params)); err != nil {
			add(-1, "params", -1, "%v", err)
		}
	}
	validateLimits(s, add)
	validateSecrets(s, add)
	if !slices.ContainsFunc(s.Tasks, func(t plan.TaskSpec) bool { return !t.Finally }) {
		add(-1, "tasks", -1, "plan %q has no tasks; add one", s.Name)
	}
	index := make(map[string]int, len(s.Tasks))
	for i := range s.Tasks {
		name := s.Tasks[i].Name
		checkName(i, "", "task", name)
		if j, twice := index[name]; twice && name != "" {
			add(i, "", -1, "task %q is there twice (tasks %d and %d); names are unique in a plan", name, j+1, i+1)
			continue
		}
		index[name] = i
	}
	sources := sourcesOf(s, index)
	names := sync.OnceValue(func() []string { return taskNames(s) }) // one list for all: thousands of needs may be wrong in the same way
	for i := range s.Tasks {
		validateTask(s, i, index, names, add)
		validateEach(s, i, index, sources, names, add)
	}
	validateOrder(s, index, add)
	if len(ps) == 0 {
		return nil
	}
	sort.SliceStable(ps, func(a, b int) bool { return ps[a].Task < ps[b].Task })
	return ps
}

// validateLimits checks the limits of queues, and the tasks in them.
func validateLimits(s *plan.Spec, add addProblem) {
	if len(s.Limits) == 0 {
		return
	}
	used := make(map[string]bool, len(s.Limits))
	for i := range s.Tasks {
		used[queueOf(&s.Tasks[i])] = true
	}
	plugins := make(map[string]string, len(s.Limits))
	for _, l := range s.Limits {
		problem := func(format string, args ...any) {
			add(-1, "queues", -1, "queue %q: "+format, slices.Insert(args, 0, any(l.Queue))...).Word = l.Queue
		}
		_, twice := plugins[l.Queue]
		plugins[l.Queue] = l.Plugin
		switch {
		case CheckQueueName("queue", l.Queue) != nil:
			add(-1, "queues", -1, "%v", CheckQueueName("queue", l.Queue)).Word = l.Queue
		case l.Plugin != "" && CheckPluginName(l.Plugin) != nil:
			problem("%v", CheckPluginName(l.Plugin))
		case twice:
			problem("it is there twice; one limit is enough")
		case l.Threads < 1:
			problem("threads is %d; it is how many of its tasks may run at once, at least 1", l.Threads)
		case rules.CheckLimit("threads", l.Threads) != nil:
			problem("%v", rules.CheckLimit("threads", l.Threads))
		case !used[l.Queue]:
			problem("no task goes there; give a task queue: %s, or drop it", l.Queue)
		}
	}
	for i := range s.Tasks {
		t := &s.Tasks[i]
		plugin, limited := plugins[queueOf(t)]
		switch {
		case !limited:
		case plugin == "":
			plugins[queueOf(t)] = pluginOf(t)
		case plugin != pluginOf(t):
			add(i, "queue", -1, "task %q: queue %q is for plugin %q, and the task needs %q; choose another queue", t.Name, queueOf(t), plugin, pluginOf(t))
		}
	}
}

// reservedParams are the keys of an exec task's params that are not plan params.
var reservedParams = []string{"run", "shell", "env", "dir", "stdin", "needs", "args", "item", "results", "failures"}

type addProblem func(task int, key string, item int, format string, args ...any) *plan.Problem

func validateTask(s *plan.Spec, i int, index map[string]int, names func() []string, add addProblem) {
	t := &s.Tasks[i]
	var seen map[string]bool
	if len(t.Needs) > 16 {
		seen = make(map[string]bool, len(t.Needs))
	}
	for k, need := range t.Needs {
		at, known := index[need]
		twice := seen[need]
		if seen == nil {
			twice = slices.Contains(t.Needs[:k], need)
		} else {
			seen[need] = true
		}
		switch {
		case need == t.Name:
			add(i, "needs", k, "task %q needs itself; drop that", t.Name)
		case !known:
			p := add(i, "needs", k, "task %q needs %q, which is not in the plan; add it or drop the need", t.Name, need)
			p.Word, p.Known = need, names()
		case twice:
			add(i, "needs", k, "task %q needs %q twice; once is enough", t.Name, need)
		case s.Tasks[at].Finally && !t.Finally:
			add(i, "needs", k, "task %q needs %q, which is one of finally and runs when all tasks have ended; move this task there, or drop the need", t.Name, need)
		case t.Finally && !s.Tasks[at].Finally:
			add(i, "needs", k, "task %q is one of finally, which need all tasks, so that it cannot need %q by itself; drop the need: when asks how all of them ended", t.Name, need)
		}
	}
	d := plan.Definition{
		Subject: t.Subject, When: t.When, SkipOn: t.SkipOn, Approve: t.Approve, Foreach: t.Foreach, MaxFailures: t.MaxFailures, ContinueOnError: t.ContinueOnError, Finally: t.Finally, Timeout: t.Timeout, Estimate: t.Estimate, Retry: t.Retry, OnLost: t.OnLost, MaxRescues: t.MaxRescues,
	}
	checkDefinition(&d, func(key, format string, args ...any) *plan.Problem {
		return add(i, key, -1, "task %q: "+format, slices.Insert(args, 0, any(t.Name))...)
	})
	if err := CheckNeeded(&d, len(t.Parents())); err != nil {
		add(i, "when", -1, "task %q: %v", t.Name, err)
	}
	if t.Approve != nil && (t.Plugin != "" && t.Plugin != plan.ApprovalPlugin || t.Queue != "" || t.Params != nil) {
		add(i, "approve", -1, "task %q: a task with approve runs nothing; drop plugin, queue and params", t.Name)
	}
	if t.Approve == nil && t.Plugin == plan.ApprovalPlugin {
		add(i, "plugin", -1, "task %q: the plugin %s asks questions, and the task has none; write approve: QUESTION instead", t.Name, plan.ApprovalPlugin)
	}
	if err := CheckPluginName(t.Plugin); t.Plugin != "" && err != nil {
		add(i, "plugin", -1, "task %q: %v", t.Name, err)
	}
	if err := CheckQueueName("queue", t.Queue); t.Queue != "" && err != nil {
		add(i, "queue", -1, "task %q: %v", t.Name, err)
	}
	validateExpressions(s, i, index, add)
}

// CheckNeeded returns why a task with so many parents could never run.
func CheckNeeded(d *plan.Definition, needs int) error {
	_, err := rules.ParseWhen(string(d.When))
	switch {
	case err != nil:
	case d.Finally && !rules.MayRunFinally(d.When):
		return fmt.Errorf("when %s can never hold in finally, where it asks whether the plan has succeeded or failed; write all_done, all_succeeded or any_failed", d.When)
	case !d.Finally && needs == 0 && rules.NeedsParents(d.When):
		return fmt.Errorf("when %s can never hold, since the task needs nothing; add needs", d.When)
	}
	return nil
}

// CheckForeach returns why a foreach cannot have items. A pattern with expressions is checked when they
// are replaced.
func CheckForeach(f *plan.Foreach) error {
	set := 0
	for _, is := range []bool{f.List != nil, f.Value != "", f.Lines != "", f.Glob != "", len(f.Each) > 0} {
		if is {
			set++
		}
	}
	switch {
	case set != 1:
		return errors.New("foreach takes one of a list, ${{ … }}, {lines: FILE} and {glob: PATTERN}")
	case f.Group != "" && f.List == nil && f.Value == "":
		return errors.New("foreach groups a list, or the outputs of a parent; give it list or value beside group")
	case f.Group != "" && rules.CheckGrouping(f.Group) != nil:
		return fmt.Errorf("foreach: %w", rules.CheckGrouping(f.Group))
	case f.List != nil:
		list := *f
		if !slices.ContainsFunc(expr.Paths(f.Key), func(path string) bool { return head(path) == "item" }) {
			list.Key = "" // which is a mistake of its own
		}
		_, err := rules.ExpandItems(&list, nil)
		return err
	case f.Glob != "" && !expr.Has(f.Glob):
		return CheckPattern(f.Glob)
	}
	return nil
}

// CheckDefinition returns the first word or number of a definition that a plan file could not have, or nil.
// It does not check its description.
func CheckDefinition(d *plan.Definition) (first *plan.Problem) {
	checkDefinition(d, func(key, format string, args ...any) *plan.Problem {
		p := &plan.Problem{Key: key, Item: -1, Message: fmt.Sprintf(format, args...)}
		if first == nil {
			first = p
		}
		return p
	})
	return first
}

func checkDefinition(d *plan.Definition, add func(key, format string, args ...any) *plan.Problem) {
	if _, err := rules.ParseWhen(string(d.When)); err != nil {
		p := add("when", "%v", err)
		p.Word = string(d.When)
		for _, w := range rules.Whens() {
			p.Known = append(p.Known, string(w))
		}
	}
	if err := rules.CheckSubject(d.Subject); err != nil {
		add("subject", "%v", err)
	}
	if d.If != "" { // one of a definition, whose paths that were known are values
		if _, err := expr.ParseCondition(d.If); err != nil {
			add("if", "if: %v", err)
		}
	}
	checkApprove(d, add)
	if d.Finally && d.Approve != nil {
		add("approve", "approve cannot be in finally, which runs without waiting for a person; put it among tasks")
	}
	if err := CheckSkipOn(d.SkipOn); err != nil {
		add("skip_on", "%v", err)
	}
	for _, span := range []struct {
		key   string
		value time.Duration
	}{{"timeout", d.Timeout}, {"estimate", d.Estimate}, {"retry.delay", d.Retry.Delay}, {"retry.max", d.Retry.Max}} {
		key, _, retry := strings.Cut(span.key, ".")
		if span.value < 0 && (!retry || span.value != plan.NoDelay) {
			add(key, "%s is %v; it cannot be negative", span.key, span.value)
		}
	}
	for _, count := range []struct {
		key, name string
		value     int
	}{{"retry", "attempts", d.Retry.Attempts}, {"max_rescues", "max_rescues", d.MaxRescues}} {
		if _, err := rules.ParseCount(count.name, strconv.Itoa(count.value), math.MaxInt32); count.value != 0 && err != nil {
			add(count.key, "%v", err)
		}
	}
	if d.Retry.Factor != 0 && !(d.Retry.Factor >= 1) { // also what is no number
		add("retry", "retry.factor is %v; it is at least 1", d.Retry.Factor)
	}
	if d.Retry.On != "" && d.Retry.NotOn != "" {
		add("retry", "retry has on and not_on; give on for the only failures that are tried again, or not_on for those that are not")
	}
	if d.Foreach != nil {
		if err := CheckForeach(d.Foreach); err != nil {
			p := add("foreach", "%v", err)
			if d.Foreach.Glob != "" {
				p.Word = "glob"
			}
		}
	}
	if d.MaxFailures != "" {
		switch err := plan.CheckMaxFailures(d.MaxFailures); {
		case err != nil:
			add("max_failures", "%v", err)
		case d.Foreach == nil && !d.ContinueOnError: // an item has both
			add("max_failures", "max_failures is for a task with items, and this one has neither foreach nor each")
		case d.Foreach != nil && d.ContinueOnError:
			add("max_failures", "max_failures and continue-on-error exclude each other; max_failures: 100%% allows every item to fail")
		}
	}
	if d.OnLost != plan.OnLostDefault && d.OnLost != plan.OnLostRetry && d.OnLost != plan.OnLostFail {
		p := add("on_lost", "on_lost is %q; it is retry or fail", d.OnLost)
		p.Word, p.Known = string(d.OnLost), []string{string(plan.OnLostRetry), string(plan.OnLostFail)}
	}
}

// checkApprove refuses what a task that waits for a person cannot have.
func checkApprove(d *plan.Definition, add func(key, format string, args ...any) *plan.Problem) {
	if d.Approve == nil {
		return
	}
	if err := rules.CheckQuestion(d.Approve.Question); err != nil {
		add("approve", "%v", err)
	}
	switch {
	case d.Foreach != nil && len(d.Foreach.Each) > 0:
		add("approve", "approve is for one task, and each makes several; put the approval before them, and let them need it")
	case d.Foreach != nil:
		add("approve", "approve is for one task, and foreach makes several; put the approval before them, and let them need it")
	case d.Retry != (plan.Retry{}):
		add("approve", "a task with approve runs nothing that could be tried again; drop retry: sluice plan retry asks again")
	case d.SkipOn != "":
		add("approve", "a task with approve has no exit status; drop skip_on")
	}
}

// taskNames offers names for a suggestion; of a huge plan only the first, which keeps validation linear.
func taskNames(s *plan.Spec) []string {
	const most = 2000
	names := make([]string, 0, min(len(s.Tasks), most))
	for i := range s.Tasks[:min(len(s.Tasks), most)] {
		names = append(names, s.Tasks[i].Name)
	}
	return names
}

// validateOrder reports the cycles, each as its path. It puts only tasks that no order reaches into
// a graph. A plan without cycles has none, and the graph of a large plan would take more memory
// than the plan.
func validateOrder(s *plan.Spec, index map[string]int, add addProblem) {
	_, left := s.Graph().Order()
	if len(left) == 0 {
		return
	}
	// Vertices count from 1: the library loses a component whose first vertex is its type's zero value.
	g := graph.New(graph.IntHash, graph.Directed())
	for _, i := range left {
		_ = g.AddVertex(i + 1) // each is there once
	}
	for _, i := range left {
		for _, need := range s.Tasks[i].Parents() {
			if p, there := index[need]; there && p != i { // a missing need, or a task that needs itself, has been reported already
				_ = g.AddEdge(p+1, i+1) // fails only for parents that are not left, which are in no cycle
			}
		}
	}
	components, err := graph.StronglyConnectedComponents(g)
	if err != nil {
		add(-1, "tasks", -1, "the needs of the tasks form a cycle")
		return
	}
	for _, c := range components {
		if len(c) > 1 {
			path := cycle(s, c, index)
			at := index[path[0]]
			if most := 30; len(path) > most {
				path = slices.Concat(path[:most-2], []string{fmt.Sprintf("%d more", len(path)-most)}, path[len(path)-2:])
			}
			add(at, "needs", -1, "the tasks need each other in a cycle: %s; drop one of these needs", strings.Join(path, " → "))
		}
	}
}

// cycle walks from child to parent inside a strongly connected component, whose vertices count from 1, until a task comes again. The
// path goes from parent to child; it starts and ends with the task that is first in the file among those on it.
func cycle(s *plan.Spec, component []int, index map[string]int) []string {
	in := make(map[int]bool, len(component))
	for _, vertex := range component {
		in[vertex-1] = true
	}
	at := map[int]int{} // task: its place on the walk
	var walk []int
	i := slices.Min(component) - 1
	for {
		if from, again := at[i]; again {
			walk = walk[from:]
			break
		}
		at[i] = len(walk)
		walk = append(walk, i)
		for _, need := range s.Tasks[i].Parents() {
			if p, there := index[need]; there && p != i && in[p] {
				i = p
				break
			}
		}
	}
	slices.Reverse(walk) // it went from child to parent
	first := slices.Index(walk, slices.Min(walk))
	walk = slices.Concat(walk[first:], walk[:first+1])
	path := make([]string, len(walk))
	for k, i := range walk {
		path[k] = s.Tasks[i].Name
	}
	return path
}
