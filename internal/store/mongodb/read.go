package mongodb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// Plan implements store.Reader.
func (s *Store) Plan(ctx context.Context, id plan.PlanID) (plan.Plan, error) {
	p, err := s.plan(ctx, id)
	if err != nil {
		return plan.Plan{}, err
	}
	counted := []plan.Plan{p.domain()}
	err = s.count(ctx, counted)
	return counted[0], err
}

// PlanFile implements store.Reader.
func (s *Store) PlanFile(ctx context.Context, id plan.PlanID) (plan.File, error) {
	p, err := wire.FindOne[planDoc](ctx, s.plans, d("_id", oid(id.ID)), wire.Query{Fields: ones("file")})
	switch {
	case err != nil:
		return plan.File{}, err
	case p == nil:
		return plan.File{}, fmt.Errorf("plan %s: %w", id, plan.ErrNotFound)
	case p.File == nil:
		return plan.File{}, nil
	}
	return plan.File{Text: p.File.Text, Dir: p.File.Dir}, nil
}

// Plans implements store.Reader.
func (s *Store) Plans(ctx context.Context, q store.PlanQuery) ([]plan.Plan, error) {
	var filter bson.D
	filter = addIf(filter, q.Name != "", "name", q.Name)
	filter = addIf(filter, q.Run != 0, "run", q.Run)
	filter = addIf(filter, q.Source != "", "source", q.Source)
	filter = addIf(filter, q.State != nil, "state", q.State)
	ids, err := idRange(q.Prefix, plan.ID{}, true)
	if err != nil {
		return nil, nil // no id has such a prefix
	}
	if len(ids) == 0 {
		ids = wire.Addressable
	}
	filter = append(filter, bson.E{Key: "_id", Value: ids})
	if !q.Before.IsZero() {
		older, err := s.olderThan(ctx, q.Before, q.Name)
		if err != nil {
			return nil, err
		}
		filter = append(filter, bson.E{Key: "$and", Value: bson.A{older}})
	}
	order := d("ctime", -1, "run", -1, "_id", -1)
	if q.Name != "" {
		order = d("run", -1)
	}
	read := wire.Query{Fields: noFile.Fields, Sort: order, Limit: cmp.Or(q.Limit, 100)}
	if q.NoParams {
		read.Fields = d("file", 0, "params", 0)
	}
	docs, err := wire.Find[planDoc](ctx, s.plans, filter, read)
	if err != nil {
		return nil, err
	}
	var out []plan.Plan
	for i := range docs {
		out = append(out, docs[i].domain())
	}
	if !q.NoCounts {
		err = s.count(ctx, out)
	}
	return out, err
}

// olderThan matches the plans that come after one in the order of Plans.
func (s *Store) olderThan(ctx context.Context, id plan.PlanID, name string) (bson.D, error) {
	p, err := s.plan(ctx, id)
	switch {
	case errors.Is(err, plan.ErrNotFound):
		return d("_id", d("$lt", oid(id.ID))), nil // it was deleted meanwhile: this is nearly that
	case err != nil:
		return nil, err
	case p.Name == name:
		return d("run", d("$lt", p.Run)), nil
	}
	return d("$or", bson.A{
		d("ctime", d("$lt", p.Ctime)),
		d("ctime", p.Ctime, "run", d("$lt", p.Run)),
		d("ctime", p.Ctime, "run", p.Run, "_id", d("$lt", p.ID)),
	}), nil
}

// idRange matches ids that begin with digits, and come behind one in the order asked for.
func idRange(prefix string, after plan.ID, newest bool) (bson.D, error) {
	var span bson.D
	if prefix != "" {
		const digits = 24
		if len(prefix) > digits {
			return nil, fmt.Errorf("%q is longer than an id", prefix)
		}
		first, err := bson.ObjectIDFromHex(prefix + strings.Repeat("0", digits-len(prefix)))
		if err != nil {
			return nil, err
		}
		last, err := bson.ObjectIDFromHex(prefix + strings.Repeat("f", digits-len(prefix)))
		if err != nil {
			return nil, err
		}
		if first.Hex()[:len(prefix)] != prefix {
			return nil, fmt.Errorf("%q: ids have lower-case digits", prefix)
		}
		span = d("$gte", first, "$lte", last)
	}
	switch {
	case after.IsZero():
	case newest:
		span = append(span, bson.E{Key: "$lt", Value: oid(after)})
	default:
		span = append(span, bson.E{Key: "$gt", Value: oid(after)})
	}
	return span, nil
}

