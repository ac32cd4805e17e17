package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	v1 "github.com/seed-1177d267/sluice/internal/api/v1"
	"github.com/seed-1177d267/sluice/internal/schedule"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/storetest/model"
	"github.com/seed-1177d267/sluice/plan"
)

var _ schedule.Service = (*ScheduleService)(nil)

// Every operation gives the same, whether a server is between or not: a command uses either.
func TestTheSchedulesOfAServerAreThoseOfItsStore(t *testing.T) {
	queue := plan.Queue{Name: "q", Plugin: "exec", Unlimited: true}
	task := func(cron string) plan.ScheduleSettings {
		return plan.ScheduleSettings{Timetable: plan.Timetable{Cron: cron, Jitter: plan.Duration(90 * time.Second)}, Task: &plan.ScheduledTask{Queue: "q", Params: json.RawMessage(`{"run":"true"}`), Timeout: plan.Duration(time.Minute)}}
	}
	ofPlan := func(text string) plan.ScheduleSettings {
		return plan.ScheduleSettings{Timetable: plan.Timetable{Every: plan.Duration(time.Hour), Zone: "Europe/Berlin"}, Missed: plan.MissedSkip, Plan: &plan.ScheduledPlan{File: plan.File{Text: text, Dir: "/srv"}, Source: "/srv/p.yaml"}}
	}
	const file = "plan: p\ntasks: {a: {run: 'true'}}\n"
	past := plan.Span{From: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), To: time.Date(2026, 1, 1, 5, 0, 0, 0, time.UTC)}
	// story tells what a service does. The story leaves out times and ids.
	story := func(s schedule.Service) string {
		var b strings.Builder
		told := func(what string, err error, all ...plan.Schedule) {
			kinds := ""
			for name, kind := range map[string]error{"not found": plan.ErrNotFound, "exists": plan.ErrExists, "conflict": plan.ErrConflict, "secret": plan.ErrSecret} {
				if errors.Is(err, kind) {
					kinds += name
				}
			}
			fmt.Fprintf(&b, "%s: %s (%s)\n", what, cut(fmt.Sprint(err)), kinds)
			for _, is := range all {
				if err != nil {
					continue
				}
				text, _ := json.Marshal(is.ScheduleSettings.Target())
				fmt.Fprintf(&b, "  %s at %d: cron %q, every %s, zone %s, jitter %s, overlap %s, missed %s, %s\n", is.Name, is.Revision, is.Cron, is.Every, is.Zone, is.Jitter, is.Overlap, is.Missed, text)
				fmt.Fprintf(&b, "  id %v, from %v, applied %s, paused %v, open %d, backfills %v, tally %v, times %v %v %v\n", !is.ID.IsZero(), !is.From.IsZero(), is.Applied, is.Paused != nil && is.Paused.Why == "a holiday", len(is.Open), is.Backfills, is.Tally, !is.Created.IsZero(), !is.Next.IsZero(), !is.Cursor.IsZero())
			}
		}
		ctx := t.Context()
		show := func(name string) {
			is, err := s.Show(ctx, name)
			told("show "+name, err, is)
		}
		list := func(q store.ScheduleQuery) {
			all, err := s.List(ctx, q)
			told(fmt.Sprintf("list %+v: %d", q, len(all)), err, all...)
		}
		list(store.ScheduleQuery{})
		for _, name := range []string{"a", "b", "a", "a b"} {
			is, err := s.Create(ctx, name, task("0 * * * *"), "/srv")
			told("create "+name, err, is)
		}
		is, err := s.Create(ctx, "c", ofPlan(file), "")
		told("create c", err, is)
		is, err = s.Create(ctx, "d", ofPlan("plan: p\ntasks: {a: {run: 'true', neds: b}}\n"), "")
		told("create what is not valid", err, is)
		bad := task("0 * * * *")
		bad.Task.Queue = "none"
		is, err = s.Create(ctx, "d", bad, "")
		told("create with a missing queue", err, is)
		for _, name := range []string{"a", "c", "none"} {
			show(name)
		}
		for _, q := range []store.ScheduleQuery{{}, {Files: true}, {Limit: 2}, {After: "a", Limit: 1}, {Name: "c"}, {Name: "c", Files: true}, {Name: "none"}} {
			list(q)
		}
		is, err = s.Set(ctx, "a", 1, task("5 * * * *"))
		told("set", err, is)
		is, err = s.Set(ctx, "a", 1, task("5 * * * *"))
		told("set the same again", err, is)
		is, err = s.Set(ctx, "a", 1, task("6 * * * *"))
		told("set an old revision", err, is)
		is, err = s.Set(ctx, "c", 0, ofPlan(""))
		told("set without a text", err, is)
		is, err = s.Set(ctx, "none", 0, task("6 * * * *"))
		told("set none", err, is)
		for range 2 {
			is, err = s.Pause(ctx, "a", 0, "a holiday")
			told("pause", err, is)
		}
		is, err = s.Pause(ctx, "b", 7, "")
		told("pause an old revision", err, is)
		for range 2 {
			o, err := s.Run(ctx, "a")
			if told(fmt.Sprintf("run: %s by %s", o.State, o.Kind), err); err == nil && time.Since(o.At) > time.Minute {
				t.Errorf("it ran at %s", o.At)
			}
		}
		for _, revision := range []int64{7, 0, 0} {
			is, err = s.Resume(ctx, "a", revision)
			told("resume", err, is)
		}
		for _, dry := range []bool{true, false} {
			n, err := s.Backfill(ctx, "b", past, dry)
			told(fmt.Sprintf("backfill %d", n), err)
			show("b")
		}
		_, err = s.Backfill(ctx, "b", plan.Span{From: past.From, To: past.To.AddDate(100, 0, 0)}, false)
		told("backfill of the future", err)
		for _, revision := range []int64{7, 0, 0} {
			told("delete", s.Delete(ctx, "a", revision))
		}
		_, err = s.Run(ctx, "a")
		told("run none", err)
		_, err = s.Backfill(ctx, "a", past, false)
		told("backfill none", err)
		return b.String()
	}
	open := func() *model.Store {
		st := model.New(model.Options{})
		if _, err := st.CreateQueue(t.Context(), queue); err != nil {
			t.Fatal(err)
		}
		return st
	}
	srv := httptest.NewServer(v1.New(v1.Config{Store: open()}))
	defer srv.Close()
	c, err := New(Config{URL: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	want, got := strings.Split(story(&schedule.Setter{Store: open()}), "\n"), strings.Split(story(c.ScheduleService()), "\n")
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || want[i] != got[i] {
			t.Fatalf("line %d of the story differs:\n%s\nand over HTTP\n%s", i, strings.Join(want[min(i, len(want)):], "\n"), strings.Join(got[min(i, len(got)):], "\n"))
		}
	}
	if len(want) < 80 {
		t.Errorf("the story has %d lines; it had more", len(want))
	}
	if _, err := c.ScheduleService().List(t.Context(), store.ScheduleQuery{Due: time.Now()}); err == nil {
		t.Error("a server lists what is due")
	}
}

