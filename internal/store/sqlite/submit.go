package sqlite

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/seed-1177d267/sluice/plan"
)

// CreatePlan implements store.Admin.
func (s *Store) CreatePlan(ctx context.Context, p plan.Plan) (made plan.Plan, err error) {
	err = s.write(ctx, func(t *tx) error {
		if p.ID.IsZero() {
			p.ID.ID = plan.NewID(t.at)
		}
		r := t.query("SELECT "+planColumns+", params FROM plans WHERE id = ? OR key = NULLIF(?, '')", p.ID.ID[:], p.Key)
		if r.one() {
			made = r.plan().Plan
			made.Params = r.bytes(planWidth)
			return nil
		}
		t.exec("INSERT INTO runs VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET run = run + 1", p.Name)
		t.exec(`INSERT INTO plans (id, name, run, state, on_failure, params, source, own, keep, size, created, modified, key)
			VALUES (?1, ?2, (SELECT run FROM runs WHERE name = ?2), ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, NULLIF(?12, ''))`,
			p.ID.ID[:], p.Name, int64(plan.PlanSubmitting), string(p.OnFailure), []byte(p.Params), p.Source, p.Own, int64(p.Keep), p.Size, t.now, t.now, p.Key)
		row, err := t.planByID(p.ID)
		if err != nil {
			return err
		}
		t.shown = append(t.shown, row.n)
		made = row.Plan
		made.Params = p.Params
		return nil
	})
	if err != nil {
		return plan.Plan{}, err
	}
	return made, nil
}

// submitBatch is how many tasks one transaction inserts, so that nobody waits long for the next one.
const submitBatch = 1000

// AddTasks implements store.Admin. More than submitBatch tasks are checked together, and inserted by several transactions. What is in when
// one of them is refused stays in: others may have claimed it by then.
func (s *Store) AddTasks(ctx context.Context, id plan.PlanID, tasks []plan.Task) error {
	for first := true; first || len(tasks) > 0; first = false {
		batch := tasks[:min(submitBatch, len(tasks))]
		err := s.write(ctx, func(t *tx) error {
			p, err := t.takingPlan(id)
			if err != nil {
				return err
			}
			if first && len(tasks) > len(batch) {
				if _, err := t.check(p, tasks); err != nil {
					return err
				}
			}
			added, err := t.check(p, batch)
			if err != nil || len(added) == 0 {
				return err
			}
			t.addTasks(p, added)
			return nil
		})
		if err != nil {
			return err
		}
		tasks = tasks[len(batch):]
	}
	return nil
}

// takingPlan returns the plan if it takes tasks; nil for none.
func (t *tx) takingPlan(id plan.PlanID) (*planRow, error) {
	if id.IsZero() {
		return nil, nil
	}
	p, err := t.planByID(id)
	if err != nil {
		return nil, err
	}
	if p.State.Ended() || p.Closing != plan.Open {
		return nil, fmt.Errorf("plan %s is %v and takes no tasks: %w", p.Title(), p.State, plan.ErrPlanEnded)
	}
	return p, nil
}

// addition is a task that is to be added, with what check found out about it.
type addition struct {
	*plan.Task
	queue   int64
	parents []addedParent
}

// addedParent is a parent by its n, or, among the tasks added with it, by its place.
type addedParent struct {
	n, place int64
}

