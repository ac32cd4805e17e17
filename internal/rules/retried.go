package rules

import (
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

// Retried is a task that a retry takes back to held, in the state that the caller saw.
type Retried struct {
	ID     plan.TaskID
	Status plan.Status
	Ran    bool // the task keeps, or gets, its Ran: what it did may still have to be undone
	Anew   bool // a foreach task whose items are made again, even if none of its parents runs again
}

// AbandonAfter is the time after its last touch when a submission is abandoned.
const AbandonAfter = time.Hour
