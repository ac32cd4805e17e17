// Package roll hands finished tasks of no plan over to the receivers of their groups, before they are
// deleted. A node does so while it holds the role protocol.RoleRoll. Package rules decides what is
// handed over, and the store remembers the batches, so that the next holder sends the same tasks under
// the same id where one died.
package roll

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins/http"
)

// Store is what keeps the tasks, and remembers batches.
type Store interface {
	store.Store
	store.Roller
}

// StoreOf returns st as a Store. It returns false if st remembers no batches.
func StoreOf(st store.Store) (Store, bool) {
	s, ok := st.(Store)
	return s, ok
}

// A Poster sends a batch to a URI, with its id as the idempotency key. It returns nil once the receiver
// has it.
type Poster interface {
	Post(ctx context.Context, uri, key string, body []byte) error
}

const (
	lookEach  = time.Minute // for tasks whose time is over
	receivers = 4           // that are sent to at once, so that one that hangs does not hold up all others
)

// A Roller hands over tasks. One goroutine at a time may call its methods.
type Roller struct {
	st   Store
	to   Poster
	log  *slog.Logger
	rest map[receiver]rest
}

// A receiver is one URI of a group.
type receiver struct {
	group string
	kind  rules.RollKind
}

// A rest is for how long a receiver that fails is left alone.
type rest struct {
	failures int
	until    time.Time
}

// New returns a Roller. The log is told what was handed over, and who refuses it.
func New(st Store, to Poster, log *slog.Logger) *Roller {
	return &Roller{st, to, log, map[receiver]rest{}}
}

// errHeld says that another instance has the role by now.
var errHeld = errors.New("another instance has the role")

// Roll hands over what is kept no longer, if the instance holds the role, and reports whether it does.
// next is when to call again. Without a receiver and a batch it does not ask for the role.
func (r *Roller) Roll(ctx context.Context, me plan.InstanceID) (held bool, next time.Duration, err error) {
	if idle, err := r.idle(ctx); err != nil || idle {
		return false, lookEach, err
	}
	hold := func(ctx context.Context) error {
		held, err := r.st.Hold(ctx, protocol.RoleRoll, me)
		if err == nil && !held {
			err = errHeld
		}
		return err
	}
	if err = hold(ctx); err == nil {
		_, err = r.hand(ctx, "", hold)
	}
	if errors.Is(err, errHeld) {
		return false, lookEach, nil
	}
	next = lookEach
	for _, of := range r.rest {
		next = min(next, max(time.Until(of.until), 0))
	}
	return true, next, err
}

// idle reports whether nothing can be handed over, as in most stores.
func (r *Roller) idle(ctx context.Context) (bool, error) {
	groups, err := r.st.Groups(ctx)
	if err != nil || slices.ContainsFunc(groups, func(g plan.Group) bool { return g.SuccessURI != "" || g.DeadLetterURI != "" }) {
		return false, err
	}
	open, err := r.st.Batches(ctx)
	return len(open) == 0, err
}

// Handed is what was handed over.
type Handed struct{ Batches, Tasks int }

// Group hands over at once what a group keeps no longer, whoever holds the role. A node may be sending
// the same batch: the receiver then gets it twice under one id. It returns the refusal of a receiver.
func (r *Roller) Group(ctx context.Context, name string) (map[rules.RollKind]Handed, error) {
	return r.hand(ctx, name, func(context.Context) error { return nil })
}

// work is what one receiver is to get.
type work struct {
	receiver
	uri     string
	batches []store.Batch // that have begun
	rolls   []rules.Roll
}

