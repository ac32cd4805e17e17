package schedule_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/schedule"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/sqlite"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
)

// A world is a store whose clock the test sets, and a node of it that fires schedules.
type world struct {
	*testing.T
	path string
	now  time.Time
	st   *sqlite.Store
	set  schedule.Setter
	fire *schedule.Firer
	me   plan.InstanceID
	hook store.Hook
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, path: filepath.Join(t.TempDir(), "sluice.db"), now: time.Date(2027, 1, 2, 10, 0, 0, 0, time.UTC)}
	w.open()
	t.Cleanup(func() {
		if err := w.st.Close(); err != nil {
			t.Error(err)
		}
	})
	w.must(w.st.CreateQueue(t.Context(), plan.Queue{Name: "q", Plugin: "exec", Unlimited: true}))
	return w
}

// open opens the store as another process would.
func (w *world) open() {
	w.Helper()
	if w.st != nil {
		_ = w.st.Close() // a hook may have broken it
	}
	var err error
	w.st, err = sqlite.Open(w.Context(), w.path, sqlite.Options{Now: func() time.Time { return w.now }, Hook: func(written bool) error {
		if w.hook != nil {
			return w.hook(written)
		}
		return nil
	}})
	w.no(err)
	w.set, w.fire, w.me = schedule.Setter{Store: w.st}, schedule.NewFirer(w.st, nil), plan.InstanceID{ID: plan.NewID(w.now)}
	nodes, err := w.st.Instances(w.Context())
	w.no(err)
	for _, i := range nodes {
		_, err := w.st.Rescue(w.Context(), i.ID, -1)
		w.no(err)
	}
	w.no(w.st.Register(w.Context(), plan.Instance{ID: w.me, Node: "n", Lease: time.Minute, Plugins: []string{"exec"}}))
}

func (w *world) no(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) must(_ any, err error) { w.Helper(); w.no(err) }

// at sets the clock to a time of the day, and fires.
func (w *world) at(clock string) *time.Duration {
	w.Helper()
	of, err := time.Parse(time.TimeOnly, clock)
	w.no(err)
	w.now = time.Date(2027, 1, 2, of.Hour(), of.Minute(), of.Second(), 0, time.UTC)
	held, next, err := w.fire.Fire(w.Context(), w.me)
	w.no(err)
	if !held {
		w.Fatal("it does not hold the role")
	}
	return next
}

func (w *world) fired() (any, error) {
	_, _, err := w.fire.Fire(w.Context(), w.me)
	return nil, err
}

// finish has the node run all that is queued.
func (w *world) finish(s plan.Status) (n int) {
	w.Helper()
	for {
		did, err := w.st.Turn(w.Context(), protocol.Turn{Instance: w.me, Slots: 100, Plugins: []string{"exec"}, Start: true})
		w.no(err)
		var ended []protocol.Ending
		for _, c := range did.Claimed {
			ended = append(ended, protocol.Ending{Claim: c.Claim, Status: s})
			n++
		}
		_, err = w.st.Turn(w.Context(), protocol.Turn{Instance: w.me, Ended: ended, Plugins: []string{"exec"}})
		w.no(err)
		if len(did.Claimed) == 0 {
			return n
		}
	}
}

func task(cron string) plan.ScheduleSettings {
	return plan.ScheduleSettings{Timetable: plan.Timetable{Cron: cron}, Task: &plan.ScheduledTask{Queue: "q", Params: json.RawMessage(`{"run":"true"}`)}}
}

func ofPlan(cron, text string) plan.ScheduleSettings {
	return plan.ScheduleSettings{Timetable: plan.Timetable{Cron: cron}, Plan: &plan.ScheduledPlan{File: plan.File{Text: text, Dir: "/srv"}}}
}

// history is what a schedule says of its occurrences.
func (w *world) history(name string) string {
	w.Helper()
	s, err := w.set.Show(w.Context(), name)
	w.no(err)
	var words []string
	for _, o := range append(s.Last, s.Open...) {
		words = append(words, o.At.Format("15:04:05")+" "+string(o.State))
	}
	return strings.Join(words, ", ")
}

func (w *world) wants(name, want string) {
	w.Helper()
	if got := w.history(name); got != want {
		w.Errorf("%s has %s, want %s", name, got, want)
	}
}

