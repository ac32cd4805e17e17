package plan

import "time"

// A Keep says how long the finished tasks of a queue stay in the store after their end, by their
// status. It is about tasks of no plan. Tasks of plans go with their plans. A field counts as
// Plan.Keep does: 0 is as long as the store's default says, and less than 0 is for ever.
type Keep struct {
	Succeeded  time.Duration `json:"succeeded,omitempty"`
	Failed     time.Duration `json:"failed,omitempty"` // with every code above 1
	Terminated time.Duration `json:"terminated,omitempty"`
	Cancelled  time.Duration `json:"cancelled,omitempty"` // and skipped
	Orphaned   time.Duration `json:"orphaned,omitempty"`
}
