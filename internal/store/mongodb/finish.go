package mongodb

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// endingsAtOnce is how many endings one command writes.
const endingsAtOnce = 1000

// claimFields are what an ending has to know of its task.
var claimFields = d("status", 1, "token", 1, "attempt", 1, "cancel", 1, "plan", 1, "of", 1, "coe", 1, "gen", 1, "lines", 1, "items", 1, "last", 1,
	"ours", 1, "missing", 1)

// finish applies endings; docs has the tasks of the first endingsAtOnce of them. It returns the tasks whose claims were lost, and the time
// until the first delay that begins is over.
func (r *round) finish(ctx context.Context, endings []plan.Ending, docs []taskDoc) (lost []plan.TaskID, delay time.Duration, err error) {
	for len(endings) > 0 {
		chunk := endings[:min(len(endings), endingsAtOnce)]
		refused, wait, err := r.finishChunk(ctx, chunk, docs)
		if err != nil {
			return nil, 0, err
		}
		endings = endings[len(chunk):]
		if docs, err = r.tasksOf(ctx, endings[:min(len(endings), endingsAtOnce)]); err != nil {
			return nil, 0, err
		}
		lost = append(lost, refused...)
		if wait > 0 {
			delay = cmp.Or(min(delay, wait), wait)
		}
	}
	return lost, delay, r.clearClosed(ctx)
}

// An outcome is an ending with what its task said before it.
type outcome struct {
	plan.Ending
	task *taskDoc
	step rules.Step // what it makes of the task
	list string     // the list of items that were kept
	anew bool       // what it adds to is not as it should be: it is set
	bare bool       // the document takes nothing but the end
}

func (r *round) finishChunk(ctx context.Context, endings []plan.Ending, docs []taskDoc) (lost []plan.TaskID, delay time.Duration, err error) {
	pending, lost := claimed(endings, docs)
	r.forgetGiven(endings)
	for len(pending) > 0 {
		if err := r.appendLogs(ctx, pending); err != nil {
			return nil, 0, err
		}
		var ids []bson.ObjectID
		for i := range pending {
			if err := r.conclude(ctx, &pending[i]); err != nil {
				return nil, 0, err
			}
			if pending[i].step.Finishes() {
				ids = append(ids, pending[i].task.ID)
			}
		}
		if err := r.note(ctx, ids); err != nil {
			return nil, 0, err
		}
		changes := make([]wire.Change, len(pending))
		for i := range pending {
			changes[i] = r.change(&pending[i])
		}
		n, misfits, err := r.BulkEach(ctx, r.tasks, changes)
		if err != nil {
			return nil, 0, err
		}
		if len(misfits) > 0 {
			more, left, gone, err := r.finishMisfits(ctx, pending, misfits)
			if err != nil {
				return nil, 0, err
			}
			n, pending, lost = n+more, left, append(lost, gone...)
		}
		applied, again := pending, []outcome(nil)
		if n < len(pending) {
			var refused []plan.TaskID
			if applied, again, refused, err = r.compare(ctx, pending); err != nil {
				return nil, 0, err
			}
			lost = append(lost, refused...)
		}
		for i := range applied {
			wait, err := r.applied(ctx, &applied[i])
			if err != nil {
				return nil, 0, err
			}
			if wait > 0 {
				delay = cmp.Or(min(delay, wait), wait)
			}
		}
		pending = again
	}
	return lost, delay, nil
}

// tasksOf returns the tasks of endings: as this handle claimed them, where the ending needs to know no more, else as they are.
func (s *Store) tasksOf(ctx context.Context, endings []plan.Ending) ([]taskDoc, error) {
	docs := make([]taskDoc, 0, len(endings))
	var ids bson.A
	s.mu.Lock()
	for i := range endings {
		e := &endings[i]
		id := oid(e.Task.ID)
		if t, ok := s.given[id]; ok && e.Status.Finished() && len(e.Log) == 0 && t.claimedBy(e.Claim) {
			docs = append(docs, t)
		} else {
			ids = append(ids, id)
		}
	}
	s.mu.Unlock()
	if len(ids) == 0 {
		return docs, nil
	}
	read, err := wire.Find[taskDoc](ctx, s.tasks, d("_id", d("$in", ids)), wire.Query{Fields: claimFields})
	return append(docs, read...), err
}

