package mongodb

import (
	"crypto/sha256"
	"encoding/hex"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// Names of the indexes on tasks that queries name, so that the server's planner cannot take a worse one.
const (
	indexReady    = "sluice_ready"
	indexPlan     = "sluice_plan"
	indexOpen     = "sluice_open"
	indexList     = "sluice_list"
	indexName     = "sluice_name"
	indexNeeds    = "sluice_needs"
	indexNeeded   = "sluice_needed"
	indexLate     = "sluice_late"
	indexAdding   = "sluice_adding"
	indexDue      = "sluice_due"
	indexEnded    = "sluice_ended"
	indexStopped  = "sluice_stopped"
	indexMaking   = "sluice_making"
	indexClaims   = "sluice_claims"
	indexApart    = "sluice_apart"
	indexGate     = "sluice_gate"
	indexMtime    = "sluice_mtime"
	indexDeleting = "sluice_deleting"
	indexMissing  = "sluice_missing"
)

// The same of the indexes on plans.
const (
	plansState     = "state"
	plansClosing   = "closing"
	plansFresh     = "fresh"
	plansAbandoned = "abandoned"
)

// d makes a document of keys and values in turn.
func d(pairs ...any) bson.D { return wire.D(pairs...) }

func index(keys bson.D, o *options.IndexOptionsBuilder) mongo.IndexModel {
	if o == nil {
		o = options.Index()
	}
	return mongo.IndexModel{Keys: keys, Options: o}
}

// named is a partial index: only documents that match are in it.
func named(name string, partial bson.D) *options.IndexOptionsBuilder {
	return options.Index().SetName(name).SetPartialFilterExpression(partial)
}

// taskIndexes are Disbatch 4's, under the names that its programs give them, and those that Sluice needs. Each of ours is partial, so
// that a write pays for it only while the task is what the index is for.
func taskIndexes() []mongo.IndexModel {
	exists := d("$exists", true)
	return []mongo.IndexModel{
		index(d("node", 1, "status", 1, "queue", 1), nil),
		index(d("node", 1, "status", 1, "queue", 1, "_id", 1), nil),
		index(d("node", 1, "status", 1, "queue", 1, "_id", -1), nil),
		index(d("queue", 1, "status", 1), nil),
		// Tasks for claims, in their order.
		index(d("queue", 1, "rank", -1, "_id", 1), named(indexReady, d("status", plan.Queued))),
		// The same within one plan; also what a cancelled plan still has, and how the tasks of a plan ended.
		index(d("plan", 1, "status", 1, "queue", 1, "rank", -1, "_id", 1), named(indexPlan, d("plan", exists))),
		// Whether anything of a plan is unfinished. Its key does not change with a status: a scan meets each such task, whatever it does
		// meanwhile. The id is there for servers to which many tasks of one key are dear.
		index(d("plan", 1, "_id", 1), named(indexOpen, d("plan", exists, "open", true))),
		index(d("plan", 1, "_id", 1), named(indexList, d("plan", exists))),
		index(d("plan", 1, "name", 1), named(indexName, d("plan", exists, "name", exists))),
		// Names are there once in a plan. Tasks are held when they are inserted, and only then: an index that every later write of a
		// status had to ask as well would cost a quarter of all that a node does.
		index(d("plan", 1, "name", 1, "status", 1), named("sluice_unique", d("plan", exists, "name", exists, "status", plan.Held)).SetUnique(true)),
		// The held children of a task.
		index(d("needs", 1, "_id", 1), named(indexNeeds, d("status", plan.Held))),
		// Whether a task of no plan that has not finished needs some of a plan; likewise.
		index(d("plans", 1), named(indexNeeded, d("plans", exists, "open", true))),
		// The children of a task that were added late or are of no plan, whatever they do: those of a plan that is retried are found by it.
		index(d("needs", 1), named(indexLate, d("batch", exists, "needs", exists))),
		// Tasks whose parents nobody has looked at since they were added, and foreach tasks whose items are not all in: few, for a moment.
		index(d("adding", 1), named(indexAdding, d("adding", exists))),
		index(d("making", 1), named(indexMaking, d("making", true))),
		index(d("notbefore", 1), named(indexDue, d("hold", holdDelay))),
		// Tasks that other programs ended, and tasks that ended without a claim and are not
		// released yet: empty nearly always.
		index(d("open", 1, "mtime", 1), named(indexEnded, d("open", true, "status", d("$gt", 0)))),
		index(d("open", 1, "mtime", 1), named(indexStopped, d("open", true, "status", d("$in", stoppedStatuses)))),
		// Limits of queues: two tasks cannot hold one slot. A task that another program ends leaves the index by its status.
		index(d("queue", 1, "slot", 1), named("sluice_slot", d("$and", bson.A{
			d("slot", exists), d("status", d("$gte", plan.Claimed)), d("status", d("$lte", plan.Running)),
		})).SetUnique(true)),
		// The same of nodes.
		index(d("node", 1, "nodeslot", 1), named("sluice_nodeslot", d("$and", bson.A{
			d("nodeslot", exists), d("status", d("$gte", plan.Claimed)), d("status", d("$lte", plan.Running)),
		})).SetUnique(true)),
		// The same of one queue on one node.
		index(d("queue", 1, "node", 1, "qnslot", 1), named("sluice_qnslot", d("$and", bson.A{
			d("qnslot", exists), d("status", d("$gte", plan.Claimed)), d("status", d("$lte", plan.Running)),
		})).SetUnique(true)),
		// Tasks that an audit reads in addition to those of plans: held tasks that were added late,
		// or are of no plan.
		index(d("batch", 1, "_id", 1), named(indexApart, d("batch", exists, "status", plan.Held, "hold", holdNeeds))),
		// Finished tasks of no plan, by when they ended, and those whose deletion has begun: nearly never any.
		index(d("queue", 1, "status", 1, "ended", 1), named("sluice_over", d("plan", nil, "ended", exists))),
		index(d("deleting", 1), named(indexDeleting, d("deleting", true))),
		// Foreach tasks whose items a retry deleted, by the first of these.
		index(d("missing", 1), named(indexMissing, d("missing", exists))),
		// Likewise: gates of retries, which are there for a moment.
		index(d("gate", 1), named(indexGate, d("gate", exists))),
		// Claims of instances that are not registered: of the others a server finds none between their keys.
		index(d("instance", 1), named(indexClaims, d("$and", bson.A{
			d("instance", exists), d("status", d("$gte", plan.Claimed)), d("status", d("$lte", plan.Running)),
		}))),
		// The feed of changes, which has to find what other programs wrote too.
		index(d("mtime", 1, "_id", 1), options.Index().SetName(indexMtime)),
	}
}

// collectionIndexes are the indexes of one collection.
type collectionIndexes struct {
	*mongo.Collection
	models []mongo.IndexModel
}

func (s *Store) indexes() []collectionIndexes {
	unique := func() *options.IndexOptionsBuilder { return options.Index().SetUnique(true) }
	return []collectionIndexes{
		{s.tasks, taskIndexes()},
		{s.plans, []mongo.IndexModel{
			index(d("name", 1, "run", 1), unique()), index(d("ctime", -1, "run", -1, "_id", -1), nil),
			index(d("state", 1, "mtime", 1), options.Index().SetName(plansState)), index(d("mtime", 1, "_id", 1), nil),
			// Plans that a sweep has to continue.
			index(d("state", 1), named(plansClosing, d("closing", d("$exists", true)))),
			index(d("fresh", 1), named(plansFresh, d("fresh", true))), index(d("abandoned", 1), named(plansAbandoned, d("abandoned", true))),
			index(d("source", 1), named("source", d("source", d("$exists", true)))), index(d("ended", 1), named("ended", d("ended", d("$exists", true)))),
			index(d("until", 1), named("until", d("until", d("$exists", true)))),
			index(d("key", 1), named("key", d("key", d("$exists", true))).SetUnique(true)),
		}},
		{s.queues, []mongo.IndexModel{index(d("name", 1), unique()), index(d("plugin", 1), nil)}},
		{s.nodes, []mongo.IndexModel{index(d("node", 1), unique())}},
		{s.joins, []mongo.IndexModel{
			index(d("needs", 1), named("needs", d("needs", d("$exists", true)))), index(d("child", 1, "n", 1), nil), index(d("plan", 1), nil),
		}},
		{s.items, []mongo.IndexModel{index(d("task", 1, "from", 1), nil)}},
		{s.logs, []mongo.IndexModel{index(d("task", 1, "to", 1), nil)}},
		{s.chunks, []mongo.IndexModel{index(d("files_id", 1, "n", 1), unique())}},
		{s.files, []mongo.IndexModel{index(d("metadata.task_id", 1), nil)}},
	}
}

// fingerprint tells sets of indexes apart.
func fingerprint(all []collectionIndexes) (string, error) {
	h := sha256.New()
	for _, c := range all {
		for _, m := range c.models {
			var o options.IndexOptions
			for _, set := range m.Options.List() {
				if err := set(&o); err != nil {
					return "", err
				}
			}
			raw, err := bson.Marshal(d("on", c.Name(), "keys", m.Keys, "name", o.Name, "unique", o.Unique, "partial", o.PartialFilterExpression))
			if err != nil {
				return "", err
			}
			_, _ = h.Write(raw)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}
