package model

import "github.com/seed-1177d267/sluice/plan"

// Left counts what is kept of work that is to be done, and what belongs to nothing that is there.
func (s *Store) Left() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := map[string]int{
		"tasks that are due": len(s.due) + len(s.ending), "delays": len(s.delays), "submissions": len(s.submitting),
		"claims": 0, "lanes": 0, "items": 0, "lists": 0, "tasks of plans": 0,
	}
	for _, i := range s.instances {
		left["claims"] += len(i.tasks)
	}
	for _, q := range s.queues {
		left["lanes"] += len(q.lanes)
	}
	for _, t := range s.tasks {
		if t.making != nil {
			left["lists"]++
		}
		if t.of != nil && t.of.gone {
			left["items"]++
		}
		if t.plan != nil && t.plan.gone && t.plan.State != plan.PlanAbandoned {
			left["tasks of plans"]++
		}
	}
	return left
}