// hand hands over what is kept no longer, of one group or ("") of all. goOn is asked before each batch.
func (r *Roller) hand(ctx context.Context, only string, goOn func(context.Context) error) (map[rules.RollKind]Handed, error) {
	p := &pass{Roller: r, goOn: goOn, patient: only == "", handed: map[receiver]Handed{}}
	all, err := p.find(ctx, only)
	if err != nil {
		return nil, err
	}
	var g errgroup.Group // a store that fails, or a role that is lost, stops each by itself
	g.SetLimit(receivers)
	failed := make([]error, len(all))
	for i, w := range all {
		g.Go(func() error { failed[i] = p.serve(ctx, w); return nil })
	}
	_ = g.Wait()
	err = errors.Join(failed...)
	sum := map[rules.RollKind]Handed{}
	for to, h := range p.handed {
		all := sum[to.kind]
		sum[to.kind] = Handed{all.Batches + h.Batches, all.Tasks + h.Tasks}
		r.log.Info("handed over finished tasks", "group", to.group, "kind", string(to.kind), "batches", h.Batches, "tasks", h.Tasks)
	}
	return sum, err
}

// A pass is one look at all that is to be handed over.
type pass struct {
	*Roller
	goOn    func(context.Context) error
	patient bool // a receiver that fails is asked again later, and is no error
	hidden  secret.Names
	queues  map[plan.QueueID]*plan.Queue

	mu     sync.Mutex // of handed, and of the rests
	handed map[receiver]Handed
}

// find returns what each receiver is to get. It lets the tasks of batches go that have no receiver any
// more.
func (p *pass) find(ctx context.Context, only string) (all []*work, err error) {
	groups, err := p.st.Groups(ctx)
	if err != nil {
		return nil, err
	}
	batches, err := p.st.Batches(ctx)
	if err != nil {
		return nil, err
	}
	queues, err := p.st.Queues(ctx)
	if err != nil {
		return nil, err
	}
	p.hidden, p.queues = secret.Of(queues), make(map[plan.QueueID]*plan.Queue, len(queues))
	for i := range queues {
		p.queues[queues[i].ID] = &queues[i]
	}
	of := map[receiver]*work{}
	add := func(to receiver, uri string) *work {
		if of[to] == nil {
			of[to] = &work{receiver: to, uri: uri}
			all = append(all, of[to])
		}
		return of[to]
	}
	for _, b := range batches {
		q := p.queue(b.Queue)
		if only != "" && q.Group != only {
			continue
		}
		kind, err := p.kindOf(ctx, &b)
		if err != nil {
			return nil, err
		}
		to := receiver{q.Group, kind}
		if uri := rules.ReceiverOf(groups, to.group, to.kind); uri != "" {
			w := add(to, uri)
			w.batches = append(w.batches, b)
		} else if err := p.st.EndBatch(ctx, b.ID, false); err != nil {
			return nil, err
		}
	}
	for _, roll := range rules.Rolls(groups, queues) {
		if only == "" || roll.Queue.Group == only {
			w := add(receiver{roll.Queue.Group, roll.Kind}, roll.URI)
			w.rolls = append(w.rolls, roll)
		}
	}
	return all, nil
}

// queue returns a queue; an empty one if it was deleted.
func (p *pass) queue(id plan.QueueID) *plan.Queue {
	if q := p.queues[id]; q != nil {
		return q
	}
	return &plan.Queue{ID: id}
}

// kindOf returns the kind of the tasks of a batch.
func (p *pass) kindOf(ctx context.Context, b *store.Batch) (rules.RollKind, error) {
	tasks, err := store.TasksByID(ctx, p.st, store.TaskQuery{Brief: true}, b.Tasks)
	if err != nil || len(tasks) == 0 {
		return "", err
	}
	return rules.RollKindOf(tasks[0].Status), nil
}

// serve hands over to one receiver what it is to get, until it fails.
func (p *pass) serve(ctx context.Context, w *work) error {
	if p.patient && time.Now().Before(p.resting(w.receiver)) {
		return nil
	}
	for _, b := range w.batches {
		if more, err := p.send(ctx, w, b, nil); err != nil || !more {
			return err
		}
	}
	for i := range w.rolls {
		if more, err := p.roll(ctx, w, &w.rolls[i]); err != nil || !more {
			return err
		}
	}
	return nil
}

// batchesAhead is for how many batches the roller looks for tasks at once. On MongoDB a look may cost all
// tasks that are to be handed over. The tasks of a look take 7 MB.
const batchesAhead = 10

// errNotReceived ends the batches of a receiver that fails.
var errNotReceived = errors.New("the receiver has not taken a batch")

