package mongodb

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/plan"
)

// The kinds of work documents.
const (
	workRelease = "release" // look at the children of the tasks
	workLook    = "look"    // look at the parents of the tasks whose adding is the target
	workItems   = "items"   // make, and then queue, the items of the target
	workCancel  = "cancel"  // cancel the items of the target
	workClose   = "close"   // cancel what the target, a closed plan, still has
)

// workDoc is something that was begun and must be ended, by its owner or, as rules.Registered says, by anybody. Doing it twice does no harm.
type workDoc struct {
	ID     bson.ObjectID   `bson:"_id"`
	Owner  bson.ObjectID   `bson:"owner,omitempty"` // the instance that is at it
	Kind   string          `bson:"kind"`
	Target bson.ObjectID   `bson:"target,omitempty"`
	Tasks  []bson.ObjectID `bson:"tasks,omitempty"` // to be released: first those that ended first
	Many   bool            `bson:"many,omitempty"`  // the first of Tasks has more children than one round looks at;
	Paged  bool            `bson:"paged,omitempty"` // they are looked at in order,
	After  bson.ObjectID   `bson:"after,omitempty"` // and were up to this one
	From   int             `bson:"from,omitempty"`  // the items before it were cancelled
}

// bound implements bounded.
func (w *workDoc) bound() { within(&w.From) }

// ended is a finished task whose children are to be released. The known facts save a read.
type ended struct {
	id       bson.ObjectID
	known    bool // the fields below are filled
	plan, of bson.ObjectID
	outcome  plan.Outcome
	open     bool          // it is still marked as not released
	items    bool          // it is a foreach task that ended before its items
	outside  bool          // its plan was closed, and nothing of that has to be released: only tasks of no plan
	missing  bson.ObjectID // of a foreach task whose items a retry deleted: the first of these
	own      bool          // this instance noted it before it wrote its end, and that write may still be under way

	after bson.ObjectID // the children up to this one were looked at
	many  bool          // it has more children than one round looks at,
	paged bool          // and some of them wait: they are looked at in order
}

// A round is what one call does to the database, within its budget.
type round struct {
	*Store
	id        bson.ObjectID
	instance  bson.ObjectID // none: a call of Admin
	node      plan.NodeName
	at        time.Time                  // the server's clock
	budget    int                        // documents that may still be changed
	queue     []ended                    // to be released, first come first
	unsure    []bson.ObjectID            // what this instance still has, and noted that it ends
	jobs      []workDoc                  // other work
	docs      []workDoc                  // of work, that are done with when the queue is empty
	known     map[bson.ObjectID]*planDoc // plans as they were read last
	touched   map[bson.ObjectID]bool     // plans in which something finished,
	busy      map[bson.ObjectID]bool     // in which something was queued,
	returned  map[bson.ObjectID]bool     // and to which claimed tasks came back
	passed    bool                       // there is work that it passed by
	queued    int
	serves    map[bson.ObjectID]bool // queues that the turn claims of; nil: it is not known
	only      bson.ObjectID          // the one plan of the node, if it has one
	forOthers bool                   // something was queued that the turn cannot claim
	over      []plan.EndedPlan       // plans that ended
	taken     int                    // tasks that were claimed
	refused   []string               // tasks that were not claimed or ended as they should have been, and why
	othersIn  map[bson.ObjectID]bool // whether nodes of other programs serve a queue
	audited   *auditDoc              // of a sweep: when an audit was begun last
	under     map[bson.ObjectID]bool // plans and tasks that work is noted for; nil: it was not read
	bare      map[bson.ObjectID]bool // what other programs ended, and what they printed does not fit into their documents as an output
}

// newRound begins a round for a call of Admin.
func (s *Store) newRound(ctx context.Context, budget int) (*round, error) {
	if budget <= 0 {
		budget = plan.DefaultBudget
	}
	at, err := s.now(ctx)
	return s.round(at, budget), err
}

func (s *Store) round(at time.Time, budget int) *round {
	return &round{
		Store: s, id: bson.NewObjectID(), at: at, budget: budget,
		known: map[bson.ObjectID]*planDoc{}, touched: map[bson.ObjectID]bool{}, busy: map[bson.ObjectID]bool{},
		returned: map[bson.ObjectID]bool{}, bare: map[bson.ObjectID]bool{},
	}
}

// passBy is how long a node that has enough to do lets lie what is to be queued. A task that is held costs a claim nothing, while servers
// that do not keep order in indexes sort all that is queued.
const passBy = time.Second

// mostResumed is how many documents of work a round goes on with at most.
const mostResumed = 8

