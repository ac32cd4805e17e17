//go:build unix

package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
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
		file := filepath.Join(s.dir, "plan.yaml")
		names := map[string]bool{"each": false} // whether it starts plans
		params, err := json.Marshal(map[string]string{"run": "echo $SLUICE_TASK >> " + journal})
		if err != nil {
			t.Fatal(err)
		}
		s.must("schedule", "create", "each", "--cron", "* * * * * *", "--queue", "q", "--params", string(params), "--overlap", "allow")
		for i := range manySchedules {
			name := fmt.Sprintf("s%d", i)
			if names[name] = i%2 == 1; !names[name] {
				s.must("schedule", "create", name, "--cron", "*/10 * * * * *", "--queue", "q", "--params", string(params), "--overlap", "allow")
				continue
			}
			text := fmt.Sprintf("plan: %s\ndefaults: {queue: q}\ntasks: {a: {run: 'echo $SLUICE_PLAN >> %s'}}\n", name, journal)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			s.must("schedule", "create", name, "--cron", "*/10 * * * * *", "--plan", file, "--overlap", "allow")
		}
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
		type shown struct {
			plan.Schedule
		}
		read := func(name string) (v shown) {
			t.Helper()
			if err := json.Unmarshal([]byte(s.must("schedule", "show", name, "-o", "json")), &v); err != nil {
				t.Fatal(err)
			}
			return v
		}
		for name := range names {
			s.must("schedule", "pause", name)
			s.until(name+" has ended all that it started", func() bool { return len(read(name).Open) == 0 })
		}
		text, err := os.ReadFile(journal)
		if err != nil {
			t.Fatal(err)
		}
		ran := map[string]bool{}
		for line := range strings.Lines(string(text)) {
			ran[strings.TrimSpace(line)] = true
		}
		ids := func(args ...string) (all []string) {
			t.Helper()
			var found []struct{ ID, Name string }
			if err := json.Unmarshal([]byte(s.must(append(args, "-o", "json")...)), &found); err != nil {
				t.Fatal(err)
			}
			for _, f := range found {
				all = append(all, f.Name+" "+f.ID)
			}
			return all
		}
		there := map[string][]string{}
		for _, line := range append(ids("task", "list", "--queue", "q", "--limit", "10000"), ids("plan", "list", "--limit", "10000")...) {
			name, id, _ := strings.Cut(line, " ")
			there[name] = append(there[name], id)
		}
		for name, plans := range names {
			is := read(name)
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
				if id := rules.OccurrenceID(is.ID, at).String(); !plans && !bytes.Contains(text, []byte(id)) {
					t.Errorf("%s: the task %s of %v did not run", name, id, at)
				}
			}
		}
	})
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
		st, err := open.Open(t.Context(), s.store)
		if err != nil {
			t.Fatal(err)
		}
		on := st.(store.Schedules)
		all, err := on.Schedules(t.Context(), store.ScheduleQuery{Files: true})
		if err != nil {
			t.Fatal(err)
		}
		for i := range all {
			day := 24*time.Hour + 10*time.Minute
			all[i].From, all[i].Cursor, all[i].Next = all[i].From.Add(-day), all[i].Cursor.Add(-day), all[i].Next.Add(-day)
		}
		if refused, err := on.PutSchedules(t.Context(), all); err != nil || errors.Join(refused...) != nil {
			t.Fatal(err, refused)
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
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
