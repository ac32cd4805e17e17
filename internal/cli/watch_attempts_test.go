package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// Such an attempt is over before anybody looks, and its task is held, as is a foreach task whose items were made.
func TestAttemptsThatFailAtOnceAreShown(t *testing.T) {
	file := filepath.Join(t.TempDir(), "regions")
	if err := os.WriteFile(file, []byte("north\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		spec := plan.New("p")
		retry := plan.Retry{Attempts: 2, Delay: 1e6 * time.Hour, Max: 1e6 * time.Hour} // a random part of it is waited
		spec.Add(plan.TaskSpec{Name: "copy", Plugin: "second", Foreach: &plan.Foreach{Lines: file}, Retry: retry})
		w, _, r := watchedSpec(t, spec, false)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		gone := runUntil(t, ctx, w)
		if err := w.watch(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		<-gone
		if want := []string{"retry copy[0] (north) attempt 1 failed: not yet"}; !slices.Equal(r.lines, want) {
			t.Errorf("lines: %q, want %q", r.lines, want)
		}
	})
}

// Stores may tell only the last state. If another attempt followed between two looks, the watcher
// knows only that the attempts ended, and their number. Attempts from before the watch are no news.
func TestAttemptsThatNobodySawAreShown(t *testing.T) {
	for _, c := range []struct {
		name  string
		fresh bool
		want  []string
	}{
		{"of a new run", true, []string{"retry a attempt 1 failed", "retry a attempt 2 failed: exit 2", "retry a attempt 3 failed", "retry a attempt 4 failed",
			"retry a attempt 5 failed: exit 5", "succeeded a"}},
		{"of one that went on", false, []string{"retry a attempt 3 failed", "retry a attempt 4 failed", "retry a attempt 5 failed: exit 5", "succeeded a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &watcher{fresh: c.fresh, attempts: map[plan.TaskID]int{}}
			var got []string
			for _, state := range []struct {
				status  plan.Status
				attempt int
				detail  string
			}{{plan.Running, 3, "exit 2"}, {plan.Held, 3, ""}, {plan.Running, 5, ""}, {plan.Queued, 5, "exit 5"}, {plan.Running, 6, "exit 5"}, {plan.Succeeded, 6, ""}} {
				e := view.Event{Name: "a", Status: state.status, Attempt: state.attempt, Detail: state.detail, Took: -1, Label: "a"}
				e.Again = e.Status == plan.Held
				for _, e := range append(w.missed(&e), e) {
					if line := e.End(false); line != "" {
						got = append(got, strings.Join(strings.Fields(line), " "))
					}
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A logger is a store that has the same log for each task.
type logger struct {
	store.Store
	log   []plan.LogEntry
	asked int
}

func (l *logger) Log(_ context.Context, _ plan.TaskID, _ int64, limit int) ([]plan.LogEntry, int64, error) {
	l.asked++
	n := min(limit, len(l.log))
	return l.log[:n], int64(n), nil
}

// The watcher reads the output of attempts that nobody saw end from their logs, at a bounded cost.
// It reads each log once, of some tasks, and no long log.
func TestWhatUnseenAttemptsSaidIsReadFromTheirLogs(t *testing.T) {
	said := func(attempt int, text string) plan.LogEntry {
		return plan.LogEntry{Attempt: attempt, Stream: plan.Stderr, Text: text + "\n"}
	}
	short := []plan.LogEntry{said(1, "no disk"), {Attempt: 1, Stream: plan.Stdout, Text: "bye\n"}, said(2, "no net"), said(2, "make: *** [all] Error 1")}
	long := slices.Repeat([]plan.LogEntry{said(1, "no disk")}, saidLog+1)
	unseen := func(tasks, attempts int) (events []view.Event) {
		for range tasks {
			id := plan.TaskID{ID: plan.NewID(time.Now())}
			for n := range attempts {
				events = append(events, view.Event{Task: id, Status: plan.Held, Attempt: n + 1, Took: -1, Label: "a", Past: true})
			}
		}
		return events
	}
	for _, c := range []struct {
		name         string
		log          []plan.LogEntry
		events       []view.Event
		asked, known int
	}{
		{"two attempts", short, unseen(1, 2), 1, 2},
		{"many tasks", short, unseen(mostSaid+10, 1), mostSaid, mostSaid},
		{"a long log", long, unseen(1, 2), 1, 0},
		{"a detail", short, []view.Event{{Past: true, Attempt: 1, Detail: "exit status 1"}}, 0, 0},
		{"lost with a node", short, []view.Event{{Past: true, Lost: true, Attempt: 1}}, 0, 0},
	} {
		st := &logger{log: c.log}
		w := &watcher{st: st}
		if err := w.tellSaid(t.Context(), c.events); err != nil {
			t.Error(err)
		}
		known := 0
		for i := range c.events {
			if e := &c.events[i]; e.Said != "" {
				known++
				want := fmt.Sprintf("retry      a  attempt %d failed; it said last: %s", e.Attempt, []string{"no disk", "no net"}[e.Attempt-1])
				if got := e.End(false); got != want {
					t.Errorf("%s: %q, want %q", c.name, got, want)
				}
			}
		}
		if st.asked != c.asked || known != c.known {
			t.Errorf("%s: %d logs were read and %d attempts have what they said, want %d and %d", c.name, st.asked, known, c.asked, c.known)
		}
	}
}

// An attempt that nobody saw end did fail, unless its task was taken from a node that died.
func TestAttemptsThatWereLostAreSaidToBe(t *testing.T) {
	id := plan.TaskID{ID: plan.NewID(time.Now())}
	w := &watcher{st: &logger{log: []plan.LogEntry{{Attempt: 1, Text: "hello\n"}, rules.LossEntry(time.Now(), 1), {Attempt: 2, Text: "hello\n"}}}}
	events := []view.Event{{Task: id, Past: true, Attempt: 1, Label: "a", Took: -1}, {Task: id, Past: true, Attempt: 2, Label: "a", Took: -1}}
	if err := w.tellSaid(t.Context(), events); err != nil {
		t.Fatal(err)
	}
	w = &watcher{attempts: map[plan.TaskID]int{}, fresh: true}
	for _, s := range []plan.Status{plan.Queued, plan.Running} {
		clear(w.attempts)
		e := view.Event{Task: id, Status: s, Reason: plan.ReasonLost, Detail: "its node died", Label: "a", Attempt: 1}
		if s == plan.Running {
			e.Attempt = 2
		}
		events = append(events, w.missed(&e)...)
	}
	events = append(events, view.Event{Past: true, Vague: true, Attempt: 7, Label: "a", Took: -1})
	for i, want := range []string{"1 was lost", "2 failed", "1 was lost", "1 was lost", "7 did not succeed"} {
		if got := events[i].End(false); got != "retry      a  attempt "+want {
			t.Errorf("got %q, want attempt %s", got, want)
		}
	}
}

func TestACancelledAttemptTookTheTimeSinceItsStart(t *testing.T) {
	w := &watcher{runs: map[plan.TaskID]ran{}}
	began := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	change := func(s plan.Status, attempt int, after time.Duration) time.Duration {
		return w.took(store.Change{Status: s, Attempt: attempt, At: began.Add(after)}, time.Time{})
	}
	change(plan.Running, 1, 0)
	change(plan.Running, 1, 3*time.Second) // it was marked to be cancelled
	if got := change(plan.Terminated, 1, 3100*time.Millisecond); got != 3100*time.Millisecond {
		t.Errorf("a task that was stopped 3.1 s after its start took %v", got)
	}
	change(plan.Running, 1, 0)
	change(plan.Running, 2, 5*time.Second) // the first attempt was lost, and nobody saw that
	if got := change(plan.Succeeded, 2, 6*time.Second); got != time.Second {
		t.Errorf("the second attempt took %v, want the second since its own start", got)
	}
	change(plan.Running, 1, 0)
	if got := change(plan.Succeeded, 2, 6*time.Second); got >= 0 {
		t.Errorf("an attempt that nobody saw begin took %v, want that this is unknown", got)
	}
}
