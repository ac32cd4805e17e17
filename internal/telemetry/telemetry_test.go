package telemetry

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/storetest/model"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
	"github.com/seed-1177d267/sluice/plugins/demo"
)

// run runs a plan of four tasks in a node of its own. One task is tried twice.
func run(t *testing.T, st store.Store, o den.Observer) plan.Plan {
	t.Helper()
	spec := plan.New("nightly")
	spec.Add(plan.TaskSpec{Name: "a", Plugin: "demo"})
	spec.Add(plan.TaskSpec{Name: "b", Plugin: "demo", Needs: []string{"a"}, Params: map[string]any{"fail": 1}, Retry: plan.Retry{Attempts: 2, Delay: plan.NoDelay}})
	spec.Add(plan.TaskSpec{Name: "c", Plugin: "demo", Needs: []string{"a"}, Params: map[string]any{"sleep": "20ms"}})
	spec.Add(plan.TaskSpec{Name: "d", Plugin: "demo", Needs: []string{"b", "c"}})
	p := runPlan(t, st, o, spec)
	if p.State != plan.PlanSucceeded {
		t.Fatalf("the plan is %v", p.State)
	}
	return p
}

// runPlan runs a plan in a node of its own, and returns it as it ended.
func runPlan(t *testing.T, st store.Store, o den.Observer, spec *plan.Spec) plan.Plan {
	t.Helper()
	p, err := submit.Submit(t.Context(), st, spec, false)
	if err != nil {
		t.Fatal(err)
	}
	reg := plugins.NewRegistry()
	reg.Register("demo", demo.Plugin)
	n, err := den.New(st, den.Config{Plugins: reg, Name: "n1", Plan: p.ID, Observer: o})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p, err = st.Plan(t.Context(), p.ID); err != nil {
		t.Fatal(err)
	}
	return p
}

func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	text, err := io.ReadAll(w.Body)
	if err != nil || w.Code != 200 {
		t.Fatalf("%d %v", w.Code, err)
	}
	return string(text)
}

