package http

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// The params of a plan fill an address: in the check of the plan, and as the task runs.
func TestTheParamsOfAPlanFillAnAddress(t *testing.T) {
	asked := make(chan string, 1)
	to := receive(t, func(_ http.ResponseWriter, r *http.Request) { asked <- r.URL.String() })
	given := map[string]json.RawMessage{
		"x": json.RawMessage(`7`), "page": json.RawMessage(`"a/b"`), "other": json.RawMessage(`1`), "base": json.RawMessage(`"v1"`), "timeout": json.RawMessage(`"never"`),
		"method": json.RawMessage(`"BREW"`),
	}
	for _, c := range []struct{ name, params, want string }{
		{"a param of the plan", `{"url":"` + to + `/{x}"}`, "/7"},
		{"in a query, beside an expression", `{"url":"` + to + `/${{ params.base }}/{x}{?page,x}"}`, "/v1/7?page=a%2Fb&x=7"},
		{"the task's own comes first", `{"url":"` + to + `/{x}","x":8}`, "/8"},
		{"the body's comes before both", `{"url":"` + to + `/{x}","x":8,"body":{"x":9}}`, "/9"},
		{"with a value of another task", `{"url":"` + to + `/{x}","headers":{"A":"${{ needs.b }}"}}`, "/7"},
		{"a setting of the plugin fills none", `{"url":"` + to + `/{timeout}"}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := plan.New("p")
			spec.Params = given
			spec.Tasks = []plan.TaskSpec{{Name: "b", Plugin: "demo"}, {Name: "a", Plugin: Name, Params: json.RawMessage(c.params), Needs: []string{"b"}}}
			p := newPlugin(t)
			if _, err := p.Refuse(json.RawMessage(c.params), plugins.Given(spec, &spec.Tasks[1])); (err == nil) != (c.want != "") {
				t.Fatalf("the check says %v, want an address %q", err, c.want)
			}
			_, tasks, err := compiler.Compile(spec, time.Unix(1, 0), func(compiler.QueueNeed) (plan.QueueID, error) { return plan.QueueID{}, nil })
			if err != nil || c.want == "" {
				if c.want != "" {
					t.Fatal(err)
				}
				return
			}
			var params object
			if err := json.Unmarshal(tasks[1].Params, &params); err != nil {
				t.Fatal(err)
			}
			if tasks[1].Template {
				params["headers"] = object{"A": "1"} // as the node finds it
			}
			if r := p.Run(t.Context(), task(t, params)); r.Status != plan.Succeeded {
				t.Fatalf("%+v", r)
			}
			if got := <-asked; got != c.want {
				t.Errorf("it asked for %s, want %s", got, c.want)
			}
			if _, there := params["other"]; there || params["timeout"] != nil || params["method"] != nil {
				t.Errorf("the task got params that its address does not name: %v", params)
			}
		})
	}
}

// The compiler keeps the plugin's own params out of an address, so it has to know them.
func TestTheCompilerKnowsThePluginsOwnParams(t *testing.T) {
	for _, name := range own {
		spec := plan.New("p")
		spec.Params = map[string]json.RawMessage{name: json.RawMessage(`"1"`)}
		spec.Tasks = []plan.TaskSpec{{Name: "a", Plugin: Name, Params: json.RawMessage(`{"url":"http://h/{` + name + `}"}`)}}
		_, tasks, err := compiler.Compile(spec, time.Unix(1, 0), func(compiler.QueueNeed) (plan.QueueID, error) { return plan.QueueID{}, nil })
		if err != nil || string(tasks[0].Params) != `{"url":"http://h/{`+name+`}"}` {
			t.Errorf("%s: the task has %s (%v)", name, tasks[0].Params, err)
		}
	}
}
