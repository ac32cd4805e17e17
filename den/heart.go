package den

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// A heart beats for one instance, and watches the others. It owns the lease: when no beat got through for two thirds of it, everything
// that runs is stopped, so that it has ended before anyone else may start it.
type heart struct {
	cfg     *Config
	log     *slog.Logger
	me      plan.Instance
	die     context.CancelCauseFunc
	news    chan plan.Beaten // the newest answer, for the loop
	rescued chan struct{}    // something was queued by a rescue

	seen  map[plan.InstanceID]pulse
	again <-chan time.Time // when to watch again, sooner than with the next beat
}

// A pulse is when an instance's beats were last seen to change, by this process's monotonic clock: no two clocks are compared.
type pulse struct {
	beats int64
	since time.Time
	gone  time.Time // when its process was first seen to be gone
}

func (h *heart) run(ctx context.Context) {
	h.seen = map[plan.InstanceID]pulse{}
	last := time.Now()
	tick := time.NewTicker(h.cfg.Beat)
	defer tick.Stop()
	for ctx.Err() == nil {
		// A call that hangs must not outlast the lease that it is about.
		left := h.left(last)
		if left <= 0 {
			h.log.Warn("no beat got through; stopping what runs", "since", last, "lease", h.cfg.Lease)
			h.die(plugins.ErrLeaseLost)
			return
		}
		started := time.Now()
		beat, cancel := context.WithTimeout(ctx, left)
		news, err := h.cfg.Store.Beat(beat, plan.Beat{Instance: h.me.ID})
		cancel()
		switch {
		case err == nil:
			last = started // others count from when the beat was sent at the earliest
			h.tell(news)
			h.watch(ctx)
		case errors.Is(err, plan.ErrInstanceGone):
			h.log.Warn("taken for dead; stopping what runs")
			h.die(plugins.ErrLeaseLost)
			return
		case ctx.Err() == nil:
			h.log.Warn("beat", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-time.After(h.left(last)):
		case <-h.again:
			h.again = nil
			h.watch(ctx)
		}
	}
}

// left returns how long the node may go on after its last beat.
func (h *heart) left(last time.Time) time.Duration { return h.cfg.Lease*2/3 - time.Since(last) }

// tell leaves the newest answer for the loop, in place of one that it has not read.
func (h *heart) tell(news plan.Beaten) {
	select {
	case old := <-h.news:
		news.Cancel = append(news.Cancel, old.Cancel...)
	default:
	}
	h.news <- news // there is room: the loop only takes, and nobody else puts
}

// watch rescues the tasks of instances that are dead: their process, on this host, is gone, or their beats have stood still for their
// lease.
func (h *heart) watch(ctx context.Context) {
	all, err := h.cfg.Store.Instances(ctx)
	if err != nil {
		if ctx.Err() == nil {
			h.log.Warn("look at other nodes", "error", err)
		}
		return
	}
	now := time.Now()
	seen := make(map[plan.InstanceID]pulse, len(all))
	for _, i := range all {
		if i.ID == h.me.ID {
			continue
		}
		p, known := h.seen[i.ID]
		if !known || p.beats != i.Beats {
			p = pulse{beats: i.Beats, since: now, gone: p.gone}
		}
		seen[i.ID] = p
		gone := i.Host == h.me.Host && h.cfg.Dead(i)
		if gone && p.gone.IsZero() {
			p.gone = now
			seen[i.ID] = p
		}
		switch left := h.cfg.Linger - now.Sub(p.gone); {
		case gone && left > 0: // what it ran is being ended, but may not have ended
			h.again = time.After(left)
			continue
		case !gone && now.Sub(p.since) < i.Lease:
			continue
		}
		n, err := h.cfg.Store.Rescue(ctx, i.ID, i.Beats)
		switch {
		case errors.Is(err, plan.ErrConflict): // it beat after all
		case err != nil:
			h.log.Warn("rescue", "dead", i.ID, "dead_node", i.Node, "error", err)
		default:
			h.log.Info("rescued", "dead", i.ID, "dead_node", i.Node, "tasks", n, "process_gone", gone)
			delete(seen, i.ID)
			if n > 0 {
				select {
				case h.rescued <- struct{}{}:
				default:
				}
			}
		}
	}
	h.seen = seen
}
