package rules

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
)

// ClaimOrder says which of two tasks of a plan is claimed first in a queue: a, if the result is below
// 0. In a queue in order of age they may be of two plans.
func ClaimOrder(s plan.QueueSort, a, b *plan.Task) int {
	age := bytes.Compare(a.ID.ID[:], b.ID.ID[:])
	switch s {
	case plan.SortLIFO:
		return -age
	case plan.SortFIFO:
		return age
	}
	return cmp.Or(cmp.Compare(b.Rank, a.Rank), age)
}

// StartOrder puts the tasks of a claim in the order in which its node starts them. Queues take turns
// in proportion to their tasks in the claim. The tasks of a queue keep their order. If queues came one
// after the other instead, the node would mostly make its next turn while tasks of the last queue still
// run. That queue would then have its part of the threads too early: see Sharing.
func StartOrder(claimed []protocol.ClaimedTask) {
	if !slices.ContainsFunc(claimed, func(c protocol.ClaimedTask) bool { return c.Queue != claimed[0].Queue }) {
		return
	}
	of, nth := map[plan.QueueID]float64{}, make(map[plan.TaskID]float64, len(claimed))
	for i := range claimed {
		q := claimed[i].Queue
		nth[claimed[i].Task] = of[q] + 0.5
		of[q]++
	}
	slices.SortStableFunc(claimed, func(a, b protocol.ClaimedTask) int {
		return cmp.Compare(nth[a.Task]/of[a.Queue], nth[b.Task]/of[b.Queue])
	})
}
