// Package runner owns processes: it starts a command, watches it, captures what it prints, and ends it with everything it
// started, also when this process itself is killed.
//
// [Run] does all of it for one command. The command runs in a session and process group of its own, without a terminal. What it
// prints is in an [Output], from which another goroutine may take it while it runs. It is stopped by SIGTERM to its whole group,
// and by SIGKILL when a grace is over. When it has ended, what is left of its group is killed: nothing of a task stays behind,
// except what left the group on purpose (setsid, a job-control shell).
//
// # A command does not outlive its node
//
// A node may be killed at any instant and then can end nothing itself. So each process that runs commands has one guardian: a
// process in a session of its own, started with the first command by running this program again, which [GuardMain], called first
// in main, turns into a guardian. It learns of each process group through a pipe; the kernel closes the pipe when the node is
// gone, however that came about, and the guardian then ends the groups that are left: SIGTERM, and SIGKILL after [GuardGrace].
// If the guardian dies, another one is started and told of what runs.
//
// A node can also be stopped, by SIGSTOP or Ctrl-Z, and its commands go on. So it says with [Lease] for how long they may, and the
// guardian, which is not stopped with it, ends them then: others may run the node's tasks again.
//
// A command may run, and have children, before the node has told its group: the node can die in between. So the guardian is told
// before that a command is being started, and on Linux finds the processes of such a command by a variable in their environment,
// SLUICE_COMMAND. There a command's own process also gets SIGTERM from the kernel as soon as the node dies.
//
// # Windows
//
// There a command runs in a job object that ends all its processes when the last handle of it is closed, as it is when the node
// dies; no guardian is needed. There is no SIGTERM either: a command that is stopped is ended at once, without a grace.
package runner
