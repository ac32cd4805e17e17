package compiler_test

import (
	"encoding/json"
	"testing"

	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/plan"
)

// A request may come again after its server was replaced by a newer one. Where this fails since there is more in a spec, requestForm has to
// count on, so that plans of before are not taken for others.
func TestWhatARequestWasIsToldTheSameByEachVersion(t *testing.T) {
	s := plan.New("p")
	s.Params = map[string]json.RawMessage{"day": json.RawMessage(`"monday"`)}
	s.Add(plan.TaskSpec{Name: "a", Params: map[string]any{"run": "echo", "n": 1}})
	s.Add(plan.TaskSpec{Name: "b", Needs: []string{"a"}, Foreach: &plan.Foreach{List: json.RawMessage(`[1, 2]`)}})
	got, err := compiler.Request(s, secret.Names{})
	if err != nil || got != "43de3a417d75f4818c5a553268b80ce3:52ee37ed2d36002daa03ca870e8992db" {
		t.Errorf("it is %s (%v)", got, err)
	}
}