func TestAScheduleStartsTasks(t *testing.T) {
	w := newWorld(t)
	settings := task("* * * * *")
	settings.Task.Retry.Attempts, settings.Task.Timeout = 3, plan.Duration(time.Minute)
	w.must(w.set.Create(t.Context(), "each", settings, ""))
	if next := w.at("10:00:30"); next == nil || *next != 30*time.Second {
		t.Errorf("the next one is due in %v", next)
	}
	w.wants("each", "")
	w.at("10:01:00")
	w.at("10:01:00") // nothing twice
	w.wants("each", "10:01:00 started")
	tasks, err := w.st.Tasks(t.Context(), store.TaskQuery{NoPlan: true, Params: true})
	w.no(err)
	if len(tasks) != 1 || tasks[0].Schedule != "each" || tasks[0].Name != "each" || tasks[0].Retry.Attempts != 3 || tasks[0].Timeout != time.Minute || tasks[0].Status != plan.Queued {
		t.Fatalf("there are %+v", tasks)
	}
	w.at("10:02:00") // the one before has not ended
	if n := w.finish(plan.Failed); n != 1 {
		t.Errorf("%d tasks ran", n)
	}
	w.at("10:03:10")
	w.finish(plan.Succeeded)
	w.wants("each", "10:02:00 skipped, 10:01:00 failed, 10:03:00 succeeded")
	w.at("10:04:00")
	s, err := schedule.Find(t.Context(), w.st, "each")
	w.no(err)
	if s.Tally != (plan.ScheduleTally{Started: 3, Succeeded: 1, Failed: 1, Skipped: 1}) || s.Succeeded.IsZero() {
		t.Errorf("the tally is %+v", s.Tally)
	}
}

func TestAScheduleStartsPlans(t *testing.T) {
	w := newWorld(t)
	w.must(w.set.Create(t.Context(), "nightly", ofPlan("0 * * * *", "plan: night\ntasks: {a: {run: 'true'}, b: {needs: a, run: 'true'}}"), ""))
	w.at("11:00:00")
	w.at("11:00:01")
	plans, err := w.st.Plans(t.Context(), store.PlanQuery{})
	w.no(err)
	if len(plans) != 1 || plans[0].Name != "night" || plans[0].By != "schedule nightly" || plans[0].State != plan.PlanRunning {
		t.Fatalf("there are %+v", plans)
	}
	w.finish(plan.Succeeded)
	w.at("12:00:00")
	w.finish(plan.Failed)
	w.wants("nightly", "11:00:00 succeeded, 12:00:00 failed")
}

// A file that does not compile any more, and a queue that is gone, hold up no other schedule.
func TestAnOccurrenceThatCannotBeMadeHasFailed(t *testing.T) {
	w := newWorld(t)
	gone, err := w.st.CreateQueue(t.Context(), plan.Queue{Name: "gone", Plugin: "exec", Unlimited: true})
	w.no(err)
	lost := task("* * * * *")
	lost.Task.Queue = "gone"
	w.must(w.set.Create(t.Context(), "a", lost, ""))
	w.must(w.set.Create(t.Context(), "b", ofPlan("* * * * *", "plan: b\nqueues: {slow: {threads: 2}}\ntasks: {a: {queue: slow, run: 'true'}}"), ""))
	w.must(w.set.Create(t.Context(), "c", task("* * * * *"), ""))
	brief, err := w.st.CreateQueue(t.Context(), plan.Queue{Name: "brief", Plugin: "exec", Unlimited: true})
	w.no(err)
	kept := task("* * * * *")
	kept.Task.Queue = "brief"
	w.must(w.set.Create(t.Context(), "e", kept, ""))
	brief.Keep.Succeeded = plan.Duration(30 * time.Minute)
	w.no(w.st.SetQueue(t.Context(), brief))
	w.no(w.st.DeleteQueue(t.Context(), gone.ID))
	w.must(w.st.CreateQueue(t.Context(), plan.Queue{Name: "slow", Plugin: "exec", Threads: 9}))
	w.at("10:01:00")
	w.wants("a", "10:01:00 failed")
	w.wants("b", "10:01:00 failed")
	w.wants("c", "10:01:00 started")
	for name, want := range map[string]string{"a": `queue "gone"`, "b": `queue "slow" runs 9 tasks at once`, "e": `queue "brief" keeps tasks for 30m0s`} {
		if s, err := schedule.Find(t.Context(), w.st, name); err != nil || !strings.Contains(s.Last[0].Reason, want) {
			t.Errorf("%s failed since %q, %v; want %q", name, s.Last[0].Reason, err, want)
		}
	}
	// A person who wants one now is told at once.
	broken, err := schedule.Find(t.Context(), w.st, "b")
	w.no(err)
	broken.ID.ID, broken.Name, broken.Revision = plan.NewID(w.now), "d", 0
	broken.Plan.File.Text = "plan: d\ntasks: {a: {run: 'true', neds: b}}"
	w.must(w.st.PutSchedules(t.Context(), []plan.Schedule{broken}))
	for name, c := range map[string]struct {
		is   error
		says string
	}{
		"a": {plan.ErrNotFound, `schedule "a": queue "gone": not found; make it: sluice queue create gone`},
		"b": {submit.ErrQueue, `schedule "b": queue "slow" runs 9 tasks at once`},
		"e": {plan.ErrConflict, "sluice queue set brief --keep 1h"},
		"d": {plan.ErrConflict, "sluice schedule set d --plan FILE\nplan:2:26: "},
	} {
		if _, err := w.set.Run(t.Context(), name); !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("a run of %s: %v, want %q", name, err, c.says)
		}
		if s, err := schedule.Find(t.Context(), w.st, name); err != nil || len(s.Open) > 0 {
			t.Errorf("then %s has open %+v, %v", name, s.Open, err)
		}
	}
}