// count fills the counts of the tasks of plans.
func (s *Store) count(ctx context.Context, plans []plan.Plan) error {
	if len(plans) == 0 {
		return nil
	}
	place := make(map[bson.ObjectID]*plan.Counts, len(plans))
	ids := make(idList, len(plans))
	for i := range plans {
		ids[i] = oid(plans[i].ID.ID)
		place[ids[i]] = &plans[i].Counts
	}
	type group struct {
		Key struct {
			Plan    bson.ObjectID `bson:"plan"`
			Status  plan.Status   `bson:"status"`
			Reason  plan.Reason   `bson:"reason"`
			Lenient bool          `bson:"coe"`
			Items   bool          `bson:"items"`
			Budget  bool          `bson:"budget"`
		} `bson:"_id"`
		N int `bson:"n"`
	}
	counts, err := wire.Aggregate[group](ctx, s.tasks, bson.A{
		d("$match", d("plan", wire.AnyOf(ids))),
		d("$group", d("_id", d("plan", "$plan", "status", "$status", "reason", "$reason", "coe", "$coe", "items", "$expanded", "budget", "$budget"), "n", d("$sum", 1))),
	})
	for _, c := range counts {
		if p := place[c.Key.Plan]; p != nil { // a list of plans, which another program wrote, matches too
			rules.Count(p, rules.Counted{Status: c.Key.Status, Reason: c.Key.Reason, ContinueOnError: c.Key.Lenient, Items: c.Key.Status.Gathers(c.Key.Items, c.Key.Budget)}, c.N)
		}
	}
	return err
}

// task reads fields of a task; plan.ErrNotFound if there is none.
func (s *Store) task(ctx context.Context, id plan.TaskID, fields bson.D) (*taskDoc, error) {
	t, err := wire.FindOne[taskDoc](ctx, s.tasks, d("_id", oid(id.ID)), wire.Query{Fields: fields})
	if err == nil && t == nil {
		err = fmt.Errorf("task %s: %w", id, plan.ErrNotFound)
	}
	return t, err
}

// Task implements store.Reader.
func (s *Store) Task(ctx context.Context, id plan.TaskID) (plan.Task, error) {
	t, err := s.task(ctx, id, d("stdout", 0, "stderr", 0))
	if err != nil {
		return plan.Task{}, err
	}
	out := t.domain()
	if t.Rolling {
		out.Batch = plan.ID(t.Gate)
	}
	progress, err := s.progressOf(ctx, []taskDoc{*t})
	if err != nil {
		return plan.Task{}, err
	}
	out.Progress = t.reached(progress)
	parents, err := s.parentIDs(ctx, t)
	if err != nil {
		return plan.Task{}, err
	}
	out.Needs = needs(parents)
	if t.Gathered {
		if err := rules.CheckOutput(t.Bytes); err != nil {
			return out, fmt.Errorf("output of task %q: %w", t.key(), err)
		}
	}
	out.Output, err = s.outputOf(ctx, t)
	return out, err
}

func needs(parents []bson.ObjectID) []plan.TaskID {
	if len(parents) == 0 {
		return nil
	}
	ids := make([]plan.TaskID, 0, len(parents))
	for _, id := range parents {
		if !id.IsZero() { // else another program's, and no id
			ids = append(ids, taskID(id))
		}
	}
	return ids
}

