package compiler_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/expr"
	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

func TestParamsAreResolvedWhenTheTaskRuns(t *testing.T) {
	for _, c := range []struct{ name, params, want string }{
		{"outputs and items", `{"run":["cp","${{ item.from }}","${{ needs.dir }}/"],"needs":{"dir":"/x"},"item":{"from":7}}`,
			`{"run":["cp",7,"/x/"],"needs":{"dir":"/x"},"item":{"from":7}}`},
		{"what a parent returned is data, even if it looks like an expression", `{"x":"${{ needs.a }}","needs":{"a":"${{ item }}"},"args":["${{ item }}"]}`,
			`{"x":"${{ item }}","needs":{"a":"${{ item }}"},"args":["${{ item }}"]}`},
		{"a text in quotes is itself", `{"run":"echo '${{ '${{' }} x }}'"}`, `{"run":"echo '${{ x }}'"}`},
		{"nothing to resolve", `{"run": "x"}`, `{"run": "x"}`},
		{"an item that there is not", `{"dir":"${{ item }}"}`, `error: params.dir: ${{ item }}: the task has none`},
		{"it says where", `{"env":{"A":["${{ item }}"]}}`, `error: params.env: A: ${{ item }}: the task has none`},
		{"a word that was to be replaced at submission", `{"dir":"${{ params.x }}"}`, `error: not known here`},
		{"a shell line, in which a value could be read as commands", `{"run":"rm ${{ item }}","item":"; x"}`, `error: pass the value by env`},
		{"a secret that data asks for", `{"env":{"A":"${{ item }}"},"item":{"from_env":"TOKEN"}}`, `error: params.env: A: the expression gives`},
		{"all variables from data", `{"env":"${{ item }}","item":{"A":{"from_env":"TOKEN"}}}`, `error: params.env: the expression gives`},
		{"a number for a variable", `{"env":{"A":"${{ item }}"},"item":5}`, `{"env":{"A":5},"item":5}`},
		{"params that are no object", `["${{ item }}"]`, `error: not a JSON object`},
	} {
		t.Run(c.name, func(t *testing.T) {
			task := protocol.ClaimedTask{Plugin: plan.DefaultPlugin}
			if got, err := compiler.Resolve(&task, json.RawMessage(c.params), nil); err != nil || string(got) != c.params {
				t.Errorf("of a task without expressions: got %s, %v", got, err)
			}
			task.Template = true
			got, err := compiler.Resolve(&task, json.RawMessage(c.params), nil)
			if want, fails := strings.CutPrefix(c.want, "error: "); fails {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %s, %v; want an error with %q", got, err, want)
				}
			} else if err != nil || string(got) != c.want {
				t.Errorf("got %s, %v; want %s", got, err, c.want)
			}
		})
	}
}

