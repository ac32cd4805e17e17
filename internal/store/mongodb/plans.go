package mongodb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// planDoc is a plan as it is kept.
type planDoc struct {
	ID        bson.ObjectID  `bson:"_id"`
	Name      string         `bson:"name"`
	Run       int            `bson:"run"`
	State     plan.Lifecycle `bson:"state"`
	Closing   plan.Closing   `bson:"closing,omitempty"`
	OnFailure plan.OnFailure `bson:"on_failure,omitempty"`
	Params    text           `bson:"params,omitempty"`
	Secrets   []string       `bson:"secrets,omitempty"`
	By        string         `bson:"by,omitempty"`
	Source    string         `bson:"source,omitempty"`
	File      *planFileDoc   `bson:"file,omitempty"` // readers of plans leave it out
	Key       string         `bson:"key,omitempty"`
	Request   string         `bson:"request,omitempty"`
	Own       bool           `bson:"own,omitempty"`
	Keep      time.Duration  `bson:"keep,omitempty"`
	Size      int            `bson:"size,omitempty"`
	Edits     int            `bson:"edits"`
	Fresh     bool           `bson:"fresh,omitempty"`    // it became ready, or was retried, and not all of what that releases is released
	Retry     bson.ObjectID  `bson:"retry,omitempty"`    // the retry that is going on
	Adds      bson.A         `bson:"adds,omitempty"`     // late additions that were confirmed and are not released yet
	Shared    int            `bson:"shared,omitempty"`   // counts how often tasks of no plan were added, or taken back, that need some of it
	Deleting  bool           `bson:"deleting,omitempty"` // its deletion has begun
	Ctime     time.Time      `bson:"ctime"`
	Mtime     time.Time      `bson:"mtime"`
	Ended     time.Time      `bson:"ended,omitempty"`
}

// planFileDoc is a plan.File as it is kept.
type planFileDoc struct {
	Text string `bson:"text"`
	Dir  string `bson:"dir,omitempty"`
}

// noFile reads plans without their files, which may be large.
var noFile = query{fields: d("file", 0)}

func (p *planDoc) title() string { return fmt.Sprintf("%s#%d", p.Name, p.Run) }

func (p *planDoc) domain() plan.Plan {
	return plan.Plan{
		ID: planID(p.ID), Name: p.Name, Run: p.Run, State: p.State, Closing: p.Closing, OnFailure: p.OnFailure, Params: json.RawMessage(p.Params),
		Secrets: p.Secrets, By: p.By, Request: p.Request, Source: p.Source, Own: p.Own, Keep: p.Keep, Size: p.Size, Edits: p.Edits, Created: utc(p.Ctime), Modified: utc(p.Mtime), Ended: utc(p.Ended),
	}
}

// plan reads a plan; plan.ErrNotFound if there is none.
func (s *Store) plan(ctx context.Context, id plan.PlanID) (*planDoc, error) {
	p, err := findOne[planDoc](ctx, s.plans, d("_id", oid(id.ID)), noFile)
	if err == nil && p == nil {
		err = fmt.Errorf("plan %s: %w", id, plan.ErrNotFound)
	}
	return p, err
}

// loadPlans reads plans that the round does not know yet.
func (r *round) loadPlans(ctx context.Context, ids []bson.ObjectID) error {
	var unknown []bson.ObjectID
	for _, id := range ids {
		if _, ok := r.known[id]; !ok {
			unknown = append(unknown, id)
		}
	}
	return r.readPlans(ctx, unknown)
}

// readPlans reads plans, whether the round knows them or not.
func (r *round) readPlans(ctx context.Context, ids []bson.ObjectID) error {
	asked := map[bson.ObjectID]bool{bson.NilObjectID: true}
	var list bson.A
	for _, id := range ids {
		if !asked[id] {
			asked[id] = true
			list = append(list, id)
		}
	}
	if len(list) == 0 {
		return nil
	}
	docs, err := find[planDoc](ctx, r.plans, d("_id", d("$in", list)), query{fields: d(
		"name", 1, "run", 1, "state", 1, "closing", 1, "on_failure", 1, "edits", 1, "retry", 1, "keep", 1)})
	for i := range docs {
		r.known[docs[i].ID] = &docs[i]
	}
	return err
}

