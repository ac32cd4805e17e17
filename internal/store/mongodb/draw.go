package mongodb

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
)

// left is how many tasks it has not got of those that it was dealt.
func (o *draw) left() int { return o.want - len(o.got) }

// narrow reports whether claims from the queue need slots, or spend a rate.
func (c *claimer) narrow(q *queueDoc) bool {
	return c.limit.set || !q.Unlimited || q.NodeThreads.n > 0 || len(c.pacesOf(q)) > 0
}

// together claims up to want tasks of queues where no slots count, with the same few commands however many queues these are. When it returns it
// has these, or the draws are over. Where others are faster it chooses among more of what waits, so that claimers do not run after the same
// tasks, and so do the next claims for a while; when it has most of what it wanted it leaves the rest to the next one.
func (c *claimer) together(ctx context.Context, draws []*draw, want int) error {
	for outrun, all := 0, want; want > 0; {
		draws = slices.DeleteFunc(draws, func(d *draw) bool { return d.over || d.left() == 0 })
		if len(draws) == 0 {
			return nil
		}
		spread := outrun > 0 || c.contended()
		for _, one := range draws {
			if one.ask = one.left(); spread {
				one.ask = one.ask*4 + 16
			}
		}
		if err := c.heads(ctx, draws, !spread); err != nil {
			return err
		}
		tasks := allot(draws)
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

// allot chooses, of what was read of each queue, up to what it was dealt. It returns how many tasks these are.
func allot(draws []*draw) (tasks int) {
	for _, one := range draws {
		one.n = min(one.left(), len(one.docs))
		tasks += one.n
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
		chosen := 0
		for _, one := range draws {
			more := slices.DeleteFunc(slices.Clone(one.docs), c.chosen)
			chosen += len(one.docs) - len(more)
			changes = append(changes, c.changes(one.queue, more, slots{})...)
		}
		if len(changes) == 0 {
			return chosen, nil, nil
		}
		n, misfits, err := c.markAlso(ctx, draws, changes)
		if n >= 0 {
			n += chosen
		}
		return n, misfits, err
	})
	for _, one := range draws {
		got += len(one.got)
	}
	return got, err
}

// chosen reports whether the turn has claimed the task with its endings, and keeps it.
func (c *claimer) chosen(t taskDoc) bool {
	_, is := c.guess.mine[t.ID]
	delete(c.guess.mine, t.ID)
	return is
}

// markAlso makes claims of draws, in one command with the changes that take marks off. If some of all of these find nothing, it returns -1: the tasks
// tell which ones are claimed.
func (c *claimer) markAlso(ctx context.Context, draws []*draw, claims []wire.Change) (n int, misfits []wire.Misfit, err error) {
	also := c.unmarked
	if c.mayEnd(draws) {
		also = nil
	}
	n, misfits, err = c.BulkParts(ctx, c.tasks, slices.Concat(also, claims))
	if len(also) == 0 || err != nil {
		return n, misfits, err
	}
	if n < len(also)+len(claims) {
		return -1, misfits, nil
	}
	c.unmarked = nil
	return len(claims), misfits, nil
}

// mayEnd reports whether a plan may be over in which something ended, though of what was drawn is claimed. The marks of its tasks stay until
// its end is written: if the node dies before, nothing else tells of it but the next audit.
func (r *round) mayEnd(draws []*draw) bool {
	for id := range r.touched {
		goesOn := r.busy[id] || r.stayed[id] || slices.ContainsFunc(draws, func(one *draw) bool {
			return slices.ContainsFunc(one.docs, func(t taskDoc) bool { return t.Plan == id })
		})
		if !goesOn {
			return true
		}
	}
	return false
}

// contended reports whether others were faster than this handle a short time ago.
func (s *Store) contended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.outrun) < justNow
}
