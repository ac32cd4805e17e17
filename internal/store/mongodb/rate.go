package mongodb

import (
	"context"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// rated reports whether the queue may have a rate.
func (q *queueDoc) rated() bool { return strings.Contains(string(q.Settings), `"rate"`) }

// spend spends the rate of a queue for up to n tasks that wait, in one conditional write, and returns for how many. Without a rate it asks the
// server for nothing. A node that dies between the two writes has spent for nothing.
func (c *claimer) spend(ctx context.Context, q *queueDoc, n int) (room int, err error) {
	if !q.rated() {
		return n, nil
	}
	for range tries {
		now, err := c.Now(ctx)
		if err != nil {
			return 0, err
		}
		is := q.domain()
		spent := rules.RateSpent(is.Rate, is.Spent, now)
		if room = rules.RateRoom(is.Rate, is.Spent, now, n); room > 0 && is.Rate.Starts > 0 {
			spent = rules.RateSpend(is.Rate, spent, now, room)
		}
		if room < n {
			c.held(is.Rate, spent, now)
		}
		if spent.Equal(is.Spent) {
			return room, nil
		}
		if mine, err := c.setSpent(ctx, q, spent); err != nil || mine {
			return room, err
		}
	}
	c.rest = time.Millisecond // others are faster: they have it
	return 0, nil
}

// setSpent writes how far the rate of a queue is used up, unless another process did: then it reads that. A date has milliseconds: it is
// rounded up, so that the rate is kept.
func (c *claimer) setSpent(ctx context.Context, q *queueDoc, spent time.Time) (mine bool, err error) {
	if whole := spent.Truncate(time.Millisecond); whole.Before(spent) {
		spent = whole.Add(time.Millisecond)
	}
	was := any(nil)
	if !q.Spent.IsZero() {
		was = q.Spent
	}
	mine, err = c.UpdateOne(ctx, c.queues, d("_id", q.ID, "spent", was), d("$set", d("spent", spent)))
	if err != nil || mine {
		q.Spent = spent
		return mine, err
	}
	read, err := wire.FindOne[queueDoc](ctx, c.queues, d("_id", q.ID), wire.Query{Fields: ones("spent settings")})
	if err == nil && read != nil {
		q.Spent, q.Settings = read.Spent, read.Settings
	}
	return false, err
}

// held notes when the rate of a queue in which tasks wait lets the next one start.
func (c *claimer) held(r plan.Rate, spent, now time.Time) {
	if wait := rules.RateWait(r, spent, now); wait > 0 && (c.rest == 0 || wait < c.rest) {
		c.rest = wait
	}
}

// giveBack takes back what spend spent for n tasks that others claimed.
func (c *claimer) giveBack(ctx context.Context, q *queueDoc, n int) error {
	for range tries {
		rate := q.domain().Rate
		if rate == (plan.Rate{}) {
			return nil
		}
		if mine, err := c.setSpent(ctx, q, q.Spent.Add(-time.Duration(n)*rate.Interval())); err != nil || mine {
			return err
		}
	}
	return nil // others are faster, and it is lost
}
