// Package feed owns how the changes of one plan are read from a store, or from a server before one.
// Commands and programs that follow a plan ask here.
package feed

import (
	"context"
	"errors"
	"time"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// page is how many changes one call to the store asks for.
const page = 5000

// A Feed reads the changes of one plan. One goroutine uses it.
type Feed struct {
	Reader store.Reader
	Seen   map[plan.TaskID]Stamp // the last state of each task that Next returned
	Pages  int                   // how many calls to the store Next makes at most
	// Wait is how long Next waits at a server for a first change. A server answers at once to the
	// first call of Next. A store is not waited at.
	Wait time.Duration
	// Anew says that the feed began again because the store had fewer changes than before, as after a
	// backup was restored. Earlier states may be wrong then.
	Anew bool

	plan   plan.PlanID
	cursor store.Cursor
	begun  bool
}

// A Stamp is the state that a task was last seen in. A store may tell of the same state twice.
type Stamp struct {
	At      int64 // in nanoseconds since 1970
	Status  plan.Status
	Attempt int
}

// Follow returns a feed of the changes of a plan from now on.
func Follow(ctx context.Context, r store.Reader, p plan.PlanID) (*Feed, error) {
	cursor, err := r.Latest(ctx)
	return &Feed{Reader: r, Seen: map[plan.TaskID]Stamp{}, Pages: 50, Wait: time.Second, plan: p, cursor: cursor}, err
}

// Next returns the changes since the last call, each state once. If changes come faster than the feed
// reads, it returns what it has.
func (f *Feed) Next(ctx context.Context) ([]store.Change, error) {
	var ours []store.Change
	for range f.Pages {
		changes, cursor, err := f.read(ctx)
		if errors.Is(err, plan.ErrCursor) {
			f.Anew = true
			cursor, err = f.Reader.Latest(ctx)
		}
		if err != nil {
			return ours, err
		}
		f.cursor = cursor
		for _, c := range changes {
			is := Stamp{c.At.UnixNano(), c.Status, c.Attempt}
			if c.Plan != f.plan || !c.Task.IsZero() && f.Seen[c.Task] == is {
				continue
			}
			f.Seen[c.Task] = is
			ours = append(ours, c)
		}
		if len(changes) < page {
			break
		}
	}
	return ours, nil
}

// read reads one page.
func (f *Feed) read(ctx context.Context) ([]store.Change, store.Cursor, error) {
	w, far := f.Reader.(store.Waiter)
	if !far {
		return f.Reader.Changes(ctx, f.cursor, page)
	}
	wait := f.Wait
	if !f.begun {
		f.begun, wait = true, 0
	}
	return w.WaitChanges(ctx, f.plan, f.cursor, page, wait)
}
