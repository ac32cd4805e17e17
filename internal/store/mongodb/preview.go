package mongodb

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// A small turn writes its endings first. Then one command reads what its other steps have to know: a preview. A node of one thread waits for
// each command, so that commands are most of the time of a short task. A step reads for itself what is not in the preview, or is there in
// another way than was expected. The next turn reads its own.

const (
	mostSeen  = 64                     // so many tasks to claim a preview has, and so many children
	stillTrue = 100 * time.Millisecond // how long a claim trusts what it read of a plan before
)

// A preview is what one command read for the next steps of a turn. Each answer serves once: the step changes what it is about.
type preview struct {
	stages   bson.A                     // of a pipeline, that read it
	at       time.Time                  // when it was asked for
	early    bool                       // that was before the endings were written
	ended    idList                     // tasks that the turn ended, if what waits for them was asked for,
	children []taskDoc                  // what is held for them,
	joins    []joinDoc                  // and the joins that they are in
	plans    idList                     // that it asked for
	outlooks map[bson.ObjectID]*outlook // by queue
	grouped  bool                       // it asked for the groups of queues, which are
	groups   []plan.Group               // these
	before   int                        // how many tasks the turn had queued before,
	queued   []taskDoc                  // and those that it has queued since, but for some
}

// An outlook is what a preview has for claims from a queue.
type outlook struct {
	queue queueDoc                    // as the handle knew it when it asked
	scope                             // which plans with work it asked for
	used  bool                        // by a look
	found []shareDoc                  // the plans
	parts map[bson.ObjectID]*part     // by plan; nil: it was used
	rest  map[bson.ObjectID][]taskDoc // and this was left
}

// told is a part of the answer, by what it is.
type told struct{ Child, Join, Plan, Share, Head, Far, Group bson.Raw }

// tell takes a part of the answer into a preview, if it is one of that. err is the first error.
func (r *round) tell(v *preview, p *told, err *error) bool {
	switch {
	case p.Child != nil:
		v.children = append(v.children, decoded[taskDoc](p.Child, err))
	case p.Join != nil:
		v.joins = append(v.joins, decoded[joinDoc](p.Join, err))
	case p.Plan != nil:
		doc := decoded[planDoc](p.Plan, err)
		r.known[doc.ID] = &doc
	case p.Share != nil:
		s := decoded[shareDoc](p.Share, err)
		if o := v.outlooks[s.Key.Queue]; o != nil {
			o.found = append(o.found, s)
		}
	case p.Head != nil:
		v.head(decoded[taskDoc](p.Head, err))
	case p.Group != nil:
		g := decoded[groupDoc](p.Group, err)
		v.groups = append(v.groups, g.domain())
	case p.Far != nil:
		if t := decoded[taskDoc](p.Far, err); !nameless(t) {
			r.locked(func() { r.horizons.found(ofPlan{t.Queue, t.Plan}, t.Rank, t.ID, r.reach) })
		}
	default:
		return false
	}
	return true
}

// head takes what is next in a queue.
func (v *preview) head(t taskDoc) {
	o := v.outlooks[t.Queue]
	if o == nil {
		return
	}
	p, there := o.parts[t.Plan]
	if !there {
		p = o.parts[bson.NilObjectID]
	}
	switch {
	case p == nil:
	case nameless(t) || len(t.odd) > 0: // to be mended
		o.parts[p.plan] = nil
	default:
		p.docs = append(p.docs, t)
	}
}

// belowEnded returns what waits for these finished tasks, if the preview has it.
func (v *preview) belowEnded(chunk []parent) (children []taskDoc, joins []joinDoc, is bool) {
	if v == nil || len(v.ended) == 0 || !slices.Equal(keys(chunk), v.ended) {
		return nil, nil, false
	}
	v.ended = nil
	return v.children, v.joins, !v.early || len(v.children)+len(v.joins) == 0
}

