package v1

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/items"
	"github.com/seed-1177d267/sluice/internal/layout"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

const (
	mostNodes  = 2000    // of a graph where no number is asked for: what is laid out, sent and drawn without being waited for
	limitNodes = 20_000  // of a graph
	keptPlans  = 16      // that are ready to be drawn
	keptTasks  = 200_000 // of them together, some 30 MiB; one plan may have more
	keptDrawn  = 4       // layouts of one plan
	readPage   = 5000    // tasks at a time
)

// drawings caches what graphs and time lines are made from, so that a viewer costs only the states
// of the tasks. Any number of requests may use it at once. One request for a plan does the work,
// and the others use its result.
type drawings struct {
	a     *API
	epoch string // of the names of layouts: those of an earlier process mean nothing
	count atomic.Int64

	mu    sync.Mutex
	plans []*drawing // the last used first
}

// A drawing is one plan. Its fields but plan and turn belong to who holds turn.
type drawing struct {
	plan plan.PlanID
	turn chan struct{} // of one place

	edits, total int // of the plan as it was read
	loaded       bool
	size         atomic.Int64 // tasks
	counts       plan.Counts  // as its tasks were read, or before
	over         bool         // it had ended then
	read, due    time.Time    // when that was, and when they are read again
	ids          []plan.TaskID
	index        map[plan.TaskID]int32
	names        []string
	runs         []rules.Ran
	state        []uint8 // indices of stateWords
	items        []int32 // of each foreach task: how many it has
	lenient      []bool  // tasks with continue_on_error
	aside        []bool  // handlers and clean-ups: tasks that do not wait for success, and items of such
	last         []bool  // tasks of finally, and their items
	edges        [][2]int
	level        []int
	laid         []*laid // the last used first
}

// laid is one layout of a plan.
type laid struct {
	most  int
	whole bool // each task is drawn for itself where there is room for all
	open  string
	from  int
	fold  grouped
	body  *api.Graph // without states
}

// stateWords are the states of tasks, in the order in which counts tell them. A failure that its plan allows is allowed.
var stateWords = []string{"held", "queued", "claimed", "running", "succeeded", "failed", "terminated", "cancelled", "skipped", "orphaned", "allowed", "unknown"}

var (
	held    = stateIndex(plan.Held, "")
	queued  = stateIndex(plan.Queued, "")
	claimed = stateIndex(plan.Claimed, "")
	running = stateIndex(plan.Running, "")
	allowed = uint8(slices.Index(stateWords, "allowed"))
)

// drawnState is the index of stateWords for a task that its plan is lenient with, or not.
func drawnState(s plan.Status, r plan.Reason, lenient bool) uint8 {
	if s.Allowed(lenient) {
		return allowed
	}
	return stateIndex(s, r)
}

// stateIndex is the index of stateWords for a task's state.
func stateIndex(s plan.Status, r plan.Reason) uint8 {
	i := slices.Index(stateWords, plan.State(s, r))
	if i < 0 {
		i = len(stateWords) - 1
	}
	return uint8(i)
}

// Seen is a graph that is asked for.
type Seen struct {
	InPlan
	Most  int    `query:"most" minimum:"0" maximum:"20000" doc:"About how many nodes at most: a plan of more tasks is folded. 0: 2,000, and a foreach with its items is always one node."`
	Open  string `query:"open" doc:"The key of a group whose tasks are nodes of their own, 200 of them."`
	From  int    `query:"from" minimum:"0" doc:"With open: the first of them, counted from 0."`
	Find  string `query:"find" doc:"Instead of open: the name of a task that has to be a node of its own."`
	Since string `query:"since" doc:"The layout that the caller has. If it is still valid, the answer has only states and counts."`
}

// graph registers what pages draw plans from.
func (a *API) graph() {
	d := &drawings{a: a, epoch: rand.Text()[:8]}
	serve(a, endpoint{
		method: "GET", path: "/plans/{plan}/graph", id: "get-graph", summary: "Read the graph of a plan, laid out", tag: "plans", scope: Read, errors: []int{404, 422},
		doc: "In levels from left to right, with few crossings. A plan of more tasks than most is " +
			"folded. First, tasks of one level whose names differ only in numbers become one " +
			"node; then whole levels; then several levels. A foreach with its items is one node " +
			"with one state, unless it is open or all tasks fit into most. Handlers and clean-ups " +
			"(tasks whose when is not all_succeeded) are in a lane below the others. Tasks of " +
			"finally are behind the others, in a frame. A viewer takes the states of tasks that are nodes from the plan's events. For other tasks, " +
			"ask again with since.",
	}, d.graph)
	serve(a, endpoint{
		method: "GET", path: "/plans/{plan}/timeline", id: "get-timeline", summary: "Read the time line and the critical path of a plan", tag: "plans", scope: Read, errors: []int{404, 422},
		doc: "A row for each task that was started, in the order of the starts. If a plan has more " +
			"tasks than rows, a row has the tasks that graph folds into one node: the longest of " +
			"them, and how many ran at a time.",
	}, d.timeline)
	serve(a, endpoint{
		method: "GET", path: "/plans/{plan}/foreach-tasks", id: "list-foreach-tasks", summary: "Read the progress of the foreach tasks of a plan", tag: "plans", scope: Read, errors: []int{404, 422},
		doc: "Each with its one state, as in the graph: how it ended, or the state of the items that have come farthest.",
	}, d.foreachTasks)
}

