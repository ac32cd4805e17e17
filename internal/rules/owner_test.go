package rules

import (
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

func TestRegistered(t *testing.T) {
	there, left := plan.InstanceID{ID: plan.NewID(time.Now())}, plan.InstanceID{ID: plan.NewID(time.Now())}
	r := Registered{there: true}
	for _, c := range []struct {
		name  string
		owner plan.InstanceID
		gone  bool
		lost  [2]bool // a claim of it, where others write, and where none do
	}{
		{"an instance that is registered has what it owns", there, false, [2]bool{}},
		{"an instance that is not registered is gone", left, true, [2]bool{true, true}},
		{"what has no owner has lost none", plan.InstanceID{}, false, [2]bool{false, true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := r.Gone(c.owner); got != c.gone {
				t.Errorf("the owner is gone: %v, want %v", got, c.gone)
			}
			if got := [2]bool{r.Lost(c.owner, true), r.Lost(c.owner, false)}; got != c.lost {
				t.Errorf("its claims are lost: %v, want %v", got, c.lost)
			}
		})
	}
}
