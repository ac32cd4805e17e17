package rules

import "github.com/seed-1177d267/sluice/plan"

// StrayEnd says what ends that a task is claimed or running for an instance that is not registered, or that work is noted for one: see
// Registered. Alive says whether a node is there that sweeps.
func StrayEnd(alive bool) string {
	if alive {
		return "a sweep of any node takes it back"
	}
	return "no node is there to take it back"
}

// Strays returns those of the tasks that are claimed or running for an instance that is not registered.
func (r Registered) Strays(tasks []plan.Task) (strays []*plan.Task) {
	for i := range tasks {
		if t := &tasks[i]; t.Status.Active() && r.Gone(t.Instance) {
			strays = append(strays, t)
		}
	}
	return strays
}
