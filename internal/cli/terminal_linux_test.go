package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/cli/vttest"
	"github.com/seed-1177d267/sluice/internal/polltest"
)

// terminal makes a terminal, and returns the end of who sits at it, and the program's.
func terminal(t *testing.T) (control, tty *os.File) {
	t.Helper()
	control, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatalf("this system gives no terminals: %v", err)
	}
	n, err := unix.IoctlGetInt(int(control.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(control.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return control, tty
}

// A display is a terminal that a program runs on.
type display struct {
	*testing.T
	program *os.Process
	tty     *os.File

	mu   sync.Mutex
	text bytes.Buffer // all that was written there
}

// read takes what is written there until nobody has the terminal open any more.
func (d *display) read(control *os.File) {
	for part := make([]byte, 1024); ; {
		n, err := control.Read(part)
		d.mu.Lock()
		d.text.Write(part[:n])
		d.mu.Unlock()
		if err != nil { // EIO
			return
		}
	}
}

func (d *display) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.String()
}

// until waits until what was written there is as it has to become.
func (d *display) until(what string, is func(screen string) bool) {
	d.Helper()
	if !polltest.Holds(patience, func() bool { return is(d.String()) }) {
		d.Fatalf("within %v the terminal did not show %s:\n%q", patience, what, d.String())
	}
}

// onTerminal runs the program on a terminal of that size, while act acts on it. It returns
// everything that the program wrote there, and its exit code.
func onTerminal(t *testing.T, columns, rows uint16, env []string, args []string, act func(d *display)) (screen string, code int) {
	t.Helper()
	control, tty := terminal(t)
	defer control.Close()
	setSize(t, tty, columns, rows)

	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, args...)
	c.Args[0] = "sluice"
	c.Env = append(append(os.Environ(), "TERM=xterm", "LANG=C.UTF-8", "LC_ALL="), env...)
	c.Stdin, c.Stdout, c.Stderr = tty, tty, tty
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	d := &display{T: t, program: c.Process, tty: tty}
	t.Cleanup(func() { _ = c.Process.Kill() }) // where act ends the test
	var reading sync.WaitGroup
	reading.Go(func() { d.read(control) })
	if act != nil {
		act(d)
	}
	if err := tty.Close(); err != nil { // so that reading ends with the program
		t.Fatal(err)
	}
	reading.Wait()
	_ = c.Wait()
	return d.String(), c.ProcessState.ExitCode()
}

func setSize(t *testing.T, tty *os.File, columns, rows uint16) {
	t.Helper()
	if err := unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows}); err != nil {
		t.Fatal(err)
	}
}

// A waited file is what a task of these tests makes when it runs.
func waitFor(t *testing.T, file string) {
	t.Helper()
	polltest.Until(t, patience, file+" is there", func() bool { _, err := os.Stat(file); return err == nil })
}

