package den_test

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/storetest/model"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// leased makes a file that hangs whoever opens it, until the test is over, or 45 s: the system asks its leaseholder first.
func leased(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "lines")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), syscall.F_SETLEASE, syscall.F_WRLCK); errno != 0 {
		t.Skipf("this file system has no leases: %v", errno)
	}
	return path
}

// hangs reports whether the file hangs whoever opens it still.
func hangs(path string) bool {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err == nil {
		_ = syscall.Close(fd)
	}
	return err == syscall.EWOULDBLOCK
}

func TestAFileThatHangsHoldsUpNeitherTheTimeoutNorTheNode(t *testing.T) {
	for _, test := range []struct {
		name    string
		timeout time.Duration
		state   string
		reason  plan.Reason
	}{
		{"timeout", 50 * time.Millisecond, "failed", plan.ReasonTimeout},
		{"the node stops", 0, "queued", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, reg := model.New(model.Options{}), plugins.NewRegistry()
			reg.Register("none", plugins.Func(func(context.Context, *plugins.Task) (any, error) { return nil, nil }))
			spec := plan.New("hangs")
			path := leased(t)
			spec.Add(plan.TaskSpec{Name: "each", Plugin: "none", Timeout: test.timeout, Foreach: &plan.Foreach{Lines: path}})
			p, err := submit.Submit(t.Context(), s, spec, false)
			if err != nil {
				t.Fatal(err)
			}
			n, err := den.New(s, den.Config{Plugins: reg, Plan: p.ID, Grace: time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			if test.timeout == 0 {
				time.AfterFunc(time.Second, stop)
			}
			if err := n.Run(ctx); err != nil {
				t.Fatal(err)
			}
			if !hangs(path) {
				t.Error("the node waited until the file did not hang any more")
			}
			found, err := s.Tasks(t.Context(), store.TaskQuery{Plan: p.ID, Name: "each"})
			if err != nil || len(found) != 1 || found[0].State() != test.state || found[0].Reason != test.reason {
				t.Errorf("got %+v, %v; want it %s (%s)", found, err, test.state, test.reason)
			}
		})
	}
}
