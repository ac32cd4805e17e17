package rules

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

// A RollKind is a kind of finished tasks of no plan that nodes hand over before they are deleted.
type RollKind string

// The kinds that have a receiver of their own.
const (
	RollSuccess    RollKind = "success"
	RollDeadLetter RollKind = "dead-letter"
)

// RollKinds are all of them.
var RollKinds = []RollKind{RollSuccess, RollDeadLetter}

// RollKindOf returns the kind of the finished tasks with a status. Tasks that ended as cancelled are of
// none (""): nothing of them ran.
func RollKindOf(s plan.Status) RollKind {
	switch min(s, plan.Failed) {
	case plan.Succeeded:
		return RollSuccess
	case plan.Failed, plan.Terminated, plan.Orphaned:
		return RollDeadLetter
	}
	return ""
}

// ReceiverOf returns the URI to which tasks of a kind are handed over that are in queues of the group;
// "": to none. The URIs of its parent do not count for it.
func ReceiverOf(groups []plan.Group, group string, kind RollKind) string {
	g := groupNamed(groups, group)
	switch {
	case g == nil:
		return ""
	case kind == RollSuccess:
		return g.SuccessURI
	case kind == RollDeadLetter:
		return g.DeadLetterURI
	}
	return ""
}

// A Roll is the tasks of a queue that are handed over: those whose limits are over.
type Roll struct {
	Queue  *plan.Queue
	Kind   RollKind
	URI    string
	Limits map[plan.Status]time.Duration // how long tasks are kept that ended so
}

// Rolls returns what is handed over, by the names of the groups and queues. Only the queue itself says
// how long its tasks are kept: without a limit they stay, whatever the default of the store is.
func Rolls(groups []plan.Group, queues []plan.Queue) (rolls []Roll) {
	for i := range queues {
		q := &queues[i]
		for _, kind := range RollKinds {
			r := Roll{Queue: q, Kind: kind, URI: ReceiverOf(groups, q.Group, kind), Limits: map[plan.Status]time.Duration{}}
			for _, s := range KeptStatuses {
				if keep := time.Duration(*KeepOf(&q.Keep, s)); keep > 0 && RollKindOf(s) == kind {
					r.Limits[s] = keep
				}
			}
			if r.URI != "" && len(r.Limits) > 0 {
				rolls = append(rolls, r)
			}
		}
	}
	slices.SortStableFunc(rolls, func(a, b Roll) int {
		return cmp.Or(cmp.Compare(a.Queue.Group, b.Queue.Group), cmp.Compare(a.Queue.Name, b.Queue.Name))
	})
	return rolls
}

// How much a batch has at most.
const (
	MostRolled      = 1000    // tasks,
	MostRolledBytes = 8 << 20 // and bytes, unless one task alone has more
)

// RollFits reports whether a batch of so many tasks and bytes takes another task of so many bytes.
func RollFits(tasks, bytes, more int) bool {
	return tasks == 0 || tasks < MostRolled && bytes+more <= MostRolledBytes
}

// RollPause returns how long a receiver is left alone that has now failed so many times in a row, and
// asked for so long. It is an hour at most.
func RollPause(failures int, asked time.Duration) time.Duration {
	return min(time.Hour, max(asked, 10*time.Second<<min(failures-1, 10)))
}
