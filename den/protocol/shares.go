package protocol

import "github.com/seed-1177d267/sluice/plan"

// Shares are what a node has started of those that take turns for its threads. A node keeps its
// Shares over all its turns, and the store counts in them. One turn uses them at a time. The zero
// value says that nothing has started.
type Shares struct {
	plans map[plan.QueueID]*PlanShares
	in    map[string]map[string]Share
}

// PlanShares are the plans that take turns in one queue, as far as the node knows.
type PlanShares struct {
	Of     map[plan.PlanID]Share // the zero PlanID: tasks of no plan
	Looked plan.PlanID           // the store looked for plans with work up to this one; zero: it begins anew
	Claims int                   // from the queue, by a store that does not look with each
}

// A Share is what a node has started of one candidate.
type Share struct {
	Weight int     // of it, at least 1
	Passed float64 // starts divided by the weight
	Away   bool    // it has no work
}

// WithWork returns the queues of which plans are known to have work.
func (s *Shares) WithWork() (queues []plan.QueueID) {
	for q, known := range s.plans {
		for _, share := range known.Of {
			if !share.Away {
				queues = append(queues, q)
				break
			}
		}
	}
	return queues
}

// In returns what takes turns in a group, or on the node, by keys of package rules. s may be nil, as
// for Plans.
func (s *Shares) In(group string) map[string]Share {
	if s == nil {
		return map[string]Share{}
	}
	if s.in == nil {
		s.in = map[string]map[string]Share{}
	}
	if s.in[group] == nil {
		s.in[group] = map[string]Share{}
	}
	return s.in[group]
}

// Plans returns the plans that have work in the queue. s may be nil: then nothing is known, or kept.
func (s *Shares) Plans(q plan.QueueID) *PlanShares {
	var known *PlanShares
	if s != nil {
		known = s.plans[q]
	}
	if known == nil {
		known = &PlanShares{Of: map[plan.PlanID]Share{}}
		if s != nil {
			if s.plans == nil {
				s.plans = map[plan.QueueID]*PlanShares{}
			}
			s.plans[q] = known
		}
	}
	return known
}