// check returns those of the tasks that are not there yet, or what is wrong with them. It changes nothing.
func (t *tx) check(p *planRow, tasks []plan.Task) ([]addition, error) {
	there, err := t.known(p, tasks)
	if err != nil {
		return nil, err
	}
	added := make([]addition, 0, len(tasks))
	place := make(map[plan.TaskID]int64, len(tasks))
	names := make(map[string]bool, len(tasks))
	queues := map[plan.QueueID]int64{}
	for i := range tasks {
		a := addition{Task: &tasks[i]}
		switch _, twice := place[a.ID]; {
		case a.ID.IsZero():
			return nil, fmt.Errorf("task %q has no id; mint one", a.Name)
		case there.tasks[a.ID] != 0 || twice:
			continue
		case p != nil && (there.names[a.Name] || names[a.Name]):
			return nil, fmt.Errorf("task %q of plan %s: %w", a.Name, p.Title(), plan.ErrExists)
		}
		names[a.Name] = true
		if a.queue = queues[a.Queue]; a.queue == 0 {
			if a.queue, err = t.queueNumber(a.Queue); err != nil {
				return nil, fmt.Errorf("task %q: %w", a.Key(), err)
			}
			queues[a.Queue] = a.queue
		}
		if len(a.Needs) > 0 {
			a.parents = make([]addedParent, 0, len(a.Needs))
		}
		for _, need := range a.Needs {
			at, here := place[need]
			n := there.tasks[need]
			if !here && n == 0 {
				return nil, fmt.Errorf("task %q needs task %s: %w", a.Key(), need, plan.ErrNotFound)
			}
			if here {
				n = 0
			}
			a.parents = append(a.parents, addedParent{n: n, place: at})
		}
		place[a.ID] = int64(len(added))
		added = append(added, a)
	}
	return added, nil
}

// known is what is there already of what tasks name.
type known struct {
	tasks map[plan.TaskID]int64 // tasks, and parents that they may have, by id
	names map[string]bool       // taken in the plan, by others
}

func (t *tx) known(p *planRow, tasks []plan.Task) (known, error) {
	k := known{tasks: map[plan.TaskID]int64{}, names: map[string]bool{}}
	mine := make(map[plan.TaskID]bool, len(tasks))
	var ids []plan.TaskID
	for i := range tasks {
		mine[tasks[i].ID] = true
		ids = append(ids, tasks[i].ID)
	}
	for i := range tasks {
		for _, need := range tasks[i].Needs {
			if !mine[need] {
				mine[need] = true
				ids = append(ids, need)
			}
		}
	}
	asked := make(map[plan.TaskID]bool, len(tasks))
	for i := range tasks {
		asked[tasks[i].ID] = true
	}
	var leaving map[int64]bool
	if p == nil {
		leaving = t.leaving()
	}
	for r := t.query("SELECT n, id, plan FROM tasks WHERE id IN (SELECT unhex(value) FROM json_each(?))", listIDs(ids)); r.next(); {
		// A parent of another plan is none, nor is one of a plan that is being deleted; a task that is there is, whatever its plan.
		if id, of := (plan.TaskID{ID: r.id(1)}), r.int(2); asked[id] || p != nil && of == p.n || p == nil && !leaving[of] {
			k.tasks[id] = r.int(0)
		}
	}
	if p == nil || p.Counts.Total() == 0 {
		return k, t.err
	}
	names := make([]string, len(tasks))
	for i := range tasks {
		names[i] = tasks[i].Name
	}
	b, err := json.Marshal(names)
	if err != nil {
		return k, err
	}
	for r := t.query("SELECT name, id FROM tasks INDEXED BY tasks_name WHERE plan = ? AND plan <> 0 AND name IN (SELECT value FROM json_each(?))",
		p.n, string(b)); r.next(); {
		if !asked[plan.TaskID{ID: r.id(1)}] {
			k.names[r.text(0)] = true
		}
	}
	return k, t.err
}

// listIDs writes ids as a JSON list of their digits.
func listIDs(ids []plan.TaskID) string {
	b := make([]byte, 0, 27*len(ids)+2)
	b = append(b, '[')
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = hex.AppendEncode(b, id.ID[:])
		b = append(b, '"')
	}
	return string(append(b, ']'))
}

func (t *tx) queueNumber(id plan.QueueID) (int64, error) {
	r := t.query("SELECT n FROM queues WHERE id = ? AND "+isQueue, id.ID[:])
	if !r.one() {
		return 0, fmt.Errorf("queue %s: %w", id, plan.ErrNotFound)
	}
	return r.int(0), nil
}

