package mongodb

import (
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// endingsAtOnce is how many endings one command writes.
const endingsAtOnce = 1000

// claimFields are what an ending has to know of its task.
var claimFields = ones("name status token attempt cancel plan of coe budget gen lines items last ours ran def")

// Attempts implements engine.Instance. The tasks of the first endings were read with the beginning
// of the round.
func (r *round) Attempts(ctx context.Context, endings []protocol.Ending) (held []engine.Attempt[*ending], lost []plan.TaskID, err error) {
	docs := r.ready
	for chunk := range slices.Chunk(endings, endingsAtOnce) {
		if docs == nil {
			if docs, err = r.tasksOf(ctx, chunk); err != nil {
				return nil, nil, err
			}
		}
		some, refused := claimed(chunk, docs)
		r.forgetGiven(chunk)
		held, lost, docs = append(held, some...), append(lost, refused...), nil
	}
	return held, lost, r.whyMarked(ctx, func(yield func(*taskDoc) bool) {
		for i := range held {
			if !yield(held[i].Task.task) {
				return
			}
		}
	})
}

// whyMarked reads the plans of marked tasks, which tell what marked them. Mostly there is none.
func (r *round) whyMarked(ctx context.Context, tasks iter.Seq[*taskDoc]) error {
	var ids idSet
	for t := range tasks {
		if t.Cancel {
			ids.add(t.Plan)
		}
	}
	return r.loadPlans(ctx, ids.list)
}

// endingsOf returns what the rules ask of claimed tasks whose nodes say nothing.
func endingsOf(docs []taskDoc) []*ending {
	endings := make([]*ending, len(docs))
	for i := range docs {
		endings[i] = &ending{task: &docs[i]}
	}
	return endings
}

// ClaimView implements engine.Ender. clearClosed ends tasks that come back to a closed plan.
func (r *round) ClaimView(e *ending) rules.Claim {
	def, _ := e.task.definition() // one that cannot be read is no foreach task
	c := rules.Claim{Status: e.task.Status, Cancel: e.task.Cancel, Ran: e.task.Ran, List: def.Foreach != nil}
	if p := r.known[e.task.Plan]; p != nil && c.Cancel {
		c.Closing = p.Closing
	}
	return c
}

// LossView implements engine.Ender.
func (r *round) LossView(e *ending) rules.Loss {
	def, _ := e.task.definition() // of one that cannot be read the defaults hold
	return rules.Loss{
		Claim: r.ClaimView(e), InPlan: !e.task.Plan.IsZero(), Definition: &def, Queue: e.queue, Rescues: e.task.Rescues, Uncounted: e.task.Token.IsZero(),
	}
}

// End implements engine.Ender.
func (r *round) End(ctx context.Context, a *engine.Attempt[*ending]) error {
	e := a.Task
	e.Attempt = *a
	if r.pending = append(r.pending, e); len(r.pending) == endingsAtOnce {
		return r.writeEndings(ctx)
	}
	return nil
}

// Ended implements engine.Ender.
func (r *round) Ended(ctx context.Context) (again []engine.Attempt[*ending], lost []plan.TaskID, err error) {
	if err := r.writeEndings(ctx); err != nil {
		return nil, nil, err
	}
	again, lost, r.again, r.lost = r.again, r.lost, nil, nil
	if len(again) > 0 {
		return again, lost, nil
	}
	return nil, lost, r.clearClosed(ctx)
}

// writeEndings writes the pending endings and losses.
func (r *round) writeEndings(ctx context.Context) error {
	pending := r.pending
	if r.pending = nil; len(pending) == 0 {
		return nil
	}
	if pending[0].lost {
		return r.writeLosses(ctx, pending)
	}
	g := r.Series(ctx)
	g.Do(func(ctx context.Context) error { return r.appendLogs(ctx, pending) })
	var ids []bson.ObjectID
	for _, e := range pending {
		g.Do(func(ctx context.Context) error { return r.keepItems(ctx, e) })
		if e.Step.Finishes() {
			ids = append(ids, e.task.ID)
		}
	}
	if !r.turn.marks {
		g.Do(func(ctx context.Context) error { return r.note(ctx, ids) })
	}
	if g.Err != nil {
		return g.Err
	}
	changes := make([]wire.Change, len(pending))
	for i, e := range pending {
		changes[i] = r.change(e)
	}
	changes = slices.Concat(changes, r.guess.off, r.guess.changes)
	others := len(changes) - len(pending)
	n, misfits, err := r.BulkEach(ctx, r.tasks, changes)
	r.guess.off = nil
	if err == nil {
		err = r.guessed(ctx, n == len(changes))
	}
	if err != nil {
		return err
	}
	n -= others
	misfits = slices.DeleteFunc(misfits, func(m wire.Misfit) bool {
		return !slices.ContainsFunc(pending, func(e *ending) bool { return e.task.ID == m.ID })
	})
	if len(misfits) > 0 {
		more, left, err := r.finishMisfits(ctx, pending, misfits)
		if err != nil {
			return err
		}
		n, pending = n+more, left
	}
	if n < len(pending) {
		if pending, err = r.compare(ctx, pending); err != nil {
			return err
		}
	}
	for _, e := range pending {
		g.Do(func(ctx context.Context) error { return r.applied(ctx, e) })
	}
	return g.Err
}

// tasksOf returns the tasks of endings: as this handle claimed them, where the ending needs to know no more, else as they are.
func (s *Store) tasksOf(ctx context.Context, endings []protocol.Ending) ([]taskDoc, error) {
	docs := make([]taskDoc, 0, len(endings))
	var ids idList
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

// give remembers the facts about claimed tasks that their endings need. Tasks that have items are read
// again.
func (s *Store) give(tasks []taskDoc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.given) > mostGiven { // of claims that were lost, or whose endings go another way
		clear(s.given)
	}
	for i := range tasks {
		t := &tasks[i]
		s.horizons.claimed(ofPlan{t.Queue, t.Plan})
		if t.Items == 0 {
			s.given[t.ID] = t.running()
		}
	}
}

// forgetGiven drops what was remembered of tasks that were ended, or of which it was of no use.
func (s *Store) forgetGiven(endings []protocol.Ending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range endings {
		delete(s.given, oid(endings[i].Task.ID))
	}
}

// claimed sorts out the endings whose claim is not the present one of their task.
func claimed(endings []protocol.Ending, docs []taskDoc) (held []engine.Attempt[*ending], lost []plan.TaskID) {
	byID := byID(docs)
	for i := range endings {
		e := &endings[i]
		id := oid(e.Task.ID)
		if t := byID[id]; t != nil && t.claimedBy(e.Claim) {
			held = append(held, engine.Attempt[*ending]{Task: &ending{task: t, printed: e.Printed}, Ending: e})
			delete(byID, id) // a second ending of the same claim comes too late
		} else {
			lost = append(lost, e.Task)
		}
	}
	return held, lost
}

func (t *taskDoc) claimedBy(c protocol.Claim) bool {
	return t.Status.Active() && t.Token == bson.ObjectID(c.Token) && t.Attempt == c.Attempt
}

// keepItems keeps the items that a node found for a foreach task.
func (r *round) keepItems(ctx context.Context, e *ending) error {
	if e.list != "" { // a person has cancelled it since this looked last: nobody will make these items
		if err := r.dropList(ctx, e.task.ID, e.list); err != nil {
			return err
		}
		e.list = ""
	}
	if len(e.Step.Items) == 0 {
		return nil
	}
	err := checkItems(e.Step.Items)
	if err == nil {
		e.list, err = r.keepList(ctx, e.task, e.Step.Items)
		return err
	}
	e.Step = rules.InputFailed(e.task.Status, err)
	return nil
}

// change is the write that applies an ending. The claim is named in it, so that it changes nothing once the claim is lost.
func (r *round) change(e *ending) wire.Change {
	filter := onlyActive(d("token", e.task.Token, "attempt", e.task.Attempt))
	u := (&stepDoc{step: e.Step, claimed: true}).update(r.turn.marks, e.task.nobody())
	u.put("last", true, r.id)
	if r.unknown(e) {
		u.put("started", !e.task.Started.IsZero(), e.task.Started) // as before the claim
	}
	// A mark that a person sets meanwhile is not to be lost: this is looked at again then.
	filter = addIf(filter, !e.Step.Finishes(), "cancel", d("$ne", true))
	if e.bare {
		return wire.Change{ID: e.task.ID, Where: filter, Update: d("$set", d("status", e.Step.Status, "last", r.id), "$unset", u.unset)}
	}
	if p := e.printed; p != nil {
		u.set = append(u.set, d("stdout", inDocument(p.Stdout), "stderr", inDocument(p.Stderr))...)
	}
	switch {
	case e.list != "":
		u.set = append(u.set, d("hold", holdItems, "making", true, "items", len(e.Step.Items), "list", e.list)...)
		u.clear("expanded", "inserted", "released")
	case e.Step.Delay > 0:
		u.set = append(u.set, d("hold", holdDelay, "notbefore", r.at.Add(e.Step.Delay))...)
	}
	switch lines := len(e.log()); {
	case lines > 0 && e.anew:
		u.set = append(u.set, d("lines", e.task.Lines+int64(lines), "sealed", bson.A{e.task.Token})...)
	case lines > 0:
		u.add("lines", lines)
		return wire.Change{ID: e.task.ID, Where: filter, Update: u.bson(bson.E{Key: "$addToSet", Value: d("sealed", e.task.Token)})}
	}
	return wire.Change{ID: e.task.ID, Where: filter, Update: u.bson()}
}

// log returns the entries of the log that came with the ending.
func (e *ending) log() []plan.LogEntry {
	if e.Ending == nil {
		return nil
	}
	return e.Ending.Log
}

// unknown reports whether nobody knows of the claim that is given back: it is of a guess.
func (r *round) unknown(e *ending) bool {
	return e.Ending == nil && !r.guess.token.IsZero() && e.task.Token == r.guess.token
}

// compare returns those of the endings that were applied, after some were not. Endings whose task was
// only marked for cancelling meanwhile are tried again. The other claims were lost, and their lists
// of items go.
func (r *round) compare(ctx context.Context, pending []*ending) (applied []*ending, err error) {
	ids := idsFrom(pending, func(e *ending) bson.ObjectID { return e.task.ID })
	docs, err := wire.Find[taskDoc](ctx, r.tasks, d("_id", d("$in", ids)), wire.Query{Fields: claimFields})
	if err != nil {
		return nil, err
	}
	byID := byID(docs)
	if err := r.whyMarked(ctx, maps.Values(byID)); err != nil {
		return nil, err
	}
	for _, e := range pending {
		switch t := byID[e.task.ID]; {
		case t != nil && t.Last == r.id:
			applied = append(applied, e)
		case t != nil && t.Status.Active() && t.Token == e.task.Token && t.Attempt == e.task.Attempt:
			if r.unknown(e) {
				t.Status, t.Started = e.task.Status, e.task.Started
			}
			e.task = t
			r.again = append(r.again, engine.Attempt[*ending]{Task: e, Ending: e.Ending})
		default:
			r.lost = append(r.lost, taskID(e.task.ID))
			if e.list != "" {
				if err := r.dropList(ctx, e.task.ID, e.list); err != nil {
					return nil, err
				}
			}
		}
	}
	return applied, nil
}

// applied takes note of an ending for what comes next.
func (r *round) applied(ctx context.Context, e *ending) error {
	t := e.task
	if e.Step.Finishes() {
		t.Status, t.Reason, t.Open = e.Step.Status, e.Step.Reason, r.turn.marks
		p := parent{id: t.ID, here: true}
		p.fill(t)
		r.queue = append(r.queue, p)
		if r.turn.small && !e.anew && !e.bare && t.Items == 0 { // else not all of what was written is known
			e.asParent(r.at)
			r.turn.ended[t.ID] = t
		}
		return nil
	}
	switch {
	case e.list != "":
		r.stays(t.Plan)
		return r.job(ctx, workItems, t.ID)
	case e.Step.Delay > 0:
		r.noteDue(e.Step.Delay)
	default:
		r.queued++
		r.stays(t.Plan)
	}
	if !t.Plan.IsZero() {
		r.returned[t.Plan] = true
	}
	return nil
}

// asParent fills what the task is for its children, now that its end is written.
func (e *ending) asParent(at time.Time) {
	t := e.task
	t.Complete, t.Ended, t.Mtime = true, at, at
	t.Output, t.Bytes, t.Gathered = nil, len(e.Step.Output), false
	if t.Bytes <= smallOutput {
		t.Output = text(e.Step.Output)
	}
}

// appendLogs appends the logs of endings. They count from the endings' own writes on, which name them.
func (r *round) appendLogs(ctx context.Context, endings []*ending) error {
	var docs []any
	for _, e := range endings {
		if entries := e.log(); len(entries) > 0 {
			docs = append(docs, logDocs(e.task.ID, protocol.Token(e.task.Token), e.task.Lines, entries, true)...)
		}
	}
	const atOnce = 100 // at most logBytes each, mostly far less
	g := r.Series(ctx)
	for some := range slices.Chunk(docs, atOnce) {
		g.Insert(r.logs, some...)
	}
	about(&g.Err, "logs of tasks")
	return g.Err
}

// loseAll takes from an instance that is gone what it had claimed, and gives others the work that it was at. In this order: who takes up a
// note of its endings finds each of them made, or refused. A sweep does the same for what comes later, or if this dies half-way.
func (r *round) loseAll(ctx context.Context, i *instanceDoc) (n int, err error) {
	g := r.Series(ctx)
	docs := wire.FindIn[taskDoc](g, r.tasks, claimsOf(i), wire.Query{Fields: lostFields})
	g.Do(func(ctx context.Context) error {
		lost, err := r.lostOf(ctx, docs)
		if err == nil {
			err = engine.Lose(ctx, r, lost)
		}
		return err
	})
	g.UpdateMany(r.work, d("owner", i.ID), d("$unset", ones("owner")))
	g.Do(func(ctx context.Context) error { return r.forgetNode(ctx, i.Node) })
	return len(docs), g.Err
}

// lostOf returns the losses of these tasks, with what their queues say of them.
func (r *round) lostOf(ctx context.Context, docs []taskDoc) ([]*ending, error) {
	queues, err := r.onLost(ctx, docs)
	lost := endingsOf(docs)
	for _, e := range lost {
		e.lost, e.queue = true, queues[e.task.Queue]
	}
	if err == nil {
		err = r.whyMarked(ctx, maps.Values(byID(docs)))
	}
	return lost, err
}

// writeLosses writes losses, as long as their tasks have the claim and the status with which they
// were read.
func (r *round) writeLosses(ctx context.Context, lost []*ending) error {
	changes := make([]wire.Change, len(lost))
	for k, e := range lost {
		t := e.task
		changes[k] = wire.Change{ID: t.ID, Where: d("token", wire.OrNone(t.Token), "attempt", wire.OrNone(t.Attempt), "status", t.Status), Update: t.lost(e.Step)}
		if e.Step.Finishes() {
			r.queue = append(r.queue, parent{id: t.ID})
		} else {
			r.comesBack(t.Plan)
			r.queued++
		}
	}
	_, misfits, err := r.BulkEach(ctx, r.tasks, changes)
	if err == nil {
		err = r.failAll(ctx, misfits, onlyActive(nil), "its loss cannot be stored")
	}
	if err != nil {
		return err
	}
	r.budget -= len(changes)
	return nil
}

// onLost is what the queues of the tasks say of tasks that are lost.
func (r *round) onLost(ctx context.Context, docs []taskDoc) (map[bson.ObjectID]plan.OnLost, error) {
	said := map[bson.ObjectID]plan.OnLost{}
	for i := range docs {
		said[docs[i].Queue] = plan.OnLostDefault // also of a queue that is not there
	}
	if len(said) == 0 {
		return said, nil
	}
	queues, err := wire.Find[queueDoc](ctx, r.queues, d("_id", d("$in", slices.Collect(maps.Keys(said)))), wire.Query{Fields: ones("settings")})
	for i := range queues {
		said[queues[i].ID] = queues[i].domain().OnLost
	}
	return said, err
}

// forgetNode deletes the document of a node that has no instance any more. A node that a command embedded is not to stay behind; one that a
// person gave a limit does.
func (r *round) forgetNode(ctx context.Context, n plan.NodeName) error {
	left, err := wire.FindOne[instanceDoc](ctx, r.instances, d("node", n, "gone", nil), wire.Query{Fields: ones("_id")})
	if err == nil && left == nil {
		_, err = r.Remove(ctx, r.nodes, d("node", n, "sluice", true, "maxthreads", nil))
	}
	return err
}

// lostFields are what has to be known of a task to judge its loss.
var lostFields = ones("status plan queue def rank rescues cancel token attempt ours ran")

// lost is what a loss changes. A task that ends by it stays open until its children are released.
func (t *taskDoc) lost(loss rules.Step) bson.D {
	u := (&stepDoc{step: loss, claimed: true}).update(stillOpen, t.nobody())
	if !loss.Finishes() {
		u.clear("hold", "notbefore", "noticed", "claimed")
	}
	return u.bson()
}
