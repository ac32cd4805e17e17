package rules

import (
	"fmt"

	"github.com/seed-1177d267/sluice/internal/refusal"
	"github.com/seed-1177d267/sluice/plan"
)

// MaxPack is how many bytes a job pack has at most.
const MaxPack = 256 << 20

// CheckPack refuses a job pack of so many bytes that is not to be kept beside a plan. It is put before
// the tasks of the plan, so that no task runs without it.
func CheckPack(p *plan.Plan, size int64) error {
	switch {
	case size > MaxPack:
		return refusal.New(plan.ErrTooLarge, "the job pack of %s has %d bytes, and at most %d MiB are kept: let workers fetch large data by URLs", p.Title(), size, MaxPack>>20)
	case p.State.Ended() || p.Closing != plan.Open:
		return fmt.Errorf("plan %s: %w", p.Title(), plan.ErrPlanEnded)
	case p.State != plan.PlanSubmitting:
		return refusal.New(plan.ErrConflict, "%s runs, and a job pack is put before the tasks of its plan; submit it as another plan", p.Title())
	}
	return nil
}

// JobQueue names the queue of a plan's own, which limits how many of its tasks run at once. A store
// deletes it with the plan.
func JobQueue(p plan.PlanID) string { return "job-" + p.String() }
