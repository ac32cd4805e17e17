package exec

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

func TestAFileThatHangsHoldsUpNoTimeout(t *testing.T) {
	path := filepath.Join(t.TempDir(), "slow")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// A process that opens it now hangs until it is closed, or for 45 s: the system asks its
	// leaseholder first.
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), syscall.F_SETLEASE, syscall.F_WRLCK); errno != 0 {
		t.Skipf("this file system has no leases: %v", errno)
	}
	for name, params := range map[string]object{
		"a secret":   {"run": "true", "env": object{"A": object{"from_file": path}}},
		"the output": {"run": `ln -sf "$SLOW" "$SLUICE_OUTPUT"`, "env": object{"SLOW": path}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			r := newPlugin(t, Options{}).Run(ctx, task(t, params))
			if r.Status != plan.Terminated {
				t.Errorf("it ended as %v (%s), want terminated", r.Status, r.Detail)
			}
			fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_NONBLOCK, 0)
			if err != syscall.EWOULDBLOCK {
				_ = syscall.Close(fd)
				t.Errorf("it waited until the file did not hang any more: %v", err)
			}
		})
	}
}
