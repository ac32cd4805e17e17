package rules_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

func TestAForeachIsMadeIntoItems(t *testing.T) {
	inputs := []plan.Input{
		{Name: "list", Output: json.RawMessage(`{"boxes":["a","b"],"deep":[{"x":[1]}],"none":null}`)},
		{Name: "list2", Output: json.RawMessage(`[3]`)},
		{Name: "empty"},
		{Name: "0", Output: json.RawMessage(`["z"]`)},
	}
	for _, c := range []struct {
		name    string
		foreach plan.Foreach
		want    string // the items as a list, or a part of the error
	}{
		{"a literal list", plan.Foreach{List: json.RawMessage(`[1,"x",null,{"a":[]}]`)}, `[1,"x",null,{"a":[]}]`},
		{"an empty list", plan.Foreach{List: json.RawMessage(`[]`)}, `[]`},
		{"a field of a parent's output", plan.Foreach{Value: "needs.list.boxes"}, `["a","b"]`},
		{"a field deeper down", plan.Foreach{Value: "needs.list.deep.0.x"}, `[1]`},
		{"the same, as others write it", plan.Foreach{Value: "needs.list.deep[0].x"}, `[1]`},
		{"a whole output, whose parent's name begins as another's", plan.Foreach{Value: "needs.list2"}, `[3]`},
		{"an output whose parent's name is a number, as others write it", plan.Foreach{Value: "needs[0]"}, `["z"]`},
		{"an output that is an object", plan.Foreach{Value: "needs.list"}, "not a list"},
		{"a field that is null", plan.Foreach{Value: "needs.list.none"}, "not a list"},
		{"an output that is null", plan.Foreach{Value: "needs.empty"}, "not a list"},
		{"a field that is not there", plan.Foreach{Value: "needs.list.boxen"}, `has no "boxen"`},
		{"a field of null", plan.Foreach{Value: "needs.empty.x"}, "is null"},
		{"a parent that is not there", plan.Foreach{Value: "needs.other"}, `has no "other"`},
		{"all outputs", plan.Foreach{Value: "needs"}, "not a list"},
		{"what is no output", plan.Foreach{Value: "params.x"}, `"params.x"`},
		{"what is no path", plan.Foreach{Value: "needs list"}, "dotted path"},
		{"a list of lists too long", plan.Foreach{List: json.RawMessage("[" + strings.Repeat("1,", plan.MaxItems) + "1]")}, "at most 100000"},
		{"a broken list", plan.Foreach{List: json.RawMessage(`[1,`)}, "foreach over"},
	} {
		t.Run(c.name, func(t *testing.T) {
			items, err := rules.ExpandItems(&c.foreach, inputs)
			got, _ := json.Marshal(items) // raw values
			if err != nil {
				got = []byte(err.Error())
			}
			if want := strings.Trim(c.want, `"`); err == nil && string(got) != c.want || err != nil && !strings.Contains(string(got), want) {
				t.Errorf("got %.200s, want %s", got, c.want)
			}
		})
	}
	if all, err := rules.ParseItems(json.RawMessage(" [" + strings.Repeat("1,", plan.MaxItems-1) + "1] ")); err != nil || len(all) != plan.MaxItems {
		t.Errorf("%d items, %v; want as many as there may be", len(all), err)
	}
	for _, f := range []plan.Foreach{{Lines: "x"}, {Glob: "*"}} {
		if !f.OnNode() {
			t.Errorf("%+v names files, and no node has to read them", f)
		}
	}
	for _, f := range []plan.Foreach{{Value: "needs.a"}, {List: json.RawMessage(`[]`)}} {
		if f.OnNode() {
			t.Errorf("%+v names no file, and a node has to make its items", f)
		}
	}
}

