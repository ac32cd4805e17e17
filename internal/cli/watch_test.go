package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/feed"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/storetest/model"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// A record is a view that remembers.
type record struct {
	began time.Time
	ends  []string
	lines []string // as they are printed, without how long it took
	said  []string
	notes []string // each when it changed
	times []time.Time
}

func (r *record) Tells(*view.Moment, *view.Event) bool { return true }

func (r *record) Show(m *view.Moment) error {
	for i := range m.Events {
		if e := &m.Events[i]; e.Status.Finished() {
			r.ends = append(r.ends, fmt.Sprintf("%s %s %v", e.Name, e.Status, e.Took))
		}
		e := m.Events[i]
		e.Took = min(e.Took, 0) // which leaves that it is known
		if line := e.End(false); line != "" {
			r.lines = append(r.lines, strings.Join(strings.Fields(strings.Replace(line, "0.0ms", "", 1)), " "))
		}
	}
	r.said = append(r.said, m.Said...)
	if len(r.notes) == 0 && m.Note != "" || len(r.notes) > 0 && r.notes[len(r.notes)-1] != m.Note {
		r.notes = append(r.notes, m.Note)
	}
	r.times = append(r.times, m.Now)
	return nil
}

func (r *record) Close() {}

// A flaky store does not answer readers while a test says so.
type flaky struct {
	store.Store
	why atomic.Pointer[error]
}

func (f *flaky) goAway(why error) { f.why.Store(&why) }

func (f *flaky) away() error {
	if why := f.why.Load(); why != nil {
		return *why
	}
	return nil
}

func (f *flaky) Changes(ctx context.Context, after store.Cursor, limit int) ([]store.Change, store.Cursor, error) {
	if err := f.away(); err != nil {
		return nil, after, err
	}
	return f.Store.Changes(ctx, after, limit)
}

func (f *flaky) Plan(ctx context.Context, id plan.PlanID) (plan.Plan, error) {
	if err := f.away(); err != nil {
		return plan.Plan{}, err
	}
	return f.Store.Plan(ctx, id)
}

// sleeper is a plugin whose tasks take a second.
func sleepers() *plugins.Registry {
	r := plugins.NewRegistry()
	r.Register("sleep", plugins.Func(func(context.Context, *plugins.Task) (any, error) {
		time.Sleep(time.Second)
		return nil, nil
	}))
	r.Register("second", plugins.Func(func(_ context.Context, t *plugins.Task) (any, error) {
		if t.Attempt == 1 {
			return nil, errors.New("not yet")
		}
		return nil, nil
	}))
	return r
}

// watched submits a plan of n tasks in a row to a model of a store and returns what watches it.
func watched(t *testing.T, n int, live bool) (*watcher, *flaky, *record) {
	t.Helper()
	spec := plan.New("p")
	for i := range n {
		task := plan.TaskSpec{Name: fmt.Sprintf("t%d", i), Plugin: "sleep"}
		if i > 0 {
			task.Needs = []string{fmt.Sprintf("t%d", i-1)}
		}
		spec.Add(task)
	}
	return watchedSpec(t, spec, live)
}

func watchedSpec(t *testing.T, spec *plan.Spec, live bool) (*watcher, *flaky, *record) {
	t.Helper()
	st := &flaky{Store: model.New(model.Options{})}
	p, err := submit.Submit(t.Context(), st, spec, true)
	if err != nil {
		t.Fatal(err)
	}
	f, err := feed.Follow(t.Context(), st, p.ID)
	if err != nil {
		t.Fatal(err)
	}
	if p, err = st.Plan(t.Context(), p.ID); err != nil {
		t.Fatal(err)
	}
	r := &record{began: time.Now()}
	w := &watcher{st: st, p: p, feed: f, model: view.NewModel(p.Title(), time.Now()), view: r, live: live, fresh: true, notes: make(chan note, 8)}
	w.model.SetCounts(p.Counts, time.Now())
	return w, st, r
}

// run runs the watcher's plan in a node until it has ended.
func run(t *testing.T, w *watcher) (done chan struct{}) { return runUntil(t, t.Context(), w) }

// runUntil runs it until it has ended or ctx has.
func runUntil(t *testing.T, ctx context.Context, w *watcher) (done chan struct{}) {
	t.Helper()
	node, err := den.New(w.st, den.Config{Plugins: sleepers(), Name: "n", Host: "h", Threads: 1, Plan: w.p.ID, Logger: slog.New(&noteHandler{notes: w.notes})})
	if err != nil {
		t.Fatal(err)
	}
	done = make(chan struct{})
	go func() {
		defer close(done)
		if err := node.Run(ctx); err != nil {
			t.Errorf("the node: %v", err)
		}
	}()
	return done
}

