package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/draw"
	"github.com/seed-1177d267/sluice/internal/planfile"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/states"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func planGraph(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "graph {FILE | PLAN}",
		Short: "Draw a plan: as text, DOT, Mermaid or SVG",
		Long: "Draw a plan: one in a file, or one in the store with the state of each task. A word that is the path of a file names that.\n\n" +
			planHelp,
		Example:           "  sluice plan graph plan.yaml\n  sluice plan graph nightly --format svg > nightly.svg",
		ValidArgsFunction: a.completeGraph,
	}
	format := choice{"text", []string{"text", "dot", "mermaid", "svg"}}
	cmd.Flags().Var(&format, "format", "the format of the drawing")
	params := cmd.Flags().StringArray("param", nil, "a value for a param of the file's plan, as `NAME=VALUE`; may be repeated")
	width := cmd.Flags().Int("width", 0, "width of the text, in columns (default: the terminal's)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *width < 0 {
			return usagef("--width %d: it is a number of columns, or 0 for those of the terminal", *width)
		}
		g, err := a.graph(cmd.Context(), args[0], *params)
		if err != nil {
			return err
		}
		switch format.value {
		case "dot":
			return draw.DOT(a.Stdout, g)
		case "mermaid":
			return draw.Mermaid(a.Stdout, g)
		case "svg":
			return draw.SVG(a.Stdout, g)
		}
		o := draw.TextOptions{Width: *width, ASCII: !a.unicode(), Color: bool(a.paint(a.Stdout))}
		if o.Width <= 0 {
			o.Width, _ = view.Size(a.Stdout)
		}
		return draw.Text(a.Stdout, g, o)
	}
	return cmd
}

func (a *app) completeGraph(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	words, _ := a.completePlan(cmd, args, word)
	return words, cobra.ShellCompDirectiveDefault // and files
}

// graph returns what a file or plan looks like.
func (a *app) graph(ctx context.Context, word string, params []string) (draw.Graph, error) {
	if namesFile(word) {
		values, err := pairs("--param", params)
		if err != nil {
			return draw.Graph{}, err
		}
		spec, err := planfile.LoadWith(word, planfile.Options{Params: values, Draft: true})
		if err != nil {
			return draw.Graph{}, asUsage(err)
		}
		return graphOfSpec(spec), nil
	}
	if len(params) > 0 {
		return draw.Graph{}, usagef("--param is for a plan in a file, and %q is none", word)
	}
	var g draw.Graph
	err := a.withStore(ctx, func(st store.Store) error {
		p, err := findPlan(ctx, st, word)
		if err != nil {
			return err
		}
		g, err = graphOfPlan(ctx, st, &p)
		return err
	})
	return g, err
}

// namesFile reports whether a word is meant as the path of a file, even of a missing one.
func namesFile(word string) bool {
	switch strings.ToLower(filepath.Ext(word)) {
	case ".yaml", ".yml", ".json":
		return true
	}
	info, err := os.Stat(word)
	return planfile.IsStream(word) || strings.ContainsRune(word, filepath.Separator) || err == nil && info.Mode().IsRegular()
}

func graphOfSpec(spec *plan.Spec) draw.Graph {
	g := draw.Graph{Title: spec.Name, Nodes: make([]draw.Node, len(spec.Tasks))}
	needs := spec.Graph()
	for i := range spec.Tasks {
		t := &spec.Tasks[i]
		g.Nodes[i].Name, g.Nodes[i].When = t.Name, drawnWhen(t.When)
		if t.Foreach != nil {
			g.Nodes[i].Note = cmp.Or(t.Foreach.Group, "for each item")
		}
		for _, parent := range needs.Parents(i) {
			g.Edges = append(g.Edges, [2]int{int(parent), i})
			if rules.GoesAlong(t.Foreach, spec.Tasks[parent].Name) {
				goAlong(&g, int(parent), i)
			}
		}
	}
	drawFinally(&g, func(i int) bool { return spec.Tasks[i].Finally })
	return g
}

