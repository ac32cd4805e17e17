//go:build unix

package exec

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/seed-1177d267/sluice/internal/runner/procid"
	"github.com/seed-1177d267/sluice/plan"
)

func TestFilesOfProcessesThatAreGoneAreRemoved(t *testing.T) {
	temp := t.TempDir()
	alive := procid.Process().Identity
	pid, rest, _ := strings.Cut(alive, "/")
	start, rest, _ := strings.Cut(rest, "/")
	owners := map[string]string{
		"alive":                   alive,
		"gone":                    pid + "/" + start + "1/" + rest, // another process of the same pid
		"of a process elsewhere":  "1/1/another-boot/pid:[1]/another-machine",
		"of who knows whom":       "garbage",
		"of a process without id": "",
	}
	for name, owner := range owners {
		dir := filepath.Join(temp, scratchPrefix+name)
		if err := os.MkdirAll(filepath.Join(dir, "1"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, ownerFile), []byte(owner), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{scratchPrefix + "new", "sluice-other"} { // without an owner: being made, or not of this kind
		if err := os.Mkdir(filepath.Join(temp, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s := scratch{under: temp}
	if _, err := s.open(nil); err != nil {
		t.Fatal(err)
	}
	if err := s.remove(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"alive", "of a process elsewhere", "of who knows whom", "of a process without id", "new"} {
		if _, err := os.Stat(filepath.Join(temp, scratchPrefix+name)); err != nil {
			t.Errorf("the folder %q: %v; it should be left", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(temp, scratchPrefix+"gone")); err == nil {
		t.Error("the folder of a process that is gone is left")
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) != 6 {
		t.Errorf("%v, %v are left, want the 6 that are not to be removed", left, err)
	}
}

func TestFoldersThatWereTidiedAwayAreMadeAgain(t *testing.T) {
	p := newPlugin(t, Options{})
	for _, tidied := range []func() string{func() string { return p.scratch.now.path }, func() string { return p.scratch.root }, func() string { return "" }} {
		if r := p.Run(t.Context(), task(t, object{"run": "true"})); r.Status != plan.Succeeded {
			t.Fatalf("%+v", r)
		}
		if err := os.RemoveAll(tidied()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNothingIsLeftOfATask(t *testing.T) {
	p := newPlugin(t, Options{})
	left := func(in string) (names []string) {
		entries, err := os.ReadDir(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			names = append(names, entry.Name())
		}
		return names
	}
	var wg sync.WaitGroup
	for _, line := range []string{"true", `echo 1 > "$SLUICE_OUTPUT"`, `echo 1 > "$SLUICE_OUTPUT"; exit 1`, `rm "$SLUICE_PARAMS"`, `rm "$SLUICE_OUTPUT"; mkdir -p "$SLUICE_OUTPUT/a/b"`} {
		wg.Go(func() { p.Run(t.Context(), task(t, object{"run": line})) })
	}
	wg.Wait()
	first := p.scratch.now
	if names := left(first.path); len(names) > 0 {
		t.Errorf("%q are left, want nothing", names)
	}

	// A file that a command puts beside its output is removed later. Files of a running task stay.
	first.begun = perFolder - 2
	running, err := p.scratch.open(nil)
	if err != nil {
		t.Fatal(err)
	}
	p.Run(t.Context(), task(t, object{"run": `mkdir "$SLUICE_OUTPUT.d"; touch "$SLUICE_OUTPUT.d/x"`}))
	for range 2 {
		p.Run(t.Context(), task(t, object{"run": "true"}))
	}
	if names := left(first.path); len(names) != 3 {
		t.Errorf("%q are left, want the params and the output that are in use, and what was put beside the output of another task", names)
	}
	p.scratch.close(running)
	if names := left(p.scratch.root); !slices.Equal(names, []string{filepath.Base(p.scratch.now.path), ownerFile}) {
		t.Errorf("%q are left, want only the folder of the next tasks, and %s", names, ownerFile)
	}
}

func TestWithoutAFolderForFilesTheReasonIsSaid(t *testing.T) {
	p := New(Options{TempDir: filepath.Join(t.TempDir(), "gone")})
	r := p.Run(t.Context(), task(t, object{"run": "true"}))
	if r.Status != plan.Failed || r.Reason != plan.ReasonError || !strings.Contains(r.Detail, "gone") {
		t.Errorf("%+v: want failed, and the name of the folder", r)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestWhereTheFilesAre(t *testing.T) {
	temp, state, none := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "none")
	for _, c := range []struct {
		name, under, tmpdir, state, home, want string
	}{
		{"where the options say", temp, "/nosuch", state, "", temp},
		{"where TMPDIR says", "", temp, state, "", temp},
		{"in the state of the user", "", "", state, "", filepath.Join(state, "sluice", "tasks")},
		{"in the state of a user who has only a home", "", "", "", state, filepath.Join(state, ".local", "state", "sluice", "tasks")},
		{"among temporary files, if the user has no home", "", "", "", none, "/tmp"},
		{"among temporary files, if the state cannot be written", "", "", os.DevNull, none, "/tmp"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("TMPDIR", c.tmpdir)
			t.Setenv("XDG_STATE_HOME", c.state)
			t.Setenv("HOME", c.home)
			s := scratch{under: c.under}
			f, err := s.open([]byte("{}"))
			if err != nil {
				t.Fatal(err)
			}
			if got := filepath.Dir(filepath.Dir(f.in.path)); got != c.want {
				t.Errorf("they are in %s, want %s", got, c.want)
			}
			if err := s.remove(); err != nil {
				t.Error(err)
			}
		})
	}
	if _, err := os.Stat(none); err == nil {
		t.Error("a home folder was made, which the system has not")
	}
}
