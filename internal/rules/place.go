package rules

import (
	"bytes"
	"cmp"

	"github.com/seed-1177d267/sluice/plan"
)

// A Place is the position that people see for a task among those of its plan. Tasks stand by id,
// which is the order of the plan's file. The items of a foreach task follow it, by index. The ids
// of items lie anywhere among the others.
type Place struct {
	id    plan.TaskID
	index int // -1: no item
}

// PlaceOf returns where the task is.
func PlaceOf(t *plan.Task) Place {
	if t.Of.IsZero() {
		return Place{t.ID, -1}
	}
	return Place{t.Of, t.Index}
}

// Compare returns less than 0 where p comes before q, and more where it comes after it.
func (p Place) Compare(q Place) int {
	return cmp.Or(bytes.Compare(p.id.ID[:], q.id.ID[:]), cmp.Compare(p.index, q.index))
}
