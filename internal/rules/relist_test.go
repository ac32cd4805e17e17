package rules_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

func TestHowAListDiffersFromTheItems(t *testing.T) {
	for _, c := range []struct {
		name, key, had string
		gone           []int
		list, want     string
	}{
		{"the same list in another order", "", `["a","b"]`, nil, `["b","a"]`, "+[] -[] back [] +0, −0, 2 kept"},
		{"items come behind, and go", "", `["a","b","c"]`, nil, `["x","c","a"]`, `+["x"] -[1] back [] +1, −1, 2 kept`},
		{"an item that had gone is back", "", `["a","b"]`, []int{1}, `["b","a"]`, `+[] -[] back [1] +1, −0, 1 kept`},
		{"an item that had gone stays so", "", `["a","b"]`, []int{1}, `["a"]`, `+[] -[] back [] +0, −0, 1 kept`},
		{"items of the same value are told apart by their number", "", `["a","a"]`, nil, `["a","a","a"]`, `+["a"] -[] back [] +1, −0, 2 kept`},
		{"the last of items of the same value goes", "", `["a","a"]`, nil, `["a"]`, `+[] -[1] back [] +0, −1, 1 kept`},
		{"objects without a key are their values, however they are spelled", "", `[{"a":1,"b":2}]`, nil, `[{"b": 2, "a": 1}]`, `+[] -[] back [] +0, −0, 1 kept`},
		{"with a key an item may have another value", "${{ item.n }}", `[{"n":"x","v":1},{"n":"y","v":1}]`, nil, `[{"n":"y","v":2},{"n":"x","v":1}]`,
			`+[] -[] back [] +0, −0, 2 kept; 1 of them has another value in the list, and keeps its own`},
		{"a list that is empty", "", `["a"]`, nil, `[]`, `+[] -[0] back [] +0, −1, 0 kept`},
		{"an item without the key", "${{ item.n }}", `[{"n":"x"}]`, nil, `[{"m":1}]`, `item 0 of the list: ${{ item.n }}: item has no "n"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var had, list []json.RawMessage
			if err := json.Unmarshal([]byte(c.had), &had); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(c.list), &list); err != nil {
				t.Fatal(err)
			}
			gone := make([]bool, len(had))
			for _, i := range c.gone {
				gone[i] = true
			}
			r, err := rules.Relist(&plan.Foreach{Key: c.key}, had, gone, list)
			got := fmt.Sprintf("+%s -%v back %v %v", r.Added, r.Gone, r.Back, r.Count)
			if err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestWhatARetryTakesForLists(t *testing.T) {
	id := func(key string) (id plan.TaskID) {
		copy(id.ID[:], key)
		return id
	}
	foreach := func(f plan.Foreach) plan.Definition { return plan.Definition{Foreach: &f} }
	copies := plan.Task{Name: "copy", Definition: foreach(plan.Foreach{Value: "needs.list"}), Needs: []plan.TaskID{id("list")}}
	check := plan.Task{Name: "check", Definition: foreach(plan.Foreach{Each: []string{"copy"}}), Needs: []plan.TaskID{id("copy")}}
	tasks := []plan.Task{{Name: "list"}, copies, check, {Name: "total", Needs: []plan.TaskID{id("check")}}, {Name: "beside", Status: plan.Failed}}
	for i := range tasks {
		t := &tasks[i]
		if t.ID = id(t.Name); t.Status == 0 {
			t.Status = plan.Succeeded
		}
		if t.Foreach != nil {
			t.Expanded, t.Items = true, 2
		}
	}
	for _, of := range tasks[1:3] {
		for i := range 2 {
			item := plan.Task{ID: rules.ItemID(of.ID, i), Name: rules.ItemName(of.Name, i), Of: of.ID, Index: i, Status: plan.Succeeded}
			if of.Name == "check" {
				item.Needs = []plan.TaskID{rules.ItemID(copies.Needs[0], i)}
			}
			tasks = append(tasks, item)
		}
	}
	differs := []rules.Relisting{{Of: id("copy"), Had: 2, Added: []json.RawMessage{nil}, Gone: []int{0}}, {Of: id("check"), Had: 2, Added: []json.RawMessage{nil}, Gone: []int{0}}}
	for _, c := range []struct {
		name    string
		changes []rules.Relisting
		named   bool
		want    string
	}{
		{"what comes and goes, what is below, and what failed", differs, false, "beside check check[0] gone check[2] copy copy[0] gone copy[2] total"},
		{"of named tasks only what comes and goes, and what is below", differs, true, "check check[0] gone check[2] copy copy[0] gone copy[2] total"},
		{"what failed, if nothing comes or goes", []rules.Relisting{{Of: id("copy"), Had: 2}}, false, "beside"},
		{"nothing, if nothing failed either", []rules.Relisting{{Of: id("copy"), Had: 2}}, true, "nothing to retry: the lists have the items that there are, and nothing failed"},
		{"a task with another definition", []rules.Relisting{{Of: id("copy"), Had: 2, Anew: true}}, true, "copy"},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := rules.WithAdded(tasks, c.changes)
			taken, err := rules.SelectRelisted(all, c.changes, c.named)
			var got []string
			for _, r := range taken {
				name := all[slices.IndexFunc(all, func(t plan.Task) bool { return t.ID == r.ID })].Name
				if r.Gone {
					name += " gone"
				}
				got = append(got, name)
			}
			slices.Sort(got)
			if err != nil {
				got = []string{err.Error()}
			}
			if text := strings.Join(got, " "); text != c.want {
				t.Errorf("got  %s\nwant %s", text, c.want)
			}
		})
	}
	tasks = append(tasks, plan.Task{ID: id("mail"), Name: "mail", Status: plan.Succeeded, Definition: plan.Definition{Finally: true}})
	again, err := rules.SelectLists(tasks, nil)
	if err != nil || len(again) != 1 || again[0].ID != id("list") {
		t.Errorf("to read the lists %v run again (%v), want list", again, err)
	}
}
