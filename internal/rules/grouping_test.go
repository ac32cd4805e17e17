package rules_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// written returns the groups that a parent's output gives, as LABEL HOST: and the URLs of the inputs.
func written(t *testing.T, grouping string, output json.RawMessage) (groups []string) {
	t.Helper()
	items, err := rules.ExpandItems(&plan.Foreach{Value: "needs.map", Group: grouping}, []plan.Input{{Name: "map", Output: output}})
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range items {
		g := rules.GroupOf(item)
		if g == nil || g.Of != "map" || g.Grouping != grouping || g.Inputs != nil {
			t.Fatalf("%s is no group of outputs of map", item)
		}
		inputs, err := g.Read(output)
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("%d %s:", g.Label, g.Host)
		for _, in := range inputs {
			var of []json.RawMessage
			if err := json.Unmarshal(in, &of); err != nil {
				t.Fatal(err)
			}
			url, _ := jsontext.TextOf(of[1])
			_, rest, _ := strings.Cut(url, "://")
			text += fmt.Sprintf(" %s=%s", of[0], rest)
		}
		groups = append(groups, text)
	}
	return groups
}

func TestGroups(t *testing.T) {
	two := `[[[0,"disco://a/x",1],[1,"disco://a/y",1]],[[1,"disco://b/x",1],[0,"disco://b/y",1]]]`
	index := `[[{"labels":[[0,1],[1,1],[7,1]],"url":"dir://a/i"}],null,[{"url": "dir://b/i", "labels": [[0,1], [1,1]]}],[[1,"disco://a/x",1]]]`
	elsewhere := `[[2,"http://a/x",1],[2,"disco://a/y",1],[2,"raw://x",1]]`
	for _, test := range []struct {
		name, grouping, output string
		want                   []string
	}{
		{"split makes a group of each", "split", two, []string{"0 a: 0=a/x", "1 a: 1=a/y", "1 b: 1=b/x", "0 b: 0=b/y"}},
		{"labels, in their order", "group_label", two, []string{"0 : 0=a/x 0=b/y", "1 : 1=a/y 1=b/x"}},
		{"nodes", "group_node", two, []string{"0 a: 0=a/x 1=a/y", "0 b: 1=b/x 0=b/y"}},
		{"labels of nodes", "group_node_label", two, []string{"0 a: 0=a/x", "0 b: 0=b/y", "1 a: 1=a/y", "1 b: 1=b/x"}},
		{"all", "group_all", two, []string{"0 : 0=a/x 1=a/y 1=b/x 0=b/y"}},

		{"split makes a group of each label in an index", "split", index,
			[]string{"0 a: 0=a/i", "1 a: 1=a/i", "7 a: 7=a/i", "0 b: 0=b/i", "1 b: 1=b/i", "1 a: 1=a/x"}},
		{"labels in indexes", "group_label", index, []string{"0 : 0=a/i 0=b/i", "1 : 1=a/i 1=b/i 1=a/x", "7 : 7=a/i"}},
		{"an index is one input of its node", "group_node", index, []string{`0 a: "all"=a/i 1=a/x`, `0 b: "all"=b/i`}},
		{"labels in indexes of nodes", "group_node_label", index, []string{"0 a: 0=a/i", "0 b: 0=b/i", "1 a: 1=a/i 1=a/x", "1 b: 1=b/i", "7 a: 7=a/i"}},
		{"an index is one input of all", "group_all", index, []string{`0 : "all"=a/i "all"=b/i 1=a/x`}},

		{"inputs of no known node have one node", "group_node", elsewhere, []string{"0 : 2=a/x 2=x", "0 a: 2=a/y"}},
		{"labels of no known node", "group_node_label", elsewhere, []string{"2 : 2=a/x 2=x", "2 a: 2=a/y"}},
		{"the label that stands for all", "group_label", `[[-1,"disco://a/x",1],["all","disco://b/x",1],[0,"disco://a/y",1]]`,
			[]string{`-1 : -1=a/x "all"=b/x`, "0 : 0=a/y"}},
		{"blanks and escapes", "group_node", " [ [ 3 , \"disco:\\/\\/a\\/\\\"]x\" , 1 ] , [ ] ] ", []string{`0 a: 3=a/"]x`}},
		{"a label that is twice in an index", "group_label", `[{"labels":[[3,1],[3,1]],"url":"dir://a/i"}]`, []string{"3 : 3=a/i"}},
		{"labels of many digits, of all, with blanks and without a size", "group_label",
			`[{"labels":[[1234567890,1],["all",1], [ 5 , 1 ],[6,null],[7,12345678901]],"url":"dir://a/i"}]`,
			[]string{"-1 : -1=a/i", "5 : 5=a/i", "6 : 6=a/i", "7 : 7=a/i", "1234567890 : 1234567890=a/i"}},
		{"an index with labels that are none", "group_label", `[{"labels":"x","url":"dir://a/i"},{"labels":[[1,2],3,"x"],"url":"dir://a/j"}]`, []string{"1 : 1=a/j"}},
		{"no outputs", "group_all", `[[],null,[]]`, nil},
		{"null", "group_all", `null`, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			for range 2 { // each try has the same groups
				if got := written(t, test.grouping, json.RawMessage(test.output)); !slices.Equal(got, test.want) {
					t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
				}
			}
		})
	}
}

