package open

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func TestOpenMakesASQLiteFileForItsOwnerOnly(t *testing.T) {
	dir := t.TempDir()
	for _, uri := range []string{"sqlite:" + filepath.Join(dir, "new", "a.db"), "sqlite://" + filepath.Join(dir, "b.db")} {
		s, err := Open(t.Context(), uri)
		if err != nil {
			t.Fatalf("%s: %v", uri, err)
		}
		if _, err := s.Plans(t.Context(), store.PlanQuery{}); err != nil {
			t.Errorf("%s: %v", uri, err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: %v", uri, err)
		}
	}
	for path, want := range map[string]os.FileMode{"new": 0o700, "new/a.db": 0o600, "b.db": 0o600} {
		info, err := os.Stat(filepath.Join(dir, path))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %v", path, info.Mode().Perm(), err, want)
		}
	}
}

func TestExistingMakesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "new", "a.db")
	if s, err := Existing(t.Context(), "sqlite:"+path); !errors.Is(err, plan.ErrNoStore) || s != nil || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v, %v; want ErrNoStore, and the path in it", s, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("it left %v, %v; want nothing", left, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, c := range []struct {
		name, uri string
		want      error
	}{
		{"nothing", "", ErrURI},
		{"a path alone", "plans.db", ErrURI},
		{"a scheme of others", "postgres://u:secret@host/db", ErrURI},
		{"sqlite without a path", "sqlite:", ErrURI},
		{"a server without a database", "mongodb://u:secret@127.0.0.1:1", ErrURI},
		{"a server that is not a URI", "mongodb://u:sec%ret@127.0.0.1:1/x", ErrURI},
		{"a server that is not there", "mongodb://u:secret@127.0.0.1:1/x?serverSelectionTimeoutMS=50", plan.ErrUnavailable},
		{"a folder in place of a file", "sqlite:" + t.TempDir(), plan.ErrUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Open(t.Context(), c.uri)
			if !errors.Is(err, c.want) || s != nil {
				t.Errorf("got %v, %v; want %v", s, err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "sec") && strings.Contains(err.Error(), "ret") {
				t.Errorf("the error tells the password: %v", err)
			}
		})
	}
}

func TestDefault(t *testing.T) {
	t.Setenv("HOME", "/home/me")
	for _, c := range []struct {
		name, store, state, want string
		named                    bool
	}{
		{"the variable says it", "mongodb://h/d", "/state", "mongodb://h/d", true},
		{"a file in the state folder", "", "/state", "sqlite:/state/sluice/sluice.db", false},
		{"a state folder that is not absolute is ignored", "", "state", "sqlite:/home/me/.local/state/sluice/sluice.db", false},
		{"the home folder has one", "", "", "sqlite:/home/me/.local/state/sluice/sluice.db", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(Variable, c.store)
			t.Setenv("XDG_STATE_HOME", c.state)
			if got, named := Default(); filepath.ToSlash(got) != c.want || named != c.named {
				t.Errorf("got %q (named: %v), want %q (named: %v)", got, named, c.want, c.named)
			}
		})
	}
	t.Run("without a home there is none", func(t *testing.T) {
		for _, name := range []string{Variable, "XDG_STATE_HOME", "HOME"} {
			t.Setenv(name, "")
		}
		if got, named := Default(); got != "" || named {
			t.Errorf("got %q (named: %v), want none", got, named)
		}
	})
}
