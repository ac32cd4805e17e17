// Package dtr starts task runners: one process for each task, which Disbatch's documents call DTR.
// It knows how a node starts runners, which of them runs which queue, and how Disbatch's node
// starts another program's runner. The work of a runner of this program is den.Node.RunClaimed.
//
// A runner of the node is always this program, as `sluice runner`. It runs the task's plugin
// itself, or starts another program's task runner. In that case it watches the other runner and
// keeps the lease for it. So a node that stops or dies leaves nothing without a lease.
package dtr
