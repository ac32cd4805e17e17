package model

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/failed"
	"github.com/seed-1177d267/sluice/plan"
)

// read runs do while nothing is written.
func (s *Store) read(ctx context.Context, do func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return do()
}

func (s *Store) Plan(ctx context.Context, id plan.PlanID) (p plan.Plan, err error) {
	err = s.read(ctx, func() error {
		row, err := s.plan(id)
		if err == nil {
			p = row.seen()
		}
		return err
	})
	return p, err
}

// seen is the plan as readers see it.
func (p *planRow) seen() plan.Plan {
	seen := p.Plan
	seen.Key = ""
	return seen
}

func (s *Store) PlanFile(ctx context.Context, id plan.PlanID) (f plan.File, err error) {
	err = s.read(ctx, func() error {
		row, err := s.plan(id)
		if err == nil {
			f = row.file
		}
		return err
	})
	return f, err
}

func (s *Store) Plans(ctx context.Context, q store.PlanQuery) (plans []plan.Plan, err error) {
	var found []*planRow
	err = s.read(ctx, func() error {
		before := s.plans[q.Before]
		older := func(p *planRow) bool {
			if before == nil { // it was deleted meanwhile: this is nearly that
				return q.Before.IsZero() || bytes.Compare(p.ID.ID[:], q.Before.ID[:]) < 0
			}
			return p.n < before.n
		}
		for _, p := range s.plans {
			if (q.Name == "" || p.Name == q.Name) && (q.Run == 0 || p.Run == q.Run) && strings.HasPrefix(p.ID.String(), q.Prefix) &&
				!p.deleting && (q.Source == "" || p.Source == q.Source) && (q.State == nil || p.State == *q.State) && older(p) {
				found = append(found, p)
			}
		}
		slices.SortFunc(found, func(a, b *planRow) int { return cmp.Compare(b.n, a.n) })
		for _, p := range found[:min(len(found), cmp.Or(q.Limit, 100))] {
			plans = append(plans, p.seen())
			if q.NoParams {
				plans[len(plans)-1].Params = nil
			}
		}
		return nil
	})
	return plans, err
}

func (s *Store) Task(ctx context.Context, id plan.TaskID) (out plan.Task, err error) {
	err = s.read(ctx, func() error {
		t, err := s.task(id)
		if err == nil {
			out = t.Task
			out.Progress, out.Batch = s.progress(t), s.rolled[t.ID]
			if t.gathered {
				if err = rules.CheckOutput(t.bytes); err != nil {
					err = fmt.Errorf("output of task %q: %w", t.Key(), err)
				}
			}
		}
		if err == nil {
			out.Output = t.output()
		}
		return err
	})
	return out, err
}

func (s *Store) Tasks(ctx context.Context, q store.TaskQuery) (out []plan.Task, err error) {
	err = s.read(ctx, func() error {
		var found []*task
		for t := range s.candidates(&q) {
			if matches(t, &q) && (!q.Reached || s.progress(t) != nil) {
				found = append(found, t)
			}
		}
		slices.SortFunc(found, func(a, b *task) int {
			if q.Newest {
				a, b = b, a
			}
			return bytes.Compare(a.ID.ID[:], b.ID.ID[:])
		})
		found = slices.Compact(found) // of who needs a parent twice
		for _, t := range found[:min(len(found), cmp.Or(q.Limit, 100))] {
			seen := t.Task
			seen.Progress = s.progress(t)
			if !q.Needs {
				seen.Needs = nil
			}
			if !q.Params {
				seen.Params = nil
			}
			if !q.Output {
				seen.Output = nil
			}
			out = append(out, seen)
		}
		return nil
	})
	return out, err
}

// progress returns what the attempt at a running task said of how far it is; nil if it said nothing.
func (d *db) progress(t *task) *plan.Progress {
	i := d.instances[t.Instance]
	if i == nil || !rules.Reports(t.Status) {
		return nil
	}
	p, said := i.progress[protocol.Claim{Task: t.ID, Attempt: t.Attempt, Token: t.token}]
	if !said {
		return nil
	}
	return &p
}

// candidates yields the tasks among which those are that the query asks for.
func (s *Store) candidates(q *store.TaskQuery) iter.Seq[*task] {
	switch {
	case len(q.IDs) > 0:
		return func(yield func(*task) bool) {
			for _, id := range q.IDs {
				if t, ok := s.tasks[id]; ok && !yield(t) {
					return
				}
			}
		}
	case !q.Of.IsZero():
		if t, ok := s.tasks[q.Of]; ok {
			return slices.Values(t.items)
		}
		return slices.Values[[]*task](nil)
	case !q.Parent.IsZero():
		if t, ok := s.tasks[q.Parent]; ok {
			return slices.Values(t.children)
		}
		return slices.Values[[]*task](nil)
	case !q.Plan.IsZero():
		if p, ok := s.plans[q.Plan]; ok {
			return slices.Values(p.tasks)
		}
		return slices.Values[[]*task](nil)
	}
	return maps.Values(s.tasks)
}

