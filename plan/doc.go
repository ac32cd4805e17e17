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
// The codes are those of the Disbatch documents. Tasks in a store go through these steps:
//
//   - A [Spec] says what a plan is to be. The function Validate of the module's root finds what is wrong
//     with it, and its Submit makes the plan and its tasks.
//   - [Decide] says, of a held task whose parents finish one after another, whether it waits, runs or is skipped; [Deliver]
//     makes the params it runs with.
//   - [Conclude] says what follows an attempt: the end, another attempt after a delay, or the queue again. Package rules
//     makes the steps of it that stores write.
package plan
