package mongodb

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
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
func (w *workDoc) Bound() { wire.Within(&w.From) }

// A parent is a finished task whose children are to be told. The known facts save a read.
type parent struct {
	id       bson.ObjectID
	known    bool // the fields below are filled
	plan, of bson.ObjectID
	outcome  rules.Outcome
	reason   plan.Reason
	open     bool // it is still marked as not released
	failed   bool // it is an item of a foreach task with max_failures, and failed
	dropped  bool // it is an item of a foreach task that dropped its items, which does not count its failures again
	items    bool // it is a foreach task that ended before its items
	outside  bool // its plan was closed, and nothing of that has to be released: only tasks of no plan
	own      bool // this instance noted it before it wrote its end, and that write may still be under way
	here     bool // this round wrote its end

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
	queue     []parent                   // to be released, first come first
	unsure    []bson.ObjectID            // what this instance still has, and noted that it ends
	unmarked  []wire.Change              // that take the mark off tasks that the round ended and released
	jobs      []workDoc                  // other work
	docs      []workDoc                  // of work, that are done with when the queue is empty
	known     map[bson.ObjectID]*planDoc // plans as they were read last
	preview   *preview                   // of what comes next; nil: there is none
	touched   map[bson.ObjectID]bool     // plans in which something finished,
	seen      map[bson.ObjectID]seenPlan // and some of these that endPlans has looked at together,
	stayed    map[bson.ObjectID]bool     // in which a task waits or was queued since something finished,
	busy      map[bson.ObjectID]bool     // in which something was claimed,
	returned  map[bson.ObjectID]bool     // and to which claimed tasks came back
	passed    bool                       // there is work that it passed by
	queued    int
	serves    map[bson.ObjectID]bool                   // queues that the turn claims of; nil: it is not known
	only      bson.ObjectID                            // the one plan of the node, if it has one
	news      map[bson.ObjectID]map[bson.ObjectID]bool // plans of which the round queued something, by queue
	forOthers bool                                     // something was queued that the turn cannot claim
	over      []protocol.EndedPlan                     // plans that ended
	begun     int                                      // plans that have begun their tasks of finally
	rest      time.Duration                            // until the first rate lets the next task start; 0: none holds one up
	taken     int                                      // tasks that were claimed
	refused   []string                                 // tasks that were not claimed or ended as they should have been, and why
	othersIn  map[bson.ObjectID]bool                   // whether nodes of other programs serve a queue
	audited   *auditDoc                                // of a sweep: when an audit was begun last
	under     map[bson.ObjectID]bool                   // of a sweep: plans and tasks that work is noted for
	settling  settling                                 // what settle gathers
	pending   []*ending                                // endings that are not written yet,
	again     []engine.Attempt[*ending]                // those that are to be decided about again,
	lost      []plan.TaskID                            // and tasks whose claims were lost
	ready     []taskDoc                                // of the first endings of a turn
	turn      turning
	guess     guessing
	taking    taking
	claims    int                    // tasks that the turn claimed
	sweeping  bool                   // it is a sweep
	waits     time.Duration          // until the next delay is over
	gone      idList                 // owners of notes of work that are gone
	bare      map[bson.ObjectID]bool // what other programs ended, and what they printed does not fit into their documents as an output
}

// A seenPlan is what one look at several plans says of one of them.
type seenPlan struct {
	open  bool // a task is unfinished
	clean bool // none is, and none is broken or was cancelled
}

// newRound begins a round for a call of Admin.
func (s *Store) newRound(ctx context.Context, budget int) (*round, error) {
	if budget <= 0 {
		budget = protocol.DefaultBudget
	}
	at, err := s.Now(ctx)
	return s.round(at, budget), err
}

