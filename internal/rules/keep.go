package rules

import (
	"fmt"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

// KeptStatuses are the statuses that a Keep tells apart.
var KeptStatuses = []plan.Status{plan.Succeeded, plan.Failed, plan.Terminated, plan.Cancelled, plan.Orphaned}

// KeepOf returns the field for one of KeptStatuses, or for a code above 1; nil for another status.
func KeepOf(k *plan.Keep, s plan.Status) *plan.Duration {
	switch min(s, plan.Failed) {
	case plan.Succeeded:
		return &k.Succeeded
	case plan.Failed:
		return &k.Failed
	case plan.Terminated:
		return &k.Terminated
	case plan.Cancelled:
		return &k.Cancelled
	case plan.Orphaned:
		return &k.Orphaned
	}
	return nil
}

// CheckKeep returns why a keep that was as was cannot be set to k. key is the key of the keep.
func CheckKeep(key string, was, k plan.Keep) error {
	for _, s := range KeptStatuses {
		if err := CheckAge(fmt.Sprintf("%s.%s", key, s), time.Duration(*KeepOf(&was, s)), time.Duration(*KeepOf(&k, s))); err != nil {
			return err
		}
	}
	return nil
}

// ForEver is how the age is written of things that are always kept. Programs may store any other negative age
// for the same.
const ForEver time.Duration = -1

// CheckAge returns why an age for which things are kept, and which was as was, cannot be set to age. A person who
// writes -1d would keep them for ever, and hardly means that.
func CheckAge(key string, was, age time.Duration) error {
	if age >= ForEver || age == was {
		return nil
	}
	return fmt.Errorf("%s is %s; it is an age, as in 30d, 2w or 12h, or %s for ever, or 0s for the store's default", key, age, ForEver)
}
