package cli

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/duration"
	"github.com/seed-1177d267/sluice/internal/explain"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func nodeCommands(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "node",
		Short: "Look at execution nodes, and limit them",
		Long:  "Look at execution nodes, the processes that claim tasks and run them, and limit them.",
	}, nodeList(a), nodeSet(a))
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
	Age     float64         `json:"age"`              // seconds since it was heard of
}

func nodeList(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the nodes that are there, newest first", Args: exactly(0)}
	output := wideFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx := cmd.Context()
		return a.withStore(ctx, func(st store.Store) error {
			entries, limits, err := nodeEntries(ctx, st)
			if err != nil {
				return err
			}
			if output.json() {
				return view.JSON(a.Stdout, entries)
			}
			for _, name := range slices.Sorted(maps.Keys(limits)) {
				if !slices.ContainsFunc(entries, func(e nodeEntry) bool { return e.Name == name }) {
					a.note("node %s has maxthreads %d, and is not there now", cells.Clean(string(name)), limits[name])
				}
			}
			return a.printNodes(output, entries)
		})
	}
	return cmd
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
	err = eachTask(ctx, st, store.TaskQuery{Statuses: []plan.Status{plan.Claimed, plan.Running}}, func(t *plan.Task) error {
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
			Runner: n.Runner, Age: n.Age.Seconds(),
		}
		entries[i].State, entries[i].Status = explain.NodeState(*n)
		if most, limited := limits[n.Node]; limited {
			entries[i].Most = &most
		}
	}
	return entries, limits, nil
}

func (a *app) printNodes(output *format, entries []nodeEntry) error {
	ofRunners := map[plan.NodeName]int{} // they are threads of the node
	for _, e := range entries {
		if e.Runner {
			ofRunners[e.Name] += e.Running
		}
	}
	t := view.Table{Head: []string{"NODE", "STATE", "HEARD", "RUNS"}, Paint: a.paint(a.Stdout).States(1)}
	limited := slices.ContainsFunc(entries, func(e nodeEntry) bool { return e.Most != nil })
	if limited {
		t.Head = append(t.Head, "MAXTHREADS")
	}
	t.Head = append(t.Head, "VERSION", "PLAN", "PLUGINS")
	if output.wide() {
		t.Head = append(t.Head, "ID")
	}
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
		cells := []string{string(e.Name), e.State, heard, runs}
		if limited {
			cells = append(cells, most)
		}
		cells = append(cells, e.Version, only, plugins)
		if output.wide() {
			cells = append(cells, e.ID.String())
		}
		t.Add(cells...)
	}
	return t.Print(a.Stdout)
}

func nodeSet(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Limit how many tasks a node runs at once",
		Long: "Limit how many tasks a node runs at once, over all processes of that name; no process runs more than its own --threads. Nodes that\n" +
			"run keep to it within a second; what runs already goes on. The node need not be there yet.",
		Args:    exactly(1),
		Example: "  sluice node set mig01 --maxthreads 8\n  sluice node set mig01 --maxthreads 0     # it claims nothing more\n  sluice node set mig01 --maxthreads unlimited",
	}
	var most threadsValue
	cmd.Flags().Var(&most, "maxthreads", "how many tasks it runs at once; 0: none")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, name := cmd.Context(), plan.NodeName(args[0])
		if err := checkNodeName(args[0]); err != nil {
			return err
		}
		if !cmd.Flags().Changed("maxthreads") {
			return usagef("nothing to change: give --maxthreads")
		}
		return a.withStore(ctx, func(st store.Store) error {
			nodes, err := st.Instances(ctx)
			if err != nil {
				return err
			}
			limit := most.n
			if most.unlimited {
				limit = -1
			}
			if err := st.SetMaxThreads(ctx, name, limit); err != nil {
				return err
			}
			if !slices.ContainsFunc(nodes, func(i plan.Instance) bool { return i.Node == name }) {
				if err := a.noteAbsent(ctx, st, name, nodes); err != nil {
					return err
				}
			}
			_, err = fmt.Fprintf(a.Stdout, "node %s has maxthreads %s\n", name, &most)
			return err
		})
	}
	return cmd
}

// noteAbsent says that none of these nodes has the name, or that another program's has, which keeps to the limit by itself.
func (a *app) noteAbsent(ctx context.Context, st store.Store, name plan.NodeName, nodes []plan.Instance) error {
	heard, err := foreignHeard(ctx, st, name)
	if err != nil {
		return err
	}
	if !heard.IsZero() {
		now, err := st.Now(ctx)
		if err != nil {
			return err
		}
		if now.Sub(heard) <= foreignSilent {
			a.note("node %s is another program's, and was heard of %s: it keeps to maxthreads as that program does", name, view.Ago(heard, now))
			return nil
		}
	}
	a.noteNoNode(name, nodes)
	return nil
}

// noteNoNode says that none of these nodes has the name.
func (a *app) noteNoNode(name plan.NodeName, nodes []plan.Instance) {
	var names []string
	for _, i := range nodes {
		names = append(names, string(i.Node))
	}
	a.note("no node of the name %s is there now%s", name, didYouMean(string(name), names))
}

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

// mostNodeName is how many characters a node's name has at most: no host's has more than 64 on Linux, and tables have to hold it.
const mostNodeName = 128

