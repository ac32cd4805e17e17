package cli

import (
	"context"
	"time"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/hint"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// foreignSilent is after how long a node of another program is taken for gone, as Disbatch's monitoring has it.
const foreignSilent = time.Minute

// foreignHeard returns when another program's node of the name was heard of last, if the store keeps that; else zero.
func foreignHeard(ctx context.Context, st store.Store, name plan.NodeName) (at time.Time, err error) {
	s, ok := st.(store.Documents)
	if !ok {
		return at, nil
	}
	docs, err := s.NodeDocuments(ctx)
	for _, d := range docs {
		if d["node"] == string(name) && d["sluice"] != true { // by which Sluice's nodes mark theirs
			at, _ = d["timestamp"].(time.Time)
		}
	}
	return at, err
}

// noteNoNode says that none of these nodes has the name.
func (a *app) noteNoNode(name plan.NodeName, nodes []plan.Instance) {
	names := api.Each(nodes, func(i *plan.Instance) string { return string(i.Node) })
	a.note("no node of the name %s is there now%s", name, hint.Meant(string(name), names))
}
