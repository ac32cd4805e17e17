// Package mongodb keeps the store in a MongoDB database, for nodes on many hosts. It needs MongoDB 6.0 or newer, or a server that
// speaks its protocol; it uses no transactions and no change streams.
//
// # What lies where
//
// The collections nodes, queues and tasks are Disbatch 4's: programs written to that document work on the same database, and do not
// notice the fields and collections beside them.
//
//	nodes      by name: when it was last heard of, maxthreads
//	queues     name, plugin, threads, sort
//	tasks      one document a task
//	plans      one document a plan
//	instances  one document a process that claims; a while also of those that are gone
//	work       what was begun and must be ended by whoever comes next: finished tasks whose children are not released yet
//	joins      what a task with very many parents, or a foreach task with its items, waits for: 250 of them a document
//	items      lists of a foreach task that a node made, as long as its items are not all in
//	retries    retries that are not ended yet
//	logs       what tasks printed
//	runs       runs of plans that are being created; the highest run of each name among plans that were deleted
//	reports    what plugins report, Disbatch's and ours; Sluice reads none of it
//	meta       the version of the schema, the counter that wakes nodes
//
// # How it goes without transactions
//
// Every step is one conditional write of one document, or many of these in one command, and may be
// repeated. An index finds each step that was begun. If a turn ends many tasks, these are in work
// before they finish. If it ends a few, they stay open until their children are released, and so do
// tasks that others ended. A held task carries the reason why it waits. A process that finishes a parent writes that first and then reads the parents of its held
// children. If two do so at once, the later reader sees both. So a child may be read twice, and is
// queued once.
//
// Writes are majority and journaled, and all reads go to the primary, whatever the URI says.
package mongodb
