// Package hiding is a store that redacts secrets. It stands between a store and everything that
// shows its content to people and other programs: the REST API, Disbatch's routes, and commands. It
// removes from all that is read the secrets that queues name, and in a plan's tasks those that the
// plan names. Writes pass, unless a mask would overwrite a secret. So no route and no command has
// to handle secrets.
//
// Nodes work on the store itself, which Of returns: a task is run with the true values.
package hiding

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed-1177d267/sluice/internal/planfile"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/secret"
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

// A schedules is a store.Schedules but for its roles, which balance has. A schedule has no secrets.
type schedules struct{ in store.Schedules }

func (s schedules) PutSchedules(ctx context.Context, all []plan.Schedule) ([]error, error) {
	return s.in.PutSchedules(ctx, all)
}

func (s schedules) Schedules(ctx context.Context, q store.ScheduleQuery) ([]plan.Schedule, error) {
	return s.in.Schedules(ctx, q)
}

func (s schedules) DeleteSchedule(ctx context.Context, id plan.ScheduleID) error {
	return s.in.DeleteSchedule(ctx, id)
}

// packs is a store.Packs. Nodes read packs; nobody is shown one.
type packs interface{ store.Packs }

// whole is a store with documents, balance, results and packs.
type whole struct {
	*reader
	*documents
	balance
	*results
	packs
}

// New returns the store without its secrets, with its optional parts: documents, balance, results and
// packs, and schedules. Every driver has all of them; a store that lacks one of the first four is
// shown without any. A store that hides secrets already is returned as it is.
func New(st store.Store) store.Store {
	if _, is := st.(hider); is {
		return st
	}
	r := &reader{Store: st}
	parts, ok := st.(interface {
		store.Documents
		store.Balance
		store.Results
		store.Packs
	})
	if !ok {
		return r
	}
	w := whole{r, &documents{parts, r}, parts, &results{parts, r}, parts}
	if s, ok := st.(store.Schedules); ok {
		return struct {
			whole
			schedules
		}{w, schedules{s}}
	}
	return w
}

// Of returns the store behind a hiding one, for nodes and for comparisons. Any other store is
// returned as it is.
func Of(st store.Store) store.Store {
	if h, is := st.(hider); is {
		return h.under()
	}
	return st
}

// known is what the queues said last.
type known struct {
	mu      sync.Mutex
	secrets secret.Names
	at      time.Time // zero: nothing is known
	changes int       // of queues, by this process
}

// mostMarks is of how many plans is remembered what they keep secret.
const mostMarks = 10_000

// marked is what plans keep secret, by their ids.
type marked struct {
	mu    sync.Mutex
	names map[plan.PlanID][]string
}

// A reader reads a store without its secrets.
type reader struct {
	store.Store
	known known  // what queues name
	plans marked // what plans do
}

// secrets returns what is secret. While that cannot be read nothing can be shown.
func (r *reader) secrets(ctx context.Context) (secret.Names, error) {
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
		return secret.Names{}, err
	}
	s = secret.Of(queues)
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

// own is what is secret in a task: names, and the texts by which what they stand for can be seen elsewhere, the longest first.
type own struct {
	secret.Names
	values []string
}

// A look finds out what is secret in tasks. Plans are read once.
type look struct {
	r     *reader
	s     secret.Names // that queues name
	plans map[plan.PlanID]*plan.Plan
}

func (r *reader) look(s secret.Names) *look { return &look{r, s, map[plan.PlanID]*plan.Plan{}} }

// owns returns the names of secrets of tasks by their ids. A missing id means that they are
// unknown: the task or its plan does not exist any more.
func (r *reader) owns(ctx context.Context, s secret.Names, ids []plan.TaskID) (map[plan.TaskID]own, error) {
	l, found := r.look(s), make(map[plan.TaskID]own, len(ids))
	for part := range slices.Chunk(ids, atOnce) {
		tasks, err := r.Store.Tasks(ctx, store.TaskQuery{IDs: part, Params: !s.None(), Limit: len(part)})
		if err != nil {
			return nil, err
		}
		if s.None() { // mostly
			var marked []plan.TaskID
			for i := range tasks {
				if found[tasks[i].ID] = (own{}); len(tasks[i].Secrets) > 0 {
					marked = append(marked, tasks[i].ID)
				}
			}
			if len(marked) == 0 {
				continue
			}
			if tasks, err = r.Store.Tasks(ctx, store.TaskQuery{IDs: marked, Params: true, Limit: len(marked)}); err != nil {
				return nil, err
			}
		}
		for i := range tasks {
			o, known, err := l.own(ctx, &tasks[i])
			if err != nil {
				return nil, err
			}
			if found[tasks[i].ID] = o; !known {
				delete(found, tasks[i].ID)
			}
		}
	}
	return found, nil
}

