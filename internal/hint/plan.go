package hint

import (
	"fmt"
	"time"

	"github.com/seed-1177d267/sluice/internal/duration"
	"github.com/seed-1177d267/sluice/plan"
)

// Start brings a node for a task that no node can run. p is the plan of the task, zero if the task is of no plan.
func Start(t *plan.Task, p *plan.Plan) Hint {
	if t.Plan.IsZero() {
		return Hint{Key: StartNode, Do: []string{"worker"}}
	}
	return Resume(p)
}

// Resume continues a plan that no node runs.
func Resume(p *plan.Plan) Hint {
	return Hint{Key: ResumePlan, Do: []string{"plan", "run", "--resume", p.Title()}}
}

// Submission says how far a plan is that is being submitted, and makes it ready. Nobody can know whether the submitter lives. When the
// submitter last did something is what there is to go by.
func Submission(p *plan.Plan, now time.Time) (how string, h Hint) {
	h = Hint{Key: ReadyPlan, Do: []string{"plan", "ready", p.Title()}}
	if p.Size == 0 {
		return "it is still being submitted", h
	}
	if p.Own {
		h = Resume(p)
	}
	in := "all its tasks are in"
	if n := p.Counts.Stored(); n != p.Size {
		in = fmt.Sprintf("%d of its %d tasks are in", n, p.Size)
	}
	return fmt.Sprintf("%s, and it was last touched %s ago", in, duration.Text(now.Sub(p.Modified))), h
}

// Retry runs a task again that did not run to its end.
func Retry(t *plan.Task, p *plan.Plan) Hint {
	if t.Plan.IsZero() {
		return Hint{Key: RetryTask, Do: []string{"task", "retry", t.ID.String()}}
	}
	return Hint{Key: RetryTask, Do: []string{"plan", "retry", p.Title(), t.Key()}}
}

// Approve answers the question of a task.
func Approve(t *plan.Task, p *plan.Plan) Hint {
	if t.Plan.IsZero() {
		return Hint{Key: AnswerTask, Do: []string{"task", "approve", t.ID.String()}}
	}
	return Hint{Key: AnswerTask, Do: []string{"task", "approve", p.Title(), t.Key()}}
}

// Below runs a task again, with all tasks below it.
func Below(t *plan.Task, p *plan.Plan) Hint {
	return Hint{Key: RetryBelow, Do: append(Retry(t, p).Do, "--downstream")}
}

// Log shows what a task printed.
func Log(t *plan.Task, p *plan.Plan) Hint {
	if t.Plan.IsZero() {
		return Hint{Key: ReadLog, Do: []string{"task", "logs", t.ID.String()}}
	}
	return Hint{Key: ReadLog, Do: []string{"task", "logs", p.Title(), t.Key()}}
}
