package listing

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

func TestAPatternFailsAtAFolderThatMayNotBeRead(t *testing.T) {
	dir := t.TempDir()
	locked, link := filepath.Join(dir, "in", "02"), filepath.Join(dir, "in", "link")
	for _, name := range []string{"01", "02", "03"} {
		if err := os.MkdirAll(filepath.Join(dir, "in", name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "in", name, "x.csv"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(locked, 0), os.Symlink(filepath.Join("02", "x.csv"), link)); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(locked, 0o700)
	asNobody(t, func() {
		for pattern, fails := range map[string]bool{
			"in/*/*.csv": true, "in/**": true, "in/**/*.csv": true, "in/02/*.csv": true, "in/02/x.csv": true, "in/02/sub/*": true, "in/lin*/*": true,
			"in/*": false, "in/0[13]/*.csv": false,
		} {
			got, err := pathsOf(t.Context(), pattern, dir)
			named := err != nil && (strings.Contains(err.Error(), locked) || strings.Contains(err.Error(), link)) // the link leads into it
			if named != fails || !fails && err != nil {
				t.Errorf("%s matches %q, %v; want an error that names %s: %v", pattern, got, err, locked, fails)
			}
		}
	})
}

// asNobody runs do as a user who is not root. On Linux a thread can have a user of its own; the
// thread ends with it.
func asNobody(t *testing.T, do func()) {
	const nobody = 65534
	if os.Geteuid() != 0 {
		do()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		for _, call := range []uintptr{syscall.SYS_SETRESGID, syscall.SYS_SETRESUID} {
			if _, _, err := syscall.RawSyscall(call, nobody, nobody, nobody); err != 0 {
				t.Errorf("become nobody: %v", err)
				return
			}
		}
		do()
	}()
	<-done
}
