package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A node of 8 commands at once has room for few of them. Each command begins a process of its own, and an attempt that
// has no room for that fails.
//
// Go's runtime ends a program that gets no further thread. So the limit without room for one command has a place for each
// thread of the node and for sixteen of the runtime.
func TestANodeWithFewProcessesRunsFewerCommandsAtOnce(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can run a node as a user without other processes")
	}
	dir, err := os.MkdirTemp("/tmp", "sluice-room-") // that user may not enter the folders of tests
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	user := 1<<20 + os.Getpid()
	program, err := os.ReadFile(binary)
	for _, err := range []error{
		err,
		os.WriteFile(filepath.Join(dir, "sluice"), program, 0o700),
		os.WriteFile(filepath.Join(dir, "plan.yaml"), []byte("plan: room\ntasks: {a: {foreach: [1"+strings.Repeat(", 1", 29)+"], run: sleep 0.05 | cat; true}}\n"), 0o600),
		os.Chown(dir, user, user), os.Chown(filepath.Join(dir, "sluice"), user, user), os.Chown(filepath.Join(dir, "plan.yaml"), user, user),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		limit   uint64
		threads string
		code    int
		want    []string // what it says
	}{
		{36, "8", 0, []string{"30 succeeded"}},
		{20, "4", 1, []string{"of at most 20 processes and threads", "raise the limit (ulimit -u"}},
	} {
		cmd := exec.Command("./sluice", "plan", "run", "plan.yaml", "--threads", c.threads)
		cmd.Dir, cmd.Env = dir, []string{"PATH=/usr/bin:/bin", "HOME=" + dir, "SLUICE_STORE=sqlite:" + filepath.Join(dir, "x.db")}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(user), Gid: uint32(user)}}
		out, err := withProcesses(t, c.limit, cmd.CombinedOutput)
		if code := cmd.ProcessState.ExitCode(); code != c.code {
			t.Errorf("with %d processes the exit code is %d, %v", c.limit, code, err)
		}
		for _, part := range append(c.want, "room#") {
			if !strings.Contains(string(out), part) {
				t.Errorf("with %d processes it does not say %q:\n%s", c.limit, part, out)
			}
		}
	}
}

// withProcesses calls do while that is the limit of processes. It does not bind root.
func withProcesses(t *testing.T, limit uint64, do func() ([]byte, error)) ([]byte, error) {
	t.Helper()
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &was); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: limit, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setrlimit(unix.RLIMIT_NPROC, &was); err != nil {
			t.Fatal(err)
		}
	}()
	return do()
}
