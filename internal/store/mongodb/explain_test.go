package mongodb

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// A recorder notes what a handle asks of tasks and joins, as find commands: the filters of updates and aggregations too.
type recorder struct {
	mu    sync.Mutex
	finds map[string]bson.D // by shape
}

func (r *recorder) note(_ context.Context, e *event.CommandStartedEvent) {
	var cmd bson.D
	if bson.Unmarshal(e.Command, &cmd) != nil || len(cmd) == 0 || cmd[0].Key != "aggregate" && !explained(cmd[0].Value) {
		return
	}
	of := cmd[0].Value
	r.mu.Lock()
	defer r.mu.Unlock()
	switch cmd[0].Key {
	case "find":
		find := d("find", of)
		for _, key := range []string{"filter", "sort", "limit", "hint"} {
			if v := field(cmd, key); v != nil {
				find = append(find, bson.E{Key: key, Value: v})
			}
		}
		r.finds[shape(find)] = find
	case "update":
		for _, u := range field(cmd, "updates").(bson.A) {
			find := d("find", of, "filter", field(u.(bson.D), "q"))
			r.finds[shape(find)] = find
		}
	case "aggregate":
		r.noteStages(of, field(cmd, "pipeline").(bson.A))
	}
}

// noteStages notes what a pipeline asks of tasks and joins, its own collection and others.
func (r *recorder) noteStages(of any, stages bson.A) {
	if match := field(stages[0].(bson.D), "$match"); match != nil && explained(of) {
		find := d("find", of, "filter", match)
		if len(stages) > 2 {
			if sort := field(stages[1].(bson.D), "$sort"); sort != nil {
				find = append(find, d("sort", sort, "limit", field(stages[2].(bson.D), "$limit"))...)
			}
		}
		r.finds[shape(find)] = find
	}
	for _, stage := range stages {
		if other, ok := field(stage.(bson.D), "$unionWith").(bson.D); ok {
			r.noteStages(field(other, "coll"), field(other, "pipeline").(bson.A))
		}
	}
}

// explained reports whether the plans of queries of a collection are looked at: there may be many documents in it.
func explained(collection any) bool { return collection == "tasks" || collection == "joins" }

// field returns what a document has under a key, nil if it has none.
func field(doc bson.D, key string) any {
	for _, e := range doc {
		if e.Key == key {
			return e.Value
		}
	}
	return nil
}

// shape is what two queries have in common that differ in their values only.
func shape(find bson.D) string {
	var s strings.Builder
	for _, e := range find {
		switch v := e.Value.(type) {
		case bson.D:
			fmt.Fprintf(&s, "%s(", e.Key)
			for _, f := range v {
				fmt.Fprintf(&s, "%s ", f.Key)
				op, _ := f.Value.(bson.D)
				for _, o := range op {
					fmt.Fprintf(&s, "%s ", o.Key)
					if values, _ := o.Value.(bson.A); len(values) > 100 { // to which PostgreSQL makes a difference
						s.WriteString("many ")
					}
				}
			}
			s.WriteString(") ")
		case string:
			fmt.Fprintf(&s, "%s=%s ", e.Key, v) // the collection and the hint
		}
	}
	return s.String()
}

// boundless matches the bounds of an index whose first field may be anything.
var boundless = regexp.MustCompile(`^(\["\w+": )?[\[(]MinKey, MaxKey[\])]`)

// used returns the indexes of a query plan, and the words in it for reading a whole collection or a whole index, of MongoDB's and of
// PostgreSQL's plans.
func used(v any, indexes, scans map[string]bool) {
	switch v := v.(type) {
	case string:
		if boundless.MatchString(v) {
			scans[v] = true
		}
	case bson.D:
		for _, e := range v {
			name, _ := e.Value.(string)
			switch e.Key {
			case "indexName", "Index Name":
				indexes[name] = true
			case "stage", "Node Type":
				if name == "COLLSCAN" || name == "Seq Scan" {
					scans[name] = true
				}
			case "IndexCosts", "rejectedPlans", "command":
				continue // of indexes that were thought of
			}
			used(e.Value, indexes, scans)
		}
	case bson.A:
		for _, e := range v {
			used(e, indexes, scans)
		}
	}
}

// TestQueriesUseTheirIndexes has a store do all that nodes make it do, and asks the server how it finds what each command is about. That a
// hint has it use an index does not say that it uses it to find something.
func TestQueriesUseTheirIndexes(t *testing.T) {
	uri, db := fresh(t)
	rec := &recorder{finds: map[string]bson.D{}}
	s := openMonitored(t, uri, &event.CommandMonitor{Started: rec.note})
	ctx, no := t.Context(), noError(t)
	live(t, s)
	if t.Failed() {
		return
	}
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(rec.finds)) {
		var answer bson.D
		no(db.RunCommand(ctx, d("explain", rec.finds[name], "verbosity", "queryPlanner")).Decode(&answer))
		indexes, scans := map[string]bool{}, map[string]bool{}
		used(answer, indexes, scans)
		t.Logf("%v: %s", slices.Sorted(maps.Keys(indexes)), name)
		if indexes[indexClaims] || indexes[indexApart] || indexes[indexGate] || indexes[indexMaking] || indexes[indexEnded] || indexes[indexStopped] { // what they have is what is looked for
			maps.DeleteFunc(scans, func(scan string, _ bool) bool { return boundless.MatchString(scan) })
		}
		if len(indexes) == 0 || len(scans) > 0 {
			t.Errorf("%s\n\tuses the indexes %v and %v, want an index and no scan", name, slices.Sorted(maps.Keys(indexes)), slices.Sorted(maps.Keys(scans)))
		}
		maps.Copy(seen, indexes)
	}
	for _, index := range []string{
		indexReady, indexNeeds, indexLate, indexPlan, indexOpen, indexList, indexAdding, indexMaking, indexClaims, indexApart, indexGate, indexDue,
		indexEnded, indexStopped, indexSubject, indexMtime, "queue_1_status_1", "_id_",
	} {
		if !seen[index] {
			t.Errorf("index %q was used by none of %d kinds of queries; used were %v", index, len(rec.finds), slices.Sorted(maps.Keys(seen)))
		}
	}
}