// CreatePlan implements store.Admin.
func (s *Store) CreatePlan(ctx context.Context, p plan.Plan) (plan.Plan, error) {
	if err := s.Fits(ctx, p, nil); err != nil {
		return plan.Plan{}, err
	}
	if err := p.File.CheckFile(); err != nil {
		return plan.Plan{}, err
	}
	now, err := s.now(ctx)
	if err != nil {
		return plan.Plan{}, err
	}
	if p.ID.IsZero() {
		p.ID.ID = plan.NewID(now)
	}
	doc := planDoc{
		ID: oid(p.ID.ID), Name: p.Name, State: plan.PlanSubmitting, OnFailure: p.OnFailure, Params: text(p.Params), Secrets: p.Secrets, By: p.By, Source: p.Source, Key: p.Key, Request: p.Request, Own: p.Own,
		Keep: p.Keep, Size: p.Size, Ctime: now, Mtime: now,
	}
	if p.File != (plan.File{}) {
		doc.File = &planFileDoc{p.File.Text, p.File.Dir}
	}
	for {
		there, err := s.plan(ctx, p.ID)
		if err == nil {
			return there.domain(), nil
		}
		if !errors.Is(err, plan.ErrNotFound) {
			return plan.Plan{}, err
		}
		if p.Key != "" {
			switch there, err = findOne[planDoc](ctx, s.plans, d("key", p.Key), noFile); {
			case err != nil:
				return plan.Plan{}, err
			case there != nil:
				return there.domain(), nil
			}
		}
		last, err := findOne[planDoc](ctx, s.plans, d("name", p.Name), query{sort: d("name", -1, "run", -1), fields: d("run", 1)})
		if err != nil {
			return plan.Plan{}, err
		}
		// After the plans: a plan's run is noted before the plan goes.
		gone, err := findOne[highestRun](ctx, s.runs, d("_id", p.Name), query{})
		if err != nil {
			return plan.Plan{}, err
		}
		doc.Run = 1
		if last != nil {
			doc.Run = last.Run + 1
		}
		if gone != nil {
			doc.Run = max(doc.Run, gone.Run+1)
		}
		mine, err := s.reserve(ctx, &doc, now)
		if err != nil {
			return plan.Plan{}, fmt.Errorf("plan %q: %w", p.Name, err)
		}
		if !mine {
			continue
		}
		taken, err := s.insert(ctx, s.plans, doc)
		if err == nil {
			_, err = s.remove(ctx, s.runs, d("_id", doc.title(), "plan", doc.ID))
		}
		if err != nil {
			return plan.Plan{}, fmt.Errorf("plan %q: %w", p.Name, err)
		}
		if taken == 0 {
			return doc.domain(), nil
		}
	}
}

// runDoc reserves a run of a name while its plan is being inserted. The index on name and run would do alone, but servers on PostgreSQL
// take a second to see that two inserts of one key wait for each other.
type runDoc struct {
	Title string        `bson:"_id"`
	Plan  bson.ObjectID `bson:"plan"`
	At    time.Time     `bson:"at"`
}

// highestRun is the highest run of a name of which plans were deleted, among those: no run comes again.
type highestRun struct {
	Name string `bson:"_id"`
	Run  int    `bson:"run"`
}

const (
	reservedFor = 2 * time.Second // whoever reserved a run and has not used it by then is taken for dead
	reservedNap = 10 * time.Millisecond
)

// reserve reports whether the plan may be inserted with its run; else it has waited a moment for the one that may.
func (s *Store) reserve(ctx context.Context, p *planDoc, now time.Time) (mine bool, err error) {
	taken, err := s.insert(ctx, s.runs, runDoc{p.title(), p.ID, now})
	if err != nil || taken == 0 {
		return err == nil, err
	}
	r, err := findOne[runDoc](ctx, s.runs, d("_id", p.title()), query{})
	if err != nil || r == nil {
		return false, err
	}
	if r.Plan == p.ID {
		return true, nil
	}
	if now, err = s.now(ctx); err != nil {
		return false, err
	}
	if now.Sub(r.At) > reservedFor {
		return s.updateOne(ctx, s.runs, d("_id", r.Title, "plan", r.Plan), d("$set", d("plan", p.ID, "at", now)))
	}
	return false, nap(ctx, rand.N(reservedNap))
}

