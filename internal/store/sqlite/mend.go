package sqlite

import (
	"context"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// mend repairs the faults that an audit found, and returns the held tasks that the budget does not
// reach. The faults may have changed meanwhile: mend moves counts by the difference, and checks
// each task again.
func (t *tx) mend(f *faults) (left []int64) {
	if f.begins {
		if t.meta(auditKey) != f.last { // another process has begun one
			*f = faults{}
			return nil
		}
		t.exec(setMeta, auditKey, t.now)
	}
	for id, missing := range f.counts {
		if p, err := t.planByID(id); err == nil {
			p.Counts = p.Counts.Plus(missing, 1)
		}
	}
	for n, missing := range f.queues {
		if t.query("SELECT 1 FROM queues WHERE n = ?", n).one() {
			q := t.queue(n)
			q.Queued += missing[0]
			q.Active += missing[1]
		}
	}
	for _, seq := range f.jobs {
		t.exec("DELETE FROM jobs WHERE seq = ?", seq)
	}
	for _, j := range f.noted {
		t.add(j.kind, j.ref)
	}
	t.mendPlaces(f.places)
	most := min(len(f.held), max(1, t.budget))
	t.mendHeld(f.held[:most])
	return f.held[most:]
}

// mendPlaces puts queued tasks where they belong.
func (t *tx) mendPlaces(ns []int64) {
	t.execEach(`UPDATE tasks SET lane = CASE WHEN (SELECT own FROM plans WHERE plans.n = tasks.plan) THEN plan ELSE 0 END,
		prio = CASE (SELECT sort FROM queues WHERE queues.n = tasks.queue) WHEN '' THEN -rank ELSE 0 END
		WHERE `+isReady+` AND n`, ns)
}

// mendHeld has held tasks wait for what they are to wait for, or does with them what is to be done.
func (t *tx) mendHeld(ns []int64) {
	rows := t.tasks(ns)
	k := t.knownOf(rows)
	t.budget -= len(rows)
	for i := range rows {
		r := &rows[i]
		if !r.held() || r.hold == forRetry || t.holdsUp(r) {
			continue
		}
		switch of := k.of[r.of]; {
		case r.is(flagExpanding | flagExpanded):
			t.hold(r, forItems)
			are := t.countItems(r)
			are.dirty = true
			if t.foreachs[r.n] = &are; r.is(flagExpanding) {
				t.add(jobItems, r.n)
			}
		case of != nil && !of.is(flagExpanded):
			t.hold(r, forOthers)
		default:
			g := join{}
			if len(k.parents[r.n]) > 0 {
				g = k.join(r)
				t.writeJoins([]join{g})
			}
			r.seen, r.all = g.seen(), g.waiting() == 0
			if t.settle(rows[i:i+1]) > 0 {
				t.hold(r, forParents)
			}
		}
	}
}

// audit returns what some more of the store has of faults; nil: no audit is due.
func (s *Store) audit(ctx context.Context) (f *faults, err error) {
	if at := s.auditing; len(at.left) > 0 {
		f = &faults{held: at.left, next: at}
		f.next.left = nil
		return f, nil
	}
	err = s.read(ctx, func(c *conn) error {
		last := int64(0)
		if r := c.query(getMeta, auditKey); r.one() {
			last = r.int(0)
		}
		at := s.auditing
		if !at.on && !rules.AuditDue(instant(last), s.now()) {
			return nil
		}
		f = &faults{most: s.auditSize, begins: !at.on, last: last, counts: map[plan.PlanID]plan.Counts{}, queues: map[int64][2]int{}}
		if f.begins {
			c.auditQueues(f)
			c.auditQueued(f)
			c.auditJobs(f)
			c.auditApart(f)
		}
		c.auditPlans(f, at)
		return nil
	})
	return f, err
}

// audited takes notice that what was found is mended, but for some held tasks.
func (s *Store) audited(f *faults, left []int64) {
	s.mended.Add(int64(f.len() - len(left)))
	s.auditing = f.next
	s.auditing.left = left
}
