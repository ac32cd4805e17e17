package compiler_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/plan"
)

func TestAPlanNamesWhatIsSecretInItsTasks(t *testing.T) {
	s := plan.New("p")
	s.Secrets = []string{"Password", "*_key", "password"}
	s.Params = map[string]json.RawMessage{"password": json.RawMessage(`"hunter22"`), "host": json.RawMessage(`"h"`), "all": json.RawMessage(`{"api_key":"k"}`)}
	for name, params := range map[string]string{
		"by its own name":          `{"password":"${{ params.password }}"}`,
		"by another one":           `{"login":{"Pass":"${{ params.password }}"},"host":"${{ params.host }}"}`,
		"within a text":            `{"url":"https://${{ params.password }}@h/"}`,
		"a part of what is secret": `{"x":"${{ params.all.api_key }}"}`,
		"what has a secret":        `{"x":"${{ params.all }}"}`,
		"in a list":                `{"run":["x","${{ params.password }}",{"deep":"${{ params.password }}"}]}`,
		"of a parent":              `{"x":"${{ needs.a.api_key }}"}`,
	} {
		s.Add(plan.TaskSpec{Name: strings.ReplaceAll(name, " ", "-"), Plugin: "demo", Params: json.RawMessage(params), Needs: []string{"a"}})
	}
	s.Add(plan.TaskSpec{Name: "a", Plugin: "demo"})
	p, tasks := compiled(t, s)
	if want := []string{"*_key", "password"}; !slices.Equal(p.Secrets, want) {
		t.Errorf("the plan keeps %q secret, want %q", p.Secrets, want)
	}
	more := map[string]string{"by-another-one": "pass", "within-a-text": "url", "a-part-of-what-is-secret": "x", "in-a-list": "deep", "of-a-parent": "x"}
	for _, task := range tasks {
		want := []string{"*_key", "password"}
		if name := more[task.Name]; name != "" {
			want = append(want, name)
			slices.Sort(want)
		}
		if !slices.Equal(task.Secrets, want) {
			t.Errorf("task %s keeps %q secret, want %q", task.Name, task.Secrets, want)
		}
		secret.Names{}.HideTask(&task, "hunter22")
		if text, _ := json.Marshal(task); strings.Contains(string(text), "hunter22") || strings.Contains(string(text), `"k"`) {
			t.Errorf("it is shown as %s", text)
		}
	}
	s.Secrets = nil
	if p, tasks = compiled(t, s); p.Secrets != nil || tasks[0].Secrets != nil {
		t.Errorf("of a plan without secrets %q and %q are secret", p.Secrets, tasks[0].Secrets)
	}
}

func TestSecretsOfAPlanThatWouldBeShown(t *testing.T) {
	for _, c := range []struct {
		name    string
		secrets []string
		foreach plan.Foreach
		wrong   string
	}{
		{"a list that is secret", []string{"users"}, plan.Foreach{Value: "params.users"}, "${{ params.users }} is secret"},
		{"a part of one", []string{"users"}, plan.Foreach{Value: "params.users.all"}, "is secret"},
		{"what a parent returns", []string{"tokens"}, plan.Foreach{Value: "needs.a.tokens"}, "is secret"},
		{"an item of a list", []string{"users"}, plan.Foreach{List: json.RawMessage(`["a","${{ params.users }}"]`)}, "is secret"},
		{"a path", []string{"users"}, plan.Foreach{Glob: "/${{ params.users }}/*"}, "is secret"},
		{"items that are not shown", []string{"users", "item"}, plan.Foreach{Value: "needs.a.users"}, ""},
		{"another list", []string{"password"}, plan.Foreach{Value: "params.users"}, ""},
		{"no name", []string{" a"}, plan.Foreach{List: json.RawMessage(`[1]`)}, "cannot be the name of a param"},
		{"too many", strings.Split(strings.Repeat("x ", 201), " ")[:201], plan.Foreach{List: json.RawMessage(`[1]`)}, "at most 200"},
	} {
		s := plan.New("p")
		s.Secrets, s.Params = c.secrets, map[string]json.RawMessage{"users": json.RawMessage(`["a"]`)}
		s.Add(plan.TaskSpec{Name: "a"})
		s.Add(plan.TaskSpec{Name: "b", Needs: []string{"a"}, Foreach: &c.foreach})
		switch err := compiler.Validate(s); {
		case c.wrong == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)):
			t.Errorf("%s: got %v, want what says %q", c.name, err, c.wrong)
		}
	}
	hidden := secret.Names{}.And([]string{"item"}).HideForeach(&plan.Foreach{List: json.RawMessage(`["ann"]`)})
	if string(hidden.List) != `["***"]` {
		t.Errorf("items that are secret are shown as %s", hidden.List)
	}
}

// An error quotes the value of an expression, unless the value may be a secret, or a cut part of
// one.
func TestNoErrorCitesASecret(t *testing.T) {
	long := strings.Repeat("hunter22", 40)
	s := plan.New("p")
	s.Secrets, s.Params = []string{"login"}, map[string]json.RawMessage{"login": json.RawMessage(`{"password":"` + long + `"}`)}
	for _, params := range []string{`{"run":["x","${{ params.login.user }}"]}`, `{"run":["x"],"env":{"X":"${{ params.login }}"}}`} {
		s.Tasks = []plan.TaskSpec{{Name: "a", Params: json.RawMessage(params)}}
		_, _, err := compiler.Compile(s, time.Now(), func(compiler.QueueNeed) (plan.QueueID, error) { return plan.QueueID{}, nil })
		if err == nil || strings.Contains(err.Error(), "hunter") {
			t.Errorf("%s: %v", params, err)
		}
		c := protocol.ClaimedTask{Plugin: "exec", Settings: plan.QueueSettings{Secrets: s.Secrets}, Definition: plan.Definition{Template: true}}
		_, err = compiler.Resolve(&c, json.RawMessage(strings.ReplaceAll(strings.TrimSuffix(params, "}"), "params.", "needs.")+`,"needs":{"login":{"password":"`+long+`"}}}`), nil)
		if err == nil || strings.Contains(err.Error(), "hunter") {
			t.Errorf("as it runs, %s: %v", params, err)
		}
	}
}