func TestWatchingEndsWithTheRunAndShowsEachEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, r := watched(t, 3, false)
		began := time.Now()
		if err := w.watch(t.Context(), run(t, w)); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("it took %v, want 3s: the tasks and no more", took)
		}
		if want := []string{"t0 succeeded 1s", "t1 succeeded 1s", "t2 succeeded 1s"}; !slices.Equal(r.ends, want) {
			t.Errorf("ends: %q, want %q", r.ends, want)
		}
		for i := 1; i+1 < len(r.times); i++ {
			if between := r.times[i].Sub(r.times[i-1]); between < pollEvery {
				t.Errorf("%v between two looks, want at least %v", between, pollEvery)
			}
		}
	})
}

// A lister is a store that has some tasks, whatever it is asked for.
type lister struct {
	store.Store
	tasks []plan.Task
}

func (l *lister) Tasks(context.Context, store.TaskQuery) ([]plan.Task, error) { return l.tasks, nil }

func TestLinesTellWhatRunsAfterAMinuteOfSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &lister{}
		w := &watcher{lines: true, st: st, model: view.NewModel("nightly#1", time.Now())}
		start := func(name string) {
			st.tasks = append(st.tasks, plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: name, Status: plan.Running, Attempt: 1, Started: time.Now()})
		}
		told := func(after time.Duration, events ...view.Event) string {
			time.Sleep(after)
			if err := w.remind(t.Context(), time.Now(), events); err != nil {
				t.Error(err)
			}
			said := strings.Join(w.said, "; ")
			w.said = nil
			return said
		}
		start("dump")
		for i, c := range []struct {
			after  time.Duration
			events []view.Event
			want   string
		}{
			{0, nil, ""},
			{59 * time.Second, nil, ""},
			{time.Second, nil, "running: dump (1m00s)"},
			{30 * time.Second, nil, ""},
			{30 * time.Second, nil, "running: dump (2m00s)"},
			{59 * time.Second, []view.Event{{}}, ""}, // a line was shown
			{59 * time.Second, nil, ""},
			{time.Second, nil, "running: dump (3m59s)"},
		} {
			if got := told(c.after, c.events...); got != c.want {
				t.Errorf("%d: told %q, want %q", i, got, c.want)
			}
		}
		for _, name := range []string{"a", "b", "c", "d"} {
			start(name)
		}
		if got, want := told(time.Minute), "running: dump (4m59s), a (1m00s), b (1m00s), 2 more"; got != want {
			t.Errorf("told %q, want %q", got, want)
		}
		if w.lines = false; told(time.Hour) != "" {
			t.Error("a live view is told what runs, which it shows")
		}
	})
}

func TestWaitingEndsWithThePlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, r := watched(t, 2, false)
		done := run(t, w)
		if err := w.watch(t.Context(), nil); err != nil || w.p.State != plan.PlanSucceeded || len(r.ends) != 2 {
			t.Errorf("got %v, %v, %q", err, w.p.State, r.ends)
		}
		<-done
	})
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space") }

// A mute view cannot write.
type mute struct{ record }

func (m *mute) Show(shown *view.Moment) error {
	_ = m.record.Show(shown)
	_, err := (&view.Output{W: full{}}).Write(nil)
	return err
}

func TestAViewThatCannotBeWrittenIsNotTheStoresFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, _ := watched(t, 3, false)
		m := &mute{}
		w.view = m
		if err := w.watch(t.Context(), run(t, w)); err != nil {
			t.Fatal(err)
		}
		if want := []string{"standard output cannot be written: no space; what runs goes on"}; !slices.Equal(m.said, want) {
			t.Errorf("said %q, want %q", m.said, want)
		}
	})
}

func TestLiveProgressSaysWhyNothingRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, r := watched(t, 2, true)
		ctx, cancel := context.WithTimeout(t.Context(), 2*idleTime)
		defer cancel()
		if err := w.watch(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if want := []string{"nothing runs: t0 is queued: no node is alive"}; !slices.Equal(r.notes, want) {
			t.Errorf("notes: %q, want %q", r.notes, want)
		}
	})
}

func TestThatTheNodeOfARunEndsIsNoCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, r := watched(t, 2, true)
		ending := make(chan struct{})
		w.ending = ending
		ctx, cancel := context.WithTimeout(t.Context(), 3*idleTime)
		defer cancel()
		time.AfterFunc(idleTime/2, func() { close(ending) })
		if err := w.watch(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if len(r.notes) > 0 {
			t.Errorf("notes: %q, want none", r.notes)
		}
	})
}

// A late store does not tell of changes.
type late struct{ store.Store }

