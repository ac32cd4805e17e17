package plan_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

// scope knows a, which is an object, text, and list; it leaves later for later and knows nothing else.
func scope(word string) (json.RawMessage, bool, error) {
	switch word {
	case "a":
		return json.RawMessage(`{"n":1.50,"s":"x\"y","l":[10,{"k":true}],"null":null,"null2":"","o":{"z":1,"a":2},"1":"one"}`), true, nil
	case "text":
		return json.RawMessage(`"$x ${{ a.n }}"`), true, nil
	case "odd":
		return json.RawMessage(`{"${{ a }}":["it''s", "${{ it's }}", "\u0024{{ x }}"]}`), true, nil
	case "later":
		return nil, false, nil
	}
	return nil, false, fmt.Errorf("%q is not known", word)
}

func TestExpressionsAreReplaced(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"what has none stays to the byte", `{"b": 1,"a":[ ]}`, `{"b": 1,"a":[ ]}`},
		{"a text that is one takes the value's type", `{"x":"${{ a.n }}"}`, `{"x":1.50}`},
		{"an object too", `["${{a.o}}"]`, `[{"z":1,"a":2}]`},
		{"null too", `"${{ a.null }}"`, `null`},
		{"within a text a text is written as it is", `"<${{ a.s }}>"`, `"<x\"y>"`},
		{"and other values as JSON", `"${{ a.n }}, ${{ a.l }}"`, `"1.50, [10,{\"k\":true}]"`},
		{"two in a row are not one", `"${{ a.n }}${{ a.n }}"`, `"1.501.50"`},
		{"an element of a list", `"${{ a.l.1.k }}"`, `true`},
		{"an element as others write it", `"${{ a.l[0] }}"`, `10`},
		{"a field whose name is a number", `"${{ a.1 }}"`, `"one"`},
		{"what the scope leaves stays", `{"x":"${{ later.y }} ${{ a.n }}","y":"${{ later }}"}`, `{"x":"${{ later.y }} 1.50","y":"${{ later }}"}`},
		{"what is put in is data, and quoted where it looks like more", `"${{ text }}"`, `"${{ '$x ${{ a.n }}' }}"`},
		{"also within a text", `"-${{ text }} ${{ later }}"`, `"${{ '-$x ${{ a.n }} ' }}${{ later }}"`},
		{"also if only both together do", `"$${{ a.null2 }}{{ later }}"`, `"${{ '${{ later }}' }}"`},
		{"also deep in a value", `"${{ odd }}"`, `{"${{ a }}":["it''s", "${{ '${{ it''s }}' }}", "${{ '${{ x }}' }}"]}`},
		{"a text in quotes is itself", `"${{ 'a' }}-${{'it''s'}}"`, `"a-it's"`},
		{"it stays in quotes if it has to", `"${{ '${{' }} x }}"`, `"${{ '${{ x }}' }}"`},
		{"braces and lines may be in the quotes", `"${{ 'a }}\nb' }}"`, `"a }}\nb"`},
		{"an expression that JSON writes with escapes", `["\u0024{{ a.n }}", "\u00e9"]`, `[1.50, "\u00e9"]`},
		{"what is not closed is a text", `"${{ a.n"`, `"${{ a.n"`},
		{"keys are not replaced", `{"${{ a.n }}":"${{ a.n }}"}`, `{"${{ a.n }}":1.50}`},
		{"large numbers beside it keep their digits", `[12345678901234567890,"${{ a.n }}"]`, `[12345678901234567890,1.50]`},
		{"an unknown word", `"${{ b.x }}"`, `error: "b" is not known`},
		{"a field that is not there", `{"k":["${{ a.x.y }}"]}`, `error: k: ${{ a.x.y }}: a has no "x"`},
		{"a field of a text", `"${{ a.s.x }}"`, `error: a.s is`},
		{"a field of null", `"${{ a.null.x }}"`, `error: a.null is null`},
		{"an element behind the end", `"${{ a.l.2 }}"`, `error: a.l is a list of 2`},
		{"an element before the start", `"${{ a.l.-1 }}"`, `error: a.l is a list of 2`},
		{"what is more than a path", `"${{ a.n + 1 }}"`, `error: dotted path`},
		{"nothing", `"x${{ }}"`, `error: dotted path`},
		{"a quote that is not closed", `"x${{ 'a }}"`, `error: dotted path`},
		{"a quote that is not doubled", `"x${{ 'it's' }}"`, `error: dotted path`},
		{"what is no JSON", `["${{ a.n }}"`, `error: unexpected end`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := plan.Substitute(json.RawMessage(c.value), scope)
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

func FuzzSubstitute(f *testing.F) {
	for _, v := range []string{`{"x":"${{ a.n }}"}`, `["a ${{ a.l[0] }} b","${{ later }}"]`, `"${{ text }}"`, `"${{"`, `"}} ${{ a.1 }}"`, `"\u0024{{ a.n }}"`} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if !json.Valid([]byte(value)) {
			return
		}
		got, err := plan.Substitute(json.RawMessage(value), scope)
		if err != nil {
			return
		}
		if !json.Valid(got) {
			t.Fatalf("%s became %s, which is not JSON", value, got)
		}
		if !strings.Contains(value, "${{") && !strings.Contains(value, `\u00`) && string(got) != value {
			t.Errorf("%s holds no expression, and became %s", value, got)
		}
		quoted := plan.QuoteJSON(json.RawMessage(value))
		if same, err := plan.Substitute(quoted, scope); err != nil || decode(t, same) != decode(t, quoted) {
			t.Errorf("%s became %s, %v; in quotes it is data", quoted, same, err)
		}
		if same, ok := plan.UnquoteJSON(quoted); !ok || decode(t, same) != decode(t, json.RawMessage(value)) {
			t.Errorf("%s was quoted as %s, and came back as %s", value, quoted, same)
		}
	})
}

