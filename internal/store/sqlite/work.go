package sqlite

import (
	"context"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// nextOther sorts the few jobs that are no releases, and reads no release.
const nextOther = "SELECT seq, kind, ref, past FROM jobs INDEXED BY sqlite_autoindex_jobs_1 WHERE kind > 1 AND seq > ? ORDER BY seq LIMIT 1"

func (t *tx) Job(context.Context) (was bool, err error) {
	if !t.jobs {
		return false, t.err
	}
	j, ok := t.nextJob()
	if ok {
		t.run(j)
	}
	return ok, t.err
}

// nextJob returns the job that is no release and has waited longest, but none behind which a transaction has come, or that waits for a retry.
func (t *tx) nextJob() (job, bool) {
	for {
		r := t.query(nextOther, t.passed)
		if !r.one() {
			return job{}, false
		}
		j := job{seq: r.int(0), kind: r.int(1), ref: r.int(2), past: r.int(3), pastID: r.bytes(3)}
		if !t.parked(&j) {
			return j, true
		}
		t.passed = j.seq
	}
}

// parked reports whether a job waits for the end of a retry of its plan, or is a retry for which the
// transaction has lasted too long.
func (t *tx) parked(j *job) bool {
	of := j.ref
	switch j.kind {
	case jobForgetRetry:
		return false
	case jobRetry:
		t.late = t.late || time.Since(t.began) > longRetry
		return t.late
	case jobItems, jobOpen, jobDrop:
		r := t.query("SELECT plan FROM tasks WHERE n = ?", j.ref)
		if !r.one() {
			return false
		}
		of = r.int(0)
	}
	if of != 0 && !t.query(planThere, of).one() {
		return false
	}
	return t.noted(t.plan(of)) != 0
}

// run does as much of a job as the budget allows. When it is done it is deleted, else it goes behind the others, so that a large plan does
// not keep small ones waiting.
func (t *tx) run(j job) {
	var past any
	var done bool
	switch j.kind {
	case jobRoots:
		done = t.releaseRoots(j.ref)
	case jobItems:
		done = t.makeItems(j.ref)
	case jobOpen:
		past, done = t.openItems(j.ref, j.past)
	case jobDrop:
		past, done = t.dropItems(j.ref, j.past)
	case jobRetry:
		done = t.makeRetry(t.plan(j.ref))
	case jobForgetRetry:
		done = t.forgetRetried(j.ref)
	case jobClose, jobForget:
		past, done = t.ofPlan(j)
	}
	switch {
	case done:
		t.exec("DELETE FROM jobs WHERE seq = ? AND kind = ?", j.seq, j.kind) // what is added now may have its number
	default:
		t.exec("UPDATE jobs SET seq = (SELECT max(seq) + 1 FROM jobs), past = coalesce(?, past) WHERE seq = ? AND kind = ?", past, j.seq, j.kind)
	}
}

// ofPlan does as much of a job for a plan as the budget allows; if the plan is there, and what the job is for.
func (t *tx) ofPlan(j job) (past any, done bool) {
	if !t.query(planThere, j.ref).one() {
		return nil, true
	}
	switch p := t.plan(j.ref); {
	case j.kind == jobClose:
		return t.closeTasks(j.ref, j.pastID)
	case j.kind == jobForget && p.State == plan.PlanAbandoned:
		done, _ = t.DeleteTasks(t.ctx, p)
		return nil, done
	}
	return nil, true
}

const rootsOf = "SELECT " + taskColumns + `, g.waits FROM tasks AS t INDEXED BY tasks_root LEFT JOIN gates AS g ON g.n = t.n
	WHERE ` + isRoot + ` AND t.plan = ? LIMIT ? + 0`

// finallyOf are the tasks of finally of a plan that holds them no more. Some wait for others of finally.
const finallyOf = "SELECT " + taskColumns + `, g.waits FROM tasks AS t INDEXED BY tasks_finally LEFT JOIN gates AS g ON g.n = t.n
	WHERE ` + isForEnd + ` AND t.plan = ? LIMIT ? + 0`

// releaseRoots releases the tasks of a plan that wait for nothing.
func (t *tx) releaseRoots(n int64) (done bool) {
	most, query := t.budget, rootsOf
	if p := t.planIn(n); p != nil {
		if most = min(most, max(0, p.Counts.Held)); p.InFinally() {
			query = finallyOf
		}
	}
	roots := make([]taskRow, 0, most)
	var waiting []int64
	var along []taskRow
	for r := t.fresh(query, n, t.budget); r.next(); {
		row, g := r.task(), join{waits: r.int(taskWidth)}
		if row.hold == forEnd && g.waiting() > 0 {
			waiting = append(waiting, row.n)
			if row.hold = forParents; row.goesAlong() { // it makes its items once its heads have theirs
				along = append(along, row)
			}
			continue
		}
		row.seen, row.all = g.seen(), true
		roots = append(roots, row)
	}
	looked := len(roots) + len(waiting)
	done = looked < t.budget
	t.budget -= looked
	t.execEach("UPDATE tasks SET gate = ? WHERE n", waiting, forParents)
	t.settle(append(roots, along...))
	return done
}

// eachOf hands over those tasks of a plan behind an id whose status is selected, as far as the budget reaches; it returns the
// last id that it looked at, and whether that was the last one of the plan.
func (t *tx) eachOf(n int64, past []byte, selects func(plan.Status) bool, do func([]taskRow)) (any, bool) {
	if past == nil {
		past = []byte{}
	}
	var found []taskRow
	looked, most := 0, lookAhead*t.budget
	r := t.fresh("SELECT "+taskColumns+" FROM tasks AS t INDEXED BY tasks_plan WHERE t.plan = ? AND t.id > ? ORDER BY t.id LIMIT ? + 0", n, past, most)
	for len(found) < t.budget && r.next() {
		looked++
		row := r.task()
		past = row.id.ID[:]
		if selects(row.status) {
			found = append(found, row)
		}
	}
	full := len(found) == t.budget
	r.close()
	t.budget -= max(len(found), looked/lookAhead)
	do(found)
	return past, looked < most && !full
}

func (t *tx) closeTasks(n int64, past []byte) (any, bool) {
	p := t.plan(n)
	if p.Closing == plan.Open || p.State.Ended() {
		return nil, true
	}
	return t.eachOf(n, past, rules.Pending, func(found []taskRow) { t.settle(found) })
}