// cut returns an error's text without the words that tell a time, or the place of a mistake.
func cut(text string) string {
	for _, words := range []string{"does not start another one now", "neds", "has not come yet"} {
		if strings.Contains(text, words) {
			return words
		}
	}
	return instant.ReplaceAllString(text, "TIME") // the two stories are told at different seconds
}

var instant = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)

// A schedule whose making got no answer is made once.
func TestALostAnswerMakesOneSchedule(t *testing.T) {
	st := model.New(model.Options{})
	if _, err := st.CreateQueue(t.Context(), plan.Queue{Name: "q", Plugin: "exec"}); err != nil {
		t.Fatal(err)
	}
	api, asked := v1.New(v1.Config{Store: st}), 0
	c := answering(t, func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked%2 == 1 {
			api.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		api.ServeHTTP(w, r)
	})
	s, settings := c.ScheduleService(), plan.ScheduleSettings{Timetable: plan.Timetable{Cron: "@daily"}, Task: &plan.ScheduledTask{Queue: "q"}}
	is, err := s.Create(t.Context(), "x", settings, "")
	if err != nil || is.Revision != 1 || asked != 2 {
		t.Errorf("made %+v, %v with %d requests", is, err, asked)
	}
	settings.Cron = "@hourly"
	if is, err = s.Set(t.Context(), "x", is.Edition(), settings); err != nil || is.Revision != 2 || is.Cron != "@hourly" || asked != 4 {
		t.Errorf("set %+v, %v with %d requests", is, err, asked)
	}
	if _, err := s.Run(t.Context(), "x"); !errors.Is(err, plan.ErrUnavailable) || asked != 5 {
		t.Errorf("an occurrence may be wanted twice: %v with %d requests", err, asked)
	}
}
