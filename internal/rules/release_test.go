package rules_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

func TestATaskIsGivenItsParentsOutputs(t *testing.T) {
	a, b := plan.Input{Name: "a", Output: json.RawMessage(`{"x":1}`)}, plan.Input{Name: "b"}
	for _, c := range []struct {
		name, params string
		inputs       []plan.Input
		want         string
	}{
		{"by name, and in the order of its needs", `{"run":"x"}`, []plan.Input{b, a}, `{"run":"x","needs":{"b":null,"a":{"x":1}},"args":[null,{"x":1}]}`},
		{"without params of its own", ``, []plan.Input{a}, `{"needs":{"a":{"x":1}},"args":[{"x":1}]}`},
		{"with params that are null", ` null `, []plan.Input{a}, `{"needs":{"a":{"x":1}},"args":[{"x":1}]}`},
		{"with params that are empty", `{ }`, []plan.Input{a}, `{"needs":{"a":{"x":1}},"args":[{"x":1}]}`},
		{"in place of what its params called so", `{"args":[0],"run":"x","needs":7}`, []plan.Input{b}, `{"run":"x","needs":{"b":null},"args":[null]}`},
		{"also where the words are deeper down, or a value", `{"p":{"needs":1},"q":"args"}`, []plan.Input{b}, `{"p":{"needs":1},"q":"args","needs":{"b":null},"args":[null]}`},
		{"of an item of a foreach task", `{}`, []plan.Input{{Name: "copy[17]", Output: json.RawMessage(`1`)}}, `{"needs":{"copy[17]":1},"args":[1]}`},
		{"whatever the parent is called", `{}`, []plan.Input{{Name: "\x01 \"ü\"\u2028", Output: json.RawMessage(`1`)}}, `{"needs":{"\u0001 \"ü\"\u2028":1},"args":[1]}`},
		{"of parents with one name, which is for tasks of no plan: the last by name, all in order", `{}`,
			[]plan.Input{{Name: "a", Output: json.RawMessage(`1`)}, {Name: "b"}, {Name: "a", Output: json.RawMessage(`2`)}}, `{"needs":{"b":null,"a":2},"args":[1,null,2]}`},
		{"also if they are many", `{}`, slices.Repeat([]plan.Input{a, b}, 6),
			`{"needs":{"a":{"x":1},"b":null},"args":[{"x":1},null` + strings.Repeat(`,{"x":1},null`, 5) + `]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := rules.Deliver(json.RawMessage(c.params), c.inputs)
			if err != nil || compact(t, got) != c.want {
				t.Errorf("got %s, %v; want %s", got, err, c.want)
			}
		})
	}
	for _, wrong := range []string{`[1]`, `"x"`, `7`, `{"args":`, `{"needs":1`} {
		if got, err := rules.Deliver(json.RawMessage(wrong), nil); err == nil {
			t.Errorf("params %s were taken for an object: %s", wrong, got)
		}
	}
}

func TestDeliverResults(t *testing.T) {
	parents := []plan.Parent{{Name: "b", State: "failed"}, {Name: "a\"\u2028", State: "succeeded"}, {Name: "b", State: "skipped"}}
	const results = `"results":{"a\"\u2028":"succeeded","b":"skipped"}}`
	for params, want := range map[string]string{
		"":                                `{` + results,
		"null":                            `{` + results,
		` { } `:                           `{ ` + results,
		`{"run":"x","needs":{}}`:          `{"run":"x","needs":{},` + results,
		`{"results":1,"n":{"results":2}}`: `{"n":{"results":2},` + results,
	} {
		got, err := rules.DeliverResults(json.RawMessage(params), parents)
		if err != nil || !json.Valid(got) || string(got) != want {
			t.Errorf("of %s: got %s, %v; want %s", params, got, err, want)
		}
	}
	if got, err := rules.DeliverResults(json.RawMessage("[]"), parents); err == nil {
		t.Errorf("a list was taken: %s", got)
	}
	for _, w := range rules.Whens() {
		if rules.TellsResults(w) == (w == plan.AllSucceeded) {
			t.Errorf("%s tells results: %v", w, rules.TellsResults(w))
		}
	}
	if rules.TellsResults(plan.When("")) {
		t.Error("a task without a rule is told results")
	}
}

func FuzzDeliver(f *testing.F) {
	f.Add(`{"run":"x"}`, "a", `1`, "b", `{"x":[]}`)
	f.Add(`{"needs":{"a":1},"args":[]}`, "a[0]", `null`, "a[1]", `"\u0000"`)
	f.Add(`{"\u006eeeds":1," ":{}}`, "", ``, "x y", `0`)
	f.Fuzz(func(t *testing.T, params, name1, output1, name2, output2 string) {
		name1, name2 = strings.ToValidUTF8(name1, "?"), strings.ToValidUTF8(name2, "!")
		var own map[string]any
		if json.Unmarshal([]byte(params), &own) != nil || !json.Valid([]byte(output1)) || !json.Valid([]byte(output2)) || name1 == name2 {
			return
		}
		inputs := []plan.Input{{Name: name1, Output: json.RawMessage(output1)}, {Name: name2, Output: json.RawMessage(output2)}}
		got, err := rules.Deliver(json.RawMessage(params), inputs)
		if err != nil {
			t.Fatalf("%s: %v", params, err)
		}
		check(t, got, own, inputs)
		again, err := rules.Deliver(got, inputs)
		if err != nil {
			t.Fatalf("%s: %v", got, err)
		}
		check(t, again, own, inputs)
	})
}

// check compares delivered params with the task's own and what its parents returned.
func check(t *testing.T, got json.RawMessage, own map[string]any, inputs []plan.Input) {
	t.Helper()
	var all map[string]json.RawMessage
	var needs map[string]json.RawMessage
	var args []json.RawMessage
	if err := json.Unmarshal(got, &all); err != nil {
		t.Fatalf("%s: %v", got, err)
	}
	if json.Unmarshal(all["needs"], &needs) != nil || json.Unmarshal(all["args"], &args) != nil || len(needs) != len(inputs) || len(args) != len(inputs) {
		t.Fatalf("%s does not hold %d outputs", got, len(inputs))
	}
	for i, in := range inputs {
		if want := compact(t, in.Output); compact(t, needs[in.Name]) != want || compact(t, args[i]) != want {
			t.Errorf("%s: the output of %q is not %s", got, in.Name, want)
		}
	}
	delete(all, "needs")
	delete(all, "args")
	for k := range own {
		if k != "needs" && k != "args" && all[k] == nil {
			t.Errorf("%s has lost %q", got, k)
		}
		delete(all, k)
	}
	if len(all) > 0 {
		t.Errorf("%s has more than it should: %v", got, all)
	}
}

func compact(t *testing.T, j json.RawMessage) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, j); err != nil {
		t.Fatalf("%q: %v", j, err)
	}
	return b.String()
}

func TestOutputsAreCopiedUpToALimit(t *testing.T) {
	for _, c := range []struct {
		name         string
		sum, largest int
		want         bool
	}{
		{"none", 0, 0, true},
		{"one of 64 KiB", plan.MaxCopiedOne, plan.MaxCopiedOne, true},
		{"one that is larger", plan.MaxCopiedOne + 1, plan.MaxCopiedOne + 1, false},
		{"eight of 64 KiB", plan.MaxCopied, plan.MaxCopiedOne, true},
		{"more than that together", plan.MaxCopied + 1, 10, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := rules.Copied(c.sum, c.largest); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestParamsThatAnotherProgramReadsHaveALimit(t *testing.T) {
	if err := rules.CheckWhole(plan.MaxWhole); err != nil {
		t.Error(err)
	}
	if err := rules.CheckWhole(plan.MaxWhole + 1); !errors.Is(err, plan.ErrTooMuchInput) || !strings.Contains(err.Error(), "have 12582913 bytes") {
		t.Errorf("got %v", err)
	}
}

func TestOutputsAreListedInOrder(t *testing.T) {
	got := rules.List([]plan.Input{{Output: json.RawMessage(`1`)}, {}, {Output: json.RawMessage(`"x"`)}})
	if string(got) != `[1,null,"x"]` {
		t.Errorf("got %s", got)
	}
	if got := rules.List(nil); string(got) != `[]` {
		t.Errorf("a list of none is %s", got)
	}
}

func ExampleDeliver() {
	params, err := rules.Deliver(json.RawMessage(`{"run":"./report"}`), []plan.Input{
		{Name: "list", Output: json.RawMessage(`["a","b"]`)},
		{Name: "check"},
	})
	fmt.Println(string(params), err)
	// Output: {"run":"./report","needs":{"list":["a","b"],"check":null},"args":[["a","b"],null]} <nil>
}