// use returns the plan that is named and its drawing, as they are now, and what ends the use. Nobody else uses the drawing meanwhile.
func (d *drawings) use(ctx context.Context, ref string) (p plan.Plan, w *drawing, done func(), err error) {
	if p, err = d.a.findPlan(ctx, ref); err != nil {
		return p, nil, nil, err
	}
	w = d.find(p.ID)
	select {
	case w.turn <- struct{}{}:
	case <-ctx.Done():
		return p, nil, nil, ctx.Err()
	}
	if err := d.update(ctx, w, &p); err != nil {
		<-w.turn
		return p, nil, nil, err
	}
	d.forget(w)
	return p, w, func() { <-w.turn }, nil
}

func (d *drawings) find(id plan.PlanID) *drawing {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.IndexFunc(d.plans, func(w *drawing) bool { return w.plan == id })
	if i < 0 {
		d.plans = slices.Insert(d.plans, 0, &drawing{plan: id, turn: make(chan struct{}, 1)})
		return d.plans[0]
	}
	w := d.plans[i]
	d.plans = slices.Insert(slices.Delete(d.plans, i, i+1), 0, w)
	return w
}

// forget drops the drawings that were not used for longest, until the rest fits. Requests that use
// a dropped drawing keep it.
func (d *drawings) forget(used *drawing) {
	d.mu.Lock()
	defer d.mu.Unlock()
	sum := int64(0)
	for i, w := range d.plans {
		if sum += w.size.Load(); i > 0 && w != used && (i >= keptPlans || sum > keptTasks) {
			clear(d.plans[i:])
			d.plans = d.plans[:i]
			return
		}
	}
}

// How often the states of a running plan are read again.
const (
	statesShare  = 50 // of the time, at most one part in so many goes into that,
	statesLatest = 5 * time.Second
	statesSure   = 10 * time.Second // where the counts are the same
)

// statesSmall is how long a reading of states may take that is made each time; tests set it.
var statesSmall = 5 * time.Millisecond

// errNotLoaded says that a drawing does not have a task of its plan.
var errNotLoaded = errors.New("the drawing is of an older plan")

// update reads the states of the plan's tasks, or the whole plan if its graph has changed. Edits
// count added tasks and retries, and the total counts made items. update does not read the feed of
// changes. In a large plan most tasks change more than once between two looks, and the feed has the
// changes of all plans.
func (d *drawings) update(ctx context.Context, w *drawing, p *plan.Plan) error {
	began := time.Now()
	switch over := p.State.Ended(); {
	case !w.loaded || w.edits != p.Edits || w.total != p.Counts.Stored():
		return d.load(ctx, w, p)
	case over && w.over, w.over == over && began.Before(w.due), w.counts == p.Counts && began.Sub(w.read) < statesSure:
		return nil
	}
	err := store.EachTask(ctx, d.a.st, store.TaskQuery{Plan: p.ID, Brief: true, Limit: readPage}, func(t *plan.Task) error {
		at, ok := w.index[t.ID]
		if !ok {
			return errNotLoaded
		}
		r := ranOf(t)
		w.runs[at].Started, w.runs[at].Ended, w.state[at] = r.Started, r.Ended, drawnState(t.Status, t.Reason, w.lenient[at])
		return nil
	})
	switch {
	case errors.Is(err, errNotLoaded):
		return d.load(ctx, w, p)
	case err == nil:
		w.stand(p, began)
	}
	return err
}

// stand notes that the tasks were read, from the given time on, after the plan was.
func (w *drawing) stand(p *plan.Plan, began time.Time) {
	w.read = time.Now()
	w.due, w.counts, w.over = time.Time{}, p.Counts, p.State.Ended()
	if took := w.read.Sub(began); took > statesSmall {
		w.due = w.read.Add(min(statesShare*took, statesLatest))
	}
}

