package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/duration"
	"github.com/seed-1177d267/sluice/internal/explain"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func nodeList(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List nodes, newest first"}
	output := wideFlag(cmd)
	cmd.RunE = a.onStore(func(ctx context.Context, st store.Store, _ []string) error {
		entries, limits, err := nodeEntries(ctx, st)
		if err != nil {
			return err
		}
		if output.json() {
			return view.JSON(a.Stdout, entries)
		}
		for _, name := range slices.Sorted(maps.Keys(limits)) {
			if !slices.ContainsFunc(entries, func(e nodeEntry) bool { return e.Name == name }) {
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

// A nodeEntry is one instance of a node in JSON listings.
type nodeEntry struct {
	ID      plan.InstanceID `json:"id"`
	Name    plan.NodeName   `json:"name"`
	State   string          `json:"state"`  // alive, silent, gone
	Status  int             `json:"status"` // 1, 0, -1
	Host    string          `json:"host"`
	PID     int             `json:"pid"`
	Threads int             `json:"threads"`
	Most    *int            `json:"maxthreads,omitempty"` // what a person lets all processes of the name have together
	Running int             `json:"running"`
	Plugins []string        `json:"plugins"`
	Active  []plan.QueueID  `json:"active_queues,omitempty"` // the only ones that it serves
	Ignored []plan.QueueID  `json:"ignore_queues,omitempty"`
	Plan    plan.PlanID     `json:"plan,omitzero"` // the only one whose tasks it claims
	Version string          `json:"version,omitempty"`
	Runner  bool            `json:"runner,omitempty"` // it runs one task that its node claimed
	Pauses  []api.Pause     `json:"pauses,omitempty"` // the queues with tasks that it could not begin
	Age     float64         `json:"age"`              // seconds since it was heard of
}

// nodeEntries returns the instances that are there, newest first, and the limits of nodes, of those that are not there as well.
func nodeEntries(ctx context.Context, st store.Store) (entries []nodeEntry, limits map[plan.NodeName]int, err error) {
	nodes, err := st.Instances(ctx)
	if err != nil {
		return nil, nil, err
	}
	sort.Slice(nodes, func(x, y int) bool { return bytes.Compare(nodes[x].ID.ID[:], nodes[y].ID.ID[:]) > 0 })
	if limits, err = st.MaxThreads(ctx); err != nil {
		return nil, nil, err
	}
	running := map[plan.InstanceID]int{}
	err = store.EachTask(ctx, st, store.TaskQuery{Statuses: []plan.Status{plan.Claimed, plan.Running}}, func(t *plan.Task) error {
		running[t.Instance]++
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	entries = make([]nodeEntry, len(nodes))
	for i := range nodes {
		n := &nodes[i]
		entries[i] = nodeEntry{
			ID: n.ID, Name: n.Node, Host: n.Host, PID: n.Process.PID, Threads: n.Threads, Running: running[n.ID],
			Plugins: append([]string{}, n.Plugins...), Active: n.Active, Ignored: n.Ignored, Plan: n.Plan, Version: n.Version,
			Runner: n.Runner, Pauses: api.PausesOf(n), Age: n.Age.Seconds(),
		}
		entries[i].State, entries[i].Status = explain.NodeState(*n)
		if most, limited := limits[n.Node]; limited {
			entries[i].Most = &most
		}
	}
	return entries, limits, nil
}

// notePauses says which queues nodes leave alone since they could not begin tasks.
func (a *app) notePauses(ctx context.Context, st store.Store, entries []nodeEntry) error {
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

func (a *app) printNodes(output *format, entries []nodeEntry) error {
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
	if !slices.ContainsFunc(entries, func(e nodeEntry) bool { return e.Most != nil }) {
		t.Drop("MAXTHREADS")
	}
	if !output.wide() {
		t.Drop("ID")
	}
	return t.Print(a.Stdout)
}
