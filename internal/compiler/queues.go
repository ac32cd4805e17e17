package compiler

import "github.com/seed-1177d267/sluice/plan"

func pluginOf(t *plan.TaskSpec) string {
	switch {
	case t.Approve != nil:
		return plan.ApprovalPlugin
	case t.Plugin == "":
		return plan.DefaultPlugin
	}
	return t.Plugin
}

func queueOf(t *plan.TaskSpec) string {
	if t.Queue == "" || t.Approve != nil {
		return pluginOf(t)
	}
	return t.Queue
}

// A QueueNeed names a queue that a plan's tasks go to, and the plugin that it must have.
type QueueNeed struct {
	Name    string
	Plugin  string
	Make    bool // when it is missing: it is named as its plugin by default, or the plan limits it
	Threads int  // what its limit may be at most, and is if it is made; 0: any, and unlimited
}

// needsOf returns what says which queue a task goes to.
func needsOf(s *plan.Spec) func(*plan.TaskSpec) QueueNeed {
	threads := make(map[string]int, len(s.Limits))
	for _, l := range s.Limits {
		threads[l.Queue] = l.Threads
	}
	return func(t *plan.TaskSpec) QueueNeed {
		n := QueueNeed{Name: queueOf(t), Plugin: pluginOf(t)}
		n.Threads = threads[n.Name]
		n.Make = n.Name == n.Plugin || n.Threads > 0
		return n
	}
}

// Queues returns the queues that the plan's tasks go to, in the order of their first task.
func Queues(s *plan.Spec) []QueueNeed {
	var needs []QueueNeed
	need, seen := needsOf(s), map[QueueNeed]bool{}
	for i := range s.Tasks {
		n := need(&s.Tasks[i])
		if !seen[n] {
			seen[n] = true
			needs = append(needs, n)
		}
	}
	return needs
}