// own returns what is secret in a task that was read with its params. Its plan's secrets may stand in it by other names, so that nothing is
// known of it when the plan is being deleted.
func (l *look) own(ctx context.Context, t *plan.Task) (o own, known bool, err error) {
	s := l.s.And(t.Secrets)
	o = own{s, s.Values(t.Params)}
	if len(t.Secrets) == 0 || t.Plan.IsZero() {
		return o, true, nil
	}
	p, read := l.plans[t.Plan]
	if !read {
		now, err := l.r.Store.Plan(ctx, t.Plan)
		switch {
		case err == nil:
			p = &now
		case !errors.Is(err, plan.ErrNotFound):
			return own{}, false, err
		}
		l.plans[t.Plan] = p
	}
	if p == nil {
		return own{}, false, nil
	}
	o.values = secret.LongestFirst(append(o.values, s.Values(p.Params)...))
	return o, true, nil
}

// marks returns the names that a plan keeps secret. They do not change, so they are read once. The
// names of a plan that does not exist are unknown.
func (r *reader) marks(ctx context.Context, id plan.PlanID) (names []string, known bool, err error) {
	if id.IsZero() {
		return nil, true, nil
	}
	r.plans.mu.Lock()
	names, known = r.plans.names[id]
	r.plans.mu.Unlock()
	if known {
		return names, true, nil
	}
	p, err := r.Store.Plan(ctx, id)
	switch {
	case errors.Is(err, plan.ErrNotFound):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	}
	r.mark(&p)
	return p.Secrets, true, nil
}

// mark remembers what a plan keeps secret.
func (r *reader) mark(p *plan.Plan) {
	r.plans.mu.Lock()
	defer r.plans.mu.Unlock()
	if len(r.plans.names) >= mostMarks || r.plans.names == nil {
		r.plans.names = map[plan.PlanID][]string{}
	}
	r.plans.names[p.ID] = p.Secrets
}

var hiddenJSON = json.RawMessage(`"` + secret.Hidden + `"`)

// Plan implements store.Reader.
func (r *reader) Plan(ctx context.Context, id plan.PlanID) (plan.Plan, error) {
	s, err := r.secrets(ctx)
	if err != nil {
		return plan.Plan{}, err
	}
	p, err := r.Store.Plan(ctx, id)
	p.Params = s.And(p.Secrets).Hide(p.Params)
	return p, err
}

// PlanFile implements store.Reader. It hides the secrets that the file names, and those that the
// plan has.
func (r *reader) PlanFile(ctx context.Context, id plan.PlanID) (plan.File, error) {
	s, err := r.secrets(ctx)
	if err != nil {
		return plan.File{}, err
	}
	f, err := r.Store.PlanFile(ctx, id)
	if err != nil || f.Text == "" {
		return f, err
	}
	p, err := r.Store.Plan(ctx, id)
	if err != nil {
		return plan.File{}, err
	}
	s = s.And(p.Secrets)
	f.Text = planfile.Hide(f.Text, s, s.Values(p.Params))
	return f, nil
}

// Plans implements store.Reader.
func (r *reader) Plans(ctx context.Context, q store.PlanQuery) ([]plan.Plan, error) {
	s, err := r.secrets(ctx)
	if err != nil {
		return nil, err
	}
	plans, err := r.Store.Plans(ctx, q)
	for i := range plans {
		plans[i].Params = s.And(plans[i].Secrets).Hide(plans[i].Params)
	}
	return plans, err
}

// Task implements store.Reader.
func (r *reader) Task(ctx context.Context, id plan.TaskID) (plan.Task, error) {
	s, err := r.secrets(ctx)
	if err != nil {
		return plan.Task{}, err
	}
	t, err := r.Store.Task(ctx, id) // one whose output is too large comes with an error
	o, known, unknown := r.look(s).own(ctx, &t)
	if unknown != nil {
		return plan.Task{}, errors.Join(err, unknown)
	}
	hide(&t, o, known)
	return t, err
}

// hide takes the secrets out of a task. Where nobody knows them it is shown without what they could stand in.
func hide(t *plan.Task, o own, known bool) {
	if known {
		o.HideTask(t, o.values...)
		return
	}
	blank(&t.Detail, &t.Output)
	if t.If != "" {
		t.If = secret.Hidden
	}
	if t.ItemKey != "" {
		t.ItemKey = secret.Hidden
	}
	if a := t.Approve; a != nil {
		t.Approve = &plan.Approval{Question: secret.Hidden, NotSubmitter: a.NotSubmitter}
	}
	if t.Progress != nil {
		t.Progress = &plan.Progress{Fraction: t.Progress.Fraction}
	}
	if t.Foreach = nil; len(t.Params) > 0 {
		t.Params = json.RawMessage("{}")
	}
}

