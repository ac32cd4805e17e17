package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// Somebody who has the turn and does not go on, as a process that was stopped, keeps nobody from reading, and who wants to write is told.
func TestATurnThatIsHeldIsSaid(t *testing.T) {
	s := openTest(t, Options{})
	newPlan(t, s, "nightly", manyTasks(3)...)
	other := newTestTurnstile(t, s.path)
	if ok, err := other.try(); !ok || err != nil {
		t.Fatalf("the turn: %v, %v", ok, err)
	}
	reader := openAt(t, s.path, Options{Existing: true})
	if tasks, err := reader.Tasks(t.Context(), store.TaskQuery{}); err != nil || len(tasks) != 3 {
		t.Errorf("while somebody writes %d tasks were read: %v", len(tasks), err)
	}
	for _, s := range []*Store{s, reader} {
		s.patience = 10 * time.Millisecond
		for range 2 { // the second waits for the first, which was left behind
			err := s.SetMaxThreads(t.Context(), "n1", 1)
			if !errors.Is(err, plan.ErrUnavailable) || !strings.Contains(err.Error(), "has been writing for more than 10ms") {
				t.Errorf("got %v, want it to be said that somebody writes", err)
			}
			if pid := strconv.Itoa(os.Getpid()); s.turn.holder() != 0 && !strings.Contains(err.Error(), "process "+pid) {
				t.Errorf("got %v, want process %s named", err, pid)
			}
		}
	}
	// Others bound their calls, as a node does: it is told as well.
	bounded := openAt(t, s.path, Options{Existing: true})
	cause, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(20*time.Millisecond, func() { cancel(fmt.Errorf("no answer: %w", context.DeadlineExceeded)) })
	deadline, release := context.WithTimeout(t.Context(), 500*time.Millisecond) // waits for what the first one left behind
	defer release()
	for _, ctx := range []context.Context{cause, deadline} {
		err := bounded.SetMaxThreads(ctx, "n1", 1)
		if !errors.Is(err, plan.ErrUnavailable) || !strings.Contains(err.Error(), "has been writing for more than ") {
			t.Errorf("got %v, want it to be said that somebody writes", err)
		}
	}
	closeStore(t, bounded)
	closeStore(t, reader) // waits for nothing that may never end
	other.unlock()
	s.patience = time.Minute
	if err := s.SetMaxThreads(t.Context(), "n1", 1); err != nil {
		t.Errorf("once the turn is free: %v", err)
	}
	closeStore(t, s)
}

func TestAFileThatIsGoneIsSaid(t *testing.T) {
	for _, c := range []struct {
		name string
		read bool // so that there is a connection for it, to the file that was there
	}{{"by who has read it", true}, {"by who has not", false}} {
		t.Run(c.name, func(t *testing.T) {
			s := openTest(t, Options{})
			defer closeStore(t, s)
			other := openTest(t, Options{})
			closeStore(t, other)
			p := newPlan(t, s, "nightly")
			read := func() error { _, err := s.Plan(t.Context(), p); return err }
			write := func() error { return s.SetMaxThreads(t.Context(), "n1", 1) }
			check := func(where string) {
				t.Helper()
				for what, err := range map[string]error{"read": read(), "write": write()} {
					if !errors.Is(err, plan.ErrStoreGone) || !errors.Is(err, plan.ErrUnavailable) || !strings.Contains(err.Error(), s.path+" was deleted or replaced") {
						t.Errorf("%s %s: got error %v, want one that is %q and says why", what, where, err, plan.ErrStoreGone)
					}
				}
			}
			if c.read {
				if err := read(); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Rename(s.path, s.path+".away"); err != nil {
				t.Fatal(err)
			}
			check("where no file is")
			if _, err := dial(s.dsn()); !errors.Is(s.translate(err), plan.ErrStoreGone) {
				t.Errorf("to open it there fails with %v, want that told as %q", err, plan.ErrStoreGone)
			}
			if err := os.WriteFile(s.path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			check("where another file is")
			if err := os.Rename(s.path+".away", s.path); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(read(), write()); err != nil {
				t.Errorf("once it is back: %v", err)
			}
			if err := os.Rename(other.path, s.path); err != nil {
				t.Fatal(err)
			}
			check("where another store is")
		})
	}
}

func TestAReaderMakesNoFileAnewThatIsGone(t *testing.T) {
	s := openTest(t, Options{})
	defer closeStore(t, s)
	if err := os.Rename(s.path, s.path+".away"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Plans(t.Context(), store.PlanQuery{}); !errors.Is(err, plan.ErrUnavailable) {
		t.Errorf("got error %v, want one that is %q", err, plan.ErrUnavailable)
	}
	if _, err := os.Stat(s.path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is there again (%v)", err)
	}
}

func TestWhatIsNoDatabaseGetsNothingBesideIt(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{text, dir} {
		if s, err := Open(t.Context(), path, Options{}); !errors.Is(err, plan.ErrUnavailable) {
			t.Errorf("%s: %v, %v; want it refused", path, s, err)
		}
	}
	if found, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(found) != 1 {
		t.Errorf("there are %q, want the text alone; %v", found, err)
	}
}
