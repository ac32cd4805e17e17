package mongodb

import (
	"context"
	"maps"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"golang.org/x/sync/errgroup"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// Turn implements store.Node.
func (s *Store) Turn(ctx context.Context, t protocol.Turn) (did protocol.Turned, err error) {
	defer about(&err, "turn of instance %s", t.Instance)
	if err := engine.CheckTurn(&t); err != nil {
		return did, err
	}
	r, err := s.beginTurn(ctx, &t)
	if err != nil {
		return did, err
	}
	defer r.end()
	r.claimAhead(ctx, &t)
	if did, err = engine.Turn(ctx, r, &t); err == nil {
		r.leaveGuess()
		return did, r.wake(ctx)
	}
	back, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = r.letBack(back) // else a sweep takes it away, and says that it ran
	if r.turn.ahead != nil {
		<-r.turn.done
		s.locked(func() { s.ample = false }) // the tasks that were claimed ahead are not handed out: the next try claims after its other steps
	}
	return protocol.Turned{}, err
}

// claimAhead begins to claim concurrently with the other steps of the turn, if it may.
func (r *round) claimAhead(ctx context.Context, t *protocol.Turn) {
	a := &r.turn
	if a.ahead = r.ahead(t, a.queues); a.ahead == nil {
		return
	}
	a.done = make(chan struct{})
	go func() {
		defer close(a.done)
		a.claimed, a.err = a.ahead.claim(ctx, t, a.queues)
	}()
}

// Claim implements engine.Instance. Claims that went ahead did not wait for the step.
func (r *round) Claim(ctx context.Context, t *protocol.Turn, _ rules.Step) (claimed []protocol.ClaimedTask, err error) {
	a := &r.turn
	if a.ahead != nil {
		if <-a.done; a.err != nil {
			return nil, a.err
		}
		if claimed, err = r.join(ctx, a.ahead, a.claimed); err != nil {
			return nil, err
		}
	}
	if a.ahead == nil || r.queued > 0 && len(claimed) < t.Slots {
		r.preview.sees(r.queued)
		left := *t
		left.Slots -= len(claimed)
		more, err := r.claim(ctx, &left, a.queues)
		if err != nil {
			return nil, err
		}
		claimed = append(claimed, more...)
	}
	r.claims = len(claimed)
	if err := r.letBack(ctx); err != nil {
		return nil, err
	}
	if r.turn.small {
		r.foresee(t)
	}
	return claimed, nil
}

// Finish implements engine.Instance. A plan of which the turn claimed a task is not over.
func (r *round) Finish(ctx context.Context, only plan.PlanID) (did engine.Did, err error) {
	if err := r.wrapUp(ctx); err != nil {
		return did, err
	}
	did = engine.Did{Queued: r.queued, Ended: r.over, Refused: r.refused, Rest: r.rest}
	did.More = r.passed || r.begun > 0 || len(r.refused) > 0 // others may be claimed instead
	if r.sweeping {
		did.More = r.begun > 0 || r.budget <= 0
	}
	if r.claims == 0 {
		did.Over, err = r.planOver(ctx, only)
	}
	return did, err
}

// ahead returns a round that claims while endings are written and their children are released,
// which takes half the time of a busy node's turn. It returns nil if the claim has to come after
// these, because they could affect it. They cannot if all of these hold: the claim before found
// more than it took, no queue and no node has a limit, no queue is in a group, only successes end,
// and no work of another turn continues. Tasks that the endings queue may then be claimed one turn
// late for their rank.
func (r *round) ahead(t *protocol.Turn, queues []queueDoc) *round {
	r.mu.Lock()
	limit, known := r.limits[r.node]
	ample := r.ample && time.Since(r.claimedAt) < justNow && known && !limit.set
	r.mu.Unlock()
	if !ample || len(t.Ended) < manyEnded || len(r.queue)+len(r.jobs) > 0 || len(queues) > fewQueues ||
		slices.ContainsFunc(queues, func(q queueDoc) bool { return !q.Unlimited || q.NodeThreads.n > 0 || q.rated() || q.grouped() }) ||
		!onlySuccesses(t.Ended) {
		return nil
	}
	beside := r.Store.round(r.at, 0)
	beside.id, beside.instance, beside.node = r.id, r.instance, r.node
	return beside
}

// onlySuccesses reports whether the endings close no plan and skip no task.
func onlySuccesses(endings []protocol.Ending) bool {
	return !slices.ContainsFunc(endings, func(e protocol.Ending) bool {
		return rules.OutcomeOf(e.Status, e.Reason, false) != rules.OutcomeSucceeded
	})
}

// join takes over what a round that claimed beside this one came to, but for tasks of plans that this one has closed.
func (r *round) join(ctx context.Context, ahead *round, claimed []protocol.ClaimedTask) ([]protocol.ClaimedTask, error) {
	maps.Copy(r.busy, ahead.busy)
	r.taken += ahead.taken
	r.passed = r.passed || ahead.passed
	r.rest = ahead.rest
	r.refused = append(r.refused, ahead.refused...)
	closed := map[bson.ObjectID]idList{}
	var token protocol.Token // of all of them
	claimed = slices.DeleteFunc(claimed, func(c protocol.ClaimedTask) bool {
		id := oid(c.Plan.ID)
		p := r.known[id]
		if p == nil || p.Closing == plan.Open || c.Definition.Finally && p.Ending == plan.PlanRunning { // the plan was read before it was opened for them
			return false
		}
		delete(r.busy, id)
		closed[id], token = append(closed[id], oid(c.Task.ID)), c.Token
		return true
	})
	return claimed, r.notStarted(ctx, closed, bson.ObjectID(token))
}

// beginTurn begins the round of a turn. At the same time it reads the tasks of the first endings and
// the queues.
func (s *Store) beginTurn(ctx context.Context, t *protocol.Turn) (r *round, err error) {
	s.mu.Lock()
	node, known := s.nodeOf[t.Instance]
	s.mu.Unlock()
	if known && len(t.Ended) <= fewEnded {
		return s.beginSmall(ctx, t, node)
	}
	var g errgroup.Group
	var queues []queueDoc
	var ready []taskDoc
	g.Go(func() (err error) { r, queues, err = s.begin(ctx, t.Instance, t.Budget, t.Slots > 0, t); return err })
	g.Go(func() (err error) {
		ready, err = s.tasksOf(ctx, t.Ended[:min(len(t.Ended), endingsAtOnce)])
		return err
	})
	if err = g.Wait(); err != nil {
		if r != nil {
			r.end()
		}
		return nil, err
	}
	r.only, r.ready = oid(t.Plan.ID), ready
	r.serve(t, queues)
	return r, nil
}

// serve notes which queues the turn may claim from.
func (r *round) serve(t *protocol.Turn, queues []queueDoc) {
	if len(queues) <= fewQueues {
		queues = onlyServed(queues, t, r.node)
	}
	if t.Slots > 0 && len(queues) <= fewQueues {
		r.serves = map[bson.ObjectID]bool{}
		for i := range queues {
			r.serves[queues[i].ID] = true
		}
	}
	r.turn.queues = queues
}

// beginSmall begins the round of a turn of few endings: it reads their tasks, as far as the handle does not know them. The handle has to
// know the instance.
func (s *Store) beginSmall(ctx context.Context, t *protocol.Turn, node plan.NodeName) (r *round, err error) {
	if r, err = s.newRound(ctx, t.Budget); err != nil {
		return nil, err
	}
	r.instance, r.node, r.only = oid(t.Instance.ID), node, oid(t.Plan.ID)
	r.turn.marks = len(t.Ended) <= fewMarked
	r.turn.small, r.turn.ended = true, map[bson.ObjectID]*taskDoc{}
	s.locked(func() {
		r.guess.guess = s.guesses[r.instance]
		delete(s.guesses, r.instance)
	})
	if r.ready, err = s.tasksOf(ctx, t.Ended); err != nil {
		return r, err
	}
	v, ask := r.beginEarly(ctx, t)
	r.turn.unread = func(ctx context.Context) error { return r.startSmall(ctx, t, v, ask) }
	return r, nil
}

// Start implements store.Node.
func (s *Store) Start(ctx context.Context, claims []protocol.Claim) (lost []plan.TaskID, err error) {
	defer about(&err, "start of tasks")
	byToken := map[protocol.Token][]protocol.Claim{}
	for _, c := range claims {
		byToken[c.Token] = append(byToken[c.Token], c)
	}
	for token, claims := range byToken {
		some, err := s.startClaims(ctx, token, claims)
		if err != nil {
			return nil, err
		}
		lost = append(lost, some...)
	}
	return lost, nil
}

// startClaims starts claims of one token.
func (s *Store) startClaims(ctx context.Context, token protocol.Token, claims []protocol.Claim) (lost []plan.TaskID, err error) {
	ids := idsFrom(claims, func(c protocol.Claim) bson.ObjectID { return oid(c.Task.ID) })
	n, err := s.UpdateMany(ctx, s.tasks, onlyClaimed(d("_id", d("$in", ids), "token", bson.ObjectID(token))), takes(nil, true))
	if err != nil || n == len(claims) {
		return nil, err
	}
	docs, err := wire.Find[taskDoc](ctx, s.tasks, d("_id", d("$in", ids)), wire.Query{Fields: claimFields})
	if err != nil {
		return nil, err
	}
	byID := byID(docs)
	for _, c := range claims {
		if t := byID[oid(c.Task.ID)]; t == nil || !t.claimedBy(c) {
			lost = append(lost, c.Task)
		}
	}
	return lost, nil
}
