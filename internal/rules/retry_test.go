package rules_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/states"
	"github.com/seed-1177d267/sluice/plan"
)

// graph reads tasks from lines as in "copy[1] of copy: list, check = failed" or "mail when
// any_failed: copy = skipped" or "finally tell". A task without a state has succeeded.
func graph(lines ...string) []plan.Task {
	var tasks []plan.Task
	byName := map[string]plan.TaskID{}
	for i, line := range lines {
		t := plan.Task{ID: number(i), Status: plan.Succeeded}
		line, state, said := strings.Cut(line, " = ")
		if said {
			t.Status, t.Reason = stateOf(state)
		}
		name, parents, _ := strings.Cut(line, ": ")
		name, when, _ := strings.Cut(name, " when ")
		t.When = plan.When(when)
		name, of, item := strings.Cut(name, " of ")
		name, t.Finally = strings.CutPrefix(name, "finally ")
		if t.Name = name; item {
			t.Of = byName[of]
		}
		for p := range strings.SplitSeq(parents, ", ") {
			if id, known := byName[p]; known {
				t.Needs = append(t.Needs, id)
			}
		}
		byName[name] = t.ID
		tasks = append(tasks, t)
	}
	return tasks
}

func number(i int) plan.TaskID {
	var id plan.TaskID
	binary.BigEndian.PutUint32(id.ID[8:], uint32(i+1))
	return id
}

func stateOf(word string) (plan.Status, plan.Reason) {
	if word == "skipped" {
		return plan.Cancelled, plan.ReasonSkipped
	}
	codes, _, err := states.Parse([]string{word})
	if err != nil {
		panic(err) // a mistake in the table
	}
	return codes[0], plan.ReasonNone
}

func TestAPlainRetryLeavesOutWhatThePlanAllows(t *testing.T) {
	const none = "nothing to retry: nothing failed but what the plan allows, which runs again if it is named"
	for _, c := range []struct {
		name, chosen string
		tasks        []string // of which those with a name of capitals have continue-on-error
		want         string
	}{
		{"a failure above what failed", "", []string{"A = failed", "l", "f: A, l = failed", "f[0] of f", "f[1] of f = failed"}, "f f[1]"},
		{"one that was lost", "", []string{"A = orphaned", "b = failed"}, "b"},
		{"one that is an item", "", []string{"A", "A[0] of A = failed", "b: A = failed"}, "b"},
		{"one that was stopped, and the plan went on", "", []string{"A = terminated", "b: A = failed"}, "b"},
		{"also to items that are on their way", "", []string{"A = terminated", "f: A = held", "f[0] of f = queued", "b = failed"}, "b"},
		{"not one that was stopped with the plan", "", []string{"A = terminated", "b: A = cancelled"}, "A b"},
		{"nor an item of such a one", "", []string{"A = terminated", "A[0] of A = terminated", "b: A = cancelled"}, "A A[0] b"},
		{"nor one that was cancelled", "", []string{"A = cancelled"}, "A"},
		{"nor one that is named", "A", []string{"A = failed", "b: A"}, "A"},
		{"without anything else there is nothing to do", "", []string{"A = failed", "b: A", "c when any_failed: A = skipped"}, none},
	} {
		t.Run(c.name, func(t *testing.T) {
			tasks := graph(c.tasks...)
			var chosen []plan.TaskID
			for i := range tasks {
				tasks[i].ContinueOnError = tasks[i].Name[0] == 'A'
				if tasks[i].Name == c.chosen {
					chosen = append(chosen, tasks[i].ID)
				}
			}
			got, err := rules.SelectRetry(tasks, chosen, false)
			names := namesOf(tasks, got)
			slices.Sort(names)
			if err != nil {
				names = []string{err.Error()}
			}
			if strings.Join(names, " ") != c.want {
				t.Errorf("got %v, want %s", names, c.want)
			}
		})
	}
}