// drawFinally puts a node between the tasks and those of finally, which need all of them. It has a line from
// each task that no other one needs.
func drawFinally(g *draw.Graph, finally func(i int) bool) {
	tasks := len(g.Nodes)
	parent, child := make([]bool, tasks), make([]bool, tasks)
	for _, e := range g.Edges {
		parent[e[0]], child[e[1]] = true, true
	}
	for i := range tasks {
		switch {
		case !finally(i) || child[i]:
			continue
		case len(g.Nodes) == tasks:
			g.Nodes = append(g.Nodes, draw.Node{Name: "finally"})
		}
		g.Edges = append(g.Edges, [2]int{tasks, i})
	}
	for i := range tasks {
		if len(g.Nodes) > tasks && !parent[i] && !finally(i) {
			g.Edges = append(g.Edges, [2]int{i, tasks})
		}
	}
}

// drawnWhen is the rule that is drawn at a task: any but the one that nobody has to write.
func drawnWhen(w plan.When) string {
	if w == plan.AllSucceeded {
		return ""
	}
	return string(w)
}

func graphOfPlan(ctx context.Context, r store.Reader, p *plan.Plan) (draw.Graph, error) {
	c := &p.Counts
	g := draw.Graph{Title: fmt.Sprintf("%s  %s", p.Title(), p.State), Totals: map[string]int{
		states.OfStatus(plan.Held): c.Held, states.OfStatus(plan.Queued): c.Queued, states.OfStatus(plan.Claimed): c.Claimed, states.OfStatus(plan.Running): c.Running,
		states.OfStatus(plan.Succeeded): c.Succeeded, states.OfStatus(plan.Failed): c.Failed, "allowed": c.Allowed, states.OfStatus(plan.Terminated): c.Terminated,
		states.OfStatus(plan.Orphaned): c.Orphaned, states.OfStatus(plan.Cancelled): c.Cancelled, string(plan.ReasonSkipped): c.Skipped,
	}}
	index := map[plan.TaskID]int{}
	var needs [][]plan.TaskID
	var foreach []*plan.Foreach
	var finally []bool
	now := time.Now()
	err := store.EachTask(ctx, r, store.TaskQuery{Plan: p.ID, NoItems: true, Needs: true}, func(t *plan.Task) error {
		index[t.ID] = len(g.Nodes)
		note := ""
		switch {
		case t.Items > 0:
			note = fmt.Sprintf("%d items", t.Items)
			if t.Foreach != nil && t.Foreach.Group != "" {
				note += ", " + t.Foreach.Group
			}
		case t.Foreach != nil && t.Foreach.Group != "" && !t.Status.Finished():
			note = t.Foreach.Group
		case !startUnknown(t):
			note = tookTask(t, now)
		}
		state := states.OfTask(t)
		if t.Allowed() {
			state = "allowed"
		}
		g.Nodes = append(g.Nodes, draw.Node{Name: t.Key(), State: state, When: drawnWhen(t.When), Note: note})
		needs, foreach, finally = append(needs, t.Needs), append(foreach, t.Foreach), append(finally, t.Finally)
		return nil
	})
	for i := range needs {
		for _, id := range needs[i] {
			if parent, ok := index[id]; ok { // else it is an item, or deleted
				g.Edges = append(g.Edges, [2]int{parent, i})
				if rules.GoesAlong(foreach[i], g.Nodes[parent].Name) {
					goAlong(&g, parent, i)
				}
			}
		}
	}
	drawFinally(&g, func(i int) bool { return finally[i] })
	return g, err
}

// goAlong has the line between two tasks be a double one.
func goAlong(g *draw.Graph, parent, child int) {
	if g.Along == nil {
		g.Along = map[[2]int]bool{}
	}
	g.Along[[2]int{parent, child}] = true
}
