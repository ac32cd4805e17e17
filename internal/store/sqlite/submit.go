package sqlite

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func (s *Store) CreatePlan(ctx context.Context, p plan.Plan) (made plan.Plan, err error) {
	if err := cmp.Or(rules.CheckPlanParams(len(p.Params)), rules.CheckFile(p.File)); err != nil {
		return plan.Plan{}, err
	}
	p.Retried = time.Time{}
	def, err := packPlan(&p)
	if err != nil {
		return plan.Plan{}, err
	}
	err = s.write(ctx, func(t *tx) error {
		if p.ID.IsZero() {
			p.ID.ID = plan.NewID(t.at)
		}
		r := t.query("SELECT "+wholeColumns+" FROM plans WHERE id = ? OR key = NULLIF(?, '')", p.ID.ID[:], p.Key)
		if r.one() {
			made = r.wholePlan()
			return nil
		}
		if err := rules.CheckOverlap(&p, t.otherRun(&p)); err != nil {
			return err
		}
		t.exec("INSERT INTO runs VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET run = run + 1", p.Name)
		t.exec(`INSERT INTO plans (id, name, run, state, on_failure, params, source, own, keep, size, created, modified, key, def, overlap, priority, timeout, finally)
			VALUES (?1, ?2, (SELECT run FROM runs WHERE name = ?2), ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, NULLIF(?12, ''), ?13, ?14, ?15, ?16, ?17)`,
			p.ID.ID[:], p.Name, int64(plan.PlanSubmitting), string(p.OnFailure), []byte(p.Params), p.Source, p.Own, int64(p.Keep), p.Size, t.now, t.now, p.Key, def, string(p.Overlap), p.Priority, int64(p.Timeout), p.Finally)
		row, err := t.planByID(p.ID)
		if err != nil {
			return err
		}
		if p.File != (plan.File{}) {
			t.exec("INSERT INTO files (plan, text, dir) VALUES (?, ?, ?)", row.n, p.File.Text, p.File.Dir)
		}
		t.shown = append(t.shown, row.n)
		made = row.Plan
		made.Params, made.Secrets, made.By, made.Request = p.Params, p.Secrets, p.By, p.Request
		return nil
	})
	if err != nil {
		return plan.Plan{}, err
	}
	return made, nil
}

// otherRun returns what rules.CheckOverlap asks about.
func (t *tx) otherRun(p *plan.Plan) *plan.Plan {
	if p.Overlap != plan.OverlapSkip {
		return nil
	}
	r := t.query("SELECT "+planColumns+" FROM plans INDEXED BY plans_unended WHERE name = ? AND ended = 0 AND id <> ? LIMIT 1", p.Name, p.ID.ID[:])
	if !r.one() {
		return nil
	}
	return &r.plan().Plan
}

const (
	insertAtOnce = 1000   // tasks that one transaction inserts, so that nobody waits long for the next one
	submitBatch  = 10_000 // tasks that a submission best hands over at once
)

// SubmitBatch returns how many tasks of a submission are best handed over at once: all of them are looked at together, and flushed to the
// disk together.
func (s *Store) SubmitBatch() int { return submitBatch }

