package mongodb

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// The feed of changes is what was written since a time of the server's clock, in the order of mtime and id. A write may become visible
// after one with a later mtime; so whoever follows the feed gets what is new at once, and once more looks at the time behind it, when all
// writes of that time are there.

// ahead is by how much a cursor may be beyond the server's clock: another member of the set, whose clock it was made by, may have been it.
const ahead = time.Minute

// lateness is by how much a write is visible later than its mtime says, at most.
const lateness = 5 * time.Second

// A place in the feed: everything up to (At, ID) was handed out, and everything up to Sure was when it could not change any more. It
// belongs to a follower, who got something beyond it, perhaps.
type place struct {
	at       time.Time
	id       bson.ObjectID
	sure     time.Time
	follower uint64
}

func newPlace(at time.Time) place { return place{at: at, sure: at, follower: rand.Uint64()} }

func (p place) cursor() store.Cursor {
	return store.Cursor(fmt.Sprintf("%d.%s.%d.%d", p.at.UnixMilli(), p.id.Hex(), p.sure.UnixMilli(), p.follower))
}

func parsePlace(c store.Cursor) (p place, err error) {
	if c == "" {
		return newPlace(time.Time{}), nil
	}
	var at, sure int64
	parts := strings.Split(string(c), ".")
	if len(parts) == 4 {
		_, err = fmt.Sscan(parts[0]+" "+parts[2]+" "+parts[3], &at, &sure, &p.follower)
		if err == nil {
			p.id, err = bson.ObjectIDFromHex(parts[1])
		}
	}
	if err != nil || len(parts) != 4 {
		return p, fmt.Errorf("%q: %w", c, plan.ErrCursor)
	}
	p.at, p.sure = time.UnixMilli(at), time.UnixMilli(sure)
	return p, nil
}

// feed remembers what this process handed out lately, so that the second look finds only what is new to who follows.
type feed struct {
	mu        sync.Mutex
	followers map[uint64]*follower
}

// A follower is somebody who follows the feed.
type follower struct {
	asked time.Time                   // when it last asked
	seen  map[bson.ObjectID]time.Time // the mtime with which it got a task or plan last
}

// forgotten is after how long a follower is forgotten that does not ask. Should it ask again it gets some changes twice.
const forgotten = time.Minute

// of returns what is known of a follower, and forgets those that are gone.
func (f *feed) of(id uint64) *follower {
	now := time.Now()
	maps.DeleteFunc(f.followers, func(_ uint64, f *follower) bool { return now.Sub(f.asked) > forgotten })
	if f.followers[id] == nil {
		if f.followers == nil {
			f.followers = map[uint64]*follower{}
		}
		f.followers[id] = &follower{seen: map[bson.ObjectID]time.Time{}}
	}
	f.followers[id].asked = now
	return f.followers[id]
}

// news returns those of the changes that the follower did not get yet, at most limit, and remembers them.
func (f *feed) news(id uint64, changes []store.Change, limit int) (out []store.Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := f.of(id).seen
	for i := range changes {
		if len(out) == limit {
			break
		}
		if c := &changes[i]; !seen[idOfChange(c)].Equal(c.At) {
			seen[idOfChange(c)] = c.At
			out = append(out, *c)
		}
	}
	return out
}

// forget drops what lies behind the follower.
func (f *feed) forget(id uint64, before time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.of(id).seen, func(_ bson.ObjectID, at time.Time) bool { return at.Before(before) })
}

var changeFields = ones("mtime plan name of status reason coe attempt node detail output")

// idOfChange is the id of the task or plan that changed.
func idOfChange(c *store.Change) bson.ObjectID { return oid(cmp.Or(c.Task.ID, c.Plan.ID)) }

