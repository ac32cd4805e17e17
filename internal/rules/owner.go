package rules

import "github.com/seed-1177d267/sluice/plan"

// Registered says which instances are registered. A store reads it after it has read what they own: an instance registers before it owns
// anything, and its id never comes back.
type Registered map[plan.InstanceID]bool

// Gone reports whether an owner is not registered any more. Its notes are then anybody's, even
// those that arrive after its rescue: the first taker gets them. Its claims are lost, as rules.Lost
// says. A note without an owner is anybody's already. A claim without an owner is another
// program's. So neither owner is gone.
func (r Registered) Gone(owner plan.InstanceID) bool { return !owner.IsZero() && !r[owner] }

// Lost reports whether a claim is lost at a sweep, even if nobody rescued its owner. others says
// that other programs write to the store. Their claims have no owner. Without such programs, a
// claim without an owner is lost too.
func (r Registered) Lost(owner plan.InstanceID, others bool) bool {
	return r.Gone(owner) || owner.IsZero() && !others
}