// Tasks implements store.Reader. Where something is secret, tasks that say more than their state are asked for their params, too.
func (r *reader) Tasks(ctx context.Context, q store.TaskQuery) ([]plan.Task, error) {
	s, err := r.secrets(ctx)
	if err != nil {
		return nil, err
	}
	q.Brief = q.Brief && !q.Reached // a text may hold what its task keeps secret
	tasks, err := r.Store.Tasks(ctx, q)
	if err != nil || s.None() && !slices.ContainsFunc(tasks, func(t plan.Task) bool { return len(t.Secrets) > 0 }) {
		return tasks, err
	}
	l, apart := r.look(s), map[plan.TaskID]bool{} // whose params have to be read
	var ids []plan.TaskID
	for i := range tasks {
		if t := &tasks[i]; !q.Params && (t.Detail != "" || len(t.Output) > 0 || t.If != "" || t.ItemKey != "" || t.Approve != nil || t.Foreach != nil || t.Progress != nil) && (len(t.Secrets) > 0 || !s.None()) {
			apart[t.ID], ids = true, append(ids, t.ID)
		}
	}
	owns, err := r.owns(ctx, s, ids)
	if err != nil {
		return nil, err
	}
	for i := range tasks {
		t := &tasks[i]
		o, known := owns[t.ID]
		if !apart[t.ID] {
			if o, known, err = l.own(ctx, t); err != nil {
				return nil, err
			}
		}
		hide(t, o, known)
	}
	return tasks, nil
}

// blank hides the texts of a task whose secrets are unknown.
func blank(detail *string, output *json.RawMessage) {
	if *detail != "" {
		*detail = secret.Hidden
	}
	if len(*output) > 0 {
		*output = hiddenJSON
	}
}