// Tasks implements store.Reader.
func (s *Store) Tasks(ctx context.Context, q store.TaskQuery) ([]plan.Task, error) {
	filter, none := taskFilter(&q)
	if none {
		return nil, nil
	}
	if !q.Parent.IsZero() {
		one, err := s.needing(ctx, q.Parent)
		if err != nil {
			return nil, err
		}
		filter = append(filter, one...)
	}
	var progress map[saidBy]*plan.Progress
	if q.Reached {
		var err error
		if progress, err = s.progress(ctx, d("progress.0", d("$exists", true))); err != nil || len(progress) == 0 {
			return nil, err
		}
		filter = onlyRunning(filter, "_id", d("$in", idsOfReached(progress)))
	}
	fields := d("stdout", 0, "stderr", 0)
	if !q.Params {
		fields = append(fields, d("params", 0, "text", 0)...)
	}
	if !q.Output {
		fields = append(fields, d("output", 0, "large", 0)...)
	}
	brief := q.Brief && !q.Params && !q.Output && !q.Reached
	if brief {
		fields = ones("plan of index name status reason started ended mtime")
		if q.Needs {
			fields = append(fields, ones("needs joins def")...)
		}
	}
	look := wire.Query{Fields: fields, Sort: d("_id", direction(q.Newest)), Limit: cmp.Or(q.Limit, 100)}
	if !q.Plan.IsZero() && q.Name == "" && len(q.IDs) == 0 && q.Of.IsZero() && len(q.Statuses) == 0 && !q.Reached {
		look.Hint = indexList
	}
	if bySubject(&q) {
		look.Hint = indexSubject
	}
	docs, err := wire.Find[taskDoc](ctx, s.tasks, filter, look)
	if err != nil {
		return nil, err
	}
	if !q.Reached && !brief {
		if progress, err = s.progressOf(ctx, docs); err != nil {
			return nil, err
		}
	}
	if q.Reached {
		docs = slices.DeleteFunc(docs, func(t taskDoc) bool { return t.reached(progress) == nil })
	}
	out := make([]plan.Task, len(docs))
	for i := range docs {
		out[i] = docs[i].domain()
		out[i].Progress = docs[i].reached(progress)
		if q.Needs {
			parents, err := s.parentIDs(ctx, &docs[i])
			if err != nil {
				return nil, err
			}
			out[i].Needs = needs(parents)
		}
		if !q.Params {
			out[i].Params = nil
		}
	}
	return out, nil
}

// needing matches the tasks that need one. Only those that are held have an index by that: the server looks at all of their plan, and tells
// of these alone.
func (s *Store) needing(ctx context.Context, parent plan.TaskID) (bson.D, error) {
	joins, err := wire.Find[joinDoc](ctx, s.joins, d("needs", wire.AnyOf(idList{oid(parent.ID)})), wire.Query{Fields: ones("child"), Hint: "needs"})
	if err != nil {
		return nil, err
	}
	if len(joins) == 0 {
		return d("needs", oid(parent.ID)), nil
	}
	return d("$or", bson.A{d("needs", oid(parent.ID)), d("_id", d("$in", childrenOf(joins)))}), nil
}

// bySubject reports whether the index of unfinished tasks by their subject has all that the query can match.
func bySubject(q *store.TaskQuery) bool {
	return q.Subject != "" && len(q.Statuses) > 0 && !slices.ContainsFunc(q.Statuses, plan.Status.Finished) && len(q.IDs) == 0
}

