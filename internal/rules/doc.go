// Package rules decides what becomes of tasks and plans: what an ending makes of a task, what the loss of
// its node does, when a held task is queued, skipped or ended, and when a plan closes and ends.
//
// A rule is a pure function. It takes what a store has read, and returns a Step: the new status of a
// task with every other field that changes. Stores write steps, and decide nothing themselves. A step
// is the only way from one status to another, so that each step passes plan.Status.CanBecome here,
// before a store sees it.
package rules
