package mongodb

import (
	"cmp"
	"context"
	"maps"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
)

// beginEarly has a turn claim with its endings what was guessed, if it may, and begins to read its preview.
func (r *round) beginEarly(ctx context.Context, t *protocol.Turn) (v *preview, read asking) {
	g := &r.guess
	if !r.turn.marks || len(t.Ended) == 0 || len(g.docs) == 0 || t.Slots == 0 || time.Since(g.at) >= r.trusts || r.mayBeDue() ||
		!onlySuccesses(t.Ended) {
		return nil, nil
	}
	ends := make([]parent, len(r.ready))
	for i := range r.ready {
		ends[i] = parent{id: r.ready[i].ID, plan: r.ready[i].Plan, of: r.ready[i].Of, here: true}
	}
	if v = r.previewOf(t, ends); v.outlooks[g.queue.ID] == nil {
		return nil, nil
	}
	v.early = true
	g.token, g.docs = bson.NewObjectID(), g.docs[:min(len(g.docs), t.Slots)]
	c := claimer{round: r, turn: t, token: g.token}
	g.changes = c.changes(&g.queue, g.docs, slots{})
	var parts []opened
	var err error
	done, ask := make(chan struct{}), r.opening(t.Instance, t, v)
	go func() {
		defer close(done)
		parts, err = ask(ctx)
	}()
	return v, func(context.Context) ([]opened, error) {
		<-done
		return parts, err
	}
}

// foresee guesses for the next turn.
func (r *round) foresee(t *protocol.Turn) {
	next := guess{at: time.Now(), unsure: r.turn.unsure}
	erred := false
	if r.locked(func() { erred = time.Since(r.erred) < justNow }); r.preview != nil && r.claims > 0 && !erred {
		c := claimer{round: r, turn: t, shares: cmp.Or(t.Shares, &protocol.Shares{})}
		next.queue, next.docs = c.foreseen()
	}
	if len(next.docs) > 0 {
		next.off, r.unmarked = r.unmarked, nil
	}
	r.passed = r.passed || r.claims == 0 && len(next.unsure) > 0 // no ending brings the next turn about
	r.turn.next = &next
}

// leaveGuess leaves the guess of a turn that did all it had to. After another one the marks have to stay: they are all that says that a plan of
// an ended task may have ended.
func (r *round) leaveGuess() {
	if r.turn.next == nil {
		return
	}
	r.locked(func() {
		if r.guesses == nil || len(r.guesses) > mostServed {
			r.guesses = map[bson.ObjectID]guess{}
		}
		r.guesses[r.instance] = *r.turn.next
	})
}

// foreseen returns what comes next of what the preview has, if all of it is of one queue.
func (c *claimer) foreseen() (q queueDoc, next []taskDoc) {
	var rest map[bson.ObjectID][]taskDoc
	for _, o := range c.preview.outlooks {
		left := o.rest
		for id, p := range o.parts {
			if p != nil {
				left[id] = append(left[id], p.docs...)
			}
		}
		maps.DeleteFunc(left, func(_ bson.ObjectID, docs []taskDoc) bool { return len(docs) == 0 })
		if len(left) > 0 && rest != nil {
			return q, nil
		}
		if len(left) > 0 {
			q, rest = o.queue, left
		}
	}
	if rest == nil {
		return q, nil
	}
	if known := c.sharing(&q); known != nil {
		for _, id := range rules.Deal(maps.Clone(known.Of), fewMarked, rules.MostDealt, comparePlans) {
			of := oid(id.ID)
			if len(rest[of]) == 0 {
				return q, next
			}
			next, rest[of] = append(next, rest[of][0]), rest[of][1:]
		}
		return q, next
	}
	next = rest[bson.NilObjectID]
	return q, next[:min(len(next), fewMarked)]
}