// Changes implements store.Reader. The empty cursor is the beginning.
func (s *Store) Changes(ctx context.Context, after store.Cursor, limit int) ([]store.Change, store.Cursor, error) {
	p, err := parsePlace(after)
	if err != nil {
		return nil, after, err
	}
	now, err := s.Now(ctx)
	if err != nil {
		return nil, after, err
	}
	if p.at.After(now.Add(ahead)) {
		return nil, after, fmt.Errorf("%q is of a time that has not come: %w", after, plan.ErrCursor)
	}
	if limit <= 0 {
		limit = protocol.DefaultBudget
	}
	settled := now.Add(-lateness)
	var out []store.Change
	if until := slices.MinFunc([]time.Time{settled, p.at}, time.Time.Compare); p.sure.Before(until) {
		again, err := s.between(ctx, d("mtime", d("$gte", p.sure, "$lte", until)), 0)
		if err != nil {
			return nil, after, err
		}
		if out = s.feed.news(p.follower, again, limit); len(out) == limit {
			return out, p.cursor(), nil
		}
		p.sure = until
		s.feed.forget(p.follower, until)
	}
	found, err := s.between(ctx, d("$or", bson.A{d("mtime", d("$gt", p.at)), d("mtime", p.at, "_id", d("$gt", p.id))}), limit-len(out))
	if err != nil {
		return nil, after, err
	}
	fresh := len(found) // from where on what was found is looked at again
	for i := range found {
		p.at, p.id = found[i].At, idOfChange(&found[i])
		if p.at.Before(settled) {
			p.sure = p.at // no second look is needed
		} else {
			fresh = min(fresh, i)
		}
	}
	if fresh < len(found) {
		s.feed.news(p.follower, found[fresh:], len(found))
	}
	out = append(out, found...)
	if ended := endedPlans(found); len(ended) > 0 && len(out) < limit {
		tasks, err := s.between(ctx, d("plan", d("$in", ended), "mtime", d("$gt", p.sure, "$lte", p.at)), 0)
		if err != nil {
			return nil, after, err
		}
		out = append(out, s.feed.news(p.follower, tasks, limit-len(out))...)
		slices.SortFunc(out, inOrder)
	}
	return out, p.cursor(), nil
}

// endedPlans returns the plans whose end is among the changes. Their tasks ended before them, so
// that all ends of tasks are visible by then. A follower of such a plan may not ask again.
func endedPlans(changes []store.Change) (ended bson.A) {
	for i := range changes {
		if changes[i].State.Ended() {
			ended = append(ended, oid(changes[i].Plan.ID))
		}
	}
	return ended
}

// inOrder compares two changes by the order of the feed.
func inOrder(a, b store.Change) int {
	one, other := idOfChange(&a), idOfChange(&b)
	return cmp.Or(a.At.Compare(b.At), bytes.Compare(one[:], other[:]))
}

// between returns tasks and plans that match, in the order of the feed; limit 0: all of them.
func (s *Store) between(ctx context.Context, filter bson.D, limit int) ([]store.Change, error) {
	order := d("mtime", 1, "_id", 1)
	filter = append(filter, bson.E{Key: "_id", Value: wire.Addressable})
	tasks, err := wire.Find[taskDoc](ctx, s.tasks, filter, wire.Query{Fields: changeFields, Sort: order, Limit: limit})
	if err != nil {
		return nil, err
	}
	plans, err := wire.Find[planDoc](ctx, s.plans, filter, wire.Query{Fields: ones("mtime name state"), Sort: order, Limit: limit})
	if err != nil {
		return nil, err
	}
	out := make([]store.Change, 0, len(tasks)+len(plans))
	for i := range tasks {
		t := &tasks[i]
		out = append(out, store.Change{
			At: t.Mtime.UTC(), Plan: planID(t.Plan), Task: taskID(t.ID), Name: t.Name, Of: taskID(t.Of), Status: t.Status, Reason: t.Reason,
			Allowed: t.Status.Allowed(t.Lenient), Attempt: t.Attempt, Node: plan.NodeName(t.Node), Detail: t.Detail,
			Output: json.RawMessage(t.Output),
		})
	}
	for i := range plans {
		p := &plans[i]
		out = append(out, store.Change{At: p.Mtime.UTC(), Plan: planID(p.ID), Name: p.Name, State: p.State})
	}
	slices.SortFunc(out, inOrder)
	if limit > 0 {
		out = out[:min(len(out), limit)]
	}
	return out, nil
}

// Latest implements store.Reader. Earlier writes have an mtime up to the server's present
// millisecond. Writes after the return have a later one.
func (s *Store) Latest(ctx context.Context) (store.Cursor, error) {
	at, _, err := s.Hello(ctx)
	if err != nil {
		return "", err
	}
	at = at.Add(time.Millisecond)
	if err := wire.Nap(ctx, 2*time.Millisecond); err != nil {
		return "", err
	}
	// A write that was begun before and is not visible yet is found by the second look, which knows what was there already.
	p := newPlace(at)
	p.sure = at.Add(-lateness)
	there, err := s.between(ctx, d("mtime", d("$gte", p.sure, "$lte", at)), 0)
	if err != nil {
		return "", err
	}
	s.feed.news(p.follower, there, len(there))
	return p.cursor(), nil
}