func (late) Changes(_ context.Context, after store.Cursor, _ int) ([]store.Change, store.Cursor, error) {
	return nil, after, nil
}

func TestWhyNothingRunsIsNotSaidOfWhatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, st, r := watched(t, 3, true)
		w.feed.Reader = late{st}
		ctx, cancel := context.WithTimeout(t.Context(), 2*idleTime)
		defer cancel()
		other, gone := &watcher{st: st, p: w.p, notes: w.notes}, make(chan chan struct{})
		go func() { time.Sleep(idleTime + time.Second/2); gone <- run(t, other) }()
		if err := w.watch(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		<-<-gone
		if want := []string{"nothing runs: t0 is queued: no node is alive", ""}; !slices.Equal(r.notes, want) {
			t.Errorf("notes: %q, want %q", r.notes, want)
		}
	})
}

func TestWaitingTellsWhenTheLastNodeIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, r := watched(t, 9, false)
		w.goOn = func(p *plan.Plan) string { return "resume " + p.Title() }
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		nodeCtx, kill := context.WithCancel(ctx)
		gone := runUntil(t, nodeCtx, w)
		go func() { time.Sleep(4500 * time.Millisecond); kill() }()
		if err := w.watch(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		<-gone
		if want := []string{"no node runs p#1 any more; resume p#1"}; !slices.Equal(r.said, want) {
			t.Errorf("said %q, want %q", r.said, want)
		}
	})
}

func TestNotesLastForAWhileAndAreNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, r := watched(t, 40, false)
		log := slog.New(&noteHandler{notes: w.notes})
		go func() {
			for range 5 {
				log.Warn("turn", "error", errors.New("full"))
				log.Info("nothing of interest")
				log.Warn("beat", "error", fmt.Errorf("x: %w", context.Canceled))
				time.Sleep(time.Second)
			}
			time.Sleep(20 * time.Second)
			w.notes <- note{"stopping", true}
		}()
		if err := w.watch(t.Context(), run(t, w)); err != nil {
			t.Fatal(err)
		}
		if want := []string{"node: turn: full", "", "stopping"}; !slices.Equal(r.notes, want) {
			t.Errorf("notes: %q, want %q", r.notes, want)
		}
		if want := []string{"node: turn: full", "stopping"}; !slices.Equal(r.said, want) {
			t.Errorf("said: %q, want %q", r.said, want)
		}
	})
}

// A node reports the tasks that it left behind just before it ends, and then both can be read.
func TestTheLastNotesOfANodeAreTold(t *testing.T) {
	for _, why := range []error{nil, plan.ErrStoreGone} {
		for range 20 { // a select chooses by chance
			synctest.Test(t, func(t *testing.T) {
				w, st, r := watched(t, 1, false)
				if why != nil {
					st.goAway(why)
				}
				done := make(chan struct{})
				w.notes <- note{text: "stopping at once", lasting: true}
				w.notes <- note{text: "node: left behind"}
				close(done)
				if err := w.watch(t.Context(), done); err != nil {
					t.Fatal(err)
				}
				if want := []string{"stopping at once", "node: left behind"}; !slices.Equal(r.said, want) {
					t.Errorf("said %q, want %q; the store: %v", r.said, want, why)
				}
			})
		}
	}
}

// A teller counts how often somebody reads the feed of changes.
type teller struct {
	store.Store
	asked atomic.Int64
}

func (s *teller) Changes(ctx context.Context, after store.Cursor, limit int) ([]store.Change, store.Cursor, error) {
	s.asked.Add(1)
	return s.Store.Changes(ctx, after, limit)
}

// plan wait prints no line for a task, and reads no change of one.
func TestWhoOnlyWaitsReadsNoChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, _ := watched(t, 40, false)
		st := &teller{Store: w.st}
		w.st, w.feed.Reader, w.counts = st, st, true
		done := run(t, w)
		if err := w.watch(t.Context(), nil); err != nil {
			t.Error(err)
		}
		ended := time.Now()
		<-done
		if n := st.asked.Load(); n != 0 {
			t.Errorf("the changes were read %d times", n)
		}
		if w.p.State != plan.PlanSucceeded || w.p.Counts.Succeeded != 40 {
			t.Errorf("the plan is %s with %d of 40 done", w.p.State, w.p.Counts.Succeeded)
		}
		p, err := st.Plan(t.Context(), w.p.ID)
		if err != nil || ended.Sub(p.Ended) > 2*pollEvery+ended.Sub(w.begun)/countsLate {
			t.Errorf("it was noticed %v after the end, %v", ended.Sub(p.Ended), err)
		}
	})
}

