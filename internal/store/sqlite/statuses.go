package sqlite

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/plan"
)

// readyStatus is the status of the tasks in the index tasks_ready.
const readyStatus = plan.Queued

// The partial indexes hold the tasks in states that pass. A statement that reads such an index has
// to repeat the condition of the index.
const (
	inReady  = "INDEXED BY tasks_ready WHERE " + isReady
	isReady  = "status = -2"
	inMine   = "INDEXED BY tasks_mine WHERE " + isMine
	isMine   = "status IN (-1, 0)"
	inRoot   = "INDEXED BY tasks_root WHERE " + isRoot
	isRoot   = isHeld + " AND gate = 0"
	inDelay  = "INDEXED BY tasks_delay WHERE " + isHeld + " AND gate = 1"
	isForEnd = isHeld + " AND gate = 6" // the tasks in the index tasks_finally
	isHeld   = "status = -4"
)

// These texts are rules in SQL: FirstStatus, Step.Plain, Reports, Troubled, HasRun and KeptAs.
const (
	firstStatus  = "-4"
	setPlain     = "status = 1, gate = 0, reason = NULL, detail = NULL, exit = NULL, cancel = 0, not_before = 0"
	isUnfinished = "status IN (-4, -2, -1, 0)"
	isReporting  = "status = 0"
	isTroubled   = "(t.attempt > 1 OR t.attempt = 1 AND t.status IN (-4, -2) OR t.status > 1 OR t.status IN (-3, -6))"
	hasRun       = "(t.status >= 0 OR t.status IN (-3, -6) OR t.flags & ? <> 0)"
	keptStatus   = "min(t.status, 2)"
)

// held reports whether the column gate says what the task waits for.
func (r *taskRow) held() bool { return r.status == plan.Held }

func (r *taskRow) waitsFor(gate int64) bool { return r.held() && r.hold == gate }

// ofActive has a query read what nodes have, whatever else there is.
const ofActive = " INDEXED BY tasks_mine"

// onlyUnfinished reports whether the statuses are those of tasks in the index tasks_subject. None are all.
func onlyUnfinished(statuses []plan.Status) bool {
	return len(statuses) > 0 && !slices.ContainsFunc(statuses, plan.Status.Finished)
}

// statusTerm selects statuses, and names the index in which all that have them are.
func statusTerm(statuses []plan.Status) (term, index string) {
	var words []string
	failed, active, queued := false, true, true
	for _, s := range statuses {
		failed = failed || s == plan.Failed
		active = active && s.Active()
		queued = queued && s == plan.Queued
		if s != plan.Failed {
			words = append(words, fmt.Sprint(int32(s)))
		}
	}
	among := "t.status IN (" + strings.Join(words, ", ") + ")"
	switch {
	case active:
		return "t." + isMine + " AND " + among, ofActive
	case queued:
		return "t." + isReady, " INDEXED BY tasks_ready"
	case failed:
		return "(t.status > 1 OR " + among + ")", ""
	}
	return among, ""
}
