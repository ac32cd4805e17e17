package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/duration"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func nodeList(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List nodes, newest first"}
	output := wideFlag(cmd)
	cmd.RunE = a.onStore(func(ctx context.Context, st store.Store, _ []string) error {
		entries, limits, err := readNodes(ctx, st)
		if err != nil {
			return err
		}
		if output.json() {
			return view.JSON(a.Stdout, entries)
		}
		for _, name := range slices.Sorted(maps.Keys(limits)) {
			if !slices.ContainsFunc(entries, func(e api.Node) bool { return e.Name == name }) {
				a.note("node %s has maxthreads %d and is not registered now", cells.Clean(string(name)), limits[name])
			}
		}
		if err := a.printNodes(output, entries); err != nil {
			return err
		}
		return a.notePauses(ctx, st, entries)
	})
	return cmd
}

// readNodes returns the nodes, newest first, and the limits of nodes, of those that are not there as well.
func readNodes(ctx context.Context, st store.Store) ([]api.Node, map[plan.NodeName]int, error) {
	found, err := api.ReadNodes(ctx, st, true)
	if err != nil {
		return nil, nil, err
	}
	for i := range found.Nodes {
		found.Nodes[i].Identity = "" // it has the id of the machine, which is not for reports: see machine-id(5)
	}
	slices.SortFunc(found.Nodes, func(x, y api.Node) int { return bytes.Compare(y.ID.ID[:], x.ID.ID[:]) })
	return found.Nodes, found.Limits, nil
}

// notePauses says which queues nodes leave alone since they could not begin tasks.
func (a *app) notePauses(ctx context.Context, st store.Store, entries []api.Node) error {
	var names map[plan.QueueID]string
	for i := range entries {
		for _, p := range entries[i].Pauses {
			if p.Each == 0 {
				continue
			}
			if names == nil {
				var err error
				if names, err = queueNames(ctx, st); err != nil {
					return err
				}
			}
			a.note("node %s leaves queue %s to other nodes, and tries one task each %s: %s", cells.Clean(string(entries[i].Name)),
				cells.Clean(cmp.Or(names[p.Queue], p.Queue.String())), duration.Text(time.Duration(p.Each)), cells.Clean(p.Why))
		}
	}
	return nil
}

func (a *app) printNodes(output *format, entries []api.Node) error {
	ofRunners := map[plan.NodeName]int{} // they are threads of the node
	for _, e := range entries {
		if e.Runner {
			ofRunners[e.Name] += e.Running
		}
	}
	t := a.table("NODE", "STATE", "HEARD", "RUNS", "MAXTHREADS", "VERSION", "PLAN", "PLUGINS", "ID")
	for i := range entries {
		e := &entries[i]
		only := ""
		if !e.Plan.IsZero() {
			only = e.Plan.String()
		}
		plugins, runs, most := strings.Join(e.Plugins, ","), fmt.Sprintf("%d of %d", e.Running+ofRunners[e.Name], e.Threads), ""
		if e.Most != nil {
			most = strconv.Itoa(*e.Most)
		}
		if e.Runner {
			plugins, runs, most = "(a task runner of the node)", "-", ""
		}
		heard := duration.Text(time.Duration(e.Age*float64(time.Second))) + " ago"
		t.Add(string(e.Name), e.State, heard, runs, most, e.Version, only, plugins, e.ID.String())
	}
	if !slices.ContainsFunc(entries, func(e api.Node) bool { return e.Most != nil }) {
		t.Drop("MAXTHREADS")
	}
	if !output.wide() {
		t.Drop("ID")
	}
	return t.Print(a.Stdout)
}