func TestARetryChooses(t *testing.T) {
	chain := []string{"a", "b: a = failed", "c: b = skipped", "d: c = skipped", "e: a"}
	items := []string{"list", "copy: list = failed", "copy[0] of copy", "copy[1] of copy = failed", "copy[2] of copy = cancelled", "after: copy = skipped"}
	done := []string{"list", "copy: list", "copy[0] of copy", "copy[1] of copy", "after: copy"}
	for _, c := range []struct {
		name       string
		tasks      []string
		chosen     string
		downstream bool
		want       string // names, or the error
	}{
		{"what failed and what was skipped below it, children first", chain, "", false, "d c b"},
		{"the same if it is named", chain, "b", false, "d c b"},
		{"not a clean-up that nothing made necessary, nor what is below it", []string{"a", "undo when any_failed: a = skipped", "told: undo = skipped", "f = failed"}, "", false, "f"},
		{"but one below what is retried, and one that only a closed plan skipped", []string{"a = failed", "b when all_failed: a = skipped", "c", "d when all_done: c = skipped"}, "", false, "d b a"},
		{"what was skipped, and what is below that", chain, "c", false, "d c"},
		{"with downstream what succeeded below too", chain, "a", true, "d c b e a"},
		{"not what succeeded without it", chain, "a", false, `task "a" succeeded; to run it and what is below it again add --downstream`},
		{"a failure below a failure only if it is named", []string{"a = failed", "b: a = failed"}, "a", false, "a"},
		{"or with downstream", []string{"a = failed", "b: a = failed"}, "a", true, "b a"},
		{"what succeeded in spite of a failure stays", []string{"a = failed", "b: a"}, "", false, "a"},
		{"what is held and queued below", []string{"a = failed", "b: a = queued", "c: b = held"}, "a", false, "c b a"},
		{"not while something below runs", []string{"a = failed", "b: a = running"}, "a", false, `task "b" is running: wait for it, or cancel it`},
		{"nor while it is claimed", []string{"a = failed", "b: a = skipped", "c: b = claimed"}, "", false, `task "c" is starting: wait for it, or cancel it`},
		{"while something elsewhere runs", []string{"a = failed", "b = running"}, "", false, "a"},
		{"not what has not finished", []string{"a = queued"}, "a", false, `task "a" is queued: only what has finished can be retried`},
		{"not when all succeeded", []string{"a", "b: a"}, "", false, "nothing to retry: every task succeeded"},
		{"not what is not there", []string{"a = failed"}, "z", false, plan.ErrNotFound.Error()},
		{"what was orphaned, terminated or cancelled", []string{"a = orphaned", "b = terminated", "c = cancelled", "d = 7"}, "", false, "a b c d"},
		{"items that did not succeed with their task", items, "", false, "after copy copy[1] copy[2]"},
		{"the same if their task is named", items, "copy", false, "after copy copy[1] copy[2]"},
		{"all of them if it is named with downstream", items, "copy", true, "after copy copy[0] copy[1] copy[2]"},
		{"not if what is above it is", items, "list", true, "after copy copy[1] copy[2] list"}, // the store makes them again
		{"not what was only skipped", []string{"a", "b: a = skipped"}, "", false, "nothing to retry: nothing failed; what was skipped runs again if it is named"},
		{"unless it is named", []string{"a", "b: a = skipped"}, "b", false, "b"},
		{"or something failed elsewhere", []string{"a", "b: a = skipped", "c = failed"}, "", false, "b c"},
		{"one item with its task, but not the others", items, "copy[1]", false, "after copy copy[1]"},
		{"an item and its task, with the others", items, "copy[1] copy", false, "after copy copy[1] copy[2]"},
		{"with downstream all items of a task that succeeded", done, "copy", true, "after copy copy[0] copy[1]"},
		{"and those of a task below", done, "list", true, "after copy copy[0] copy[1] list"},
		{"and those of a task below that an item brought in before", items, "copy[1] list", true, "after copy copy[1] copy[2] list"},
		{"an item that runs keeps its task from being retried", []string{"copy = cancelled", "copy[0] of copy = running"}, "", false, `task "copy[0]" is running: wait for it, or cancel it`},
		{"and another item of it too", []string{"copy = held", "copy[0] of copy = running", "copy[1] of copy = failed"}, "copy[1]", false, `task "copy[0]" is running: wait for it, or cancel it`},
		{"an item that waits goes with another item of its task", []string{"copy = held", "copy[0] of copy = queued", "copy[1] of copy = cancelled", "copy[2] of copy = failed"}, "copy[1]", false, "copy copy[0] copy[1]"},
		{"an item that may fail, with its task although that succeeded", []string{"copy", "copy[0] of copy", "copy[1] of copy = failed", "after: copy"}, "", false, "copy copy[1]"},
		{"such an item too if its task is named", []string{"copy", "copy[0] of copy", "copy[1] of copy = failed", "after: copy"}, "copy", false, "copy copy[1]"},
		{"and all items if that is with downstream", []string{"copy", "copy[0] of copy", "copy[1] of copy = failed", "after: copy"}, "copy", true, "after copy copy[0] copy[1]"},
		{"not a foreach task whose items all succeeded", done, "copy", false, `task "copy" succeeded; to run it and what is below it again add --downstream`},
		{"what ran because of the failure is asked again", []string{"a", "b: a = failed", "undo when any_failed: a, b", "mail when any_failed: b = failed"}, "", false, "mail undo b"},
		{"and what did not run because of it", []string{"a = failed", "b: a = skipped", "undo when any_failed: b = skipped"}, "", false, "undo b a"},
		{"and so is what is below what is asked again", []string{"a = failed", "merge when all_done: a", "publish: merge", "told: publish"}, "", false, "told publish merge a"},
		{"also if it is taken for another reason before", []string{"a = failed", "b: a = skipped", "merge when all_done: b, a = 7", "told: merge"}, "", false, "told merge b a"},
		{"but nothing whose parents stay", []string{"a = failed", "b: a", "merge when all_done: b"}, "", false, "a"},
		{"of what is named too", []string{"a = failed", "b = failed", "undo when any_failed: a", "mail when any_failed: b"}, "a", false, "undo a"},
		{"not while what is asked again runs", []string{"a = failed", "mail when any_failed: a = running"}, "", false, `task "mail" is running: wait for it, or cancel it`},
		{"what is asked again below an item", []string{"copy = failed", "copy[0] of copy = failed", "copy[1] of copy", "mail when any_failed: copy"}, "copy[0]", false, "mail copy copy[0]"},
		{"a diamond once", []string{"a = failed", "b: a = skipped", "c: a = skipped", "d: b, c = skipped"}, "", false, "d b c a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tasks := graph(c.tasks...)
			var chosen []plan.TaskID
			for _, name := range strings.Fields(c.chosen) {
				k := slices.IndexFunc(tasks, func(t plan.Task) bool { return t.Name == name })
				chosen = append(chosen, number(k))
			}
			got, err := rules.SelectRetry(tasks, chosen, c.downstream)
			if err != nil {
				if !strings.HasSuffix(err.Error(), c.want) { // nothing stands behind what says all
					t.Errorf("got error %q, want %q", err, c.want)
				}
				if !errors.Is(err, plan.ErrConflict) && !errors.Is(err, plan.ErrPlanActive) && !errors.Is(err, plan.ErrNotFound) {
					t.Errorf("error %q is of no kind that a caller can act on", err)
				}
				return
			}
			checkRetry(t, tasks, got, chosen, c.downstream)
			names := namesOf(tasks, got)
			if slices.Sort(names); fmt.Sprint(names) != fmt.Sprint(slices.Sorted(slices.Values(strings.Fields(c.want)))) {
				t.Errorf("got %v, want %s", names, c.want)
			}
		})
	}
}

