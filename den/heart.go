package den

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// A heart sends the heartbeats of one instance and owns its lease. If no heartbeat got through for
// two thirds of the lease, the heart stops all tasks. They then end before anyone else may start
// them. The heart does nothing else: whatever hangs must not delay the heartbeats.
type heart struct {
	cfg     *settings
	log     *slog.Logger
	me      plan.Instance
	die     context.CancelCauseFunc
	tenants map[string]plugins.Tenant // that are to know of the lease, by name
	news    chan protocol.Beaten      // the newest answer, for the loop
	rescued chan struct{}             // something was queued by a rescue, or by a schedule
	running tally
	faults  *faults
	board   board         // how far that is
	firing  *firing       // starts what schedules say; nil: nothing does
	hurry   chan struct{} // closed when what is stopped has to end at once: the lease is lost, or a person says so
}

// lease tells plugins how long their work may continue if this process stands still. That is longer
// than the node itself would wait, so the node comes first. It is so short that the work has ended
// before the lease expires. lease also tells plugins that have left the registry, because their
// tasks may still run.
func (h *heart) lease(last time.Time) {
	for _, name := range h.cfg.Plugins.Names() {
		p, _ := h.cfg.Plugins.Get(name)
		if t, ok := p.(plugins.Tenant); ok {
			h.tenants[name] = t
		}
	}
	for _, t := range h.tenants {
		t.Lease(h.cfg.Lease*3/4 - time.Since(last))
	}
	if t, ok := h.cfg.Foreign.(plugins.Tenant); ok {
		t.Lease(h.cfg.Lease*3/4 - time.Since(last))
	}
}

func (h *heart) run(ctx context.Context, last time.Time) {
	tick := time.NewTicker(h.cfg.Beat)
	defer tick.Stop()
	said := h.me.Plugins // as the store was told, and has answered
	saidFaults := 0      // the same
	for ctx.Err() == nil {
		left := h.left(last)
		if left <= 0 {
			h.log.Warn("no beat got through; stopping what runs", "since", last, "lease", h.cfg.Lease)
			h.die(plugins.ErrLeaseLost)
			return
		}
		// A heartbeat that hangs must not outlast its lease, nor use up the rest of it: the next
		// one may get through.
		started := time.Now()
		beat, cancel := context.WithTimeout(ctx, min(left, max(left/2, h.cfg.Beat)))
		b := protocol.Beat{Instance: h.me.ID, Plan: h.cfg.Plan, Running: h.running.now(), Progress: h.board.take()}
		has := append([]string{}, h.cfg.Plugins.Names()...) // not nil, if there are none any more
		if !slices.Equal(has, said) {
			b.Plugins = has
		}
		pauses, version := h.faults.news(saidFaults)
		b.Pauses = pauses
		news, err := h.cfg.store.Beat(beat, b)
		cancel()
		if err != nil && b.Progress != nil {
			h.board.again()
		}
		switch {
		case err == nil:
			last, said, saidFaults = started, has, version // others count from when the beat was sent at the earliest
			h.faults.knows(version)
			h.lease(last)
			h.tell(news)
			h.firing.tell(news.Due)
			h.cfg.OnBeat()
		case errors.Is(err, plan.ErrInstanceGone):
			h.log.Warn("taken for dead; stopping what runs")
			h.die(plugins.ErrLeaseLost)
			return
		case ctx.Err() == nil && !errors.Is(err, plan.ErrStoreGone): // which Run returns
			h.log.Warn("beat", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-tick.C: // at once, if the beat took longer than one
		case <-h.faults.hurry:
		case <-time.After(h.left(last)):
		}
	}
}

// left returns how long the node may continue after its last heartbeat.
func (h *heart) left(last time.Time) time.Duration { return h.cfg.Lease*2/3 - time.Since(last) }

// tell leaves the newest answer for the loop, in place of one that it has not read.
func (h *heart) tell(news protocol.Beaten) {
	select {
	case old := <-h.news:
		news.Cancel = append(news.Cancel, old.Cancel...)
	default:
	}
	h.news <- news // there is room: the loop only takes, and nobody else puts
}

// A tally is what the loop runs, for the heart to tell: the heart waits for no turn of the loop.
type tally struct {
	mu    sync.Mutex
	tasks protocol.Tally
	begun int // tasks since ever
}

func (t *tally) add(q plan.QueueID, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tasks == nil {
		t.tasks = protocol.Tally{}
	}
	t.begun += max(0, n)
	if t.tasks[q] += n; t.tasks[q] == 0 {
		delete(t.tasks, q)
	}
}

// beside returns a count of the other tasks that run, or ran, beside the one that is added next. They may have ended since.
func (t *tally) beside() func() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	gone := t.begun
	for _, k := range t.tasks {
		gone -= k
	}
	return func() int {
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.begun - gone - 1
	}
}

func (t *tally) now() protocol.Tally {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.tasks)
}