func writePlan(t *testing.T, text string) (dir, file, store string) {
	t.Helper()
	dir = t.TempDir()
	file = filepath.Join(dir, "plan.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, file, "sqlite:" + filepath.Join(dir, "sluice.db")
}

// drawn returns whether a frame has a part that is like each of the patterns.
func drawn(patterns ...string) func(screen string) bool {
	return func(screen string) bool {
		return slices.ContainsFunc(frames(screen), func(f []string) bool {
			return !slices.ContainsFunc(patterns, func(p string) bool { return !regexp.MustCompile(p).MatchString(strings.Join(f, "\n")) })
		})
	}
}

const waitingPlan = `
plan: shown
tasks:
  go: {run: "touch running; until test -e enough; do sleep 0.02; done"}
  a-task-with-quite-a-long-name-that-has-to-be-cut: {run: "until test -e enough; do sleep 0.02; done"}
  bad: {needs: [go, a-task-with-quite-a-long-name-that-has-to-be-cut], run: "echo this is why; exit 3"}
  after: {needs: [bad], run: "true"}
`

// frames returns what was drawn at once each time, without escape sequences, in lines.
func frames(screen string) [][]string {
	escape := regexp.MustCompile(`\x1b\[[?0-9;]*[A-Za-z]`)
	var all [][]string
	for _, f := range strings.Split(screen, "\x1b[?2026h")[1:] {
		drawn, _, _ := strings.Cut(f, "\x1b[?2026l")
		drawn = escape.ReplaceAllString(drawn, "")
		all = append(all, strings.Split(strings.Trim(strings.ReplaceAll(drawn, "\r", ""), "\n"), "\n"))
	}
	return all
}

func TestLiveProgressOnATerminal(t *testing.T) {
	dir, file, store := writePlan(t, waitingPlan)
	screen, code := onTerminal(t, 60, 10, nil, []string{"plan", "run", file, "-j", "2", "--store", store}, func(d *display) {
		d.until("two tasks that run, for a while", drawn("2 running, 2 waiting", `(?m)go +\d\.\ds$`, `(?m)a-task.* \d\.\ds$`))
		if err := os.WriteFile(filepath.Join(dir, "enough"), nil, 0o600); err != nil {
			t.Error(err)
		}
	})
	if code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	all := frames(screen)
	var most []string
	for _, f := range all {
		if len(f) > len(most) && strings.Contains(strings.Join(f, ""), "2 running") {
			most = f
		}
	}
	for i, want := range []string{`^shown#1  \d\.\ds  0 of 4 \(0%\)$`, `^  2 running, 2 waiting$`, `^  (go|a-task).*\d\.\ds$`, `^  (go|a-task).*\d\.\ds$`} {
		if i >= len(most) || !regexp.MustCompile(want).MatchString(most[i]) {
			t.Errorf("line %d of %q, want %s", i, most, want)
		}
	}
	for _, f := range all {
		for _, l := range f[max(0, len(f)-4):] {
			if strings.HasPrefix(l, "  ") && cells.Width(l) > 59 {
				t.Errorf("a line takes %d of 60 columns: %q", cells.Width(l), l)
			}
		}
	}
	v := vttest.New(t, 60, 10)
	if _, err := v.Write([]byte(screen)); err != nil {
		t.Fatal(err)
	}
	end := strings.ReplaceAll(unwrap(v.Text(), 60), store, "STORE")
	end = regexp.MustCompile(`\d+(\.\d)?m?s\b`).ReplaceAllString(end, "T")
	want := `succeeded  a-task-with-quite-a-long-name-that-has-to-be-cut  T
succeeded  go  T
failed     bad  T  exit status 3
skipped    after  bad failed

bad failed: exit status 3
  | this is why
  all of it: sluice task logs shown#1 bad --store STORE
`
	if !sameLines(end[:min(len(end), len(want))], want) {
		t.Errorf("at the end the terminal shows\n%s\nwant\n%s", end, want)
	}
	if strings.Contains(end, "running,") {
		t.Errorf("live lines are left:\n%s", end)
	}
}

// sameLines compares texts, the first two lines in whatever order.
func sameLines(got, want string) bool {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	if len(g) > 1 && g[0] > g[1] { // two tasks that end at once
		g[0], g[1] = g[1], g[0]
	}
	return strings.Join(g, "\n") == strings.Join(w, "\n")
}

// unwrap joins rows that a terminal of that width has wrapped.
func unwrap(text string, columns int) string {
	var b strings.Builder
	for _, l := range strings.Split(text, "\n") {
		b.WriteString(l)
		if cells.Width(l) < columns {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func TestLiveProgressFollowsTheSizeOfTheTerminal(t *testing.T) {
	dir, file, store := writePlan(t, waitingPlan)
	screen, _ := onTerminal(t, 100, 24, nil, []string{"plan", "run", file, "-j", "2", "--store", store}, func(d *display) {
		d.until("the tasks that run", drawn("2 running"))
		setSize(t, d.tty, 40, 4)
		d.until("two frames for a smaller terminal", func(screen string) bool { return len(narrowed(screen)) >= 2 })
		if err := os.WriteFile(filepath.Join(dir, "enough"), nil, 0o600); err != nil {
			t.Error(err)
		}
	})
	for _, f := range narrowed(screen) {
		if len(f) > 3 {
			t.Errorf("%d lines on 4 rows: %q", len(f), f)
		}
	}
}

// narrowed returns the frames that have no room for the two tasks that run, and nothing lasting above them.
func narrowed(screen string) (all [][]string) {
	for _, f := range frames(screen) {
		if strings.HasPrefix(f[0], "shown#1") && f[len(f)-1] == "  and 2 more" {
			all = append(all, f)
		}
	}
	return all
}

func TestLiveProgressSaysWhatItemsAreFor(t *testing.T) {
	dir, file, store := writePlan(t, `
plan: mail
tasks:
  copy:
    foreach: [bob@example.com, {of: "漢字漢字漢字漢字漢字漢字漢字"}]
    run: "touch running-$SLUICE_NAME; until test -e enough; do sleep 0.02; done"
`)
	screen, _ := onTerminal(t, 60, 10, nil, []string{"plan", "run", file, "-j", "2", "--store", store}, func(d *display) {
		d.until("both items", drawn(`(?m)^  copy\[0\] .*s$`, `(?m)^  copy\[1\] .*s$`))
		if err := os.WriteFile(filepath.Join(dir, "enough"), nil, 0o600); err != nil {
			t.Error(err)
		}
	})
	for _, want := range []string{`(?m)^  copy\[0\] \(bob@example\.com\) +\d\.\ds$`, `(?m)^  copy\[1\] \(\{"of":"漢字漢字漢字~  +\d\.\ds$`} {
		if !regexp.MustCompile(want).MatchString(frameText(screen)) {
			t.Errorf("no frame has a line like %s:\n%s", want, frameText(screen))
		}
	}
	for _, f := range frames(screen) {
		for _, l := range f {
			if cells.Width(l) > 59 {
				t.Errorf("a line takes %d of 60 columns: %q", cells.Width(l), l)
			}
		}
	}
}

func frameText(screen string) string {
	var b strings.Builder
	for _, f := range frames(screen) {
		b.WriteString(strings.Join(f, "\n") + "\n")
	}
	return b.String()
}

func TestADumbTerminalGetsPlainLines(t *testing.T) {
	_, file, store := writePlan(t, "plan: p\ntasks: {a: {plugin: demo}}\n")
	screen, code := onTerminal(t, 80, 24, []string{"TERM=dumb"}, []string{"plan", "run", file, "--store", store}, nil)
	if strings.Contains(screen, "\x1b") || !strings.Contains(screen, "succeeded  a") || code != 0 {
		t.Errorf("exit code %d, the terminal got %q", code, screen)
	}
}

func TestNoColorLeavesProgressWithoutColours(t *testing.T) {
	dir, file, store := writePlan(t, waitingPlan)
	screen, _ := onTerminal(t, 80, 24, []string{"NO_COLOR=1"}, []string{"plan", "run", file, "-j", "2", "--store", store}, func(d *display) {
		d.until("the tasks that run", drawn("2 running"))
		if err := os.WriteFile(filepath.Join(dir, "enough"), nil, 0o600); err != nil {
			t.Error(err)
		}
	})
	if regexp.MustCompile(`\x1b\[\d*m`).MatchString(screen) || !strings.Contains(screen, "\x1b[?2026h") {
		t.Errorf("the terminal got %q", screen)
	}
}

func TestCtrlCOnATerminal(t *testing.T) {
	dir, file, store := writePlan(t, waitingPlan)
	screen, code := onTerminal(t, 80, 24, nil, []string{"plan", "run", file, "-j", "2", "--store", store}, func(d *display) {
		waitFor(t, filepath.Join(dir, "running"))
		for _, said := range []string{"stopping: what runs may go on", "stopping at once"} {
			if err := d.program.Signal(os.Interrupt); err != nil {
				t.Error(err)
			}
			d.until(said, func(screen string) bool { return strings.Contains(screen, said) })
		}
	})
	if code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
	for _, want := range []string{
		"stopping: what runs may go on for 10s; Ctrl-C again ends it at once", "stopping at once",
		"interrupted: \x1b[1mshown#1\x1b[0m has not finished after ", "to go on: sluice plan run --resume shown#1 --store " + store,
	} {
		if !strings.Contains(screen, want) {
			t.Errorf("the terminal did not get %q:\n%q", want, screen)
		}
	}
}

func TestLogsOfAllTasksOnATerminal(t *testing.T) {
	_, file, store := writePlan(t, "plan: p\ntasks: {a: {foreach: [bob, eve], run: [echo, hello, '${{ item }}']}}\n")
	for which, want := range map[string]int{"failed": 0, "all": 1, "none": 0} {
		screen, code := onTerminal(t, 80, 24, []string{"NO_COLOR=1"}, []string{"plan", "run", file, "--logs", which, "--store", store}, nil)
		if got := strings.Count(screen, "\n  | hello bob\r"); got != want || code != 0 {
			t.Errorf("--logs %s: exit code %d, %d times the log of a task; want %d:\n%q", which, code, got, want, screen)
		}
		if got := strings.Count(screen, "succeeded  a[1] (eve)"); got != want {
			t.Errorf("--logs %s: %d lines say how an item ended, want %d", which, got, want)
		}
	}
}
