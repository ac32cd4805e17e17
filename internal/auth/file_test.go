//go:build unix

package auth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-1177d267/sluice/internal/polltest"
)

// accessFile writes an access file and opens it.
func accessFile(t *testing.T, text string) *File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "access.json")
	writeFile(t, path, text)
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAnAccessFileIsItsOwnersAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.json")
	writeFile(t, path, "{}")
	for _, c := range []struct {
		mode fs.FileMode
		ok   bool
	}{{0o600, true}, {0o400, true}, {0o640, false}, {0o644, false}, {0o602, false}, {0o620, false}, {0o601, false}} {
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		_, err := Open(path)
		if (err == nil) != c.ok || err != nil && !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("mode %#o: %v", c.mode, err)
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	if err := errors.Join(os.Chmod(path, 0o600), os.Chown(path, 12345, 12345)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "belongs to user 12345") {
		t.Errorf("another user's file: %v", err)
	}
	// An edit by root keeps the owner of the file.
	if err := Edit(path, false, func(a *Access) error {
		a.Tokens = append(a.Tokens, Token{ID: "ci", SHA256: strings.Repeat("ab", 32), Scopes: Scopes{Read}})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := private(path, info, false); err == nil || !strings.Contains(err.Error(), "belongs to user 12345") {
		t.Errorf("after the edit: %v", err)
	}
}

func TestWhatIsNoFileIsRefused(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir); err == nil {
		t.Error("a folder passes for an access file")
	}
	_, err := Open(filepath.Join(dir, "nosuch"))
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "sluice access user add") {
		t.Errorf("a file that is not there: %v", err)
	}
	big := filepath.Join(dir, "big")
	writeFile(t, big, strings.Repeat(" ", most+1))
	if _, err := Open(big); err == nil || !strings.Contains(err.Error(), "more than 4 MiB") {
		t.Errorf("a large file: %v", err)
	}
}

func TestEditsAtOnceAreAllThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.json")
	const n = 20
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			_, sum := NewToken()
			err := Edit(path, true, func(a *Access) error {
				a.Tokens = append(a.Tokens, Token{ID: fmt.Sprint("t", i), SHA256: sum, Scopes: Scopes{Submit, Read}})
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(f.Access().Tokens); got != n {
		t.Errorf("%d tokens are there, want %d", got, n)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestAnEditThatFailsChangesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.json")
	link := filepath.Join(t.TempDir(), "link.json")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if err := Edit(link, false, func(*Access) error { return nil }); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	writeFile(t, path, `{"tokens":[]}`)
	no := errors.New("no")
	for name, change := range map[string]func(*Access) error{
		"an error":        func(a *Access) error { a.Users = []User{{Name: "x"}}; return no },
		"what is invalid": func(a *Access) error { a.Users = []User{{Name: "x"}}; return nil },
	} {
		if err := Edit(link, false, change); err == nil {
			t.Errorf("%s passes", name)
		}
	}
	if text, err := os.ReadFile(path); string(text) != `{"tokens":[]}` {
		t.Errorf("the file is %s, %v", text, err)
	}
	if err := Edit(link, false, func(*Access) error { return nil }); err != nil {
		t.Error(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, %v", info.Mode(), err)
	}
}

func TestTheLockOfAnEditIsNobodysLink(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.json")
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.Symlink(victim, path+".lock"); err != nil {
		t.Fatal(err)
	}
	if err := Edit(path, true, func(*Access) error { return nil }); err == nil {
		t.Error("an edit follows the link")
	}
	if _, err := os.Lstat(victim); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what the link names was made: %v", err)
	}
}

func TestAFileThatChangesIsReadAgain(t *testing.T) {
	synctest.Test(t, readAgain)
}

func readAgain(t *testing.T) {
	f := accessFile(t, `{"users":[{"name":"alice","role":"viewer","password":"`+hashOf("x")+`"}]}`)
	var log lines
	ctx, stop := context.WithCancel(t.Context())
	watched := make(chan struct{})
	go func() { f.Watch(ctx, slog.New(slog.NewTextHandler(&log, nil))); close(watched) }()
	defer func() { stop(); <-watched }()

	if err := Edit(f.path, false, func(a *Access) error { a.Users[0].Role = Admins; return nil }); err != nil {
		t.Fatal(err)
	}
	log.until(t, "the access file was read again")
	if got := f.Access().Users[0].Role; got != Admins {
		t.Errorf("the role is %s", got)
	}
	writeFile(t, f.path, `{"users":[`)
	log.until(t, "what it said before goes on to hold")
	if got := f.Access().Users; len(got) != 1 {
		t.Errorf("after a broken edit there are %v", got)
	}
	if err := os.Remove(f.path); err != nil {
		t.Fatal(err)
	}
	log.until(t, "cannot be read")
	writeFile(t, f.path, `{"users":[]}`)
	log.until(t, "users=0")
	if got := f.Access(); len(got.Users) != 0 || !got.Empty() {
		t.Errorf("after all were taken out there are %v", got)
	}
}

// lines is a log that can be waited for.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *lines) until(t *testing.T, text string) {
	t.Helper()
	if !polltest.Holds(10*time.Second, func() bool { return strings.Contains(l.String(), text) }) { // of the bubble
		t.Fatalf("%q is not in\n%s", text, l)
	}
}
