package protocol_test

import (
	"slices"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
)

func TestQueuesWithWork(t *testing.T) {
	now := time.Now()
	busy, idle, unknown := plan.QueueID{ID: plan.NewID(now)}, plan.QueueID{ID: plan.NewID(now)}, plan.QueueID{ID: plan.NewID(now)}
	var shares protocol.Shares
	shares.Plans(busy).Of[plan.PlanID{ID: plan.NewID(now)}] = protocol.Share{Weight: 1}
	shares.Plans(idle).Of[plan.PlanID{ID: plan.NewID(now)}] = protocol.Share{Weight: 1, Away: true}
	shares.Plans(unknown)
	if got := shares.WithWork(); !slices.Equal(got, []plan.QueueID{busy}) {
		t.Errorf("got %v, want only %v", got, busy)
	}
}