func TestMetrics(t *testing.T) {
	st := model.New(model.Options{})
	m := NewMetrics(st, slog.New(slog.DiscardHandler))
	run(t, st, m)
	if _, err := st.CreateQueue(t.Context(), plan.Queue{Name: "imap", Plugin: "demo", Threads: 3}); err != nil {
		t.Fatal(err)
	}
	q, err := st.Queues(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(q, func(q plan.Queue) bool { return q.Name == "imap" })
	if err := st.AddTasks(t.Context(), plan.PlanID{}, []plan.Task{{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Queue: q[i].ID}}); err != nil {
		t.Fatal(err)
	}
	nightly := plan.Schedule{ID: plan.ScheduleID{ID: plan.NewID(time.Now())}, Name: "nightly", Created: time.Now().Add(-90 * time.Minute), Tally: plan.ScheduleTally{Started: 4, Succeeded: 3, Failed: 1, Skipped: 2}}
	if _, err := st.PutSchedules(t.Context(), []plan.Schedule{nightly}); err != nil {
		t.Fatal(err)
	}
	m.Fired(20 * time.Millisecond)
	text := scrape(t, m)
	for _, want := range []string{
		`sluice_schedule_occurrences_total{schedule="nightly",state="started"} 4`,
		`sluice_schedule_occurrences_total{schedule="nightly",state="failed"} 1`,
		`sluice_schedule_occurrences_total{schedule="nightly",state="skipped"} 2`,
		`sluice_schedule_success_seconds{schedule="nightly"} 54`, // and some
		`sluice_schedule_lateness_seconds_count 1`,
		`sluice_tasks_claimed_total{queue="demo"} 5`,
		`sluice_tasks_ended_total{queue="demo",state="succeeded"} 4`,
		`sluice_tasks_ended_total{queue="demo",state="held"} 1`,
		`sluice_task_seconds_count{queue="demo"} 5`,
		`sluice_tasks_ended_total{queue="demo",state="failed"} 0`, // a rate sees the first of them
		`sluice_tasks_lost_total{queue="demo"} 0`,
		`sluice_plans_ended_total{state="succeeded"} 1`,
		`sluice_plans_ended_total{state="failed"} 0`,
		`sluice_plans_ended_total{state="cancelled"} 0`,
		`sluice_queue_tasks{queue="imap",state="queued"} 1`,
		`sluice_queue_threads{queue="imap"} 3`,
		`sluice_queue_threads{queue="demo"} +Inf`,
		`sluice_store_up 1`,
		`sluice_store_seconds_count{call="Sweep"}`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %s", want)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

func TestPlansAreCountedByHowTheyEnded(t *testing.T) {
	st := model.New(model.Options{})
	m := NewMetrics(st, slog.New(slog.DiscardHandler))
	run(t, st, m)
	for range 2 {
		failing := plan.New("failing")
		failing.Add(plan.TaskSpec{Name: "a", Plugin: "demo", Params: map[string]any{"fail": 1}})
		if p := runPlan(t, st, m, failing); p.State != plan.PlanFailed {
			t.Errorf("the plan is %v", p.State)
		}
	}
	text := scrape(t, m)
	for _, want := range []string{
		`sluice_plans_ended_total{state="succeeded"} 1`, `sluice_plans_ended_total{state="failed"} 2`, `sluice_plans_ended_total{state="cancelled"} 0`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %s in\n%s", want, text)
		}
	}
}

// An away store cannot be counted.
type away struct{ store.Store }

func (away) Now(context.Context) (time.Time, error) { return time.Time{}, errors.New("away") }

func TestAStoreThatIsAwayIsSaidAndTheRestIsTold(t *testing.T) {
	text := scrape(t, NewMetrics(away{model.New(model.Options{})}, slog.New(slog.DiscardHandler)))
	if !strings.Contains(text, "sluice_store_up 0") || !strings.Contains(text, "go_goroutines") {
		t.Error(text)
	}
}

func TestTraces(t *testing.T) {
	st := model.New(model.Options{})
	out := tracetest.NewInMemoryExporter()
	traces := newTraces(sdk.NewSimpleSpanProcessor(out), "1", st, slog.New(slog.DiscardHandler))
	p := run(t, st, traces)
	// The in-memory exporter loses its spans at Shutdown. Close waits for tell first.
	close(traces.ended)
	close(traces.plans)
	<-traces.done
	spans := out.GetSpans()
	byName := map[string][]tracetest.SpanStub{}
	for _, s := range spans {
		byName[s.Name] = append(byName[s.Name], s)
		if s.SpanContext.TraceID() != spanOf(p.ID, plan.TaskID{}, 0).TraceID() {
			t.Errorf("%s is of another trace", s.Name)
		}
	}
	root := byName["nightly"]
	if len(spans) != 6 || len(root) != 1 || len(byName["b"]) != 2 {
		t.Fatalf("there are %d spans: %v", len(spans), byName)
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		for _, s := range byName[name] {
			if s.Parent.SpanID() != root[0].SpanContext.SpanID() {
				t.Errorf("%s is not below the plan", name)
			}
		}
	}
	d := byName["d"][0]
	linked := map[string]bool{}
	for _, l := range d.Links {
		for name, all := range byName {
			for i, s := range all {
				if s.SpanContext.SpanID() == l.SpanContext.SpanID() {
					linked[name] = i == len(all)-1
				}
			}
		}
	}
	if len(d.Links) != 2 || !linked["b"] || !linked["c"] {
		t.Errorf("d links to %v, want the last attempts of b and c", linked)
	}
	if c := byName["c"][0]; c.EndTime.Sub(c.StartTime) < 20*time.Millisecond {
		t.Errorf("c took %v", c.EndTime.Sub(c.StartTime))
	}
}
