package den

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// A bounded store is the node's store with a deadline for every answer. A connection can be lost
// without a sign to either end. A call on it then hangs, while heartbeats get through on another
// connection. So the node would keep its claims, could end none of them, and nobody would take them
// over. A call without an answer in time returns plan.ErrUnavailable, and its caller repeats it.
// The contract of the stores allows that, whatever the first call did.
//
// Beat has a bound of its own (heart.go), and Wakes does not wait.
//
// It also keeps in mind that the store is gone, whichever call was told so: then the node ends.
type bounded struct {
	Store
	handover Handover // nil: the store has none
	observer Observer
	lease    time.Duration

	mu    sync.Mutex
	most  time.Duration
	calls map[*call]struct{} // that wait for their answer
	why   error              // is a plan.ErrStoreGone once gone is closed
	gone  chan struct{}
}

type call struct {
	most time.Duration
	over *time.Timer
}

const (
	// answerWithin is far longer than a working store takes for the largest call of a node. Such a
	// call is a turn with large outputs, or an answer of plan.MaxInputs bytes. Small calls get no
	// more than a lease.
	answerWithin = time.Minute
	// hurriedWithin is the deadline once the node has to end at once.
	hurriedWithin = 3 * time.Second
)

// errNoAnswer is the cause that cancels a late call. It lets a store distinguish that from a
// cancellation by a person, and name the call that it waited for.
var errNoAnswer = fmt.Errorf("no answer: %w", context.DeadlineExceeded)

func newBounded(s Store, lease time.Duration, o Observer) *bounded {
	b := &bounded{Store: s, observer: o, lease: lease, most: answerWithin, calls: map[*call]struct{}{}, gone: make(chan struct{})}
	b.handover, _ = s.(Handover)
	return b
}

// shorten has no call wait longer than that from now on.
func (b *bounded) shorten(most time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.most = min(b.most, most)
	for c := range b.calls {
		if c.most > most && c.over.Stop() {
			c.most = most
			c.over.Reset(most)
		}
	}
}

// begin makes cancel be called when the call has waited long enough, unless it has ended by then.
func (b *bounded) begin(most time.Duration, cancel context.CancelCauseFunc) *call {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := &call{most: min(most, b.most)}
	c.over = time.AfterFunc(c.most, func() { cancel(errNoAnswer) })
	b.calls[c] = struct{}{}
	return c
}

func (b *bounded) end(c *call) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c.over.Stop()
	delete(b.calls, c)
}

// heed keeps an error in mind by which the store is gone.
func (b *bounded) heed(err error) {
	if !errors.Is(err, plan.ErrStoreGone) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.why == nil {
		b.why = err
		close(b.gone)
	}
}

// lost returns the error by which the store is gone, nil if it is there.
func (b *bounded) lost() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.why
}

// within makes a call, by the name of its method, that waits for its answer no longer than most. A store that has more to say of that than how long it was says so.
func within[T any](ctx context.Context, b *bounded, name string, most time.Duration, do func(context.Context) (T, error)) (T, error) {
	began := time.Now()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c := b.begin(most, cancel)
	answer, err := do(ctx)
	b.end(c)
	b.heed(err)
	if errors.Is(err, context.Canceled) && errors.Is(context.Cause(ctx), errNoAnswer) {
		err = fmt.Errorf("%w: no answer within %v", plan.ErrUnavailable, c.most)
	}
	b.observer.Asked(name, time.Since(began), err)
	return answer, err
}

// do is within for a call whose answer is no more than an error.
func (b *bounded) do(ctx context.Context, name string, most time.Duration, do func(context.Context) error) error {
	_, err := within(ctx, b, name, most, func(ctx context.Context) (struct{}, error) { return struct{}{}, do(ctx) })
	return err
}

func (b *bounded) Register(ctx context.Context, i plan.Instance) error {
	return b.do(ctx, "Register", b.lease, func(ctx context.Context) error { return b.Store.Register(ctx, i) })
}

