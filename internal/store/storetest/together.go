package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// together is several stores in lockstep, as one store: each write goes to all of them, and each
// answer is compared. Reads go to the first store, so that the history that is made depends on it
// alone. Histories use together.
//
// The contract leaves a driver free to choose which of several queues it claims from first, and how
// much of its work it leaves to a later turn. together takes that freedom away: it claims from one
// queue at a time, and settles each store before it claims and before it compares.
type together struct {
	store.Reader
	t       testing.TB
	clock   func() time.Time
	stores  []*member
	settler plan.InstanceID // the instance that settles; none: it is to be registered
	settled int             // how many settlers there were
	refused map[plan.PlanID]bool
	wrong   []string
}

var _ store.Store = (*together)(nil)

// A member is one of the stores.
type member struct {
	store.Store
	name   string
	d      *Driver
	moved  time.Time     // the test's clock as the member last took notice of it
	ahead  time.Duration // how much the test's clock is ahead of the member's
	tokens map[protocol.Claim]protocol.Token
	claims []protocol.ClaimedTask // of the last turn

	// The readers' view after the last step.
	feed       store.Cursor
	shown      map[plan.TaskID]plan.Task
	plans      map[plan.PlanID]plan.Plan
	shownAhead time.Duration
}

// openTogether opens all drivers on empty databases.
func openTogether(t testing.TB, drivers []Named, now func() time.Time) *together {
	l := &together{t: t, clock: now, refused: map[plan.PlanID]bool{}}
	for k := range drivers {
		d := &drivers[k]
		m := &member{name: d.Name, d: &d.Driver, Store: d.Open(t, Options{Now: now}), tokens: map[protocol.Claim]protocol.Token{}, moved: now()}
		at, err := m.Now(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if m.d.Pass != nil {
			m.ahead = m.moved.Sub(at)
		}
		l.stores = append(l.stores, m)
	}
	l.Reader = l.stores[0]
	return l
}

// Close closes all stores.
func (l *together) Close() error {
	var errs []error
	for _, m := range l.stores {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}

// catchUp lets the time that the test's clock has passed pass for a store that reads its server's clock.
func (m *member) catchUp(t testing.TB, now time.Time) {
	if by := now.Sub(m.moved); m.d.Pass != nil && by >= time.Minute {
		m.d.Pass(t, m.Store, by)
		m.moved, m.ahead = now, m.ahead+by
	}
}

// own returns an instant of the test's clock as one of the store's.
func (m *member) own(at time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	return at.Add(-m.ahead)
}

// claim returns the store's own claim for one of the first store's.
func (m *member) claim(c protocol.Claim) protocol.Claim {
	if token, ok := m.tokens[c]; ok {
		c.Token = token
	}
	return c
}

// ask asks all stores the same, and returns the first one's answer.
func ask[T any](l *together, what string, do func(m *member) (T, error)) (first T, firstErr error) {
	for k, m := range l.stores {
		m.catchUp(l.t, l.clock())
		got, err := do(m)
		if k == 0 {
			first, firstErr = got, err
			continue
		}
		if a, b := kinds(firstErr), kinds(err); a != b {
			l.differs("%s: %s says %v (%s), %s says %v (%s)", what, l.stores[0].name, firstErr, a, m.name, err, b)
			continue
		}
		l.compare(what, m, first, got)
	}
	return first, firstErr
}

// tell is ask where the only answer is an error.
func (l *together) tell(what string, do func(m *member) error) error {
	_, err := ask(l, what, func(m *member) (struct{}, error) { return struct{}{}, do(m) })
	return err
}

func (l *together) differs(format string, args ...any) {
	l.wrong = append(l.wrong, fmt.Sprintf(format, args...))
}

// compare notes the fields in which a store's answer is not the first store's.
func (l *together) compare(what string, m *member, first, got any) {
	c := comparison{ahead: m.ahead}
	if m.d.Pass != nil {
		c.within = tolerance
	}
	for _, d := range c.compare(first, got) {
		l.differs("%s%s: %s has %s, %s has %s", what, d.path, l.stores[0].name, d.first, m.name, d.second)
	}
}

// sentinels are the errors that callers act on.
var sentinels = []error{
	plan.ErrNotFound, plan.ErrExists, plan.ErrClaimLost, plan.ErrInstanceGone, plan.ErrNameTaken, plan.ErrPlanEnded, plan.ErrPlanNotReady,
	plan.ErrPlanActive, plan.ErrConflict, plan.ErrTooMuchInput, plan.ErrTooMuchOutput, plan.ErrTooLarge, plan.ErrUnavailable, plan.ErrCursor,
	plan.ErrSecret, plan.ErrFull,
}

// kinds names the sentinels that an error is.
func kinds(err error) string {
	if err == nil {
		return "none"
	}
	var is []string
	for _, s := range sentinels {
		if errors.Is(err, s) {
			is = append(is, s.Error())
		}
	}
	if len(is) == 0 {
		return "no sentinel"
	}
	return strings.Join(is, ", ")
}

// settle has each store do the work that it left for later, as the sweeps and turns of an idle node do.
func (l *together) settle(ctx context.Context) error {
	if l.settler.IsZero() {
		l.settled++
		l.settler.ID = plan.ID{0: 0xff, 11: byte(l.settled)}
		i := plan.Instance{ID: l.settler, Node: "settler", Host: "host", Lease: time.Minute}
		if err := l.tell("Register", func(m *member) error { return m.Register(ctx, i) }); err != nil {
			return err
		}
	}
	for _, m := range l.stores {
		m.catchUp(l.t, l.clock())
		more := true
		for n := 0; more; n++ {
			if n == 1000 {
				return fmt.Errorf("%s has more to do after %d turns and sweeps", m.name, n)
			}
			turned, err := m.Turn(ctx, protocol.Turn{Instance: l.settler})
			if err != nil {
				return err
			}
			swept, err := m.Sweep(ctx, protocol.Sweep{Instance: l.settler})
			if err != nil {
				return err
			}
			more = turned.More || swept.More
		}
	}
	return nil
}

// Turn makes the endings, settles, and then claims from one queue after another.
func (l *together) Turn(ctx context.Context, t protocol.Turn) (protocol.Turned, error) {
	slots, ended := t.Slots, t.Ended
	t.Slots, t.Ended = 0, nil
	var items []protocol.Ending // a failure beside them may close the plan before some are made, or after
	for _, e := range ended {
		if e.Expand {
			items = append(items, e)
		} else {
			t.Ended = append(t.Ended, e)
		}
	}
	did, err := l.turn(ctx, t)
	if err == nil && len(items) > 0 {
		if err = l.settle(ctx); err == nil {
			var more protocol.Turned
			t.Ended = items
			more, err = l.turn(ctx, t)
			did.Lost = append(did.Lost, more.Lost...)
		}
	}
	if err != nil || slots == 0 {
		return did, err
	}
	if err := l.settle(ctx); err != nil {
		return did, err
	}
	queues, err := l.Queues(ctx)
	if err != nil {
		return did, err
	}
	active := t.Active
	t.Ended = nil
	for _, q := range queues {
		if len(active) > 0 && !slices.Contains(active, q.ID) {
			continue
		}
		for t.Active = []plan.QueueID{q.ID}; slots > 0; {
			t.Slots = slots
			claimed, err := l.turn(ctx, t)
			if err != nil {
				return did, err
			}
			did.Over, did.More = claimed.Over, claimed.More
			if len(claimed.Claimed) == 0 {
				break
			}
			did.Claimed = append(did.Claimed, claimed.Claimed...)
			slots -= len(claimed.Claimed)
		}
	}
	return did, nil
}

// turn has each store take the turn.
func (l *together) turn(ctx context.Context, t protocol.Turn) (protocol.Turned, error) {
	var first protocol.Turned
	_, err := ask(l, "Turn", func(m *member) (protocol.Turned, error) {
		its := t
		its.Ended, its.Shares = slices.Clone(t.Ended), nil // stores find who takes turns at different times
		for k := range its.Ended {
			its.Ended[k].Claim = m.claim(its.Ended[k].Claim)
		}
		did, err := m.Turn(ctx, its)
		if m == l.stores[0] {
			first = did
		}
		m.claims = slices.Clone(did.Claimed)
		slices.SortFunc(did.Lost, func(a, b plan.TaskID) int { return strings.Compare(a.String(), b.String()) })
		// How much of the work a turn does, and how much it leaves for later, is the driver's choice. A rate
		// holds up nothing of what has not been queued yet.
		did.Queued, did.More, did.Ended, did.Over, did.Rest = 0, false, nil, false, 0
		return did, err
	})
	l.pair()
	return first, err
}

// pair remembers which token each store gave where the first store gave another.
func (l *together) pair() {
	for _, m := range l.stores[1:] {
		for _, c := range l.stores[0].claims {
			for _, its := range m.claims {
				if its.Task == c.Task {
					m.tokens[c.Claim] = its.Token
				}
			}
		}
	}
}

func (l *together) Start(ctx context.Context, claims []protocol.Claim) ([]plan.TaskID, error) {
	return ask(l, "Start", func(m *member) ([]plan.TaskID, error) {
		its := make([]protocol.Claim, len(claims))
		for k := range claims {
			its[k] = m.claim(claims[k])
		}
		lost, err := m.Start(ctx, its)
		slices.SortFunc(lost, func(a, b plan.TaskID) int { return strings.Compare(a.String(), b.String()) })
		return lost, err
	})
}

func (l *together) Take(ctx context.Context, t protocol.Take) (protocol.ClaimedTask, error) {
	c, err := ask(l, "Take", func(m *member) (protocol.ClaimedTask, error) {
		c, err := m.Take(ctx, t)
		m.claims = nil
		if err == nil {
			m.claims = []protocol.ClaimedTask{c}
		}
		return c, err
	})
	l.pair()
	return c, err
}

func (l *together) AppendLog(ctx context.Context, c protocol.Claim, entries []plan.LogEntry) error {
	return l.tell("AppendLog", func(m *member) error { return m.AppendLog(ctx, m.claim(c), entries) })
}

func (l *together) Beat(ctx context.Context, b protocol.Beat) (protocol.Beaten, error) {
	return ask(l, "Beat", func(m *member) (protocol.Beaten, error) {
		its := b
		its.Progress = slices.Clone(b.Progress)
		for k := range its.Progress {
			its.Progress[k].Claim = m.claim(its.Progress[k].Claim)
		}
		told, err := m.Beat(ctx, its)
		slices.SortFunc(told.Cancel, func(a, b plan.TaskID) int { return strings.Compare(a.String(), b.String()) })
		told.Wake = 0 // it only changes, and each store counts in its own way
		return told, err
	})
}

// Sweep sweeps each store until nothing is left to sweep.
func (l *together) Sweep(ctx context.Context, s protocol.Sweep) (protocol.Swept, error) {
	return ask(l, "Sweep", func(m *member) (protocol.Swept, error) {
		for {
			did, err := m.Sweep(ctx, s)
			if err != nil || !did.More {
				// As of a turn. A store need not know of every delay.
				did.Queued, did.Ended, did.Pending, did.Over = 0, nil, 0, false
				return did, err
			}
		}
	})
}

func (l *together) Rescue(ctx context.Context, i plan.InstanceID, beats int64) (int, error) {
	if i == l.settler {
		l.settler = plan.InstanceID{}
	}
	return ask(l, "Rescue", func(m *member) (int, error) { return m.Rescue(ctx, i, beats) })
}

func (l *together) Leave(ctx context.Context, i plan.InstanceID) error {
	return l.tell("Leave", func(m *member) error { return m.Leave(ctx, i) })
}

func (l *together) Register(ctx context.Context, i plan.Instance) error {
	return l.tell("Register", func(m *member) error { return m.Register(ctx, i) })
}

func (l *together) Inputs(ctx context.Context, id plan.TaskID) ([]plan.Input, error) {
	return l.stores[0].Inputs(ctx, id)
}

func (l *together) Parents(ctx context.Context, id plan.TaskID) ([]plan.Parent, error) {
	return l.stores[0].Parents(ctx, id)
}

func (l *together) Failures(ctx context.Context, id plan.TaskID) (json.RawMessage, error) {
	return l.stores[0].Failures(ctx, id)
}

func (l *together) Wakes(ctx context.Context) <-chan struct{} { return l.stores[0].Wakes(ctx) }

// Expire has each store expire what is over.
func (l *together) Expire(ctx context.Context, budget int) (protocol.Expired, error) {
	return ask(l, "Expire", func(m *member) (gone protocol.Expired, err error) {
		for more := true; more && err == nil; {
			var part protocol.Expired
			part, err = m.Expire(ctx, budget)
			gone.Plans, gone.Tasks, more = gone.Plans+part.Plans, gone.Tasks+part.Tasks, part.More
		}
		return gone, err
	})
}

// Prune has each store prune until nothing is left to prune.
func (l *together) Prune(ctx context.Context, keep time.Duration, budget int) (int, bool, error) {
	n, err := ask(l, "Prune", func(m *member) (n int, err error) {
		for more := true; more && err == nil; {
			var plans int
			plans, more, err = m.Prune(ctx, keep, budget)
			n += plans
		}
		return n, err
	})
	return n, false, err
}

// DeletePlan deletes the whole plan: how much one call deletes is the driver's choice.
func (l *together) DeletePlan(ctx context.Context, p plan.PlanID, budget int) (more bool, err error) {
	return false, l.tell("DeletePlan", func(m *member) error {
		for {
			if more, err := m.DeletePlan(ctx, p, budget); err != nil || !more {
				return err
			}
		}
	})
}

func (l *together) CreatePlan(ctx context.Context, p plan.Plan) (plan.Plan, error) {
	return ask(l, "CreatePlan", func(m *member) (plan.Plan, error) { return m.CreatePlan(ctx, p) })
}

func (l *together) AddTasks(ctx context.Context, p plan.PlanID, tasks []plan.Task) error {
	return l.tell("AddTasks", func(m *member) error {
		its := slices.Clone(tasks)
		for k := range its {
			its[k].NotBefore, its[k].Created = m.own(its[k].NotBefore), m.own(its[k].Created)
		}
		return m.AddTasks(ctx, p, its)
	})
}

func (l *together) Ready(ctx context.Context, p plan.PlanID) error {
	return l.tell("Ready", func(m *member) error { return m.Ready(ctx, p) })
}

func (l *together) CancelPlan(ctx context.Context, p plan.PlanID, finally bool) error {
	return l.tell("CancelPlan", func(m *member) error { return m.CancelPlan(ctx, p, finally) })
}

// AnswerTask implements store.Admin. Each store asked by a clock of its own, and the instant of an answer is
// in its output: all stores get one that is never too late.
func (l *together) AnswerTask(ctx context.Context, id plan.TaskID, a rules.Answer) error {
	t, err := l.stores[0].Task(ctx, id)
	seen := err == nil && a.Asked.Equal(t.Started)
	return l.tell("AnswerTask", func(m *member) error {
		a := a
		a.At = time.Unix(1e9, 0)
		if t, err := m.Task(ctx, id); err == nil && seen {
			a.Asked = t.Started
		}
		return m.AnswerTask(ctx, id, a)
	})
}

func (l *together) CancelTask(ctx context.Context, id plan.TaskID) error {
	return l.tell("CancelTask", func(m *member) error { return m.CancelTask(ctx, id) })
}

func (l *together) SetTask(ctx context.Context, id plan.TaskID, c rules.TaskChange) error {
	return l.tell("SetTask", func(m *member) error {
		its := c
		if c.NotBefore != nil {
			at := m.own(*c.NotBefore)
			its.NotBefore = &at
		}
		return m.SetTask(ctx, id, its)
	})
}

// Retry has each store retry the tasks, and remembers plans of which a retry was refused.
func (l *together) Retry(ctx context.Context, p plan.PlanID, ask rules.Ask) (took []rules.Retried, err error) {
	err = l.tell("Retry", func(m *member) (err error) {
		took, err = m.Retry(ctx, p, ask)
		if errors.Is(err, plan.ErrPlanActive) || errors.Is(err, plan.ErrConflict) { // of several tasks any may be the one that is told
			err = errors.Join(err, plan.ErrPlanActive, plan.ErrConflict)
		}
		return err
	})
	l.refused[p] = l.refused[p] || err != nil
	return took, err
}

func (l *together) SetPriority(ctx context.Context, p plan.PlanID, priority int) error {
	return l.tell("SetPriority", func(m *member) error { return m.SetPriority(ctx, p, priority) })
}

func (l *together) Adopt(ctx context.Context, p plan.PlanID) error {
	return l.tell("Adopt", func(m *member) error { return m.Adopt(ctx, p) })
}

func (l *together) CreateQueue(ctx context.Context, q plan.Queue) (plan.Queue, error) {
	return ask(l, "CreateQueue", func(m *member) (plan.Queue, error) { return m.CreateQueue(ctx, q) })
}

func (l *together) EnsureQueue(ctx context.Context, q plan.Queue) (plan.Queue, error) {
	return ask(l, "EnsureQueue", func(m *member) (plan.Queue, error) { return m.EnsureQueue(ctx, q) })
}

func (l *together) SetQueue(ctx context.Context, q plan.Queue) error {
	return l.tell("SetQueue", func(m *member) error { return m.SetQueue(ctx, q) })
}

func (l *together) ChangeQueue(ctx context.Context, was, q plan.Queue) error {
	return l.tell("ChangeQueue", func(m *member) error { return m.ChangeQueue(ctx, was, q) })
}

func (l *together) PutGroup(ctx context.Context, was, g plan.Group) error {
	return l.tell("PutGroup", func(m *member) error { return m.PutGroup(ctx, was, g) })
}

func (l *together) DeleteGroup(ctx context.Context, was plan.Group) error {
	return l.tell("DeleteGroup", func(m *member) error { return m.DeleteGroup(ctx, was) })
}

// SetMaxThreads sets the limit, and has the instances of the node beat: a store may tell them of it then.
func (l *together) SetMaxThreads(ctx context.Context, n plan.NodeName, most int) error {
	if err := l.tell("SetMaxThreads", func(m *member) error { return m.SetMaxThreads(ctx, n, most) }); err != nil {
		return err
	}
	instances, err := l.Instances(ctx)
	for _, i := range instances {
		if i.Node == n && err == nil {
			_, err = l.Beat(ctx, protocol.Beat{Instance: i.ID})
		}
	}
	return err
}

func (l *together) Instances(ctx context.Context) ([]plan.Instance, error) {
	return l.stores[0].Instances(ctx)
}
