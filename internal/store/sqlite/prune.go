package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/plan"
)

func (s *Store) DeletePlan(ctx context.Context, id plan.PlanID, budget int) (more bool, err error) {
	err = s.write(ctx, func(t *tx) error {
		more, err = engine.DeletePlan(ctx, t, id, budget)
		return err
	})
	return more, err
}

func (s *Store) Prune(ctx context.Context, keep time.Duration, budget int) (plans int, more bool, err error) {
	err = s.write(ctx, func(t *tx) error {
		plans, more, err = engine.Prune(ctx, t, keep, budget)
		t.forgetInstances()
		return err
	})
	if err != nil {
		return 0, false, err
	}
	left, err := s.vacuum(ctx, budget, false)
	return plans, more || left, err
}

func (t *tx) ToDelete(_ context.Context, id plan.PlanID) (*planRow, error) {
	for _, p := range t.plansWhere("WHERE id = ?", id.ID[:]) {
		return p, nil
	}
	return nil, fmt.Errorf("plan %s: %w", id, plan.ErrNotFound)
}

func (t *tx) Deletion(p *planRow) rules.Deletion {
	return rules.Deletion{Title: p.Title(), State: p.State, Begun: p.deleting}
}

func (t *tx) BeginDeletion(_ context.Context, p *planRow) (bool, error) {
	p.deleting, p.dirty = true, true
	return true, nil
}

func (t *tx) DeleteEmpty(_ context.Context, p *planRow) error {
	delete(t.plans, p.n)
	t.dropPack(p)
	t.exec("UPDATE queues SET name = char(1) || lower(hex(id)), threads = ?, unlimited = 0, settings = '' WHERE name = ? AND queued = 0 AND active = 0",
		threadsGone, rules.JobQueue(p.ID)) // as DeleteQueue does
	t.exec("DELETE FROM plans WHERE n = ?", p.n)
	t.exec("DELETE FROM files WHERE plan = ?", p.n)
	t.exec("DELETE FROM jobs WHERE kind IN (?, ?, ?) AND ref = ?", jobRoots, jobClose, jobForget, p.n)
	return nil
}

// The plans that ExpiredPlans finds.
var (
	deletingPlans = "INDEXED BY plans_leaving WHERE leaving = 1 ORDER BY n LIMIT ? + 0"
	overPlans     = "INDEXED BY plans_over WHERE ended > 0 AND keep > 0 AND ended + keep / 1000 < ?1 AND ended + keep / 1000 + " + lateBy("plans.ended") + " < ?1 AND leaving = 0 " +
		"ORDER BY ended + keep / 1000 LIMIT ?2 + 0"
	oldPlans = "INDEXED BY plans_old WHERE ended > 0 AND keep = 0 AND ended < ?1 AND ended + " + lateBy("plans.ended") + " < ?1 AND leaving = 0 ORDER BY ended LIMIT ?2 + 0"
)

func (t *tx) plansWhere(condition string, args ...any) (found []*planRow) {
	for r := t.query("SELECT "+planColumns+" FROM plans "+condition, args...); r.next(); {
		p := r.plan()
		if there := t.plans[p.n]; there != nil {
			p = there
		}
		t.keep(p)
		found = append(found, p)
	}
	return found
}

// dying is a task that is to be deleted, and how many rows that is.
type dying struct {
	taskRow
	cost int
}

const dyingColumns = taskColumns + ", 1 + b.parents + (SELECT coalesce(max(seq), 0) FROM logs WHERE task = t.n)"

func (t *tx) dying(query string, args ...any) (found []dying) {
	for r := t.fresh(query, args...); r.next(); {
		found = append(found, dying{r.task(), int(r.int(taskWidth))})
	}
	return found
}

// DeleteTasks implements engine.Deleter. A foreach task goes before its items, so that nobody sees it
// without them.
func (t *tx) DeleteTasks(_ context.Context, p *planRow) (done bool, err error) {
	most := t.budget
	found := t.dying("SELECT "+dyingColumns+" FROM tasks AS t INDEXED BY tasks_plan CROSS JOIN bodies AS b ON b.n = t.n WHERE t.plan = ? ORDER BY t.id LIMIT ? + 0",
		p.n, most)
	of := each(found, func(d *dying) int64 { return d.of }) // 0 is none's
	first := t.dying("SELECT "+dyingColumns+` FROM json_each(?) AS j CROSS JOIN tasks AS t ON t.n = j.value CROSS JOIN bodies AS b ON b.n = t.n`,
		list(distinct(of)))
	chunk := t.affordable(slices.Concat(first, found))
	t.deleteRows(chunk)
	return len(found) < most && t.budget > 0, nil
}

