package expr_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/expr"
)

// scope knows a, which is an object, text, and list; it leaves later for later and knows nothing else.
func scope(steps []string) (json.RawMessage, bool, error) {
	switch steps[0] {
	case "a":
		return json.RawMessage(`{"n":1.50,"s":"x\"y","l":[10,{"k":true}],"null":null,"null2":"","o":{"z":1,"a":2},"1":"one"}`), true, nil
	case "text":
		return json.RawMessage(`"$x ${{ a.n }}"`), true, nil
	case "odd":
		return json.RawMessage(`{"${{ a }}":["it''s", "${{ it's }}", "\u0024{{ x }}"]}`), true, nil
	case "regions":
		return json.RawMessage(`[{"files":["a","b"],"n":1},null,{"files":[],"n":2},{"files":["c"],"n":3}]`), true, nil
	case "deep":
		return json.RawMessage(`{"all":[[1,[2]],[3]],"odd":[{"x":1},{}],"none":[]}`), true, nil
	case "later":
		return nil, false, nil
	}
	return nil, false, fmt.Errorf("%q is not known", steps[0])
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
		{"a field of each element, one level flattened", `"${{ regions.*.files }}"`, `["a","b","c"]`},
		{"a field of each that is no list", `"${{ regions.*.n }}"`, `[1,2,3]`},
		{"a list of lists, one level flattened", `"${{ deep.all.* }}"`, `[1,[2],3]`},
		{"two levels", `"${{ deep.all.*.* }}"`, `[1,2,3]`},
		{"of no elements", `"${{ deep.none.*.x }}"`, `[]`},
		{"later, each element", `"${{ later.*.x }}"`, `"${{ later.*.x }}"`},
		{"a field that an element lacks", `"${{ deep.odd.*.x }}"`, `error: ${{ deep.odd.*.x }}: deep.odd.1 has no "x"`},
		{"each of an object", `"${{ deep.* }}"`, `error: deep is no list, which .* goes over, but`},
		{"each of a null", `"${{ a.null.* }}"`, `error: a.null is no list, which .* goes over, but`},
		{"a star that is a part", `"${{ deep.a* }}"`, `error: dotted path`},
		{"a star in front", `"${{ *.x }}"`, `error: dotted path`},
		{"what is more than a path", `"${{ a.n + 1 }}"`, `error: dotted path`},
		{"nothing", `"x${{ }}"`, `error: dotted path`},
		{"a quote that is not closed", `"x${{ 'a }}"`, `error: dotted path`},
		{"a quote that is not doubled", `"x${{ 'it's' }}"`, `error: dotted path`},
		{"what is no JSON", `["${{ a.n }}"`, `error: unexpected end`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := expr.Substitute(json.RawMessage(c.value), scope)
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
		got, err := expr.Substitute(json.RawMessage(value), scope)
		if err != nil {
			return
		}
		if !json.Valid(got) {
			t.Fatalf("%s became %s, which is not JSON", value, got)
		}
		if !strings.Contains(value, "${{") && !strings.Contains(value, `\u00`) && string(got) != value {
			t.Errorf("%s holds no expression, and became %s", value, got)
		}
		quoted := expr.QuoteJSON(json.RawMessage(value))
		if same, err := expr.Substitute(quoted, scope); err != nil || decode(t, same) != decode(t, quoted) {
			t.Errorf("%s became %s, %v; in quotes it is data", quoted, same, err)
		}
		if same, ok := expr.UnquoteJSON(quoted); !ok || decode(t, same) != decode(t, json.RawMessage(value)) {
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

func TestExpressionsOfATextAreListed(t *testing.T) {
	got := expr.Paths(`${{ a.b }} and ${{c}}, not {{ d }} nor ${ e }`)
	if fmt.Sprint(got) != "[a.b c]" {
		t.Errorf("got %q", got)
	}
	for text, want := range map[string]bool{"": false, "${{ a }}": true, "${{ 'a' }}": false, "${{ '${{' }} a }}": false, "${{ a": true, "${{ 'a' }} ${{": true} {
		if got := expr.Has(text); got != want {
			t.Errorf("%q has expressions: %v, want %v", text, got, want)
		}
	}
}

func TestTheLeadOfATextIsWhatStandsBeforeItsFirstExpression(t *testing.T) {
	for text, want := range map[string]string{"a/b": "a/b", "a/${{ b }}/c": "a/", "${{ b }}": "", "${{ '${{ x' }}/${{ b }}": "${{ x/"} {
		if got := expr.Lead(text); got != want {
			t.Errorf("the lead of %q is %q, want %q", text, got, want)
		}
	}
}
