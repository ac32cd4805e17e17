// Package dtr starts task runners: the processes, one a task, that Disbatch's documents call DTR. It knows how a node starts them, which of
// them runs which queue, and how another program's is started as Disbatch's node does it. What a runner of this program does when it runs
// is den.Node.RunClaimed.
//
// A runner of the node's is always this program, as `sluice runner`: it runs the task's plugin itself, or has another program's task
// runner run the task, watches over that, and keeps the lease for it. So a node that is stopped, or dies, leaves nothing without a lease.
package dtr
