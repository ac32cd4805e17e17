package mongodb

import (
	"bytes"
	"cmp"
	"sort"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/plan"
)

// queueDoc is a queue. Threads are null if the queue has no limit: Disbatch's own nodes leave such
// a queue alone. Its settings of nodes are fields of DEN 1.1, which the nodes of Disbatch 4 do not
// read.
type queueDoc struct {
	ID          bson.ObjectID  `bson:"_id"`
	Name        word           `bson:"name"`
	Plugin      word           `bson:"plugin"`
	Threads     count          `bson:"threads"`
	Sort        plan.QueueSort `bson:"sort,omitempty"`
	Unlimited   bool           `bson:"unlimited,omitempty"`
	Pin         nodeNames      `bson:"nodes_pin,omitempty"`
	Ignore      nodeNames      `bson:"nodes_ignore,omitempty"`
	NodeThreads count          `bson:"maxthreads,omitempty"`
	Settings    word           `bson:"settings,omitempty"` // a plan.QueueSettings as JSON; no other program reads it
	Spent       time.Time      `bson:"spent,omitempty"`    // how far the rate is used up: see rules.RateRoom
}

func (q *queueDoc) domain() plan.Queue {
	out := plan.Queue{
		ID: plan.QueueID{ID: plan.ID(q.ID)}, Name: string(q.Name), Plugin: string(q.Plugin), Threads: q.Threads.n, Unlimited: q.Unlimited, Sort: q.Sort,
		Pin: q.Pin, Ignore: q.Ignore, NodeThreads: max(q.NodeThreads.n, 0), QueueSettings: plan.QueueSettingsOf(string(q.Settings)), Spent: utc(q.Spent),
	}
	if out.Sort != plan.SortFIFO && out.Sort != plan.SortLIFO { // Disbatch calls it "default"
		out.Sort = plan.SortDefault
	}
	return out
}

// limits are the fields of a queue that a person changes, and those of them that it does not have.
func limits(q plan.Queue) (set, unset bson.D) {
	threads := any(q.Threads)
	if q.Unlimited {
		threads = nil
	}
	set = d("threads", threads, "unlimited", q.Unlimited, "sort", q.Sort)
	for _, f := range []struct {
		name  string
		value any
		there bool
	}{
		{"nodes_pin", q.Pin, len(q.Pin) > 0}, {"nodes_ignore", q.Ignore, len(q.Ignore) > 0}, {"maxthreads", q.NodeThreads, q.NodeThreads > 0},
		{"settings", q.Text(), q.Text() != ""},
	} {
		if f.there {
			set = append(set, bson.E{Key: f.name, Value: f.value})
		} else {
			unset = append(unset, bson.E{Key: f.name, Value: 1})
		}
	}
	return set, unset
}

// ranked reports whether the queue's tasks are claimed by their rank.
func (q *queueDoc) ranked() bool { return q.Sort != plan.SortFIFO && q.Sort != plan.SortLIFO }

// sort is the order in which the queue's tasks are claimed, as the server is asked for it; order is the same.
func (q *queueDoc) sort() bson.D {
	switch q.Sort {
	case plan.SortFIFO:
		return d("_id", 1)
	case plan.SortLIFO:
		return d("_id", -1)
	}
	return d("rank", -1, "_id", 1)
}

// before reports whether the queue's task a is claimed before b.
func (q *queueDoc) before(a, b *taskDoc) bool {
	oldest := bytes.Compare(a.ID[:], b.ID[:])
	switch {
	case q.Sort == plan.SortLIFO:
		return oldest > 0
	case q.Sort == plan.SortFIFO:
		return oldest < 0
	}
	return cmp.Or(cmp.Compare(b.Rank, a.Rank), oldest) < 0
}

// order puts tasks of the queue in the order in which they are claimed.
func (q *queueDoc) order(docs []taskDoc) {
	sort.Slice(docs, func(a, b int) bool { return q.before(&docs[a], &docs[b]) })
}

// A queueCount is how many tasks of a queue have a status, as an aggregation counts them.
type queueCount struct {
	Key struct {
		Queue  bson.ObjectID `bson:"queue"`
		Status plan.Status   `bson:"status"`
	} `bson:"_id"`
	N int `bson:"n"`
}

// nodeDoc is what Sluice reads of a node.
type nodeDoc struct {
	Name       plan.NodeName `bson:"node"`
	MaxThreads count         `bson:"maxthreads"`
}

func (n *nodeDoc) limit() count {
	if n.MaxThreads.n < 0 {
		return count{}
	}
	return n.MaxThreads
}

// queuedOf matches the queued tasks of a plan, or of all if it is none.
func queuedOf(p plan.PlanID) bson.D {
	if p.IsZero() {
		return onlyQueued(nil)
	}
	return onlyQueued(d("plan", oid(p.ID)))
}

// grouped reports whether the queue may be in a group.
func (q *queueDoc) grouped() bool { return strings.Contains(string(q.Settings), `"group"`) }

// A groupDoc is a group of queues.
type groupDoc struct {
	Name    string        `bson:"_id"`
	Doc     string        `bson:"doc"` // a plan.Group as JSON, but for the two instants
	Changed time.Time     `bson:"changed"`
	Spent   time.Time     `bson:"spent,omitempty"`   // how far the rate is used up: see rules.RateRoom
	Leaving bson.ObjectID `bson:"leaving,omitempty"` // the deletion that is at it, unless somebody has put something in since
}

func (g *groupDoc) domain() plan.Group {
	out := plan.GroupOf(g.Name, g.Doc)
	out.Changed, out.Spent = utc(g.Changed), utc(g.Spent)
	return out
}
