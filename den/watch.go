package den

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

// A watch looks after the other instances, and rescues those that died.
type watch struct {
	cfg     *settings
	log     *slog.Logger
	me      plan.Instance
	rescued chan<- struct{} // where a rescue that queued something says so, and that there are threads again
	runners *runners
	faults  *faults

	seen    map[plan.InstanceID]pulse
	again   <-chan time.Time // when to look again, sooner than with the next beat,
	againAt time.Time        // which is then
}

// A pulse is when an instance's beats were last seen to change, by this process's monotonic clock: no two clocks are compared.
type pulse struct {
	beats int64
	since time.Time
	gone  time.Time // when its process was first seen to be gone
}

func (w *watch) run(ctx context.Context) {
	tick := time.NewTicker(w.cfg.Beat)
	defer tick.Stop()
	for ctx.Err() == nil {
		w.look(ctx)
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-w.again:
		}
	}
}

// look rescues the tasks of instances that are dead: their process, on this host, is gone, or their beats have stood still for their
// lease.
func (w *watch) look(ctx context.Context) {
	asked := time.Now()
	all, err := w.cfg.store.Instances(ctx)
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, plan.ErrStoreGone) {
			w.log.Warn("look at other nodes", "error", err)
		}
		return
	}
	fewer, again := w.runners.count(&w.me, all, asked)
	if fewer {
		w.tell()
	}
	w.lookIn(again)
	w.review(ctx, all)
	now := time.Now()
	seen := make(map[plan.InstanceID]pulse, len(all))
	for _, i := range all {
		if i.ID == w.me.ID {
			continue
		}
		p, known := w.seen[i.ID]
		if !known || p.beats != i.Beats {
			p = pulse{beats: i.Beats, since: now, gone: p.gone}
		}
		seen[i.ID] = p
		gone := i.Host == w.me.Host && w.cfg.Dead(i)
		if gone && p.gone.IsZero() {
			p.gone = now
			seen[i.ID] = p
		}
		switch left := w.cfg.Linger - now.Sub(p.gone); {
		case gone && left > 0: // its tasks are being ended, but may not have ended
			w.lookIn(left)
			continue
		case !gone && (now.Sub(p.since) < i.Lease || w.runners.isEnding(&i)):
			continue
		}
		n, err := w.cfg.store.Rescue(ctx, i.ID, i.Beats)
		switch {
		case errors.Is(err, plan.ErrConflict): // it beat after all
		case err != nil:
			w.log.Warn("rescue", "dead", i.ID, "dead_node", i.Node, "error", err)
		default:
			w.log.Info("rescued", "dead", i.ID, "dead_node", i.Node, "tasks", n, "process_gone", gone)
			delete(seen, i.ID)
			if n > 0 {
				w.tell()
			}
		}
	}
	w.seen = seen
}

// review takes from the node's faults what every other node could not begin either.
func (w *watch) review(ctx context.Context, all []plan.Instance) {
	if !w.faults.any() {
		return // as nearly always
	}
	queues, err := w.cfg.store.Queues(ctx)
	if err != nil {
		return // the next look asks again
	}
	if w.faults.review(&w.me, all, queues, w.cfg.Lease, w.log) {
		w.tell()
	}
}

// lookIn has it look again after d, if that is before the next beat.
func (w *watch) lookIn(d time.Duration) {
	if at := time.Now().Add(d); 0 < d && d < w.cfg.Beat && (w.againAt.Before(time.Now()) || at.Before(w.againAt)) {
		w.again, w.againAt = time.After(d), at
	}
}

// tell has the loop ask for work.
func (w *watch) tell() {
	select {
	case w.rescued <- struct{}{}:
	default:
	}
}
