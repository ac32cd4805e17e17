package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// nobody is a user who is not root, and may write only to what is theirs.
const nobody = 65534

// asNobody runs do in a folder of a user's who is not root: to root, all files can be written. On Linux a thread can have a user of its own;
// what do opens must be used by no other goroutine that opens files. The thread ends with it.
func asNobody(t *testing.T, do func(dir string)) {
	t.Helper()
	dir := t.TempDir()
	if os.Geteuid() != 0 {
		do(dir)
		return
	}
	if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chown(dir, nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		for _, call := range []uintptr{unix.SYS_SETRESGID, unix.SYS_SETRESUID} {
			if _, _, err := unix.RawSyscall(call, nobody, nobody, nobody); err != 0 {
				t.Errorf("become nobody: %v", err)
				return
			}
		}
		do(dir)
	}()
	<-done
}

func TestALookAtAFileThatIsReadOnlyLeavesItUsable(t *testing.T) {
	asNobody(t, func(dir string) {
		path := filepath.Join(dir, "sluice.db")
		open := func() *Store {
			s, err := Open(t.Context(), path, Options{})
			if err != nil {
				t.Error(err)
			}
			return s
		}
		s := open()
		if s == nil {
			return
		}
		_, first := s.CreatePlan(t.Context(), plan.Plan{Name: "first"})
		if err := errors.Join(first, s.Close(), os.Chmod(path, 0o400)); err != nil {
			t.Error(err)
		}
		if s = open(); s == nil {
			return
		}
		plans, err := s.Plans(t.Context(), store.PlanQuery{})
		if err != nil || len(plans) != 1 {
			t.Errorf("the file that is read-only has plans %v (%v), want one", plans, err)
		}
		if _, err := s.CreatePlan(t.Context(), plan.Plan{Name: "second"}); !errors.Is(err, plan.ErrUnavailable) || !strings.Contains(err.Error(), path+" cannot be written") {
			t.Errorf("to write to it: got error %v, want one that is %q, and names the file", err, plan.ErrUnavailable)
		}
		if err := errors.Join(s.Close(), os.Chmod(path, 0o600)); err != nil {
			t.Error(err)
		}
		if s = open(); s == nil {
			return
		}
		defer s.Close()
		if _, err := s.CreatePlan(t.Context(), plan.Plan{Name: "second"}); err != nil {
			t.Errorf("once it may be written again: %v", err)
		}
	})
}

func TestAFileSystemThatIsReadOnlyIsNamed(t *testing.T) {
	for why, want := range map[error]string{unix.EROFS: "its file system is read-only: mount it for writing", unix.EACCES: "look at the owner and permissions"} {
		if got := allow(why); !strings.HasPrefix(got, want) {
			t.Errorf("%v: %q, want %q", why, got, want)
		}
	}
}

func TestAFileBesideTheDatabaseThatIsAnothersIsNamed(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file to another user")
	}
	asNobody(t, func(dir string) {
		path := filepath.Join(dir, "sluice.db")
		s, err := Open(t.Context(), path, Options{})
		if err == nil {
			err = s.Close()
		}
		made := make(chan error)
		go func() { made <- errors.Join(os.WriteFile(path+"-shm", nil, 0o600), os.Chmod(path+"-shm", 0o644)) }() // on a thread that is root's
		if err := errors.Join(err, <-made); err != nil {
			t.Error(err)
			return
		}
		if s, err = Open(t.Context(), path, Options{}); err == nil {
			_, err = s.CreatePlan(t.Context(), plan.Plan{Name: "nightly"})
			defer s.Close()
		}
		if !errors.Is(err, plan.ErrUnavailable) || !strings.Contains(err.Error(), path+"-shm cannot be written; look at the owner") {
			t.Errorf("got error %v, want one that is %q, and names the file", err, plan.ErrUnavailable)
		}
	})
}