func TestADayWithoutNodes(t *testing.T) {
	for missed, want := range map[plan.Missed]string{
		plan.MissedOne:  "10:00:00 started, 11:00:00 started",
		plan.MissedSkip: "10:00:00 skipped, 11:00:00 started",
	} {
		t.Run(string(missed), func(t *testing.T) {
			w := newWorld(t)
			w.now = w.now.AddDate(0, 0, -1)
			s := task("0 * * * *")
			s.Missed, s.Overlap = missed, plan.OverlapAllow
			w.must(w.set.Create(t.Context(), "hourly", s, ""))
			w.at("10:30:00")
			w.at("11:00:00")
			if got := w.history("hourly"); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

// The tally counts each instant that was missed, up to a limit.
func TestSkippedInstantsAreCounted(t *testing.T) {
	w := newWorld(t)
	w.now = w.now.AddDate(-1, 0, 0)
	for name, s := range map[string]plan.ScheduleSettings{"monthly": task("@monthly"), "secondly": task("* * * * * *"), "last": task("0 0 10 2 1 * 2027")} {
		s.Missed, s.Overlap = plan.MissedSkip, plan.OverlapAllow
		w.must(w.set.Create(t.Context(), name, s, ""))
	}
	w.at("10:01:30")
	for name, want := range map[string]struct {
		skipped int
		reason  string
	}{
		"monthly":  {12, "no node came to it within a minute, nor to 11 before it"},
		"secondly": {10_001, "no node came to it within a minute, nor to at least 10000 before it"},
		"last":     {1, "no node came to it within a minute"},
	} {
		s, err := schedule.Find(t.Context(), w.st, name)
		w.no(err)
		if s.Tally.Skipped != want.skipped || len(s.Last) != 1 || s.Last[0].Reason != want.reason {
			t.Errorf("%s: %d were skipped, %+v; want %d, %q", name, s.Tally.Skipped, s.Last, want.skipped, want.reason)
		}
	}
}

func TestAPlanThatTakesLongerThanItsInterval(t *testing.T) {
	for overlap, want := range map[plan.Overlap]string{
		plan.OverlapSkip:    "10:02:00 skipped, 10:01:00 succeeded, 10:03:00 started",
		plan.OverlapQueue:   "10:01:00 succeeded, 10:02:00 started, 10:03:00 waiting",
		plan.OverlapReplace: "10:01:00 cancelled, 10:02:00 skipped, 10:03:00 started",
		plan.OverlapAllow:   "10:01:00 succeeded, 10:02:00 succeeded, 10:03:00 started",
	} {
		t.Run(string(overlap), func(t *testing.T) {
			w := newWorld(t)
			s := ofPlan("* * * * *", "plan: slow\ntasks: {a: {run: sleep 90}}")
			s.Overlap = overlap
			w.must(w.set.Create(t.Context(), "slow", s, ""))
			w.at("10:01:00")
			w.at("10:02:00")
			if overlap == plan.OverlapReplace {
				w.at("10:03:00") // it was queued, and is cancelled at once
				w.at("10:03:01")
			} else {
				w.finish(plan.Succeeded)
				w.at("10:03:00")
			}
			if got := w.history("slow"); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func TestPauseChangeRunAndBackfill(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	created, err := w.set.Create(ctx, "x", task("0 * * * *"), "")
	w.no(err)
	w.must(w.set.Pause(ctx, "x", 0, "the disk is full"))
	if _, err := w.set.Pause(ctx, "x", 0, ""); !errors.Is(err, plan.ErrConflict) {
		t.Errorf("a second pause: %v", err)
	}
	if next := w.at("12:00:00"); next != nil {
		t.Errorf("a paused schedule is due in %v", *next)
	}
	w.must(w.set.Resume(ctx, "x", 0))
	w.at("12:30:00")
	w.wants("x", "") // nothing of the pause
	if _, err := w.set.Set(ctx, "x", created.Edition(), task("* * * * *")); !errors.Is(err, plan.ErrConflict) {
		t.Errorf("a change of an old edition: %v", err)
	}
	// An occurrence that is decided and not made starts what the schedule said then.
	o, err := w.set.Run(ctx, "x")
	w.no(err)
	if o.Kind != plan.ByRun || o.State != plan.OccurrenceStarting {
		t.Errorf("the occurrence is %+v", o)
	}
	other := task("0 * * * *")
	other.Task.Params = json.RawMessage(`{"run":"false"}`)
	w.must(w.set.Set(ctx, "x", 0, other))
	w.at("12:30:01")
	tasks, err := w.st.Tasks(ctx, store.TaskQuery{NoPlan: true, Params: true})
	w.no(err)
	if len(tasks) != 1 || string(tasks[0].Params) != `{"run":"true"}` {
		t.Errorf("there are %+v", tasks)
	}
	if _, err := w.set.Run(ctx, "x"); !errors.Is(err, plan.ErrConflict) || !strings.Contains(err.Error(), "has not ended") {
		t.Errorf("a run while another one runs: %v", err)
	}
	w.finish(plan.Succeeded)
	span := plan.Span{From: w.now.Add(-3 * time.Hour), To: w.now}
	for _, dry := range []bool{true, false} {
		n, err := w.set.Backfill(ctx, "x", span, dry)
		w.no(err)
		if n != 3 { // 10, 11 and 12 o'clock
			t.Errorf("a backfill of %d", n)
		}
	}
	for i := range 3 {
		w.at(fmt.Sprintf("12:31:%02d", i))
		w.finish(plan.Succeeded)
	}
	w.wants("x", "12:30:00 succeeded, 10:00:00 succeeded, 11:00:00 succeeded, 12:00:00 succeeded")
	if n, err := w.set.Backfill(ctx, "x", span, true); !errors.Is(err, plan.ErrConflict) || n != 0 {
		t.Errorf("a second backfill of %d: %v", n, err)
	}
	span.From = span.From.Add(-time.Hour) // of one more
	if n, err := w.set.Backfill(ctx, "x", span, false); err != nil || n != 1 {
		t.Errorf("a longer backfill of %d: %v", n, err)
	}
	if _, err := w.set.Backfill(ctx, "x", span, false); !errors.Is(err, plan.ErrConflict) {
		t.Errorf("the same backfill at once: %v", err)
	}
	for i := range 8 {
		w.at(fmt.Sprintf("12:32:%02d", i))
		w.finish(plan.Succeeded)
	}
	if s, err := schedule.Find(ctx, w.st, "x"); err != nil || s.Tally.Started != 5 || len(s.Open)+len(s.Backfills) != 0 {
		t.Errorf("the tally is %+v, open %+v, %v", s.Tally, s.Open, err)
	}
	for range 2 { // what has ended is no obstacle
		if _, err := w.set.Run(ctx, "x"); err != nil {
			t.Error(err)
		}
		w.now = w.now.Add(time.Second)
		w.must(w.fired())
		w.finish(plan.Succeeded)
	}
	for _, bad := range []plan.Span{{From: w.now, To: w.now.Add(time.Hour)}, {From: w.now, To: w.now.Add(-time.Hour)}, {From: w.now.AddDate(-5, 0, 0), To: w.now}, {From: w.now, To: w.now}} {
		if _, err := w.set.Backfill(ctx, "x", bad, false); err == nil {
			t.Errorf("a backfill of %+v is taken", bad)
		}
	}
	w.no(w.set.Delete(ctx, "x", 0))
	if err := w.set.Delete(ctx, "x", 0); !errors.Is(err, plan.ErrNotFound) {
		t.Errorf("a second deletion: %v", err)
	}
}

// A program may put its schedules whenever it starts: the cursor stays, so that missed instants are made
// up for.
func TestTheSameSettingsChangeNothing(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	every := task("")
	every.Every = plan.Duration(time.Hour)
	ofFile := ofPlan("@daily", "plan: p\ntasks: {a: {run: 'true'}}")
	for name, s := range map[string]plan.ScheduleSettings{"cron": task("@hourly"), "every": every, "plan": ofFile} {
		w.now = w.now.Add(time.Minute)
		made, err := w.set.Create(ctx, name, s, "")
		w.no(err)
		w.now = w.now.Add(time.Minute)
		s.From = s.From.In(time.Local)
		for _, revision := range []int64{0, made.Edition(), 7} {
			if same, err := w.set.Set(ctx, name, revision, s); err != nil || same.Revision != made.Revision || !same.Cursor.Equal(made.Cursor) {
				t.Errorf("%s, set at %d: %+v, %v", name, revision, same, err)
			}
		}
		if s.Plan != nil {
			of := *s.Plan
			of.File.Dir, s.Plan = "/other", &of
		} else {
			s.Task = &plan.ScheduledTask{Queue: "q"}
		}
		if other, err := w.set.Set(ctx, name, made.Edition(), s); err != nil || other.Revision != made.Revision+1 || !other.Cursor.Equal(w.now) {
			t.Errorf("%s, set otherwise: %+v, %v", name, other, err)
		}
	}
}

// Two people may want an occurrence in the same millisecond.
func TestRunsInOneMillisecond(t *testing.T) {
	w := newWorld(t)
	s := task("@daily")
	w.must(w.set.Create(t.Context(), "skip", s, ""))
	s.Overlap = plan.OverlapAllow
	w.must(w.set.Create(t.Context(), "allow", s, ""))
	w.must(w.set.Run(t.Context(), "skip"))
	if _, err := w.set.Run(t.Context(), "skip"); !errors.Is(err, plan.ErrConflict) {
		t.Errorf("a second one: %v", err)
	}
	first, err := w.set.Run(t.Context(), "allow")
	w.no(err)
	second, err := w.set.Run(t.Context(), "allow")
	w.no(err)
	if second.At.Equal(first.At) {
		t.Errorf("both are of %s", first.At)
	}
	w.at("10:00:01")
	w.wants("skip", "10:00:00 started")
	w.wants("allow", "10:00:00 started, 10:00:00 started")
}

// errKilled is what a process sees that was killed at a write.
var errKilled = errors.New("killed")

// A node is killed before and after each of its writes. The next one makes each occurrence once.
func TestAHolderIsKilledAtEachWrite(t *testing.T) {
	for kill := 0; ; kill++ {
		w := newWorld(t)
		for _, s := range []string{"a", "b"} {
			w.must(w.set.Create(t.Context(), s, task("* * * * *"), ""))
		}
		w.must(w.set.Create(t.Context(), "p", ofPlan("* * * * *", "plan: p\ntasks: {a: {run: 'true'}}"), ""))
		calls := 0
		w.hook = func(bool) error {
			if calls++; calls > kill {
				return errKilled
			}
			return nil
		}
		w.now = w.now.Add(time.Minute)
		_, _, err := w.fire.Fire(t.Context(), w.me)
		w.hook = nil
		w.open()
		w.at("10:01:10")
		w.at("10:01:20")
		for _, name := range []string{"a", "b", "p"} {
			w.wants(name, "10:01:00 started")
		}
		if n := w.finish(plan.Succeeded); n != 3 {
			t.Fatalf("killed at write %d, %d tasks ran, want 3", kill, n)
		}
		if err == nil {
			if kill < 10 {
				t.Errorf("there were only %d writes", kill)
			}
			return
		}
	}
}

// A decision and the tasks that it starts are one write, also if one of them cannot be made.
func TestTasksStartInTheWriteThatDecidesThem(t *testing.T) {
	w := newWorld(t)
	gone, err := w.st.CreateQueue(t.Context(), plan.Queue{Name: "gone", Plugin: "exec", Unlimited: true})
	w.no(err)
	lost := task("* * * * *")
	lost.Task.Queue = "gone"
	w.must(w.set.Create(t.Context(), "lost", lost, ""))
	for _, name := range []string{"a", "b"} {
		w.must(w.set.Create(t.Context(), name, task("* * * * *"), ""))
	}
	w.no(w.st.DeleteQueue(t.Context(), gone.ID))
	w.at("10:00:30") // it holds the role
	writes := 0
	w.hook = func(written bool) error {
		if written {
			writes++
		}
		return nil
	}
	w.at("10:01:00")
	if w.hook = nil; writes != 1 {
		t.Errorf("%d writes, want 1", writes)
	}
	w.wants("a", "10:01:00 started")
	w.wants("b", "10:01:00 started")
	w.wants("lost", "10:01:00 failed")
	// One of the tasks is there, and is another one: the others start.
	b, err := schedule.Find(t.Context(), w.st, "b")
	w.no(err)
	queues, err := w.st.Queues(t.Context())
	w.no(err)
	w.no(w.st.AddTasks(t.Context(), plan.PlanID{}, []plan.Task{{ID: rules.OccurrenceID(b.ID, w.now.Add(time.Minute)), Name: "other", Queue: queues[0].ID}}))
	w.finish(plan.Succeeded)
	w.at("10:02:00")
	w.wants("a", "10:01:00 succeeded, 10:02:00 started")
	w.wants("b", "10:01:00 succeeded, 10:02:00 succeeded")
}

// A node is killed at each write of a backfill, and what it added ends before the next node comes. An
// instant that the backfill made is counted, and one that the timetable made before is left out.
func TestABackfillIsCountedOnce(t *testing.T) {
	for name, s := range map[string]plan.ScheduleSettings{"task": task("@hourly"), "plan": ofPlan("@hourly", "plan: p\ntasks: {a: {run: 'true'}}")} {
		t.Run(name, func(t *testing.T) {
			s.Overlap = plan.OverlapAllow
			for kill, done := 0, false; !done; kill++ {
				w := newWorld(t)
				w.must(w.set.Create(t.Context(), "x", s, ""))
				w.at("11:00:00")
				ran := w.finish(plan.Succeeded)
				w.at("11:30:00")
				w.must(w.set.Backfill(t.Context(), "x", plan.Span{From: w.now.Add(-2 * time.Hour), To: w.now}, false))
				calls := 0
				w.hook = func(bool) error {
					if calls++; calls > kill {
						return errKilled
					}
					return nil
				}
				_, _, err := w.fire.Fire(t.Context(), w.me)
				done, w.hook = err == nil, nil
				w.now = w.now.Add(time.Second)
				w.open()
				ran += w.finish(plan.Succeeded)
				w.at("11:31:00")
				ran += w.finish(plan.Succeeded)
				w.at("11:42:00")
				is, err := schedule.Find(t.Context(), w.st, "x")
				w.no(err)
				if is.Tally != (plan.ScheduleTally{Started: 2, Succeeded: 2}) || ran != 2 || len(is.Open) > 0 {
					t.Errorf("killed at write %d, %d ran, the tally is %+v, open %+v", kill, ran, is.Tally, is.Open)
				}
			}
		})
	}
}

// A backfill that was wanted in a pause is made once that ends, whatever the timetable says.
func TestABackfillGoesOnAfterAPause(t *testing.T) {
	w := newWorld(t)
	s := task("0 12 * * *")
	w.must(w.set.Create(t.Context(), "x", s, ""))
	w.must(w.set.Pause(t.Context(), "x", 0, ""))
	w.must(w.set.Backfill(t.Context(), "x", plan.Span{From: w.now.AddDate(0, 0, -3), To: w.now}, false))
	w.at("10:05:00")
	if n := w.finish(plan.Succeeded); n != 0 {
		t.Errorf("%d ran in the pause", n)
	}
	w.must(w.set.Resume(t.Context(), "x", 0))
	for i := range 8 {
		w.at(fmt.Sprintf("10:05:%02d", 10+3*i))
		w.finish(plan.Succeeded)
	}
	is, err := schedule.Find(t.Context(), w.st, "x")
	w.no(err)
	if is.Tally.Succeeded != 3 || len(is.Backfills) > 0 {
		t.Errorf("then it has %+v, and %+v is left", is.Tally, is.Backfills)
	}
}

// A pause holds up what waits for the one before, and a person may run one all the same.
func TestAPauseHoldsUpWhatWaits(t *testing.T) {
	w := newWorld(t)
	s := task("* * * * *")
	s.Overlap = plan.OverlapQueue
	w.must(w.set.Create(t.Context(), "x", s, ""))
	w.at("10:01:00")
	w.at("10:02:00")
	w.wants("x", "10:01:00 started, 10:02:00 waiting")
	w.must(w.set.Pause(t.Context(), "x", 0, ""))
	w.finish(plan.Succeeded)
	w.at("10:02:30")
	w.wants("x", "10:01:00 succeeded, 10:02:00 waiting")
	w.must(w.set.Run(t.Context(), "x"))
	w.at("10:02:40")
	w.wants("x", "10:01:00 succeeded, 10:02:00 waiting, 10:02:30 started")
	w.finish(plan.Succeeded)
	w.must(w.set.Resume(t.Context(), "x", 0))
	w.at("10:02:50")
	w.at("10:02:52")
	if n := w.finish(plan.Succeeded); n != 1 {
		t.Errorf("%d ran after the pause, want 1", n)
	}
}

// People start a plan with overlap: skip too. An occurrence of the timetable is skipped then, a
// backfilled one waits, and an instant that was skipped can be made later.
func TestPlansThatPeopleStartHoldUpASchedule(t *testing.T) {
	w := newWorld(t)
	s := ofPlan("0 * * * *", "plan: p\noverlap: skip\ntasks: {a: {run: 'true'}}")
	s.Overlap = plan.OverlapAllow
	w.must(w.set.Create(t.Context(), "x", s, ""))
	mine, err := w.st.CreatePlan(t.Context(), plan.Plan{Name: "p"})
	w.no(err)
	w.at("11:00:00")
	w.wants("x", "11:00:00 skipped")
	w.must(w.set.Backfill(t.Context(), "x", plan.Span{From: w.now.Add(-2 * time.Hour), To: w.now}, false))
	w.at("11:00:10")
	w.at("11:00:12")
	is, err := schedule.Find(t.Context(), w.st, "x")
	w.no(err)
	if len(is.Open) != 3 || is.Open[0].State != plan.OccurrenceWaiting || !strings.Contains(is.Open[0].Reason, "p#1 is being submitted") || is.Tally.Skipped != 1 {
		t.Fatalf("while p#1 has not ended it has %+v", is)
	}
	w.no(w.st.CancelPlan(t.Context(), mine.ID, false))
	w.no(sweep(w))
	for i := range 12 {
		w.at(fmt.Sprintf("11:00:%02d", 20+3*i))
		w.finish(plan.Succeeded)
	}
	is, err = schedule.Find(t.Context(), w.st, "x")
	w.no(err)
	if is.Tally != (plan.ScheduleTally{Started: 3, Succeeded: 3, Skipped: 1}) || len(is.Open) > 0 {
		t.Errorf("then it has %+v, open %+v", is.Tally, is.Open)
	}
	for _, o := range is.Last {
		if o.State == plan.OccurrenceSucceeded && o.Reason != "" {
			t.Errorf("%+v has the reason of its wait", o)
		}
	}
}

func sweep(w *world) error {
	_, err := w.st.Sweep(w.Context(), protocol.Sweep{Instance: w.me})
	return err
}

// Instants of local times that a clock change moves, doubles or drops, through a schedule that fires.
func TestASchedulesFiresOverClockChanges(t *testing.T) {
	for _, c := range []struct{ zone, cron, repeated, from, to, want string }{
		{"Europe/Berlin", "30 2 * * *", "", "2027-03-27T00:00:00Z", "2027-03-29T12:00:00Z", "27T01:30 28T01:00 29T00:30"},
		{"Europe/Berlin", "30 2 * * *", "", "2027-10-30T00:00:00Z", "2027-11-01T12:00:00Z", "30T00:30 31T00:30 01T01:30"},
		{"Europe/Berlin", "30 2 * * *", "both", "2027-10-30T12:00:00Z", "2027-10-31T12:00:00Z", "31T00:30 31T01:30"},
		{"America/New_York", "30 1 * * *", "second", "2027-11-06T12:00:00Z", "2027-11-08T12:00:00Z", "07T06:30 08T06:30"},
		{"Australia/Lord_Howe", "15 2 * * *", "", "2027-10-02T00:00:00Z", "2027-10-04T12:00:00Z", "02T15:30 03T15:15"},
	} {
		t.Run(c.zone+" "+c.from[:10]+c.repeated, func(t *testing.T) {
			w := newWorld(t)
			end, err := time.Parse(time.RFC3339, c.to)
			w.no(err)
			w.now, err = time.Parse(time.RFC3339, c.from)
			w.no(err)
			s := task(c.cron)
			s.Zone, s.Repeated, s.Overlap = c.zone, c.repeated, plan.OverlapAllow
			w.must(w.set.Create(t.Context(), "x", s, ""))
			for !w.now.After(end) { // what a node does that sleeps until the next is due
				_, next, err := w.fire.Fire(t.Context(), w.me)
				w.no(err)
				w.finish(plan.Succeeded)
				w.now = w.now.Add(max(*next, time.Second))
			}
			got, err := schedule.Find(t.Context(), w.st, "x")
			w.no(err)
			var fired []string
			for _, o := range append(got.Last, got.Open...) {
				if !o.At.After(end) {
					fired = append(fired, o.At.UTC().Format("02T15:04"))
				}
			}
			if strings.Join(fired, " ") != c.want {
				t.Errorf("it fired at %s, want %s", fired, c.want)
			}
		})
	}
}

func TestWhatIsNoSchedule(t *testing.T) {
	w := newWorld(t)
	w.must(w.st.CreateQueue(t.Context(), plan.Queue{Name: "keys", Plugin: "exec", QueueSettings: plan.QueueSettings{Secrets: []string{"api_key"}}}))
	with := func(change func(*plan.ScheduleSettings)) plan.ScheduleSettings {
		s := task("* * * * *")
		change(&s)
		return s
	}
	w.must(w.set.Create(t.Context(), "taken", task("@daily"), ""))
	for _, c := range []struct {
		name string
		s    plan.ScheduleSettings
		want string
	}{
		{"taken", task("@daily"), "already exists"},
		{"a b", task("@daily"), "a-b"},
		{"x", task("61 * * * *"), "minute"},
		{"x", task("0 0 30 2 *"), "never fires"},
		{"x", with(func(s *plan.ScheduleSettings) { s.Cron, s.Every = "", plan.Duration(time.Millisecond) }), "less than a second"},
		{"x", with(func(s *plan.ScheduleSettings) { s.Zone = "Berlin" }), "zone"},
		{"x", with(func(s *plan.ScheduleSettings) { s.Overlap = "never" }), "overlap"},
		{"x", with(func(s *plan.ScheduleSettings) { s.Missed = "all" }), "missed"},
		{"x", with(func(s *plan.ScheduleSettings) { s.Task = nil }), "either a plan or a task"},
		{"x", with(func(s *plan.ScheduleSettings) { s.Plan = &plan.ScheduledPlan{} }), "either a plan or a task"},
		{"x", with(func(s *plan.ScheduleSettings) { s.Task.Queue = "none" }), `queue "none"`},
		{"x", with(func(s *plan.ScheduleSettings) { s.Task.Params = json.RawMessage(`[]`) }), "not an object"},
		{"x", with(func(s *plan.ScheduleSettings) { s.Task.Params = json.RawMessage(`{"env": {"api_key": "1"}}`) }), "secret"},
		{"x", ofPlan("@daily", ""), "empty"},
		{"x", ofPlan("@daily", "plan: x\ntasks: {a: {run: 'true', neds: b}}"), "neds"},
		{"x", with(func(s *plan.ScheduleSettings) {
			*s = ofPlan("@daily", "plan: x\ntasks: {a: {run: 'true'}}")
			s.Plan.File.Dir = "srv"
		}), "absolute"},
		{"x", with(func(s *plan.ScheduleSettings) {
			*s = ofPlan("@daily", "plan: x\nsecrets: [token]\nparams: {token: null}\ntasks: {a: {run: 'true'}}")
			s.Plan.Params = map[string]string{"token": "abc"}
		}), "secret"},
	} {
		if _, err := w.set.Create(context.WithoutCancel(t.Context()), c.name, c.s, ""); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v: got %v, want %q", c.name, c.s, err, c.want)
		}
	}
	all, err := w.st.Schedules(t.Context(), store.ScheduleQuery{})
	w.no(err)
	if len(all) != 1 {
		t.Errorf("there are %d schedules", len(all))
	}
}
