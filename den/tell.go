package den

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
)

// about is the log for a line about a claimed task, which names the task's id itself.
func about(log *slog.Logger, c *protocol.ClaimedTask) *slog.Logger {
	switch {
	case c.PlanName != "":
		log = log.With("plan", c.PlanName)
	case !c.Plan.IsZero():
		log = log.With("plan", c.Plan)
	}
	return log.With("task_name", c.Name, "attempt", c.Attempt)
}

// failures is the level at which failed attempts are logged. A person who runs a node for one plan
// follows that plan, and sees failures there.
func (cfg *Config) failures() slog.Level {
	if cfg.Plan.IsZero() {
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

// tellStart and tell log how the attempt began and ended. Success is for readers who look closely:
// a large plan has no line for each task, and no cost for making one.
func (a *attempt) tellStart(ctx context.Context) {
	if a.log.Enabled(ctx, slog.LevelDebug) {
		about(a.log, &a.task).DebugContext(ctx, "task started", "task", a.task.Task)
	}
}

func (a *attempt) tell(ctx context.Context, e *protocol.Ending) {
	level, text := slog.LevelDebug, ""
	switch {
	case e.Status == plan.Succeeded:
		text = "task succeeded"
	case e.Expand:
		text = "items made"
	case e.Reason == plan.ReasonLost:
		level, text = a.failures, "attempt lost"
	case e.Status == plan.Queued:
		text = "task given back"
	case e.Reason == plan.ReasonCancelled: // by a person, which is logged as it is heard
		text = "task stopped"
	case e.Status == plan.Held && e.Reason == plan.ReasonApproval:
		level, text = slog.LevelInfo, "task asks"
	case e.Status == plan.Cancelled:
		text = "task skipped"
	case e.Status == plan.Held:
		level, text = a.failures, "attempt failed; the task is tried again"
	default:
		level, text = a.failures, "task failed"
	}
	if !a.log.Enabled(ctx, level) {
		return
	}
	log := about(a.log, &a.task).With("task", a.task.Task)
	if e.Status == plan.Held && !e.Expand && e.Reason != plan.ReasonApproval {
		log = log.With("delay", e.Delay.Round(time.Millisecond))
	}
	if e.Detail != "" {
		log = log.With("detail", e.Detail)
	}
	log.Log(ctx, level, text)
}

// tellEnded says which plans ended, and how. Their names are known where tasks of theirs ended here just now; how many of their tasks ended how
// the store knows.
func (l *loop) tellEnded(ctx context.Context, ended []protocol.EndedPlan) {
	level := slog.LevelInfo
	if !l.cfg.Plan.IsZero() {
		level = slog.LevelDebug
	}
	if len(ended) == 0 || !l.log.Enabled(ctx, level) {
		return
	}
	names := map[plan.PlanID]string{}
	for _, a := range l.whose {
		names[a.task.Plan] = a.task.PlanName
	}
	for _, e := range ended {
		l.teller.tell(ctx, endedPlan{e, names[e.ID], level})
	}
}

// A teller logs how plans ended. It asks the store for that concurrently with the loop, which must
// not wait for the answers.
type teller struct {
	plans Plans // nil: the store cannot tell
	log   *slog.Logger
	ended chan endedPlan
}

type endedPlan struct {
	protocol.EndedPlan
	name  string // "": not known
	level slog.Level
}

const (
	mostEnded = 1000            // that wait to be told; of more only that they ended is said
	lastEnded = 3 * time.Second // for those that are left when the node ends
)

func (t *teller) tell(ctx context.Context, e endedPlan) {
	if t.plans != nil {
		select {
		case t.ended <- e:
			return
		default:
		}
	}
	t.line(ctx, e)
}

// run tells of what ended until that is closed, and of the rest until ctx ends as well.
func (t *teller) run(ctx context.Context) {
	for e := range t.ended {
		p, err := t.plans.Plan(ctx, e.ID)
		if err != nil { // it may have been deleted
			t.line(ctx, e)
			continue
		}
		e.name = p.Title()
		t.line(ctx, e, countsOf(&p.Counts)...)
	}
}

func (t *teller) line(ctx context.Context, e endedPlan, counts ...any) {
	log := t.log
	if e.name != "" {
		log = log.With("plan", e.name)
	}
	log.Log(ctx, e.level, "plan ended", append([]any{"plan_id", e.ID, "state", e.State}, counts...)...)
}

// countsOf is how many tasks ended in which state, each failure counted once, for a log.
func countsOf(c *plan.Counts) (counts []any) {
	for _, n := range []struct {
		state string
		tasks int
	}{
		{"succeeded", c.Succeeded}, {"failed", c.Failed}, {"allowed", c.Allowed}, {"terminated", c.Terminated}, {"cancelled", c.Cancelled}, {"skipped", c.Skipped},
		{"orphaned", c.Orphaned},
	} {
		if n.tasks > 0 {
			counts = append(counts, n.state, n.tasks)
		}
	}
	return counts
}

// tellLost says which results were dropped.
func (l *loop) tellLost(lost []plan.TaskID) {
	for _, id := range lost {
		log := l.log
		i := slices.IndexFunc(l.whose, func(a *attempt) bool { return a.task.Task == id })
		if i >= 0 && l.whose[i].outside != nil {
			continue // its runner has it
		}
		if i >= 0 {
			log = about(log, &l.whose[i].task)
		}
		log.Warn("result dropped: the claim was lost", "task", id)
	}
}
