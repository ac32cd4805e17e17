package runner

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

func TestControlGroupsThatMayLimitProcesses(t *testing.T) {
	for _, c := range []struct {
		name, own string
		want      []string
	}{
		{"version 2", "0::/a.slice/b.service\n", []string{"/r/a.slice/b.service", "/r/a.slice", "/r"}},
		{"a container", "0::/\n", []string{"/r"}},
		{"a container below another folder", "0::/../x\n", []string{"/r/x", "/r"}},
		{"version 1, beside others", "9:name=systemd:/s\n8:cpu,pids:/docker/1\n7:memory:/m\n", []string{"/r/cpu,pids/docker/1", "/r/cpu,pids/docker", "/r/cpu,pids"}},
		{"none", "", nil},
	} {
		if got := groupsAbove(c.own, "/r"); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestAControlGroupThatIsFullIsNamed(t *testing.T) {
	group := t.TempDir()
	set := func(file, text string) {
		if err := os.WriteFile(filepath.Join(group, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const none = -1 // a resource that there is not
	set("pids.max", "max\n")
	if got := limitsOf(none, []string{group, group + "/none"}); len(got) != 0 {
		t.Errorf("without a limit it has %+v", got)
	}
	set("pids.max", "100\n")
	set("pids.current", "99\n")
	limits := limitsOf(none, []string{group})
	if len(limits) != 1 || limits[0].most != 100 {
		t.Fatalf("the limits are %+v, want one of 100", limits)
	}
	err := notStarted(&Command{}, "/bin/x", findRoom(limits))
	if plugins.LacksOf(err) != plan.LacksRoom || !strings.Contains(err.Error(), "99 of at most 100") || !strings.Contains(err.Error(), group+"/pids.max") {
		t.Errorf("%v", err)
	}
	set("pids.current", "20\n")
	if err := findRoom(limits); err != nil {
		t.Errorf("with 20 of 100 places taken: %v", err)
	}
	if n, _ := runtime.ThreadCreateProfile(nil); n < threadsOfRuntime+1 {
		t.Errorf("the process has %d threads", n)
	}
}

func TestPlacesAreCounted(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", "sleep 1000 & echo; wait")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.StdoutPipe()
	if err = errors.Join(err, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	all, err := census()
	own, _ := runtime.ThreadCreateProfile(nil)
	if got := all.groups[cmd.Process.Pid]; err != nil || got != 2 || all.user < own+2 {
		t.Errorf("its group has %d places, and the user %d with %d of this process, %v", got, all.user, own, err)
	}
}
