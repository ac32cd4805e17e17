package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/seed-1177d267/sluice/internal/auth"
	"github.com/seed-1177d267/sluice/internal/polltest"
)

// typing runs the program on a terminal, and types each line as soon as it is asked for one: what is typed is not shown then, or the
// question ends with a bracket. A line may be a signal in its place. It returns what was on the terminal, the exit code, and whether the terminal shows afterwards what is typed.
func typing(t *testing.T, args []string, lines ...any) (screen string, code int, shows bool) {
	t.Helper()
	control, tty := terminal(t)
	defer control.Close()
	echoes := func() bool {
		state, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		return state.Lflag&unix.ECHO != 0
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, args...)
	c.Args[0] = "sluice"
	c.Env = append(os.Environ(), "TERM=xterm", "NO_COLOR=1")
	c.Stdin, c.Stdout, c.Stderr = tty, tty, tty
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var b bytes.Buffer
	var read sync.WaitGroup
	read.Go(func() {
		part := make([]byte, 1024)
		for {
			n, err := control.Read(part)
			mu.Lock()
			b.Write(part[:n])
			mu.Unlock()
			if err != nil {
				return
			}
		}
	})
	for i, line := range lines {
		polltest.Until(t, patience, fmt.Sprintf("something asks for line %d", i+1), func() bool {
			mu.Lock()
			defer mu.Unlock()
			return strings.Count(b.String(), ": ") > i && !echoes() || strings.Count(b.String(), "] ") > i
		})
		switch line := line.(type) {
		case string:
			_, err = control.WriteString(line + "\n")
		case os.Signal:
			err = c.Process.Signal(line)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	_ = c.Wait()
	shows = echoes()
	if err := tty.Close(); err != nil {
		t.Fatal(err)
	}
	read.Wait()
	return b.String(), c.ProcessState.ExitCode(), shows
}

func TestPasswordsAreAskedForOnATerminalAndNotShown(t *testing.T) {
	file := filepath.Join(t.TempDir(), "access.json")
	add := []string{"access", "user", "add", "alice", "--role", "admin", "--access", file}
	for _, c := range []struct {
		name  string
		lines []any
		code  int
		want  string
	}{
		{"two that differ", []any{"correct horse battery", "correct horse batery"}, 2, "the two passwords differ; nothing was changed"},
		{"too short", []any{"horse"}, 2, "the password is too short"},
		{"nothing", []any{""}, 2, "no password was given"},
		{"Ctrl-C", []any{"correct horse battery", os.Interrupt}, 130, "interrupted"},
		{"Ctrl-\\", []any{syscall.SIGQUIT}, 130, "interrupted"},
	} {
		screen, code, shows := typing(t, add, c.lines...)
		if code != c.code || !strings.Contains(screen, c.want) || strings.Contains(screen, "horse") || !shows {
			t.Errorf("%s: exit code %d, want %d; the terminal shows what is typed: %v\n%s", c.name, code, c.code, shows, screen)
		}
		if _, err := os.Stat(file); err == nil {
			t.Fatalf("%s: the file is there", c.name)
		}
	}
	screen, code, _ := typing(t, add, "correct horse battery", "correct horse battery")
	if code != 0 || !strings.Contains(screen, "password of alice: ") || !strings.Contains(screen, "once more: ") || strings.Contains(screen, "horse") {
		t.Errorf("exit code %d\n%s", code, screen)
	}
	if a, err := auth.Load(file); err != nil || len(a.Users) != 1 {
		t.Errorf("the file has %+v, %v", a, err)
	}
}
