package mongodb

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/plan"
)

// goneFor is how long an instance is remembered that is gone: a call of Register that is made again may come so late.
const goneFor = 10 * time.Minute

// instanceDoc is a process that claims tasks. The document of a dead one stays a while, so that the
// process does not register again.
type instanceDoc struct {
	ID      bson.ObjectID `bson:"_id"`
	Node    plan.NodeName `bson:"node"`
	Host    string        `bson:"host"`
	PID     int           `bson:"pid"`
	Process string        `bson:"process,omitempty"` // the process's identity
	Lease   time.Duration `bson:"lease"`
	Threads int           `bson:"threads"`
	Plugins []string      `bson:"plugins"`
	Active  queueIDs      `bson:"activequeues,omitempty"`
	Ignored queueIDs      `bson:"ignorequeues,omitempty"`
	Plan    bson.ObjectID `bson:"plan,omitempty"`
	Version string        `bson:"version,omitempty"`
	Sole    bool          `bson:"sole,omitempty"` // see ownerDoc
	Runner  bool          `bson:"runner,omitempty"`
	Beats   int64         `bson:"beats"`
	Beat    time.Time     `bson:"beat"`
	Gone    bool          `bson:"gone,omitempty"`
}

// queueIDs are the ids of queues that a person named.
type queueIDs []bson.ObjectID

func idsOf(queues []plan.QueueID) queueIDs {
	return idsFrom(queues, func(q plan.QueueID) bson.ObjectID { return oid(q.ID) })
}

func (ids queueIDs) domain() (queues []plan.QueueID) {
	for _, id := range ids {
		queues = append(queues, plan.QueueID{ID: plan.ID(id)})
	}
	return queues
}

// An ownerDoc, in meta, says which instance has something for its own, a node's name or the role of who balances: as long as that instance
// is registered. Names are kept by it and by no unique index over the instances, since servers on PostgreSQL see only after a second that two
// who insert one key wait for each other.
type ownerDoc struct {
	Owner bson.ObjectID `bson:"owner"`
}

func nameKey(n plan.NodeName) string { return "node:" + string(n) }

// claimsOf matches what an instance has claimed: by the node's name first, which Disbatch's indexes begin with.
func claimsOf(i *instanceDoc) bson.D {
	return d("node", i.Node, "status", d("$in", activeStatuses), "instance", i.ID)
}
