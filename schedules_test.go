package sluice_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice"
	"github.com/seed-1177d267/sluice/den"
	v1 "github.com/seed-1177d267/sluice/internal/api/v1"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

var _ den.Scheduler = (*sluice.Store)(nil)

func greeting(cron string) plan.ScheduleSettings {
	return plan.ScheduleSettings{Timetable: plan.Timetable{Cron: cron}, Task: &plan.ScheduledTask{Queue: "greet", Params: json.RawMessage(`{"name":"Ada","word":"Hi"}`)}}
}

// schedulesOf uses all that a store has for schedules.
func schedulesOf(t *testing.T, st *sluice.Store) {
	ctx := t.Context()
	if _, err := st.PutSchedule(ctx, "x", greeting("@daily")); !errors.Is(err, plan.ErrNotFound) || !strings.Contains(err.Error(), "sluice queue create greet") {
		t.Errorf("a schedule of a missing queue: %v", err)
	}
	must[plan.Queue](t)(st.CreateQueue(ctx, plan.Queue{Name: "greet", Plugin: "greet", Unlimited: true}))
	if _, err := st.PutSchedule(ctx, "x", greeting("61 * * * *")); err == nil || !strings.Contains(err.Error(), "minute") {
		t.Errorf("a schedule that is not valid: %v", err)
	}
	first := must[plan.Schedule](t)(st.PutSchedule(ctx, "x", greeting("@daily")))
	if same := must[plan.Schedule](t)(st.PutSchedule(ctx, "x", greeting("@daily"))); same.Revision != first.Revision || !same.Cursor.Equal(first.Cursor) {
		t.Errorf("put again, it is %+v, and was %+v", same, first)
	}
	must[plan.Schedule](t)(st.PutSchedule(ctx, "x", greeting("@hourly")))
	of := greeting("@daily")
	of.Task, of.Plan = nil, &plan.ScheduledPlan{File: plan.File{Text: "plan: p\ntasks: {a: {plugin: list}}\n", Dir: "/"}}
	must[plan.Schedule](t)(st.PutSchedule(ctx, "a", of))
	var names []string
	for s, err := range st.Schedules(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, s.Name+" "+s.Cron)
	}
	if !slices.Equal(names, []string{"a @daily", "x @hourly"}) {
		t.Errorf("there are %q", names)
	}
	if s := must[plan.Schedule](t)(st.PauseSchedule(ctx, "x", "a holiday")); s.Paused == nil || s.Paused.Why != "a holiday" {
		t.Errorf("paused, it is %+v", s)
	}
	if _, err := st.PauseSchedule(ctx, "x", ""); !errors.Is(err, plan.ErrConflict) {
		t.Errorf("a second pause: %v", err)
	}
	must[plan.Schedule](t)(st.ResumeSchedule(ctx, "x"))
	if o := must[plan.Occurrence](t)(st.RunSchedule(ctx, "x")); o.Kind != plan.ByRun {
		t.Errorf("a run is %+v", o)
	}
	must[plan.Occurrence](t)(st.RunSchedule(ctx, "a"))
}

// ran waits until an occurrence of each schedule has succeeded.
func ran(t *testing.T, st *sluice.Store, names ...string) {
	for _, name := range names {
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			s := must[plan.Schedule](t)(st.Schedule(t.Context(), name))
			if len(s.Last) == 1 && s.Last[0].State == plan.OccurrenceSucceeded {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("schedule %s is %+v", name, s)
			}
		}
	}
}

// fires runs two nodes of one process, either of which may fire.
func fires(t *testing.T, st *sluice.Store) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	const nodes = 2
	for range nodes {
		go func() { ended <- den.Run(ctx, st, den.Config{Plugins: registry(), Schedules: st}) }()
	}
	return func() {
		cancel()
		for range nodes {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}
}

func TestSchedules(t *testing.T) {
	onEach(t, func(t *testing.T, st *sluice.Store, _ func() *sluice.Store) {
		schedulesOf(t, st)
		stop := fires(t, st)
		ran(t, st, "a", "x")
		stop()
		if err := errors.Join(st.DeleteSchedule(t.Context(), "x"), st.DeleteSchedule(t.Context(), "a")); err != nil {
			t.Error(err)
		}
		_, shown := st.Schedule(t.Context(), "x")
		if err := st.DeleteSchedule(t.Context(), "x"); !errors.Is(err, plan.ErrNotFound) || !errors.Is(shown, plan.ErrNotFound) {
			t.Errorf("a deleted schedule: %v, %v", shown, err)
		}
		wrong := greeting("@daily")
		wrong.Task, wrong.Plan = nil, &plan.ScheduledPlan{File: plan.File{Text: "plan: p\ntasks: {a: {plugin: list, neds: b}}\n", Dir: "/"}}
		_, err := st.PutSchedule(t.Context(), "x", wrong)
		if mistakes, ok := errors.AsType[sluice.FileErrors](err); !ok || mistakes[0].Line != 2 {
			t.Errorf("a plan file with a mistake: %v", err)
		}
		_, err = st.PutSchedule(t.Context(), "x", greeting("61 * * * *"))
		if problems, ok := errors.AsType[plan.Problems](err); !ok || problems[0].Key != "cron" {
			t.Errorf("a schedule that is not valid: %v", err)
		}
	})
}

func TestSchedulesOfAServer(t *testing.T) {
	st := must[*sluice.Store](t)(sluice.Open(t.Context(), "memory:"))
	srv := httptest.NewServer(v1.New(v1.Config{Store: st.Unwrap().(store.Store)}))
	defer srv.Close()
	far := must[*sluice.Store](t)(sluice.Connect(srv.URL, sluice.ServerOptions{}))
	schedulesOf(t, far)
	if _, _, err := far.Fire(t.Context(), plan.InstanceID{}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a program without the store fires: %v", err)
	}
	stop := fires(t, st)
	ran(t, far, "a", "x")
	stop()
	if err := far.DeleteSchedule(t.Context(), "x"); err != nil {
		t.Error(err)
	}
}

// A plugin refuses the task of a schedule as it refuses any other.
func TestAPluginRefusesTheTaskOfASchedule(t *testing.T) {
	reg := registry()
	reg.Register("choosy", choosy{})
	st := must[*sluice.Store](t)(sluice.Open(t.Context(), "memory:", sluice.WithPlugins(reg)))
	must[plan.Queue](t)(st.CreateQueue(t.Context(), plan.Queue{Name: "choosy", Plugin: "choosy"}))
	s := greeting("@daily")
	s.Task.Queue, s.Task.Params = "choosy", json.RawMessage(`{"word": "bad"}`)
	_, err := st.PutSchedule(t.Context(), "x", s)
	if p, ok := errors.AsType[plan.Problems](err); !ok || !strings.Contains(p[0].Message, "it is not good") {
		t.Errorf("it is %v", err)
	}
}
