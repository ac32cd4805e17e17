package compiler_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/plan"
)

func problems(t *testing.T, s *plan.Spec) plan.Problems {
	t.Helper()
	var ps plan.Problems
	if err := compiler.Validate(s); err != nil && !errors.As(err, &ps) {
		t.Fatalf("Validate returned %T, want Problems", err)
	}
	return ps
}

// needs builds a plan from lines as in "copy: list, check".
func needs(lines ...string) *plan.Spec {
	s := plan.New("p")
	for _, line := range lines {
		name, parents, _ := strings.Cut(line, ":")
		t := plan.TaskSpec{Name: name}
		for p := range strings.SplitSeq(parents, ",") {
			if p = strings.TrimSpace(p); p != "" {
				t.Needs = append(t.Needs, p)
			}
		}
		s.Add(t)
	}
	return s
}

func TestACycleIsReportedAsItsPath(t *testing.T) {
	for _, c := range []struct {
		name string
		plan *plan.Spec
		want []string
	}{
		{"two tasks", needs("a: b", "b: a"), []string{"a → b → a"}},
		{"the first task of the plan is on it", needs("a: c", "b: a", "c: b"), []string{"a → b → c → a"}},
		{"it is behind other tasks", needs("x", "y: x", "a: c, y", "b: a", "c: b"), []string{"a → b → c → a"}},
		{"other tasks are behind it", needs("a: b", "b: a", "x: a, b", "y: x"), []string{"a → b → a"}},
		{"beside needs of what is not there, and of themselves", needs("x: zz", "a: nn, b, a", "b: zz, b, a"), []string{"", "", "", "a → b → a", "", ""}},
		{"two of them", needs("a: b", "b: a", "c: d, a", "d: c"), []string{"a → b → a", "c → d → c"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range 20 { // maps are in it, whose order is chance
				var got []string
				for _, p := range problems(t, c.plan) {
					_, path, _ := strings.Cut(p.Message, "cycle: ")
					path, _, _ = strings.Cut(path, ";")
					got = append(got, path)
				}
				if !slices.Equal(got, c.want) {
					t.Fatalf("cycles %q, want %q", got, c.want)
				}
			}
		})
	}
}

func TestALongCycleIsFound(t *testing.T) {
	const n = 20_000
	s := plan.New("p")
	for i := range n {
		s.Add(plan.TaskSpec{Name: fmt.Sprint("t", i), Needs: []string{fmt.Sprint("t", (i+n-1)%n)}})
	}
	ps := problems(t, s)
	if len(ps) != 1 || ps[0].Task != 0 || ps[0].Key != "needs" {
		t.Fatalf("%d problems, want the one cycle", len(ps))
	}
	if want := "t0 → t1 → t2 →"; !strings.Contains(ps[0].Message, want) || !strings.Contains(ps[0].Message, "→ 19971 more → t19999 → t0;") || len(ps[0].Message) > 500 {
		t.Errorf("got %s, want the beginning and the end of the cycle", ps[0].Message)
	}
}

func TestAProblemNamesTheExpression(t *testing.T) {
	for _, c := range []struct {
		name string
		task plan.TaskSpec
		want []string // paths
	}{
		{"params that are not there", plan.TaskSpec{Params: json.RawMessage(`{"a":"${{ params.b }} ${{ params.x }}"}`)}, []string{"params.b"}},
		{"a parent that it does not need", plan.TaskSpec{Params: json.RawMessage(`{"a":["${{ needs.b.c }}"]}`)}, []string{"needs.b.c"}},
		{"an item without foreach", plan.TaskSpec{Params: json.RawMessage(`{"a":"${{ item }}"}`)}, []string{"item"}},
		{"what is no path", plan.TaskSpec{Params: json.RawMessage(`{"a":"${{ 1 + 1 }}"}`)}, []string{"1 + 1"}},
		{"a list cannot have outputs, which come later", plan.TaskSpec{Needs: []string{"up"},
			Foreach: &plan.Foreach{List: json.RawMessage(`["${{ needs.up }}","${{ params.x }}"]`)}}, []string{"needs.up"}},
		{"nor can a pattern", plan.TaskSpec{Needs: []string{"up"}, Foreach: &plan.Foreach{Glob: "${{ needs.up.dir }}/*"}}, []string{"needs.up.dir"}},
		{"the name of a file may have params that are there", plan.TaskSpec{Foreach: &plan.Foreach{Lines: "${{ params.x }}${{ params.y }}"}},
			[]string{"params.y"}},
		{"a key that parents fill", plan.TaskSpec{Needs: []string{"up"}, Params: json.RawMessage(`{"args":["${{ needs.up }}"]}`)}, []string{"needs.up"}},
		{"a text in quotes is none", plan.TaskSpec{Params: json.RawMessage(`{"a":"${{ 'needs.up' }}"}`)}, nil},
		{"all is well", plan.TaskSpec{Needs: []string{"up"}, Params: json.RawMessage(`{"a":"${{ needs.up }}${{ params.x }}"}`)}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := needs("up")
			s.Params = map[string]json.RawMessage{"x": json.RawMessage(`"1"`)}
			c.task.Name = "task"
			s.Add(c.task)
			var got []string
			for _, p := range problems(t, s) {
				got = append(got, p.Expr)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("problems about %q, want %q", got, c.want)
			}
		})
	}
}

