package planfile

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/expr"
	"github.com/seed-1177d267/sluice/plan"
)

// A taskNode is where a task of the spec stands.
type taskNode struct {
	name, body *yaml.Node
	exprs      []*yaml.Node // texts of it that have expressions in them
}

// validate asks the domain what is wrong with the plan, and finds the places.
func (r *reader) validate() {
	problems, _ := errors.AsType[plan.Problems](compiler.Validate(r.spec))
	read := make(map[int]bool, len(r.list)) // where the reader had something to say, no more follows
	for _, f := range r.list {
		read[f.at] = true
	}
	said := map[string]int{}
	needs := map[int]bool{}
	for _, p := range problems {
		if r.follows(p) {
			continue
		}
		f := fault{at: r.locate(p, said), text: p.Message, word: p.Word, known: p.Known}
		if read[f.at] {
			continue
		}
		// Many tasks may share a mistake (defaults, env, an anchor). It is reported once.
		if p.Task >= 0 {
			f.but = r.spec.Tasks[p.Task].Name
			f.text = strings.TrimPrefix(f.text, fmt.Sprintf("task %q: ", f.but))
		}
		if p.Item >= 0 {
			if needs[f.at] {
				continue
			}
			needs[f.at] = true
		}
		r.add(f)
	}
}

// note adds the problems of a valid plan. It reports a problem that many tasks share once, with the
// first task.
func (r *reader) note(problems plan.Problems) {
	first := map[int]plan.Problem{}
	more := map[int]int{}
	var places []int
	for _, p := range problems {
		at := r.locate(p, nil)
		if _, again := first[at]; again {
			more[at]++
			continue
		}
		first[at] = p
		places = append(places, at)
	}
	for _, at := range places {
		text := first[at].Message
		switch n := more[at]; {
		case n == 1:
			text += "; another task needs it too"
		case n > 1:
			text += fmt.Sprintf("; %d more tasks need it too", n)
		}
		r.add(fault{at: at, text: text})
	}
}

// follows reports whether the reader's own error already implies a problem: it could not read
// params, the names of all tasks, or the needs that a rule depends on.
func (r *reader) follows(p plan.Problem) bool {
	if strings.HasPrefix(p.Expr, "params.") && r.params == nil {
		return true
	}
	if p.Key == "tasks" && len(r.spec.Tasks) == 0 && len(r.list) > 0 {
		all := r.found[r.planKeys.index["tasks"]]
		return all.k != nil && len(follow(all.v).Content) > 0
	}
	if p.Task < 0 || p.Key != "when" || len(r.spec.Tasks[p.Task].Parents()) > 0 {
		return false
	}
	needs := r.entry(&r.nodes[p.Task], "needs")
	return needs.k != nil && (kindOf(needs.v) != list || len(follow(needs.v).Content) > 0)
}

// locate returns the byte that a problem is about. said counts equal problems: a task may have the
// same expression twice.
func (r *reader) locate(p plan.Problem, said map[string]int) int {
	if p.Task < 0 {
		return r.locateInPlan(p)
	}
	node := &r.nodes[p.Task]
	if p.Expr != "" {
		said[p.Message]++
		return r.locateExpression(node, p.Expr, said[p.Message])
	}
	if p.Key == "env" && p.Word != "" {
		return r.locateVariable(node, p.Word)
	}
	e := r.entry(node, p.Key)
	switch {
	case e.k == nil:
		return r.at(node.name)
	case p.Key == "run" && p.Word != "":
		n := follow(e.v)
		if p.Item >= 0 {
			n = follow(n.Content[p.Item])
		}
		return r.useAt(n, p.Word)
	case p.Word != "" && (p.Key == "params" || p.Key == "foreach"):
		return r.paramAt(e, p.Word)
	case p.Item >= 0:
		return r.at(element(follow(e.v), p.Item))
	}
	return r.atValue(e)
}