// In a log of a plan of many tasks no success has a line, and each retry has one. Lines of progress
// cover the rest.
func TestALogOfManyTasksTellsHowFarTheyAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, st, _ := watched(t, 40, false)
		var out strings.Builder
		w.view, w.logs, w.most = &view.Plain{W: &out, Notes: &out, Progress: &view.Reporter{}}, newOutputs(st, logsFailed), fewTasks
		if err := w.watch(t.Context(), run(t, w)); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		far := regexp.MustCompile(`^[0-9]+ of 40 \([0-9]+%\)(, about [0-9]+s left)?$`)
		if len(lines) < 12 || len(lines) > 20 || slices.ContainsFunc(lines, func(l string) bool { return !far.MatchString(l) }) {
			t.Errorf("%d lines: %q", len(lines), lines)
		}
	})
}

// The failures and retries of a plan of many tasks are found without a look at what changes, and each has a line once.
func TestALogOfManyTasksReadsNoChanges(t *testing.T) {
	for _, c := range []struct {
		name  string
		fresh bool
		want  []string
	}{
		{"of a new run", true, []string{"failed bad 0.0ms not yet", "retry early 0.0ms attempt 1 failed: not yet", "retry flaky 0.0ms attempt 1 failed: not yet"}},
		{"of one that went on", false, []string{"retry flaky 0.0ms attempt 1 failed: not yet"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				spec := plan.New("p")
				retry := plan.Retry{Attempts: 2, Delay: time.Second}
				spec.Add(plan.TaskSpec{Name: "bad", Plugin: "second"})
				spec.Add(plan.TaskSpec{Name: "early", Plugin: "second", Retry: retry})
				var needs []string
				for i := range 30 {
					needs = append(needs, fmt.Sprintf("t%02d", i))
					spec.Add(plan.TaskSpec{Name: needs[i], Plugin: "sleep"})
				}
				spec.Add(plan.TaskSpec{Name: "flaky", Plugin: "second", Retry: retry, Needs: needs})
				w, _, _ := watchedSpec(t, spec, false)
				st := &teller{Store: w.st}
				var out strings.Builder
				w.st, w.feed.Reader, w.most, w.fresh = st, st, fewTasks, c.fresh
				w.view, w.logs = &view.Plain{W: &out, Notes: &out}, newOutputs(st, logsFailed)
				done := run(t, w)
				if !c.fresh {
					time.Sleep(10 * time.Second)
					w.from = time.Now()
				}
				if err := w.watch(t.Context(), done); err != nil {
					t.Fatal(err)
				}
				var lines []string
				for l := range strings.Lines(out.String()) {
					lines = append(lines, strings.Join(strings.Fields(l), " "))
				}
				if slices.Sort(lines); !slices.Equal(lines, c.want) {
					t.Errorf("lines: %q, want %q", lines, c.want)
				}
				if n := st.asked.Load(); n != 0 {
					t.Errorf("the changes were read %d times", n)
				}
				ids, err := w.flaky(t.Context())
				if n := len(ids); err != nil || c.fresh && n != 2 || !c.fresh && n != 1 {
					t.Errorf("%d tasks are flaky (%v)", n, err)
				}
			})
		})
	}
}

// A plan may become large while it is followed: from then on no changes are read.
func TestAPlanThatBecomesLargeIsFollowedWithoutItsChanges(t *testing.T) {
	file := filepath.Join(t.TempDir(), "numbers")
	if err := os.WriteFile(file, []byte(strings.Repeat("1\n", 40)), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		spec := plan.New("p")
		for _, task := range []plan.TaskSpec{
			{Name: "first", Plugin: "sleep"}, {Name: "bad", Plugin: "second"}, {Name: "copy", Plugin: "sleep", Needs: []string{"first"}, Foreach: &plan.Foreach{Lines: file}},
			{Name: "worse", Plugin: "second", Needs: []string{"copy"}},
		} {
			spec.Add(task)
		}
		w, _, r := watchedSpec(t, spec, false)
		st := &teller{Store: w.st}
		w.st, w.feed.Reader, w.most, w.feed.Pages = st, st, fewTasks, 1
		if err := w.watch(t.Context(), run(t, w)); err != nil {
			t.Fatal(err)
		}
		var failed []string
		for _, l := range r.lines {
			if strings.HasPrefix(l, "failed") {
				failed = append(failed, l)
			}
		}
		if want := []string{"failed bad not yet", "failed worse not yet"}; !slices.Equal(failed, want) || len(r.lines) > 10 {
			t.Errorf("%d lines, of failures %q, want %q", len(r.lines), failed, want)
		}
		if n := st.asked.Load(); n > 40 {
			t.Errorf("in a run of 41 s the changes were read %d times", n)
		}
	})
}
