package compiler_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/plan"
)

func TestWhatIsWrongWithAPlanIsSaid(t *testing.T) {
	with := func(change func(*plan.Spec, *plan.TaskSpec)) *plan.Spec {
		s := needs("up", "task: up")
		change(s, &s.Tasks[1])
		return s
	}
	of := func(change func(*plan.TaskSpec)) *plan.Spec {
		return with(func(_ *plan.Spec, t *plan.TaskSpec) { change(t) })
	}
	for _, c := range []struct {
		name string
		plan *plan.Spec
		task int // where the problem is; -1: the plan
		key  string
		says string // "": all is well
	}{
		{"a plan as it should be", of(func(*plan.TaskSpec) {}), 0, "", ""},
		{"a plan without a name", with(func(s *plan.Spec, _ *plan.TaskSpec) { s.Name = "" }), -1, "plan", "has no name"},
		{"a plan's name with a space", with(func(s *plan.Spec, _ *plan.TaskSpec) { s.Name = "my plan" }), -1, "plan", "letters, digits"},
		{"a plan's name that is an id", with(func(s *plan.Spec, _ *plan.TaskSpec) { s.Name = strings.Repeat("0a", 12) }), -1, "plan", "taken for an id"},
		{"an unknown on_failure", with(func(s *plan.Spec, _ *plan.TaskSpec) { s.OnFailure = "abort" }), -1, "on_failure", `"abort"; it is continue or stop`},
		{"a param that is called as a setting", with(func(s *plan.Spec, _ *plan.TaskSpec) {
			s.Params = map[string]json.RawMessage{"env": json.RawMessage(`1`)}
		}), -1, "params", `cannot be named "env"`},
		{"a plan without tasks", plan.New("p"), -1, "tasks", "has no tasks"},
		{"a plan's name that looks like a flag", with(func(s *plan.Spec, _ *plan.TaskSpec) { s.Name = "-x" }), -1, "plan", `"-x": a name does not begin with -`},
		{"a task's name that looks like a flag", needs("a", "-b"), 1, "", `"-b": a name does not begin with -`},
		{"a queue's name that is too long", of(func(t *plan.TaskSpec) { t.Queue = strings.Repeat("q", 1001) }), 1, "queue", `a name has at most 200 bytes, and this one has 1001`},
		{"a queue's name that looks like a flag", of(func(t *plan.TaskSpec) { t.Queue = "-q" }), 1, "queue", `queue "-q": a name does not begin with -`},
		{"a task without a name", needs("a", ""), 1, "", "has no name"},
		{"a task's name with a dot", needs("a", "b.c"), 1, "", `"b.c"`},
		{"a name that is too long", needs(strings.Repeat("x", 201)), 0, "", "at most 200"},
		{"a name twice", needs("a", "b", "a"), 2, "", `"a" is there twice (tasks 1 and 3)`},
		{"a need that is not there", needs("a", "b: c"), 1, "needs", `"b" needs "c", which is not in the plan`},
		{"a need of itself", needs("a", "b: b"), 1, "needs", "needs itself"},
		{"a need twice", needs("a", "b: a, a"), 1, "needs", `"a" twice`},
		{"a need twice among many", needs("a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q",
			"z: a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, g"), 17, "needs", `"g" twice`},
		{"an unknown rule", of(func(t *plan.TaskSpec) { t.When = "allways" }), 1, "when", `"allways" is not a rule`},
		{"a rule that needs parents, where there are none", alone(plan.AnyFailed), 0, "when", "can never hold"},
		{"a rule that does not, where there are none", alone(plan.AllDone), 0, "", ""},
		{"a plugin's name with a space", of(func(t *plan.TaskSpec) { t.Plugin = "a b" }), 1, "plugin", `"a b"`},
		{"a plugin's name as Perl has them", of(func(t *plan.TaskSpec) { t.Plugin = "Disbatch::Plugin::Demo" }), 0, "", ""},
		{"a queue's name with a slash", of(func(t *plan.TaskSpec) { t.Queue = "a/b" }), 1, "queue", `"a/b"`},
		{"params with a name twice", of(func(t *plan.TaskSpec) { t.Params = json.RawMessage(`{"x":{"a":1,"a":2}}`) }), 1, "params", `params have "a" twice in one object; give it once`},
		{"a timeout before it starts", of(func(t *plan.TaskSpec) { t.Timeout = -1 }), 1, "timeout", "cannot be negative"},
		{"an estimate before it starts", of(func(t *plan.TaskSpec) { t.Estimate = -1 }), 1, "estimate", "cannot be negative"},
		{"a delay that goes back", of(func(t *plan.TaskSpec) { t.Retry.Delay = -time.Second }), 1, "retry", "cannot be negative"},
		{"no delay", of(func(t *plan.TaskSpec) { t.Retry.Delay, t.Retry.Max = plan.NoDelay, plan.NoDelay }), 0, "", ""},
		{"fewer attempts than none", of(func(t *plan.TaskSpec) { t.Retry.Attempts = -1 }), 1, "retry", "attempts is -1; it is a whole number of at least 1"},
		{"more attempts than any store counts", of(func(t *plan.TaskSpec) { t.Retry.Attempts = 1e13 }), 1, "retry", "attempts is 10000000000000; it is at most 2147483647"},
		{"fewer rescues than none", of(func(t *plan.TaskSpec) { t.MaxRescues = -1 }), 1, "max_rescues", "max_rescues is -1; it is a whole number of at least 1"},
		{"a span that ends before it begins", of(func(t *plan.TaskSpec) { t.Foreach = &plan.Foreach{Glob: "in/[z-a]*"} }), 1, "foreach", `glob "in/[z-a]*" is no pattern: z-a ends before it begins; write a-z`},
		{"a class that only shells know", of(func(t *plan.TaskSpec) { t.Foreach = &plan.Foreach{Glob: "[[:alpha:]]*"} }), 1, "foreach", `[:alpha:] names a class as only shells know it; write its letters`},
		{"a sequence that only shells know", of(func(t *plan.TaskSpec) { t.Foreach = &plan.Foreach{Glob: "part{1..10}"} }), 1, "foreach", `{1..10} is a sequence as only shells know it; write [a-c]`},
		{"a malformed pattern", of(func(t *plan.TaskSpec) { t.Foreach = &plan.Foreach{Glob: "["} }), 1, "foreach", `glob "[" is no pattern`},
		{"a factor that shortens delays", of(func(t *plan.TaskSpec) { t.Retry.Factor = 0.5 }), 1, "retry", "at least 1"},
		{"an unknown on_lost", of(func(t *plan.TaskSpec) { t.OnLost = "again" }), 1, "on_lost", `"again"; it is retry or fail`},
		{"params that are no object", of(func(t *plan.TaskSpec) { t.Params = []int{1} }), 1, "params", "object"},
		{"params that cannot be written", of(func(t *plan.TaskSpec) { t.Params = map[string]any{"f": func() {}} }), 1, "params", "func"},
		{"an expression over an unknown param", of(func(t *plan.TaskSpec) { t.Params = map[string]any{"x": "${{ params.y }}"} }), 1, "params", `no param "y"`},
		{"an expression over an unknown word", of(func(t *plan.TaskSpec) { t.Params = map[string]any{"x": "${{ secrets.y }}"} }), 1, "params", `"secrets" is not known`},
		{"an expression over what a plan has not", of(func(t *plan.TaskSpec) { t.Params = map[string]any{"x": "${{ plan.run }}"} }), 1, "params", "plan has only id, name, state"},
		{"failures for a task that runs without any", of(func(t *plan.TaskSpec) { t.Params = map[string]any{"x": "${{ failures }}"} }), 1, "params", "failures are for one with another when"},
		{"a foreach over the state of the plan", of(func(t *plan.TaskSpec) { t.Foreach = &plan.Foreach{Value: "plan.state"} }), 1, "foreach", "let a task return it, and go over its output"},
		{"a subject with the state of the plan", of(func(t *plan.TaskSpec) { t.Subject = "${{ plan.state }}" }), 1, "subject", "is not known yet when the subject is read"},
		{"a foreach over nothing", of(func(t *plan.TaskSpec) { t.Foreach = &plan.Foreach{} }), 1, "foreach", "takes one of"},
		{"a foreach over two things", of(func(t *plan.TaskSpec) { t.Foreach = &plan.Foreach{Lines: "x", Glob: "*"} }), 1, "foreach", "takes one of"},
		{"a foreach over a part of its own item", of(func(t *plan.TaskSpec) { t.Foreach = &plan.Foreach{Value: "item[0]"} }), 1, "foreach", "makes itself"},
		{"a foreach over a word that begins as item", of(func(t *plan.TaskSpec) { t.Foreach = &plan.Foreach{Value: "items.x"} }), 1, "foreach", `"items" is not known`},
		{"a foreach over files of outputs in brackets", of(func(t *plan.TaskSpec) { t.Foreach = &plan.Foreach{Glob: "${{ needs[0] }}/*"} }), 1, "foreach", "not known yet"},
		{"a foreach over its own items", of(func(t *plan.TaskSpec) { t.Foreach = &plan.Foreach{Value: "item.x"} }), 1, "foreach", "makes itself"},
		{"a foreach over what it does not need", of(func(t *plan.TaskSpec) { t.Foreach = &plan.Foreach{Value: "needs.x"} }), 1, "foreach", `does not need "x"`},
		{"a foreach over a text", of(func(t *plan.TaskSpec) { t.Foreach = &plan.Foreach{List: json.RawMessage(`"x"`)} }), 1, "foreach", "not a list"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ps := problems(t, c.plan)
			if c.says == "" {
				if len(ps) > 0 {
					t.Errorf("got %v, want no problem", ps)
				}
				return
			}
			if len(ps) != 1 || ps[0].Task != c.task || ps[0].Key != c.key || !strings.Contains(ps[0].Message, c.says) {
				t.Errorf("got %+v, want one problem of task %d, key %q, with %q", []plan.Problem(ps), c.task, c.key, c.says)
			}
		})
	}
}

