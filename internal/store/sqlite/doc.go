// Package sqlite is the store that keeps everything in one SQLite file: one machine, any number of processes, nothing to install.
//
// A turn is one transaction. Statements work on sets, which SQLite gets as spans of numbers, sixteen
// at a time, or as one JSON list. Only writes that differ by row are made row by row. So the cost of a
// turn is that of its rows, not of its statements. A turn may claim the tasks that it queues. These compete in
// memory with the queued tasks of the file, and only tasks that are not claimed are written as
// queued.
//
// # The tables
//
//	tasks      a small row for each task, because every step of its life rewrites it; outputs has long outputs
//	bodies     the parts that are read once, at the claim: definition, params and parents
//	gates      for tasks with parents: how many are unfinished, how the others ended, the sizes of their outputs
//	kids       the edges, by parent, for release
//	foreachs   for foreach tasks: the progress of their items and how these ended; lists: items still to be made
//	jobs       the remaining work of turns: releases, roots, items, closings. The next turn continues, first come first served
//	retries    the progress of each retry in progress; retried: the tasks that it takes
//	files      the file of each plan, apart from plans, whose rows change with each of their counters
//	plans, queues   with counters that change in the transaction that changes the tasks, and so are always right
//	changes    a row for each transaction with the numbers of the tasks and plans it changed
//
// Rows name each other by n, a small number that is never used twice; ids are for the outside.
//
// # Inputs
//
// The outputs of a task's parents are not copied into its row. They are put together when the task
// is claimed or read. The parents do not change while they are finished. A retry, which changes
// them, first freezes the inputs of the children that stay as they are.
//
// # Processes
//
// Writers take turns by two locks beside the file (see turnstile), since SQLite's own waiting is not a queue. Readers wait for
// nobody. The second of the lock files also counts notices: who queued more than it takes counts it up, and others see the file
// change.
//
// A writer commits, releases the lock, flushes the log, and then answers (see walFile). Other
// writers do not wait for the flush. A small commit finds room in the log that was written before
// (see makeRoom), so that a flush leaves the file system's journal alone.
//
// A turn that goes on with what is left of large plans is cut short when somebody waits for the next one. Checkpoints are made by a
// goroutine of each handle, beside the writers (see checkpointer).
package sqlite
