package mongodb

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// A queue with a limit has a slot for each of its threads, numbered from 1, and so has a node with one, and a node for a queue that has a
// limit for each node. A claim takes one of each, which unique indexes over claimed and running tasks keep from others; the slots of a task
// that is neither any more are free by that.

// slots are those that nobody has: of the queue, the node, and the queue on the node; nil: there is no limit.
type slots struct{ queue, node, both []int }

func (s *slots) limited() bool { return s.queue != nil || s.node != nil || s.both != nil }

// atMost returns how many of n tasks there are slots for.
func (s *slots) atMost(n int) int {
	if s.queue != nil {
		n = min(n, len(s.queue))
	}
	if s.node != nil {
		n = min(n, len(s.node))
	}
	if s.both != nil {
		n = min(n, len(s.both))
	}
	return n
}

// A server on PostgreSQL has two claims of one slot wait for each other, whichever was first, and ends one after a second; and one that
// takes several keeps each until its command ends. So a claim chooses its slots by chance among some more than it wants, and who was ended
// leaves slots alone for a while: those that were ended at about the same instant would else be at the same slots again.
const (
	besides  = 16
	restsFor = time.Second // at most
)

func (s *Store) resting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Before(s.rests)
}

// freeSlots returns the slots that a claim of up to want tasks from a queue may take.
func (c *claimer) freeSlots(ctx context.Context, q *queueDoc, want int) (free slots, err error) {
	if c.limit.set {
		free.node, err = c.free(ctx, d("node", c.node), "nodeslot", nodeSlot, c.limit.n, want)
		c.full = len(free.node) == 0
	}
	if err == nil && !c.full && !q.Unlimited {
		free.queue, err = c.free(ctx, d("queue", q.ID), "slot", queueSlot, q.Threads.n, want)
	}
	if err == nil && !c.full && q.NodeThreads.n > 0 && free.atMost(want) > 0 {
		free.both, err = c.free(ctx, d("queue", q.ID, "node", c.node), "qnslot", qnSlot, q.NodeThreads.n, want)
	}
	return free, err
}

func queueSlot(t *taskDoc) int { return t.Slot }

func nodeSlot(t *taskDoc) int { return t.NodeSlot }

func qnSlot(t *taskDoc) int { return t.QNSlot }

// free returns up to want slots that none of the active tasks has that match, in ascending order.
func (c *claimer) free(ctx context.Context, of bson.D, field string, slot func(*taskDoc) int, limit, want int) ([]int, error) {
	if c.resting() {
		return []int{}, nil
	}
	active, err := wire.Find[taskDoc](ctx, c.tasks, onlyActive(of), wire.Query{Fields: d("_id", 0, field, 1)})
	if err != nil {
		return nil, err
	}
	return someOf(lowestFree(active, slot, limit, want+besides), want), nil
}

// someOf returns up to want of the slots, by chance and in ascending order.
func someOf(slots []int, want int) []int {
	if len(slots) > want {
		rand.Shuffle(len(slots), func(i, j int) { slots[i], slots[j] = slots[j], slots[i] })
		slots = slots[:want]
		slices.Sort(slots)
	}
	return slots
}

// lowestFree returns up to want slots that the active tasks of a queue or node leave free. Each task without a slot, which another program
// claimed, or which was claimed before there was a limit, or with one beyond a limit that was lowered since, uses up one of the others:
// always the highest, so that all claimers mean the same ones.
func lowestFree(active []taskDoc, slotOf func(*taskDoc) int, limit, want int) []int {
	used := make(map[int]bool, len(active))
	for i := range active {
		if n := slotOf(&active[i]); n >= 1 && n <= limit {
			used[n] = true
		}
	}
	free := make([]int, max(0, min(want, max(limit, 0)-len(active))))
	slot := 0
	for i := range free {
		for slot++; used[slot]; slot++ {
		}
		free[i] = slot
	}
	return free
}

// keep gives back what of the tasks that were just claimed is beyond the queue's threads, since other programs, which know of no slots,
// claimed between the look at the free ones and the claim. Nothing of it has begun. Where there are no others this asks nothing.
func (c *claimer) keep(ctx context.Context, q *queueDoc, got []taskDoc) ([]taskDoc, error) {
	if len(got) == 0 || q.Unlimited || !c.shared() {
		return got, nil
	}
	active, err := wire.Find[taskDoc](ctx, c.tasks, onlyActive(d("queue", q.ID)), wire.Query{Fields: claimFields})
	if err != nil {
		return nil, err
	}
	kept := got[:len(got)-max(0, min(len(got), len(active)-max(q.Threads.n, 0)))] // the rest is last in the queue's order
	ids := map[bson.ObjectID]bool{}
	for _, t := range got[len(kept):] {
		ids[t.ID] = true
	}
	beyond := slices.DeleteFunc(active, func(t taskDoc) bool { return !ids[t.ID] || t.Token != c.token })
	err = engine.GiveBack(ctx, c.round, endingsOf(beyond))
	return kept, err
}

