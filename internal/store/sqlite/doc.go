// Package sqlite is the store that keeps everything in one SQLite file: one machine, any number of processes, nothing to install.
//
// A turn is one transaction. Statements work on sets, handed to SQLite as spans of numbers or one JSON list of them, and only writes that
// differ by row are made row by row; so the cost of a turn is that of its rows, not of its statements. What it queues it may claim at
// once: newcomers compete in memory with what is queued in the file, and only who was not taken is written as queued.
//
// # What is kept where
//
//	tasks      a row for each task, small, since every step of a task's life rewrites it; outputs of some length lie in outputs
//	bodies     what is read once, as the task is claimed: definition, params and who its parents are
//	gates      of tasks with parents: how many are still to finish, how the others did, how long their outputs are
//	kids       the edges, by parent, for release
//	foreachs   of foreach tasks: how far their items are made and how those that finished did; lists: items still to be made
//	ghosts     parents of tasks of no plan that were deleted with their plan, as long as one of these tasks is there
//	jobs       what a turn's budget left to do: releases, roots, items, closings. Whoever comes next goes on, first come first served
//	retries    of retries that are being made: how far each came; retried: the tasks that it takes
//	files      the file that each plan came from, apart from plans, whose rows change with each of their counters
//	plans, queues   with counters that change in the transaction that changes the tasks, and so are always right
//	changes    a row for each transaction with the numbers of the tasks and plans it changed
//
// Rows name each other by n, a small number that is never used twice, but for an item that takes the place of one that others need (see
// missing.go); ids are for the outside.
//
// # Inputs
//
// What a task's parents returned is not copied into its row: it is put together when it is claimed or looked at, from the parents,
// which do not change as long as they are finished. A retry, which changes them, first freezes what was put together of the
// children that stay as they are.
//
// # Processes
//
// Writers take turns by two locks beside the file (see turnstile), since SQLite's own waiting is not a queue. Readers wait for
// nobody. The second of the lock files also counts notices: who queued more than it takes counts it up, and others see the file
// change.
//
// Who committed lets go of the turn before it waits for the disk, and answers after (see walFile): the disk's time is nobody else's.
// A small commit finds room in the log that was written before (see makeRoom), so that a flush leaves the file system's journal alone.
//
// A turn that goes on with what is left of large plans is cut short when somebody waits for the next one. Checkpoints are made by a
// goroutine of each handle, beside the writers (see checkpointer).
package sqlite