// An opening is what a round is begun with.
type opening struct {
	node   *instanceDoc // nil: the instance is not registered
	left   []workDoc    // by earlier rounds: the instance's own and what is nobody's
	queues []queueDoc   // that a turn may serve, if it was asked for: fewQueues or less if these are all
	audit  *auditDoc    // of a sweep; nil: there was none
}

// open reads the beginning of a round in one command. The handle knows the node's name only after
// it has seen the instance. Before that, the queues may include some that the node does not serve.
func (s *Store) open(ctx context.Context, instance plan.InstanceID, t *plan.Turn) (o opening, err error) {
	type part struct {
		ID          bson.ObjectID `bson:"_id"`
		Node        plan.NodeName `bson:"node"`
		Work, Queue bson.Raw
		Audit       bson.Raw
	}
	pipeline := bson.A{
		d("$match", d("_id", oid(instance.ID), "gone", nil)), d("$project", d("node", 1)),
		union(s.work, bson.A{
			d("$match", d("owner", d("$in", bson.A{nil, oid(instance.ID)}), "_id", addressable)),
			d("$sort", d("_id", 1)), d("$limit", mostResumed), d("$project", d("work", "$$ROOT")),
		}),
	}
	if t == nil {
		pipeline = append(pipeline, union(s.meta, bson.A{d("$match", d("_id", auditKey)), d("$project", d("_id", 0, "audit", "$$ROOT"))}))
	} else if len(t.Plugins) > 0 && t.Slots > 0 {
		pipeline = append(pipeline, union(s.queues, bson.A{
			d("$match", s.mayServe(t)), d("$sort", d("_id", 1)), d("$limit", fewQueues+1), d("$project", d("queue", "$$ROOT")),
		}))
	}
	parts, err := aggregate[part](ctx, s.instances, pipeline)
	if err != nil {
		return o, err
	}
	for _, p := range parts {
		switch {
		case p.Work != nil:
			o.left = append(o.left, workDoc{})
			err = decode(p.Work, &o.left[len(o.left)-1])
		case p.Audit != nil:
			o.audit = &auditDoc{}
			err = decode(p.Audit, o.audit)
		case p.Queue != nil:
			o.queues = append(o.queues, queueDoc{})
			err = decode(p.Queue, &o.queues[len(o.queues)-1])
		default:
			o.node = &instanceDoc{ID: p.ID, Node: p.Node}
		}
		if err != nil {
			return o, translate(err)
		}
	}
	return o, nil
}

// begin begins a round for an instance, with the remaining work of earlier rounds of anybody. A
// busy instance postpones, for a while, work without an owner that would only queue more tasks.
// begin returns plan.ErrInstanceGone if the instance is not registered. For a turn it also returns
// the queues that it may claim from. The caller calls end.
func (s *Store) begin(ctx context.Context, instance plan.InstanceID, budget int, busy bool, t *plan.Turn) (r *round, queues []queueDoc, err error) {
	if r, err = s.newRound(ctx, budget); err != nil {
		return nil, nil, err
	}
	o, err := s.open(ctx, instance, t)
	if err != nil {
		return nil, nil, err
	}
	i := o.node
	if i == nil {
		return nil, nil, fmt.Errorf("instance %s: %w", instance, plan.ErrInstanceGone)
	}
	r.instance, r.node, r.audited = i.ID, i.Node, o.audit
	s.mu.Lock()
	s.nodeOf[instance] = i.Node
	busy = busy && s.ample && time.Since(s.resumed) < passBy
	if !busy {
		s.resumed = time.Now()
	}
	s.mu.Unlock()
	for _, w := range o.left {
		if w.Owner.IsZero() && busy && (w.Kind == workRelease || w.Kind == workLook) {
			r.passed = true
			continue
		}
		if w.Owner.IsZero() {
			err = r.takeNote(ctx, w)
		} else if s.take(w.ID) {
			r.resume(w)
		}
		if err != nil {
			r.end()
			return nil, nil, err
		}
	}
	return r, o.queues, nil
}

// take marks a document of work as one that this process is at; drop takes the mark off. Without it a sweep would take what a turn of
// the same instance is at for something that a crash left.
func (s *Store) take(id bson.ObjectID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.doing[id] {
		return false
	}
	s.doing[id] = true
	return true
}

func (s *Store) drop(id bson.ObjectID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.doing, id)
}

// end releases the round's work. The next round finds the rest again.
func (r *round) end() {
	for _, w := range slices.Concat(r.docs, r.jobs) {
		r.drop(w.ID)
	}
}