// taskFilter makes a query of ours one of the server's; none is true if nothing can match.
func taskFilter(q *store.TaskQuery) (_ bson.D, none bool) {
	ids, err := idRange(q.Prefix, q.After.ID, q.Newest)
	if err != nil || q.NoItems && !q.Of.IsZero() {
		return nil, true
	}
	var filter bson.D
	filter = addIf(filter, !q.Plan.IsZero(), "plan", oid(q.Plan.ID))
	filter = addIf(filter, q.NoPlan, "plan", nil)
	filter = addIf(filter, q.Name != "", "name", q.Name)
	filter = addIf(filter, q.Subject != "", "subject", q.Subject)
	filter = addIf(filter, bySubject(q), "open", true) // as the index has it
	filter = addIf(filter, !q.Queue.IsZero(), "queue", oid(q.Queue.ID))
	filter = addIf(filter, q.NoItems, "of", nil)
	filter = addIf(filter, !q.Of.IsZero(), "of", oid(q.Of.ID))
	filter = addIf(filter, q.Retried, "attempt", d("$gt", 1))
	if !q.Of.IsZero() {
		// The ids of a task's items lie between those of the first and the last that it could have.
		ids = append(ids, d("$gte", oid(rules.ItemID(q.Of, 0).ID), "$lte", oid(rules.ItemID(q.Of, 1<<24-1).ID))...)
	}
	if len(q.IDs) > 0 {
		list := idsFrom(q.IDs, func(id plan.TaskID) bson.ObjectID { return oid(id.ID) })
		ids = append(ids, bson.E{Key: "$in", Value: list})
	}
	if len(ids) == 0 {
		ids = wire.Addressable
	}
	// An operator that is there twice would overrule itself.
	var and bson.A
	for _, e := range ids {
		and = append(and, d("_id", bson.D{e}))
	}
	if q.Began {
		and = append(and, hasRun)
	}
	if len(q.Statuses) > 0 {
		and = append(and, onlyOneOf(q.Statuses))
	}
	if q.Troubled { // rules.Troubled
		and = append(and, d("$or", bson.A{
			d("attempt", d("$gt", 1)), onlyWaiting(d("attempt", 1)), onlyCutOff(nil), onlyFailed(),
		}))
	}
	return append(filter, bson.E{Key: "$and", Value: and}), false
}

// saidBy names the claim that an attempt has.
type saidBy struct {
	Task    bson.ObjectID `bson:"task"`
	Attempt int           `bson:"attempt"`
	Token   bson.ObjectID `bson:"token"`
}

// saidDoc is a protocol.Reached in the document of its instance.
type saidDoc struct {
	By       saidBy  `bson:",inline"`
	Fraction float64 `bson:"fraction"`
	Text     string  `bson:"text,omitempty"`
}

func saidOf(reached []protocol.Reached) []saidDoc {
	docs := make([]saidDoc, len(reached))
	for i := range reached {
		r := &reached[i]
		docs[i] = saidDoc{saidBy{oid(r.Task.ID), r.Attempt, bson.ObjectID(r.Token)}, r.Fraction, r.Text}
	}
	return docs
}

// progress returns what the instances said of their tasks that match.
func (s *Store) progress(ctx context.Context, filter bson.D) (map[saidBy]*plan.Progress, error) {
	type saying struct {
		Progress []saidDoc `bson:"progress"`
	}
	docs, err := wire.Find[saying](ctx, s.instances, append(filter, bson.E{Key: "gone", Value: nil}), wire.Query{Fields: ones("progress")})
	if err != nil {
		return nil, err
	}
	found := map[saidBy]*plan.Progress{}
	for i := range docs {
		for _, p := range docs[i].Progress {
			found[p.By] = &plan.Progress{Fraction: p.Fraction, Text: p.Text}
		}
	}
	return found, nil
}

// progressOf returns what the instances said that run the tasks. Where none of these runs, nothing is asked.
func (s *Store) progressOf(ctx context.Context, docs []taskDoc) (map[saidBy]*plan.Progress, error) {
	instances := map[bson.ObjectID]bool{}
	for i := range docs {
		if t := &docs[i]; rules.Reports(t.Status) && !t.Instance.IsZero() {
			instances[t.Instance] = true
		}
	}
	if len(instances) == 0 {
		return nil, nil
	}
	return s.progress(ctx, d("_id", d("$in", slices.Collect(maps.Keys(instances)))))
}

// reached returns what the attempt said that the task is claimed for; nil if it said nothing, or the task does not run.
func (t *taskDoc) reached(progress map[saidBy]*plan.Progress) *plan.Progress {
	if !rules.Reports(t.Status) {
		return nil
	}
	return progress[saidBy{t.ID, t.Attempt, t.Token}]
}

// idsOfReached returns the ids of the tasks.
func idsOfReached(progress map[saidBy]*plan.Progress) idList {
	ids := make(idList, 0, len(progress))
	for by := range progress {
		ids = append(ids, by.Task)
	}
	return ids
}