// mostGiven is of how many claimed tasks a handle remembers what their endings have to know, at most.
const mostGiven = 4096

// give remembers the facts about claimed tasks that their endings need. Tasks that have items, or had
// some that others need, are read again.
func (s *Store) give(tasks []taskDoc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.given) > mostGiven { // of claims that were lost, or whose endings go another way
		clear(s.given)
	}
	for i := range tasks {
		if t := &tasks[i]; t.Items == 0 && t.Missing.IsZero() {
			s.given[t.ID] = taskDoc{
				ID: t.ID, Status: plan.Running, Token: t.Token, Attempt: t.Attempt, Plan: t.Plan, Of: t.Of, Lenient: t.Lenient, Gen: t.Gen,
			}
		}
	}
}

// forgetGiven drops what was remembered of tasks that were ended, or of which it was of no use.
func (s *Store) forgetGiven(endings []plan.Ending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range endings {
		delete(s.given, oid(endings[i].Task.ID))
	}
}

// claimed sorts out the endings whose claim is not the present one of their task.
func claimed(endings []plan.Ending, docs []taskDoc) (held []outcome, lost []plan.TaskID) {
	byID := make(map[bson.ObjectID]*taskDoc, len(docs))
	for i := range docs {
		byID[docs[i].ID] = &docs[i]
	}
	for i := range endings {
		e := &endings[i]
		id := oid(e.Task.ID)
		if t := byID[id]; t != nil && t.claimedBy(e.Claim) {
			held = append(held, outcome{Ending: *e, task: t})
			delete(byID, id) // a second ending of the same claim comes too late
		} else {
			lost = append(lost, e.Task)
		}
	}
	return held, lost
}

func (t *taskDoc) claimedBy(c plan.Claim) bool {
	return t.Status.Active() && t.Token == bson.ObjectID(c.Token) && t.Attempt == c.Attempt
}

// conclude says what becomes of the task, and keeps the items that a node made for it. Whether its plan is closed is looked at after that:
// clearClosed ends what goes on then.
func (r *round) conclude(ctx context.Context, o *outcome) error {
	o.step = rules.Ended(rules.Claim{Status: o.task.Status, Cancel: o.task.Cancel}, &o.Ending)
	if o.list != "" { // a person has cancelled it since this looked last: nobody will make these items
		if _, err := r.Remove(ctx, r.items, d("task", o.task.ID, "list", o.list)); err != nil {
			return err
		}
		o.list = ""
	}
	if len(o.step.Items) == 0 {
		return nil
	}
	err := checkItems(o.step.Items)
	if err == nil {
		o.list, err = r.keepList(ctx, o.task, o.step.Items)
		return err
	}
	o.step = rules.InputFailed(o.task.Status, err)
	return nil
}

