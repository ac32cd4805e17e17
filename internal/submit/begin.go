package submit

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/plan"
)

// CheckBegin returns plan.Problems for a spec that Begin refuses. The spec may have no tasks.
func CheckBegin(spec *plan.Spec) error {
	head := *spec
	head.Limits, head.Tasks = nil, []plan.TaskSpec{{Name: "task"}} // a plan without tasks is not valid
	return compiler.Validate(&head)
}

// Begin puts a plan without tasks into the store. Add adds the tasks of the spec and others, and the
// store's Ready makes the plan run. Begin returns plan.Problems for a spec that is not valid.
func Begin(ctx context.Context, s Store, spec *plan.Spec) (plan.Plan, error) {
	if err := CheckBegin(spec); err != nil {
		return plan.Plan{}, err
	}
	head := *spec
	head.Tasks, head.Limits = nil, nil
	p, _, err := compiler.Compile(&head, time.Now(), nil)
	if err != nil {
		return plan.Plan{}, err
	}
	if p, err = s.CreatePlan(ctx, p); err != nil {
		return p, fmt.Errorf("begin plan %q: %w", spec.Name, err)
	}
	return p, nil
}
