package telemetry

import (
	"time"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/den/protocol"
)

// All is several observers as one.
type All []den.Observer

// Claimed implements den.Observer, as do the following.
func (a All) Claimed(t *protocol.ClaimedTask) {
	for _, o := range a {
		o.Claimed(t)
	}
}

// Ended tells each.
func (a All) Ended(t *protocol.ClaimedTask, e *protocol.Ending, ran time.Duration) {
	for _, o := range a {
		o.Ended(t, e, ran)
	}
}

// Lost tells each.
func (a All) Lost(t *protocol.ClaimedTask) {
	for _, o := range a {
		o.Lost(t)
	}
}

// PlanEnded tells each.
func (a All) PlanEnded(p protocol.EndedPlan) {
	for _, o := range a {
		o.PlanEnded(p)
	}
}

// Asked tells each.
func (a All) Asked(call string, took time.Duration, err error) {
	for _, o := range a {
		o.Asked(call, took, err)
	}
}