// shared reports whether nodes of other programs were registered as this handle last looked: as an instance registered or beat.
func (s *Store) shared() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.others
}

// readOthers looks whether nodes of other programs are registered.
func (s *Store) readOthers(ctx context.Context) error {
	other, err := wire.FindOne[struct{}](ctx, s.nodes, d("sluice", nil), wire.Query{Fields: ones("_id")})
	if err != nil {
		return err
	}
	s.locked(func() { s.others = other != nil })
	return nil
}

// othersServe reports whether nodes of other programs may claim from a queue: they leave alone
// queues without threads. The answer holds for the round. A node that registers later, or threads
// that are set later, change nothing for queued tasks.
func (r *round) othersServe(ctx context.Context, queue bson.ObjectID) (bool, error) {
	if serve, known := r.othersIn[queue]; known {
		return serve, nil
	}
	q, err := wire.FindOne[queueDoc](ctx, r.queues, d("_id", queue), wire.Query{Fields: ones("threads")})
	if err == nil {
		err = r.readOthers(ctx) // a handle that no instance lives by has not looked yet
	}
	if err != nil {
		return false, err
	}
	if r.othersIn == nil {
		r.othersIn = map[bson.ObjectID]bool{}
	}
	r.othersIn[queue] = q != nil && q.Threads.set && r.shared()
	return r.othersIn[queue], nil
}

// limitOf returns the limit of a node as this handle last saw it: as an instance of it registered or beat.
func (s *Store) limitOf(ctx context.Context, n plan.NodeName) (count, error) {
	s.mu.Lock()
	limit, known := s.limits[n]
	s.mu.Unlock()
	if known {
		return limit, nil
	}
	return s.readLimit(ctx, n)
}

// readLimit reads the limit of a node.
func (s *Store) readLimit(ctx context.Context, n plan.NodeName) (limit count, err error) {
	doc, err := wire.FindOne[nodeDoc](ctx, s.nodes, d("node", n), wire.Query{Fields: ones("maxthreads")})
	if err != nil {
		return count{}, err
	}
	if doc != nil {
		limit = doc.limit()
	}
	s.locked(func() { s.limits[n] = limit })
	return limit, nil
}

const (
	// Up to that many queues are asked whether they have work; of more, those with work are looked for.
	fewQueues = 32
	// atOnce is of how many queues a claim takes its share at once.
	atOnce = 16
	// mostSought is of how many of these at least a claim takes its share at once: to find each of them is to ask of two or three ranges.
	mostSought = rules.MostDealt
	// sureQueries is how many queries a turn spends at least on looking for queues with work that it can take.
	sureQueries = 64
)

// mayServe matches the queues that the turn serves, and some more, so that few others are read: protocol.Turn.Serves decides.
func (s *Store) mayServe(t *protocol.Turn) bson.D {
	filter := d("plugin", d("$in", t.Plugins))
	switch {
	case len(t.Active) > 0:
		filter = append(filter, bson.E{Key: "_id", Value: d("$in", idsOf(t.Active))})
	case len(t.Ignored) > 0:
		filter = append(filter, bson.E{Key: "_id", Value: d("$nin", idsOf(t.Ignored))})
	}
	s.mu.Lock()
	node, known := s.nodeOf[t.Instance]
	s.mu.Unlock()
	if known {
		filter = append(filter, bson.E{Key: "$nor", Value: bson.A{
			d("nodes_pin", d("$type", "string", "$ne", node)),
			d("nodes_ignore", node, "nodes_pin", d("$not", d("$type", "string"))),
		}})
	}
	return filter
}

// onlyServed leaves out the queues that the turn does not serve.
func onlyServed(queues []queueDoc, t *protocol.Turn, node plan.NodeName) []queueDoc {
	return slices.DeleteFunc(queues, func(q queueDoc) bool {
		queue := q.domain()
		return !t.Serves(&queue, node)
	})
}

// A search goes through the queues that have queued tasks. It asks for any queued task whose queue's id lies in a range, and then of the
// ranges on both sides of that queue: so the cost goes by queues with work, and no order is asked of the server. It begins with the ranges
// that the one before it left, and only then looks everywhere: so no queue has a second turn before each with work had one.
type search struct {
	*round
	turn   *protocol.Turn
	hint   string
	ranges []bson.D // to be asked of, the last one first
	whole  bool     // these are what is left of all
	seen   map[bson.ObjectID]bool
	left   int // how many queries it may still make
}

