package v1

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/explain"
	"github.com/seed-1177d267/sluice/internal/failures"
	"github.com/seed-1177d267/sluice/internal/items"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// failing are the states of tasks that did not do what they should.
var failing = []string{"failed", "terminated", "orphaned"}

const (
	tasksNamed = 10 // of a group
	kindsNamed = 100
)

// groups are the routes that say what many tasks have in common: how they failed, and what they wait for.
func (a *API) groups() {
	serve(a, endpoint{
		method: "GET", path: "/plans/{plan}/failures", id: "list-failures", summary: "List the failures of a plan, by kind", tag: "plans", scope: Read, errors: []int{404},
		doc: "Tasks with the same state, reason and detail are one kind; numbers, ids and quoted " +
			"text in the detail do not count. The largest kinds come first. A foreach task that " +
			"failed because of its items is left out, because the items are there.",
	}, ofPlan(a, a.failures))
	serve(a, endpoint{
		method: "GET", path: "/plans/{plan}/waiting", id: "list-waiting", summary: "List what tasks of a plan wait for in the end", tag: "plans", scope: Read, errors: []int{404},
		doc: "The server explains the first queued and held tasks. Tasks that wait for the same cause are one group. The largest groups come first.",
	}, ofPlan(a, a.waiting))
}

// A Named is a task as a group names it.
type Named struct {
	ID        plan.TaskID `json:"id"`
	Name      string      `json:"name"`
	ItemLabel string      `json:"item_label,omitempty" doc:"The label of an item of a foreach task."`
	State     string      `json:"state"`
}

// named names the tasks of groups, with what the items among them are for.
func (a *API) named(ctx context.Context, groups [][]plan.Task) ([][]Named, error) {
	labels, err := items.ReadKeys(ctx, a.st, slices.Concat(groups...))
	if err != nil {
		return nil, err
	}
	out := make([][]Named, len(groups))
	for g, tasks := range groups {
		out[g] = api.Each(tasks, func(t *plan.Task) Named {
			return Named{ID: t.ID, Name: t.Name, ItemLabel: labels.Label(t.ID, ellipsis), State: t.State()}
		})
	}
	return out, nil
}

// A Failures is a kind of failure, and which tasks failed so.
type Failures struct {
	Kind    string  `json:"kind" doc:"The name of the kind in this plan: failure of /plans/{plan}/search."`
	State   string  `json:"state"`
	Title   string  `json:"title" doc:"In words: the detail, with # for each number or id and … for quoted text; without a detail, how the tasks ended."`
	Detail  string  `json:"detail,omitempty" doc:"Of the first of these tasks, as it is."`
	Allowed bool    `json:"allowed,omitempty" doc:"The plan allows these failures, by continue_on_error of the tasks."`
	Count   int     `json:"count"`
	Tasks   []Named `json:"tasks" doc:"The first of these tasks."`
}

type failuresAnswer struct {
	Failed  int        `json:"failed" doc:"How many tasks make the plan fail: failed, terminated and orphaned of its counts."`
	Allowed int        `json:"allowed" doc:"The number of failures that the plan allows."`
	Ways    int        `json:"ways" doc:"The kinds of failures."`
	Kinds   []Failures `json:"kinds" doc:"At most 100."`
}

func (a *API) failures(ctx context.Context, p *plan.Plan, _ *InPlan) (*failuresAnswer, error) {
	all, err := failures.Read(ctx, a.st, p.ID, tasksNamed)
	if err != nil {
		return nil, err
	}
	kinds := all.Kinds[:min(len(all.Kinds), kindsNamed)]
	named, err := a.named(ctx, api.Each(kinds, func(k **failures.Alike) []plan.Task { return (*k).First }))
	if err != nil {
		return nil, err
	}
	out := &failuresAnswer{Failed: all.Failed, Allowed: all.Allowed, Ways: len(all.Kinds), Kinds: make([]Failures, len(kinds))}
	for i, k := range kinds {
		out.Kinds[i] = Failures{Kind: k.Key(), State: k.State, Allowed: k.Allowed, Title: k.Told(), Detail: k.First[0].Detail, Count: k.Count, Tasks: named[i]}
	}
	return out, nil
}

// The limits of one look at waiting tasks. Each task is explained by itself.
const (
	mostExplained = 60
	explainTime   = time.Second
)

// A Waiting is what tasks wait for in the end, with the checked tasks that wait for it.
type Waiting struct {
	For   api.Reason `json:"for" doc:"The cause, its reason, and a command that may help. It is the task itself if that waits for no other task."`
	Count int        `json:"count"`
	Tasks []Named    `json:"tasks" doc:"The first of these tasks."`
}

type waitingAnswer struct {
	Waiting int       `json:"waiting" doc:"How many tasks are queued or held."`
	Looked  int       `json:"looked" doc:"How many of these were explained."`
	Groups  []Waiting `json:"groups"`
}

