package mongodb

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// A draw is what a claim takes from one queue.
type draw struct {
	queue  *queueDoc
	want   int // how many it was dealt by its weight; 0: all queues have the same share
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

// left is how many tasks it has not got of those that it was dealt.
func (o *draw) left() int { return o.want - len(o.got) }

// narrow reports whether claims from the queue need slots, or spend a rate.
func (c *claimer) narrow(q *queueDoc) bool {
	return c.limit.set || !q.Unlimited || q.NodeThreads.n > 0 || len(c.pacesOf(q)) > 0
}

// share takes what is wanted from the queues, by queue, and reports whether each may have more.
func (c *claimer) share(ctx context.Context, queues []queueDoc) (byQueue [][]taskDoc, more bool, err error) {
	byQueue = make([][]taskDoc, len(queues))
	draws := make([]draw, len(queues))
	for k := range queues {
		draws[k].queue = &queues[k]
	}
	// Slots that some queues did not need, or that went to closed plans, are offered once more to
	// the queues that may have more.
	for first, closings := true, 0; c.left > 0 && !c.full && closings < tries; first = false {
		var left []*draw
		for k := range draws {
			if !draws[k].over {
				left = append(left, &draws[k])
			}
		}
		if len(left) == 0 {
			break
		}
		if err := c.drawFrom(ctx, left, first); err != nil {
			return nil, false, err
		}
		got := make([][]taskDoc, len(draws))
		for k := range draws {
			got[k], draws[k].got = draws[k].got, nil
		}
		ended, err := c.sound(ctx, got)
		if err != nil {
			return nil, false, err
		}
		if ended > 0 {
			c.left += ended
			closings++
		}
		for k := range got {
			c.pass(&queues[k], got[k])
			c.leave(&queues[k])
			byQueue[k] = append(byQueue[k], got[k]...)
		}
	}
	return byQueue, !slices.ContainsFunc(draws, func(d draw) bool { return !d.more }), nil
}

// drawFrom claims from queues, of each its share. The first go asks no more queues than it wants tasks: that they have work is likely where
// others had some. If they have not, all the others are asked.
func (c *claimer) drawFrom(ctx context.Context, draws []*draw, first bool) error {
	if first && len(draws) > c.left {
		draws = draws[:c.left]
	}
	var open, narrow []*draw
	want := 0 // of those where no slots count
	for left, again := c.left, len(draws); again > 0; again-- {
		one := draws[len(draws)-again]
		share := (left + again - 1) / again
		left -= share
		if c.narrow(one.queue) {
			narrow = append(narrow, one)
		} else {
			open, want = append(open, one), want+share
		}
	}
	if !first {
		want = c.left
	}
	if err := c.together(ctx, open, want); err != nil {
		return err
	}
	for k, one := range narrow {
		want := (c.left + len(narrow) - k - 1) / (len(narrow) - k)
		if want == 0 || c.full {
			break
		}
		var err error
		if one.got, one.more, err = c.take(ctx, one.queue, want); err != nil {
			return err
		}
		c.left -= len(one.got)
		one.over = len(one.got) < want
	}
	return nil
}

// together claims up to want tasks of queues where no slots count, with the same few commands however many queues these are. When it returns it
// has these, or the draws are over. Where others are faster it chooses among more of what waits, so that claimers do not run after the same
// tasks, and so do the next claims for a while; when it has most of what it wanted it leaves the rest to the next one.
func (c *claimer) together(ctx context.Context, draws []*draw, want int) error {
	for outrun, all := 0, want; want > 0; {
		draws = slices.DeleteFunc(draws, func(d *draw) bool { return d.over || d.want > 0 && d.left() == 0 })
		if len(draws) == 0 {
			return nil
		}
		each := (want + len(draws) - 1) / len(draws)
		spread := outrun > 0 || c.contended()
		for _, one := range draws {
			share := each
			if one.want > 0 {
				share = one.left()
			}
			switch {
			case spread:
				one.ask = share*4 + 16
			case one.want == 0 && !c.plenty && len(draws) > 1: // some may have less than their share, and others more
				one.ask = min(share*2, want)
			default:
				one.ask = share
			}
		}
		if err := c.heads(ctx, draws, !spread); err != nil {
			return err
		}
		tasks := allot(draws, want)
		if tasks == 0 {
			continue // nothing is there: all are over
		}
		for _, one := range draws {
			if spread {
				one.scatter(outrun > 1)
			}
			one.docs = one.docs[:one.n]
		}
		got, err := c.markOpen(ctx, draws, !spread)
		if err != nil {
			return err
		}
		want -= got
		c.left -= got
		if got == tasks {
			continue
		}
		c.locked(func() { c.outrun = time.Now() })
		if outrun++; outrun == tries || want*4 <= all {
			for _, one := range draws {
				one.over = true
			}
		}
	}
	return nil
}

// allot chooses, of what was read, up to want tasks: of each queue its share, and more of those that have more where others have less. It
// returns how many these are.
func allot(draws []*draw, want int) (tasks int) {
	for _, one := range draws {
		one.n = 0
	}
	for again := true; again && tasks < want; {
		again = false
		each := max(1, (want-tasks)/len(draws))
		for _, one := range draws {
			share := each
			if one.want > 0 {
				share = one.left() - one.n
			}
			more := min(share, len(one.docs)-one.n, want-tasks)
			one.n += more
			tasks += more
			again = again || one.want == 0 && one.n < len(one.docs)
		}
	}
	for _, one := range draws {
		one.more = one.n < len(one.docs) || len(one.docs) == one.ask
		one.over = !one.more
	}
	return tasks
}

// scatter changes the order of what was read of each plan, so that what is first in it are tasks that others are not sure to be after as
// well: all that come before the lowest rank of those that it would take, and by chance some of that rank, or any.
func (o *draw) scatter(anyRank bool) {
	places := map[bson.ObjectID][]int{} // of the tasks of a plan, or of all
	for i := range o.docs {
		of := o.docs[i].Plan
		if o.passed == nil {
			of = bson.NilObjectID
		}
		places[of] = append(places[of], i)
	}
	for _, at := range places {
		n, _ := slices.BinarySearch(at, o.n)
		if n == len(at) || n == 0 {
			continue
		}
		if !anyRank && o.queue.ranked() {
			lowest := o.docs[at[n-1]].Rank
			at = slices.DeleteFunc(at, func(i int) bool { return o.docs[i].Rank != lowest })
		}
		rand.Shuffle(len(at), func(i, j int) { o.docs[at[i]], o.docs[at[j]] = o.docs[at[j]], o.docs[at[i]] })
	}
}

// choiceFields are what has to be known of tasks before some of them are chosen.
var choiceFields = ones("queue plan rank attempt gen")

// markOpen claims those of the tasks that are still to be had, and returns how many these are. All writers come for the tasks in one order:
// by queue, and then by id.
func (c *claimer) markOpen(ctx context.Context, draws []*draw, whole bool) (got int, err error) {
	draws = slices.Clone(draws)
	slices.SortFunc(draws, func(a, b *draw) int { return bytes.Compare(a.queue.ID[:], b.queue.ID[:]) })
	for _, one := range draws {
		got -= len(one.got)
	}
	err = c.marked(ctx, draws, whole, func() (int, []wire.Misfit, error) {
		var changes []wire.Change
		for _, one := range draws {
			changes = append(changes, c.changes(one.queue, one.docs, slots{})...)
		}
		return c.BulkParts(ctx, c.tasks, changes)
	})
	for _, one := range draws {
		got += len(one.got)
	}
	return got, err
}

// contended reports whether others were faster than this handle a short time ago.
func (s *Store) contended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.outrun) < justNow
}
