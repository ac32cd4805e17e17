package sqlite

import (
	"fmt"
	"testing"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

func TestStatementsKnowStatusesAsTheRulesDo(t *testing.T) {
	s := openTest(t, Options{})
	for status := plan.Orphaned; status <= 3; status++ {
		for attempt := range 3 {
			for cancel, wanted := range []bool{false, true} {
				row := fmt.Sprintf("FROM (SELECT %d AS status, %d AS attempt, %d AS gate) AS t, (SELECT %[1]d AS status, %[4]d AS cancel) AS o",
					status, attempt, forPlan, cancel)
				for term, want := range map[string]bool{
					"t." + isReady:      rules.Claimable(status),
					"t." + isMine:       status.Active(),
					"t." + isHeld:       (&taskRow{status: status}).held(),
					"t." + isUnfinished: !status.Finished(),
					"t." + isReporting:  rules.Reports(status),
					isTroubled:          rules.Troubled(status, attempt),
					keptStatus + fmt.Sprintf(" = %d", rules.KeptAs(0, status).Status): true,
					fmt.Sprintf("t.status = %s", firstStatus):                         status == rules.FirstStatus,
				} {
					if got := s.number("SELECT ("+term+") "+row) != 0; got != want {
						t.Errorf("%v, attempt %d, cancel %v: %s is %v", status, attempt, wanted, term, got)
					}
				}
			}
		}
		for _, of := range [][]plan.Status{{plan.Failed}, {plan.Queued}, {plan.Running, plan.Claimed}, {plan.Held, plan.Failed}, {3}, {plan.Succeeded, plan.Cancelled}} {
			term, _ := statusTerm(of)
			if got := s.number(fmt.Sprintf("SELECT (%s) FROM (SELECT %d AS status) AS t", term, status)) != 0; got != rules.Selected(status, of) {
				t.Errorf("%v among %v: %s is %v", status, of, term, got)
			}
		}
	}
}
