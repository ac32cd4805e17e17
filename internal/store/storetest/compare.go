package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// tolerance is how far apart the instants of two stores may be of which one reads its server's clock.
// The time that histories let pass is a multiple of twice as much.
const tolerance = 5 * time.Minute

// incomparable are the fields that stores may fill with values of their own, with the reason.
var incomparable = map[string]string{
	"Claim.Token":  "each store mints its own tokens",
	"Turned.Delay": "a store may tell of a delay that the end of the plan cuts short",
}

// A comparison compares two values by all of their exported fields.
type comparison struct {
	ahead  time.Duration // how much the first value's clock is ahead of the second's
	within time.Duration // by how much two instants may differ
	found  []difference
}

// A difference is a field, by its path, that two values do not share.
type difference struct{ path, first, second string }

// compare returns where the values differ. It panics at what it cannot compare, so that a new field is
// compared, or named in incomparable.
func (c *comparison) compare(first, second any) []difference {
	c.found = nil
	c.values("", reflect.ValueOf(&first).Elem(), reflect.ValueOf(&second).Elem())
	return c.found
}

func (c *comparison) note(path string, first, second any) {
	c.found = append(c.found, difference{path, fmt.Sprintf("%+v", first), fmt.Sprintf("%+v", second)})
}

var (
	timeType = reflect.TypeFor[time.Time]()
	jsonType = reflect.TypeFor[json.RawMessage]()
)

func (c *comparison) values(path string, a, b reflect.Value) {
	switch t := a.Type(); {
	case t == timeType:
		x, y := a.Interface().(time.Time), b.Interface().(time.Time)
		if x.IsZero() != y.IsZero() || !x.IsZero() && x.Sub(y.Add(c.ahead)).Abs() > c.within {
			c.note(path, x, y.Add(c.ahead))
		}
	case t == jsonType:
		if x, y := spelled(a.Bytes()), spelled(b.Bytes()); x != y {
			c.note(path, x, y)
		}
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if !f.IsExported() {
				panic(fmt.Sprintf("%v.%s cannot be compared: say in incomparable why not, or compare it here", t, f.Name))
			}
			if _, ok := incomparable[t.Name()+"."+f.Name]; ok {
				continue
			}
			name := path + "." + f.Name
			if f.Anonymous {
				name = path
			}
			if d, ok := a.Field(i).Interface().(time.Duration); ok && f.Name == "Age" { // of the store's clock
				if (d - b.Field(i).Interface().(time.Duration)).Abs() > c.within {
					c.note(name, d, b.Field(i))
				}
				continue
			}
			c.values(name, a.Field(i), b.Field(i))
		}
	case t.Kind() == reflect.Slice && a.Len() != b.Len():
		c.note(path, a.Interface(), b.Interface())
	case t.Kind() == reflect.Slice:
		for i := range a.Len() {
			c.values(fmt.Sprintf("%s[%d]", path, i), a.Index(i), b.Index(i))
		}
	case t.Kind() == reflect.Map:
		c.maps(path, a, b)
	case (t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface) && !a.IsNil() && !b.IsNil():
		if x, y := a.Elem(), b.Elem(); x.Type() == y.Type() {
			c.values(path, x, y)
		} else {
			c.note(path, x, y)
		}
	case !t.Comparable():
		panic(fmt.Sprintf("%s is a %v, which cannot be compared", path, t))
	case !a.Equal(b):
		c.note(path, a.Interface(), b.Interface())
	}
}

// maps compares maps key by key.
func (c *comparison) maps(path string, a, b reflect.Value) {
	keys := map[string]reflect.Value{}
	for _, key := range slices.Concat(a.MapKeys(), b.MapKeys()) {
		keys[fmt.Sprint(key)] = key
	}
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		x, y := a.MapIndex(keys[name]), b.MapIndex(keys[name])
		at := fmt.Sprintf("%s[%s]", path, name)
		switch {
		case !x.IsValid():
			c.note(at, "nothing", y)
		case !y.IsValid():
			c.note(at, x, "nothing")
		default:
			c.values(at, x, y)
		}
	}
}

// spelled returns JSON in one spelling. No text at all is null.
func spelled(j json.RawMessage) string {
	if len(j) == 0 {
		return "null"
	}
	s, err := canonical(j)
	if err != nil {
		return fmt.Sprintf("%q, which is no JSON", j)
	}
	return s
}