// affordable returns the tasks that the budget allows to be deleted now, and takes them off it. Where it does not allow a single one, some
// of what belongs to the first is deleted.
func (t *tx) affordable(tasks []dying) (chunk []taskRow) {
	taken := map[int64]bool{}
	for _, d := range tasks {
		switch {
		case taken[d.n]:
		case d.cost <= t.budget:
			t.budget -= d.cost
			taken[d.n] = true
			chunk = append(chunk, d.taskRow)
		case len(chunk) == 0:
			t.deletePart(d.n)
			return nil
		default:
			t.budget = 0 // nothing more is taken
		}
	}
	return chunk
}

// deletePart deletes some of what belongs to a task that has more of it than the budget allows.
func (t *tx) deletePart(n int64) {
	gone := t.exec("DELETE FROM logs WHERE task = ?1 AND seq > (SELECT max(seq) FROM logs WHERE task = ?1) - ?2", n, t.budget)
	if gone == 0 {
		parents := t.parentsOf([]int64{n})[n]
		left := max(0, len(parents)-t.budget)
		t.deleteEdges(n, parents[left:])
		t.exec("UPDATE bodies SET needs = ?, parents = ? WHERE n = ?", packParents(parents[:left]), left, n)
	}
	t.budget = 0
}

// deleteEdges deletes edges of a child.
func (t *tx) deleteEdges(child int64, parents []int64) {
	for _, p := range parents {
		t.exec(cutEdge, p, child)
	}
}

// deleteRows deletes tasks that are not active, and all that belongs to them. The edges to their children are the children's.
func (t *tx) deleteRows(tasks []taskRow) {
	if len(tasks) == 0 {
		return
	}
	for i := range tasks {
		r := &tasks[i]
		if p := t.plan(r.plan); p != nil {
			rules.Count(&p.Counts, r.counted(), -1)
		}
		rules.CountInQueue(&t.queue(r.queue).Queue, r.status, -1)
	}
	ns := list(numbers(tasks))
	t.dropResults(ns)
	for child, parents := range t.parentsOf(numbers(tasks)) {
		t.deleteEdges(child, parents)
	}
	for _, from := range []string{
		"tasks WHERE n", "bodies WHERE n", "outputs WHERE n", "gates WHERE n", "frozen WHERE n", "foreachs WHERE n", "lists WHERE of",
		"logs WHERE task", "rolled WHERE task",
	} {
		t.exec("DELETE FROM "+from+" IN (SELECT value FROM json_each(?))", ns)
	}
	t.exec("DELETE FROM jobs WHERE kind IN (?, ?, ?, ?) AND ref IN (SELECT value FROM json_each(?))", jobRelease, jobItems, jobOpen, jobDrop, ns)
}

// vacuum gives free pages back to the system, at most budget, and reports whether more are left. With
// half, it leaves as many as there are pages in use.
func (s *Store) vacuum(ctx context.Context, budget int, half bool) (more bool, err error) {
	if err := s.lock(ctx); err != nil {
		return false, err
	}
	defer s.unlock()
	most := int64(cmp.Or(max(budget, 0), protocol.DefaultBudget))
	free := s.number("PRAGMA freelist_count")
	if half {
		free = 2*free - s.number("PRAGMA page_count")
	}
	if free > 0 && s.w.err == nil {
		if s.hook != nil {
			if err := s.hook(false); err != nil {
				return false, err
			}
		}
		s.w.script(fmt.Sprintf("PRAGMA incremental_vacuum(%d)", min(free, most)))
		s.w.script("PRAGMA wal_checkpoint(PASSIVE)") // the file itself shrinks with a checkpoint
		if s.hook != nil && s.w.err == nil {
			if err := s.hook(true); err != nil {
				return false, err
			}
		}
	}
	if err := s.w.clear(); err != nil {
		return false, s.translate(err)
	}
	return free > most, nil
}