func (s *Store) round(at time.Time, budget int) *round {
	return &round{
		Store: s, id: bson.NewObjectID(), at: at, budget: budget,
		known: map[bson.ObjectID]*planDoc{}, touched: map[bson.ObjectID]bool{}, busy: map[bson.ObjectID]bool{}, stayed: map[bson.ObjectID]bool{},
		returned: map[bson.ObjectID]bool{}, bare: map[bson.ObjectID]bool{},
	}
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
		e := parent{id: id, own: w.Owner == r.instance && !r.instance.IsZero()}
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
	if _, err := r.Insert(ctx, r.work, w); err != nil {
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
	if _, err := r.Insert(ctx, r.work, w); err != nil {
		r.drop(w.ID)
		return err
	}
	r.jobs = append(r.jobs, w)
	if r.under != nil {
		r.under[target] = true
	}
	return nil
}

// mostResumed is how many documents of work a round goes on with at most.
const mostResumed = 8

// auditDoc, in meta, says when an audit was begun last.
type auditDoc struct {
	At    time.Time     `bson:"at"`
	After bson.ObjectID `bson:"after,omitempty"` // it goes on with the plans behind this one
}

const auditKey = "audit"

// fill takes what release has to know from the task.
func (p *parent) fill(t *taskDoc) {
	p.known, p.plan, p.of = true, t.Plan, t.Of
	p.outcome, p.reason, p.open = rules.OutcomeOf(t.Status, t.Reason, t.Lenient), t.Reason, t.Open
	p.failed = !p.dropped && t.Budget && !t.Of.IsZero() && t.outcome() == rules.OutcomeFailed
	p.items = t.dropsItems()
}

func keys(chunk []parent) idList {
	return idsFrom(chunk, func(e parent) bson.ObjectID { return e.id })
}

// lateAfter is how long after they were inserted tasks are taken for dead that were added to a plan that ran, and that it never took.
const lateAfter = 10 * time.Minute

// deleteAtOnce is how many tasks one command deletes.
const deleteAtOnce = 1000

// markQueued takes note of a task that is queued: whether it is one that this turn can claim.
func (r *round) markQueued(queue, of bson.ObjectID) {
	if r.serves != nil && !r.serves[queue] || !r.only.IsZero() && of != r.only {
		r.forOthers = true
		return
	}
	if r.news == nil {
		r.news = map[bson.ObjectID]map[bson.ObjectID]bool{}
	}
	if r.news[queue] == nil {
		r.news[queue] = map[bson.ObjectID]bool{}
	}
	r.news[queue][of] = true
}

// mostLeftAlone is of how many tasks a handle remembers that they are to be left alone.
const mostLeftAlone = 1000

// A turn claims beside its endings if it has so many of them, and the claim before it was so short a time ago: then another turn comes soon.
const (
	manyEnded = 64
	justNow   = time.Second
)

const (
	// fewEnded is up to how many endings a turn is small.
	fewEnded = 32
	// fewMarked is up to how many endings it has no note of. To take the mark off each of more tasks would cost more than to make a note, and
	// to delete it.
	fewMarked = 8
)

// plan reads a plan; plan.ErrNotFound if there is none.
func (s *Store) plan(ctx context.Context, id plan.PlanID) (*planDoc, error) {
	p, err := wire.FindOne[planDoc](ctx, s.plans, d("_id", oid(id.ID)), noFile)
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
	var asked idSet
	if asked.add(ids...); len(asked.list) == 0 {
		return nil
	}
	docs, err := wire.Find[planDoc](ctx, r.plans, d("_id", d("$in", asked.list)), wire.Query{Fields: planFields})
	for i := range docs {
		r.known[docs[i].ID] = &docs[i]
	}
	return err
}

// planFields are what the rules, and the writes of a plan, have to know of it.
var planFields = ones("name run state closing finally ending on_failure edits retry keep priority")

// childFields are what release has to know of a held task.
var childFields = ones("status queue plan name rank def along over coe budget finally params text needs joins of index hold gen notbefore ran items expanded attempt cancel leaves byref parameters reason rescues lines")

// settling is what settle gathers until it writes.
type settling struct {
	parents map[bson.ObjectID]*taskDoc
	changes []wire.Change
	queued  []*waiter // of these changes
	size    int       // of these changes, in bytes
	ends    []stepDoc
	early   map[bson.ObjectID]idList // tasks that may go on once their plan is ready
	waiting int                      // how many stay held
}

// A waiter is a held task and what is known of what it waits for.
type waiter struct {
	*taskDoc
	def     plan.Definition
	seen    rules.Outcome // outcomes of what has finished
	all     bool          // everything has
	failed  int           // of its items
	along   rules.Along   // of its heads
	bytes   int           // of all outputs together
	largest int           // of the largest
	damage  error         // its definition cannot be read
	whole   bool          // other programs may claim it, which find nothing that is not in its params
	plan    *planDoc      // nil: it is of none
	set     bson.D        // what Deliver gives it
}

// An ending is how the claim of a task ends, and what the task said before.
type ending struct {
	engine.Attempt[*ending]
	task    *taskDoc
	printed *protocol.Printed
	list    string      // the list of items that were kept
	anew    bool        // what it adds to is not as it should be: it is set
	bare    bool        // the document takes nothing but the end
	lost    bool        // the instance that has the claim is gone
	queue   plan.OnLost // of the queue of a lost task
}

// turning is what a round knows of its turn.
type turning struct {
	small   bool                        // few tasks end
	marks   bool                        // fewer still do: each stays open until its children are released, and no note tells of it
	ended   map[bson.ObjectID]*taskDoc  // by a small one, with parentFields: a retry that takes one back since changes its children
	unread  func(context.Context) error // reads the beginning of a small one, once its endings are written
	hint    bool                        // the preview that has no children of the released tasks was read before they ended
	unsure  []wire.Change               // that would take the marks off these
	next    *guess                      // for the next turn, once this one has done all; nil: none
	queues  []queueDoc                  // that the turn may claim from
	ahead   *round                      // claims concurrently with the other steps; nil: none does
	done    chan struct{}               // is closed when it has claimed
	claimed []protocol.ClaimedTask      // by it
	err     error
}

// noFile reads plans without their files, which may be large.
var noFile = wire.Query{Fields: d("file", 0)}

// addAtOnce is how many tasks one command inserts, or reads to check them.
const addAtOnce = 1000

// taking is what a round knows of the task that it takes.
type taking struct {
	by *instanceDoc
	q  *queueDoc // of the task
}

// A draw is what a claim takes from one queue.
type draw struct {
	queue  *queueDoc
	want   int // how many it was dealt
	ask    int // how many tasks were asked for
	parts  map[plan.PlanID]*part
	looked bool                           // the claim has just looked for plans with work in the queue,
	all    bool                           // and for any, not only for new ones
	passed map[plan.PlanID]protocol.Share // how far each plan has passed with what was read; nil: plans do not take turns
	docs   []taskDoc                      // and read, in the queue's order,
	n      int                            // how many of them are to be claimed,
	got    []taskDoc                      // and those that were, which nobody has looked at yet
	more   bool                           // there may be more that it could have taken
	over   bool                           // nothing more is to be had of it now
}

// key is the plan of a part.
func (p *part) key() ofPlan { return ofPlan{p.queue.ID, p.plan} }

// A part is what a claim reads of a queue: of one plan, or of none, where plans take turns.
type part struct {
	*draw
	turns bool
	plan  bson.ObjectID
	ask   int
	docs  []taskDoc
	near  bool      // a preview asked only for what is before a horizon
	whole bool      // a command read all that wait,
	read  []taskDoc // which are these
}
