package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-1177d267/sluice/internal/cli/view"
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
		{"of a new run", true, []string{"retry a attempt 1 did not succeed", "retry a attempt 2 did not succeed: exit 2", "retry a attempt 3 failed", "retry a attempt 4 did not succeed",
			"retry a attempt 5 did not succeed: exit 5", "succeeded a"}},
		{"of one that went on", false, []string{"retry a attempt 3 failed", "retry a attempt 4 did not succeed", "retry a attempt 5 did not succeed: exit 5", "succeeded a"}},
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
