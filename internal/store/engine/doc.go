// Package engine composes the rules of package rules into the actions of a store. It applies
// endings, settles tasks, continues remembered work, and closes and ends plans. The order of these
// steps, their budget and every decision are here once, for all drivers.
//
// A driver implements the ports of this package. It looks at tasks and plans in batches, and writes
// a step if its task is still as it was looked at. It keeps what remains for a later call. It
// decides nothing.
//
// A unit is one such piece of work: a transaction of SQLite, a round of commands to MongoDB, or the
// locked maps of the model. One goroutine uses a unit at a time.
package engine
