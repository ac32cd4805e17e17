// Package submit owns how a plan enters a store. It makes the queues, inserts the plan as
// submitting, inserts the tasks in chunks, and makes the plan ready with one last write. A
// submission that dies half-way runs nothing. Anybody who has its spec can continue it.
package submit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/hint"
	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/internal/refusal"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// ErrQueue means that a queue does not fit the plan: it runs another plugin, or more tasks at once.
// It also means that a queue does not exist and submit may not make it; that is a plan.ErrNotFound
// as well.
var ErrQueue = errors.New("the queue does not suit the plan")

// A queueError gives the reason. It is an ErrQueue, and wraps the error that it holds.
type queueError struct{ error }

func (e *queueError) Unwrap() []error { return []error{ErrQueue, e.error} }

// chunk is how many tasks are handed at once to a store that states no preference. Other writers
// get their turn between chunks.
const chunk = 1000

// Store is what a submission asks of a store.
type Store interface {
	store.Admin
	Plan(ctx context.Context, id plan.PlanID) (plan.Plan, error)
	Queues(ctx context.Context) ([]plan.Queue, error)
	Tasks(ctx context.Context, q store.TaskQuery) ([]plan.Task, error)
	Now(ctx context.Context) (time.Time, error)
}

// Submit validates the spec, puts it into the store and makes it ready. With own, a node of its own
// is going to run the plan. It returns plan.Problems for a spec that is not valid. For such a spec,
// and for a queue that is missing or has another plugin, it changes nothing. If it fails later, it
// returns the plan as far as it is known. Nothing of that plan runs until GoOn has completed the
// submission, and a sweep removes it after an hour.
func Submit(ctx context.Context, s Store, spec *plan.Spec, own bool) (plan.Plan, error) {
	p, _, err := submit(ctx, s, spec, asked{}, own)
	return p, err
}

// Once is Submit for a request that has a key and may be repeated. For a repeated request it returns
// the same plan, whose own stays, and adds missing tasks, as GoOn does. If the spec differs from the
// first one, it returns plan.ErrConflict and that plan. If the first submission was abandoned, it
// returns plan.ErrPlanEnded. Requests without a key are never repeated.
func Once(ctx context.Context, s Store, spec *plan.Spec, key string, own bool) (p plan.Plan, repeated bool, err error) {
	return onceWith(ctx, s, spec, key, own, nil)
}

// A Pack is the job pack that a plan is submitted with.
type Pack struct {
	Content  *io.SectionReader
	MaxTasks int // how many tasks of the plan run at once, in a queue of its own; 0: any number
}

// limits reports whether the plan has a queue of its own.
func (pack *Pack) limits() bool { return pack != nil && pack.MaxTasks > 0 }

// within returns the spec with all its tasks in the queue of the plan's own, if it has one.
func (pack *Pack) within(spec *plan.Spec, p plan.PlanID) *plan.Spec {
	if !pack.limits() {
		return spec
	}
	in := *spec
	in.Limits = []plan.QueueLimit{{Queue: rules.JobQueue(p), Threads: pack.MaxTasks}}
	in.Tasks = slices.Clone(spec.Tasks)
	for i := range in.Tasks {
		in.Tasks[i].Queue = rules.JobQueue(p)
	}
	return &in
}

// WithPack is Once for a plan whose job pack the store keeps beside it. The spec says which pack it is,
// so that a repeated request with another one differs.
func WithPack(ctx context.Context, s Store, spec *plan.Spec, pack *Pack, key string) (p plan.Plan, repeated bool, err error) {
	if _, ok := s.(store.Packs); !ok {
		return plan.Plan{}, false, errors.New("this store keeps no job packs")
	}
	return onceWith(ctx, s, spec, key, false, pack)
}

