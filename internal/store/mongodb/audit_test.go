package mongodb

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/mongotest"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// neglects are what may be lost of the bookkeeping of a plan, so that nobody knows what is to be done
// next. Damage that a walk meets by itself is not among them: see damageAll.
var neglects = []struct {
	name   string
	tasks  []plan.TaskSpec
	damage func(r *rescued, task func(name string) bson.D)
}{
	{"the children of a finished task were never looked at", []plan.TaskSpec{{Name: "a"}, {Name: "b", Needs: []string{"a"}}}, func(r *rescued, task func(string) bson.D) {
		r.set(r.s.tasks, task("a"), d("$set", d("status", plan.Succeeded, "complete", true, "ended", time.Now()), "$unset", d("open", 1)))
	}},
	{"a child of many was never looked at", manyParents(), func(r *rescued, task func(string) bson.D) {
		r.set(r.s.tasks, d("plan", oid(r.plan.ID.ID), "name", d("$ne", "wide")),
			d("$set", d("status", plan.Succeeded, "complete", true, "ended", time.Now()), "$unset", d("open", 1)))
	}},
	{"a task without parents was never looked at", []plan.TaskSpec{{Name: "a"}}, func(r *rescued, task func(string) bson.D) {
		r.set(r.s.tasks, task("a"), d("$set", d("status", plan.Held, "hold", holdNeeds)))
	}},
	{"a delayed task without parents was never looked at", []plan.TaskSpec{{Name: "a"}}, func(r *rescued, task func(string) bson.D) {
		r.set(r.s.tasks, task("a"), d("$set", d("status", plan.Held, "hold", holdNeeds, "notbefore", time.Now().Add(-time.Hour))))
	}},
	{"a task is held by a retry that is gone", []plan.TaskSpec{{Name: "a"}, {Name: "b", Needs: []string{"a"}}}, func(r *rescued, task func(string) bson.D) {
		r.set(r.s.tasks, task("a"), d("$set", d("status", plan.Held, "hold", holdRetry)))
	}},
	{"items were never queued", []plan.TaskSpec{{Name: "a", Foreach: &plan.Foreach{List: []byte("[1,2]")}}}, func(r *rescued, task func(string) bson.D) {
		r.set(r.s.tasks, task("a[0]"), d("$set", d("status", plan.Held, "hold", holdItem)))
	}},
	{"items were never made", []plan.TaskSpec{{Name: "a", Foreach: &plan.Foreach{List: []byte("[1,2]")}}, {Name: "b", Needs: []string{"a"}}}, func(r *rescued, task func(string) bson.D) {
		_, err := r.s.tasks.DeleteMany(r.Context(), d("plan", oid(r.plan.ID.ID), "of", d("$exists", true)))
		r.no(err)
		r.set(r.s.tasks, task("a"), d("$unset", d("expanded", 1, "inserted", 1, "released", 1)))
	}},
	{"the end of items was never looked at", []plan.TaskSpec{{Name: "a", Foreach: &plan.Foreach{List: []byte("[1,2]")}}}, func(r *rescued, task func(string) bson.D) {
		r.set(r.s.tasks, d("plan", oid(r.plan.ID.ID), "of", d("$exists", true)),
			d("$set", d("status", plan.Succeeded, "complete", true, "ended", time.Now()), "$unset", d("open", 1)))
	}},
	{"a delay has no instant", []plan.TaskSpec{{Name: "a"}}, func(r *rescued, task func(string) bson.D) {
		r.set(r.s.tasks, task("a"), d("$set", d("status", plan.Held, "hold", holdDelay)))
	}},
	{"the end of a plan was never looked at", []plan.TaskSpec{{Name: "a"}}, func(r *rescued, task func(string) bson.D) {
		r.set(r.s.tasks, task("a"), d("$set", d("status", plan.Succeeded, "complete", true, "ended", time.Now()), "$unset", d("open", 1)))
	}},
	{"a list of items is left", []plan.TaskSpec{{Name: "a"}}, func(r *rescued, task func(string) bson.D) {
		_, err := r.s.items.InsertOne(r.Context(), listDoc{ID: "x/0", Task: oid(r.plan.ID.ID), List: "x", Items: []text{text("1")}})
		r.no(err)
	}},
}

