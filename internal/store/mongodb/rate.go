package mongodb

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// A pace is a rate with its instant, which the document of a queue or a group has.
type pace struct {
	group bool // it is of a group
	id    any  // of the document
	rate  plan.Rate
	spent time.Time
	over  bool // it let less start than was dealt: a start that it lets meanwhile is for the next claim, which deals it by weight
}

// rated reports whether the queue may have a rate.
func (q *queueDoc) rated() bool { return strings.Contains(string(q.Settings), `"rate"`) }

// pacesOf returns the rates that count for a queue: its own, and those of its groups. Queues share the paces of
// their groups.
func (c *claimer) pacesOf(q *queueDoc) (paces []*pace) {
	one := func(group bool, id any, r plan.Rate, spent time.Time) {
		if r == (plan.Rate{}) {
			return
		}
		if c.paces == nil {
			c.paces = map[any]*pace{}
		}
		if c.paces[id] == nil {
			c.paces[id] = &pace{group: group, id: id, rate: r, spent: spent}
		}
		paces = append(paces, c.paces[id])
	}
	if q.rated() {
		is := q.domain()
		one(false, q.ID, is.Rate, is.Spent)
	}
	if c.groupsOf != nil {
		for _, g := range c.groupsOf(q) {
			one(true, g.Name, g.Rate, g.Spent)
		}
	}
	return paces
}

// rateRoom returns how many tasks of a queue, of most, its own rate lets start now. It notes in lets how many the rates of its groups let
// start: see rules.NewSharing. Without a rate it asks nothing.
func (c *claimer) rateRoom(ctx context.Context, q *queueDoc, most int, lets map[string]int) (room int, err error) {
	room = most
	for _, p := range c.pacesOf(q) {
		if c.dealtAt.IsZero() {
			if c.dealtAt, err = c.Now(ctx); err != nil {
				return 0, err
			}
		}
		// An instant that is too far ahead would go ahead with the present. A millisecond may be of its rounding.
		if counts := rules.RateSpent(p.rate, p.spent, c.dealtAt); counts.Add(time.Millisecond).Before(p.spent) {
			if _, err := c.setSpent(ctx, p, counts); err != nil {
				return 0, err
			}
		}
		n := rules.RateRoom(p.rate, p.spent, c.dealtAt, math.MaxInt)
		if p.over {
			n = 0
		}
		if p.group {
			lets[p.id.(string)] = n
		} else {
			room = min(room, n)
		}
	}
	return room, nil
}

// waitOf returns how long it is until all of these rates let the next task start.
func waitOf(paces []*pace, now time.Time) (wait time.Duration) {
	for _, p := range paces {
		wait = max(wait, rules.RateWait(p.rate, p.spent, now))
	}
	return wait
}

// spend spends the rates that count for a queue for up to n tasks that wait, in one conditional write each, and returns for how many. Without
// a rate it asks the server for nothing. A node that dies between these writes and the claim has spent for nothing.
func (c *claimer) spend(ctx context.Context, q *queueDoc, n int) (room int, err error) {
	paces := c.pacesOf(q)
	room = n
	for i, p := range paces {
		had := room
		if room, err = c.spendPace(ctx, p, room); err != nil {
			return 0, err
		}
		p.over = room < had
		for _, before := range paces[:i] {
			if err := c.giveBackTo(ctx, before, had-room); err != nil {
				return 0, err
			}
		}
		if room == 0 {
			break
		}
	}
	if room == n || len(paces) == 0 {
		return room, nil
	}
	wait := max(waitOf(paces, c.spentAt), time.Millisecond) // it may be over by now, or others have been faster
	if c.rest == 0 || wait < c.rest {
		c.rest = wait
	}
	return room, nil
}

// spendPace spends one rate for up to n tasks, and returns for how many.
func (c *claimer) spendPace(ctx context.Context, p *pace, n int) (room int, err error) {
	if p.over {
		return 0, nil
	}
	for range tries {
		if p.rate == (plan.Rate{}) {
			return n, nil
		}
		now, err := c.Now(ctx)
		if err != nil {
			return 0, err
		}
		c.spentAt = now
		spent := rules.RateSpent(p.rate, p.spent, now)
		if room = rules.RateRoom(p.rate, p.spent, now, n); room > 0 {
			spent = rules.RateSpend(p.rate, spent, now, room)
		}
		if spent.Equal(p.spent) {
			return room, nil
		}
		if mine, err := c.setSpent(ctx, p, spent); err != nil || mine {
			return room, err
		}
	}
	return 0, nil // others are faster: they have it
}

// respend adds to an update, and to its conditions, that a rate which was used up to one instant is used up to another. A date has milliseconds:
// it is rounded up, so that the rate is kept. It returns the instant that is written.
func respend(where, set *bson.D, was, spent time.Time) time.Time {
	if spent.Equal(was) {
		return was
	}
	if whole := spent.Truncate(time.Millisecond); whole.Before(spent) {
		spent = whole.Add(time.Millisecond)
	}
	is := any(nil)
	if !was.IsZero() {
		is = was
	}
	*where, *set = append(*where, bson.E{Key: "spent", Value: is}), append(*set, bson.E{Key: "spent", Value: spent})
	return spent
}

// setSpent writes how far a rate is used up, unless another process did: then it reads that.
func (c *claimer) setSpent(ctx context.Context, p *pace, spent time.Time) (mine bool, err error) {
	var where, set bson.D
	spent = respend(&where, &set, p.spent, spent)
	mine, err = c.changePace(ctx, p, where, d("$set", set))
	if err != nil || mine {
		p.spent = spent
		return mine, err
	}
	p.rate, p.spent = plan.Rate{}, time.Time{} // it may be gone
	if p.group {
		read, err := wire.FindOne[groupDoc](ctx, c.groups, d("_id", p.id), wire.Query{})
		if err == nil && read != nil {
			is := read.domain()
			p.rate, p.spent = is.Rate, is.Spent
		}
		return false, err
	}
	read, err := wire.FindOne[queueDoc](ctx, c.queues, d("_id", p.id), wire.Query{Fields: ones("spent settings")})
	if err == nil && read != nil {
		is := read.domain()
		p.rate, p.spent = is.Rate, is.Spent
	}
	return false, err
}

// giveBack takes back what spend spent for n tasks that others claimed.
func (c *claimer) giveBack(ctx context.Context, q *queueDoc, n int) error {
	for _, p := range slices.Backward(c.pacesOf(q)) {
		if err := c.giveBackTo(ctx, p, n); err != nil {
			return err
		}
	}
	return nil
}

// giveBackTo takes back what was spent of one rate for n tasks. It subtracts, so that it does not matter what others have spent since.
func (c *claimer) giveBackTo(ctx context.Context, p *pace, n int) error {
	if n == 0 || p.rate == (plan.Rate{}) {
		return nil
	}
	back := (time.Duration(n) * p.rate.Interval()).Truncate(time.Millisecond)
	p.spent = p.spent.Add(-back)
	_, err := c.changePace(ctx, p, nil, bson.A{d("$set", d("spent", d("$subtract", bson.A{"$spent", back.Milliseconds()})))})
	return err
}

// changePace changes the document that has a rate, if it matches.
func (c *claimer) changePace(ctx context.Context, p *pace, where bson.D, update any) (matched bool, err error) {
	where = append(where, bson.E{Key: "_id", Value: p.id})
	if p.group {
		return c.UpdateOne(ctx, c.groups, where, update)
	}
	return c.UpdateOne(ctx, c.queues, where, update)
}