func matches(t *task, q *store.TaskQuery) bool {
	order := bytes.Compare(t.ID.ID[:], q.After.ID[:])
	if q.Newest {
		order = -order
	}
	return (q.Plan.IsZero() || t.Plan == q.Plan) && (!q.NoPlan || t.Plan.IsZero()) && (q.Name == "" || t.Name == q.Name) && (q.Subject == "" || t.Subject == q.Subject) &&
		strings.HasPrefix(t.ID.String(), q.Prefix) && (q.Queue.IsZero() || t.Queue == q.Queue) &&
		(len(q.Statuses) == 0 || rules.Selected(t.Status, q.Statuses)) &&
		(q.Of.IsZero() || t.Of == q.Of) && (q.Parent.IsZero() || slices.Contains(t.Needs, q.Parent)) && (!q.NoItems || t.Of.IsZero()) && (!q.Retried || t.Attempt > 1) &&
		(!q.Began || rules.HasRun(&t.Task)) && (!q.Troubled || rules.Troubled(t.Status, t.Attempt)) && (q.After.IsZero() || order > 0)
}

func (s *Store) Queues(ctx context.Context) (queues []plan.Queue, err error) {
	err = s.read(ctx, func() error {
		for _, q := range s.queues {
			got := q.Queue
			got.Queued, got.Active = 0, 0
			queues = append(queues, got)
		}
		return nil
	})
	sort.Slice(queues, func(a, b int) bool { return queues[a].Name < queues[b].Name })
	return queues, err
}

func (s *Store) CountQueues(ctx context.Context, queues []plan.Queue) error {
	return s.read(ctx, func() error {
		for i := range queues {
			if q := s.queues[queues[i].ID]; q != nil {
				queues[i].Queued, queues[i].Active = q.Queued, q.Active
			}
		}
		return nil
	})
}

func (s *Store) Parents(ctx context.Context, id plan.TaskID) ([]plan.Parent, error) {
	return store.ParentsOf(ctx, s, id)
}

func (s *Store) Failures(ctx context.Context, id plan.TaskID) (json.RawMessage, error) {
	return failed.For(ctx, s, id)
}

func (s *Store) Inputs(ctx context.Context, id plan.TaskID) (in []plan.Input, err error) {
	err = s.read(ctx, func() error {
		t, err := s.task(id)
		if err == nil {
			err = t.checkInputs()
		}
		if err == nil {
			in = t.inputs()
		}
		return err
	})
	return in, err
}

func (s *Store) Log(ctx context.Context, id plan.TaskID, after int64, limit int) (entries []plan.LogEntry, next int64, err error) {
	err = s.read(ctx, func() error {
		t, err := s.task(id)
		if err != nil {
			return err
		}
		from := min(int(after), len(t.log))
		to := min(from+limit, len(t.log))
		entries, next = slices.Clone(t.log[from:to]), int64(to)
		return nil
	})
	return entries, next, err
}

// Changes implements store.Reader. The zero cursor is the beginning.
func (s *Store) Changes(ctx context.Context, after store.Cursor, limit int) (out []store.Change, next store.Cursor, err error) {
	next = after
	err = s.read(ctx, func() error {
		var seq int64
		if after != "" {
			if seq, err = strconv.ParseInt(string(after), 10, 64); err != nil || seq < 0 || seq > int64(len(s.changes)) {
				return fmt.Errorf("%q: %w", after, plan.ErrCursor)
			}
		}
		for _, e := range s.changes[seq:] {
			if len(out) == limit {
				break
			}
			if e.current() {
				out = append(out, e.change())
			}
			next = cursor(e.seq)
		}
		return nil
	})
	return out, next, err
}

func (e entry) change() store.Change {
	if e.task == nil {
		return store.Change{At: e.plan.Modified, Plan: e.plan.ID, Name: e.plan.Name, State: e.plan.State}
	}
	t := e.task
	return store.Change{
		At: t.Modified, Plan: t.Plan, Task: t.ID, Name: t.Name, Of: t.Of, Status: t.Status, Reason: t.Reason, Attempt: t.Attempt,
		Node: t.Node, Detail: t.Detail, Output: t.Output, Allowed: t.Allowed(),
	}
}

func (s *Store) Now(context.Context) (time.Time, error) { return s.now().UTC(), nil }

func (s *Store) Latest(ctx context.Context) (at store.Cursor, err error) {
	err = s.read(ctx, func() error {
		at = cursor(int64(len(s.changes)))
		return nil
	})
	return at, err
}

func cursor(seq int64) store.Cursor { return store.Cursor(strconv.FormatInt(seq, 10)) }