func manyParents() (tasks []plan.TaskSpec) {
	wide := plan.TaskSpec{Name: "wide"}
	for i := range joinSize + 1 {
		wide.Needs = append(wide.Needs, fmt.Sprint("t", i))
		tasks = append(tasks, plan.TaskSpec{Name: wide.Needs[i]})
	}
	return append(tasks, wide)
}

func (r *rescued) set(c *mongo.Collection, filter, update bson.D) {
	r.Helper()
	res, err := c.UpdateMany(r.Context(), filter, update)
	if r.no(err); res.MatchedCount == 0 {
		r.Fatalf("nothing matches %v", filter)
	}
}

// TestAnAuditFindsWhatNoNoteSays damages the bookkeeping of a plan, deletes all notes, and has a node audit it when that is due.
func TestAnAuditFindsWhatNoNoteSays(t *testing.T) {
	s, db, no := openTest(t)
	for _, n := range neglects {
		t.Run(n.name, func(t *testing.T) {
			r := newRescued(t, s, plan.Continue, n.tasks...)
			no(s.Leave(t.Context(), r.victim))
			_, err := s.work.DeleteMany(t.Context(), d())
			no(err)
			n.damage(r, func(name string) bson.D { return d("plan", oid(r.plan.ID.ID), "name", name) })
			_, err = s.plans.UpdateMany(t.Context(), d("_id", oid(r.plan.ID.ID)), d("$unset", d("fresh", 1)))
			no(err)
			_, err = s.tasks.UpdateMany(t.Context(), d("plan", oid(r.plan.ID.ID)), d("$unset", d("adding", 1, "making", 1)))
			no(err)
			id := r.node()
			for range 2 { // the first notes when an audit was made last, where none was
				_, err = s.Sweep(t.Context(), protocol.Sweep{Instance: id})
				no(err)
				mongotest.Pass(t, db, rules.AuditEvery)
			}
			_, err = s.Sweep(t.Context(), protocol.Sweep{Instance: id})
			no(err)
			no(s.Leave(t.Context(), id))
			r.heal("after an audit")
		})
	}
}

// TestAnAuditMendsAllOfAPlanAtOnce has a plan that notes a retry which is not there. Besides, the items of a task are said to have ended: whoever
// cancels the plan, after the audit or before, has to find them running.
func TestAnAuditMendsAllOfAPlanAtOnce(t *testing.T) {
	for _, closed := range []bool{false, true} {
		t.Run(fmt.Sprint("closed ", closed), func(t *testing.T) { auditAtOnce(t, closed) })
	}
}

func auditAtOnce(t *testing.T, closed bool) {
	s, db, no := openTest(t)
	r := newRescued(t, s, plan.Continue, plan.TaskSpec{Name: "a", Foreach: &plan.Foreach{List: []byte("[1,2]")}})
	no(s.Leave(t.Context(), r.victim))
	id := r.node()
	sweep := func() {
		t.Helper()
		_, err := s.Sweep(t.Context(), protocol.Sweep{Instance: id})
		no(err)
	}
	sweep() // notes when an audit was made last
	did, err := s.Turn(t.Context(), protocol.Turn{Instance: id, Slots: 2, Start: true, Plugins: []string{"exec"}, Plan: r.plan.ID})
	no(err)
	if closed {
		no(s.CancelPlan(t.Context(), r.plan.ID, false))
	}
	r.set(s.plans, d("_id", oid(r.plan.ID.ID)), d("$set", d("retry", bson.NewObjectID())))
	r.set(s.joins, d("plan", oid(r.plan.ID.ID)), d("$set", d("done", true, "seen", rules.OutcomeSucceeded)))
	mongotest.Pass(t, db, rules.AuditEvery)
	holding := make([]plan.TaskID, len(did.Claimed))
	for i, c := range did.Claimed {
		holding[i] = c.Task
	}
	_, err = s.Sweep(t.Context(), protocol.Sweep{Instance: id, Holding: holding})
	no(err)
	p, err := wire.FindOne[planDoc](t.Context(), s.plans, d("_id", oid(r.plan.ID.ID)), wire.Query{})
	no(err)
	done, err := s.joins.CountDocuments(t.Context(), d("done", true))
	no(err)
	if !p.Retry.IsZero() || done > 0 || p.State != plan.PlanRunning || len(did.Claimed) == 0 {
		t.Errorf("after an audit the plan is %v and notes the retry %v, and %d joins are said to be done, while %d tasks run; want it running without any",
			p.State, p.Retry, done, len(did.Claimed))
	}
}

