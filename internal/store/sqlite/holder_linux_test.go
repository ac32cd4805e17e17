package sqlite

import (
	"os/exec"
	"syscall"
	"testing"
	"time"
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
	for start := time.Now(); !stopped(cmd.Process.Pid); time.Sleep(time.Millisecond) {
		if time.Since(start) > 10*time.Second {
			t.Fatal("a process that is stopped is not seen as that")
		}
	}
}