// checkNodeName refuses what cannot name a node: names stand in lists, in paths of the API and on terminals, by themselves.
func checkNodeName(name string) error {
	wrong := ""
	switch {
	case name == "":
		return usagef("a node's name is empty; if it comes from a variable, that is not set")
	case cells.Clean(name) != name:
		wrong = "has a control character, or another one that cannot be shown"
	case strings.TrimSpace(name) != name:
		wrong = "begins or ends with a space"
	case strings.ContainsAny(name, ",/"):
		wrong = "has a comma or a slash"
	case utf8.RuneCountInString(name) > mostNodeName:
		return usagef("the name of a node is longer than %d characters; take a shorter one, as that of its host", mostNodeName)
	default:
		return nil
	}
	return usagef("%q cannot name a node: it %s; take a name as a host has", name, wrong)
}

// noteUnserved says so on stderr when no live node can run what is left of the plan, and what can be done. needed are the plugins of its
// tasks, if the caller knows them.
func (a *app) noteUnserved(ctx context.Context, st store.Reader, p *plan.Plan, needed []string) error {
	if underSubmission(p) {
		a.note("%s is not ready: %s", p.Title(), a.submission(p, time.Now()))
	}
	if p.State != plan.PlanRunning {
		return nil
	}
	nodes, err := st.Instances(ctx)
	if err != nil {
		return err
	}
	if explain.Stalled(nodes, p) {
		outside, err := explain.Outside(ctx, st, nodes, p)
		if err == nil {
			a.note("no node runs %s%s; %s", p.Title(), stillRuns(outside), a.goOn(p))
		}
		return err
	}
	if needed == nil {
		if needed, err = pluginsLeft(ctx, st, p); err != nil {
			return err
		}
	}
	if missing := explain.Missing(nodes, p.ID, needed); len(missing) > 0 {
		a.note("no live node has the plugin %s, which %s needs; %s lists what they have", strings.Join(missing, ", "), p.Title(), a.command("node", "list"))
	}
	return nil
}

// stillRuns says what goes on of a plan that no node runs, and what does not, where task runners have some of its tasks.
func stillRuns(outside int) string {
	if outside == 0 {
		return ""
	}
	return fmt.Sprintf(", but task runners go on with %s; nothing else of it starts, or is tried again, before there is a node", view.Number(outside, "task"))
}

// startThere says how to bring a node to what a server has.
const startThere = "start one on the store that the server is for: sluice worker --store URI"

// goOn says how to bring a node to a plan that none runs.
func (a *app) goOn(p *plan.Plan) string {
	if a.served() {
		return startThere
	}
	here := "go on with: " + a.command(explain.Resume(p)...)
	if p.Own {
		return here
	}
	return "start one: " + a.command("worker") + ", or " + here
}

// pluginsOf returns the plugins of a plan's tasks.
func pluginsOf(spec *plan.Spec) (plugins []string) {
	for _, q := range spec.Queues() {
		if !slices.Contains(plugins, q.Plugin) {
			plugins = append(plugins, q.Plugin)
		}
	}
	return plugins
}

// notBuiltIn says that this program does not have the plugin, and which it has; "" if it does.
func (a *app) notBuiltIn(plugin string) string {
	if _, ok := a.Plugins.Get(plugin); ok {
		return ""
	}
	names := a.Plugins.Names()
	return fmt.Sprintf("which is not built in here; there are %s%s", strings.Join(names, ", "), didYouMean(plugin, names))
}

// pluginsLeft returns the plugins of what is unfinished in the plan, as far as its first thousand such tasks tell.
func pluginsLeft(ctx context.Context, r store.Reader, p *plan.Plan) ([]string, error) {
	left, err := r.Tasks(ctx, store.TaskQuery{Plan: p.ID, Statuses: []plan.Status{plan.Held, plan.Queued}, Limit: 1000})
	if err != nil || len(left) == 0 {
		return nil, err
	}
	queues, err := r.Queues(ctx)
	if err != nil {
		return nil, err
	}
	return pluginsOfTasks(left, queues), nil
}

// pluginsOfTasks returns the plugins of the queues that the tasks are in.
func pluginsOfTasks(tasks []plan.Task, queues []plan.Queue) (needed []string) {
	for i := range tasks {
		k := slices.IndexFunc(queues, func(q plan.Queue) bool { return q.ID == tasks[i].Queue })
		if k >= 0 && !slices.Contains(needed, queues[k].Plugin) {
			needed = append(needed, queues[k].Plugin)
		}
	}
	return needed
}

// threadsFlag gives a command that starts a node its --threads; as many as there are CPUs, if it is not given.
func threadsFlag(cmd *cobra.Command, threads *int) {
	cmd.Flags().IntVarP(threads, "threads", "j", cpus(), "how many tasks run at once, at most 1,000,000; as many as there are CPUs, if not given")
}

// checkThreads refuses what --threads cannot be.
func checkThreads(threads int) error {
	switch {
	case threads < 1:
		return usagef("--threads %d: a node runs at least 1 task at once", threads)
	case threads > plan.MaxThreads:
		return usagef("--threads %d: a node runs at most %d tasks at once", threads, plan.MaxThreads)
	}
	return nil
}
