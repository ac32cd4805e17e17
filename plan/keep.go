package plan

import "time"

// A Keep says how long the finished tasks of a queue that are of no plan stay in the store after their end, by their status. Tasks of
// plans go with their plans. A field counts as Plan.Keep does: 0 is as long as the store's default says, and less than 0 is for ever.
type Keep struct {
	Succeeded  time.Duration `json:"succeeded,omitempty"`
	Failed     time.Duration `json:"failed,omitempty"` // with every code above 1
	Terminated time.Duration `json:"terminated,omitempty"`
	Cancelled  time.Duration `json:"cancelled,omitempty"` // and skipped
	Orphaned   time.Duration `json:"orphaned,omitempty"`
}

// KeptStatuses are the statuses that a Keep tells apart.
var KeptStatuses = []Status{Succeeded, Failed, Terminated, Cancelled, Orphaned}

// Of returns the field for one of KeptStatuses, or for a code above 1; nil for another status.
func (k *Keep) Of(s Status) *time.Duration {
	switch min(s, Failed) {
	case Succeeded:
		return &k.Succeeded
	case Failed:
		return &k.Failed
	case Terminated:
		return &k.Terminated
	case Cancelled:
		return &k.Cancelled
	case Orphaned:
		return &k.Orphaned
	}
	return nil
}

// Expired is the number of deleted objects whose time to keep was over.
type Expired struct {
	Plans int  // with all their tasks
	Tasks int  // of no plan
	More  bool // more is to be deleted now
}