// TestAnAuditOfTasksOfNoPlan has a task of no plan whose parent's end was noted nowhere.
func TestAnAuditOfTasksOfNoPlan(t *testing.T) {
	s, db, no := openTest(t)
	id := flatPlan(t, s, 0)
	q, err := s.EnsureQueue(t.Context(), plan.Queue{Name: "q"})
	no(err)
	parent := plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Queue: q.ID}
	child := plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Queue: q.ID, Needs: []plan.TaskID{parent.ID}}
	no(s.AddTasks(t.Context(), plan.PlanID{}, []plan.Task{parent, child}))
	_, err = s.tasks.UpdateByID(t.Context(), oid(parent.ID.ID), d("$set", d("status", plan.Succeeded, "complete", true), "$unset", d("open", 1)))
	no(err)
	for _, want := range []plan.Status{plan.Held, plan.Queued} { // the first sweep notes that there was none yet
		_, err = s.Sweep(t.Context(), protocol.Sweep{Instance: id})
		no(err)
		if got, err := s.Task(t.Context(), child.ID); err != nil || got.Status != want {
			t.Errorf("the child is %v, %v; want %v", got.Status, err, want)
		}
		mongotest.Pass(t, db, rules.AuditEvery)
	}
}

// TestAnAuditIsMadeByOneNodeAndSeldom counts what sweeps of two nodes look at.
func TestAnAuditIsMadeByOneNodeAndSeldom(t *testing.T) {
	s, plans := counting(t)
	no := noError(t)
	var nodes []plan.InstanceID
	for _, name := range []plan.NodeName{"n1", "n2"} {
		id := plan.InstanceID{ID: plan.NewID(time.Now())}
		no(s.Register(t.Context(), plan.Instance{ID: id, Node: name}))
		nodes = append(nodes, id)
	}
	var docs []any
	for i := range auditPlans + 20 {
		docs = append(docs, planDoc{ID: bson.NewObjectID(), Name: "p", Run: i + 1, Ctime: time.Now(), Mtime: time.Now(), State: plan.PlanRunning, Retry: bson.NewObjectID()})
	}
	_, err := s.plans.InsertMany(t.Context(), docs)
	no(err)
	_, err = s.retries.InsertMany(t.Context(), func() (retries []any) { // so that an audit asks no more of them
		for _, p := range docs {
			retries = append(retries, retryDoc{ID: p.(planDoc).Retry, Retry: p.(planDoc).Retry, Plan: p.(planDoc).ID, N: 1, At: time.Now()})
		}
		return retries
	}())
	no(err)
	var looked []int64 // by the sweeps that look at any
	sweep := func(passes time.Duration) {
		for _, id := range nodes {
			mongotest.Pass(t, s.DB, passes)
			plans.Store(0)
			_, err := s.Sweep(t.Context(), protocol.Sweep{Instance: id})
			if no(err); plans.Load() > 0 {
				looked = append(looked, plans.Load())
			}
		}
	}
	want := func(when string, want ...int64) {
		t.Helper()
		if !slices.Equal(looked, want) {
			t.Errorf("%s sweeps look at %d plans, want %d", when, looked, want)
		}
	}
	sweep(0)
	want("where no audit was ever made")
	sweep(rules.AuditEvery / 4)
	want("before one is due")
	sweep(rules.AuditEvery / 2)
	sweep(auditPause)
	want("when one is due", auditPlans, 20)
	sweep(auditPause)
	want("after it", auditPlans, 20)
}
