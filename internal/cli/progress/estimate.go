package progress

import (
	"time"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// guess stands for the duration of a task without an estimate, as it does in a task's rank. What tasks really take scales it.
const guess = time.Second

// least is what the mean of other tasks must come to, to say anything about the last few: what they take themselves is not known, and
// below that the truth comes sooner than the guess is of use.
const least = 10 * time.Second

// enough is how many tasks must have ended before their durations say anything about those to come.
const enough = 3

// An estimator tells how long what is left will take from the tasks' estimates, scaled by how long those took that have ended. Rank is
// the longest path to the plan's end by the same estimates, so that it gives the other bound: no number of threads makes a plan
// shorter than that.
type estimator struct {
	tasks map[plan.TaskID]weight

	unfinished   time.Duration // estimates of the tasks that have not ended
	planned      time.Duration // estimates of those that were measured,
	spent        time.Duration // and what they took
	measured     int
	hasEstimates bool // a person gave some: they count from the start
}

type weight struct {
	estimate time.Duration
	rank     time.Duration
	ended    bool
	spread   bool // a foreach task, whose items count in its place
}

func newEstimator() estimator { return estimator{tasks: map[plan.TaskID]weight{}} }

// ended reports whether the task is known to have ended.
func (e *estimator) ended(id plan.TaskID) bool { return e.tasks[id].ended }

// load learns what a task is estimated to take. An item has its foreach task's estimate.
func (e *estimator) load(t *plan.Task) {
	e.hasEstimates = e.hasEstimates || t.Estimate > 0
	w, known := e.tasks[t.ID]
	if known && w.estimate > 0 {
		return
	}
	if !t.Of.IsZero() {
		e.spread(t.Of)
	}
	estimate := t.Estimate
	if estimate <= 0 {
		estimate = guess
	}
	e.set(t.ID, weight{estimate: estimate, rank: time.Duration(t.Rank) * time.Microsecond, ended: w.ended || t.Status.Finished(), spread: w.spread})
}

func (e *estimator) set(id plan.TaskID, w weight) {
	if !w.ended && !w.spread {
		e.unfinished += w.estimate
	}
	e.tasks[id] = w
}

// spread lets the items of a foreach task count in its place.
func (e *estimator) spread(of plan.TaskID) {
	w := e.tasks[of]
	if w.spread {
		return
	}
	if !w.ended {
		e.unfinished -= w.estimate // 0 if the task is not loaded yet
	}
	w.spread = true
	e.tasks[of] = w
}

// item makes the item of a foreach task known that was made since the plan's tasks were loaded.
func (e *estimator) item(c store.Change) {
	if c.Of.IsZero() {
		return
	}
	of := e.tasks[c.Of]
	if _, known := e.tasks[c.Task]; known || of.estimate == 0 {
		return
	}
	e.spread(c.Of)
	e.set(c.Task, weight{estimate: of.estimate, rank: of.rank})
}

// end takes the task out of what is left, and learns from how long it ran if that is known.
func (e *estimator) end(id plan.TaskID, took time.Duration) {
	w, known := e.tasks[id]
	if w.ended {
		return
	}
	if known && !w.spread {
		e.unfinished -= w.estimate
	}
	w.ended = true
	e.tasks[id] = w
	if took >= 0 && known && !w.spread {
		e.planned += w.estimate
		e.spent += took
		e.measured++
	}
}

// left returns how long it will take at the given number of tasks at once, or -1 if nothing tells.
func (e *estimator) left(running map[plan.TaskID]runningTask, parallel int, now time.Time) time.Duration {
	scale := 1.0
	switch {
	case e.measured >= enough && e.planned > 0:
		scale = float64(e.spent) / float64(e.planned)
	case !e.hasEstimates:
		return -1
	}
	work := scale * float64(e.unfinished)
	var path float64
	for id, r := range running {
		w, ok := e.tasks[id]
		if !ok {
			continue
		}
		done := min(float64(now.Sub(r.since)), scale*float64(w.estimate))
		work -= done
		path = max(path, scale*float64(w.rank)-done)
	}
	return time.Duration(max(work/float64(parallel), path, 0))
}