// ranOf tells when a task ran.
func ranOf(t *plan.Task) rules.Ran {
	r := rules.Ran{Started: t.Started, Of: -1}
	if t.Status.Finished() { // one that is tried again keeps when its last attempt ended
		r.Ended = t.Ended
	}
	return r
}

// load reads the whole plan.
func (d *drawings) load(ctx context.Context, w *drawing, p *plan.Plan) error {
	began := time.Now()
	type read struct { // what is kept of a task while the others are read
		id, of  plan.TaskID
		place   rules.Place
		name    string
		needs   []plan.TaskID
		run     rules.Ran
		state   uint8
		aside   bool
		lenient bool
		finally bool
	}
	all, items := make([]read, 0, p.Counts.Stored()), false
	err := store.EachTask(ctx, d.a.st, store.TaskQuery{Plan: p.ID, Needs: true, Brief: true, Limit: readPage}, func(t *plan.Task) error {
		all = append(all, read{t.ID, t.Of, rules.PlaceOf(t), t.Key(), t.Needs, ranOf(t), drawnState(t.Status, t.Reason, t.ContinueOnError), rules.TellsResults(t.When) && !t.Finally, t.ContinueOnError, t.Finally})
		items = items || !t.Of.IsZero()
		return nil
	})
	if err != nil {
		return err
	}
	if items {
		slices.SortStableFunc(all, func(a, b read) int { return a.place.Compare(b.place) })
	}
	n := drawing{
		index: make(map[plan.TaskID]int32, len(all)), ids: make([]plan.TaskID, len(all)), names: make([]string, len(all)),
		runs: make([]rules.Ran, len(all)), state: make([]uint8, len(all)), items: make([]int32, len(all)), aside: make([]bool, len(all)), lenient: make([]bool, len(all)), last: make([]bool, len(all)),
	}
	needs, of := make([][]plan.TaskID, len(all)), make([]plan.TaskID, len(all))
	for i := range all {
		t := &all[i]
		n.index[t.id] = int32(i)
		n.ids[i], n.names[i], n.runs[i], n.state[i] = t.id, t.name, t.run, t.state
		n.aside[i], n.lenient[i], n.last[i] = t.aside, t.lenient, t.finally
		needs[i], of[i] = t.needs, t.of
	}
	n.link(needs, of)
	if p.Finally {
		if err := n.linkLast(); err != nil {
			return fmt.Errorf("plan %s cannot be drawn: %w", p.Title(), err)
		}
	}
	if n.level, err = layout.Levels(len(n.ids), n.edges); err != nil {
		return fmt.Errorf("plan %s cannot be drawn: %w", p.Title(), err)
	}
	w.edits, w.total, w.loaded, w.laid = p.Edits, p.Counts.Stored(), true, nil
	w.stand(p, began)
	w.ids, w.index, w.names, w.runs, w.state, w.edges, w.level, w.items, w.aside, w.lenient, w.last = n.ids, n.index, n.names, n.runs, n.state, n.edges, n.level, n.items, n.aside, n.lenient, n.last
	w.size.Store(int64(len(n.ids)))
	return nil
}

// linkLast draws the tasks of finally behind all others: those that need none of finally have an edge from
// the last of the others. Tasks in the lane of handlers are drawn apart, so none of them is that one if there is another.
func (w *drawing) linkLast() error {
	level, err := layout.Levels(len(w.ids), w.edges)
	if err != nil {
		return err
	}
	last, child := -1, make([]bool, len(w.ids))
	for _, e := range w.edges {
		child[e[1]] = true
	}
	for i := range w.ids {
		if !w.last[i] && (last < 0 || w.aside[last] && !w.aside[i] || w.aside[last] == w.aside[i] && level[i] >= level[last]) {
			last = i
		}
	}
	for i := range w.ids {
		if w.last[i] && !child[i] && last >= 0 {
			w.edges = append(w.edges, [2]int{last, i})
		}
	}
	return nil
}

// link makes indices of ids, and edges of them. The items of a foreach task stand between its parents and it: it waits for them, and they for
// nothing else, or for parents of their own.
func (w *drawing) link(needs [][]plan.TaskID, of []plan.TaskID) {
	edges := 0
	for i, id := range of {
		if many := len(needs[i]); many > 0 {
			w.runs[i].Needs = make([]int32, 0, many)
			edges += many
		}
		if at, ok := w.index[id]; ok && !id.IsZero() {
			w.runs[i].Of = at
			w.items[at]++
			w.aside[i] = w.aside[at]
		}
		for _, id := range needs[i] {
			if at, ok := w.index[id]; ok { // a parent of no plan, or one that was deleted, is not drawn
				w.runs[i].Needs = append(w.runs[i].Needs, at)
			}
		}
	}
	w.edges = make([][2]int, 0, edges+len(of))
	for i := range w.runs {
		parents := w.runs[i].Needs
		if at := w.runs[i].Of; at >= 0 {
			if len(parents) == 0 {
				parents = w.runs[at].Needs
			}
			w.edges = append(w.edges, [2]int{i, int(at)})
		} else if w.items[i] > 0 {
			continue
		}
		for _, p := range parents {
			w.edges = append(w.edges, [2]int{int(p), i})
		}
	}
}

