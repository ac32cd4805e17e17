package v1_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/polltest"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// questioned submits a plan with a question, which waits so long, and has a node ask it. body approves.
func questioned(s *site, timeout string) (task, body string) {
	s.Helper()
	var made struct{ Plan struct{ ID plan.PlanID } }
	s.must("POST", "/plans", `{"plan":"release","tasks":{"ask":{"approve":"Switch?","timeout":"`+timeout+`"},"switch":{"needs":"ask","run":"true"}}}`, &made)
	me := plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: "asker", Plugins: []string{plan.ApprovalPlugin}, Lease: time.Minute, Threads: 1}
	if err := s.st.Register(s.Context(), me); err != nil {
		s.Fatal(err)
	}
	did, err := s.st.Turn(s.Context(), protocol.Turn{Instance: me.ID, Plugins: me.Plugins, Slots: 1, Start: true})
	if err != nil || len(did.Claimed) != 1 {
		s.Fatalf("claimed %v, %v", did.Claimed, err)
	}
	if _, err := s.st.Turn(s.Context(), protocol.Turn{Instance: me.ID, Ended: []protocol.Ending{rules.AskApproval(&did.Claimed[0])}}); err != nil {
		s.Fatal(err)
	}
	if err := s.st.Leave(s.Context(), me.ID); err != nil {
		s.Fatal(err)
	}
	found, err := s.st.Tasks(s.Context(), store.TaskQuery{IDs: []plan.TaskID{did.Claimed[0].Task}})
	if err != nil || len(found) != 1 || !found[0].AwaitsAnswer() {
		s.Fatalf("%+v, %v", found, err)
	}
	return found[0].ID.String(), fmt.Sprintf(`{"approve": true, "note": "fine", "asked": %q}`, found[0].Started.Format(time.RFC3339Nano))
}

func TestTheFirstAnswerCounts(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		task, body := questioned(s, "1h")
		if _, text := s.ask("GET", "/approvals", ""); !strings.Contains(text, task) {
			t.Errorf("the open questions: %s", text)
		}
		if status, text := s.ask("POST", "/tasks/"+task+"/approval", strings.Replace(body, "fine", strings.Repeat("x", 1001), 1)); status != 422 {
			t.Errorf("a long note: %d %s", status, text)
		}
		if status, text := s.ask("POST", "/tasks/"+task+"/approval", body); status != 204 {
			t.Errorf("%d %s", status, text)
		}
		status, text := s.ask("POST", "/tasks/"+task+"/approval", strings.Replace(body, "true", "false", 1))
		if status != 409 || !strings.Contains(text, "was answered already: approved: fine") {
			t.Errorf("a second answer: %d %s", status, text)
		}
	})
}

func TestAQuestionWhoseTimeIsOverIsNotOffered(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		task, body := questioned(s, "50ms")
		polltest.Until(t, time.Minute, "the time is over", func() bool {
			_, text := s.ask("GET", "/approvals", "")
			return !strings.Contains(text, task)
		})
		if status, text := s.ask("POST", "/tasks/"+task+"/approval", body); status != 409 || !strings.Contains(text, "that is over") {
			t.Errorf("%d %s", status, text)
		}
	})
}
