// Package rules owns the decisions about tasks and plans. It decides the effect of an ending, and
// of the loss of a node. It decides when a held task is queued, skipped or ended, and when a plan
// closes and ends.
//
// A rule is a pure function. It takes what a store has read, and returns a Step: the new status of a
// task with every other field that changes. Stores write steps, and decide nothing themselves. A step
// is the only way from one status to another, so that each step passes plan.Status.CanBecome here,
// before a store sees it.
package rules