func onceWith(ctx context.Context, s Store, spec *plan.Spec, key string, own bool, pack *Pack) (p plan.Plan, repeated bool, err error) {
	p, repeated, err = once(ctx, s, spec, key, own, pack)
	if repeated && errors.Is(err, plan.ErrConflict) {
		if p.Source != spec.Source && p.Source != "" && spec.Source != "" {
			err = fmt.Errorf("its file is %s, and this one is %s; submit that file, or use another key: %w", p.Source, spec.Source, err)
		} else {
			err = fmt.Errorf("%w; submit that again, or use another key", err)
		}
		err = fmt.Errorf("the idempotency key %q was used for another plan, %s: %w", key, p.Title(), err)
	}
	return p, repeated, err
}

func once(ctx context.Context, s Store, spec *plan.Spec, key string, own bool, pack *Pack) (p plan.Plan, repeated bool, err error) {
	by, err := ask(ctx, s, spec, key)
	if err != nil {
		return plan.Plan{}, false, err
	}
	by.pack = pack
	p, repeated, err = submit(ctx, s, spec, by, own)
	same := false
	if err == nil && repeated {
		if same, err = compiler.SameRequest(by.request, p.Request); err != nil {
			return p, true, err
		}
	}
	half := repeated && p.State == plan.PlanSubmitting
	if err == nil && half {
		err = by.putPack(ctx, s, p.ID)
	}
	if err == nil && half {
		err = GoOn(ctx, s, p, by.pack.within(spec, p.ID))
	}
	if err != nil && key != "" && !p.ID.IsZero() { // who submits the same at the same time may have been quicker, and its tasks run since
		if now, unread := s.Plan(ctx, p.ID); unread == nil && began(now.State) {
			p, half, err = now, false, nil
		}
	}
	if err == nil && repeated && !half { // its tasks are not compared, because a retry may have changed them
		if !same {
			err = checkPlan(ctx, s, spec, &p)
		}
		if err == nil && p.State == plan.PlanAbandoned {
			err = fmt.Errorf("submit plan %q: its submission was abandoned half-way, and no task of it ran; submit it with another key: %w", spec.Name, plan.ErrPlanEnded)
		}
	}
	return p, repeated, err
}

// asked identifies a request by its key and its content, which are empty for a request without a key.
type asked struct {
	key, request string
	pack         *Pack // nil: it has none
}

// putPack puts the job pack of a plan that is being submitted, before its tasks.
func (by *asked) putPack(ctx context.Context, s Store, p plan.PlanID) error {
	if by.pack == nil {
		return nil
	}
	return s.(store.Packs).PutPack(ctx, p, by.pack.Content) // WithPack has asked
}

// ask returns what a request with that key is.
func ask(ctx context.Context, s Store, spec *plan.Spec, key string) (by asked, err error) {
	if key == "" {
		return by, nil
	}
	there, err := s.Queues(ctx)
	if err != nil {
		return by, err
	}
	by.key = key
	if by.request, err = compiler.Request(spec, secret.Of(there)); err != nil {
		if invalid := compiler.Validate(spec); invalid != nil { // which says where
			err = invalid
		}
	}
	return by, err
}

// began reports whether a plan in that state was whole: one that was cancelled need not have been.
func began(s plan.Lifecycle) bool {
	return s == plan.PlanRunning || s == plan.PlanSucceeded || s == plan.PlanFailed
}

// Check returns what Submit would refuse the spec for as the store is now, and writes nothing. With a draft, whose params are not those that
// it is going to have, no more is asked than whether its queues do.
func Check(ctx context.Context, s Store, spec *plan.Spec, draft bool) error {
	if !draft {
		_, err := prepare(ctx, s, spec, nil)
		return err
	}
	there, err := s.Queues(ctx)
	for _, need := range compiler.Queues(spec) {
		if err == nil {
			_, err = choose(there, need)
		}
	}
	return err
}

