package runner

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestAProgramThatIsNotWokenForChildrenStillLearnsHowTheyEnded(t *testing.T) {
	QuietChildren()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range []string{"SigCgt:\t", "SigIgn:\t"} { // a process that ignores it loses how its children ended
		_, rest, _ := strings.Cut(string(status), set)
		text, _, _ := strings.Cut(rest, "\n")
		if bits, err := strconv.ParseUint(text, 16, 64); err != nil || bits&(1<<(syscall.SIGCHLD-1)) != 0 {
			t.Errorf("%s%s, %v: it has SIGCHLD", set, text, err)
		}
	}
	r, err := Run(t.Context(), Command{Args: []string{"/bin/sh", "-c", "exit 3"}}, NewOutput(0))
	if err != nil || r.Code != 3 {
		t.Errorf("%+v, %v; want the exit status 3", r, err)
	}
}
