// Package storetest tests the contract of stores. Every sentence of package store is a case, and
// every driver runs them all, the one in memory too. A limit of a driver is a field of Driver,
// never a case left out.
package storetest

import (
	"slices"
	"testing"
)

// groups are the cases by what they are about.
var groups = []struct {
	name  string
	cases []testCase
}{
	{"plans", planCases},
	{"overlap", overlapCases},
	{"rates", rateCases},
	{"plan turns", planTurnCases},
	{"weights", weightCases},
	{"groups", slices.Concat(groupCases, groupLateCases)},
	{"tasks", taskCases},
	{"subject", subjectCases},
	{"set task", slices.Concat(setTaskCases, setTaskLateCases)},
	{"turns", turnCases},
	{"rules", ruleCases},
	{"instances", instanceCases},
	{"take", takeCases},
	{"cancel", cancelCases},
	{"foreach", foreachCases},
	{"along", alongCases},
	{"max failures", budgetCases},
	{"skipped attempts", skipCases},
	{"approvals", approveCases},
	{"failures", failureCases},
	{"timeouts of plans", timeoutCases},
	{"finally", finallyCases},
	{"retry", slices.Concat(retryCases, retryItemCases)},
	{"lists", relistCases},
	{"retry half-way", halfwayCases},
	{"queues", queueCases},
	{"read", readCases},
	{"shown", shownCases},
	{"changes", changeCases},
	{"delete", deleteCases},
	{"expire", expireCases},
	{"roll", rollCases},
	{"concurrent", concurrentCases},
	{"crash", crashCases},
	{"walks", walkCases},
	{"late", lateCases},
	{"scale", scaleCases},
}

// Run runs the suite on a driver. For make search it tries new seeds of the random tests instead.
func Run(t *testing.T, d Driver) {
	if length := searchTime(t); length > 0 {
		all := trials
		if d.Damage == nil {
			all = slices.DeleteFunc(slices.Clone(all), func(x trial) bool { return x.at == "damage" })
		}
		search(t, &d, length, all)
		return
	}
	for _, g := range groups {
		run(t, &d, g.name, g.cases)
	}
	if d.Damage != nil {
		run(t, &d, "damage", damageCases)
	}
	if d.Foreign != nil {
		run(t, &d, "foreign", slices.Concat(foreignCases, foreignOwnerCases))
	}
}

func run(t *testing.T, d *Driver, group string, cases []testCase) {
	if len(d.Only) > 0 && !slices.Contains(d.Only, group) {
		return
	}
	t.Run(group, func(t *testing.T) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				if d.AtOnce && group != "scale" {
					t.Parallel()
				}
				w := newWorld(t, d)
				c.run(w)
				w.check()
			})
		}
	})
}
