package hint

import (
	"fmt"
	"strconv"

	"github.com/seed-1177d267/sluice/plan"
)

func set(key Key, queue string, flag ...string) Hint {
	return Hint{key, append([]string{"queue", "set", queue}, flag...), queue}
}

// Full says why a queue lets none of its tasks start: it is paused, or runs as many as it may. The hint is none if that is not so. Nobody
// keeps how many threads a queue had that is paused, and a wrong number makes it serial for others too.
func Full(q *plan.Queue) (why string, h Hint) {
	switch {
	case q.Unlimited || q.Threads > 0 && q.Active < q.Threads:
		return "", Hint{}
	case q.Threads <= 0:
		return fmt.Sprintf("queue %s is paused, its threads are 0: give it those that it had, a number or unlimited", q.Name), set(QueueThreads, q.Name, "--threads", "N")
	}
	return fmt.Sprintf("queue %s runs as many as it may, %d of %d threads", q.Name, q.Active, q.Threads), set(QueueThreads, q.Name, "--threads", strconv.Itoa(2*q.Threads))
}

// Paused says that a group lets no task of its queues start.
func Paused(g *plan.Group) (why string, h Hint) {
	return fmt.Sprintf("group %s is paused", g.Name), Hint{Key: GroupResume, Do: []string{"group", "set", g.Name, "--resume"}}
}

// Slower says that a queue runs fewer tasks at once than a plan would let it. The hint is none if that is not so. A plan never raises the
// limit of a queue that is there.
func Slower(q *plan.Queue, threads int) (why string, h Hint) {
	h = set(QueueThreads, q.Name, "--threads", strconv.Itoa(threads))
	switch {
	case q.Unlimited || q.Threads >= threads:
		return "", Hint{}
	case q.Threads <= 0:
		return fmt.Sprintf("queue %s is there already and is paused: no task of it runs before it is given threads, for all plans", q.Name), h
	}
	return fmt.Sprintf("queue %s is there already and runs %d at once, not %d; to raise that for all plans", q.Name, q.Threads, threads), h
}

// MoreEach lets each node run more tasks of a queue at once.
func MoreEach(q *plan.Queue) Hint {
	return set(QueueEach, q.Name, "--node-threads", strconv.Itoa(2*q.NodeThreads))
}

// MoreThreads raises the limit of a node, which is the given number of tasks now.
func MoreThreads(node plan.NodeName, limit int) Hint {
	return Hint{Key: NodeThreads, Do: []string{"node", "set", string(node), "--maxthreads", strconv.Itoa(max(1, 2*limit))}}
}

// Unpin lets other nodes serve a queue.
func Unpin(q *plan.Queue) Hint { return set(QueueUnpin, q.Name, "--pin=") }

// Unignore lets the nodes serve a queue that it ignores.
func Unignore(q *plan.Queue) Hint { return set(QueueUnignore, q.Name, "--ignore=") }

// Pinned starts the first of the nodes that a queue is pinned to.
func Pinned(q *plan.Queue) Hint {
	return Hint{Key: StartPinned, Do: []string{"worker", "--name", string(q.Pin[0])}}
}