func TestARetryReadsFilesAgainOnlyForTheForeachThatIsNamedWithDownstream(t *testing.T) {
	for _, c := range []struct {
		chosen     string
		foreach    plan.Foreach
		downstream bool
		want       bool
	}{
		{"copy", plan.Foreach{Lines: "list"}, true, true},
		{"copy", plan.Foreach{Glob: "*"}, true, true},
		{"copy", plan.Foreach{Lines: "list"}, false, false},
		{"copy", plan.Foreach{Value: "needs.list"}, true, false},
		{"copy", plan.Foreach{List: []byte(`[1]`)}, true, false},
		{"copy[0]", plan.Foreach{Lines: "list"}, true, false},
		{"", plan.Foreach{Lines: "list"}, true, false},
	} {
		tasks := graph("list", "copy: list = failed", "copy[0] of copy = failed", "copy[1] of copy", "after: copy = skipped")
		tasks[1].Foreach = &c.foreach
		var chosen []plan.TaskID
		if c.chosen != "" {
			chosen = append(chosen, tasks[slices.IndexFunc(tasks, func(t plan.Task) bool { return t.Name == c.chosen })].ID)
		}
		got, err := rules.SelectRetry(tasks, chosen, c.downstream)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range got {
			if want := c.want && r.ID == tasks[1].ID; r.Anew != want {
				t.Errorf("%q, %+v, downstream %v: task %s has Anew %v, want %v", c.chosen, c.foreach, c.downstream, r.ID, r.Anew, want)
			}
		}
	}
}

