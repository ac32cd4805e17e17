package storetest

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// Packs runs the suite of store.Packs. Rows of the driver counts what is kept of packs too.
func Packs(t *testing.T, d ResultsDriver) {
	for _, c := range packCases {
		t.Run(c.name, func(t *testing.T) {
			w := &resultWorld{world: newWorld(t, &d.Driver), driver: &d}
			c.run(w)
			w.check()
		})
	}
}

var packCases = []struct {
	name string
	run  func(w *resultWorld)
}{
	{"a pack is read back as it was put, whatever its size", packSizes},
	{"another put replaces the first", packReplaced},
	{"a put that died is made again", packDeaths},
	{"of two puts at the same time one stays, and nothing of the other", packsTogether},
	{"a pack is put before its plan runs, and is not too large", packRefused},
	{"a pack goes with its plan", packDeleted},
	{"the queue of a job goes with its plan", packQueue},
	{"the pack of an abandoned submission goes with its tasks", packAbandoned},
}

// submitting returns a plan that has no tasks yet.
func (w *resultWorld) submitting() (plan.Plan, []plan.Task) {
	w.Helper()
	p, tasks := w.compile(&plan.Spec{Name: "job", Tasks: []plan.TaskSpec{task("a")}})
	return must(w.s.CreatePlan(w.ctx, p))(w.world), tasks
}

func (w *resultWorld) putPack(p plan.Plan, pack []byte) error {
	return w.s.(store.Packs).PutPack(w.ctx, p.ID, sectionOf(pack))
}

func sectionOf(pack []byte) *io.SectionReader {
	return io.NewSectionReader(bytes.NewReader(pack), 0, int64(len(pack)))
}

// keepsPack wants the pack of a plan to be these bytes.
func (w *resultWorld) keepsPack(p plan.Plan, want []byte) {
	w.Helper()
	r, size, err := w.s.(store.Packs).OpenPack(w.ctx, p.ID)
	w.no(err)
	got, err := io.ReadAll(r)
	w.no(errors.Join(err, r.Close()))
	if size != int64(len(want)) || !bytes.Equal(got, want) {
		w.Errorf("the pack has %d bytes, said to be %d, want %d; they differ from byte %d on", len(got), size, len(want), differ(string(got), string(want)))
	}
}

func (w *resultWorld) noPack(p plan.Plan) {
	w.Helper()
	_, _, err := w.s.(store.Packs).OpenPack(w.ctx, p.ID)
	w.is(err, plan.ErrNotFound)
}

// packed is a pack of so many bytes, all kinds of them.
func packed(size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i + i>>8)
	}
	return b
}

func packSizes(w *resultWorld) {
	for _, size := range []int{1, resultChunk - 1, resultChunk, resultChunk + 1, 33*resultChunk + 7} {
		p, tasks := w.submitting()
		w.noPack(p)
		w.no(w.putPack(p, packed(size)))
		w.keepsPack(p, packed(size))
		w.no(w.s.AddTasks(w.ctx, p.ID, tasks))
		w.no(w.s.Ready(w.ctx, p.ID))
		w.keepsPack(p, packed(size))
	}
}

func packReplaced(w *resultWorld) {
	p, _ := w.submitting()
	w.no(w.putPack(p, packed(10)))
	once := w.keptRows()
	w.no(w.putPack(p, packed(3*resultChunk)))
	w.no(w.putPack(p, packed(11)))
	w.keepsPack(p, packed(11))
	w.rows("after the last of many", once)
}

// keptRows counts what is kept of results and packs, if the driver can.
func (w *resultWorld) keptRows() int {
	if w.driver.Rows == nil {
		return 0
	}
	return w.driver.Rows(w.T, w.s)
}

func packDeaths(w *resultWorld) {
	p, _ := w.submitting()
	pack := packed(resultChunk + 2)
	w.no(w.putPack(p, pack))
	w.deaths(func(s store.Store) error {
		return s.(store.Packs).PutPack(w.ctx, p.ID, sectionOf(pack))
	}, func() {
		w.no(w.putPack(p, pack))
		w.keepsPack(p, pack)
	})
}

