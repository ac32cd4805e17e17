package rules_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

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
			turn, err := rules.TurnLists(tasks, c.changes, rules.ListsCompared, c.named)
			if err != nil {
				t.Fatal(err)
			}
			all := rules.WithAdded(tasks, turn.Changes)
			taken, err := rules.SelectRelisted(all, turn)
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

// In this plan the list of copy comes from list, that of load from copy by way of sum, and that of mail from load.
func TestListsThatFollowFromOthersAreComparedAfterThem(t *testing.T) {
	at := time.Unix(1000, 0)
	build := func(spec ...string) []plan.Task {
		tasks := graph(append(spec, "tell: load", "all: copy, mail", "finally last")...)
		ids := map[string]plan.TaskID{}
		for i := range tasks {
			ids[tasks[i].Name] = tasks[i].ID
		}
		for i := range tasks {
			f := map[string]plan.Foreach{"copy": {Value: "needs.list"}, "check": {Each: []string{"copy"}}, "load": {Value: "needs.sum"}, "mail": {Value: "needs.load"}}
			t := &tasks[i]
			t.Ended, t.Started = at, at
			if each, is := f[t.Name]; is {
				t.Foreach, t.Expanded, t.Items = &each, true, 1
			}
		}
		return tasks
	}
	spec := []string{"list", "copy: list", "check: copy", "sum: copy", "load: sum", "mail: load"}
	more := []json.RawMessage{json.RawMessage("1")}
	broken := errors.New("no list")
	for _, c := range []struct {
		name    string
		changes []rules.Relisting // of copy, load and mail
		later   string            // ended after the others
		first   string            // is taken first; "": nothing
		then    string            // is taken if all is compared
	}{
		{"what differs runs first with what makes the next list, and nothing else", []rules.Relisting{{Added: more}, {}, {Added: more}}, "", "check check[1] copy copy[1] sum", `task "load" keeps its items: its list comes from sum, which runs again; ask for the lists that others follow from first`},
		{"a list that is not known yet is no matter", []rules.Relisting{{Added: more}, {Err: broken}, {Err: broken}}, "", "check check[1] copy copy[1] sum", `task "load" keeps its items: its list comes from sum, which runs again; ask for the lists that others follow from first`},
		{"then the next list, without what follows from it", []rules.Relisting{{}, {Added: more}, {}}, "copy check sum", "load load[1]", `task "mail" keeps its items: its list comes from load, which runs again; ask for the lists that others follow from first`},
		{"at last all others, with what has not run since", []rules.Relisting{{}, {}, {Added: more}}, "copy check sum load", "", "all last mail mail[1] tell"},
		{"the tasks of finally have not run since if nothing else is left", []rules.Relisting{{}, {}, {}}, "copy check sum load mail tell all", "", "last"},
		{"what would make a list again runs first, if it has not run since", []rules.Relisting{{}, {}, {}}, "copy check", "sum", `task "load" keeps its items: its list comes from sum, which runs again; ask for the lists that others follow from first`},
		{"nothing runs first if nothing differs", []rules.Relisting{{}, {}, {}}, "", "", "nothing to retry: the lists have the items that there are, and nothing failed"},
		{"a list that is broken is an error once it is due", []rules.Relisting{{}, {Err: broken}, {}}, "", "", "no list"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tasks := build(spec...)
			find := func(name string) *plan.Task {
				return &tasks[slices.IndexFunc(tasks, func(t plan.Task) bool { return t.Name == name })]
			}
			for name := range strings.FieldsSeq(c.later) {
				find(name).Ended, find(name).Started = at.Add(2*time.Second), at.Add(time.Second)
			}
			changes := slices.Clone(c.changes)
			for i, name := range []string{"copy", "load", "mail"} {
				changes[i].Of, changes[i].Had = find(name).ID, 1
			}
			along := changes[0]
			along.Of, along.Head = find("check").ID, changes[0].Of
			changes = append(changes, along)
			for ask, want := range map[rules.ListAsk]string{rules.ListsFirst: c.first, rules.ListsCompared: c.then} {
				var taken []rules.Retried
				var all []plan.Task
				turn, err := rules.TurnLists(tasks, changes, ask, false)
				if err == nil {
					all = rules.WithAdded(tasks, turn.Changes)
					taken, err = rules.SelectRelisted(all, turn)
				}
				names := namesOf(all, taken)
				slices.Sort(names)
				got := strings.Join(names, " ")
				if err != nil {
					got = err.Error()
				}
				if got != want {
					t.Errorf("%s: got  %s\nwant %s", ask, got, want)
				}
			}
			again, err := rules.SelectLists(tasks, nil)
			if names := strings.Join(namesOf(tasks, again), " "); err != nil || names != "list sum" && names != "sum list" {
				t.Errorf("%s print lists (%v), want list and sum: load is compared itself", names, err)
			}
			named, err := rules.Relisted(tasks, []plan.TaskID{find("copy").ID})
			if err != nil || len(named) != 4 {
				t.Errorf("with copy %d lists are compared (%v), want those that follow from it too", len(named), err)
			}
			again, err = rules.SelectLists(tasks, []plan.TaskID{find("copy").ID})
			if names := strings.Join(namesOf(tasks, again), " "); err != nil || names != "list" {
				t.Errorf("%s print the list of copy (%v), want list", names, err)
			}
		})
	}
}