// roll hands over the tasks of a queue. It reports whether the receiver has all of them. Once the receiver
// has taken a batch, the next one begins while that one is sent and deleted.
func (p *pass) roll(ctx context.Context, w *work, roll *rules.Roll) (received bool, err error) {
	var sending errgroup.Group // one batch
	defer func() {
		if failed := sending.Wait(); err == nil {
			err = failed
		}
		if received = err == nil; errors.Is(err, errNotReceived) {
			err = nil
		}
	}()
	for more, taken := true, false; more; {
		tasks, err := p.st.ToRoll(ctx, roll.Queue.ID, roll.Limits, batchesAhead*rules.MostRolled)
		if err != nil {
			return false, err
		}
		for more = false; len(tasks) > 0; more = true {
			b, body, left, err := p.begin(ctx, w, roll.Queue.ID, tasks)
			if err != nil {
				return false, err
			}
			if err := sending.Wait(); err != nil {
				return false, err
			}
			if tasks = left; len(b.Tasks) == 0 { // other processes have them
				break
			}
			sending.Go(func() error {
				received, err := p.send(ctx, w, b, body)
				if err == nil && !received {
					err = errNotReceived
				}
				return err
			})
			if taken {
				continue
			}
			if err := sending.Wait(); err != nil {
				return false, err
			}
			taken = true
		}
	}
	return true, nil
}

// begin begins a batch of the first of some tasks, and returns it with its body, if that is known, and the
// tasks that are left. The batch has no tasks if none of these is to be handed over any more.
func (p *pass) begin(ctx context.Context, w *work, queue plan.QueueID, tasks []plan.Task) (b store.Batch, body []byte, left []plan.Task, err error) {
	if err := p.goOn(ctx); err != nil {
		return b, nil, nil, err
	}
	b = store.Batch{ID: plan.NewID(time.Now()), Queue: queue}
	body, in, left, err := p.body(ctx, w, &b, tasks)
	if err == nil && len(in) > 0 {
		b.Tasks, err = p.st.BeginBatch(ctx, b.ID, b.Queue, in)
	}
	if len(b.Tasks) < len(in) { // some have changed meanwhile
		body = nil
	}
	return b, body, left, err
}

// send sends a batch that has begun, and ends it. It reports whether the receiver has it.
func (p *pass) send(ctx context.Context, w *work, b store.Batch, body []byte) (more bool, err error) {
	if err := p.goOn(ctx); err != nil {
		return false, err
	}
	if body == nil {
		tasks := make([]plan.Task, len(b.Tasks))
		for i, id := range b.Tasks {
			tasks[i].ID = id
		}
		if body, _, _, err = p.body(ctx, w, &b, tasks); err != nil {
			return false, err
		}
	}
	if err := p.to.Post(ctx, w.uri, b.ID.String(), body); err != nil {
		return false, p.failed(ctx, w, &b, err)
	}
	if err := p.st.EndBatch(ctx, b.ID, true); err != nil {
		return false, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.rest, w.receiver)
	h := p.handed[w.receiver]
	p.handed[w.receiver] = Handed{h.Batches + 1, h.Tasks + len(b.Tasks)}
	return true, nil
}

func (p *pass) resting(to receiver) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rest[to].until
}

// failed has a receiver rest that did not take a batch.
func (p *pass) failed(ctx context.Context, w *work, b *store.Batch, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if !p.patient {
		return fmt.Errorf("group %q: the receiver of %s has not taken a batch of %d tasks: %w", w.group, w.kind, len(b.Tasks), err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	failures := p.rest[w.receiver].failures + 1
	var refused *http.Refused
	asked := time.Duration(0)
	if errors.As(err, &refused) {
		asked = refused.After
	}
	pause := rules.RollPause(failures, asked)
	p.rest[w.receiver] = rest{failures, time.Now().Add(pause)}
	p.log.Warn("a receiver has not taken finished tasks, which stay", "group", w.group, "kind", string(w.kind), "batch", b.ID, "tasks", len(b.Tasks), "error", err, "again_in", pause)
	return nil
}
