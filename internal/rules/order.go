package rules

import (
	"bytes"
	"cmp"

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
