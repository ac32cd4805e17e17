package mongodb

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

const (
	reservedFor = 2 * time.Second // whoever reserved a run and has not used it by then is taken for dead
	reservedNap = 10 * time.Millisecond
)

// CreatePlan implements store.Admin.
func (s *Store) CreatePlan(ctx context.Context, p plan.Plan) (plan.Plan, error) {
	if err := s.Fits(ctx, p, nil); err != nil {
		return plan.Plan{}, err
	}
	if err := rules.CheckFile(p.File); err != nil {
		return plan.Plan{}, err
	}
	now, err := s.Now(ctx)
	if err != nil {
		return plan.Plan{}, err
	}
	if p.ID.IsZero() {
		p.ID.ID = plan.NewID(now)
	}
	doc := planDoc{
		ID: oid(p.ID.ID), Name: p.Name, State: plan.PlanSubmitting, OnFailure: p.OnFailure, Finally: p.Finally, Overlap: p.Overlap, Priority: p.Priority, Params: text(p.Params), Secrets: p.Secrets, By: p.By, Source: p.Source, Key: p.Key, Request: p.Request, Own: p.Own,
		Keep: p.Keep, Timeout: p.Timeout, Size: p.Size, Ctime: now, Mtime: now,
	}
	if p.File != (plan.File{}) {
		doc.File = &planFileDoc{p.File.Text, p.File.Dir}
	}
	for {
		there, err := wire.FindOne[planDoc](ctx, s.plans, d("_id", doc.ID), noFile)
		if err == nil && there == nil && p.Key != "" {
			there, err = wire.FindOne[planDoc](ctx, s.plans, d("key", p.Key), noFile)
		}
		if err != nil {
			return plan.Plan{}, err
		}
		if there != nil {
			return there.domain(), nil
		}
		other, err := s.otherRun(ctx, &p)
		if err == nil {
			err = rules.CheckOverlap(&p, other)
		}
		if err != nil {
			return plan.Plan{}, err
		}
		if doc.Run, err = s.nextRun(ctx, p.Name); err != nil {
			return plan.Plan{}, err
		}
		mine, err := s.reserve(ctx, &doc, now)
		if err != nil {
			return plan.Plan{}, fmt.Errorf("plan %q: %w", p.Name, err)
		}
		if !mine {
			continue
		}
		taken, err := s.Insert(ctx, s.plans, doc) // the index "alone" refuses one of two that start at once
		if err == nil {
			_, err = s.Remove(ctx, s.runs, d("_id", doc.title(), "plan", doc.ID))
		}
		if err != nil {
			return plan.Plan{}, fmt.Errorf("plan %q: %w", p.Name, err)
		}
		if taken == 0 {
			return doc.domain(), nil
		}
	}
}

// otherRun returns what rules.CheckOverlap asks about. Some of these runs allow overlap, and are not in the index "alone".
func (s *Store) otherRun(ctx context.Context, p *plan.Plan) (*plan.Plan, error) {
	if p.Overlap != plan.OverlapSkip {
		return nil, nil
	}
	doc, err := wire.FindOne[planDoc](ctx, s.plans,
		d("state", d("$in", bson.A{plan.PlanSubmitting, plan.PlanRunning}), "name", p.Name, "_id", d("$ne", oid(p.ID.ID))), wire.Query{Fields: noFile.Fields, Hint: plansState})
	if err != nil || doc == nil {
		return nil, err
	}
	other := doc.domain()
	return &other, nil
}

// nextRun returns the run after the last of a name. Plans are asked first: the run of a plan is noted before the plan goes.
func (s *Store) nextRun(ctx context.Context, name string) (run int, err error) {
	last, err := wire.FindOne[planDoc](ctx, s.plans, d("name", name), wire.Query{Sort: d("name", -1, "run", -1), Fields: ones("run")})
	if err != nil {
		return 0, err
	}
	gone, err := wire.FindOne[highestRun](ctx, s.runs, d("_id", name), wire.Query{})
	if last != nil {
		run = last.Run
	}
	if gone != nil {
		run = max(run, gone.Run)
	}
	return run + 1, err
}

