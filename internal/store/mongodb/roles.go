package mongodb

import (
	"slices"
	"strings"
)

// A Role is what one of Disbatch's processes may do in a database; the user of the same name has it, and nothing else.
type Role struct {
	Name       string
	Privileges []Privilege
}

// A Privilege is what a role may do with a collection, in MongoDB's words.
type Privilege struct {
	Collection string   // "" stands for all of the database
	Actions    []string // that Sluice asks for
	Disbatch   []string // that only Disbatch's own programs ask for, which may work on the same database as the same user
	Why        string
}

// all returns the actions in an order that does not change, so that a person can compare what two versions print.
func (p *Privilege) all() []string {
	all := append(append([]string{}, p.Actions...), p.Disbatch...)
	slices.Sort(all)
	return slices.Compact(all)
}

// Roles returns the roles that do not depend on a site: all but that of plugins. The actions of
// Sluice are those that its code can ask for, and TestRolesAreWhatTheCodeAsksFor reads that code.
// The actions of Disbatch's own programs are from the table of disbatch-create-users. Its find in
// all collections is reduced to the collections that the design of Disbatch 4 names.
func Roles() []Role {
	w := strings.Fields
	return []Role{
		// A node: den, `sluice den --queues`, reports, and what opening a store makes.
		{"disbatchd", []Privilege{
			{"balance", w("find insert update"), nil, "settings and state of the balancer, which is a role of a node"},
			{"instances", w("find insert remove update"), nil, "its own document, beaten each second, and those of nodes that it rescues"},
			{"items", w("createIndex find insert listIndexes remove"), nil, "lists of foreach tasks whose items are not all in"},
			{"joins", w("createIndex find insert listIndexes remove update"), nil, "what tasks of very many parents wait for"},
			{"logs", w("createIndex insert listIndexes remove"), nil, "what tasks print; removed with their plan"},
			{"meta", w("find insert remove update"), nil, "the schema's version, whose a node's name is, and the counter that wakes nodes"},
			{"nodes", w("createIndex find insert listIndexes remove update"), nil, "the node's heartbeat and its maxthreads"},
			{"plans", w("createIndex find listIndexes remove update"), nil, "how a plan goes on and ends; plans that are kept no longer go"},
			{"queues", w("createIndex find listIndexes update"), nil, "limits are read; the node that balances sets them, and Disbatch's node writes its counts there"},
			{"reports", w("insert"), nil, "what plugins inside the node report"},
			{"retries", w("find remove update"), nil, "retries that were left half-way are ended"},
			{"runs", w("insert update"), nil, "the highest run of plans that were deleted"},
			{"tasks", w("createIndex find insert listIndexes remove update"), nil, "claims and endings; items of foreach tasks are inserted, tasks go with their plan"},
			{"tasks.chunks", w("createIndex find insert listIndexes remove"), nil, "what tasks print is kept in GridFS, read, and goes with its task"},
			{"tasks.files", w("createIndex find insert listIndexes remove"), nil, "the same"},
			{"work", w("find insert remove update"), nil, "what was begun and is to be ended whoever dies"},
		}},
		// Processes that submit, show, cancel, retry and delete.
		{"disbatch_web", []Privilege{
			{"balance", w("find insert update"), w("listIndexes"), "settings of the balancer, by `sluice balance` and by Disbatch's pages"},
			{"instances", w("find"), nil, "which nodes there are"},
			{"items", w("find insert remove"), nil, "lists of foreach tasks, made anew by a retry"},
			{"joins", w("find insert remove update"), nil, "what tasks of very many parents wait for"},
			{"logs", w("find insert remove"), nil, "logs are shown; a retry notes itself there"},
			{"meta", w("find insert update"), nil, "the schema's version, and the counter that wakes nodes"},
			{"nodes", w("find insert update"), w("listIndexes"), "nodes are shown; maxthreads, whose document is made where there is none; whether other programs have nodes"},
			{"plans", w("find insert remove update"), nil, "plans are submitted, shown, cancelled, retried and deleted"},
			{"queues", w("find insert remove update"), w("listIndexes"), "queues are made, set and deleted"},
			{"retries", w("find insert remove update"), nil, "a retry is noted before it begins"},
			{"runs", w("find insert remove update"), nil, "which run of its name a plan is"},
			{"tasks", w("find insert listIndexes remove update"), nil, "tasks are submitted, shown, cancelled, retried and deleted; they are asked for by what is indexed"},
			{"tasks.chunks", w("find remove"), w("listIndexes"), "output in GridFS is shown, and goes with its plan"},
			{"tasks.files", w("find remove"), w("listIndexes"), "the same"},
			{"work", w("insert remove update"), nil, "what was begun and is to be ended whoever dies"},
		}},
		// A process that runs one task. In its last turn it does for the task's children what a
		// node does.
		{"task_runner", []Privilege{
			{"instances", w("find insert remove update"), nil, "its own document, beaten each second"},
			{"items", w("find insert remove"), nil, "lists of foreach tasks that its task is a parent of"},
			{"joins", w("find insert remove update"), nil, "what tasks of very many parents wait for"},
			{"logs", w("insert"), nil, "what the task prints"},
			{"meta", w("find insert remove update"), nil, "the schema's version, and the counter that wakes nodes"},
			{"nodes", w("find insert remove update"), nil, "limits of its node; what a node does when it leaves, a runner's code can do"},
			{"plans", w("find update"), nil, "the task's plan, which may end with it"},
			{"queues", w("find"), w("update"), "its queue's plugin; Disbatch's runner writes its counts there"},
			{"reports", w("insert"), nil, "what a plugin reports"},
			{"tasks", w("find insert remove update"), nil, "the task, its parents' outputs, its end, and what that releases: children, and items of foreach tasks"},
			{"tasks.chunks", w("insert remove"), w("find listIndexes"), "what the task prints is kept in GridFS; drivers ask for the indexes before the first file"},
			{"tasks.files", w("find insert remove"), w("listIndexes"), "the same"},
			{"work", w("find insert remove update"), nil, "what was begun and is to be ended whoever dies"},
		}},
		// Disbatch's process; with Sluice a node balances, as disbatchd.
		{"queuebalance", []Privilege{
			{"balance", nil, w("find insert update"), "its settings and its state"},
			{"queues", nil, w("find update"), "it moves threads between queues"},
			{"tasks", nil, w("find"), "it counts what is queued"},
		}},
	}
}
