package v1_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/plan"
)

// A result that a retry kept though its inputs ran again is named until it has run again.
func TestAPlanNamesItsOutdatedResults(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		spec := plan.New("sums")
		spec.Add(plan.TaskSpec{Name: "a", Plugin: "demo", ContinueOnError: true})
		spec.Add(plan.TaskSpec{Name: "sum", Plugin: "demo", Needs: []string{"a"}})
		p := submitted(t, s.st, spec)
		w := worker{t, s.st, registered(t, s.st)}
		a := protocol.Ending{Claim: w.turn(1)[0].Claim, Status: plan.Failed}
		if _, err := s.st.Turn(t.Context(), protocol.Turn{Instance: w.id, Ended: []protocol.Ending{a}}); err != nil {
			t.Fatal(err)
		}
		w.run(1)
		check := func(state, outdated string) {
			t.Helper()
			var got api.Plan
			for range 2 { // also where it is known
				s.must("GET", "/plans/"+p.ID.String(), "", &got)
				if got.State != state || fmt.Sprint(got.Outdated) != outdated {
					t.Errorf("it is %s, and outdated are %v, want %s and %s", got.State, got.Outdated, state, outdated)
				}
			}
		}
		later := func() { time.Sleep(5 * time.Millisecond) } // stores keep milliseconds, and an order needs two of them
		check("succeeded", "[]")
		later()
		s.must("POST", "/plans/"+p.ID.String()+"/retry", `{"tasks": ["`+s.named(p, "a")+`"]}`, nil)
		check("running", "[]")
		w.run(1)
		check("succeeded", "[sum]")
		later()
		s.must("POST", "/plans/"+p.ID.String()+"/retry", `{"tasks": ["`+s.named(p, "sum")+`"], "downstream": true}`, nil)
		w.run(1)
		check("succeeded", "[]")
	})
}