func namesOf(tasks []plan.Task, chosen []rules.Retried) []string {
	names := make([]string, 0, len(chosen))
	for _, c := range chosen {
		k := slices.IndexFunc(tasks, func(t plan.Task) bool { return t.ID == c.ID })
		names = append(names, tasks[k].Name)
	}
	return names
}

// checkRetry holds a selection to what must be true of every one.
func checkRetry(t *testing.T, tasks []plan.Task, got []rules.Retried, chosen []plan.TaskID, downstream bool) {
	t.Helper()
	byID := map[plan.TaskID]*plan.Task{}
	for i := range tasks {
		byID[tasks[i].ID] = &tasks[i]
	}
	place := map[plan.TaskID]int{}
	asked := map[plan.TaskID]bool{} // tasks stand behind those that they need
	for changed := true; changed; {
		changed = false
		for i := range tasks {
			for _, need := range tasks[i].Needs {
				taken := slices.ContainsFunc(got, func(r rules.Retried) bool { return r.ID == need })
				is := taken && (asked[need] || tasks[i].When != "" && tasks[i].When != plan.AllSucceeded)
				changed = changed || is && !asked[tasks[i].ID]
				asked[tasks[i].ID] = asked[tasks[i].ID] || is
			}
		}
	}
	for i, r := range got {
		task := byID[r.ID]
		if _, twice := place[r.ID]; twice || task == nil || task.Status != r.Status {
			t.Fatalf("%v is there twice, unknown, or not in the state that it has", r)
		}
		if place[r.ID] = i; task.Status.Active() {
			t.Errorf("task %q is %v, and is taken", task.Name, task.Status)
		}
		withItem := slices.ContainsFunc(got, func(r rules.Retried) bool { return byID[r.ID].Of == task.ID }) // its output is of its items
		if task.Status == plan.Succeeded && !downstream && !withItem && !asked[task.ID] && !asked[task.Of] {
			t.Errorf("task %q succeeded, and runs again without downstream", task.Name)
		}
	}
	for _, id := range chosen {
		if _, taken := place[id]; !taken {
			t.Errorf("task %q was chosen, and is not taken", byID[id].Name)
		}
	}
	for i := range tasks {
		task := &tasks[i]
		at, taken := place[task.ID]
		for _, id := range task.Needs {
			parent, parentTaken := place[id]
			switch {
			case !parentTaken:
			case taken && at > parent:
				t.Errorf("task %q comes after its parent %q", task.Name, byID[id].Name)
			case !taken && (downstream || asked[task.ID] || task.Status == plan.Cancelled || !task.Status.Finished()):
				t.Errorf("task %q (%s) stays under %q, which is taken", task.Name, task.State(), byID[id].Name)
			}
		}
		if task.Of.IsZero() || byID[task.Of] == nil {
			continue
		}
		of, ofTaken := place[task.Of]
		switch {
		case taken && !ofTaken:
			t.Errorf("item %q is taken without its task", task.Name)
		case taken && at < of:
			t.Errorf("item %q comes before its task", task.Name)
		}
	}
}

