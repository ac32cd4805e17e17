package den

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/balance"
	"github.com/seed-1177d267/sluice/plan"
)

// Balance is how a node does the work of Disbatch 4's QueueBalance. The zero value of a field means its default.
type Balance struct {
	Every time.Duration  // between rounds; where counting takes long, they are further apart; default 2 s
	Zone  *time.Location // of the document's days and times; default time.Local
	// Log logs each change of a queue. Verbose also logs each round with its counts. Mistakes in
	// the document, and the start of the role, are always logged.
	Log, Verbose bool
	Pretend      bool // change no queue, but say what would be changed
}

// Balancer is what a node with a Balance asks of a store.
type Balancer interface {
	Hold(ctx context.Context, role protocol.Role, i plan.InstanceID) (held bool, err error)
	Balance(ctx context.Context) (json.RawMessage, error)
	SetBalance(ctx context.Context, settings json.RawMessage) error
	Queues(ctx context.Context) ([]plan.Queue, error)
	CountQueues(ctx context.Context, queues []plan.Queue) error
	SetThreads(ctx context.Context, was plan.Queue, threads int) error
	Now(ctx context.Context) (time.Time, error)
}

const (
	balanceEvery = 2 * time.Second
	balanceShare = 10 // of the store's time, one part in so many
	// balanceLatest is when the next round comes even if the last one took long. Monitoring
	// declares a balancer dead that is silent for a minute.
	balanceLatest = 30 * time.Second
	// balanceWrites is for changing queues: a store may hang for a lease with each, and within that minute the state has to be told.
	balanceWrites = 20 * time.Second
)

// A balancer sets the threads of queues by the balance document, while its instance has that role.
// It continues while the node drains, because it works for all nodes.
type balancer struct {
	cfg   *Balance
	beat  time.Duration
	store Balancer
	log   *slog.Logger
	me    plan.InstanceID

	held     bool
	said     string               // what was logged last of the document's state,
	pretends map[plan.QueueID]int // and of queues that are not changed
}

func (b *balancer) run(ctx context.Context) {
	for ctx.Err() == nil {
		began := time.Now()
		held, err := b.store.Hold(ctx, protocol.RoleBalance, b.me)
		if held && !b.held {
			b.log.Info("this node balances the queues", "pretend", b.cfg.Pretend)
		}
		b.held = held
		wait := b.beat // so that the role is soon taken over
		if held {
			err = b.round(ctx)
			wait = min(max(b.cfg.Every, balanceShare*time.Since(began)), max(b.cfg.Every, balanceLatest))
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, plan.ErrStoreGone) && !errors.Is(err, plan.ErrInstanceGone) {
			b.log.Warn("balance the queues", "error", err)
		}
		sleep(ctx, wait)
	}
}

// round gives the queues their threads, and says in the document how that went. An error is the store's.
func (b *balancer) round(ctx context.Context) error {
	now, err := b.store.Now(ctx)
	if err != nil {
		return err
	}
	document, err := b.store.Balance(ctx)
	if err == nil && document == nil {
		document = balance.Empty
		err = b.store.SetBalance(ctx, document)
	}
	var parsed *balance.Document
	if err == nil {
		parsed, err = balance.Parse(document)
	}
	if errors.Is(err, balance.ErrMalformed) {
		return b.tell(ctx, now, balance.Critical, "QueueBalance: "+err.Error())
	}
	if err != nil {
		return err
	}
	if now.Before(parsed.Disabled) {
		return b.tell(ctx, now, balance.OK, "QueueBalance disabled until "+parsed.Disabled.In(b.cfg.Zone).Format(time.ANSIC))
	}
	began := time.Now()
	notes, err := b.share(ctx, parsed, parsed.MaxTasks(now.In(b.cfg.Zone)))
	if err != nil {
		return err
	}
	now = now.Add(time.Since(began)) // the state is as old as it is, however long that took
	if len(notes) > 0 {
		return b.tell(ctx, now, balance.Warning, "QueueBalance: "+balance.JoinPlaces(notes))
	}
	return b.tell(ctx, now, balance.OK, "QueueBalance is running")
}

