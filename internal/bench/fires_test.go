package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/event"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/internal/schedule"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/mongodb"
	"github.com/seed-1177d267/sluice/plan"
)

// fires compares how late a node starts what many schedules say at one instant with how late it starts
// as many tasks that are delayed until then. It compares the cost of deciding and starting an
// occurrence with that of adding a task.
func fires(m *measurement) {
	few, many := size(500, 50), size(10_000, 500)
	m.repeat(func() {
		m.pair("lateness-p99", "ms", milliseconds(m.lateness(few, putSchedules)), "delayed tasks", milliseconds(m.lateness(few, putDelayed)))
		used, trips := m.firing(many)
		m.pair("processor", "ms", milliseconds(used), "added tasks", milliseconds(m.adding(many)))
		if trips > 0 {
			m.pair("round-trips", "trips/occurrence", float64(trips)/float64(many), "", 0)
		}
		m.note("%d schedules of one instant; %d schedules that fire each minute", few, many)
	})
}

// putSchedules makes schedules of tasks that are all due at an instant.
func putSchedules(ctx context.Context, st schedule.Store, n int, at time.Time) {
	check(errorOf(st.EnsureQueue(ctx, plan.Queue{Name: "noop", Plugin: "noop", Unlimited: true})))
	all := make([]plan.Schedule, n)
	for i := range all {
		s := &all[i]
		s.ID, s.Name = plan.ScheduleID{ID: plan.NewID(at)}, fmt.Sprintf("s%05d", i)
		s.Every, s.From, s.Task = plan.Duration(time.Minute), at, &plan.ScheduledTask{Queue: "noop"}
		s.Overlap, s.Missed, s.Cursor, s.Next = plan.OverlapSkip, plan.MissedOne, at.Add(-time.Second), at
	}
	for _, err := range must(st.PutSchedules(ctx, all)) {
		check(err)
	}
}

// putDelayed makes tasks that are held until an instant.
func putDelayed(ctx context.Context, st schedule.Store, n int, at time.Time) {
	ofNoPlan("noop", nil)(ctx, st.(store.Store), n, at)
}

// adding is the processor time of this process for adding n tasks.
func (m *measurement) adding(n int) time.Duration {
	db := m.open()
	defer db.close()
	settle()
	before := processorTime()
	ofNoPlan("noop", nil)(m.Context(), db, n, time.Time{})
	return processorTime() - before
}

func errorOf(_ plan.Queue, err error) error { return err }

// lateness is the 99th percentile of how late a node begins n tasks that put has become due at one instant.
func (m *measurement) lateness(n int, put func(context.Context, schedule.Store, int, time.Time)) time.Duration {
	db := m.open()
	defer db.close()
	st, _ := schedule.StoreOf(db.Store)
	at := must(db.Now(m.Context())).Add(2 * time.Second).Truncate(time.Millisecond)
	put(m.Context(), st, n, at)
	ctx, cancel := context.WithCancel(m.Context())
	defer cancel()
	noop := &counting{}
	ran := make(chan error, 1)
	go func() {
		ran <- den.Run(ctx, db, den.Config{Plugins: named{"noop": noop}.registry(), Name: "fires", Threads: mostThreads, Schedules: schedule.NewFirer(st, nil)})
	}()
	var tasks []plan.Task
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		tasks = must(store.AllTasks(m.Context(), db, store.TaskQuery{NoPlan: true, Statuses: []plan.Status{plan.Succeeded}}))
		if len(tasks) == n {
			break
		}
		if time.Now().After(end) {
			failf("%d of %d tasks ran", len(tasks), n)
		}
	}
	cancel()
	check(<-ran)
	late := make([]time.Duration, n)
	for i := range tasks {
		late[i] = tasks[i].Started.Sub(at)
	}
	return quantile(late, 0.99)
}

// firing returns what it costs to decide and start one occurrence of each of n schedules: processor
// time of this process, and commands to a server.
func (m *measurement) firing(n int) (used time.Duration, trips int64) {
	db := m.open()
	defer db.close()
	var st schedule.Store
	st, _ = schedule.StoreOf(db.Store)
	at := must(db.Now(m.Context())).Add(-time.Second).Truncate(time.Millisecond)
	putSchedules(m.Context(), st, n, at)
	var commands atomic.Int64
	if m.on == onMongoDB {
		counted := must(mongodb.Open(m.Context(), db.uri, mongodb.Options{Monitor: &event.CommandMonitor{Started: func(context.Context, *event.CommandStartedEvent) { commands.Add(1) }}}))
		defer func() { check(counted.Close()) }()
		st = counted
	}
	me := plan.Instance{ID: plan.InstanceID{ID: plan.NewID(at)}, Node: "fires", Lease: time.Minute}
	check(st.Register(m.Context(), me))
	commands.Store(0)
	settle()
	before := processorTime()
	_, _, err := schedule.NewFirer(st, nil).Fire(m.Context(), me.ID)
	check(err)
	return processorTime() - before, commands.Load()
}