// reserve reports whether the plan may be inserted with its run; else it has waited a moment for the one that may.
func (s *Store) reserve(ctx context.Context, p *planDoc, now time.Time) (mine bool, err error) {
	taken, err := s.Insert(ctx, s.runs, runDoc{p.title(), p.ID, now})
	if err != nil || taken == 0 {
		return err == nil, err
	}
	r, err := wire.FindOne[runDoc](ctx, s.runs, d("_id", p.title()), wire.Query{})
	if err != nil || r == nil {
		return false, err
	}
	if r.Plan == p.ID {
		return true, nil
	}
	if now, err = s.Now(ctx); err != nil {
		return false, err
	}
	if now.Sub(r.At) > reservedFor {
		return s.UpdateOne(ctx, s.runs, d("_id", r.Title, "plan", r.Plan), d("$set", d("plan", p.ID, "at", now)))
	}
	return false, wire.Nap(ctx, rand.N(reservedNap))
}

// Ready implements store.Admin.
func (s *Store) Ready(ctx context.Context, id plan.PlanID) error {
	deadline, err := s.checkReady(ctx, id)
	if err != nil {
		return err
	}
	set := d("state", plan.PlanRunning, "fresh", true)
	set = addIf(set, !deadline.IsZero(), "deadline", deadline)
	ready, err := s.UpdateOne(ctx, s.plans, d("_id", oid(id.ID), "state", plan.PlanSubmitting, "closing", nil), d("$set", set, "$currentDate", d("mtime", true)))
	if err != nil {
		return err
	}
	p, err := s.plan(ctx, id)
	if err != nil {
		return err
	}
	if !ready && (p.State == plan.PlanAbandoned || p.State == plan.PlanSubmitting) {
		return fmt.Errorf("plan %s: %w", p.title(), plan.ErrPlanEnded)
	}
	if !p.Fresh {
		return nil
	}
	return s.start(ctx, p.ID)
}

// checkReady counts the tasks of a plan that is to become ready: until then they only grow in number. It returns
// the deadline of a plan that begins now.
func (s *Store) checkReady(ctx context.Context, id plan.PlanID) (deadline time.Time, err error) {
	p, err := s.plan(ctx, id)
	if err != nil || p.State != plan.PlanSubmitting || p.Closing != plan.Open {
		return deadline, err
	}
	known := p.domain()
	n, err := s.in(ctx, p)
	if err == nil {
		err = rules.CheckReady(&known, n)
	}
	if err == nil && p.Timeout > 0 {
		var now time.Time
		now, err = s.Now(ctx)
		rules.Begin(&known, now)
	}
	return known.Deadline, err
}

// in counts the tasks of a plan that says with how many it is submitted.
func (s *Store) in(ctx context.Context, p *planDoc) (int, error) {
	if p.Size == 0 {
		return 0, nil
	}
	type count struct {
		N int `bson:"n"`
	}
	counts, err := wire.Aggregate[count](ctx, s.tasks, bson.A{d("$match", d("plan", p.ID)), d("$count", "n")})
	if err != nil || len(counts) == 0 { // of none there is no count
		return 0, err
	}
	return counts[0].N, nil
}

// start releases what a fresh plan has to release.
func (s *Store) start(ctx context.Context, id bson.ObjectID) error {
	return s.inRound(ctx, 0, func(r *round) error { return r.job(ctx, workLook, id) })
}

// Adopt implements store.Admin.
func (s *Store) Adopt(ctx context.Context, id plan.PlanID) error {
	return s.setPlan(ctx, id, "own", true)
}

// SetPriority implements store.Admin.
func (s *Store) SetPriority(ctx context.Context, id plan.PlanID, priority int) error {
	return s.setPlan(ctx, id, "priority", priority)
}

// setPlan sets a field of a plan that has another value.
func (s *Store) setPlan(ctx context.Context, id plan.PlanID, field string, value any) error {
	changed, err := s.UpdateOne(ctx, s.plans, d("_id", oid(id.ID), field, d("$ne", value)), d("$set", d(field, value), "$currentDate", d("mtime", true)))
	if err == nil && !changed {
		_, err = s.plan(ctx, id)
	}
	return err
}
