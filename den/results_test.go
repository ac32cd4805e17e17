//go:build !race

// In Go 1.26 a synctest bubble and the race detector do not work together. Timers that fire in a
// bubble now and then crash the detector (golang.org/issue/78156). Tests for the detector run in
// real time, in race_test.go.

package den_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/storetest/model"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// A keeping store counts the results, and fails as often as a test wants.
type keeping struct {
	*model.Store
	fail  []error // each of the next puts
	puts  int
	modes []protocol.GFS
	state []plan.Status // of the task as it was put
}

func (k *keeping) PutResults(ctx context.Context, c protocol.Claim, stdout, stderr *io.SectionReader, mode protocol.GFS) error {
	k.puts++
	k.modes = append(k.modes, mode)
	t, err := k.Task(ctx, c.Task)
	if err != nil {
		return err
	}
	k.state = append(k.state, t.Status)
	if len(k.fail) > 0 {
		err, k.fail = k.fail[0], k.fail[1:]
		return err
	}
	return k.Store.PutResults(ctx, c, stdout, stderr, mode)
}

// plain runs a task of no plan of a plugin "print" to its end, and returns it.
func (w *world) plain(s store.Store, cfg den.Config) plan.Task {
	w.Helper()
	w.store = s
	q, err := s.EnsureQueue(w.Context(), plan.Queue{ID: plan.QueueID{ID: plan.NewID(time.Now())}, Name: "q", Plugin: "print", Unlimited: true})
	if err != nil {
		w.Fatal(err)
	}
	t := plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: "a", Queue: q.ID}
	if err := s.AddTasks(w.Context(), plan.PlanID{}, []plan.Task{t}); err != nil {
		w.Fatal(err)
	}
	ctx, stop := context.WithCancel(w.Context())
	done := make(chan error)
	go func() { done <- w.node(cfg).Run(ctx) }()
	for {
		time.Sleep(time.Second)
		if t, err = s.Task(w.Context(), t.ID); err != nil {
			w.Fatal(err)
		}
		if t.Status.Finished() {
			break
		}
	}
	stop()
	if err := <-done; err != nil {
		w.Error(err)
	}
	return t
}

// result returns what is kept of a stream, "null" if nothing is.
func result(t *testing.T, s store.Results, id plan.TaskID, stream plan.Stream) string {
	t.Helper()
	r, size, err := s.OpenResult(t.Context(), id, stream)
	if err != nil {
		t.Fatal(err)
	}
	if size < 0 {
		return "null"
	}
	all, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}

// printer is a plugin that prints 3 MiB on its standard output and a line on the other.
func printer(_ context.Context, t *plugins.Task) (any, error) {
	for range 3 << 10 {
		t.Log.Print(strings.Repeat("x", 1023))
	}
	t.Log.Append(plan.Stderr, "err")
	return "out", nil
}

func TestWhatATaskOfNoPlanPrintsIsKeptBeforeItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.register("print", printer)
		s := &keeping{Store: model.New(model.Options{})}
		got := w.plain(s, den.Config{GFS: protocol.GFSNever})
		if got.Status != plan.Succeeded || s.puts != 1 || s.modes[0] != protocol.GFSNever || s.state[0] != plan.Running {
			t.Errorf("%v; put %d times, as %v, when it was %v; want once, as it ran", got.Status, s.puts, s.modes, s.state)
		}
		if out := result(t, s, got.ID, plan.Stdout); out != strings.Repeat(strings.Repeat("x", 1023)+"\n", 3<<10) {
			t.Errorf("stdout has %d bytes, want 3 MiB", len(out))
		}
		if out := result(t, s, got.ID, plan.Stderr); out != "err\n" {
			t.Errorf("stderr is %q", out)
		}
	})
}

func TestWhatIsSmallGoesWithTheEnding(t *testing.T) {
	for _, c := range []struct {
		name           string
		stdout, stderr string
		gfs            protocol.GFS
		puts           int
		out, err       string
	}{
		{name: "nothing", out: "null", err: "null"},
		{name: "a line on one stream", stdout: "out", out: "out\n", err: "null"},
		{name: "a line on both", stdout: "out", stderr: "err", out: "out\n", err: "err\n"},
		{name: "what is larger is put before, and an empty stream is null", stderr: strings.Repeat("x", 20<<10), puts: 1, out: "null",
			err: strings.Repeat("x", 20<<10) + "\n"},
		{name: "files are put before, also empty ones", gfs: protocol.GFSAlways, puts: 1, out: "", err: ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.register("print", func(_ context.Context, k *plugins.Task) (any, error) {
					for stream, line := range map[plan.Stream]string{plan.Stdout: c.stdout, plan.Stderr: c.stderr} {
						if line != "" {
							k.Log.Append(stream, line)
						}
					}
					return nil, nil
				})
				s := &keeping{Store: model.New(model.Options{})}
				got := w.plain(s, den.Config{GFS: c.gfs})
				out, err := result(t, s, got.ID, plan.Stdout), result(t, s, got.ID, plan.Stderr)
				if got.Status != plan.Succeeded || s.puts != c.puts || out != c.out || err != c.err {
					t.Errorf("%v; put %d times, want %d; %.20q and %.20q, want %.20q and %.20q", got.Status, s.puts, c.puts, out, err, c.out, c.err)
				}
			})
		})
	}
}