// lookFor returns the plans that have work in a queue, if the preview has them. It asked for others than those that it knew, which still take turns.
func (v *preview) lookFor(queue bson.ObjectID, of scope, known *protocol.PlanShares) (o *outlook) {
	if v == nil || v.outlooks[queue] == nil {
		return nil
	}
	o = v.outlooks[queue]
	gone := slices.ContainsFunc(o.but, func(id bson.ObjectID) bool { s, is := known.Of[planID(id)]; return !is || s.Away })
	if o.used || gone || !o.all && (of.all || bytes.Compare(o.after[:], of.after[:]) > 0) {
		return nil
	}
	o.used = true
	return o
}

// heads fills parts with what is next in them, of one plan if it is not none, and without some tasks. Tasks that the turn has queued are
// among these. It reports whether the preview has that for each part.
func (v *preview) heads(parts []*part, of bson.ObjectID, not idList) bool {
	if v == nil {
		return false
	}
	for _, p := range parts {
		if o := v.outlooks[p.queue.ID]; o == nil || !o.knows(p) {
			return false
		}
	}
	for _, p := range parts {
		o := v.outlooks[p.queue.ID]
		p.docs = nil
		if seen := o.parts[p.plan]; seen != nil {
			p.docs = seen.docs
		}
		o.parts[p.plan] = nil
		for _, t := range v.queued {
			its := of.IsZero() || t.Plan == of
			if p.turns {
				its = t.Plan == p.plan
			}
			if its && t.Queue == p.queue.ID && !slices.Contains(not, t.ID) {
				p.docs = append(p.docs, t)
			}
		}
		p.queue.order(p.docs)
		n := min(len(p.docs), p.ask)
		p.docs, o.rest[p.plan] = p.docs[:n:n], p.docs[n:]
	}
	return true
}

// knows reports whether what is next in the part was read. Nothing is, of a plan that a look for any did not find.
func (o *outlook) knows(p *part) bool {
	seen, there := o.parts[p.plan]
	if !there {
		return o.all && p.turns && !slices.Contains(o.but, p.plan) && !slices.ContainsFunc(o.found, func(s shareDoc) bool { id, _ := s.plan(); return id == p.plan })
	}
	return seen != nil && (len(seen.docs) < seen.ask || p.ask <= seen.ask)
}

// hasQueued takes note of tasks that the turn has queued, as they are now.
func (v *preview) hasQueued(tasks []*waiter) {
	if v == nil {
		return
	}
	for _, w := range tasks {
		t := *w.taskDoc
		for _, e := range w.set {
			switch is := e.Value.(type) {
			case given:
				t.Params = is
			case text:
				t.Text = is
			case bool:
				t.ByRef = is
			}
		}
		if len(t.odd) == 0 { // else it is to be mended
			v.queued = append(v.queued, t)
		}
	}
}

// sees drops what is known for claims if the turn has queued more tasks than the preview was told of.
func (v *preview) sees(queued int) {
	if v != nil && queued > v.before+len(v.queued) {
		v.outlooks = nil
	}
}

// A shareDoc is a plan that has work in a queue.
type shareDoc struct {
	Key struct {
		Queue bson.ObjectID `bson:"queue"`
		Plan  bson.RawValue `bson:"plan,omitempty"`
	} `bson:"_id"`
}

// plan returns the plan, zero for none. Another program may have put something else there.
func (s *shareDoc) plan() (id bson.ObjectID, odd bool) {
	id, ok := s.Key.Plan.ObjectIDOK()
	return id, !ok && s.Key.Plan.Type != 0 && s.Key.Plan.Type != bson.TypeNull
}

// nameless reports whether nobody can say which task this is.
func nameless(t taskDoc) bool { return t.ID.IsZero() }

// decoded reads a document that is a part of an answer; err is the first error of those of an answer.
func decoded[T any](raw bson.Raw, err *error) (v T) {
	*err = cmp.Or(*err, wire.Decode(raw, &v))
	return v
}