// nap waits.
func nap(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Ready implements store.Admin.
func (s *Store) Ready(ctx context.Context, id plan.PlanID) error {
	if err := s.checkReady(ctx, id); err != nil {
		return err
	}
	ready, err := s.updateOne(ctx, s.plans, d("_id", oid(id.ID), "state", plan.PlanSubmitting, "closing", nil),
		d("$set", d("state", plan.PlanRunning, "fresh", true), "$currentDate", d("mtime", true)))
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

// checkReady counts the tasks of a plan that is to become ready: until then they only grow in number.
func (s *Store) checkReady(ctx context.Context, id plan.PlanID) error {
	p, err := s.plan(ctx, id)
	if err != nil || p.State != plan.PlanSubmitting || p.Closing != plan.Open {
		return err
	}
	n, err := s.in(ctx, p)
	if err != nil {
		return err
	}
	known := p.domain()
	return known.CheckReady(n)
}

// in counts the tasks of a plan that says with how many it is submitted.
func (s *Store) in(ctx context.Context, p *planDoc) (int, error) {
	if p.Size == 0 {
		return 0, nil
	}
	type count struct {
		N int `bson:"n"`
	}
	counts, err := aggregate[count](ctx, s.tasks, bson.A{d("$match", d("plan", p.ID)), d("$count", "n")})
	if err != nil || len(counts) == 0 { // of none there is no count
		return 0, err
	}
	return counts[0].N, nil
}

// start releases what a fresh plan has to release.
func (s *Store) start(ctx context.Context, id bson.ObjectID) error {
	r, err := s.newRound(ctx, 0)
	if err != nil {
		return err
	}
	defer r.end()
	if err := r.job(ctx, workLook, id); err != nil {
		return err
	}
	return r.finishUp(ctx)
}

// finishUp runs and leaves, for calls that do not say what is left.
func (r *round) finishUp(ctx context.Context) error {
	if err := r.run(ctx); err != nil {
		return err
	}
	if _, err := r.leave(ctx); err != nil {
		return err
	}
	if err := r.wrapUp(ctx); err != nil {
		return err
	}
	return r.wake(ctx)
}

// CancelPlan implements store.Admin.
func (s *Store) CancelPlan(ctx context.Context, id plan.PlanID) error {
	p, err := s.plan(ctx, id)
	if err != nil {
		return err
	}
	update := d("$set", d("closing", plan.ClosedByPerson))
	if p.Closing != plan.ClosedByPerson { // else it does not change
		update = append(update, bson.E{Key: "$currentDate", Value: d("mtime", true)})
	}
	closed, err := s.updateOne(ctx, s.plans, d("_id", p.ID, "state", d("$in", bson.A{plan.PlanSubmitting, plan.PlanRunning})), update)
	if err != nil {
		return err
	}
	if !closed {
		return fmt.Errorf("plan %s is %v: %w", p.title(), p.State, plan.ErrPlanEnded)
	}
	r, err := s.newRound(ctx, 0)
	if err != nil {
		return err
	}
	defer r.end()
	if err := r.job(ctx, workClose, p.ID); err != nil {
		return err
	}
	return r.finishUp(ctx)
}

// stopPlans closes those of the plans, in which something failed, that a failure stops.
func (r *round) stopPlans(ctx context.Context, broken []bson.ObjectID) error {
	if err := r.loadPlans(ctx, broken); err != nil {
		return err
	}
	for _, id := range broken {
		p := r.known[id]
		if p == nil || !rules.StopsPlan(plan.OutcomeFailed, p.OnFailure) {
			continue
		}
		closing, changed := rules.Close(p.State, p.Closing, plan.ClosedByFailure)
		if !changed {
			continue
		}
		closed, err := r.updateOne(ctx, r.plans, d("_id", id, "state", p.State, "closing", orNone(p.Closing)),
			d("$set", d("closing", closing), "$currentDate", d("mtime", true)))
		if err != nil {
			return err
		}
		if p.Closing = closing; closed {
			if err := r.job(ctx, workClose, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// clearClosed sees to claimed tasks that came back to plans that were closed meanwhile.
func (r *round) clearClosed(ctx context.Context) error {
	var ids []bson.ObjectID
	for id := range r.returned {
		ids = append(ids, id)
	}
	clear(r.returned)
	if err := r.readPlans(ctx, ids); err != nil {
		return err
	}
	for _, id := range ids {
		if p := r.known[id]; p != nil && p.Closing != plan.Open {
			if err := r.job(ctx, workClose, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// clear cancels what a closed plan still holds or queues, marks what runs if a person closed it, and reports whether nothing is left to
// be cancelled. A foreach task whose items are made ends with these.
func (r *round) clear(ctx context.Context, id bson.ObjectID) (done bool, err error) {
	if err := r.readPlans(ctx, []bson.ObjectID{id}); err != nil {
		return false, err
	}
	p := r.known[id]
	if p == nil || p.Closing == plan.Open || p.State.Ended() {
		return true, nil
	}
	r.touched[id] = true
	delete(r.busy, id)
	if p.Closing == plan.ClosedByPerson {
		n, err := r.updateMany(ctx, r.tasks, d("plan", id, "status", d("$in", activeStatuses), "cancel", nil),
			d("$set", d("cancel", true), "$currentDate", d("mtime", true)))
		if err != nil {
			return false, err
		}
		r.budget -= n
	}
	notItems := bson.A{d("hold", d("$ne", holdItems)), d("expanded", nil)}
	for _, waiting := range []bson.D{d("status", plan.Queued), d("status", plan.Held, "$or", notItems)} {
		for r.budget > 0 {
			docs, err := find[taskDoc](ctx, r.tasks, append(d("plan", id), waiting...), query{fields: d("_id", 1), hint: indexPlan, limit: r.budget})
			if err != nil {
				return false, err
			}
			if len(docs) == 0 {
				break
			}
			ids := make(bson.A, len(docs))
			for i := range docs {
				ids[i] = docs[i].ID
			}
			step := rules.NotStarted(plan.Held, p.Closing) // or queued
			if _, err := r.updateMany(ctx, r.tasks, d("_id", d("$in", ids), "status", d("$in", waitingStatuses)), unstarted(step, stillOpen).bson()); err != nil {
				return false, err
			}
			for i := range docs {
				r.queue = append(r.queue, ended{id: docs[i].ID, outside: true})
			}
			r.budget -= len(docs)
		}
	}
	if r.budget <= 0 {
		return false, nil
	}
	// For the others, all items may have finished before, or the count of items may be damaged.
	expanded, err := find[taskDoc](ctx, r.tasks, d("plan", id, "status", plan.Held, "hold", holdItems, "expanded", true), query{fields: childFields, hint: indexPlan})
	if err != nil {
		return false, err
	}
	_, err = r.settle(ctx, expanded)
	return true, err
}

// endPlans ends those of the plans in which something finished that have nothing unfinished any more.
func (r *round) endPlans(ctx context.Context) error {
	for id := range r.touched {
		if r.busy[id] {
			continue
		}
		if err := r.endPlan(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// endPlan ends a plan if nothing in it is unfinished. It asks an index, and writes only if no task was added and no retry began since it
// read the plan.
func (r *round) endPlan(ctx context.Context, id bson.ObjectID) error {
	delete(r.known, id)
	if err := r.readPlans(ctx, []bson.ObjectID{id}); err != nil {
		return err
	}
	p := r.known[id]
	if p == nil || !rules.MayEnd(p.State, p.Closing, !p.Retry.IsZero()) {
		return nil
	}
	some := func(filter bson.D, hint string) (bool, error) {
		t, err := findOne[taskDoc](ctx, r.tasks, append(d("plan", id), filter...), query{fields: d("_id", 1), hint: hint})
		return t != nil, err
	}
	// This is one query, of an index in which a task keeps its place from its insertion until its
	// end. With one query for each status, a task that goes back for another attempt could move
	// from a status that is still to be asked for to one that was asked for. The query also finds
	// tasks that another program ended, and whose output may still come or is not adopted.
	if is, err := some(d("open", true, "$or", bson.A{d("status", d("$in", openStatuses)), d("ended", nil)}), indexOpen); err != nil || is {
		return err
	}
	// A mark that was lost is not to end the plan: once for a plan that seems to have ended, its tasks are asked without it.
	if is, err := some(d("status", d("$in", openStatuses)), indexPlan); err != nil {
		return err
	} else if is {
		_, err := r.updateMany(ctx, r.tasks, d("plan", id, "status", d("$in", openStatuses), "open", nil), d("$set", d("open", true)))
		return err
	}
	broken, err := some(d("status", d("$gt", plan.Succeeded), "coe", nil), indexPlan)
	if err == nil && !broken {
		// A foreach task that has items was perhaps stopped though none of them was: they decide.
		broken, err = some(d("status", d("$in", bson.A{plan.Terminated, plan.Orphaned}), "coe", nil,
			"$or", bson.A{d("expanded", nil), d("items", d("$in", bson.A{nil, 0}))}), indexPlan)
	}
	if err != nil {
		return err
	}
	byPerson, err := some(d("status", plan.Cancelled, "reason", d("$ne", plan.ReasonSkipped)), indexPlan)
	if err != nil {
		return err
	}
	state := rules.Verdict(p.Closing, broken, byPerson)
	ended, err := r.updateOne(ctx, r.plans, d("_id", id, "state", p.State, "edits", p.Edits, "closing", orNone(p.Closing), "retry", nil),
		d("$set", append(d("state", state), r.until(p.Keep)...), "$unset", d("fresh", 1), "$currentDate", d("mtime", true, "ended", true)))
	if err != nil {
		return err
	}
	if ended {
		r.over = append(r.over, plan.EndedPlan{ID: planID(id), State: state})
	}
	return nil
}

// Adopt implements store.Admin. Claims limited to one plan are O(log n) here for all plans.
func (s *Store) Adopt(ctx context.Context, id plan.PlanID) error {
	changed, err := s.updateOne(ctx, s.plans, d("_id", oid(id.ID), "own", d("$ne", true)), d("$set", d("own", true), "$currentDate", d("mtime", true)))
	if err == nil && !changed {
		_, err = s.plan(ctx, id)
	}
	return err
}

// CancelTask implements store.Admin.
func (s *Store) CancelTask(ctx context.Context, id plan.TaskID) error {
	for {
		t, err := s.exists(ctx, id)
		if err != nil {
			return err
		}
		if err := rules.CheckCancelTask(t.named()); err != nil {
			return err
		}
		if t.Status.Active() {
			marked, err := s.updateOne(ctx, s.tasks, d("_id", t.ID, "status", d("$in", activeStatuses)), t.mark())
			if err != nil || marked {
				return err
			}
			continue
		}
		r, err := s.newRound(ctx, 0)
		if err != nil {
			return err
		}
		cancel := r.cancelWaiting
		if t.endsWithItems() {
			cancel = r.cancelExpanded
		}
		done, err := cancel(ctx, t)
		r.end()
		if err != nil || done {
			return err
		}
	}
}

// mark notes that a person wants the task ended. A task that is marked does not change by it.
func (t *taskDoc) mark() bson.D {
	update := d("$set", d("cancel", true))
	if !t.Cancel {
		update = append(update, bson.E{Key: "$currentDate", Value: d("mtime", true)})
	}
	return update
}

// cancelWaiting cancels a task that nobody has, and releases what waits for it. done is false if the task changed meanwhile.
func (r *round) cancelWaiting(ctx context.Context, t *taskDoc) (done bool, err error) {
	done, err = r.updateOne(ctx, r.tasks, d("_id", t.ID, "status", t.Status, "gen", orNone(t.Gen)), unstarted(rules.CancelledByPerson(t.Status), stillOpen).bson())
	if err != nil || !done {
		return done, err
	}
	r.queue = append(r.queue, ended{id: t.ID})
	return true, r.finishUp(ctx)
}

// cancelExpanded cancels the items of a foreach task, which ends with the last of them. The work is written down first: it finds the mark,
// or has nothing to do.
func (r *round) cancelExpanded(ctx context.Context, t *taskDoc) (done bool, err error) {
	if err := r.job(ctx, workCancel, t.ID); err != nil {
		return false, err
	}
	done, err = r.updateOne(ctx, r.tasks, d("_id", t.ID, "status", plan.Held, "hold", holdItems, "expanded", true, "gen", t.Gen), t.mark())
	if err != nil {
		return false, err
	}
	return done, r.finishUp(ctx)
}