// Whatever a param, an item and an output hold, they come out of a task's params as they went in,
// next to any text of the author.
func FuzzDataIsNeverEvaluated(f *testing.F) {
	for _, s := range []string{
		"", "plain", "${{ params.p }}", "${{ needs.up }}", "${{ item }}", "${{", "}}", "$", "{{ item }}", "${", "' }}${{ item }}", "'", "${{ 'a' }}",
		"$${{ item }}", "a\nb ${{ x", "\u2028 ${{ é }}", "]]>", `\u0024{{ item }}`, `"`,
	} {
		f.Add(s, s, s, "$", "{{ item }}")
		f.Add(s, "x", "${{ item }}", s, s)
	}
	f.Fuzz(func(t *testing.T, param, output, item, before, after string) {
		for _, s := range []*string{&param, &output, &item, &before, &after} {
			*s = strings.ToValidUTF8(*s, "?")
		}
		before, after = expr.Quote(before), expr.Quote(after)
		written := map[string]any{
			"param": "${{ params.p }}", "output": "${{ needs.up.x }}", "item2": "${{ item }}",
			"all":  before + "${{ params.p }}${{ needs.up.x }}" + after + "${{ item }}",
			"env":  map[string]any{"A": before + "${{ params.p }}" + after},
			"list": []any{"${{ params.deep }}"},
			"name": "${{ plan.name }}",
		}
		data := map[string]any{"p": param, "deep": []any{param, map[string]any{"${{ k }}": param}}}
		s := plan.New("p")
		s.Params = map[string]json.RawMessage{}
		for k, v := range data {
			s.Params[k] = encode(t, v)
		}
		s.Add(plan.TaskSpec{Name: "up"})
		s.Add(plan.TaskSpec{Name: "each", Needs: []string{"up"}, Params: written, Foreach: &plan.Foreach{Value: "needs.up.l"}})
		s.Add(plan.TaskSpec{Name: "early", Params: map[string]any{"all": before + "${{ params.p }}" + after}, Foreach: &plan.Foreach{Value: "params.deep"}})
		if err := compiler.Validate(s); err != nil {
			t.Fatal(err)
		}
		_, tasks := compiled(t, s)
		inputs := []plan.Input{{Name: "up", Output: encode(t, map[string]any{"x": output, "l": []any{item}})}}
		before, after = unquote(t, before), unquote(t, after)

		items, err := rules.ExpandItems(tasks[1].Foreach, inputs)
		if err != nil || len(items) != 1 {
			t.Fatalf("%d items, %v", len(items), err)
		}
		params, err := rules.Deliver(tasks[1].Params, inputs)
		if err != nil {
			t.Fatal(err)
		}
		each := rules.ItemTask(&tasks[1], 0, items[0], params, s0)
		got := resolve(t, &each)
		want := map[string]any{
			"param": param, "output": output, "item2": item, "all": before + param + output + after + item, "name": "p",
			"env": map[string]any{"A": before + param + after}, "list": []any{data["deep"]}, "p": param, "deep": data["deep"], "item": item,
		}
		for k, v := range want {
			if g, w := encode(t, got[k]), encode(t, v); !jsontext.Same(g, w) {
				t.Errorf("%s is %s, want %s, of %s", k, g, w, tasks[1].Params)
			}
		}
		got = resolve(t, &tasks[2])
		if w := before + param + after; got["all"] != w || got["p"] != param {
			t.Errorf("got %q and the variable %q, want %q and %q, of %s", got["all"], got["p"], w, param, tasks[2].Params)
		}
		if g, w := tasks[2].Foreach.List, encode(t, data["deep"]); !jsontext.Same(g, w) {
			t.Errorf("the items are %s, want %s", g, w)
		}
	})
}

func encode(t *testing.T, v any) json.RawMessage {
	t.Helper()
	j, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func unquote(t *testing.T, s string) (text string) {
	t.Helper()
	data, ok := expr.UnquoteJSON(encode(t, s))
	if err := json.Unmarshal(data, &text); !ok || err != nil {
		t.Fatalf("%q in quotes became %s, %v", s, data, err)
	}
	return text
}

// resolve returns what the plugin of a task gets.
func resolve(t *testing.T, task *plan.Task) (got map[string]any) {
	t.Helper()
	claimed := protocol.ClaimedTask{Plugin: plan.DefaultPlugin, Definition: task.Definition}
	params, err := compiler.Resolve(&claimed, task.Params, nil)
	if err == nil {
		err = json.Unmarshal(params, &got)
	}
	if err != nil {
		t.Fatalf("%s: %v", task.Params, err)
	}
	return got
}

func ExampleResolve() {
	task := protocol.ClaimedTask{Plugin: "exec", Definition: plan.Definition{Template: true}}
	params, err := compiler.Resolve(&task, json.RawMessage(`{"run":["./copy","${{ item }}","${{ needs.target.host }}"],"item":"a.txt","needs":{"target":{"host":"mx1"}}}`), nil)
	fmt.Println(string(params), err)
	// Output: {"run":["./copy","a.txt","mx1"],"item":"a.txt","needs":{"target":{"host":"mx1"}}} <nil>
}

func Example_quote() {
	file := "what ${{ braces }} mean.txt" // a name that nobody wrote as an expression
	s := plan.New("p")
	s.Add(plan.TaskSpec{Name: "show", Params: map[string]any{"run": []string{"cat", expr.Quote(file)}}})
	_, tasks, err := compiler.Compile(s, time.Now(), func(compiler.QueueNeed) (plan.QueueID, error) { return plan.QueueID{}, nil })
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(tasks[0].Params))
	// Output: {"run":["cat","what ${{ braces }} mean.txt"]}
}

var s0 = time.Unix(0, 0)
