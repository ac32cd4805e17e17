package v1_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/api/v1"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/sqlite"
	"github.com/seed-1177d267/sluice/plan"
)

// A SQLite file that was restored from a backup has seen fewer changes than earlier listeners.
// Their places are refused, because they would wait there for long.
func TestAPlaceThatARestoredFileHasNotComeToIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice.db")
	open := func() (*site, func()) {
		st, err := sqlite.Open(t.Context(), path, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s := serveStore(t, st, v1.Config{Store: st})
		return s, func() { s.end(); _ = st.Close() } // a read that is still in progress could remove the next store's log
	}
	s, closed := open()
	s.create("a")
	closed() // which leaves all of it in the one file
	backup, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	s, closed = open()
	ctx, cut := context.WithCancel(t.Context())
	told := s.listen(ctx, "/events", "")
	s.next(told)
	s.create("b")
	id := s.next(told).id
	var cursor struct{ Cursor string }
	s.must("GET", "/changes", "", &cursor)
	cut()
	closed()
	if err := os.WriteFile(path, backup, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, more := range []string{"-wal", "-shm"} {
		if err := os.Remove(path + more); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}

	s, closed = open()
	t.Cleanup(closed)
	r, _ := http.NewRequestWithContext(t.Context(), "GET", s.url+"/events", nil)
	r.Header.Set("Last-Event-ID", id)
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	if a.StatusCode != 422 {
		t.Fatalf("to go on after %s is answered %s", id, a.Status)
	}
	var p api.Problem
	if err := json.NewDecoder(a.Body).Decode(&p); err != nil || p.Code != "invalid_cursor" || !strings.Contains(p.Detail, "leave it out") {
		t.Errorf("%v %+v", err, p)
	}
	if status, text := s.ask("GET", "/changes?after="+cursor.Cursor, ""); status != 422 || !strings.Contains(text, "invalid_cursor") {
		t.Errorf("changes after %s: %d %s", cursor.Cursor, status, text)
	}
	told = s.listen(t.Context(), "/events", "")
	s.next(told)
	s.create("c")
	if e := s.next(told); e.change.Name != "c" {
		t.Errorf("who begins anew is told %+v", e)
	}
}

// A rewound store had more changes than it has: places in its feed are none once.
type rewound struct {
	store.Store
	now atomic.Bool
}

func (r *rewound) Changes(ctx context.Context, after store.Cursor, limit int) ([]store.Change, store.Cursor, error) {
	if r.now.CompareAndSwap(true, false) {
		return nil, after, plan.ErrCursor
	}
	return r.Store.Changes(ctx, after, limit)
}

// If the server keeps running, its listeners are cut off. When they return, they begin with the
// present state.
func TestListenersBeginAnewWhenTheStoreIsRestoredBelowThem(t *testing.T) {
	onSQLite(t, func(t *testing.T, s *site) {
		st := &rewound{Store: s.st}
		s = serveStore(t, st, v1.Config{Store: st})
		told := s.listen(t.Context(), "/events", "")
		s.next(told)
		st.now.Store(true)
		late := time.After(time.Minute)
		for open := true; open; {
			select {
			case _, open = <-told:
			case <-late:
				t.Fatal("it is not cut off")
			}
		}
		told = s.listen(t.Context(), "/events", "")
		s.next(told)
		s.create("a")
		if e := s.next(told); e.change.Name != "a" {
			t.Errorf("who comes again is told %+v", e)
		}
	})
}