// resume takes up what a document of work asks for.
func (r *round) resume(w workDoc) {
	if w.Kind != workRelease {
		r.jobs = append(r.jobs, w)
		return
	}
	r.docs = append(r.docs, w)
	for i, id := range w.Tasks {
		e := ended{id: id, own: w.Owner == r.instance && !r.instance.IsZero()}
		if i == 0 {
			e.many, e.paged, e.after = w.Many || w.Paged, w.Paged, w.After
		}
		r.queue = append(r.queue, e)
	}
}

// note writes down, before tasks finish, that they are to be released.
func (r *round) note(ctx context.Context, ids []bson.ObjectID) error {
	if len(ids) == 0 {
		return nil
	}
	w := workDoc{ID: bson.NewObjectID(), Owner: r.instance, Kind: workRelease, Tasks: ids}
	r.take(w.ID)
	if _, err := r.insert(ctx, r.work, w); err != nil {
		r.drop(w.ID)
		return err
	}
	r.docs = append(r.docs, w)
	return nil
}

// job writes down work that may take longer than this round, which begins with it.
func (r *round) job(ctx context.Context, kind string, target bson.ObjectID) error {
	w := workDoc{ID: bson.NewObjectID(), Owner: r.instance, Kind: kind, Target: target}
	r.take(w.ID)
	if _, err := r.insert(ctx, r.work, w); err != nil {
		r.drop(w.ID)
		return err
	}
	r.jobs = append(r.jobs, w)
	if r.under != nil {
		r.under[target] = true
	}
	return nil
}

// run works until the budget is used up or nothing is left to do. Work that takes many rounds gets half of a round that has children
// to release.
func (r *round) run(ctx context.Context) error {
	for r.budget > 0 && (len(r.jobs) > 0 || len(r.queue) > 0) {
		if len(r.jobs) > 0 {
			left := 0
			if len(r.queue) > 0 {
				left = r.budget / 2
			}
			r.budget -= left
			done, err := r.work1(ctx, &r.jobs[0])
			if err != nil {
				return err
			}
			r.budget += left
			if done {
				r.docs = append(r.docs, r.jobs[0])
				r.jobs = r.jobs[1:]
				continue
			}
		}
		for len(r.queue) > 0 && r.budget > 0 {
			if err := r.release(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// work1 does one piece of work as far as the budget reaches, and reports whether it is done.
func (r *round) work1(ctx context.Context, w *workDoc) (done bool, err error) {
	switch w.Kind {
	case workLook:
		return r.look(ctx, w.Target)
	case workItems:
		return r.makeItems(ctx, w.Target)
	case workCancel:
		w.From, done, err = r.cancelItems(ctx, w.Target, w.From)
		return done, err
	case workClose:
		return r.clear(ctx, w.Target)
	}
	return true, nil
}

// leave writes down what is left for the next round of whoever comes first, and reports whether anything is.
func (r *round) leave(ctx context.Context) (more bool, err error) {
	more = len(r.queue)+len(r.jobs) > 0
	left := workDoc{ID: bson.NewObjectID(), Kind: workRelease}
	for _, e := range r.queue {
		switch {
		case e.own && !e.known && !e.many:
			r.unsure = append(r.unsure, e.id) // nobody else is to find that it has not ended yet
			continue
		case len(left.Tasks) == 0:
			left.Many, left.Paged, left.After = e.many, e.paged, e.after
		}
		left.Tasks = append(left.Tasks, e.id)
	}
	for _, w := range []workDoc{left, {ID: bson.NewObjectID(), Owner: r.instance, Kind: workRelease, Tasks: r.unsure}} {
		if len(w.Tasks) == 0 {
			continue
		}
		if _, err := r.insert(ctx, r.work, w); err != nil {
			return false, err
		}
	}
	for _, w := range r.jobs {
		let := d("$unset", d("owner", 1))
		if w.From > 0 {
			let = append(let, bson.E{Key: "$set", Value: d("from", w.From)})
		}
		if _, err := r.updateOne(ctx, r.work, d("_id", w.ID), let); err != nil {
			return false, err
		}
	}
	return more, nil
}

// wrapUp ends plans, and then deletes what says that there is work, which has been done or was left.
func (r *round) wrapUp(ctx context.Context) error {
	if err := r.endPlans(ctx); err != nil || len(r.docs) == 0 {
		return err
	}
	ids := make(bson.A, len(r.docs))
	for i, w := range r.docs {
		ids[i] = w.ID
	}
	_, err := r.remove(ctx, r.work, d("_id", d("$in", ids)))
	return err
}
