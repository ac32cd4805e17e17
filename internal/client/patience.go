package client

import (
	"context"
	"errors"
	"time"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/plan"
)

// mostPause is how long at most is waited between two tries while a server is away.
const mostPause = 2 * time.Second

// patience is how long a server that is away is waited for.
type patience struct {
	span time.Duration
	away func(err error)
}

type patienceKey struct{}

// Patient returns a context whose requests outlive a restart of the server. A request that may be
// repeated, and gets no answer, is repeated for that span and then fails. The calling goroutine
// calls away when a request fails for the first time. Patient is for callers that only wait. It is
// not for changes: these must not happen a minute after they were asked for.
func Patient(ctx context.Context, span time.Duration, away func(err error)) context.Context {
	return context.WithValue(ctx, patienceKey{}, &patience{span, away})
}

// tries counts how often a request of a context has failed, and since when.
type tries struct {
	c        *Client
	patience *patience // nil: a few tries are all
	failed   int
	since    time.Time
}

func (c *Client) tryingFor(ctx context.Context) *tries {
	p, _ := ctx.Value(patienceKey{}).(*patience)
	return &tries{c: c, patience: p}
}

// outlast reports whether a patient caller repeats a failed request although the server answered.
// It does if the server stops, or cannot reach its store.
func (t *tries) outlast(r *request, err error) bool {
	var said *api.Problem
	return t.patience != nil && r.again && errors.As(err, &said) && errors.Is(err, plan.ErrUnavailable) && !errors.Is(err, plan.ErrStoreGone)
}

// next returns how long to wait before the request is made again, and whether it is.
func (t *tries) next(err error) (pause time.Duration, again bool) {
	t.failed++
	pause = t.c.pause.Delay(t.failed, nil)
	if t.patience == nil {
		return pause, t.failed < t.c.tries
	}
	if t.failed == 1 {
		t.since = time.Now()
		t.patience.away(err)
	}
	return min(pause, mostPause), time.Since(t.since) < t.patience.span
}