func (r *round) search(t *protocol.Turn) *search {
	s := &search{round: r, turn: t, hint: indexReady, left: sureQueries + 4*t.Slots, seen: map[bson.ObjectID]bool{}}
	if !t.Plan.IsZero() {
		s.hint = indexPlan
	}
	r.locked(func() { s.ranges = slices.Clone(r.unasked) })
	return s
}

// next returns up to n further queues that the turn serves, and none if there are no more.
func (s *search) next(ctx context.Context, n int) (queues []queueDoc, err error) {
	for len(queues) < n {
		ids, err := s.withWork(ctx, n-len(queues))
		if err != nil || len(ids) == 0 {
			return queues, err
		}
		docs, err := wire.Find[queueDoc](ctx, s.queues, d("$and", bson.A{d("_id", d("$in", ids)), s.mayServe(s.turn)}), wire.Query{})
		if err != nil {
			return nil, err
		}
		queues = append(queues, onlyServed(docs, s.turn, s.node)...)
	}
	return queues, nil
}

// withWork returns the ids of up to n further queues with queued tasks, served or not. It asks of several ranges in one command.
func (s *search) withWork(ctx context.Context, n int) (ids idList, err error) {
	for len(ids) < n && s.left > 0 {
		if len(s.ranges) == 0 {
			if s.whole {
				break
			}
			s.ranges, s.whole = []bson.D{d("$gte", bson.NilObjectID)}, true
		}
		rest := max(0, len(s.ranges)-min(n-len(ids), s.left))
		spans := slices.Clone(s.ranges[rest:])
		s.ranges, s.left = s.ranges[:rest], s.left-len(spans)
		found, err := s.some(ctx, spans)
		if err != nil {
			return nil, err
		}
		for _, t := range found {
			span := spans[slices.IndexFunc(spans, func(span bson.D) bool { return inside(span, t.Queue) })]
			s.ranges = append(s.ranges, below(span, t.Queue), above(span, t.Queue))
			if !s.seen[t.Queue] {
				s.seen[t.Queue] = true
				ids = append(ids, t.Queue)
			}
		}
	}
	s.locked(func() { s.unasked = slices.Clone(s.ranges) })
	return ids, nil
}

// some returns any queued task of each range that has one.
func (s *search) some(ctx context.Context, spans []bson.D) ([]taskDoc, error) {
	in := func(i int) bson.D { return append(queuedOf(s.turn.Plan), bson.E{Key: "queue", Value: spans[i]}) }
	if len(spans) > 1 {
		return wire.OneOfEach[taskDoc](ctx, s.tasks, len(spans), ones("queue"), in)
	}
	one, err := wire.FindOne[taskDoc](ctx, s.tasks, in(0), wire.Query{Fields: ones("queue"), Hint: s.hint})
	if err != nil || one == nil {
		return nil, err
	}
	return []taskDoc{*one}, nil
}

// inside reports whether a range has an id.
func inside(span bson.D, id bson.ObjectID) bool {
	return !slices.ContainsFunc(span, func(bound bson.E) bool {
		at := bound.Value.(bson.ObjectID)
		order := bytes.Compare(id[:], at[:])
		return bound.Key == "$lt" && order >= 0 || bound.Key == "$gt" && order <= 0 || bound.Key == "$gte" && order < 0
	})
}

// below and above are the parts of a range on the two sides of an id.
func below(span bson.D, id bson.ObjectID) bson.D { return narrowed(span, "$gt", "$lt", id) }

func above(span bson.D, id bson.ObjectID) bson.D { return narrowed(span, "$lt", "$gt", id) }

// narrowed returns the range from its bound on one side, if it has one, to an id on the other.
func narrowed(span bson.D, keeps, side string, id bson.ObjectID) bson.D {
	out := d(side, id)
	for _, e := range span {
		if strings.HasPrefix(e.Key, keeps) { // with or without equality
			out = append(out, e)
		}
	}
	return out
}

type claimer struct {
	*round
	turn   *protocol.Turn
	token  bson.ObjectID
	shares *protocol.Shares
	left   int    // how many tasks it still wants
	limit  count  // of the node,
	full   bool   // which has no free slot
	closed idList // plans whose tasks are not to be claimed

	groupsOf func(q *queueDoc) []*plan.Group // nil: no queue is in a group
	paces    map[any]*pace                   // of queues and groups, by their ids,
	dealtAt  time.Time                       // when it looked how many tasks they let start,
	spentAt  time.Time                       // and when one was last spent, by the server's clock
}

// tries is how often a claimer that others outran looks for other tasks.
const tries = 4