// CheckOverlap asks rules.CheckOverlap of a plan that is to start, as the store is now. The store
// decides it once more as the plan starts.
func CheckOverlap(ctx context.Context, r interface {
	Plans(ctx context.Context, q store.PlanQuery) ([]plan.Plan, error)
}, p *plan.Plan) error {
	if p.Overlap != plan.OverlapSkip {
		return nil
	}
	for _, state := range []plan.Lifecycle{plan.PlanSubmitting, plan.PlanRunning} {
		found, err := r.Plans(ctx, store.PlanQuery{Name: p.Name, State: &state, NoCounts: true, NoParams: true, Limit: 2})
		if err != nil {
			return err
		}
		for i := range found {
			if found[i].ID != p.ID {
				return rules.CheckOverlap(p, &found[i])
			}
		}
	}
	return nil
}

// A prepared plan fits into the store; nothing of it is in.
type prepared struct {
	plan    plan.Plan
	tasks   []plan.Task
	missing []plan.Queue // that its tasks go to
}

func prepare(ctx context.Context, s Store, spec *plan.Spec, pack *Pack) (out prepared, err error) {
	if err := compiler.Validate(spec); err != nil {
		return out, err
	}
	there, err := s.Queues(ctx)
	if err != nil {
		return out, err
	}
	now := time.Now()
	id := plan.PlanID{ID: plan.NewIDs(now, 1+len(spec.Tasks)).Next()} // which names its queue
	out.plan, out.tasks, err = compiler.Again(pack.within(spec, id), id, now, func(need compiler.QueueNeed) (plan.QueueID, error) {
		q, err := choose(slices.Concat(there, out.missing), need)
		if err == nil && q.ID.IsZero() {
			q.ID.ID = plan.NewID(time.Now())
			out.missing = append(out.missing, q)
		}
		return q.ID, err
	})
	if err != nil {
		return out, err
	}
	if l, ok := s.(store.Fitter); ok { // else it is met half-way
		if err := l.Fits(ctx, out.plan, out.tasks); err != nil {
			return out, fmt.Errorf("submit plan %q: %w", spec.Name, err)
		}
	}
	return out, nil
}

// submit reports whether the plan of that key was there before; then it does no more.
func submit(ctx context.Context, s Store, spec *plan.Spec, by asked, own bool) (made plan.Plan, repeated bool, err error) {
	whole, err := prepare(ctx, s, spec, by.pack)
	if err != nil {
		return plan.Plan{}, false, err
	}
	p, tasks := whole.plan, whole.tasks
	queues := func() error {
		for _, q := range whole.missing {
			made, err := ensure(ctx, s, q)
			if err != nil {
				return err
			}
			for i := range tasks {
				if tasks[i].Queue == q.ID {
					tasks[i].Queue = made.ID // another one, if somebody else was faster
				}
			}
		}
		return nil
	}
	if !by.pack.limits() {
		if err := queues(); err != nil {
			return plan.Plan{}, false, err
		}
	}
	p.Own, p.Key, p.Request = own, by.key, by.request
	if made, err = s.CreatePlan(ctx, p); err != nil {
		return made, false, fmt.Errorf("submit plan %q: %w", spec.Name, err)
	}
	if made.ID != p.ID {
		return made, true, nil
	}
	if by.pack.limits() { // its queue goes with the plan, and so comes after it
		err = queues()
	}
	if err == nil {
		err = by.putPack(ctx, s, p.ID)
	}
	if err == nil {
		err = addAll(ctx, s, p.ID, tasks)
	}
	if err != nil {
		return made, false, fmt.Errorf("submit plan %q: %w", spec.Name, err)
	}
	made.State = plan.PlanRunning
	return made, false, nil
}

// addAll adds a plan's tasks and makes it ready.
func addAll(ctx context.Context, s Store, p plan.PlanID, tasks []plan.Task) error {
	size := chunk
	if b, ok := s.(store.Batcher); ok {
		size = cmp.Or(b.SubmitBatch(), chunk)
	}
	for part := range slices.Chunk(tasks, size) {
		if err := s.AddTasks(ctx, p, part); err != nil {
			return err
		}
	}
	return s.Ready(ctx, p)
}

