package mongodb

import (
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// Names of the indexes on tasks that queries name, so that the server's planner cannot take a worse one.
const (
	indexReady    = "sluice_turns"
	indexPlan     = "sluice_plan"
	indexOpen     = "sluice_open"
	indexSubject  = "sluice_subject"
	indexList     = "sluice_list"
	indexName     = "sluice_name"
	indexNeeds    = "sluice_needs"
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
)

// The same of the indexes on plans.
const (
	plansState     = "state"
	plansClosing   = "closing"
	plansFresh     = "fresh"
	plansAbandoned = "abandoned"
	plansDeadline  = "deadline"
)

// d makes a document of keys and values in turn.
func d(pairs ...any) bson.D { return wire.D(pairs...) }

// idList is ids as a filter takes them.
type idList = []bson.ObjectID

// idsFrom returns the ids that elements of a list have.
func idsFrom[T any](list []T, id func(T) bson.ObjectID) idList {
	ids := make(idList, len(list))
	for i := range list {
		ids[i] = id(list[i])
	}
	return ids
}

// idOf returns the id of a task.
func idOf(t *plan.Task) bson.ObjectID { return oid(t.ID.ID) }

// An idSet is ids, each once, in the order in which they were added. It has no id that is zero.
type idSet struct {
	list idList
	has  map[bson.ObjectID]bool
}

func (s *idSet) add(ids ...bson.ObjectID) {
	for _, id := range ids {
		if id.IsZero() || s.has[id] {
			continue
		}
		if s.has == nil {
			s.has = map[bson.ObjectID]bool{}
		}
		s.has[id], s.list = true, append(s.list, id)
	}
}

// byID returns the tasks by their ids.
func byID(docs []taskDoc) map[bson.ObjectID]*taskDoc {
	byID := make(map[bson.ObjectID]*taskDoc, len(docs))
	for i := range docs {
		byID[docs[i].ID] = &docs[i]
	}
	return byID
}

// about adds to an error what it is about.
func about(err *error, format string, args ...any) {
	if *err != nil {
		*err = fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), *err)
	}
}

// direction is that of a key in an index or a sort.
func direction(down bool) int {
	if down {
		return -1
	}
	return 1
}

// ones makes a document in which each of these keys is 1, as a projection, a sort and $unset have it.
func ones(keys string) (doc bson.D) {
	for _, key := range strings.Fields(keys) {
		doc = append(doc, bson.E{Key: key, Value: 1})
	}
	return doc
}

// addIf adds a field to a document, if it is to have it.
func addIf(doc bson.D, is bool, key string, value any) bson.D {
	if is {
		doc = append(doc, bson.E{Key: key, Value: value})
	}
	return doc
}

// An index is one of the schema: its keys in order, descending after a minus sign. A partial index holds only the documents that match.
type index struct {
	on, keys, name, partial string // the name is made of the keys if it is empty
	unique                  bool
}