func TestGroupsOfAParamHaveTheirInputs(t *testing.T) {
	list := json.RawMessage(`[{"label": 1, "urls": ["http://a/x", "disco://n/x"]}, {"urls": "raw://y"}, [1, "dir://n/i", 3], {"labels": [[0, 3]], "url": "dir://n/j"}]`)
	items, err := rules.ExpandItems(&plan.Foreach{List: list, Group: "group_node"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`{"label":0,"host":"","grouping":"group_node","inputs":[{"urls": "raw://y"}]}`,
		`{"label":0,"host":"n","grouping":"group_node","inputs":[{"label": 1, "urls": ["http://a/x", "disco://n/x"]},[1, "dir://n/i", 3],["all","dir://n/j",0]]}`}
	if got := strings.Join([]string{string(items[0]), string(items[1])}, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s", got)
	}
	in, err := rules.GroupOf(items[1]).Read(nil)
	if err != nil || len(in) != 3 || string(in[2]) != `["all","dir://n/j",0]` {
		t.Errorf("got %s, %v", in, err)
	}
}

func TestWhatCannotBeGrouped(t *testing.T) {
	for list, want := range map[string]string{
		`5`:                                 `5 is no list of inputs`,
		`["http://a"]`:                      `"http://a" is no input; write {label: 0, urls: [http://…]}`,
		`[{"url": "http://a"}]`:             `is no input`,
		`[[1, 2, 3]]`:                       `is no input`,
		`[["x", "raw://a", 3]]`:             `label "x" is none; a label is an integer from 0 to 2147483647, or all`,
		`[{"label": -2, "urls": ["a"]}]`:    `label -2 is none`,
		`[{"labels": [[1,1],["x",1]]}]`:     `input 0: label "x" is none`,
		`[[], [[2147483648, "raw://", 0]]]`: `input 0: label 2147483648 is none`,
		strings.Repeat("[", 12) + strings.Repeat("]", 12): `is no input`,
	} {
		if _, err := rules.ExpandItems(&plan.Foreach{List: json.RawMessage(list), Group: "split"}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", list, err, want)
		}
	}
}

func TestOutputsOfAnotherTryAreNotTaken(t *testing.T) {
	f := &plan.Foreach{Value: "needs.map", Group: "group_label"}
	items, err := rules.ExpandItems(f, []plan.Input{{Name: "map", Output: json.RawMessage(`[[0,"disco://a/x",1],[1,"disco://a/y",1]]`)}})
	if err != nil {
		t.Fatal(err)
	}
	for output, want := range map[string]string{
		`[{"labels":[[0,1]],"url":"dir://a/x"},{"labels":[[0,1]],"url":"dir://a/y"}]`: "output 1 of map is none of the group 1 any more; retry map with --downstream",
		`[[1,"disco://a/y",1],[0,"disco://a/x",1]]`:                                   "output 1 of map is none of the group 1 any more; retry map with --downstream",
		`[[0,"disco://a/x",1]]`: "output 1 of map is not there any more; retry map with --downstream",
	} {
		if _, err := rules.GroupOf(items[1]).Read(json.RawMessage(output)); err == nil || err.Error() != want {
			t.Errorf("%s: got %v", output, err)
		}
	}
}

// An item names outputs that follow each other by the first and the last of them. A store of an older
// release names each, and a damaged one anything.
func TestAnItemNamesRangesOfOutputs(t *testing.T) {
	output := json.RawMessage(`[[0,"raw://a",1],[0,"raw://b",1],[1,"raw://c",1],[0,"raw://d",1]]`)
	items, err := rules.ExpandItems(&plan.Foreach{Value: "needs.map", Group: "group_label"}, []plan.Input{{Name: "map", Output: output}})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"label":0,"host":"","grouping":"group_label","of":"map","outputs":[[0,1],3]}`
	if string(items[0]) != want {
		t.Errorf("the item is %s, want %s", items[0], want)
	}
	if again, err := json.Marshal(rules.GroupOf(items[0])); err != nil || string(again) != want {
		t.Errorf("the item that was read is %s, %v", again, err)
	}
	for outputs, want := range map[string]string{
		"[[0,1],3]":      "3 inputs, <nil>",
		"[0,1,3]":        "3 inputs, <nil>",
		"[[0,3]]":        "3 inputs, output 2 of map is none of the group 0 any more; retry map with --downstream",
		"[3,4]":          "1 inputs, output 4 of map is not there any more; retry map with --downstream",
		"[3,[4,9]]":      "1 inputs, output 4 of map is not there any more; retry map with --downstream",
		"[[0,1],[3,12]]": "3 inputs, output 4 of map is not there any more; retry map with --downstream",
		"[[3,0]]":        "1 inputs, output 4 of map is not there any more; retry map with --downstream",
	} {
		inputs, err := rules.GroupOf(json.RawMessage(`{"label":0,"host":"","grouping":"group_label","of":"map","outputs":` + outputs + `}`)).Read(output)
		if got := fmt.Sprintf("%d inputs, %v", len(inputs), err); got != want {
			t.Errorf("%s: %s, want %s", outputs, got, want)
		}
	}
}

// The items keep the outputs that they refer to, which other items are made of and do not get.
func TestGroupsGetTheOutputsOfTheirParent(t *testing.T) {
	in := []plan.Input{{Name: "map", Output: json.RawMessage(`[[0,"raw://x",1]]`)}}
	size := rules.InputSize{Name: "map", Bytes: plan.MaxCopiedItem + 1}
	grouped, plain := &plan.Foreach{Value: "needs.map", Group: "split"}, &plan.Foreach{Value: "needs.map"}
	if rules.TakesAll(grouped, size) || !rules.TakesAll(plain, size) {
		t.Error("the output is taken out, or is not")
	}
	if rules.MayCopyIntoItems(grouped, []rules.InputSize{size}) || !rules.MayCopyIntoItems(plain, []rules.InputSize{size}) {
		t.Error("the output is copied into each item, or is not")
	}
	if got := rules.ItemInputs(grouped, in)[0].Output; string(got) != string(in[0].Output) {
		t.Errorf("items get %s", got)
	}
}

func TestOutputsHaveURLs(t *testing.T) {
	for output, want := range map[string]string{
		`null`: "[]", `[]`: "[]",
		`[[0,"disco://a/x",5],[1,"disco://a/y",0]]`:                                    "[disco://a/x disco://a/y]",
		`[[[0,"disco://a/x",5]],null,[{"labels":[[0,1],[1,2]],"url":"dir://b/i"}],[]]`: "[disco://a/x dir://b/i]",
	} {
		if got, err := rules.OutputURLs(json.RawMessage(output)); fmt.Sprint(got) != want || err != nil {
			t.Errorf("%s: %v, %v", output, got, err)
		}
	}
	for _, output := range []string{`"x"`, `["x"]`, `[{"a":1}]`, `[[0,1,2]]`, `[3]`} {
		if got, err := rules.OutputURLs(json.RawMessage(output)); err == nil {
			t.Errorf("%s: %v", output, got)
		}
	}
}

func TestAListIsSplit(t *testing.T) {
	for list, want := range map[string][]string{
		`[]`: nil, `[1]`: {"1"}, `[1,`: {"1"}, `[1,}`: {"1"}, "": nil, `[null,"a,]\"",{"b":[1,{"c":"}"}]},[[],2], -1.5e3 ]`: {"null", `"a,]\""`, `{"b":[1,{"c":"}"}]}`, "[[],2]", "-1.5e3"},
	} {
		var got []string
		for _, v := range rules.SplitList(json.RawMessage(list)) {
			got = append(got, string(v))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", list, got, want)
		}
	}
}