// decode prints a value so that equal values print alike.
func decode(t *testing.T, j json.RawMessage) string {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(string(j)))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%q: %v", j, err)
	}
	return fmt.Sprintf("%#v", v)
}

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
		{"a secret that data asks for", `{"env":{"A":"${{ item }}"},"item":{"from_env":"TOKEN"}}`, `error: params.env: A: what the expression leads to is`},
		{"all variables from data", `{"env":"${{ item }}","item":{"A":{"from_env":"TOKEN"}}}`, `error: params.env: what the expression leads to is`},
		{"a number for a variable", `{"env":{"A":"${{ item }}"},"item":5}`, `{"env":{"A":5},"item":5}`},
		{"params that are no object", `["${{ item }}"]`, `error: not a JSON object`},
	} {
		t.Run(c.name, func(t *testing.T) {
			task := plan.ClaimedTask{Plugin: plan.DefaultPlugin}
			if got, err := task.Resolve(json.RawMessage(c.params)); err != nil || string(got) != c.params {
				t.Errorf("of a task without expressions: got %s, %v", got, err)
			}
			task.Template = true
			got, err := task.Resolve(json.RawMessage(c.params))
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
		before, after = plan.Quote(before), plan.Quote(after)
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
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		_, tasks := compiled(t, s)
		inputs := []plan.Input{{Name: "up", Output: encode(t, map[string]any{"x": output, "l": []any{item}})}}
		before, after = unquote(t, before), unquote(t, after)

		items, err := tasks[1].Foreach.Expand(inputs)
		if err != nil || len(items) != 1 {
			t.Fatalf("%d items, %v", len(items), err)
		}
		params, err := plan.Deliver(tasks[1].Params, inputs)
		if err != nil {
			t.Fatal(err)
		}
		each := plan.ItemTask(&tasks[1], 0, items[0], params, s0)
		got := resolve(t, &each)
		want := map[string]any{
			"param": param, "output": output, "item2": item, "all": before + param + output + after + item, "name": "p",
			"env": map[string]any{"A": before + param + after}, "list": []any{data["deep"]}, "p": param, "deep": data["deep"], "item": item,
		}
		for k, v := range want {
			if g, w := decode(t, encode(t, got[k])), decode(t, encode(t, v)); g != w {
				t.Errorf("%s is %s, want %s, of %s", k, g, w, tasks[1].Params)
			}
		}
		got = resolve(t, &tasks[2])
		if w := before + param + after; got["all"] != w || got["p"] != param {
			t.Errorf("got %q and the variable %q, want %q and %q, of %s", got["all"], got["p"], w, param, tasks[2].Params)
		}
		if g, w := decode(t, tasks[2].Foreach.List), decode(t, encode(t, data["deep"])); g != w {
			t.Errorf("the items are %s, want %s", g, w)
		}
	})
}

