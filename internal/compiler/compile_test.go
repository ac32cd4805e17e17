package compiler_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/plan"
)

// compiled compiles a spec whose queues have ids that start with their number.
func compiled(t *testing.T, s *plan.Spec) (plan.Plan, []plan.Task) {
	t.Helper()
	if err := compiler.Validate(s); err != nil {
		t.Fatal(err)
	}
	n := byte(0)
	p, tasks, err := compiler.Compile(s, time.Unix(1_700_000_000, 0), func(compiler.QueueNeed) (plan.QueueID, error) {
		n++
		return plan.QueueID{ID: plan.ID{n}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return p, tasks
}

func TestAPlanIsCompiledIntoTasksInItsOrder(t *testing.T) {
	s := plan.New("nightly")
	s.OnFailure, s.Keep, s.Source = plan.Stop, time.Hour, "/plans/nightly.yaml"
	s.Params = map[string]json.RawMessage{"b": json.RawMessage(`2`), "a": json.RawMessage(`"x"`)}
	s.Add(plan.TaskSpec{Name: "last", Plugin: "demo", Needs: []string{"b", "a"}, When: plan.AllDone, Retry: plan.Retry{Attempts: 2}, Timeout: time.Minute})
	s.Add(plan.TaskSpec{Name: "a", Plugin: "demo", Params: map[string]any{"print": "<&>"}})
	s.Add(plan.TaskSpec{Name: "b", Plugin: "demo", Queue: "wide", Needs: []string{"a"}})
	p, tasks := compiled(t, s)
	if p.State != plan.PlanSubmitting || p.OnFailure != plan.Stop || p.Keep != time.Hour || p.Size != 3 || p.Source != s.Source || p.ID.IsZero() || string(p.Params) != `{"a":"x","b":2}` {
		t.Errorf("the plan is %+v", p)
	}
	// "last" is first in the spec, and so has the first id; but stores want no task before one that it needs.
	if got := []string{tasks[0].Name, tasks[1].Name, tasks[2].Name}; !slices.Equal(got, []string{"a", "b", "last"}) {
		t.Fatalf("the tasks are %v, want parents first", got)
	}
	a, b, last := tasks[0], tasks[1], tasks[2]
	for _, task := range tasks {
		if task.Plan != p.ID || task.Status != plan.Held {
			t.Errorf("%+v, want it held and of the plan", task)
		}
	}
	if bytes.Compare(last.ID.ID[:], a.ID.ID[:]) >= 0 || bytes.Compare(a.ID.ID[:], b.ID.ID[:]) >= 0 {
		t.Errorf("the ids of last, a and b are %v, %v and %v; want them to ascend as in the spec", last.ID, a.ID, b.ID)
	}
	if want := []plan.TaskID{b.ID, a.ID}; !slices.Equal(last.Needs, want) {
		t.Errorf("needs %v, want %v", last.Needs, want)
	}
	if last.Queue != a.Queue || last.Queue == b.Queue {
		t.Errorf("queues %v, %v, %v; want those of last and a alike", last.Queue, a.Queue, b.Queue)
	}
	if last := last.Definition; last.When != plan.AllDone || last.Retry.Attempts != 2 || last.Timeout != time.Minute {
		t.Errorf("the definition is %+v", last)
	}
	if got := string(a.Params); got != `{"print":"<&>"}` {
		t.Errorf("params are %s", got)
	}
	if got := string(b.Params); got != `{}` {
		t.Errorf("params of a task without any are %s", got)
	}
}

func TestASpecIsCompiledAgainIntoTheSameTasks(t *testing.T) {
	s := needs("last: a, b", "a", "b: a")
	s.Params = map[string]json.RawMessage{"n": json.RawMessage(`3`)}
	s.Tasks[1].Params = json.RawMessage(`{"x":"${{ plan.id }} ${{ params.n }}"}`)
	s.Tasks[2].Foreach = &plan.Foreach{List: json.RawMessage(`["${{ plan.id }}"]`)}
	p, tasks := compiled(t, s)
	plan.NewID(time.Now()) // others mint too
	queue := func(compiler.QueueNeed) (plan.QueueID, error) { return tasks[0].Queue, nil }
	again, same, err := compiler.Again(s, p.ID, p.Created, queue)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(again, p) || !reflect.DeepEqual(same, tasks) {
		t.Errorf("got  %+v\n%+v\nwant %+v\n%+v", again, same, p, tasks)
	}
	other, _ := compiled(t, s)
	if other.ID == p.ID {
		t.Errorf("another plan has the id of the first one, %s", p.ID)
	}
}

func TestATasksRankIsTheLongestPathToTheEnd(t *testing.T) {
	s := needs("a", "b: a", "c: a", "d: b, c", "e")
	s.Tasks[2].Estimate = 2500 * time.Millisecond
	s.Tasks[4].Estimate = time.Microsecond
	_, tasks := compiled(t, s)
	for i, want := range []int64{4_500_000, 2_000_000, 3_500_000, 1_000_000, 1} {
		if tasks[i].Rank != want {
			t.Errorf("the rank of %q is %d, want %d", tasks[i].Name, tasks[i].Rank, want)
		}
	}
}

func TestExpressionsThatAreKnownAtSubmissionAreReplaced(t *testing.T) {
	for _, c := range []struct{ name, params, want string }{
		{"params, the plan and the task", `{"x":"${{ params.n }}","y":"${{ plan.name }}/${{ task.name }}"}`, `{"n":3,"x":3,"y":"p/task"}`},
		{"not needs and items", `{"x":"${{ needs.up.x }} ${{ params.n }}"}`, `{"n":3,"x":"${{ needs.up.x }} 3"}`},
		{"a param of the task goes before one of the plan", `{"n":"mine"}`, `{"n":"mine"}`},
		{"a text in quotes is itself", `{"x":"${{ '${{' }} params.n }}","run":"echo ${{ '${{' }}"}`, `{"n":3,"run":"echo ${{","x":"${{ params.n }}"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := needs("up", "task: up")
			s.Params = map[string]json.RawMessage{"n": json.RawMessage(`3`)}
			s.Tasks[1].Params = json.RawMessage(c.params)
			_, tasks := compiled(t, s)
			if got := string(tasks[1].Params); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	s := needs("a")
	s.Params = map[string]json.RawMessage{"secret": json.RawMessage(`{"from_env":"TOKEN"}`)}
	s.Tasks[0].Params = json.RawMessage(`{"env":{"A":"${{ params.secret }}"}}`)
	if _, _, err := compiler.Compile(s, time.Now(), func(compiler.QueueNeed) (plan.QueueID, error) { return plan.QueueID{}, nil }); err == nil || !strings.Contains(err.Error(), "params.env: A: ") {
		t.Errorf("a variable that is a secret by data: got error %v", err)
	}
	s = needs("a")
	s.Params = map[string]json.RawMessage{"n": json.RawMessage(`3`)}
	s.Tasks[0].Plugin = "demo"
	if _, tasks := compiled(t, s); string(tasks[0].Params) != `{}` {
		t.Errorf("a task of another plugin than exec was given the plan's params: %s", tasks[0].Params)
	}
}

func TestAForeachIsCompiledAsFarAsItIsKnown(t *testing.T) {
	for _, c := range []struct {
		name    string
		foreach plan.Foreach
		want    string // as JSON, or a part of the error
	}{
		{"a param is made a list", plan.Foreach{Value: "params.hosts"}, `{"list":["a","b"]}`},
		{"an output stays", plan.Foreach{Value: "needs.up.x"}, `{"value":"needs.up.x"}`},
		{"params in a list are replaced", plan.Foreach{List: json.RawMessage(`["${{ params.n }}",1]`)}, `{"list":[3,1]}`},
		{"params in a path are replaced", plan.Foreach{Lines: "${{ params.folder }}/${{ params.n }}"}, `{"lines":"/x/3"}`},
		{"a path that is one expression", plan.Foreach{Glob: "${{ params.folder }}"}, `{"glob":"/x"}`},
		{"what a param holds is data", plan.Foreach{Value: "params.odd"}, `{"list":["${{ params.n }}"]}`},
		{"as in a list", plan.Foreach{List: json.RawMessage(`["${{ params.odd.0 }}","${{ '${{' }}"]`)}, `{"list":["${{ params.n }}","${{"]}`},
		{"and in a path", plan.Foreach{Lines: "${{ params.odd.0 }}${{ '}' }}"}, `{"lines":"${{ params.n }}}"}`},
		{"a param that is no list", plan.Foreach{Value: "params.n"}, `not a list`},
		{"a path that is no text", plan.Foreach{Glob: "${{ params.n }}"}, `not a path`},
		{"a path that is empty", plan.Foreach{Lines: "${{ params.empty }}"}, `is empty, not a path`},
		{"spans, escapes and alternatives", plan.Foreach{Glob: `[a-c-a][\z-a][!0-9_-]{../a,b..c}\{a..c\}`}, `{"glob":"[a-c-a][\\z-a][!0-9_-]{../a,b..c}\\{a..c\\}"}`},
		{"a pattern that is malformed with its param", plan.Foreach{Glob: "in/${{ params.open }}"}, `glob "in/{a,b" is no pattern`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := needs("up", "task: up")
			s.Params = map[string]json.RawMessage{"n": json.RawMessage(`3`), "hosts": json.RawMessage(`["a","b"]`), "folder": json.RawMessage(`"/x"`),
				"empty": json.RawMessage(`""`), "open": json.RawMessage(`"{a,b"`),
				"odd": json.RawMessage(`["${{ params.n }}"]`)}
			s.Tasks[1].Foreach = &c.foreach
			if err := compiler.Validate(s); err != nil {
				t.Fatal(err)
			}
			_, tasks, err := compiler.Compile(s, time.Now(), func(compiler.QueueNeed) (plan.QueueID, error) { return plan.QueueID{}, nil })
			if err != nil {
				if !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), `"task"`) {
					t.Errorf("got error %q, want %q and the task's name", err, c.want)
				}
				return
			}
			if got, _ := json.Marshal(tasks[1].Foreach); string(got) != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if s.Tasks[1].Foreach.Value != c.foreach.Value {
				t.Error("the spec was changed")
			}
		})
	}
}

func TestAPlanSaysWhichQueuesItNeeds(t *testing.T) {
	s := plan.New("p")
	s.Add(plan.TaskSpec{Name: "a"})
	s.Add(plan.TaskSpec{Name: "b", Plugin: "demo", Queue: "wide"})
	s.Add(plan.TaskSpec{Name: "c", Plugin: "exec", Queue: "exec"})
	s.Add(plan.TaskSpec{Name: "d", Plugin: "demo"})
	s.Add(plan.TaskSpec{Name: "e", Plugin: "demo", Queue: "narrow"})
	s.Limits = []plan.QueueLimit{{Queue: "narrow", Threads: 4}, {Queue: "exec", Plugin: "exec", Threads: 1}}
	got := fmt.Sprint(compiler.Queues(s))
	if want := "[{exec exec true 1} {wide demo false 0} {demo demo true 0} {narrow demo true 4}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	broken := errors.New("no such queue")
	if _, _, err := compiler.Compile(s, time.Now(), func(compiler.QueueNeed) (plan.QueueID, error) { return plan.QueueID{}, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v, want the error of the queue", err)
	}
}

func Example() {
	s := plan.New("nightly")
	s.Params = map[string]json.RawMessage{"domain": json.RawMessage(`"example.com"`)}
	list := s.Add(plan.TaskSpec{Name: "list", Params: map[string]any{"run": []string{"./list", "${{ params.domain }}"}}})
	s.Add(plan.TaskSpec{Name: "copy", Needs: []string{list.Name}, Foreach: &plan.Foreach{Value: "needs.list.boxes"},
		Params: map[string]any{"run": []string{"./copy", "${{ item }}"}}})
	if err := compiler.Validate(s); err != nil {
		fmt.Println(err)
		return
	}
	p, tasks, err := compiler.Compile(s, time.Now(), func(q compiler.QueueNeed) (plan.QueueID, error) {
		fmt.Println("queue:", q.Name)
		return plan.QueueID{ID: plan.NewID(time.Now())}, nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Name, p.State)
	for _, t := range tasks {
		fmt.Println(t.Name, t.Rank, string(t.Params))
	}
	// Output:
	// queue: exec
	// nightly submitting
	// list 2000000 {"domain":"example.com","run":["./list","example.com"]}
	// copy 1000000 {"domain":"example.com","run":["./copy","${{ item }}"]}
}

// The question of an approval is about what it needs, so that what comes after the answer reads those outputs too.
func TestATaskBelowAnApprovalReadsWhatTheApprovalNeeds(t *testing.T) {
	params := func(text string) json.RawMessage { return json.RawMessage(`{"print": "` + text + `"}`) }
	s := plan.New("release")
	s.Add(plan.TaskSpec{Name: "far", Plugin: "demo"})
	s.Add(plan.TaskSpec{Name: "check", Plugin: "demo", Needs: []string{"far"}})
	s.Add(plan.TaskSpec{Name: "ask", Needs: []string{"check"}, Approve: &plan.Approval{Question: "Switch?"}})
	below := []plan.TaskSpec{
		{Name: "condition", Plugin: "demo", Needs: []string{"ask"}, If: "needs.check.changed > 0 && needs.check.changed < 9"},
		{Name: "param", Plugin: "demo", Needs: []string{"ask"}, Params: params("${{ needs.check.changed }}")},
		{Name: "items", Plugin: "demo", Needs: []string{"ask"}, Foreach: &plan.Foreach{Value: "needs.check"}},
		{Name: "both", Plugin: "demo", Needs: []string{"check", "ask"}, If: "needs.check.changed > 0"},
		{Name: "silent", Plugin: "demo", Needs: []string{"ask"}, If: "needs.ask.by != 'anna'"},
	}
	s.Tasks = append(s.Tasks, below...)
	_, tasks := compiled(t, s)
	ids := map[string]plan.TaskID{}
	for _, task := range tasks {
		ids[task.Name] = task.ID
	}
	for _, task := range tasks[3:] {
		want := []plan.TaskID{ids["ask"], ids["check"]}
		switch task.Name {
		case "both":
			want = []plan.TaskID{ids["check"], ids["ask"]}
		case "silent":
			want = want[:1]
		}
		if !slices.Equal(task.Needs, want) {
			t.Errorf("%s needs %v, want %v", task.Name, task.Needs, want)
		}
	}
	if !reflect.DeepEqual(s.Tasks[3:], below) {
		t.Error("the spec has changed")
	}

	for cited, task := range map[string]plan.TaskSpec{
		"far":   {Name: "far-off", Plugin: "demo", Needs: []string{"ask"}, If: "needs.far.ok"},
		"check": {Name: "undo", Plugin: "demo", Needs: []string{"ask"}, When: plan.AllFailed, If: "needs.check.ok"}, // which would not run after a rejection
	} {
		s.Tasks = append(s.Tasks[:3:3], task)
		if err := compiler.Validate(s); err == nil || !strings.Contains(err.Error(), `the task does not need "`+cited+`"; add it to needs`) {
			t.Errorf("the condition of %s gives %v", task.Name, err)
		}
	}
}