func (b *bounded) Beat(ctx context.Context, beat protocol.Beat) (protocol.Beaten, error) {
	began := time.Now()
	news, err := b.Store.Beat(ctx, beat)
	b.observer.Asked("Beat", time.Since(began), err)
	b.heed(err)
	return news, err
}

func (b *bounded) Leave(ctx context.Context, i plan.InstanceID) error {
	if s, ok := b.Store.(Leaver); ok {
		return b.do(ctx, "Leave", b.lease, func(ctx context.Context) error { return s.Leave(ctx, i) })
	}
	_, err := b.Rescue(ctx, i, -1)
	return err
}

func (b *bounded) Turn(ctx context.Context, t protocol.Turn) (protocol.Turned, error) {
	return within(ctx, b, "Turn", answerWithin, func(ctx context.Context) (protocol.Turned, error) { return b.Store.Turn(ctx, t) })
}

func (b *bounded) Start(ctx context.Context, claims []protocol.Claim) ([]plan.TaskID, error) {
	return within(ctx, b, "Start", answerWithin, func(ctx context.Context) ([]plan.TaskID, error) { return b.handover.Start(ctx, claims) })
}

func (b *bounded) Take(ctx context.Context, t protocol.Take) (protocol.ClaimedTask, error) {
	return within(ctx, b, "Take", answerWithin, func(ctx context.Context) (protocol.ClaimedTask, error) { return b.handover.Take(ctx, t) })
}

func (b *bounded) Parents(ctx context.Context, id plan.TaskID) ([]plan.Parent, error) {
	return within(ctx, b, "Parents", answerWithin, func(ctx context.Context) ([]plan.Parent, error) { return b.Store.Parents(ctx, id) })
}

func (b *bounded) Inputs(ctx context.Context, id plan.TaskID) ([]plan.Input, error) {
	return within(ctx, b, "Inputs", answerWithin, func(ctx context.Context) ([]plan.Input, error) { return b.Store.Inputs(ctx, id) })
}

// Failures returns none where the store cannot tell.
func (b *bounded) Failures(ctx context.Context, id plan.TaskID) (json.RawMessage, error) {
	if s, ok := b.Store.(Failures); ok {
		return within(ctx, b, "Failures", answerWithin, func(ctx context.Context) (json.RawMessage, error) { return s.Failures(ctx, id) })
	}
	return json.RawMessage("[]"), nil
}

// Plan returns a plan that runs where the store cannot tell.
func (b *bounded) Plan(ctx context.Context, id plan.PlanID) (plan.Plan, error) {
	if s, ok := b.Store.(Plans); ok {
		return within(ctx, b, "Plan", b.lease, func(ctx context.Context) (plan.Plan, error) { return s.Plan(ctx, id) })
	}
	return plan.Plan{ID: id, State: plan.PlanRunning}, nil
}

// errNoLogs means that a log goes with its task's ending.
var errNoLogs = errors.New("the store takes no log of a running task")

func (b *bounded) AppendLog(ctx context.Context, c protocol.Claim, entries []plan.LogEntry) error {
	if s, ok := b.Store.(Logs); ok {
		return b.do(ctx, "AppendLog", answerWithin, func(ctx context.Context) error { return s.AppendLog(ctx, c, entries) })
	}
	return errNoLogs
}

func (b *bounded) Sweep(ctx context.Context, s protocol.Sweep) (protocol.Swept, error) {
	return within(ctx, b, "Sweep", answerWithin, func(ctx context.Context) (protocol.Swept, error) { return b.Store.Sweep(ctx, s) })
}

func (b *bounded) Instances(ctx context.Context) ([]plan.Instance, error) {
	return within(ctx, b, "Instances", b.lease, func(ctx context.Context) ([]plan.Instance, error) { return b.Store.Instances(ctx) })
}

func (b *bounded) Rescue(ctx context.Context, i plan.InstanceID, beats int64) (int, error) {
	return within(ctx, b, "Rescue", b.lease, func(ctx context.Context) (int, error) { return b.Store.Rescue(ctx, i, beats) })
}