// GoOn completes a submission that stopped half-way: it adds the missing tasks of the spec and
// makes the plan ready. Several processes may do that at once, the first submitter among them,
// because all add the same tasks. GoOn returns plan.Problems for a spec that is not valid. It
// returns plan.ErrConflict if the spec differs from what the store has of the plan. In both cases
// it changes nothing.
func GoOn(ctx context.Context, s Store, p plan.Plan, spec *plan.Spec) error {
	if err := compiler.Validate(spec); err != nil {
		return err
	}
	there, err := s.Queues(ctx)
	if err != nil {
		return err
	}
	again, tasks, err := compiler.Again(spec, p.ID, time.Now(), func(need compiler.QueueNeed) (plan.QueueID, error) {
		q, err := choose(there, need)
		switch {
		case err != nil || !q.ID.IsZero():
		case need.Name == rules.JobQueue(p.ID):
			q, err = ensure(ctx, s, q)
		default:
			err = refusal.New(plan.ErrConflict, "queue %q was not needed", need.Name) // else it was made before the plan
		}
		return q.ID, err
	})
	if err != nil {
		return err
	}
	secrets := secret.Of(there)
	if err := checkSame(&again, &p, secrets); err != nil {
		return err
	}
	shown := secrets.And(p.Secrets)
	missing, err := missing(ctx, s, p.ID, tasks, secrets, append(shown.Values(again.Params), shown.Values(p.Params)...))
	if err != nil {
		return err
	}
	return addAll(ctx, s, p.ID, missing)
}

// checkPlan returns plan.ErrConflict if the spec makes another plan than p. It is for requests that
// cannot be compared.
func checkPlan(ctx context.Context, s Store, spec *plan.Spec, p *plan.Plan) error {
	again, _, err := compiler.Again(spec, p.ID, time.Now(), func(compiler.QueueNeed) (plan.QueueID, error) { return plan.QueueID{}, nil })
	if err != nil {
		return err
	}
	there, err := s.Queues(ctx)
	if err != nil {
		return err
	}
	return checkSame(&again, p, secret.Of(there))
}

// checkSame returns plan.ErrConflict for a plan that is not what the one in the store was begun with. Secrets are not compared: a store that
// shows none would tell by that which is the right one.
func checkSame(again, p *plan.Plan, secrets secret.Names) error {
	switch {
	case again.Name != p.Name:
		return refusal.New(plan.ErrConflict, "it is the plan %q", again.Name)
	case again.Size != p.Size:
		return refusal.New(plan.ErrConflict, "it has %d tasks", again.Size)
	case !slices.Equal(again.Secrets, p.Secrets):
		return refusal.New(plan.ErrConflict, "it has other secrets")
	case !jsontext.Same(secrets.And(p.Secrets).Hide(again.Params), secrets.And(p.Secrets).Hide(p.Params)):
		return refusal.New(plan.ErrConflict, "it has other params")
	}
	return nil
}