// shown is what a store shows to readers.
type shown struct {
	Plans     map[string]plan.Plan
	Files     map[string]plan.File
	Tasks     map[string]plan.Task // as lists of them are returned
	Whole     map[string]wholeTask // of tasks that changed since the last step
	Order     []plan.TaskID
	Queues    []plan.Queue
	Groups    []plan.Group
	Views     []store.QueueView
	Nodes     map[plan.NodeName]int
	Instances []plan.Instance
}

// wholeTask is all that a store shows of one task.
type wholeTask struct {
	Task           plan.Task
	Inputs         []plan.Input
	Parents        []plan.Parent
	Log            []plan.LogEntry
	Stdout, Stderr string
	Errors         []string
}

// called names a plan or a task in messages.
func called(name string, id plan.ID) string { return fmt.Sprintf("%s %s", name, id.String()[16:]) }

// look reads everything that the store shows. It reads completely those tasks for which changed is
// true.
func (m *member) look(ctx context.Context, changed func(t *plan.Task) bool) (s shown, err error) {
	s = shown{Plans: map[string]plan.Plan{}, Files: map[string]plan.File{}, Tasks: map[string]plan.Task{}, Whole: map[string]wholeTask{}}
	plans, err := m.Plans(ctx, store.PlanQuery{Limit: 1_000_000})
	if err != nil {
		return s, err
	}
	for _, p := range plans {
		name := called(p.Title(), p.ID.ID)
		if s.Plans[name], err = m.Plan(ctx, p.ID); err != nil {
			return s, err
		}
		if s.Files[name], err = m.PlanFile(ctx, p.ID); err != nil {
			return s, err
		}
	}
	tasks, err := m.Tasks(ctx, store.TaskQuery{Limit: 1_000_000, Needs: true, Params: true, Output: true})
	if err != nil {
		return s, err
	}
	for _, t := range tasks {
		name := called(t.Name, t.ID.ID)
		s.Tasks[name] = t
		s.Order = append(s.Order, t.ID)
		if changed(&t) {
			s.Whole[name] = m.whole(ctx, t.ID)
		}
	}
	if s.Queues, err = m.Queues(ctx); err == nil {
		err = m.CountQueues(ctx, s.Queues)
	}
	if err == nil {
		s.Nodes, err = m.MaxThreads(ctx)
	}
	if err == nil {
		s.Groups, err = m.Groups(ctx)
	}
	if err == nil {
		s.Instances, err = m.Instances(ctx)
	}
	if err == nil {
		s.Views, err = m.Store.(store.Documents).QueueViews(ctx)
	}
	return s, err
}

// whole reads all of one task. Errors are part of what is shown.
func (m *member) whole(ctx context.Context, id plan.TaskID) (w wholeTask) {
	failed := func(what string, err error) {
		if err != nil {
			w.Errors = append(w.Errors, what+": "+kinds(err))
		}
	}
	var err error
	w.Task, err = m.Task(ctx, id)
	failed("Task", err)
	if w.Task.Status.Active() { // they are for who runs the task
		w.Inputs, err = m.Inputs(ctx, id)
		failed("Inputs", err)
	}
	w.Parents, err = m.Parents(ctx, id)
	failed("Parents", err)
	w.Log, _, err = m.Log(ctx, id, 0, 1_000_000)
	failed("Log", err)
	for k := range w.Log {
		// Entries keep the instants of their writers, whatever time passes since. The store's own
		// entries have its clock of that time, which nobody knows later.
		if w.Log[k].At = m.own(w.Log[k].At); w.Log[k].Stream == plan.System {
			w.Log[k].At = time.Time{}
		}
	}
	for stream, into := range map[plan.Stream]*string{plan.Stdout: &w.Stdout, plan.Stderr: &w.Stderr} {
		r, size, err := m.Store.(store.Results).OpenResult(ctx, id, stream)
		failed("OpenResult", err)
		if err != nil {
			continue
		}
		text, err := io.ReadAll(r)
		failed("OpenResult", err)
		failed("OpenResult", r.Close())
		*into = fmt.Sprintf("%d: %s", size, text)
	}
	slices.Sort(w.Errors)
	return w
}