func packsTogether(w *resultWorld) {
	p, _ := w.submitting()
	pack := packed(2*resultChunk + 2)
	w.no(w.putPack(p, pack))
	once := w.keptRows()
	other := w.reopen(nil)
	var wg sync.WaitGroup
	var errs [2]error
	for i, s := range []store.Store{w.s, other} {
		wg.Go(func() {
			for range 5 {
				if errs[i] = s.(store.Packs).PutPack(w.ctx, p.ID, sectionOf(pack)); errs[i] != nil && !errors.Is(errs[i], plan.ErrConflict) {
					return
				}
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil && !errors.Is(err, plan.ErrConflict) {
			w.Errorf("a put at the same time as another: %v", err)
		}
	}
	w.keepsPack(p, pack)
	w.no(w.putPack(p, pack))
	w.rows("after the last put", once)
}

func packRefused(w *resultWorld) {
	p, tasks := w.submitting()
	large := io.NewSectionReader(endless{}, 0, rules.MaxPack+1)
	w.is(w.s.(store.Packs).PutPack(w.ctx, p.ID, large), plan.ErrTooLarge)
	w.noPack(p)
	w.no(w.s.AddTasks(w.ctx, p.ID, tasks))
	w.no(w.s.Ready(w.ctx, p.ID))
	w.is(w.putPack(p, packed(1)), plan.ErrConflict)
	w.no(w.s.CancelPlan(w.ctx, p.ID, false))
	w.is(w.putPack(p, packed(1)), plan.ErrPlanEnded)
	w.is(w.putPack(plan.Plan{ID: plan.PlanID{ID: w.newID()}}, packed(1)), plan.ErrNotFound)
	w.rows("of packs that were refused", 0)
}

// endless has as many bytes as anybody reads.
type endless struct{}

func (endless) ReadAt(p []byte, _ int64) (int, error) { return len(p), nil }

func packDeleted(w *resultWorld) {
	n := w.node("n1")
	for _, byPrune := range []bool{false, true} {
		p, tasks := w.submitting()
		w.no(w.putPack(p, packed(resultChunk+1)))
		w.no(w.s.AddTasks(w.ctx, p.ID, tasks))
		w.no(w.s.Ready(w.ctx, p.ID))
		n.end(ok(n.one()))
		w.keepsPack(p, packed(resultChunk+1))
		if byPrune {
			w.pass(2 * time.Hour)
			w.equal("plans pruned", w.prune(time.Hour), 1)
		}
		for more := !byPrune; more; {
			more = must(w.s.DeletePlan(w.ctx, p.ID, 100))(w.world)
		}
		w.noPack(p)
		w.rows("after the deletion", 0)
	}
}

func packQueue(w *resultWorld) {
	n := w.node("n1")
	for _, busy := range []bool{false, true} {
		p, tasks := w.submitting()
		q := w.queue(rules.JobQueue(p.ID), 2)
		tasks[0].Queue = q.ID
		w.no(w.putPack(p, packed(10)))
		w.no(w.s.AddTasks(w.ctx, p.ID, tasks))
		w.no(w.s.Ready(w.ctx, p.ID))
		n.end(ok(n.one()))
		if busy { // somebody else uses it too
			w.submit(plan.TaskSpec{Name: "b", Queue: q.Name})
		}
		for more := true; more; {
			more = must(w.s.DeletePlan(w.ctx, p.ID, 100))(w.world)
		}
		there := slices.ContainsFunc(must(w.s.Queues(w.ctx))(w.world), func(is plan.Queue) bool { return is.ID == q.ID })
		w.equal("the queue is there", there, busy)
	}
}

func packAbandoned(w *resultWorld) {
	p, tasks := w.submitting()
	w.no(w.putPack(p, packed(resultChunk+1)))
	w.no(w.s.AddTasks(w.ctx, p.ID, tasks))
	n := w.node("n1")
	w.pass(59 * time.Minute)
	n.sweep()
	w.keepsPack(p, packed(resultChunk+1))
	w.pass(2 * time.Minute)
	n.sweep()
	w.wantPlan(p, plan.PlanAbandoned)
	w.noPack(p)
	w.rows("of an abandoned submission", 0)
}