// schema are the indexes that the store needs. The first ones of tasks are Disbatch 4's, under the names that its programs give them. Ours
// are partial, so that a write pays for one only while the task is what the index is for. A word in capitals
// stands for the code of that status.
var schema = []index{
	{on: "tasks", keys: "node status queue"},
	{on: "tasks", keys: "node status queue _id"},
	{on: "tasks", keys: "node status queue -_id"},
	{on: "tasks", keys: "queue status"},
	// Tasks for claims, those of each plan in their order.
	{on: "tasks", keys: "queue plan -rank _id", name: indexReady, partial: `{"status":QUEUED}`},
	// The same within one plan; also what a cancelled plan still has, and how the tasks of a plan ended.
	{on: "tasks", keys: "plan status queue -rank _id", name: indexPlan, partial: `{"plan":{"$exists":true}}`},
	// Whether anything of a plan is unfinished. Its key does not change with a status: a scan meets each such task, whatever it does
	// meanwhile. The id is there for servers to which many tasks of one key are dear.
	{on: "tasks", keys: "plan _id", name: indexOpen, partial: `{"plan":{"$exists":true},"open":true}`},
	// Unfinished tasks that say what they are about.
	{on: "tasks", keys: "subject _id", name: indexSubject, partial: `{"subject":{"$exists":true},"open":true}`},
	{on: "tasks", keys: "plan _id", name: indexList, partial: `{"plan":{"$exists":true}}`},
	{on: "tasks", keys: "plan name", name: indexName, partial: `{"plan":{"$exists":true},"name":{"$exists":true}}`},
	// Names are there once in a plan. Tasks are held when they are inserted, and only then: an index that every later write of a
	// status had to ask as well would cost a quarter of all that a node does.
	{on: "tasks", keys: "plan name status", name: "sluice_unique", partial: `{"plan":{"$exists":true},"name":{"$exists":true},"status":HELD}`, unique: true},
	// The held children of a task.
	{on: "tasks", keys: "needs _id", name: indexNeeds, partial: `{"status":HELD}`},
	// The children of a task that were added late or are of no plan, whatever they do: those of a plan that is retried are found by it.
	{on: "tasks", keys: "needs", name: indexLate, partial: `{"batch":{"$exists":true},"needs":{"$exists":true}}`},
	// Tasks whose parents nobody has looked at since they were added, and foreach tasks whose items are not all in: few, for a moment.
	{on: "tasks", keys: "adding", name: indexAdding, partial: `{"adding":{"$exists":true}}`},
	{on: "tasks", keys: "making", name: indexMaking, partial: `{"making":true}`},
	{on: "tasks", keys: "notbefore", name: indexDue, partial: `{"hold":"delay"}`},
	// Tasks that other programs ended, and tasks that ended without a claim and are not released yet: empty nearly always.
	{on: "tasks", keys: "open mtime", name: indexEnded, partial: `{"open":true,"status":{"$gt":0}}`},
	{on: "tasks", keys: "open mtime", name: indexStopped, partial: `{"open":true,"status":{"$in":[TERMINATED,CANCELLED,ORPHANED]}}`},
	// Limits of queues, of nodes, and of a queue on a node: two tasks cannot hold one slot. A task that another program ends leaves the
	// index by its status.
	{on: "tasks", keys: "queue slot", name: "sluice_slot", partial: `{"$and":[{"slot":{"$exists":true}},` + isActive, unique: true},
	{on: "tasks", keys: "node nodeslot", name: "sluice_nodeslot", partial: `{"$and":[{"nodeslot":{"$exists":true}},` + isActive, unique: true},
	{on: "tasks", keys: "queue node qnslot", name: "sluice_qnslot", partial: `{"$and":[{"qnslot":{"$exists":true}},` + isActive, unique: true},
	// Tasks that an audit reads in addition to those of plans: held tasks that were added late, or are of no plan.
	{on: "tasks", keys: "batch _id", name: indexApart, partial: `{"batch":{"$exists":true},"status":HELD,"hold":"needs"}`},
	// Finished tasks of no plan, by when they ended, and those whose deletion has begun: nearly never any.
	{on: "tasks", keys: "queue status ended", name: "sluice_over", partial: `{"plan":null,"ended":{"$exists":true}}`},
	{on: "tasks", keys: "deleting", name: indexDeleting, partial: `{"deleting":true}`},
	// Likewise: gates of retries, which are there for a moment.
	{on: "tasks", keys: "gate", name: indexGate, partial: `{"gate":{"$exists":true}}`},
	// Claims of instances that are not registered: of the others a server finds none between their keys.
	{on: "tasks", keys: "instance", name: indexClaims, partial: `{"$and":[{"instance":{"$exists":true}},` + isActive},
	// The feed of changes, which has to find what other programs wrote too.
	{on: "tasks", keys: "mtime _id", name: indexMtime},

	{on: "plans", keys: "name run", unique: true},
	{on: "plans", keys: "-ctime -run -_id"},
	{on: "plans", keys: "state mtime", name: plansState},
	{on: "plans", keys: "mtime _id"},
	// Plans that a sweep has to continue.
	{on: "plans", keys: "state", name: plansClosing, partial: `{"closing":{"$exists":true}}`},
	{on: "plans", keys: "fresh", name: plansFresh, partial: `{"fresh":true}`},
	{on: "plans", keys: "abandoned", name: plansAbandoned, partial: `{"abandoned":true}`},
	// Plans that have not ended and may run only for some time.
	{on: "plans", keys: "deadline", name: plansDeadline, partial: `{"$and":[{"deadline":{"$exists":true}},{"state":RUNNING}]}`},
	{on: "plans", keys: "source", name: "source", partial: `{"source":{"$exists":true}}`},
	{on: "plans", keys: "ended", name: "ended", partial: `{"ended":{"$exists":true}}`},
	{on: "plans", keys: "until", name: "until", partial: `{"until":{"$exists":true}}`},
	// One run of a name with overlap: skip has not ended at a time. Its state is plan.PlanSubmitting to plan.PlanRunning, which
	// have the codes of HELD and RUNNING.
	{on: "plans", keys: "name", name: "alone", partial: `{"$and":[{"overlap":"skip"},{"state":{"$gte":HELD}},{"state":{"$lte":RUNNING}}]}`, unique: true},
	{on: "plans", keys: "key", name: "key", partial: `{"key":{"$exists":true}}`, unique: true},

	{on: "queues", keys: "name", unique: true},
	{on: "queues", keys: "plugin"},
	{on: "nodes", keys: "node", unique: true},
	{on: "schedules", keys: "name", unique: true},
	{on: "schedules", keys: "due"},
	{on: "joins", keys: "needs", name: "needs", partial: `{"needs":{"$exists":true}}`},
	{on: "joins", keys: "child n"},
	{on: "joins", keys: "plan"},
	{on: "items", keys: "task from"},
	{on: "logs", keys: "task to"},
	{on: "tasks.chunks", keys: "files_id n", unique: true},
	{on: "tasks.files", keys: "metadata.task_id"},
}

// isActive ends the filter of an index over claimed and running tasks.
const isActive = `{"status":{"$gte":CLAIMED}},{"status":{"$lte":RUNNING}}]}`