// step settles the stores and compares all that they show.
func (l *together) step(ctx context.Context) error {
	if err := l.settle(ctx); err != nil {
		return err
	}
	changed := map[plan.TaskID]bool{}
	before := l.stores[0].shown
	var first shown
	for k, m := range l.stores {
		look := func(t *plan.Task) bool {
			if was, ok := before[t.ID]; k == 0 && (!ok || !reflect.DeepEqual(was, *t)) {
				changed[t.ID] = true
			}
			return changed[t.ID]
		}
		now, err := m.look(ctx, look)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		if k == 0 {
			first = now
		} else {
			l.forgive(m, first, now)
			l.compare("", m, first, now)
		}
		if err := l.follow(ctx, m, now); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

// forgive takes over from the first store what the contract leaves to a store.
//
//   - A failure that closes a plan may also let a task run. A store looks at either first. So the task may
//     have been queued, with its inputs in its params, before it was cancelled. A foreach task may have
//     begun.
//   - A store without transactions notes a retry in the plan, by Edits and Modified, before it refuses
//     the retry.
func (l *together) forgive(m *member, first, now shown) {
	apart := m.d.Pass != nil
	for name, p := range now.Plans {
		if was := first.Plans[name]; apart && l.refused[p.ID] {
			p.Edits, p.Modified = was.Edits, m.own(was.Modified)
			now.Plans[name] = p
		}
	}
	for name, t := range now.Tasks {
		was, there := first.Tasks[name]
		stopped := was.Status == plan.Cancelled && was.Attempt == 0
		if !there || !stopped {
			continue
		}
		t.Params = was.Params
		if t.Foreach != nil && t.Started.IsZero() != was.Started.IsZero() {
			t.Started = m.own(was.Started)
		}
		now.Tasks[name] = t
		if w, read := now.Whole[name]; read {
			w.Task.Started = t.Started
			w.Task.Params, w.Inputs = first.Whole[name].Task.Params, first.Whole[name].Inputs
			now.Whole[name] = w
		}
	}
}

// follow reads the store's feed of changes. It has everything that readers see changed, as readers see it now.
func (l *together) follow(ctx context.Context, m *member, now shown) error {
	tasks, plans := map[plan.TaskID]store.Change{}, map[plan.PlanID]store.Change{}
	for {
		const limit = 1000
		changes, next, err := m.Changes(ctx, m.feed, limit)
		if err != nil {
			return err
		}
		m.feed = next
		for _, c := range changes {
			if c.Task.IsZero() {
				plans[c.Plan] = c
			} else {
				tasks[c.Task] = c
			}
		}
		if len(changes) < limit {
			break
		}
	}
	since := comparison{ahead: m.ahead - m.shownAhead}
	if m.d.Pass != nil {
		since.within = tolerance
	}
	shownTasks, shownPlans := map[plan.TaskID]plan.Task{}, map[plan.PlanID]plan.Plan{}
	for name, t := range now.Tasks {
		shownTasks[t.ID] = t
		told, ok := tasks[t.ID]
		if ok {
			l.tells(m, name, told, store.Change{
				Plan: t.Plan, Task: t.ID, Name: t.Name, Of: t.Of, Status: t.Status, Reason: t.Reason, Allowed: t.Allowed(), Attempt: t.Attempt,
				Node: t.Node, Detail: t.Detail,
			})
			continue
		}
		was, there := m.shown[t.ID]
		was.Progress, t.Progress = nil, nil // which a beat changes without a change of the task
		if changes := since.compare(was, t); !there || len(changes) > 0 {
			l.differs("%s: the feed has no change of task %s, which readers see: %+v", m.name, name, changes)
		}
	}
	for name, p := range now.Plans {
		shownPlans[p.ID] = p
		told, ok := plans[p.ID]
		if ok {
			l.tells(m, name, told, store.Change{Plan: p.ID, Name: p.Name, State: p.State})
		} else if was, there := m.plans[p.ID]; !there || was.State != p.State {
			l.differs("%s: the feed has no change of plan %s, which was %v and is %v", m.name, name, was.State, p.State)
		}
	}
	m.shown, m.plans, m.shownAhead = shownTasks, shownPlans, m.ahead
	return nil
}

// tells notes where the feed's last word of something is not what readers see.
func (l *together) tells(m *member, name string, told, want store.Change) {
	told.At, told.Output = time.Time{}, nil // Modified and Output are compared where tasks are
	var c comparison
	for _, d := range c.compare(want, told) {
		l.differs("%s: the feed says of %s %s, and readers see %s: %s", m.name, name, d.second, d.first, d.path)
	}
}