// paramAt returns where the value of a param begins; where the params do if it is not there. The name
// may go on with a dot and a key within the value, which paramAt ignores.
func (r *reader) paramAt(params entry, name string) int {
	name, _, _ = strings.Cut(name, ".")
	n := follow(params.v)
	for i := 0; i+1 < len(n.Content) && kindOf(n) == mapping; i += 2 {
		if follow(n.Content[i]).Value == name {
			return r.at(follow(n.Content[i+1]))
		}
	}
	return r.atValue(params)
}

// atValue returns where the value of an entry begins; where its key begins if it has none.
func (r *reader) atValue(e entry) int {
	if kindOf(e.v) == null {
		return r.at(e.k)
	}
	return r.at(follow(e.v))
}

// element returns the text with the given number in a list, counting texts only. A node that is not
// a list is a list of one.
func element(n *yaml.Node, item int) *yaml.Node {
	for _, c := range n.Content {
		if c = follow(c); kindOf(c) != text {
			continue
		}
		if item--; item < 0 {
			return c
		}
	}
	return n
}

func (r *reader) locateInPlan(p plan.Problem) int {
	i, ok := r.planKeys.index[p.Key]
	if !ok || r.found[i].k == nil {
		return 0
	}
	v := follow(r.found[i].v)
	if p.Key == "params" || p.Key == "queues" {
		for j := 0; j+1 < len(v.Content); j += 2 {
			if k := follow(v.Content[j]); k.Value == p.Word {
				return r.at(k)
			}
		}
	}
	if p.Key == "secrets" && p.Item >= 0 {
		return r.at(element(v, p.Item))
	}
	return r.atValue(r.found[i])
}

// locateVariable returns where the value of a variable of a task stands: with the task, the defaults or the plan.
func (r *reader) locateVariable(node *taskNode, name string) int {
	for _, env := range []entry{r.entry(node, "env"), r.defaults[r.taskKeys.index["env"]], r.found[r.planKeys.index["env"]]} {
		if env.k == nil {
			continue
		}
		all := follow(env.v).Content
		for i := 0; i+1 < len(all); i += 2 {
			if follow(all[i]).Value == name {
				return r.at(follow(all[i+1]))
			}
		}
	}
	return r.at(node.name)
}

// entry finds a key of a task again, wherever its value comes from.
func (r *reader) entry(node *taskNode, name string) entry {
	i, ok := r.taskKeys.index[name]
	if !ok || node.body.Kind != yaml.MappingNode {
		return entry{}
	}
	found := make([]entry, len(r.taskKeys.keys))
	noted := r.faults
	r.faults = faults{src: r.src} // what is wrong with the keys was noted when they were read
	r.taskKeys.collect(r, node.body, found)
	r.faults = noted
	r.inherit(found)
	return found[i]
}

// locateExpression returns where the nth (from 1) expression with this path stands that a task has.
func (r *reader) locateExpression(node *taskNode, path string, nth int) int {
	at := r.at(node.name)
	for _, n := range slices.Concat(node.exprs, r.sharedExprs) {
		k := 0
		for _, is := range expr.Paths(n.Value) {
			if is != path {
				continue
			}
			k++
			at = r.expressionAt(n, path, k)
			if nth--; nth == 0 {
				return at
			}
		}
	}
	return at
}

// expressionAt returns where in the text of a node the nth expression (from 1) with this path
// begins. If the path is "", every expression counts. It returns where the node begins if escapes
// hide the expression.
func (r *reader) expressionAt(n *yaml.Node, path string, nth int) int {
	at := r.at(n)
	end := min(len(r.src.Text), at+2*len(n.Value)+1024) // the indentation of a block text comes on top of the value
	for from := at; ; {
		i := bytes.Index(r.src.Text[from:end], []byte("${{"))
		if i < 0 {
			return at
		}
		from += i
		rest, found := bytes.CutPrefix(bytes.TrimLeft(r.src.Text[from+3:end], " \t"), []byte(path))
		if found && (path == "" || bytes.HasPrefix(bytes.TrimLeft(rest, " \t"), []byte("}}"))) {
			if nth--; nth == 0 {
				return from
			}
		}
		from += 3
	}
}