// share changes the threads of the queues to their shares. It lowers queues first, so that together
// they never exceed the limit. It returns the parts of the document without effect, and the queues
// that could not be changed.
func (b *balancer) share(ctx context.Context, parsed *balance.Document, most int) (notes []string, err error) {
	queues, err := b.store.Queues(ctx)
	if err != nil {
		return nil, err
	}
	named := func(q plan.Queue) bool {
		return slices.ContainsFunc(parsed.Sets, func(set []string) bool { return slices.Contains(set, q.Name) })
	}
	queues = slices.DeleteFunc(queues, func(q plan.Queue) bool { return !named(q) })
	if err := b.store.CountQueues(ctx, queues); err != nil {
		return nil, err
	}
	shares, missing := parsed.Shares(most, queues)
	if b.cfg.Verbose {
		b.log.Info("balance", "max_tasks", most, "queues", len(shares))
		for i := range shares {
			s := &shares[i]
			b.log.Info("queue", "queue", s.Queue.Name, "queued", s.Queue.Queued, "active", s.Queue.Active, "threads", threads(&s.Queue), "share", s.Threads)
		}
	}
	shares = slices.DeleteFunc(shares, func(s balance.Share) bool { return !s.Changes() })
	sort.SliceStable(shares, func(x, y int) bool { return raise(&shares[x]) < raise(&shares[y]) })
	refused, err := b.change(ctx, shares)
	return slices.Concat(refused, parsed.Notes, missing), err
}

// raise is how much more a queue is to have than it has; no limit is more than any.
func raise(s *balance.Share) int {
	if s.Queue.Unlimited {
		return -math.MaxInt32
	}
	return s.Threads - s.Queue.Threads
}

// change gives queues their shares, lower ones first. It returns the queues that could not be
// changed, and why. The others are changed all the same, but together they get no more than was
// freed. A queue that a person changed since it was read waits for the next round. An error means
// that the node ends.
func (b *balancer) change(ctx context.Context, shares []balance.Share) (refused []string, err error) {
	inTime, cancel := context.WithTimeout(ctx, balanceWrites)
	defer cancel()
	kept := 0 // threads that queues were to lose and did not
	for i, s := range shares {
		if inTime.Err() != nil && ctx.Err() == nil {
			return append(refused, fmt.Sprintf("queues left as they are, since the store is too slow: %d", len(shares)-i)), nil
		}
		more := raise(&s)
		if less := min(more, kept); less > 0 {
			kept -= less
			if s.Threads -= less; less == more {
				continue
			}
		}
		q := &s.Queue
		if last, said := b.pretends[q.ID]; said && last == s.Threads {
			continue
		}
		var err error
		if b.cfg.Pretend {
			b.pretends[q.ID] = s.Threads
		} else {
			err = b.store.SetThreads(inTime, *q, s.Threads)
		}
		switch {
		case err == nil:
			if b.cfg.Log || b.cfg.Verbose {
				b.log.Info("threads of a queue are changed", "queue", q.Name, "from", threads(q), "to", s.Threads, "pretend", b.cfg.Pretend)
			}
		case ctx.Err() != nil || errors.Is(err, plan.ErrStoreGone):
			return nil, err
		case errors.Is(err, plan.ErrNotFound): // it was deleted
		default:
			kept += min(max(-more, 0), plan.MaxThreads) // more than that is given to nobody
			if !errors.Is(err, plan.ErrConflict) {
				refused = append(refused, fmt.Sprintf("queue %q cannot be changed: %v", q.Name, err))
			}
		}
	}
	return refused, nil
}

// threads is what a log says of them.
func threads(q *plan.Queue) any {
	if q.Unlimited {
		return "unlimited"
	}
	return q.Threads
}

// tell writes the state into the document, each time, since monitoring goes by its age, and logs what is new.
func (b *balancer) tell(ctx context.Context, now time.Time, status balance.Status, message string) error {
	if message != b.said {
		level := slog.LevelInfo
		switch status {
		case balance.Warning:
			level = slog.LevelWarn
		case balance.Critical:
			level = slog.LevelError
		}
		b.log.Log(ctx, level, "balance document", "status", status, "message", message)
		b.said = message
	}
	state, err := json.Marshal(balance.State{Status: status, Message: message, Timestamp: now.Unix()})
	if err != nil {
		return err
	}
	return b.store.SetBalance(ctx, state)
}
