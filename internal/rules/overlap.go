package rules

import (
	"github.com/seed-1177d267/sluice/internal/refusal"
	"github.com/seed-1177d267/sluice/plan"
)

// CheckOverlap refuses to start a plan that says overlap: skip while another run of its name is
// submitted or runs: plan.ErrOverlap. To make a plan is to start it, and so is a retry that lets one
// run again that had ended. other is such a run; nil: there is none.
func CheckOverlap(p, other *plan.Plan) error {
	if p.Overlap != plan.OverlapSkip || other == nil {
		return nil
	}
	state, title := "has not ended", other.Title()
	if other.State == plan.PlanSubmitting {
		state = "is being submitted"
	}
	own := ""
	if other.Own {
		own = ", go on with it if its process is gone: sluice plan run --resume " + title
	}
	return refusal.New(plan.ErrOverlap, "%s %s, and the plan says overlap: skip; wait for it%s, or cancel it: sluice plan cancel %s", title, state, own, title)
}
