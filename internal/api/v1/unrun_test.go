package v1_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/plan"
)

// unrun is what a server says of a plan that is to be cancelled.
type unrun struct {
	Unrun        []struct{ Name string }
	All, Running int
}

func TestCleanUpsThatACancellationLeavesOutAreNamed(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		for _, c := range []struct {
			about     string
			onFailure plan.OnFailure
			running   int
		}{
			{"go-on", "", 1},
			{"stop", plan.Stop, 0}, // clean-ups would not run either
		} {
			spec := plan.New(c.about)
			spec.OnFailure = c.onFailure
			spec.Add(plan.TaskSpec{Name: "copy", Plugin: "demo"})
			spec.Add(plan.TaskSpec{Name: "after", Plugin: "demo", Needs: []string{"copy"}})
			spec.Add(plan.TaskSpec{Name: "roll-back", Plugin: "demo", Needs: []string{"copy"}, When: plan.AnyFailed})
			spec.Add(plan.TaskSpec{Name: "report", Plugin: "demo", Needs: []string{"copy", "after"}, When: plan.AllDone})
			p := submitted(t, s.st, spec)
			w := worker{t, s.st, registered(t, s.st)}
			if code, text := s.ask("POST", "/plans/"+p.ID.String()+"/cancel-running", ""); code != 409 || !strings.Contains(text, "cancel the plan") {
				t.Errorf("%s: before anything runs: %d %s", c.about, code, text)
			}
			if claimed := w.turn(1); len(claimed) != 1 {
				t.Fatalf("%d tasks are claimed", len(claimed))
			}
			var said unrun
			s.must("GET", "/plans/"+c.about+"/unrun", "", &said)
			var names []string
			for _, u := range said.Unrun {
				names = append(names, u.Name)
			}
			if !slices.Equal(names, []string{"roll-back", "report"}) || said.All != 2 || said.Running != c.running {
				t.Errorf("%s: %+v", c.about, said)
			}
			code, text := s.ask("POST", "/plans/"+p.ID.String()+"/cancel-running", "")
			if want := map[int]int{1: 200, 0: 409}[c.running]; code != want || code == 200 && !strings.Contains(text, `"stopped":1`) {
				t.Errorf("%s: to cancel what runs: %d %s", c.about, code, text)
			}
			if p, err := s.st.Plan(t.Context(), p.ID); err != nil || p.State != plan.PlanRunning || p.Closing != plan.Open {
				t.Errorf("%s: the plan is %v, %v, %v", c.about, p.State, p.Closing, err)
			}
			if err := s.st.CancelPlan(t.Context(), p.ID, false); err != nil {
				t.Fatal(err)
			}
			w.turn(0)
		}
	})
}