func TestARetryOfAPlanThatRunsSaysWhatHasNotFinished(t *testing.T) {
	tasks := []plan.Task{{ID: number(0), Name: "a", Status: plan.Succeeded}, {ID: number(1), Name: "b", Status: plan.Queued}}
	_, err := rules.SelectRetry(tasks, nil, false)
	if !errors.Is(err, plan.ErrConflict) || !strings.Contains(err.Error(), "succeeded, and 1 task has not finished") {
		t.Errorf("got %v, want that a task has not finished", err)
	}
}

// FuzzSelectRetry makes a graph of some bytes: four for each task, its state and rule, two parents and the foreach task that it is an item of.
func FuzzSelectRetry(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 1, 1, 0, 0, 2, 2, 1, 0, 3, 3, 2, 0}, uint8(1), false)
	f.Add([]byte{1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1, 2, 1, 0, 0}, uint8(0), true)
	f.Add([]byte{4, 0, 0, 0, 5, 1, 0, 0, 1, 0, 0, 1}, uint8(3), false)
	f.Fuzz(func(t *testing.T, data []byte, choose uint8, downstream bool) {
		states := []string{"succeeded", "failed", "skipped", "cancelled", "held", "queued", "running", "terminated", "orphaned"}
		var tasks []plan.Task
		for i := 0; i*4+3 < len(data) && i < 60; i++ {
			b := data[i*4:]
			task := plan.Task{ID: number(i), Name: fmt.Sprint("t", i)}
			task.Status, task.Reason = stateOf(states[int(b[0])%len(states)])
			for _, p := range b[1:3] {
				if k := int(p) - 1; k >= 0 && k < i && !slices.Contains(task.Needs, number(k)) {
					task.Needs = append(task.Needs, number(k))
				}
			}
			if b[0] >= 128 && len(task.Needs) > 0 {
				task.When = plan.AnyFailed
			}
			// Items have no needs, and are of a task that is no item itself.
			if k := int(b[3]) - 1; k >= 0 && k < i && tasks[k].Of.IsZero() {
				task.Of, task.Needs, task.When = number(k), nil, ""
			}
			tasks = append(tasks, task)
		}
		var chosen []plan.TaskID
		if k := int(choose) - 1; k >= 0 && k < len(tasks) {
			chosen = append(chosen, number(k))
		}
		got, err := rules.SelectRetry(tasks, chosen, downstream)
		if err == nil {
			checkRetry(t, tasks, got, chosen, downstream)
			return
		}
		if got != nil || !errors.Is(err, plan.ErrConflict) && !errors.Is(err, plan.ErrPlanActive) {
			t.Errorf("got %v, %v", got, err)
		}
	})
}