// change is the write that applies an ending. The claim is named in it, so that it changes nothing once the claim is lost.
func (r *round) change(o *outcome) wire.Change {
	filter := d("token", bson.ObjectID(o.Token), "attempt", o.Attempt, "status", d("$in", activeStatuses))
	u := (&ending{step: o.step}).update(o.task.Status, false, o.task.nobody())
	u.put("last", true, r.id)
	if !o.step.Finishes() { // a mark that a person sets meanwhile is not to be lost: this is looked at again then
		filter = append(filter, bson.E{Key: "cancel", Value: d("$ne", true)})
	}
	if o.bare {
		return wire.Change{ID: o.task.ID, Where: filter, Update: d("$set", d("status", o.step.Status, "last", r.id), "$unset", u.unset)}
	}
	if p := o.Printed; p != nil {
		u.set = append(u.set, d("stdout", inDocument(p.Stdout), "stderr", inDocument(p.Stderr))...)
	}
	switch {
	case o.list != "":
		u.set = append(u.set, d("hold", holdItems, "making", true, "items", len(o.step.Items), "list", o.list)...)
		u.clear("expanded", "inserted", "released")
	case o.step.Delay > 0:
		u.set = append(u.set, d("hold", holdDelay, "notbefore", r.at.Add(o.step.Delay))...)
	}
	switch {
	case len(o.Log) > 0 && o.anew:
		u.set = append(u.set, d("lines", o.task.Lines+int64(len(o.Log)), "sealed", bson.A{bson.ObjectID(o.Token)})...)
	case len(o.Log) > 0:
		u.add("lines", len(o.Log))
		return wire.Change{ID: o.task.ID, Where: filter, Update: u.bson(bson.E{Key: "$addToSet", Value: d("sealed", bson.ObjectID(o.Token))})}
	}
	return wire.Change{ID: o.task.ID, Where: filter, Update: u.bson()}
}

// compare finds out which of the endings were applied, after some were not. Endings whose task was
// only marked for cancelling meanwhile are tried again.
func (r *round) compare(ctx context.Context, pending []outcome) (applied, again []outcome, lost []plan.TaskID, err error) {
	ids := make(bson.A, len(pending))
	for i := range pending {
		ids[i] = pending[i].task.ID
	}
	docs, err := wire.Find[taskDoc](ctx, r.tasks, d("_id", d("$in", ids)), wire.Query{Fields: claimFields})
	if err != nil {
		return nil, nil, nil, err
	}
	byID := make(map[bson.ObjectID]*taskDoc, len(docs))
	for i := range docs {
		byID[docs[i].ID] = &docs[i]
	}
	for _, o := range pending {
		switch t := byID[o.task.ID]; {
		case t != nil && t.Last == r.id:
			applied = append(applied, o)
		case t != nil && t.claimedBy(o.Claim):
			o.task = t
			again = append(again, o)
		default:
			lost = append(lost, o.Task)
		}
	}
	return applied, again, lost, nil
}

// applied takes note of an ending for what comes next, and returns the delay that it began.
func (r *round) applied(ctx context.Context, o *outcome) (delay time.Duration, err error) {
	t := o.task
	switch {
	case o.step.Finishes():
		t.Status, t.Reason, t.Open = o.step.Status, o.step.Reason, false
		e := ended{id: t.ID}
		e.fill(t)
		r.queue = append(r.queue, e)
	case o.list != "":
		if !t.Plan.IsZero() {
			r.busy[t.Plan] = true
		}
		return 0, r.job(ctx, workItems, t.ID)
	case o.step.Delay > 0:
		delay = o.step.Delay
	default:
		r.queued++
		if !t.Plan.IsZero() {
			r.busy[t.Plan] = true
		}
	}
	if !o.step.Finishes() && !t.Plan.IsZero() {
		r.returned[t.Plan] = true
	}
	return delay, nil
}

// appendLogs appends the logs of endings. They count from the endings' own writes on, which name them.
func (r *round) appendLogs(ctx context.Context, endings []outcome) error {
	var docs []any
	for i := range endings {
		if o := &endings[i]; len(o.Log) > 0 {
			docs = append(docs, logDocs(o.task.ID, o.Token, o.task.Lines, o.Log, true)...)
		}
	}
	const atOnce = 100 // at most logBytes each, mostly far less
	for len(docs) > 0 {
		n := min(len(docs), atOnce)
		if _, err := r.Insert(ctx, r.logs, docs[:n]...); err != nil {
			return fmt.Errorf("logs of tasks: %w", err)
		}
		docs = docs[n:]
	}
	return nil
}
