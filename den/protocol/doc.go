// Package protocol owns what a node and a store say to each other: registered instances beat, make
// turns and sweep. The interfaces of package den use its types. A program needs it only to implement
// or to call such a store; a program that writes and reads plans needs package plan.
//
// A turn claims tasks. Each [Claim] has a fencing token, and every later write about the attempt
// names the claim. The [Ending] of an attempt goes with a later turn. The store answers with the
// endings that it refused, because another node owns the tasks.
package protocol