func (a *API) waiting(ctx context.Context, p *plan.Plan, _ *InPlan) (_ *waitingAnswer, err error) {
	out := &waitingAnswer{Waiting: p.Counts.Held + p.Counts.Queued, Groups: []Waiting{}}
	if out.Waiting == 0 {
		return out, nil
	}
	once := &once{Reader: a.st, known: map[string]any{}}
	var groups []*waitingGroup
	by := map[string]*waitingGroup{}
	until := time.Now().Add(explainTime)
	for _, status := range []plan.Status{plan.Queued, plan.Held} { // what is held often waits for what is queued
		found, err := a.st.Tasks(ctx, store.TaskQuery{Plan: p.ID, Statuses: []plan.Status{status}, Needs: true, Limit: mostExplained / 2})
		if err != nil {
			return nil, err
		}
		for i := range found { // as an explanation asks for a task
			once.known[tasksKey(store.TaskQuery{IDs: []plan.TaskID{found[i].ID}, Needs: true, Limit: 1})] = found[i : i+1]
		}
		for i := range found {
			if time.Now().After(until) {
				break
			}
			if found[i].Gathers() { // its items are counted in its place
				continue
			}
			chain, err := explain.Task(ctx, once, found[i].ID)
			if err != nil {
				return nil, err
			}
			out.Looked++
			end := &chain[len(chain)-1]
			key := end.Task.ID.String()
			if end.Task.Status == plan.Queued { // tasks that wait for the same queue or node wait for one thing
				key = failures.Unnumbered(end.Why)
			}
			g := by[key]
			if g == nil {
				g = &waitingGroup{end: *end}
				by[key], groups = g, append(groups, g)
			}
			if g.count++; g.count <= tasksNamed {
				g.named = append(g.named, found[i])
			}
		}
	}
	slices.SortStableFunc(groups, func(x, y *waitingGroup) int { return y.count - x.count })
	out.Groups, err = a.waitingFor(ctx, groups)
	return out, err
}

// A waitingGroup is a Waiting as it is found.
type waitingGroup struct {
	end   explain.Link
	count int
	named []plan.Task // the first of them
}

// waitingFor writes groups, with what the items among their tasks are for.
func (a *API) waitingFor(ctx context.Context, groups []*waitingGroup) ([]Waiting, error) {
	tasks, ends := make([][]plan.Task, len(groups)), make([]plan.Task, len(groups))
	for i, g := range groups {
		tasks[i], ends[i] = g.named, g.end.Task
	}
	named, err := a.named(ctx, tasks)
	if err != nil {
		return nil, err
	}
	labels, err := items.ReadKeys(ctx, a.st, ends)
	if err != nil {
		return nil, err
	}
	out := make([]Waiting, len(groups))
	for i, g := range groups {
		out[i] = Waiting{For: reasonOf(ctx, &g.end, labels), Count: g.count, Tasks: named[i]}
	}
	return out, nil
}

// once caches what many explanations read: the time, the plan, the queues, the nodes, the running
// tasks, and tasks on several chains. Over a network, repeated reads of these would take most of
// the time.
type once struct {
	explain.Reader
	known map[string]any
}

func tasksKey(q store.TaskQuery) string { return fmt.Sprintf("tasks %+v", q) }

func remembered[T any](o *once, key string, read func() (T, error)) (T, error) {
	if v, ok := o.known[key]; ok {
		return v.(T), nil
	}
	v, err := read()
	if err == nil {
		o.known[key] = v
	}
	return v, err
}

func (o *once) Now(ctx context.Context) (time.Time, error) {
	return remembered(o, "now", func() (time.Time, error) { return o.Reader.Now(ctx) })
}

func (o *once) Plan(ctx context.Context, id plan.PlanID) (plan.Plan, error) {
	return remembered(o, "plan "+id.String(), func() (plan.Plan, error) { return o.Reader.Plan(ctx, id) })
}

func (o *once) Tasks(ctx context.Context, q store.TaskQuery) ([]plan.Task, error) {
	found, err := remembered(o, tasksKey(q), func() ([]plan.Task, error) { return o.Reader.Tasks(ctx, q) })
	return slices.Clone(found), err
}

func (o *once) Queues(ctx context.Context) ([]plan.Queue, error) {
	found, err := remembered(o, "queues", func() ([]plan.Queue, error) { return o.Reader.Queues(ctx) })
	return slices.Clone(found), err
}

func (o *once) CountQueues(ctx context.Context, queues []plan.Queue) error {
	for i := range queues {
		counted, err := remembered(o, "count "+queues[i].ID.String(), func() (plan.Queue, error) {
			one := []plan.Queue{queues[i]}
			err := o.Reader.CountQueues(ctx, one)
			return one[0], err
		})
		if err != nil {
			return err
		}
		queues[i] = counted
	}
	return nil
}

func (o *once) Instances(ctx context.Context) ([]plan.Instance, error) {
	found, err := remembered(o, "instances", func() ([]plan.Instance, error) { return o.Reader.Instances(ctx) })
	return slices.Clone(found), err
}

func (o *once) MaxThreads(ctx context.Context) (map[plan.NodeName]int, error) {
	return remembered(o, "maxthreads", func() (map[plan.NodeName]int, error) { return o.Reader.MaxThreads(ctx) })
}