func TestOfAPlansTaskTheLogIsKeptAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.register("print", func(ctx context.Context, k *plugins.Task) (any, error) {
			if k.Log.Capture() != nil {
				t.Error("what it prints is captured")
			}
			return printer(ctx, k)
		})
		s := &keeping{Store: model.New(model.Options{})}
		w.store = s
		p := plan.New("p")
		p.Add(plan.TaskSpec{Name: "a", Plugin: "print"})
		submitted := w.submit(p)
		if err := w.node(den.Config{Plan: submitted.ID}).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if id := w.task(submitted, "a").ID; s.puts != 0 || result(t, s, id, plan.Stdout) != "null" {
			t.Errorf("put %d times", s.puts)
		}
	})
}

// unheard is a plugin that prints to no streams.
type unheard struct{ plugins.Func }

func (unheard) Silent() {}

func TestOfASilentPluginTheLogIsKeptAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.plugins.Register("print", unheard{func(_ context.Context, k *plugins.Task) (any, error) {
			if k.Log.Capture() != nil {
				t.Error("what it prints is captured")
			}
			k.Log.Append(plan.System, "done")
			return nil, nil
		}})
		s := &keeping{Store: model.New(model.Options{})}
		got := w.plain(s, den.Config{GFS: protocol.GFSAlways})
		if out := result(t, s, got.ID, plan.Stdout); got.Status != plan.Succeeded || s.puts != 0 || out != "null" {
			t.Errorf("%v; put %d times, stdout %q; want success, without results", got.Status, s.puts, out)
		}
		entries, _, err := s.Log(t.Context(), got.ID, 0, 10)
		if err != nil || len(entries) != 1 || entries[0].Text != "done\n" {
			t.Errorf("the log is %+v, %v", entries, err)
		}
	})
}

func TestALargeOutputLeavesNoRoomInTheDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.register("print", func(_ context.Context, k *plugins.Task) (any, error) {
			for range 10 {
				k.Log.Print(strings.Repeat("x", 1<<20))
			}
			return strings.Repeat("y", 7<<20), nil
		})
		s := &keeping{Store: model.New(model.Options{})}
		if got := w.plain(s, den.Config{}); got.Status != plan.Succeeded || s.modes[0] != protocol.GFSAlways {
			t.Errorf("%v, put as %v", got.Status, s.modes)
		}
	})
}

func TestResultsThatAreNotKept(t *testing.T) {
	refused := errors.New("refused")
	var away []error
	for range 1000 {
		away = append(away, fmt.Errorf("down: %w", plan.ErrUnavailable))
	}
	for _, c := range []struct {
		name  string
		fail  []error
		puts  int // at least
		kept  bool
		noted bool
	}{
		{"while the store is away it is tried again", away[:3], 4, true, false},
		{"but not for ever", away, 10, false, true},
		{"what is refused is not", []error{refused, refused}, 1, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.register("print", printer)
				s := &keeping{Store: model.New(model.Options{}), fail: c.fail}
				got := w.plain(s, den.Config{})
				entries, _, err := s.Log(t.Context(), got.ID, 0, 1_000_000)
				if err != nil {
					t.Fatal(err)
				}
				noted := strings.Contains(entries[len(entries)-1].Text, "were not kept beside this log: ")
				kept := result(t, s, got.ID, plan.Stderr) == "err\n"
				if got.Status != plan.Succeeded || s.puts < c.puts || kept != c.kept || noted != c.noted {
					t.Errorf("%v, put %d times, kept %v, noted %v; want %+v", got.Status, s.puts, kept, noted, c)
				}
			})
		})
	}
}

// A store that keepsNothing takes everything but results.
type keepsNothing struct{ *model.Store }

func (k keepsNothing) PutResults(context.Context, protocol.Claim, *io.SectionReader, *io.SectionReader, protocol.GFS) error {
	return plan.ErrUnavailable
}

// A node that stops ends after its grace and a lease.
func TestResultsThatCannotBeKeptHoldUpNoNodeThatStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		q, err := w.store.EnsureQueue(t.Context(), plan.Queue{Name: "echo", Plugin: "echo", Unlimited: true})
		if err != nil {
			t.Fatal(err)
		}
		id := plan.TaskID{ID: plan.NewID(time.Now())}
		if err := w.store.AddTasks(t.Context(), plan.PlanID{}, []plan.Task{{ID: id, Name: "x", Queue: q.ID, Params: params(`{}`)}}); err != nil {
			t.Fatal(err)
		}
		st := w.store.(*model.Store)
		ctx, stop := context.WithTimeout(t.Context(), 2*time.Second)
		defer stop()
		began := time.Now()
		err = w.on(keepsNothing{st}, den.Config{Name: "n1", Lease: 10 * time.Second, Grace: 10 * time.Second}).Run(ctx)
		got, _ := w.store.Tasks(t.Context(), store.TaskQuery{IDs: []plan.TaskID{id}, Limit: 1})
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("it was stopped after 2 s and ended after %v (%v), with %v; want its grace and a lease at most", took, err, got[0].Status)
		}
	})
}
