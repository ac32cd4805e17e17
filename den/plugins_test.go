//go:build !race

package den_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// late is a plugin none of whose tasks could run.
type late struct{ plugins.Plugin }

func (late) CheckStart() error { return errors.New("too late") }

func TestANodeDoesNotBeginWithAPluginThatCannotRun(t *testing.T) {
	w := newWorld(t)
	w.plugins.Register("late", late{plugins.Func(func(context.Context, *plugins.Task) (any, error) { return nil, nil })})
	if _, err := den.New(w.store, den.Config{Plugins: w.plugins}); err == nil || err.Error() != `plugin "late": too late` {
		t.Errorf("got %v", err)
	}
}

func TestAPluginMayComeWhileTheNodeRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := plan.New("late")
		s.Add(plan.TaskSpec{Name: "a", Plugin: "late", Params: map[string]any{"for": "1s"}})
		p := w.submit(s)
		ctx, stop := context.WithCancel(t.Context())
		go func() {
			time.Sleep(time.Minute)
			w.wantState(p, map[string]string{"a": "queued"})
			sleep, _ := w.plugins.Get("sleep")
			w.plugins.Register("late", sleep)
			time.Sleep(time.Minute)
			w.wantState(p, map[string]string{"a": "succeeded"})
			stop()
		}()
		if err := w.node(den.Config{}).Run(ctx); err != nil {
			t.Error(err)
		}
	})
}

// A fickle store lets a plugin disappear between the node's question and its answer.
type fickle struct {
	store.Store
	gone func()
}

func (f *fickle) Turn(ctx context.Context, t protocol.Turn) (protocol.Turned, error) {
	done, err := f.Store.Turn(ctx, t)
	if len(done.Claimed) > 0 && f.gone != nil {
		f.gone()
		f.gone = nil
	}
	return done, err
}

func TestATaskWhosePluginWentIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := plan.New("fickle")
		s.Add(plan.TaskSpec{Name: "a", Plugin: "echo", Retry: plan.Retry{Attempts: 1}})
		p := w.submit(s)
		echo, _ := w.plugins.Get("echo")
		ctx, stop := context.WithCancel(t.Context())
		go func() {
			time.Sleep(time.Minute)
			w.wantState(p, map[string]string{"a": "queued"})
			w.plugins.Register("echo", echo)
			time.Sleep(time.Minute)
			w.wantState(p, map[string]string{"a": "succeeded"})
			if a := w.task(p, "a"); a.Attempt != 1 {
				t.Errorf("it succeeded with attempt %d, want the first", a.Attempt)
			}
			stop()
		}()
		f := &fickle{w.store, func() { w.plugins.Remove("echo") }}
		if err := w.on(f, den.Config{}).Run(ctx); err != nil {
			t.Error(err)
		}
	})
}

func TestATaskThatItsPluginCouldNotBeginIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		tries := 0
		w.plugins.Register("shy", shy{&tries})
		s := plan.New("shy")
		s.Add(plan.TaskSpec{Name: "a", Plugin: "shy"})
		p := w.submit(s)
		if err := w.node(den.Config{Plan: p.ID}).Run(t.Context()); err != nil {
			t.Error(err)
		}
		if a := w.task(p, "a"); a.Status != plan.Succeeded || a.Attempt != 1 || tries != 3 {
			t.Errorf("it is %v (%s) with attempt %d after %d tries, want it to have succeeded with the first after 3", a.Status, a.Detail, a.Attempt, tries)
		}
		log, _, err := w.store.Log(t.Context(), w.task(p, "a").ID, 0, 100)
		if err != nil || len(log) != 2 || !rules.IsGivenBack(&log[0]) || !strings.Contains(log[1].Text, "could not begin") {
			t.Errorf("the log is %+v, %v; want two entries that say that it could not begin", log, err)
		}
	})
}

// shy is a plugin that cannot begin at first.
type shy struct{ tries *int }

func (s shy) Run(context.Context, *plugins.Task) plan.Result {
	if *s.tries++; *s.tries < 3 {
		time.Sleep(time.Second)
		return plan.Result{Status: plan.Queued}
	}
	return plan.Result{Status: plan.Succeeded}
}

// A reporting store keeps reports.
type reporting struct {
	store.Store
	kept []string
	hang int // so many calls have no answer
}

func (r *reporting) Report(ctx context.Context, _ plan.ID, document json.RawMessage) error {
	if r.hang > 0 {
		r.hang--
		<-ctx.Done()
		return ctx.Err()
	}
	r.kept = append(r.kept, string(document))
	return nil
}

func TestReportsGoToTheStoreOrToTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.register("report", func(ctx context.Context, t *plugins.Task) (any, error) {
			return nil, t.Report(ctx, map[string]any{"name": t.Name, "queue": t.QueueID})
		})
		run := func(st store.Store) (plan.Task, string) {
			s := plan.New("reports")
			s.Add(plan.TaskSpec{Name: "a", Plugin: "report"})
			p := w.submit(s)
			if err := w.on(st, den.Config{Plan: p.ID}).Run(t.Context()); err != nil {
				t.Error(err)
			}
			a := w.task(p, "a")
			var log strings.Builder
			entries, _, err := w.store.Log(t.Context(), a.ID, 0, 100)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				log.WriteString(e.Text)
			}
			return a, log.String()
		}
		kept := &reporting{Store: w.store, hang: 1}
		a, log := run(kept)
		want := `{"name":"a","queue":"` + a.Queue.String() + `"}`
		if a.Status != plan.Succeeded || len(kept.kept) != 1 || kept.kept[0] != want || log != "" {
			t.Errorf("status %v, kept %q, log %q; want %q kept", a.Status, kept.kept, log, want)
		}
		if _, log := run(w.store); log != "report: "+want+"\n" {
			t.Errorf("the log is %q, want the report %s", log, want)
		}
	})
}
