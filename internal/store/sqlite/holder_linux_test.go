package sqlite

import (
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/polltest"
)

func TestAProcessThatIsStoppedIsSeen(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	}()
	if stopped(cmd.Process.Pid) {
		t.Error("a process that runs is taken for one that is stopped")
	}
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	polltest.Until(t, time.Minute, "a process that is stopped is seen as that", func() bool { return stopped(cmd.Process.Pid) })
}