func TestAnItemInheritsHowToRun(t *testing.T) {
	now := time.Now()
	of := plan.Task{
		ID: plan.TaskID{ID: plan.NewID(now)}, Plan: plan.PlanID{ID: plan.NewID(now)}, Name: "copy", Queue: plan.QueueID{ID: plan.NewID(now)},
		Definition: plan.Definition{
			Description: "copies", When: plan.AllDone, Foreach: &plan.Foreach{Glob: "*"}, Retry: plan.Retry{Attempts: 3}, Timeout: time.Minute,
			OnLost: plan.OnLostFail, MaxRescues: 2, ContinueOnError: true, Estimate: time.Second, Rank: 7,
		},
		Needs: []plan.TaskID{{ID: plan.NewID(now)}}, Status: plan.Held, Attempt: 2, Items: 9, Expanding: true,
	}
	got := rules.ItemTask(&of, 3, json.RawMessage(`"x"`), json.RawMessage(`{"run":"c"}`), now)
	want := plan.Task{
		ID: rules.ItemID(of.ID, 3), Plan: of.Plan, Name: "copy[3]", Queue: of.Queue, Of: of.ID, Index: 3, Status: plan.Held,
		Definition: plan.Definition{Retry: of.Retry, Timeout: of.Timeout, OnLost: of.OnLost, MaxRescues: 2, ContinueOnError: true, Estimate: of.Estimate, Rank: 7},
		Params:     json.RawMessage(`{"run":"c","item":"x"}`), Created: now, Modified: now,
	}
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestAnItemIsAmongItsTasksParams(t *testing.T) {
	for _, c := range []struct{ name, params, item, want string }{
		{"after the others", `{"run":"x"}`, `{"a":1}`, `{"run":"x","item":{"a":1}}`},
		{"alone", ``, `1`, `{"item":1}`},
		{"where params are null", `null`, `1`, `{"item":1}`},
		{"where params are empty", `{ }`, `1`, `{"item":1}`},
		{"as null", `{}`, ``, `{"item":null}`},
		{"in place of what was called so", `{"item":0,"a":"item"}`, `1`, `{"a":"item","item":1}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := rules.WithItem(json.RawMessage(c.params), json.RawMessage(c.item))
			if compact(t, got) != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if item := string(rules.ItemOf(got)); item != c.item && (item != "null" || c.item != "") {
				t.Errorf("the item in %s is read as %s, want %s", got, item, c.item)
			}
		})
	}
	for _, params := range []string{``, `{}`, `{"Item":1}`, `[{"item":1}]`, `{"item":`} {
		if got := rules.ItemOf(json.RawMessage(params)); got != nil {
			t.Errorf("the item in %s is read as %s, want none", params, got)
		}
	}
}

func TestAnItemGetsItsForeachsInputsButTheList(t *testing.T) {
	in := []plan.Input{{Name: "list", Output: json.RawMessage(`{"names":["a","b"],"deep":{"l":[1],"x":2},"host":"mx"}`)}, {Name: "b", Output: json.RawMessage(`7`)}}
	for _, c := range []struct{ name, value, want string }{
		{"a whole output", "needs.list", `null`},
		{"a list in an output", "needs.list.names", `{"deep":{"l":[1],"x":2},"host":"mx"}`},
		{"a list deeper in it", "needs.list.deep.l", `{"deep":{"x":2},"host":"mx","names":["a","b"]}`},
		{"no parent's output", "", string(in[0].Output)},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := plan.Foreach{Value: c.value}
			got := rules.ItemInputs(&f, in)
			if out := string(rules.List(got[:1])); out != "["+c.want+"]" || string(got[1].Output) != "7" {
				t.Errorf("got %s and %s, want %s and 7", out, got[1].Output, c.want)
			}
		})
	}
	if string(in[0].Output)[:9] != `{"names":` {
		t.Error("the inputs themselves were changed")
	}
}

func TestItemsAreFoundAfterTheirForeachTask(t *testing.T) {
	id := func(n byte) plan.TaskID {
		return plan.TaskID{ID: plan.ID{1, 2, 3, 4, 100, 100, 100, 100, 100, 0, 0, n}}
	}
	first, copied, last := plan.Task{ID: id(1)}, plan.Task{ID: id(2)}, plan.Task{ID: id(3)}
	want := []plan.Task{first, copied}
	for i := range 300 {
		want = append(want, rules.ItemTask(&copied, i, nil, nil, time.Time{}))
	}
	want = append(want, last)
	got := slices.Clone(want)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
	slices.SortFunc(got, func(x, y plan.Task) int { return rules.PlaceOf(&x).Compare(rules.PlaceOf(&y)) })
	for i := range want {
		if got[i].ID != want[i].ID {
			t.Fatalf("at %d there is %s of %s, index %d; want %s", i, got[i].ID, got[i].Of, got[i].Index, want[i].ID)
		}
	}
}
