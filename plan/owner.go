package plan

// Registered says which instances are registered. A store reads it after it has read what they own: an instance registers before it owns
// anything, and its id never comes back.
type Registered map[InstanceID]bool

// Gone reports whether an owner is not registered any more, so that what it owns is anybody's: at any time, also what was written after it
// was rescued or had left. A note that is anybody's is taken up by whoever comes first, and a claim is lost, as rules.Lost says. A note of no owner
// is anybody's already, and a claim of none is another program's: neither owner is gone.
func (r Registered) Gone(owner InstanceID) bool { return !owner.IsZero() && !r[owner] }

// Lost reports whether a claim is lost at a sweep, whoever rescued its owner: others says that other programs write to the store, whose claims
// have no owner that registers. Where none do, a claim of no owner is as lost as one of an owner that is gone.
func (r Registered) Lost(owner InstanceID, others bool) bool {
	return r.Gone(owner) || owner.IsZero() && !others
}
