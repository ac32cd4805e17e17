// Package plan is the domain of Sluice. It has plans, tasks, queues and nodes, and the life of a task.
// It knows no database, no file and no process.
//
// A task's life, which [Status.CanBecome] keeps as a table:
//
//	            ready, or no needs                  claim              start
//	held −4 ────────────────────────► queued −2 ──────────────► claimed −1 ──────► running 0
//	  ▲  │         release                ▲                          │                 │
//	  │  │                                └── unclaim, rescue ───────┴─────────────────┤
//	  │  └─ cancel, skip ► cancelled −5      terminate ► terminated −3 ◄───────────────┤
//	  │                      lost, and not to be queued again ► orphaned −6 ◄──────────┤
//	  ├── a delay before the next attempt ◄────────────────────────────────────────────┤
//	  └── retry by a person, from 1…, −3, −5, −6                  succeeded 1 ◄────────┤
//	                                                    failed 2 (or any n > 1) ◄──────┘
//
// The codes are those of the Disbatch documents. A program goes through these steps:
//
//   - A [Spec] says what a plan is to be. The function Validate of the module's root finds what is wrong
//     with it, and its Submit makes the plan and its tasks.
//   - The parents of a held task finish one after another. Its [When] says whether the task then waits, runs
//     or is skipped. It runs with the outputs of its parents in its params.
//   - An attempt is followed by the end of the task, by another attempt after a delay, or by the queue again.
package plan
