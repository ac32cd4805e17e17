package cli

import (
	"context"
	"log/slog"
	"slices"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plugins"
)

// An indexer is a store whose indexes other programs may change. Indexes makes those that are missing, and says of the others what is wrong.
type indexer interface {
	Indexes(ctx context.Context) (wrong []string, err error)
}

// lookOver does what a node does with its store before it claims: the indexes are made, and what is wrong with them and with queues is
// logged. Nothing of it stops the node, which can serve what is right.
func lookOver(ctx context.Context, st store.Store, has []string, log *slog.Logger) {
	if s, ok := st.(indexer); ok {
		wrong, err := s.Indexes(ctx)
		if err != nil {
			log.Warn("look at the indexes", "error", err)
		}
		for _, what := range wrong {
			log.Error("wrong index", "what", what)
		}
	}
	queues, err := st.Queues(ctx)
	if err != nil {
		log.Warn("look at the queues", "error", err)
	}
	for i := range queues {
		switch q := &queues[i]; {
		case plugins.CheckName(q.Plugin) != nil:
			log.Warn("a queue's plugin has no proper name, and nobody runs it; a name has letters, digits, _ and :", "queue", q.Name, "plugin", q.Plugin)
		case !slices.Contains(has, q.Plugin):
			log.Info("a queue is left to others: this node does not have its plugin", "queue", q.Name, "plugin", q.Plugin)
		}
	}
}