// alone is a plan of one task without parents, and with a rule.
func alone(when plan.When) *plan.Spec {
	s := plan.New("p")
	s.Add(plan.TaskSpec{Name: "a", When: when})
	return s
}

func TestAllProblemsAreSaidInTheOrderOfTheFile(t *testing.T) {
	s := needs("a: z", "b", "b", "c: y")
	s.Name = ""
	ps := problems(t, s)
	var got []int
	for _, p := range ps {
		got = append(got, p.Task)
	}
	if fmt.Sprint(got) != "[-1 0 2 3]" {
		t.Errorf("problems are of tasks %v, want [-1 0 2 3]", got)
	}
	if lines := strings.Count(ps.Error(), "\n"); lines != 3 {
		t.Errorf("%d lines of problems, want one each:\n%v", lines+1, ps)
	}
}

func TestALargePlanIsValidatedAndCompiledInLinearTimeAndMemory(t *testing.T) {
	const tasks, each = 100_000, 3
	s := plan.New("large")
	for i := range tasks {
		t := plan.TaskSpec{Name: fmt.Sprint("t", i)}
		for k := 1; k <= each && i-k*k*k >= 0; k++ {
			t.Needs = append(t.Needs, fmt.Sprint("t", i-k*k*k))
		}
		s.Add(t)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	if err := compiler.Validate(s); err != nil {
		t.Fatal(err)
	}
	validated := time.Since(began)
	_, compiledTasks := compiled(t, s)
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	bytes := after.TotalAlloc - before.TotalAlloc
	t.Logf("validated in %v, compiled in %v more, %d MiB allocated", validated, took-validated, bytes>>20)
	if took > 2*time.Minute {
		t.Errorf("it took %v: what is quadratic takes minutes, what is linear less than a second", took)
	}
	if bytes > 400<<20 {
		t.Errorf("it allocated %d MiB, want less than 400", bytes>>20)
	}
	if want := int64(tasks * time.Second / time.Microsecond); compiledTasks[0].Rank != want {
		t.Errorf("the rank of the first task is %d, want %d", compiledTasks[0].Rank, want)
	}
}
