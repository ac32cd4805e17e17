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
func Roles() (roles []Role) {
	for _, p := range privileges {
		if len(roles) == 0 || roles[len(roles)-1].Name != p.role {
			roles = append(roles, Role{Name: p.role})
		}
		r := &roles[len(roles)-1]
		r.Privileges = append(r.Privileges, Privilege{p.collection, strings.Fields(p.actions), strings.Fields(p.disbatch), p.why})
	}
	return roles
}

// privileges are those of Roles, by role.
var privileges = []struct{ role, collection, actions, disbatch, why string }{
	// A node: den, `sluice den --queues`, reports, and what opening a store makes.
	{"disbatchd", "balance", "find insert update", "", "settings and state of the balancer, which is a role of a node"},
	{"disbatchd", "groups", "find update", "", "limits of groups of queues are read, and their rates are spent"},
	{"disbatchd", "instances", "find insert remove update", "", "its own document, beaten each second, and those of nodes that it rescues"},
	{"disbatchd", "items", "createIndex find insert listIndexes remove", "", "lists of foreach tasks whose items are not all in"},
	{"disbatchd", "joins", "createIndex find insert listIndexes remove update", "", "what tasks of very many parents wait for"},
	{"disbatchd", "logs", "createIndex find insert listIndexes remove", "", "what tasks print; removed with their plan, or handed over with their task"},
	{"disbatchd", "meta", "find insert remove update", "", "the schema's version, whose a node's name is, and the counter that wakes nodes"},
	{"disbatchd", "nodes", "createIndex find insert listIndexes remove update", "", "the node's heartbeat and its maxthreads"},
	{"disbatchd", "plans", "createIndex find insert listIndexes remove update", "", "how a plan goes on and ends; plans of schedules are submitted; plans that are kept no longer go"},
	{"disbatchd", "queues", "createIndex find insert listIndexes remove update", "", "limits are read, and rates are spent; a plan of a schedule makes its queue; the node that balances sets them, and Disbatch's node writes its counts there; that of a job goes with its plan"},
	{"disbatchd", "reports", "insert", "", "what plugins inside the node report"},
	{"disbatchd", "retries", "find remove update", "", "retries that were left half-way are ended"},
	{"disbatchd", "rolls", "find insert remove update", "", "batches of finished tasks that are handed over before they are deleted"},
	{"disbatchd", "runs", "find insert remove update", "", "which run of its name a plan of a schedule is, and the highest run of plans that were deleted"},
	{"disbatchd", "schedules", "createIndex find insert listIndexes update", "", "what schedules say is started, and noted"},
	{"disbatchd", "tasks", "createIndex find insert listIndexes remove update", "", "claims and endings; items of foreach tasks are inserted, tasks go with their plan"},
	{"disbatchd", "tasks.chunks", "createIndex find insert listIndexes remove", "", "what tasks print is kept in GridFS, read, and goes with its task; so are job packs, which go with their plan"},
	{"disbatchd", "tasks.files", "createIndex find insert listIndexes remove", "", "the same"},
	{"disbatchd", "work", "find insert remove update", "", "what was begun and is to be ended whoever dies"},
	// Processes that submit, show, cancel, retry and delete.
	{"disbatch_web", "balance", "find insert update", "listIndexes", "settings of the balancer, by `sluice balance` and by Disbatch's pages"},
	{"disbatch_web", "groups", "find insert remove update", "", "groups of queues are made, shown, changed and deleted"},
	{"disbatch_web", "instances", "find", "", "which nodes there are"},
	{"disbatch_web", "items", "find insert remove", "", "lists of foreach tasks, made anew by a retry"},
	{"disbatch_web", "joins", "find insert remove update", "", "what tasks of very many parents wait for"},
	{"disbatch_web", "logs", "find insert remove", "", "logs are shown; a retry notes itself there"},
	{"disbatch_web", "meta", "find insert update", "", "the schema's version, and the counter that wakes nodes"},
	{"disbatch_web", "nodes", "find insert update", "listIndexes", "nodes are shown; maxthreads, whose document is made where there is none; whether other programs have nodes"},
	{"disbatch_web", "plans", "find insert remove update", "", "plans are submitted, shown, cancelled, retried and deleted"},
	{"disbatch_web", "queues", "find insert remove update", "listIndexes", "queues are made, set and deleted"},
	{"disbatch_web", "retries", "find insert remove update", "", "a retry is noted before it begins"},
	{"disbatch_web", "rolls", "find insert remove update", "", "batches of finished tasks that `sluice oste roll` hands over"},
	{"disbatch_web", "runs", "find insert remove update", "", "which run of its name a plan is"},
	{"disbatch_web", "schedules", "find insert remove update", "", "schedules are made, shown, changed and deleted"},
	{"disbatch_web", "tasks", "find insert listIndexes remove update", "", "tasks are submitted, shown, cancelled, retried and deleted; they are asked for by what is indexed"},
	{"disbatch_web", "tasks.chunks", "find insert remove", "listIndexes", "output in GridFS is shown, and goes with its plan; job packs are submitted"},
	{"disbatch_web", "tasks.files", "find insert remove", "listIndexes", "the same"},
	{"disbatch_web", "work", "insert remove update", "", "what was begun and is to be ended whoever dies"},
	// A process that runs one task. In its last turn it does for the task's children what a
	// node does.
	{"task_runner", "groups", "find update", "", "a turn that claims reads the limits of groups of queues, and spends their rates"},
	{"task_runner", "instances", "find insert remove update", "", "its own document, beaten each second"},
	{"task_runner", "items", "find insert remove", "", "lists of foreach tasks that its task is a parent of"},
	{"task_runner", "joins", "find insert remove update", "", "what tasks of very many parents wait for"},
	{"task_runner", "logs", "find insert", "", "what the task prints; and what others printed that failed, for a task that handles failures"},
	{"task_runner", "meta", "find insert remove update", "", "the schema's version, and the counter that wakes nodes"},
	{"task_runner", "nodes", "find insert remove update", "", "limits of its node; what a node does when it leaves, a runner's code can do"},
	{"task_runner", "plans", "find update", "", "the task's plan, which may end with it"},
	{"task_runner", "queues", "find update", "", "its queue's plugin; a turn that claims spends rates; Disbatch's runner writes its counts there"},
	{"task_runner", "reports", "insert", "", "what a plugin reports"},
	{"task_runner", "schedules", "find", "", "its heartbeat is told when the next schedule is due"},
	{"task_runner", "tasks", "find insert remove update", "", "the task, its parents' outputs, its end, and what that releases: children, and items of foreach tasks"},
	{"task_runner", "tasks.chunks", "find insert remove", "listIndexes", "what the task prints is kept in GridFS; a job pack is unpacked; drivers ask for the indexes before the first file"},
	{"task_runner", "tasks.files", "find insert remove", "listIndexes", "the same"},
	{"task_runner", "work", "find insert remove update", "", "what was begun and is to be ended whoever dies"},
	// Disbatch's process; with Sluice a node balances, as disbatchd.
	{"queuebalance", "balance", "", "find insert update", "its settings and its state"},
	{"queuebalance", "queues", "", "find update", "it moves threads between queues"},
	{"queuebalance", "tasks", "", "find", "it counts what is queued"},
}