// Changes implements store.Reader.
func (r *reader) Changes(ctx context.Context, after store.Cursor, limit int) ([]store.Change, store.Cursor, error) {
	s, err := r.secrets(ctx)
	if err != nil {
		return nil, "", err
	}
	changes, next, err := r.Store.Changes(ctx, after, limit)
	if err != nil {
		return changes, next, err
	}
	says := func(c *store.Change) bool { return c.Detail != "" || len(c.Output) > 0 }
	asked := map[plan.TaskID]bool{}
	for i := range changes {
		c := &changes[i]
		if !says(c) {
			continue
		}
		marks, known, err := r.marks(ctx, c.Plan)
		if err != nil {
			return nil, "", err
		}
		if !s.None() || len(marks) > 0 || !known {
			asked[c.Task] = true
		}
	}
	if len(asked) == 0 {
		return changes, next, nil
	}
	owns, err := r.owns(ctx, s, slices.Collect(maps.Keys(asked)))
	if err != nil {
		return nil, "", err
	}
	for i := range changes {
		c := &changes[i]
		switch o, there := owns[c.Task]; {
		case there:
			c.Detail, c.Output = secret.HideText(c.Detail, o.values), o.Hide(c.Output, o.values...)
		case asked[c.Task]:
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
	if err != nil || len(inputs) == 0 {
		return inputs, err
	}
	owns, err := r.owns(ctx, s, []plan.TaskID{id})
	o, there := owns[id]
	for i := range inputs {
		if inputs[i].Output = o.Hide(inputs[i].Output, o.values...); !there {
			inputs[i].Output = hiddenJSON
		}
	}
	return inputs, err
}

// CreatePlan implements store.Admin.
func (r *reader) CreatePlan(ctx context.Context, p plan.Plan) (plan.Plan, error) {
	s, err := r.secrets(ctx)
	if err == nil {
		err = s.And(p.Secrets).CheckGiven("the params of plan "+p.Name, p.Params)
	}
	if err != nil {
		return plan.Plan{}, err
	}
	made, err := r.Store.CreatePlan(ctx, p)
	if err == nil {
		r.mark(&made)
	}
	made.Params = s.And(made.Secrets).Hide(made.Params)
	return made, err
}

// AddTasks implements store.Admin. A task of a plan keeps secret what that does.
func (r *reader) AddTasks(ctx context.Context, p plan.PlanID, tasks []plan.Task) error {
	tasks, err := r.kept(ctx, p, tasks, nil)
	if err != nil {
		return err
	}
	return r.Store.AddTasks(ctx, p, tasks)
}

// SetTask implements store.Admin.
func (r *reader) SetTask(ctx context.Context, id plan.TaskID, c rules.TaskChange) error {
	if c.Params != nil {
		s, err := r.secrets(ctx)
		if err != nil {
			return err
		}
		found, err := r.Store.Tasks(ctx, store.TaskQuery{IDs: []plan.TaskID{id}, Limit: 1})
		for i := range found {
			err = s.And(found[i].Secrets).CheckGiven("task "+found[i].Key(), c.Params)
		}
		if err != nil {
			return err
		}
	}
	return r.Store.SetTask(ctx, id, c)
}

// Retry implements store.Admin.
func (r *reader) Retry(ctx context.Context, p plan.PlanID, ask rules.Ask) (taken []rules.Retried, err error) {
	if ask.Replace, err = r.kept(ctx, p, ask.Replace, ask.Params); err != nil {
		return nil, err
	}
	return r.Store.Retry(ctx, p, ask)
}

// DeletePlan implements store.Admin.
func (r *reader) DeletePlan(ctx context.Context, p plan.PlanID, budget int) (more bool, err error) {
	defer func() {
		r.plans.mu.Lock()
		defer r.plans.mu.Unlock()
		delete(r.plans.names, p) // another one may have its id
	}()
	return r.Store.DeletePlan(ctx, p, budget)
}

// kept returns tasks with the plan's names of secrets. It refuses tasks, and params of a plan, that
// hold a mask.
func (r *reader) kept(ctx context.Context, p plan.PlanID, tasks []plan.Task, params json.RawMessage) ([]plan.Task, error) {
	s, err := r.secrets(ctx)
	if err != nil {
		return nil, err
	}
	names, _, err := r.marks(ctx, p) // who is to keep tasks of a plan that is not there says so
	if err == nil && len(names) > 0 {
		tasks = slices.Clone(tasks)
		secret.Keep(&plan.Plan{Secrets: names}, tasks)
	}
	if err == nil {
		err = s.And(names).CheckGiven("the plan's params", params)
	}
	for i := 0; i < len(tasks) && err == nil; i++ {
		t := &tasks[i]
		of := s.And(t.Secrets)
		if err = of.CheckGiven("task "+t.Key(), t.Params); err == nil && t.Foreach != nil {
			err = of.CheckGiven("foreach of task "+t.Key(), t.Foreach.List)
		}
	}
	return tasks, err
}

// checkDefaults refuses secrets among the defaults of queues, once these are set: readers of a task
// do not know of its queue's defaults, and would show what it made of them.
func (r *reader) checkDefaults(ctx context.Context, q plan.Queue) error {
	if len(q.Secrets) == 0 && len(q.Defaults.Params) == 0 {
		return nil
	}
	queues, err := r.Store.Queues(ctx)
	if err != nil {
		return err
	}
	queues = slices.DeleteFunc(queues, func(is plan.Queue) bool { return is.ID == q.ID || is.Name == q.Name })
	return secret.CheckDefaults(append(queues, q))
}

// CreateQueue implements store.Admin.
func (r *reader) CreateQueue(ctx context.Context, q plan.Queue) (plan.Queue, error) {
	defer r.changed()
	if err := r.checkDefaults(ctx, q); err != nil {
		return plan.Queue{}, err
	}
	return r.Store.CreateQueue(ctx, q)
}

// EnsureQueue implements store.Admin.
func (r *reader) EnsureQueue(ctx context.Context, q plan.Queue) (plan.Queue, error) {
	defer r.changed()
	if err := r.checkDefaults(ctx, q); err != nil {
		return plan.Queue{}, err
	}
	return r.Store.EnsureQueue(ctx, q)
}

// SetQueue implements store.Admin.
func (r *reader) SetQueue(ctx context.Context, q plan.Queue) error {
	defer r.changed()
	if err := r.checkDefaults(ctx, q); err != nil {
		return err
	}
	return r.Store.SetQueue(ctx, q)
}

// ChangeQueue implements store.Admin.
func (r *reader) ChangeQueue(ctx context.Context, was, q plan.Queue) error {
	defer r.changed()
	if err := r.checkDefaults(ctx, q); err != nil {
		return err
	}
	return r.Store.ChangeQueue(ctx, was, q)
}

// Fits implements store.Fitter: what the store says that has one, else that all fits.
func (r *reader) Fits(ctx context.Context, p plan.Plan, tasks []plan.Task) error {
	if s, ok := r.Store.(store.Fitter); ok {
		return s.Fits(ctx, p, tasks)
	}
	return nil
}

// Refused implements store.Refuser: what the store says that is one, else nothing.
func (r *reader) Refused(ctx context.Context) ([]string, error) {
	if s, ok := r.Store.(store.Refuser); ok {
		return s.Refused(ctx)
	}
	return nil, nil
}

// SubmitBatch implements store.Batcher.
func (r *reader) SubmitBatch() int {
	if s, ok := r.Store.(store.Batcher); ok {
		return s.SubmitBatch()
	}
	return 0
}
