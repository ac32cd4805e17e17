package runner

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// firstVariable, in its environment, makes the tests' program one that a container starts. Its value
// says what the program does.
const firstVariable = "SLUICE_TEST_FIRST"

// inContainer runs the tests' program as the first process of a process namespace.
func inContainer(t *testing.T, does string) *exec.Cmd {
	t.Helper()
	c := exec.Command("unshare", "--pid", "--fork", "--mount-proc", "--kill-child", os.Args[0])
	c.Env = append(os.Environ(), firstVariable+"="+does)
	return c
}

// runFirst is main of such a program.
func runFirst(does string) {
	switch does {
	case "orphans":
		// Each command leaves processes behind, and ends as it was told to.
		for code := range 10 {
			line := fmt.Sprintf("for i in 1 2 3; do setsid sleep 0.01 & done; exit %d", code)
			r, err := Run(context.Background(), Command{Args: []string{"/bin/sh", "-c", line}, Env: os.Environ(), Linger: time.Millisecond}, NewOutput(0))
			if err != nil || r.Code != code {
				fmt.Printf("command %d: %+v, %v\n", code, r, err)
				os.Exit(1)
			}
		}
		left := zombies()
		for deadline := time.Now().Add(patience); len(left) > 0 && time.Now().Before(deadline); left = zombies() {
			time.Sleep(10 * time.Millisecond)
		}
		fmt.Println(len(left), "zombies")
		os.Exit(7)
	case "signal":
		got := make(chan os.Signal, 10)
		signal.Notify(got, syscall.SIGTERM, syscall.SIGHUP)
		fmt.Println("ready")
		fmt.Println(<-got)
		fmt.Println(<-got)
		os.Exit(0)
	case "killed":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// zombies are the processes of the namespace that ended and that nobody has reaped.
func zombies() (found []string) {
	paths, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if _, state, ok := strings.Cut(string(text), ") "); err == nil && ok && state[0] == 'Z' {
			found = append(found, path)
		}
	}
	return found
}

func TestTheFirstProcessOfAContainerReapsWhatCommandsLeave(t *testing.T) {
	out, err := inContainer(t, "orphans").CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 7 || string(out) != "0 zombies\n" {
		t.Errorf("it ended with %v, want 7, and printed %q, want no zombies", err, out)
	}
}

func TestTheFirstProcessOfAContainerPassesSignalsOnOnce(t *testing.T) {
	c := inContainer(t, "signal")
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	next := func(want string) {
		t.Helper()
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("it printed %q, want %q", lines.Text(), want)
		}
	}
	next("ready")
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", c.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	first, err := strconv.Atoi(strings.TrimSpace(string(children)))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} { // a second SIGTERM would be read in place of SIGHUP
		if err := syscall.Kill(first, s); err != nil {
			t.Fatal(err)
		}
		next(s.String())
	}
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
}

func TestTheFirstProcessOfAContainerEndsAsTheProgramDoes(t *testing.T) {
	var exit *exec.ExitError
	if err := inContainer(t, "killed").Run(); !errors.As(err, &exit) || exit.ExitCode() != 128+9 {
		t.Errorf("it ended with %v, want the code of SIGKILL", err)
	}
}
