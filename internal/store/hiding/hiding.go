// Package hiding is a store in which secrets are not shown: it stands between a store and whoever shows what is in it to people and other
// programs, be it the REST API, Disbatch's routes, or a command. What plan.Secrets says of the store's queues is taken out of all that is
// read; what is written passes, unless a mask would be written in the place of a secret. So no route and no command has to think of it.
//
// Nodes work on the store itself, which Of returns: a task is run with the true values.
package hiding

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// fresh is how long what the queues said is kept: as long as nodes take to heed them.
const fresh = time.Second

// atOnce is how many tasks are asked for their params at once.
const atOnce = 1000

// hider is what every store has that New makes.
type hider interface{ under() store.Store }

func (r *reader) under() store.Store { return r.Store }

// balance is a store.Balance, whose own name would hide its method when it is embedded.
type balance interface{ store.Balance }

// New returns the store without its secrets, with what it offers beside: documents, balance and results. One that hides them already is
// returned as it is.
func New(st store.Store) store.Store {
	if _, is := st.(hider); is {
		return st
	}
	r := &reader{Store: st}
	b, hasBalance := st.(store.Balance)
	given, hasDocuments := st.(store.Documents)
	kept, hasResults := st.(store.Results)
	d, k := &documents{given, r}, &results{kept, r}
	switch {
	case hasDocuments && hasBalance && hasResults:
		return struct {
			*reader
			*documents
			balance
			*results
		}{r, d, b, k}
	case hasDocuments && hasBalance:
		return struct {
			*reader
			*documents
			balance
		}{r, d, b}
	case hasDocuments && hasResults:
		return struct {
			*reader
			*documents
			*results
		}{r, d, k}
	case hasBalance && hasResults:
		return struct {
			*reader
			balance
			*results
		}{r, b, k}
	case hasDocuments:
		return struct {
			*reader
			*documents
		}{r, d}
	case hasBalance:
		return struct {
			*reader
			balance
		}{r, b}
	case hasResults:
		return struct {
			*reader
			*results
		}{r, k}
	}
	return r
}

// Of returns the store whose secrets are hidden: for who runs tasks, and for what has to be compared. Any other store is returned as it is.
func Of(st store.Store) store.Store {
	if h, is := st.(hider); is {
		return h.under()
	}
	return st
}

// known is what the queues said last.
type known struct {
	mu      sync.Mutex
	secrets plan.Secrets
	at      time.Time // zero: nothing is known
	changes int       // of queues, by this process
}

// A reader reads a store without its secrets.
type reader struct {
	store.Store
	known known
}

// secrets returns what is secret. While that cannot be read nothing can be shown.
func (r *reader) secrets(ctx context.Context) (plan.Secrets, error) {
	k := &r.known
	k.mu.Lock()
	s, at, changes := k.secrets, k.at, k.changes
	k.mu.Unlock()
	began := time.Now()
	if !at.IsZero() && began.Sub(at) < fresh {
		return s, nil
	}
	queues, err := r.Store.Queues(ctx)
	if err != nil {
		return plan.Secrets{}, err
	}
	s = plan.SecretsOf(queues)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.changes == changes {
		k.secrets, k.at = s, began
	}
	return s, nil
}

// changed makes what queues say now count at once.
func (r *reader) changed() {
	r.known.mu.Lock()
	defer r.known.mu.Unlock()
	r.known.at = time.Time{}
	r.known.changes++
}

// values returns, by task, the texts by which its secrets can be seen in what it printed and returned. A task that is not there any more is
// missing: nobody knows what is secret of it.
func (r *reader) values(ctx context.Context, s plan.Secrets, ids []plan.TaskID) (map[plan.TaskID][]string, error) {
	found := make(map[plan.TaskID][]string, len(ids))
	for part := range slices.Chunk(ids, atOnce) {
		tasks, err := r.Store.Tasks(ctx, store.TaskQuery{IDs: part, Params: true, Limit: len(part)})
		if err != nil {
			return nil, err
		}
		for i := range tasks {
			found[tasks[i].ID] = s.Values(tasks[i].Params)
		}
	}
	return found, nil
}