func TestAListOfOutputsHasNoneOfItemsThatAreGone(t *testing.T) {
	outputs := []plan.Input{{Name: "copy", Output: json.RawMessage(`[{"id":1},null,{"id":3}]`)}}
	for _, c := range []struct {
		name string
		gone []bool
		want string
	}{
		{"an output of an item that is gone is no item", []bool{false, true}, `[{"id":1} {"id":3}]`},
		{"another null is one", nil, `item 1 of the foreach: ${{ item.id }}: item is null: it has no "id"`},
	} {
		list, err := rules.ListNow(&plan.Foreach{Value: "needs.copy", Key: "${{ item.id }}"}, outputs, c.gone)
		got := fmt.Sprintf("%s", list)
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// An approval is of one list, and not of the next one.
func TestItemsThatNobodyApprovedDoNotCome(t *testing.T) {
	list := &plan.Foreach{Value: "needs.list"}
	approve := &plan.Approval{Question: "All of them?"}
	for _, c := range []struct {
		name  string
		tasks []plan.Task // Needs are set by needs
		needs map[string][]string
		asked bool
	}{
		{"a question about the list", []plan.Task{{Name: "list"}, {Name: "ask", Definition: plan.Definition{Approve: approve}}, {Name: "del", Definition: plan.Definition{Foreach: list}}},
			map[string][]string{"ask": {"list"}, "del": {"ask", "list"}}, true},
		{"tasks in between", []plan.Task{{Name: "list"}, {Name: "count"}, {Name: "ask", Definition: plan.Definition{Approve: approve}}, {Name: "wait"}, {Name: "del", Definition: plan.Definition{Foreach: list}}},
			map[string][]string{"count": {"list"}, "ask": {"count"}, "wait": {"ask"}, "del": {"wait", "list"}}, true},
		{"a question before the list is made", []plan.Task{{Name: "ask", Definition: plan.Definition{Approve: approve}}, {Name: "list"}, {Name: "del", Definition: plan.Definition{Foreach: list}}},
			map[string][]string{"list": {"ask"}, "del": {"list"}}, false},
		{"a question after the items", []plan.Task{{Name: "list"}, {Name: "del", Definition: plan.Definition{Foreach: list}}, {Name: "ask", Definition: plan.Definition{Approve: approve}}},
			map[string][]string{"del": {"list"}, "ask": {"del"}}, false},
		{"a list that stands in the file", []plan.Task{{Name: "list"}, {Name: "ask", Definition: plan.Definition{Approve: approve}}, {Name: "del", Definition: plan.Definition{Foreach: &plan.Foreach{List: json.RawMessage(`[1]`)}}}},
			map[string][]string{"ask": {"list"}, "del": {"ask"}}, false},
	} {
		ids := map[string]plan.TaskID{}
		for i := range c.tasks {
			task := &c.tasks[i]
			task.ID = plan.TaskID{ID: plan.ID{byte(i + 1)}}
			if task.Status, ids[task.Name] = plan.Succeeded, task.ID; task.Foreach != nil {
				task.Expanded, task.Items = true, 1
			}
			for _, need := range c.needs[task.Name] {
				task.Needs = append(task.Needs, ids[need])
			}
		}
		_, err := rules.Relisted(c.tasks, nil)
		if c.asked != errors.Is(err, plan.ErrConflict) || c.asked && !strings.Contains(err.Error(), `the list of task "del" was approved by the answer to "ask", and other items were not; run list again with --downstream`) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