func (d *drawings) graph(ctx context.Context, in *Seen) (*api.Graph, error) {
	p, w, done, err := d.use(ctx, in.Plan)
	if err != nil {
		return nil, err
	}
	defer done()
	ask := laid{most: min(cmp.Or(in.Most, mostNodes), limitNodes), whole: in.Most > 0}
	if in.Find != "" {
		in.Open, in.From = w.find(in.Find, ask)
	}
	ask.open, ask.from = in.Open, in.From
	l, err := d.lay(ctx, w, ask)
	if err != nil {
		return nil, err
	}
	out := *l.body
	if in.Since == out.Layout {
		out = api.Graph{Layout: out.Layout}
	} else if out.ItemLabels, err = d.label(ctx, w, l.fold.tasks()); err != nil {
		return nil, err
	}
	if out.Progress, err = d.reached(ctx, &p, w, l.fold.single(w)); err != nil {
		return nil, err
	}
	out.Plan, out.Tasks, out.Open, out.From, out.States = p.ID, len(w.ids), in.Open, in.From, stateWords
	out.State, out.Counts = l.fold.states(w)
	return &out, nil
}

type foreachTasksAnswer struct {
	Tasks []api.ForeachState `json:"foreach_tasks" doc:"The foreach tasks that have items, in the plan's order."`
}

func (d *drawings) foreachTasks(ctx context.Context, in *InPlan) (*foreachTasksAnswer, error) {
	_, w, done, err := d.use(ctx, in.Plan)
	if err != nil {
		return nil, err
	}
	defer done()
	out := &foreachTasksAnswer{Tasks: []api.ForeachState{}}
	counts := map[int32][]int{}
	for i := range w.runs {
		if of := w.runs[i].Of; of >= 0 {
			if counts[of] == nil {
				counts[of] = make([]int, len(stateWords))
			}
			counts[of][w.state[i]]++
		}
	}
	for i, n := range w.items {
		if n == 0 {
			continue
		}
		c := counts[int32(i)]
		f := api.ForeachState{ID: w.ids[i], State: stateWords[foreachState(w.state[i], c)], Items: int(n), Done: int(n)}
		for _, s := range []uint8{held, queued, claimed, running} {
			f.Done -= c[s]
		}
		out.Tasks = append(out.Tasks, f)
	}
	return out, nil
}

// find returns the group to open, and the unit to begin with, so that the task is a node. It
// returns nothing if the task is a node already, or does not exist.
func (w *drawing) find(name string, l laid) (open string, from int) {
	task := int32(slices.Index(w.names, name))
	if task < 0 {
		return "", 0
	}
	f := w.folding(w.edges, l)
	n := f.nodes[f.of[task]]
	of := w.runs[task].Of
	var same func(i int32) bool // the tasks in the same row once that is open
	switch {
	case n.task == task:
		return "", 0
	case of >= 0:
		open, same = itemsOf+w.names[of], func(i int32) bool { return w.runs[i].Of == of }
	default:
		open, same = n.group.Key, func(i int32) bool { return w.runs[i].Of < 0 && f.of[i] == f.of[task] }
	}
	before, count := 0, 0
	for i := range int32(len(w.names)) {
		if same(i) {
			count++
			if w.level[i] < w.level[task] || w.level[i] == w.level[task] && i < task {
				before++
			}
		}
	}
	return open, min(max(before-window/2, 0), max(count-window, 0))
}

// mostLabels is how many items of one answer get a label. Nobody reads more, and each label costs a
// look-up.
const mostLabels = 2000

// label says what those of the tasks are for that are items, in their order; "" of the others, and nil if there is no item. They are read
// each time: what of an item is secret may be said at any time, and is not to be seen from then on.
func (d *drawings) label(ctx context.Context, w *drawing, tasks []int32) ([]string, error) {
	var shown []plan.Task
	for _, t := range tasks {
		if t >= 0 && w.runs[t].Of >= 0 && len(shown) < mostLabels {
			shown = append(shown, plan.Task{ID: w.ids[t], Of: w.ids[w.runs[t].Of]})
		}
	}
	if len(shown) == 0 {
		return nil, nil
	}
	read, err := items.ReadKeys(ctx, d.a.st, shown)
	if err != nil {
		return nil, err
	}
	out := make([]string, len(tasks))
	for i, t := range tasks {
		if t >= 0 {
			out[i] = read.Label(w.ids[t], ellipsis)
		}
	}
	return out, nil
}