// AddTasks implements store.Admin. More than insertAtOnce tasks are checked together, and inserted
// by several transactions, which are flushed to the disk together. If one of these is refused, the
// tasks before it stay: others may have claimed them by then.
func (s *Store) AddTasks(ctx context.Context, id plan.PlanID, tasks []plan.Task) error {
	var added []addition
	done, total, stale, wrote := 0, 0, false, false
	for first := true; first || done < len(added); first = false {
		w, err := s.commit(ctx, func(t *tx) error {
			p, err := t.takingPlan(id)
			if err != nil {
				return err
			}
			if first {
				if added, err = t.check(p, tasks); err != nil {
					return err
				}
			}
			// While a plan is submitted all that can come between is that somebody else adds tasks to it.
			stale = stale || !first && (p == nil || p.State != plan.PlanSubmitting || p.Counts.Stored() != total)
			batch, from := added[:min(done+insertAtOnce, len(added))], done
			if done = len(batch); stale {
				again := make([]plan.Task, 0, insertAtOnce)
				for i := range batch[from:] {
					again = append(again, *batch[from+i].Task)
				}
				from = 0
				if batch, err = t.check(p, again); err != nil {
					return err
				}
			}
			if from < len(batch) {
				t.addTasks(p, batch, from)
			}
			if p != nil {
				total = p.Counts.Stored()
			}
			return nil
		})
		if err != nil {
			return err
		}
		wrote = wrote || w
	}
	if wrote {
		return s.wal.sync()
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
	return p, rules.CheckTakesTasks(&p.Plan)
}

// sameAtOnce is how many tasks are read whole to be compared.
const sameAtOnce = 100

// addition is a task that is to be added, with what check found out about it.
type addition struct {
	*plan.Task
	n       int64 // once it is in
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
	var again []same
	var of *plan.Plan
	var id plan.PlanID
	if p != nil {
		of, id = &p.Plan, p.ID
	}
	for i := range tasks {
		a := addition{Task: &tasks[i]}
		switch at, twice := place[a.ID]; {
		case a.ID.IsZero():
			return nil, fmt.Errorf("task %q has no id; mint one", a.Name)
		case there.has(a.ID):
			again = append(again, same{again: a.Task})
			continue
		case twice:
			again = append(again, same{added[at].Task, a.Task})
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
		if err := rules.CheckAdded(a.Task, of); err != nil {
			return nil, err
		}
		for _, need := range a.Needs {
			if at, here := place[need]; here {
				if err := rules.CheckNeed(a.Task, id, need, &rules.Needed{Plan: id, Finally: added[at].Finally}); err != nil {
					return nil, err
				}
				a.parents = append(a.parents, addedParent{place: at})
				continue
			}
			var needed *rules.Needed
			parent, is := there.parents[need]
			if is && !parent.goes {
				needed = &rules.Needed{Plan: parent.plan, Item: parent.item, Finally: parent.finally}
			}
			if err := rules.CheckNeed(a.Task, id, need, needed); err != nil {
				return nil, err
			}
			a.parents = append(a.parents, addedParent{n: parent.n})
		}
		place[a.ID] = int64(len(added))
		added = append(added, a)
	}
	return added, t.checkSame(p, again)
}

// same is a task that is to be added again, and the one that is there; nil: it is in the store.
type same struct{ there, again *plan.Task }

// checkSame refuses tasks whose ids others have.
func (t *tx) checkSame(p *planRow, all []same) error {
	var queues []plan.Queue
	if len(all) > 0 {
		for r := t.query("SELECT " + queueColumns + " FROM queues AS whole WHERE settings <> ''"); r.next(); {
			queues = append(queues, r.queue().Queue)
		}
	}
	secrets := secret.Of(queues)
	for chunk := range slices.Chunk(all, sameAtOnce) {
		var ids []plan.TaskID
		for i := range chunk {
			if chunk[i].there == nil {
				ids = append(ids, chunk[i].again.ID)
			}
		}
		stored := map[plan.TaskID]*plan.Task{}
		if len(ids) > 0 {
			w, index := taskQuery(&store.TaskQuery{IDs: ids})
			found, err := t.readTasks(w, index, store.TaskQuery{Needs: true, Params: true, Limit: len(ids)})
			if err != nil {
				return err
			}
			for i := range found {
				stored[found[i].ID] = &found[i].Task
			}
		}
		for i := range chunk {
			there, again := chunk[i].there, *chunk[i].again
			if again.Plan = (plan.PlanID{}); p != nil {
				again.Plan = p.ID
			}
			if there == nil {
				there = stored[again.ID]
			} else {
				first := *there
				first.Plan, there = again.Plan, &first
			}
			if there == nil {
				continue // the connection's error says more
			}
			if err := secret.CheckSame(there, &again, secrets); err != nil {
				return err
			}
		}
	}
	return t.err
}

// known is what is there already of what tasks name.
type known struct {
	parents map[plan.TaskID]knownTask // the tasks themselves, and parents
	names   map[string]bool           // taken in the plan, by others
}

// knownTask is what is asked of a task that is there.
type knownTask struct {
	n    int64
	plan plan.PlanID
	item bool
	goes bool // it is handed over, or is being deleted
	// finally says that it is a task of finally.
	finally bool
}

func (k *known) has(id plan.TaskID) bool { return k.parents[id].n != 0 }

func (t *tx) known(p *planRow, tasks []plan.Task) (known, error) {
	k := known{parents: map[plan.TaskID]knownTask{}, names: map[string]bool{}}
	asked := make(map[plan.TaskID]bool, len(tasks))
	ids := make([]plan.TaskID, len(tasks))
	for i := range tasks {
		ids[i], asked[tasks[i].ID] = tasks[i].ID, true
	}
	seen := maps.Clone(asked)
	for i := range tasks {
		for _, need := range tasks[i].Needs {
			if !seen[need] {
				seen[need] = true
				ids = append(ids, need)
			}
		}
	}
	var r *rows
	const knownColumns = "SELECT t.n, t.id, p.id, t.of <> 0, t.plan = 0 AND EXISTS (SELECT 1 FROM rolled AS r WHERE r.task = t.n), t.flags FROM tasks AS t LEFT JOIN plans AS p ON p.n = t.plan WHERE t.id "
	if least, most, ok := dense(ids); ok {
		r = t.query(knownColumns+"BETWEEN ? AND ?", least[:], most[:])
	} else {
		r = t.query(knownColumns+"IN (SELECT unhex(value) FROM json_each(?))", listIDs(ids))
	}
	for r.next() {
		k.parents[plan.TaskID{ID: r.id(1)}] = knownTask{r.int(0), plan.PlanID{ID: r.id(2)}, r.bool(3), r.bool(4), r.int(5)&flagFinally != 0}
	}
	if p == nil || p.Counts.Stored() == 0 {
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

// dense returns the least and the greatest of ids, and whether they leave out so few between them that to read what is there of all is
// cheaper than to look for each: those of a plan were minted together.
func dense(ids []plan.TaskID) (least, most plan.ID, ok bool) {
	if len(ids) == 0 {
		return least, most, false
	}
	least, most = ids[0].ID, ids[0].ID
	for _, id := range ids {
		if bytes.Compare(id.ID[:], least[:]) < 0 {
			least = id.ID
		}
		if bytes.Compare(id.ID[:], most[:]) > 0 {
			most = id.ID
		}
	}
	const high = len(least) - 8
	gap := binary.BigEndian.Uint64(most[high:]) - binary.BigEndian.Uint64(least[high:])
	return least, most, bytes.Equal(least[:high], most[:high]) && gap < 3*uint64(len(ids))
}

// addTasks inserts tasks, from a place on, and releases those that can be, unless their plan is being submitted.
func (t *tx) addTasks(p *planRow, all []addition, from int) {
	added := all[from:]
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
	var in inserts
	var edges []edge
	var withParents []int64
	for i := range added {
		a := &added[i]
		a.n = x.n
		x.queue, x.hold, x.flags, x.parents = a.queue, forPlan, 0, nil
		if len(a.parents) > 0 {
			x.hold = forParents
			if _, err := rules.Deliver(a.Params, nil); err != nil {
				x.flags = flagBadParams
			}
			x.parents = addEdges(&in, &edges, all, a)
			withParents = append(withParents, x.n)
		}
		if a.Finally {
			x.hold = forEnd
		}
		rows[i] = t.rowsOf(&in, a.Task, x)
		t.count(&rows[i])
		x.n++
	}
	t.insertEdges(&in, edges)
	t.insertRows(insertTask, in.tasks)
	t.insertRows(insertBody, in.bodies)
	if len(withParents) > 0 && (p == nil || p.Counts.Unfinished() < p.Counts.Stored()) { // else no parent can have finished
		t.decideAll(t.recount(withParents))
	}
	if submitting {
		return
	}
	roots := rows[:0]
	for _, r := range rows {
		if r.hold == forPlan {
			r.all = true
			roots = append(roots, r)
		}
	}
	t.settle(roots)
	t.work()
}

// addEdges makes a task's edges, and its join with all of its parents to wait for. It returns the parents.
func addEdges(in *inserts, edges *[]edge, all []addition, a *addition) []int64 {
	parents := make([]int64, len(a.parents))
	for i, p := range a.parents {
		if p.n == 0 {
			p.n = all[p.place].n
		}
		parents[i] = p.n
	}
	each := parents // a parent that is named twice is waited for once
	if len(parents) > 1 {
		each = distinct(slices.Clone(parents))
	}
	for _, p := range each {
		*edges = append(*edges, edge{p, a.n})
	}
	in.joins = append(in.joins, a.n, newJoin(a.n, len(each), a.When, a.Foreach != nil && len(a.Foreach.Each) > 0).waits)
	return parents
}

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
		if err := rules.CheckReady(&p.Plan, p.Counts.Stored()); err != nil {
			return err
		}
		p.State = plan.PlanRunning
		rules.Begin(&p.Plan, t.at)
		t.touch(p)
		t.add(jobRoots, p.n)
		t.work()
		return nil
	})
}

// abandon ends submissions that died half-way, and leaves their tasks to be deleted.
func (t *tx) abandon() {
	var dead []*planRow
	for r := t.query("SELECT "+planColumns+" FROM plans INDEXED BY plans_submitting WHERE state = -4 AND modified < ?1 AND leaving = 0 AND modified + "+lateBy("plans.modified")+" < ?1",
		t.now-rules.AbandonAfter.Microseconds()); r.next(); {
		dead = append(dead, r.plan())
	}
	for _, p := range dead {
		if p.Closing != plan.Open {
			continue // a person has cancelled it: it ends so
		}
		p = t.plan(p.n) // whose counts this transaction may have changed
		p.State, p.Ended = plan.PlanAbandoned, t.at
		t.dropPack(p)
		t.touch(p)
		t.add(jobForget, p.n)
	}
}