func (b *bounded) Expire(ctx context.Context, budget int) (protocol.Expired, error) {
	if s, ok := b.Store.(Expirer); ok {
		return within(ctx, b, "Expire", answerWithin, func(ctx context.Context) (protocol.Expired, error) { return s.Expire(ctx, budget) })
	}
	return protocol.Expired{}, nil
}

// Queues returns none where the store cannot tell.
func (b *bounded) Queues(ctx context.Context) ([]plan.Queue, error) {
	if s, ok := b.Store.(Queues); ok {
		return within(ctx, b, "Queues", b.lease, func(ctx context.Context) ([]plan.Queue, error) { return s.Queues(ctx) })
	}
	return nil, nil
}

// Wakes returns nil where the store cannot tell.
func (b *bounded) Wakes(ctx context.Context) <-chan struct{} {
	if s, ok := b.Store.(Waker); ok {
		return s.Wakes(ctx)
	}
	return nil
}

func (b *bounded) adopt(ctx context.Context, p plan.PlanID) error {
	if s, ok := b.Store.(Adopter); ok {
		return b.do(ctx, "Adopt", b.lease, func(ctx context.Context) error { return s.Adopt(ctx, p) })
	}
	return nil
}

// Report is called only where offers says that the store keeps reports.
func (b *bounded) Report(ctx context.Context, id plan.ID, document json.RawMessage) error {
	return b.do(ctx, "Report", b.lease, func(ctx context.Context) error { return b.Store.(plugins.Reporter).Report(ctx, id, document) })
}

// PutResults is called only where offers says that the store keeps results.
func (b *bounded) PutResults(ctx context.Context, c protocol.Claim, stdout, stderr *io.SectionReader, mode protocol.GFS) error {
	return b.do(ctx, "PutResults", answerWithin, func(ctx context.Context) error { return b.Store.(Results).PutResults(ctx, c, stdout, stderr, mode) })
}

// offers returns the bounded store as what its store is too, or nil if that is none.
func offers[I any](b *bounded) (as I) {
	if _, ok := b.Store.(I); ok {
		as = any(b).(I)
	}
	return as
}

// balancer returns the store as one with a balance document, bounded as well, or nil if it has none.
func (b *bounded) balancer() Balancer {
	if s, ok := b.Store.(Balancer); ok {
		return &boundedBalance{b, s}
	}
	return nil
}

type boundedBalance struct {
	b *bounded
	s Balancer
}

func (x *boundedBalance) Hold(ctx context.Context, role protocol.Role, i plan.InstanceID) (bool, error) {
	return within(ctx, x.b, "Hold", x.b.lease, func(ctx context.Context) (bool, error) { return x.s.Hold(ctx, role, i) })
}

func (x *boundedBalance) Balance(ctx context.Context) (json.RawMessage, error) {
	return within(ctx, x.b, "Balance", x.b.lease, func(ctx context.Context) (json.RawMessage, error) { return x.s.Balance(ctx) })
}

func (x *boundedBalance) SetBalance(ctx context.Context, settings json.RawMessage) error {
	return x.b.do(ctx, "SetBalance", x.b.lease, func(ctx context.Context) error { return x.s.SetBalance(ctx, settings) })
}

func (x *boundedBalance) Queues(ctx context.Context) ([]plan.Queue, error) {
	return within(ctx, x.b, "Queues", answerWithin, func(ctx context.Context) ([]plan.Queue, error) { return x.s.Queues(ctx) })
}

func (x *boundedBalance) CountQueues(ctx context.Context, queues []plan.Queue) error {
	return x.b.do(ctx, "CountQueues", answerWithin, func(ctx context.Context) error { return x.s.CountQueues(ctx, queues) })
}

func (x *boundedBalance) SetThreads(ctx context.Context, was plan.Queue, threads int) error {
	return x.b.do(ctx, "SetThreads", x.b.lease, func(ctx context.Context) error { return x.s.SetThreads(ctx, was, threads) })
}

func (x *boundedBalance) Now(ctx context.Context) (time.Time, error) {
	return within(ctx, x.b, "Now", x.b.lease, func(ctx context.Context) (time.Time, error) { return x.s.Now(ctx) })
}