var hiddenJSON = json.RawMessage(`"` + plan.Hidden + `"`)

// Plan implements store.Reader.
func (r *reader) Plan(ctx context.Context, id plan.PlanID) (plan.Plan, error) {
	s, err := r.secrets(ctx)
	if err != nil {
		return plan.Plan{}, err
	}
	p, err := r.Store.Plan(ctx, id)
	p.Params = s.Hide(p.Params)
	return p, err
}

// Plans implements store.Reader.
func (r *reader) Plans(ctx context.Context, q store.PlanQuery) ([]plan.Plan, error) {
	s, err := r.secrets(ctx)
	if err != nil {
		return nil, err
	}
	plans, err := r.Store.Plans(ctx, q)
	for i := range plans {
		plans[i].Params = s.Hide(plans[i].Params)
	}
	return plans, err
}

// Task implements store.Reader.
func (r *reader) Task(ctx context.Context, id plan.TaskID) (plan.Task, error) {
	s, err := r.secrets(ctx)
	if err != nil {
		return plan.Task{}, err
	}
	t, err := r.Store.Task(ctx, id)
	s.HideTask(&t, nil)
	return t, err
}

// Tasks implements store.Reader. Where something is secret, tasks that say more than their state are asked for their params, too.
func (r *reader) Tasks(ctx context.Context, q store.TaskQuery) ([]plan.Task, error) {
	s, err := r.secrets(ctx)
	if err != nil {
		return nil, err
	}
	tasks, err := r.Store.Tasks(ctx, q)
	if err != nil || s.None() {
		return tasks, err
	}
	var saying []plan.TaskID
	for i := range tasks {
		if t := &tasks[i]; !q.Params && (t.Detail != "" || len(t.Output) > 0 || t.Foreach != nil) {
			saying = append(saying, t.ID)
		}
	}
	values, err := r.values(ctx, s, saying)
	if err != nil {
		return nil, err
	}
	for i := range tasks {
		t := &tasks[i]
		values, there := values[t.ID]
		s.HideTask(t, nil)
		if q.Params {
			continue
		}
		t.Output, t.Detail, t.Description = s.Hide(t.Output, values...), plan.HideText(t.Detail, values), plan.HideText(t.Description, values)
		t.Foreach = s.HideForeach(t.Foreach, values...)
		if !there {
			blank(&t.Detail, &t.Output)
		}
	}
	return tasks, nil
}

// blank hides what a task says of which nobody knows what is secret.
func blank(detail *string, output *json.RawMessage) {
	if *detail != "" {
		*detail = plan.Hidden
	}
	if len(*output) > 0 {
		*output = hiddenJSON
	}
}

// Log implements store.Reader.
func (r *reader) Log(ctx context.Context, id plan.TaskID, after int64, limit int) ([]plan.LogEntry, int64, error) {
	s, err := r.secrets(ctx)
	if err != nil {
		return nil, 0, err
	}
	entries, next, err := r.Store.Log(ctx, id, after, limit)
	if err != nil || s.None() || len(entries) == 0 {
		return entries, next, err
	}
	values, err := r.values(ctx, s, []plan.TaskID{id})
	if err != nil {
		return nil, 0, err
	}
	own, there := values[id]
	for i := range entries {
		if entries[i].Text = plan.HideText(entries[i].Text, own); !there {
			entries[i].Text = plan.Hidden + "\n"
		}
	}
	return entries, next, nil
}

// Changes implements store.Reader.
func (r *reader) Changes(ctx context.Context, after store.Cursor, limit int) ([]store.Change, store.Cursor, error) {
	s, err := r.secrets(ctx)
	if err != nil {
		return nil, "", err
	}
	changes, next, err := r.Store.Changes(ctx, after, limit)
	if err != nil || s.None() {
		return changes, next, err
	}
	var saying []plan.TaskID
	for i := range changes {
		if c := &changes[i]; c.Detail != "" || len(c.Output) > 0 {
			saying = append(saying, c.Task)
		}
	}
	slices.SortFunc(saying, func(a, b plan.TaskID) int { return slices.Compare(a.ID[:], b.ID[:]) })
	values, err := r.values(ctx, s, slices.Compact(saying))
	if err != nil {
		return nil, "", err
	}
	for i := range changes {
		c := &changes[i]
		own, there := values[c.Task]
		if c.Detail, c.Output = plan.HideText(c.Detail, own), s.Hide(c.Output, own...); !there {
			blank(&c.Detail, &c.Output)
		}
	}
	return changes, next, nil
}