// addTasks inserts tasks, and releases those that can be, unless their plan is being submitted.
func (t *tx) addTasks(p *planRow, added []addition) {
	first := t.number(int64(len(added)))
	x := newTask{n: first}
	submitting := false
	if p != nil {
		x.plan = p.n
		if submitting = p.State == plan.PlanSubmitting; !submitting {
			p.Edits++
		}
		t.touch(p)
	}
	rows := make([]taskRow, len(added))
	var withParents []int64
	for i := range added {
		a := &added[i]
		x.queue, x.gate, x.flags, x.parents = a.queue, gateNone, 0, nil
		if len(a.parents) > 0 {
			x.gate = gateParents
			if _, err := plan.Deliver(a.Params, nil); err != nil {
				x.flags = flagBadParams
			}
			x.parents = t.insertEdges(x.n, first, a, p == nil)
			withParents = append(withParents, x.n)
		}
		rows[i] = t.insert(a.Task, x)
		x.n++
	}
	if len(withParents) > 0 && (p == nil || p.Counts.Unfinished() < p.Counts.Total()) { // else no parent can have finished
		t.decideAll(t.recount(withParents))
	}
	if submitting {
		return
	}
	for i := range rows {
		if rows[i].gate == gateNone {
			t.decide(&rows[i], 0, true)
		}
	}
	t.work()
}

// insertEdges inserts a task's edges, and its gate with all of its parents to wait for. It returns the parents.
func (t *tx) insertEdges(n, first int64, a *addition, outside bool) []int64 {
	parents := make([]int64, len(a.parents))
	waits := 0
	for i, p := range a.parents {
		if p.n == 0 {
			p.n = first + p.place
		}
		parents[i] = p.n
		// A parent that is named twice is waited for once.
		waits += int(t.exec("INSERT OR IGNORE INTO kids (parent, child) VALUES (?, ?)", p.n, n))
		if outside {
			t.exec("UPDATE plans SET shared = 1 WHERE n = (SELECT plan FROM tasks WHERE n = ?) AND shared = 0", p.n)
		}
	}
	t.exec("INSERT INTO gates (n, waits, bytes, largest) VALUES (?, ?, 0, 0)", n, newGate(n, waits, a.When).waits)
	return parents
}

// Ready implements store.Admin.
func (s *Store) Ready(ctx context.Context, id plan.PlanID) error {
	return s.write(ctx, func(t *tx) error {
		p, err := t.planByID(id)
		switch {
		case err != nil:
			return err
		case p.State == plan.PlanAbandoned, p.State == plan.PlanSubmitting && p.Closing != plan.Open:
			return fmt.Errorf("plan %s: %w", p.Title(), plan.ErrPlanEnded)
		case p.State != plan.PlanSubmitting:
			return nil
		}
		if err := p.CheckReady(p.Counts.Total()); err != nil {
			return err
		}
		p.State = plan.PlanRunning
		t.touch(p)
		t.add(jobRoots, p.n)
		t.work()
		return nil
	})
}

// abandon ends submissions that died half-way, and leaves their tasks to be deleted.
func (t *tx) abandon() {
	var dead []*planRow
	for r := t.query("SELECT "+planColumns+" FROM plans INDEXED BY plans_submitting WHERE state = -4 AND modified < ? AND leaving = 0",
		t.now-plan.AbandonAfter.Microseconds()); r.next(); {
		dead = append(dead, r.plan())
	}
	for _, p := range dead {
		if p.Closing != plan.Open {
			continue // a person has cancelled it: it ends so
		}
		t.plans[p.n] = p
		p.State, p.Ended = plan.PlanAbandoned, t.at
		t.touch(p)
		t.add(jobForget, p.n)
	}
}
