package planfile

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/seed-1177d267/sluice/internal/textfile"
	"github.com/seed-1177d267/sluice/plan"
)

// tell reports what is valid in the plan and probably not meant, in the order of the file. It
// reports a note that many tasks share once, with the first task.
func (r *reader) tell() {
	if r.notes == nil {
		return
	}
	first := map[int]plan.Problem{}
	more := map[int]int{}
	for _, p := range append(r.notes(r.spec), r.placeless...) {
		at := r.locate(p, map[string]int{})
		if f, again := first[at]; !again {
			first[at] = p
		} else if f.Task != p.Task {
			more[at]++
		}
	}
	places := slices.Sorted(maps.Keys(first))
	for _, at := range places[:min(len(places), textfile.MaxShown)] {
		text := first[at].Message
		switch n := more[at]; {
		case n == 1:
			text += "; so it is with another task"
		case n > 1:
			text += fmt.Sprintf("; so it is with %d more tasks", n)
		}
		r.noted(r.src.Error(at, text))
	}
	r.tellMore(len(places) - textfile.MaxShown)
}

func (r *reader) tellMore(n int) {
	if n > 0 {
		r.noted(Error{File: r.src.Name, Message: fmt.Sprintf("there are %d more such places", n)})
	}
}

// tellOfParts is tell for a plan whose file was read in parts, after a head of so many bytes. It
// reads the parts with notes again. A note on a default of a task is placed at the task's name. tasks is
// how many tasks come before those of finally.
func (r *reader) tellOfParts(data []byte, head int, parts []part, tasks int) {
	if r.notes == nil {
		return
	}
	problems := append(r.notes(r.spec), r.placeless...)
	sort.SliceStable(problems, func(a, b int) bool { return problems[a].Task < problems[b].Task })
	whole := textfile.Source{Name: r.src.Name, Text: data}
	ofPlan := func(p plan.Problem) { // which was read without what is between head and tail
		at := r.locateInPlan(p)
		if at >= head {
			at += len(data) - len(r.src.Text)
		}
		r.noted(whole.Error(at, p.Message))
	}
	for len(problems) > 0 && problems[0].Task < 0 {
		ofPlan(problems[0])
		problems = problems[1:]
	}
	k, _ := slices.BinarySearchFunc(problems, tasks, func(p plan.Problem, first int) int { return cmp.Compare(p.Task, first) })
	for _, p := range problems[k:] { // tasks of finally are few, and their names are in the text
		ofPlan(plan.Problem{Task: -1, Key: "finally", Message: p.Message})
	}
	problems = problems[:k]
	spec, faults := r.spec, r.faults
	shown := problems[:min(len(problems), textfile.MaxShown)]
	for i, p := range parts {
		end := tasks
		if i+1 < len(parts) {
			end = parts[i+1].first
		}
		n, _ := slices.BinarySearchFunc(shown, end, func(p plan.Problem, end int) int { return cmp.Compare(p.Task, end) })
		if n == 0 {
			continue
		}
		r.readPart(spec, p.text)
		before := bytes.Count(data[:p.at], []byte("\n"))
		for _, problem := range shown[:n] {
			problem.Task -= p.first
			e := r.src.Error(r.locateOwn(problem), problem.Message)
			e.Line += before
			r.noted(e)
		}
		shown = shown[n:]
	}
	r.spec, r.faults = spec, faults
	r.tellMore(len(problems) - textfile.MaxShown)
}

// readPart reads a part again, for its places alone.
func (r *reader) readPart(spec *plan.Spec, text []byte) {
	r.spec, r.nodes = &plan.Spec{Params: spec.Params}, nil
	r.faults = faults{src: &source{textfile.Source{Name: r.src.Name, Text: text}}}
	if tasks := parse(&r.faults); tasks != nil {
		r.readTasks(tasks)
	}
}

// locateOwn is locate for what stands with the task itself, else its name.
func (r *reader) locateOwn(p plan.Problem) int {
	node := &r.nodes[p.Task]
	if i, ok := r.taskKeys.index[p.Key]; ok && r.defaults[i].k != nil && r.entry(node, p.Key).k == r.defaults[i].k {
		return r.at(node.name)
	}
	return r.locate(p, map[string]int{})
}

// useAt returns where a variable is used in the text of a node. use is the text from there to the
// end of the line. If the file writes that text with escapes, useAt returns a similar place, or
// where the node begins.
func (r *reader) useAt(n *yaml.Node, use string) int {
	at := r.at(n)
	text := r.src.Text[at:min(len(r.src.Text), at+2*len(n.Value)+1024)] // the indentation of a block text comes on top of the value
	if i := bytes.Index(text, []byte(use)); i >= 0 {
		return at + i
	}
	like := strings.TrimRight(use, " \t")
	if i := strings.IndexFunc(use[1:], func(c rune) bool { return c != '{' && !isNameRune(c) }); i >= 0 {
		like = use[:i+1]
	}
	for from := 0; ; {
		i := bytes.Index(text[from:], []byte(like))
		if i < 0 {
			return at
		}
		from += i
		if end := from + len(like); end == len(text) || !isNameRune(rune(text[end])) {
			return at + from
		}
		from++
	}
}

func isNameRune(c rune) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