var s0 = time.Unix(0, 0)

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
	data, ok := plan.UnquoteJSON(encode(t, s))
	if err := json.Unmarshal(data, &text); !ok || err != nil {
		t.Fatalf("%q in quotes became %s, %v", s, data, err)
	}
	return text
}

// resolve returns what the plugin of a task gets.
func resolve(t *testing.T, task *plan.Task) (got map[string]any) {
	t.Helper()
	claimed := plan.ClaimedTask{Plugin: plan.DefaultPlugin, Definition: task.Definition}
	params, err := claimed.Resolve(task.Params)
	if err == nil {
		err = json.Unmarshal(params, &got)
	}
	if err != nil {
		t.Fatalf("%s: %v", task.Params, err)
	}
	return got
}

func TestExpressionsOfATextAreListed(t *testing.T) {
	got := plan.Expressions(`${{ a.b }} and ${{c}}, not {{ d }} nor ${ e }`)
	if fmt.Sprint(got) != "[a.b c]" {
		t.Errorf("got %q", got)
	}
	for text, want := range map[string]bool{"": false, "${{ a }}": true, "${{ 'a' }}": false, "${{ '${{' }} a }}": false, "${{ a": true, "${{ 'a' }} ${{": true} {
		if got := plan.HasExpressions(text); got != want {
			t.Errorf("%q has expressions: %v, want %v", text, got, want)
		}
	}
}

func TestTheLeadOfATextIsWhatStandsBeforeItsFirstExpression(t *testing.T) {
	for text, want := range map[string]string{"a/b": "a/b", "a/${{ b }}/c": "a/", "${{ b }}": "", "${{ '${{ x' }}/${{ b }}": "${{ x/"} {
		if got := plan.Lead(text); got != want {
			t.Errorf("the lead of %q is %q, want %q", text, got, want)
		}
	}
}

func ExampleClaimedTask_Resolve() {
	task := plan.ClaimedTask{Plugin: "exec", Definition: plan.Definition{Template: true}}
	params, err := task.Resolve(json.RawMessage(`{"run":["./copy","${{ item }}","${{ needs.target.host }}"],"item":"a.txt","needs":{"target":{"host":"mx1"}}}`))
	fmt.Println(string(params), err)
	// Output: {"run":["./copy","a.txt","mx1"],"item":"a.txt","needs":{"target":{"host":"mx1"}}} <nil>
}

func ExampleQuote() {
	file := "what ${{ braces }} mean.txt" // a name that nobody wrote as an expression
	s := plan.New("p")
	s.Add(plan.TaskSpec{Name: "show", Params: map[string]any{"run": []string{"cat", plan.Quote(file)}}})
	_, tasks, err := s.Compile(time.Now(), func(plan.QueueNeed) (plan.QueueID, error) { return plan.QueueID{}, nil })
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(tasks[0].Params))
	// Output: {"run":["cat","what ${{ braces }} mean.txt"]}
}