// missing returns the plan's tasks that are not in the store, or plan.ErrConflict if a stored task
// differs. values are secrets of the plan's params.
func missing(ctx context.Context, s Store, p plan.PlanID, tasks []plan.Task, secrets secret.Names, values []string) ([]plan.Task, error) {
	byID := rules.ByID(tasks)
	err := store.EachTask(ctx, s, store.TaskQuery{Plan: p, NoItems: true, Needs: true, Params: true, Limit: chunk}, func(t *plan.Task) error {
		if want, ok := byID[t.ID]; !ok || !same(t, want, secrets, values) {
			return refusal.New(plan.ErrConflict, "task %q differs", t.Key())
		}
		delete(byID, t.ID)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(tasks, func(t plan.Task) bool { return byID[t.ID] == nil }), nil
}

// same reports whether two tasks of one id wait for the same and do the same, but for their secrets.
func same(a, b *plan.Task, secrets secret.Names, values []string) bool {
	var written [2]json.RawMessage
	for i, t := range []*plan.Task{a, b} {
		shown := plan.Task{Name: t.Name, Queue: t.Queue, Needs: t.Needs, Definition: t.Definition, Params: t.Params}
		secrets.HideTask(&shown, values...)
		raw, err := json.Marshal(shown)
		if err != nil {
			return false
		}
		written[i] = raw
	}
	return jsontext.Same(written[0], written[1])
}

// Queues returns the function that Compile asks for queues. A missing queue that is named as its
// plugin is made without a limit. A missing queue that the plan limits is made with that limit. Any
// other queue has to exist, with the same plugin and no higher limit.
func Queues(ctx context.Context, s Store) func(compiler.QueueNeed) (plan.QueueID, error) {
	return func(need compiler.QueueNeed) (plan.QueueID, error) {
		there, err := s.Queues(ctx)
		if err != nil {
			return plan.QueueID{}, err
		}
		q, err := choose(there, need)
		if err == nil && q.ID.IsZero() {
			q, err = ensure(ctx, s, q)
		}
		return q.ID, err
	}
}

// choose returns the queue that tasks go to; one without an id is to be made.
func choose(there []plan.Queue, need compiler.QueueNeed) (plan.Queue, error) {
	i := slices.IndexFunc(there, func(q plan.Queue) bool { return q.Name == need.Name })
	switch {
	case i >= 0:
		return there[i], fits(there[i], need)
	case need.Make:
		return plan.Queue{Name: need.Name, Plugin: need.Plugin, Threads: need.Threads, Unlimited: need.Threads == 0}, nil
	}
	return plan.Queue{}, &queueError{
		fmt.Errorf("queue %q: %w; make it: sluice queue create %s --plugin %s", need.Name, plan.ErrNotFound, need.Name, need.Plugin),
	}
}

// ensure makes a queue, unless somebody else was faster, and returns the one there is.
func ensure(ctx context.Context, s Store, q plan.Queue) (plan.Queue, error) {
	made, err := s.EnsureQueue(ctx, q)
	if err != nil {
		return plan.Queue{}, fmt.Errorf("queue %q: %w", q.Name, err)
	}
	return made, fits(made, compiler.QueueNeed{Name: q.Name, Plugin: q.Plugin, Threads: q.Threads})
}

// fits returns an ErrQueue for a queue that is there and does not do for the plan, which never changes it: others use it too.
func fits(q plan.Queue, need compiler.QueueNeed) error {
	if q.Plugin != need.Plugin {
		return &queueError{fmt.Errorf("queue %q runs plugin %q, and the plan's tasks in it need %q; choose another queue", q.Name, q.Plugin, need.Plugin)}
	}
	if need.Threads > 0 && (q.Unlimited || q.Threads > need.Threads) {
		has := fmt.Sprintf("runs %d tasks at once", q.Threads)
		if q.Unlimited {
			has = "has no limit"
		}
		return &queueError{fmt.Errorf("queue %q %s, and this plan wants at most %d; lower it for all plans (sluice queue set %s --threads %d), or choose another queue",
			q.Name, has, need.Threads, q.Name, need.Threads)}
	}
	return nil
}

// A Note is what a plan meets in the store that is no mistake, and probably not meant.
type Note struct {
	Text string // for people
	hint.Hint
}

// Notes names the queues that run fewer tasks at once than the plan asks for. A plan never raises
// the limit of an existing queue.
func Notes(ctx context.Context, s Store, spec *plan.Spec) (notes []Note, err error) {
	if len(spec.Limits) == 0 {
		return nil, nil
	}
	there, err := s.Queues(ctx)
	if err != nil {
		return nil, err
	}
	for _, need := range compiler.Queues(spec) {
		for i := range there {
			if there[i].Name != need.Name {
				continue
			}
			if why, h := hint.Slower(&there[i], need.Threads); why != "" {
				notes = append(notes, Note{why, h})
			}
		}
	}
	return notes, nil
}