// Inputs is that of store.Node, for who shows them.
func (r *reader) Inputs(ctx context.Context, id plan.TaskID) ([]plan.Input, error) {
	s, err := r.secrets(ctx)
	if err != nil {
		return nil, err
	}
	inputs, err := r.Store.Inputs(ctx, id)
	if err != nil || s.None() {
		return inputs, err
	}
	values, err := r.values(ctx, s, []plan.TaskID{id})
	for i := range inputs {
		inputs[i].Output = s.Hide(inputs[i].Output, values[id]...)
	}
	return inputs, err
}

// CreatePlan implements store.Admin.
func (r *reader) CreatePlan(ctx context.Context, p plan.Plan) (plan.Plan, error) {
	s, err := r.secrets(ctx)
	if err == nil {
		err = s.CheckGiven("the params of plan "+p.Name, p.Params)
	}
	if err != nil {
		return plan.Plan{}, err
	}
	made, err := r.Store.CreatePlan(ctx, p)
	made.Params = s.Hide(made.Params)
	return made, err
}

// AddTasks implements store.Admin.
func (r *reader) AddTasks(ctx context.Context, p plan.PlanID, tasks []plan.Task) error {
	if err := r.check(ctx, tasks, nil); err != nil {
		return err
	}
	return r.Store.AddTasks(ctx, p, tasks)
}

// Retry implements store.Admin.
func (r *reader) Retry(ctx context.Context, p plan.PlanID, tasks []plan.Retried, replace []plan.Task, params json.RawMessage) error {
	if err := r.check(ctx, replace, params); err != nil {
		return err
	}
	return r.Store.Retry(ctx, p, tasks, replace, params)
}

// check refuses tasks, and params of a plan, that hold a mask.
func (r *reader) check(ctx context.Context, tasks []plan.Task, params json.RawMessage) error {
	s, err := r.secrets(ctx)
	if err == nil {
		err = s.CheckGiven("the plan's params", params)
	}
	for i := 0; i < len(tasks) && err == nil; i++ {
		t := &tasks[i]
		if err = s.CheckGiven("task "+t.Key(), t.Params); err == nil && t.Foreach != nil {
			err = s.CheckGiven("foreach of task "+t.Key(), t.Foreach.List)
		}
	}
	return err
}

// CreateQueue implements store.Admin.
func (r *reader) CreateQueue(ctx context.Context, q plan.Queue) (plan.Queue, error) {
	defer r.changed()
	return r.Store.CreateQueue(ctx, q)
}

// EnsureQueue implements store.Admin.
func (r *reader) EnsureQueue(ctx context.Context, q plan.Queue) (plan.Queue, error) {
	defer r.changed()
	return r.Store.EnsureQueue(ctx, q)
}

// SetQueue implements store.Admin.
func (r *reader) SetQueue(ctx context.Context, q plan.Queue) error {
	defer r.changed()
	return r.Store.SetQueue(ctx, q)
}

// ChangeQueue implements store.Admin.
func (r *reader) ChangeQueue(ctx context.Context, was, q plan.Queue) error {
	defer r.changed()
	return r.Store.ChangeQueue(ctx, was, q)
}

// Fits implements store.Fitter: what the store says that has one, else that all fits.
func (r *reader) Fits(ctx context.Context, p plan.Plan, tasks []plan.Task) error {
	if s, ok := r.Store.(store.Fitter); ok {
		return s.Fits(ctx, p, tasks)
	}
	return nil
}

// SubmitBatch implements store.Batcher.
func (r *reader) SubmitBatch() int {
	if s, ok := r.Store.(store.Batcher); ok {
		return s.SubmitBatch()
	}
	return 0
}