// mostReached is of how many running tasks one answer tells how far they are.
const mostReached = 1000

// reached says how far the running tasks of a plan are, of those that are shown: at is where.
func (d *drawings) reached(ctx context.Context, p *plan.Plan, w *drawing, at map[int32]int) ([]api.GraphProgress, error) {
	if p.State.Ended() || len(at) == 0 {
		return nil, nil
	}
	tasks, err := d.a.st.Tasks(ctx, store.TaskQuery{Plan: p.ID, Reached: true, Limit: mostReached})
	if err != nil {
		return nil, err
	}
	var out []api.GraphProgress
	for i := range tasks {
		task, known := w.index[tasks[i].ID]
		if n, shown := at[task]; known && shown && tasks[i].Progress != nil {
			out = append(out, api.GraphProgress{Node: n, Progress: *tasks[i].Progress})
		}
	}
	return out, nil
}

// single returns the nodes that are one task which runs, by the task.
func (f *grouped) single(w *drawing) map[int32]int {
	at := map[int32]int{}
	for i := range f.nodes {
		if n := &f.nodes[i]; n.task >= 0 && n.group.Of == 0 && w.state[n.task] == running {
			at[n.task] = i
		}
	}
	return at
}

// tasks are those of the nodes, -1 of a group.
func (f *grouped) tasks() []int32 {
	return api.Each(f.nodes, func(n *node) int32 { return n.task })
}

// lay returns the layout, which is made once.
func (d *drawings) lay(ctx context.Context, w *drawing, l laid) (*laid, error) {
	for i, old := range w.laid {
		if old.most == l.most && old.whole == l.whole && old.open == l.open && old.from == l.from {
			w.laid = slices.Insert(slices.Delete(w.laid, i, i+1), 0, old)
			return old, nil
		}
	}
	l.fold = w.folding(w.edges, l)
	labels, err := d.label(ctx, w, l.fold.tasks())
	if err != nil {
		return nil, err
	}
	body, err := l.fold.arrange(w.edges, w.ids, func(i int) bool { return w.runs[i].Of >= 0 }, labels)
	if err != nil {
		return nil, fmt.Errorf("plan %s cannot be drawn: %w", w.plan, err)
	}
	for i := range l.fold.nodes {
		if n := &l.fold.nodes[i]; n.task >= 0 && !n.foreach() && w.items[n.task] > 0 {
			body.Heads = append(body.Heads, i)
		}
		if n := &l.fold.nodes[i]; n.task >= 0 && w.lenient[n.task] {
			body.Lenient = append(body.Lenient, i)
		}
	}
	body.Layout = fmt.Sprintf("%s-%d", d.epoch, d.count.Add(1))
	l.body = body
	w.laid = slices.Insert(w.laid, 0, &l)
	w.laid = w.laid[:min(len(w.laid), keptDrawn)]
	return &l, nil
}

// states tells the state of nodes that are a task or a foreach with its items, and counts the tasks of groups.
func (f *grouped) states(w *drawing) (state []int, counts [][]int) {
	state, counts = make([]int, len(f.nodes)), [][]int{}
	group := make([]int, len(f.nodes))
	for i := range f.nodes {
		state[i], group[i] = -1, -1
		if f.nodes[i].group.Of > 0 {
			group[i] = len(counts)
			c := make([]int, 1+len(stateWords))
			c[0] = i
			counts = append(counts, c)
		}
	}
	for task, n := range f.of {
		switch {
		case group[n] < 0:
			state[n] = int(w.state[task])
		case w.items[task] == 0: // a foreach task counts as its items
			counts[group[n]][1+w.state[task]]++
		}
	}
	for i := range f.nodes {
		if n := &f.nodes[i]; n.foreach() {
			state[i] = foreachState(w.state[n.task], counts[group[i]][1:])
		}
	}
	return state, counts
}

// foreachState is the one state of a foreach task with its items. It is the end of the task, or
// else the state of the unfinished items that have come farthest.
func foreachState(of uint8, items []int) int {
	if of == held {
		for _, s := range []uint8{running, claimed, queued} {
			if items[s] > 0 {
				return int(s)
			}
		}
	}
	return int(of)
}