// live does something of everything that a store is for.
func live(t *testing.T, s *Store) {
	ctx, no := t.Context(), noError(t)
	spec := plan.New("nightly")
	for i := range 600 {
		task := plan.TaskSpec{Name: fmt.Sprint("t", i)}
		if i > 300 {
			task.Needs = []string{fmt.Sprint("t", i-301), fmt.Sprint("t", i-300)}
		}
		if i%2 > 0 {
			task.Queue = "other"
		}
		spec.Add(task)
	}
	many := plan.TaskSpec{Name: "many"}
	for i := range joinSize + 1 {
		many.Needs = append(many.Needs, fmt.Sprint("t", i))
	}
	spec.Add(many)
	spec.Add(plan.TaskSpec{Name: "copy", Foreach: &plan.Foreach{List: []byte(`[1,2,3]`)}})
	spec.Add(plan.TaskSpec{Name: "narrow", Queue: "narrow"})
	p, tasks, err := compiler.Compile(spec, time.Now(), func(n compiler.QueueNeed) (plan.QueueID, error) {
		q, err := s.EnsureQueue(ctx, plan.Queue{Name: n.Name, Plugin: "exec", Unlimited: n.Name != "narrow", Threads: 1})
		return q.ID, err
	})
	no(err)
	p, err = s.CreatePlan(ctx, p)
	no(err)
	no(s.AddTasks(ctx, p.ID, tasks))
	no(s.Ready(ctx, p.ID))
	id := plan.InstanceID{ID: plan.NewID(time.Now())}
	no(s.Register(ctx, plan.Instance{ID: id, Node: "n1", Plugins: []string{"exec"}}))
	turn := protocol.Turn{Instance: id, Slots: 150, Plugins: []string{"exec"}, Start: true}
	for range 3 {
		did, err := s.Turn(ctx, turn)
		no(err)
		turn.Ended = nil
		for _, c := range did.Claimed {
			turn.Ended = append(turn.Ended, protocol.Ending{Claim: c.Claim, Status: plan.Succeeded})
		}
		turn.Plan = p.ID
	}
	no(s.SetMaxThreads(ctx, "n1", 1000))
	_, err = s.Beat(ctx, protocol.Beat{Instance: id})
	no(err)
	turn.Ended[0].Status, turn.Ended[0].Delay = plan.Held, time.Hour
	turn.Ended[1].Status = plan.Failed
	_, err = s.Turn(ctx, turn)
	no(err)
	failed, err := s.Task(ctx, turn.Ended[1].Task)
	no(err)
	_, err = s.Retry(ctx, p.ID, rules.Ask{Tasks: []plan.TaskID{failed.ID}})
	no(err)
	for _, n := range []int{200, 2 * addAtOnce} {
		taken := map[bson.ObjectID]bool{}
		for range n {
			taken[bson.NewObjectID()] = true
		}
		no(s.checkBelow(ctx, oid(p.ID.ID), taken, rules.CheckBelow))
	}
	_, err = s.Tasks(ctx, store.TaskQuery{NoPlan: true, Subject: "order 7", Statuses: []plan.Status{plan.Held, plan.Queued}})
	no(err)
	late := make([]plan.Task, 200)
	for i := range late {
		late[i] = plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: fmt.Sprint("late", i), Queue: tasks[0].Queue, Needs: []plan.TaskID{tasks[599].ID}}
	}
	no(s.AddTasks(ctx, p.ID, late))
	_, err = s.Sweep(ctx, protocol.Sweep{Instance: id})
	no(err)
	_, err = s.Beat(ctx, protocol.Beat{Instance: id})
	no(err)
	_, _, err = s.Changes(ctx, "", 10)
	no(err)
	_, err = s.meta.UpdateByID(ctx, auditKey, d("$set", d("at", time.Now().Add(-2*rules.AuditEvery))))
	no(err)
	_, err = s.Sweep(ctx, protocol.Sweep{Instance: id})
	no(err)
	no(s.CancelPlan(ctx, p.ID, false))
	_, err = s.Rescue(ctx, id, -1)
	no(err)
	for {
		if now, err := s.Plan(ctx, p.ID); err != nil || now.State.Ended() {
			no(err)
			break
		}
		// Later sweeps cancel the rest.
		other := plan.InstanceID{ID: plan.NewID(time.Now())}
		no(s.Register(ctx, plan.Instance{ID: other, Node: "n2"}))
		_, err := s.Sweep(ctx, protocol.Sweep{Instance: other})
		no(err)
	}
	for i := range 101 {
		_, err := s.CreatePlan(ctx, plan.Plan{Name: fmt.Sprint("p", i)})
		no(err)
	}
	_, err = s.Plans(ctx, store.PlanQuery{})
	no(err)
	gone, err := s.CreatePlan(ctx, plan.Plan{Name: "gone"})
	no(err)
	no(s.Ready(ctx, gone.ID))
	for more := true; more; {
		more, err = s.DeletePlan(ctx, gone.ID, 500)
		no(err)
	}
}
