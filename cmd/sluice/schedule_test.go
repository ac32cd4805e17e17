//go:build unix

package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/schedule"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/open"
	"github.com/seed-1177d267/sluice/internal/timetable"
	"github.com/seed-1177d267/sluice/plan"
)

// schedulesFor is how long TestSchedulesOutliveTheirNodes has nodes die, if SLUICE_TEST_SCHEDULES
// says no other time.
const schedulesFor = 20 * time.Second

// manySchedules is how many schedules fire each ten seconds, beside one that fires each second.
const manySchedules = 50

// TestSchedulesOutliveTheirNodes has two nodes fire schedules, on real stores and processes. One of the
// nodes is killed or stands still, again and again. A journal that no node writes to twice for one
// task shows what ran. Each instant has one task or one plan, and it ran.
func TestSchedulesOutliveTheirNodes(t *testing.T) {
	t.Parallel()
	length := schedulesFor
	if text := os.Getenv("SLUICE_TEST_SCHEDULES"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	onEachStore(t, func(t *testing.T, s *site) {
		const seed = 34
		rnd := rand.New(rand.NewPCG(seed, seed))
		journal := filepath.Join(s.dir, "journal")
		s.must("queue", "create", "q", "--on-lost", "retry")
		names := map[string]bool{"each": false} // whether it starts plans
		params, err := json.Marshal(map[string]string{"run": "echo $SLUICE_TASK >> " + journal})
		if err != nil {
			t.Fatal(err)
		}
		create := func(c *schedule.Setter, name, cron string) {
			t.Helper()
			settings := plan.ScheduleSettings{Timetable: plan.Timetable{Cron: cron}, Overlap: plan.OverlapAllow}
			if names[name] {
				text := fmt.Sprintf("plan: %s\ndefaults: {queue: q}\ntasks: {a: {run: 'echo $SLUICE_PLAN >> %s'}}\n", name, journal)
				settings.Plan = &plan.ScheduledPlan{File: plan.File{Text: text, Dir: s.dir}}
			} else {
				settings.Task = &plan.ScheduledTask{Queue: "q", Params: params}
			}
			if _, err := c.Create(t.Context(), name, settings, ""); err != nil {
				t.Fatal(err)
			}
		}
		s.schedules(func(_ schedule.Store, c *schedule.Setter) {
			create(c, "each", "* * * * * *")
			for i := range manySchedules {
				name := fmt.Sprintf("s%d", i)
				names[name] = i%2 == 1
				create(c, name, "*/10 * * * * *")
			}
		})
		start := func(k int) *daemon { return s.daemon(nil, "--name", fmt.Sprint("node", k), "--lease", "3s") }
		nodes := []*daemon{start(0), start(1)}
		still := min(30*time.Second, length/4) // the longest stop
		for end, k := time.Now().Add(length), 0; time.Now().Before(end); k = 1 - k {
			time.Sleep(time.Duration(1000+rnd.IntN(1500)) * time.Millisecond) // the nodes work
			if rnd.IntN(3) == 0 {
				s.must("schedule", "set", fmt.Sprintf("s%d", 2*rnd.IntN(manySchedules/2)), "--attempts", fmt.Sprint(2+rnd.IntN(5)))
			}
			if rnd.IntN(2) == 0 {
				_ = nodes[k].Process.Kill()
				<-nodes[k].done
				nodes[k] = start(k)
				continue
			}
			s.pause(nodes[k].Process)
			time.Sleep(time.Duration(rnd.Int64N(int64(still)))) // for longer than its lease, or not
			if err := nodes[k].Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			select {
			case <-nodes[k].done: // its name was another process's
				nodes[k] = start(k)
			default:
			}
		}
		is := map[string]plan.Schedule{}
		there := map[string][]string{}
		s.schedules(func(st schedule.Store, c *schedule.Setter) {
			for name := range names {
				if _, err := c.Pause(t.Context(), name, 0, ""); err != nil {
					t.Fatal(err)
				}
			}
			s.until("all that was decided was started", func() bool {
				all, err := store.AllSchedules(t.Context(), st.Schedules)
				if err != nil {
					t.Fatal(err)
				}
				starting := false
				for i := range all {
					is[all[i].Name] = all[i]
					starting = starting || slices.ContainsFunc(all[i].Open, func(o plan.Occurrence) bool { return o.State != plan.OccurrenceStarted })
				}
				return !starting
			})
			s.until("all that was started has ended", func() bool {
				clear(there)
				ended := true
				for before := (plan.PlanID{}); ; {
					plans, err := st.Plans(t.Context(), store.PlanQuery{Before: before, NoCounts: true, Limit: 1000})
					if err != nil {
						t.Fatal(err)
					}
					for i := range plans {
						p := &plans[i]
						if before = p.ID; names[p.Name] { // others show that a stopped node does not hold the store up
							there[p.Name] = append(there[p.Name], p.ID.String())
							ended = ended && p.State.Ended()
						}
					}
					if len(plans) < 1000 {
						break
					}
				}
				err := store.EachTask(t.Context(), st, store.TaskQuery{NoPlan: true, Brief: true, Limit: 1000}, func(x *plan.Task) error {
					there[x.Name] = append(there[x.Name], x.ID.String())
					ended = ended && x.Status.Finished()
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				return ended
			})
		})
		text, err := os.ReadFile(journal)
		if err != nil {
			t.Fatal(err)
		}
		ran := map[string]bool{}
		for line := range strings.Lines(string(text)) {
			ran[strings.TrimSpace(line)] = true
		}
		for name, plans := range names {
			is := is[name]
			table, err := timetable.New(timetable.SettingsOf(is.Timetable))
			if err != nil {
				t.Fatal(err)
			}
			instants, _ := table.Within(is.Created.Add(1), is.Paused.At, 100_000)
			if len(there[name]) != len(instants) || is.Tally.Started != len(instants) {
				t.Errorf("%s has %d instants; %d were started, and %d are there", name, len(instants), is.Tally.Started, len(there[name]))
			}
			for _, id := range there[name] {
				if !ran[id] {
					t.Errorf("%s: %s did not run", name, id)
				}
			}
			for _, at := range instants {
				if id := rules.OccurrenceID(is.ID, at).String(); !plans && !ran[id] {
					t.Errorf("%s: the task %s of %v did not run", name, id, at)
				}
			}
		}
	})
}

// schedules opens the store of a site, as one that keeps schedules.
func (s *site) schedules(do func(schedule.Store, *schedule.Setter)) {
	s.Helper()
	st, err := open.Open(s.Context(), s.store)
	if err != nil {
		s.Fatal(err)
	}
	defer st.Close()
	of, ok := schedule.StoreOf(st)
	if !ok {
		s.Fatalf("%s keeps no schedules", s.store)
	}
	do(of, &schedule.Setter{Store: of})
}

// TestADayWithoutNodes lets a schedule wait for a day, by its row, as if no node had run. The next node
// makes of the instants of that day what missed says.
func TestADayWithoutNodes(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, s *site) {
		s.must("queue", "create", "q")
		want := map[string]string{"one": "succeeded", "skip": "skipped"}
		for missed := range want {
			s.must("schedule", "create", missed, "--every", "1h", "--queue", "q", "--params", `{"run": "true"}`, "--missed", missed, "--overlap", "allow")
		}
		s.schedules(func(st schedule.Store, _ *schedule.Setter) {
			all, err := st.Schedules(t.Context(), store.ScheduleQuery{Files: true})
			if err != nil {
				t.Fatal(err)
			}
			for i := range all {
				day := 24*time.Hour + 10*time.Minute
				all[i].From, all[i].Cursor, all[i].Next = all[i].From.Add(-day), all[i].Cursor.Add(-day), all[i].Next.Add(-day)
			}
			if refused, err := st.PutSchedules(t.Context(), all); err != nil || errors.Join(refused...) != nil {
				t.Fatal(err, refused)
			}
		})
		s.daemon(nil)
		for missed, state := range want {
			var is plan.Schedule
			s.until("the schedule "+missed+" has looked at the day", func() bool {
				is = plan.Schedule{}
				if err := json.Unmarshal([]byte(s.must("schedule", "show", missed, "-o", "json")), &is); err != nil {
					t.Fatal(err)
				}
				return len(is.Last) > 0
			})
			if len(is.Last) != 1 || string(is.Last[0].State) != state || time.Since(is.Last[0].At) > time.Hour {
				t.Errorf("missed %s made %+v", missed, is.Last)
			}
			if skipped := map[string]int{"one": 0, "skip": 24}[missed]; is.Tally.Skipped != skipped {
				t.Errorf("missed %s counted %+v, want %d skipped", missed, is.Tally, skipped)
			}
		}
	})
}
