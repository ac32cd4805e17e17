package cli

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// An indexer is a store whose indexes other programs may change. Indexes makes those that are missing, and says of the others what is wrong.
type indexer interface {
	Indexes(ctx context.Context) (wrong []string, err error)
}

// makeIndexes does what a node does with its store before it claims: the indexes are made, and what is wrong with them is logged. Nothing of it
// stops the node, which can serve what is right.
func makeIndexes(ctx context.Context, st store.Store, log *slog.Logger) {
	if s, ok := st.(indexer); ok {
		wrong, err := s.Indexes(ctx)
		if err != nil {
			log.Warn("look at the indexes", "error", err)
		}
		for _, what := range wrong {
			log.Error("wrong index", "what", what)
		}
	}
}

// lookEach is how often a node looks for queues that it has not seen yet. It reports them to
// people, who find a line in its log soon enough.
const lookEach = 10 * time.Second

// A queueWatch logs which queues a node leaves to others, each once, and again when its plugin has come or gone.
type queueWatch struct {
	st   store.Reader
	has  func() []string // the plugins of the node, which may change
	log  *slog.Logger
	said map[plan.QueueID]string // the plugin that a queue is left to others for; "": it is not
}

// look looks once.
func (w *queueWatch) look(ctx context.Context) {
	queues, err := w.st.Queues(ctx)
	if err != nil {
		if ctx.Err() == nil && w.said == nil { // later the node says itself how its store is
			w.log.Warn("look at the queues", "error", err)
		}
		return
	}
	has, before := w.has(), w.said
	w.said = make(map[plan.QueueID]string, len(queues))
	for i := range queues {
		q := &queues[i]
		last, known := before[q.ID]
		switch {
		case slices.Contains(has, q.Plugin):
			if w.said[q.ID] = ""; last != "" {
				w.log.Info("the plugin of a queue is there now", "queue", q.Name, "plugin", q.Plugin)
			}
			continue
		case known && last == q.Plugin:
		case plugins.CheckName(q.Plugin) != nil:
			w.log.Warn("a queue's plugin has an invalid name, and no node runs it; use letters, "+
				"digits, _ and :", "queue", q.Name, "plugin", q.Plugin)
		default:
			w.log.Info("a queue is left to others: this node does not have its plugin", "queue", q.Name, "plugin", q.Plugin)
		}
		w.said[q.ID] = q.Plugin
	}
}

// watchQueues looks at the queues, and goes on doing so until what it returns is called.
func watchQueues(ctx context.Context, st store.Reader, has func() []string, log *slog.Logger) (stop func()) {
	w := &queueWatch{st: st, has: has, log: log}
	w.look(ctx)
	return beside(ctx, func(ctx context.Context) {
		tick := time.NewTicker(lookEach)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				w.look(ctx)
			}
		}
	})
}
