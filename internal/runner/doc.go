// Package runner owns processes. It starts a command, watches it and captures its output. It ends
// the command with everything that the command started, also when this process itself is killed.
//
// [Run] does all of it for one command. The command runs in a session and process group of its own,
// without a terminal. Its output is in an [Output], from which another goroutine may read while it
// runs. To stop it, Run sends SIGTERM to its whole group, and SIGKILL after a grace period. When it
// has ended, Run kills the rest of its group. Nothing of a task stays behind, except processes that
// left the group on purpose (setsid, a job-control shell).
//
// [Converse] does the same for a command that the caller speaks with: one pipe has what it writes to
// its standard output and its standard error together, and another one is its standard input.
//
// # A command does not outlive its node
//
// A killed node can end nothing itself. So each process that runs commands has one guardian: a
// process in a session of its own. The first command starts it, by running this program again;
// [GuardMain], called first in main, turns that process into a guardian. The guardian learns of
// each process group through a pipe. The kernel closes the pipe when the node is gone for any
// reason. The guardian then ends the remaining groups: SIGTERM, and SIGKILL after [GuardGrace]. If
// the guardian dies, the node starts another one and tells it the running groups.
//
// A node can also be stopped, by SIGSTOP or Ctrl-Z, while its commands continue. So the node calls
// [Lease] to say how long they may. The guardian keeps running, and ends them then, because other
// nodes may run the tasks again.
//
// A command may run, and have children, before the node has told its group, and the node can die in
// between. So the node tells the guardian first that it starts a command. On Linux the guardian
// finds the processes of such a command by a variable in their environment, SLUICE_COMMAND. There
// the kernel also sends SIGTERM to a command's own process as soon as the node dies.
//
// # Few processes
//
// If the user or the control group of this process may have few processes, Run counts them on Linux before a
// command starts. A command that has no room is not started, so that those that run, and this process,
// have the processes and threads that they need.
//
// # Containers
//
// The kernel hands the processes that a command leaves behind to the first process of the
// container. If that is this program, nobody reaps them. [InitMain], called first in main, then
// makes the first process a small parent of the program that reaps.
//
// # Windows
//
// There a command runs in a job object. When the last handle of the job is closed, the system ends
// all processes of the job. The death of the node closes it, so no guardian is needed. There is no
// SIGTERM either: a command that is stopped ends at once, without a grace period.
package runner