func TestARetryRemembersWhichTasksRan(t *testing.T) {
	for _, c := range []struct {
		name       string
		tasks      []string
		chosen     string
		downstream bool
		ran        string
	}{
		{"what was stopped, if its clean-up has not run", []string{"a = terminated", "undo when any_failed: a = cancelled"}, "", false, "a"},
		{"not without a clean-up", []string{"a = terminated", "b: a = skipped"}, "", false, ""},
		{"nor after the clean-up", []string{"a = terminated", "undo when any_failed: a"}, "", false, ""},
		{"a clean-up that failed, or was stopped, undid nothing", []string{"a = failed", "undo when any_failed: a = failed", "b = orphaned", "undo-b when any_failed: b = terminated"}, "", false, "a b"},
		{"not for a clean-up that is not to run", []string{"a = failed", "b = cancelled", "undo when all_failed: a, b = skipped"}, "", false, ""},
		{"what has it since an earlier retry, and did not begin", []string{"ran-a = cancelled", "ran-b = held", "c", "undo when all_done: ran-a, ran-b, c = held"}, "ran-a", false, "ran-a"},
		{"what did not run has none", []string{"a = cancelled", "undo when all_done: a = cancelled"}, "", false, ""},
		{"nor has what succeeded", []string{"a", "b = failed", "undo when any_failed: a, b = cancelled"}, "a", true, ""},
		{"a clean-up has clean-ups of its own", []string{"a = failed", "undo when any_failed: a = failed", "mail when any_failed: undo = cancelled"}, "", false, "a undo"},
		{"a foreach task ran if an item did", []string{"copy = cancelled", "copy[0] of copy = terminated", "copy[1] of copy = cancelled", "undo when all_done: copy = cancelled"}, "", false, "copy copy[0]"},
		{"and an item may have a clean-up of its own", []string{"copy = failed", "copy[0] of copy = failed", "copy[1] of copy = failed", "undo when any_failed: copy[1] = cancelled"}, "", false, "copy[1]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tasks := graph(c.tasks...)
			var chosen []plan.TaskID
			for i := range tasks {
				tasks[i].Ran = strings.HasPrefix(tasks[i].Name, "ran-")
				if tasks[i].Name == c.chosen {
					chosen = append(chosen, tasks[i].ID)
				}
			}
			selected, err := rules.SelectRetry(tasks, chosen, c.downstream)
			if err != nil {
				t.Fatal(err)
			}
			selected = slices.DeleteFunc(selected, func(r rules.Retried) bool { return !r.Ran })
			names := namesOf(tasks, selected)
			slices.Sort(names)
			if got := strings.Join(names, " "); got != c.ran {
				t.Errorf("%q keep Ran, want %q", got, c.ran)
			}
		})
	}
}

func TestOnlyTheParentThatMakesTheListHasItemsMadeAnew(t *testing.T) {
	for _, c := range []struct {
		name, chosen string
		list         *plan.Foreach
		down         bool
		want         string
	}{
		{"another parent leaves what was cancelled with its items", "a", &plan.Foreach{Value: "needs.l"}, false, "a"},
		{"also where the list is the task's own", "a", &plan.Foreach{}, false, "a"},
		{"that parent takes it along", "l", &plan.Foreach{Value: "needs.l.files"}, false, "after copy copy[1] l"},
		{"so does another parent with downstream", "a", &plan.Foreach{Value: "needs.l"}, true, "a after copy copy[1]"},
		{"by itself the task keeps the items that succeeded", "copy", &plan.Foreach{Value: "needs.l"}, false, "after copy copy[1]"},
		{"beside another parent it is refused", "a copy", &plan.Foreach{Value: "needs.l"}, false, `task "copy" keeps its items, and they would not wait for "a", which runs first; retry that, and then "copy", or make all items again with --downstream`},
		{"so is one of its items", "a copy[1]", &plan.Foreach{}, false, `task "copy" keeps its items, and they would not wait for "a", which runs first; retry that, and then "copy", or make all items again with --downstream`},
		{"with downstream it makes all of them again", "a copy", &plan.Foreach{Value: "needs.l"}, true, "a after copy copy[0] copy[1]"},
		{"and beside the parent that makes the list", "l copy", &plan.Foreach{Value: "needs.l"}, false, "after copy copy[1] l"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tasks := graph("a = failed", "l = failed", "copy: a, l = cancelled", "copy[0] of copy", "copy[1] of copy = cancelled", "after: copy = cancelled")
			tasks[0].ContinueOnError, tasks[1].ContinueOnError = true, true
			tasks[2].Foreach, tasks[2].Expanded, tasks[2].Items = c.list, true, 2
			var chosen []plan.TaskID
			for name := range strings.FieldsSeq(c.chosen) {
				chosen = append(chosen, tasks[slices.IndexFunc(tasks, func(t plan.Task) bool { return t.Name == name })].ID)
			}
			got, err := rules.SelectRetry(tasks, chosen, c.down)
			names := namesOf(tasks, got)
			slices.Sort(names)
			text := strings.Join(names, " ")
			if err != nil {
				text = err.Error()
			}
			if text != c.want {
				t.Errorf("got %s, want %s", text, c.want)
			}
		})
	}
}