func TestThousandsOfUnknownNeedsShareTheirSuggestions(t *testing.T) {
	const n = 5000
	s := plan.New("p")
	for i := range n {
		s.Add(plan.TaskSpec{Name: fmt.Sprint("task-", i), Needs: []string{fmt.Sprint("task_", i)}})
	}
	ps := problems(t, s)
	if len(ps) != n || ps[7].Word != "task_7" || !slices.Contains(ps[7].Known, "task-7") {
		t.Fatalf("%d problems, want one for each task, with names that it could have been", len(ps))
	}
	if &ps[0].Known[0] != &ps[n-1].Known[0] {
		t.Errorf("each problem has a list of names of its own: validation is not linear in memory")
	}
}

func TestAnExpressionInAShellLineIsRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		task   plan.TaskSpec
		refuse bool
	}{
		{"a line", plan.TaskSpec{Params: map[string]any{"run": "rm ${{ params.x }}"}}, true},
		{"one that is not closed", plan.TaskSpec{Params: map[string]any{"run": "rm ${{"}}, true},
		{"a text in quotes", plan.TaskSpec{Params: map[string]any{"run": "rm ${{ '${{' }}"}}, false},
		{"a list", plan.TaskSpec{Params: map[string]any{"run": []string{"rm", "${{ params.x }}"}}}, false},
		{"a line without any", plan.TaskSpec{Params: map[string]any{"run": "rm x", "dir": "${{ params.x }}"}}, false},
		{"another plugin's own run", plan.TaskSpec{Plugin: "demo", Params: map[string]any{"run": "${{ params.x }}"}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := plan.New("p")
			s.Params = map[string]json.RawMessage{"x": json.RawMessage(`"a"`)}
			c.task.Name = "t"
			s.Add(c.task)
			ps := problems(t, s)
			if refused := len(ps) == 1 && ps[0].Key == "run" && strings.Contains(ps[0].Message, "env"); refused != c.refuse || !c.refuse && len(ps) > 0 {
				t.Errorf("problems %+v, want refused: %v", ps, c.refuse)
			}
		})
	}
}

func TestLimitsOfQueues(t *testing.T) {
	for _, c := range []struct {
		name   string
		limits []plan.QueueLimit
		want   string
	}{
		{"all is well", []plan.QueueLimit{{Queue: "imap", Threads: 4}, {Queue: "exec", Plugin: "exec", Threads: 1}}, ""},
		{"no threads", []plan.QueueLimit{{Queue: "imap"}}, `queue "imap": threads is 0; it is how many of its tasks may run at once, at least 1`},
		{"too many threads", []plan.QueueLimit{{Queue: "imap", Threads: plan.MaxThreads + 1}},
			`queue "imap": threads is 1000001; it is at most 1000000: lower it, or set no limit`},
		{"not a name", []plan.QueueLimit{{Queue: "i map", Threads: 1}}, `queue "i map": a name has only letters, digits, _, -, colons and dots; choose another name`},
		{"an id", []plan.QueueLimit{{Queue: strings.Repeat("a1", 12), Threads: 1}}, `queue "a1a1a1a1a1a1a1a1a1a1a1a1": 24 hex digits would be taken for an id; choose another name`},
		{"a step of a path", []plan.QueueLimit{{Queue: "..", Threads: 1}}, `queue "..": a name cannot be . or .., which the path of a URL drops; choose another name`},
		{"too long", []plan.QueueLimit{{Queue: strings.Repeat("q", 201), Threads: 1}}, `queue "qqqqqqqqqqqqqqqqqqqq"…: a name has at most 200 bytes, and this one has 201; choose a shorter one`},
		{"not a plugin", []plan.QueueLimit{{Queue: "imap", Plugin: "a b", Threads: 1}},
			"queue \"imap\": plugin \"a b\": a name has only letters, digits, _ and :, as in copy_mail or Disbatch::Plugin::Demo\ntask \"a\": queue \"imap\" is for plugin \"a b\", and the task needs \"demo\"; choose another queue"},
		{"twice", []plan.QueueLimit{{Queue: "imap", Threads: 1}, {Queue: "imap", Threads: 2}}, `queue "imap": it is there twice; one limit is enough`},
		{"nobody goes there", []plan.QueueLimit{{Queue: "impa", Threads: 1}}, `queue "impa": no task goes there; give a task queue: impa, or drop it`},
		{"another plugin", []plan.QueueLimit{{Queue: "imap", Plugin: "exec", Threads: 1}},
			`task "a": queue "imap" is for plugin "exec", and the task needs "demo"; choose another queue`},
		{"two plugins", []plan.QueueLimit{{Queue: "exec", Threads: 1}}, `task "c": queue "exec" is for plugin "exec", and the task needs "demo"; choose another queue`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := plan.New("p")
			s.Add(plan.TaskSpec{Name: "a", Queue: "imap", Plugin: "demo"})
			s.Add(plan.TaskSpec{Name: "b"})
			if c.name == "two plugins" {
				s.Add(plan.TaskSpec{Name: "c", Queue: "exec", Plugin: "demo"})
			}
			s.Limits = c.limits
			got := ""
			if err := compiler.Validate(s); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
