//go:build unix

package program_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
	"github.com/seed-1177d267/sluice/plugins/exec"
	"github.com/seed-1177d267/sluice/plugins/program"
)

func TestMain(m *testing.M) {
	exec.GuardMain()
	os.Exit(m.Run())
}

// write makes a file with this mode, whatever the umask.
func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
}

func commands(t *testing.T) *exec.Plugin {
	c := exec.New(exec.Options{Grace: 200 * time.Millisecond})
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// run runs a script as a plugin and returns its result and its log.
func run(ctx context.Context, t *testing.T, script, params string) (plan.Result, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "plugin")
	write(t, path, "#!/bin/sh\n"+script, 0o755)
	task := plugins.Task{Name: "a", Attempt: 1, Params: json.RawMessage(params), Log: new(plugins.Log)}
	r := program.New(path, commands(t)).Run(ctx, &task)
	var log strings.Builder
	for _, e := range task.Log.Drain() {
		log.WriteString(string(e.Stream) + ":" + e.Text)
	}
	return r, log.String()
}

func TestExitStatuses(t *testing.T) {
	for script, want := range map[string]plan.Status{
		"exit 0": plan.Succeeded, "exit 1": plan.Failed, "exit 2": plan.Failed, "exit 3": 3, "exit 77": 77, "exit 255": 255, "kill -9 $$": plan.Failed,
		"echo '{' > $SLUICE_OUTPUT": plan.Succeeded, // which the node refuses: see rules.Conclude
	} {
		if r, log := run(t.Context(), t, script, `{}`); r.Status != want || r.Exit == nil {
			t.Errorf("%s: %+v, want status %d\n%s", script, r, want, log)
		}
	}
}

// The program continues when the test has seen its progress.
func TestAProgramSaysHowFarItIs(t *testing.T) {
	dir := t.TempDir()
	path, heard := filepath.Join(dir, "plugin"), filepath.Join(dir, "heard")
	write(t, path, "#!/bin/sh\necho 0.5 half >> $SLUICE_PROGRESS; until test -e $heard; do sleep 0.02; done", 0o755)
	var said plan.Progress
	task := plugins.Task{Name: "a", Attempt: 1, Params: json.RawMessage(`{"heard": "` + heard + `"}`), Log: new(plugins.Log), Reached: func(p plan.Progress) {
		said = p
		write(t, heard, "", 0o600)
	}}
	if r := program.New(path, commands(t)).Run(t.Context(), &task); r.Status != plan.Succeeded || said.String() != "50% half" {
		t.Errorf("it said %v: %+v", said, r)
	}
}

func TestAProgramReadsItsParamsAndLeavesItsOutput(t *testing.T) {
	r, log := run(t.Context(), t, `cat > $SLUICE_OUTPUT; echo out; echo err >&2; echo "$user $SLUICE_NAME $#"`, `{"user": "alice", "list": [1]}`)
	if r.Status != plan.Succeeded || string(r.Output) != `{"user": "alice", "list": [1]}` {
		t.Errorf("%+v, output %s; want its params", r, r.Output)
	}
	for _, want := range []string{string(plan.Stdout) + ":out\n", string(plan.Stderr) + ":err\n", "alice a 0\n"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log is %q, want %q in it", log, want)
		}
	}
}

// TestParamsDoNotChooseWhatRuns: on MongoDB whoever can write to the database chooses the params, but not the program.
func TestParamsDoNotChooseWhatRuns(t *testing.T) {
	t.Setenv("MONGODB_URI", "mongodb://user:secret@host/")
	t.Setenv("SLUICE_STORE", "mongodb://user:secret@host/")
	t.Setenv("SECRET", "hidden")
	r, log := run(t.Context(), t, `env; echo "in $PWD"`,
		`{"run": "echo bad", "shell": "bad", "dir": "/nosuch", "stdin": 5, "env": {"PATH": "/bad", "LD_PRELOAD": "bad.so", "TOLD": {"from_env": "SECRET"}}, "PATH": "bad", "http_proxy": "bad"}`)
	if r.Status != plan.Succeeded {
		t.Errorf("%+v", r)
	}
	for _, bad := range []string{"bad", "TOLD", "nosuch", "secret@"} {
		if strings.Contains(log, bad) {
			t.Errorf("the program sees %q:\n%s", bad, log)
		}
	}
}

func TestAProgramIsStopped(t *testing.T) {
	ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, plugins.ErrTimeout)
	defer cancel()
	r, _ := run(ctx, t, "sleep 1000 & echo $! ; trap '' TERM; wait; sleep 1000", `{}`) // longer than tests may take
	if r.Status != plan.Terminated || r.Reason != plan.ReasonTimeout {
		t.Errorf("%+v, want a timeout", r)
	}
}

func TestAFileThatMayNotBeRunAnyMoreIsNot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "plugin")
	for want, arrange := range map[string]func(){
		"chmod go-w":   func() { write(t, path, "#!/bin/sh\necho ran\n", 0o757) },
		"no such file": func() { os.Remove(path) },
	} {
		arrange()
		task := plugins.Task{Params: json.RawMessage(`{}`), Log: new(plugins.Log)}
		r := program.New(path, commands(t)).Run(t.Context(), &task)
		if log := task.Log.Drain(); r.Status != plan.Queued || len(log) != 1 || !strings.Contains(log[0].Text, want) {
			t.Errorf("%+v, log %+v; want it given back, with %q in its log", r, log, want)
		}
	}
}

func TestFind(t *testing.T) {
	one, two, open := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "two"), filepath.Join(t.TempDir(), "open")
	for _, dir := range []string{one, two, open} {
		if err := os.MkdirAll(filepath.Join(dir, "folder"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]os.FileMode{
		"one/copy": 0o755, "one/Site--Copy": 0o700, "one/.hidden": 0o755, "one/copy.sh": 0o755, "one/copy-mail": 0o755, "one/README": 0o644,
		"one/all": 0o777, "one/group": 0o775, "one/exec": 0o755, "two/copy": 0o755, "two/more": 0o755, "open/any": 0o755,
	} {
		dir, file := filepath.Split(path)
		write(t, filepath.Join(map[string]string{"one/": one, "two/": two, "open/": open}[dir], file), "#!/bin/sh\n", mode)
	}
	if err := errors.Join(os.Symlink(filepath.Join(two, "more"), filepath.Join(one, "link")), os.Symlink("nosuch", filepath.Join(one, "dangling"))); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range program.Find([]string{one, two, open, one + "/nosuch"}, []string{"exec"}) {
		text := f.Name
		if f.Err != nil {
			text += ": " + strings.NewReplacer(one, "ONE", two, "TWO", open, "OPEN").Replace(f.Err.Error())
		}
		got = append(got, text)
	}
	want := []string{
		"README: ONE/README is not executable; chmod +x it, or remove it",
		"Site::Copy",
		"all: ONE/all is writable by users other than its owner, who could choose what runs here; chmod go-w it",
		"copy",
		`copy-mail: ONE/copy-mail: plugin name "copy-mail": a name has only letters, digits, _ and :, as in copy_mail or Disbatch::Plugin::Demo (in the name of a file, -- stands for ::)`,
		`copy.sh: ONE/copy.sh: plugin name "copy.sh": a name has only letters, digits, _ and :, as in copy_mail or Disbatch::Plugin::Demo (in the name of a file, -- stands for ::)`,
		"dangling: stat ONE/dangling: no such file or directory",
		"exec: ONE/exec: a plugin exec is built in; give the file another name",
		"group: ONE/group is writable by users other than its owner, who could choose what runs here; chmod go-w it",
		"link",
		"copy: TWO/copy: ONE/copy comes before it; give one of the two another name",
		"more",
		"open: OPEN is writable by users other than its owner, who could choose what runs here; chmod go-w it",
		"nosuch: ONE/nosuch: there is no such folder; create it, or correct its path",
	}
	if !slices.Equal(got, want) {
		t.Errorf("found are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestARegistryFollowsItsFolders(t *testing.T) {
	dir := t.TempDir()
	var log strings.Builder
	noTime := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	f := program.Folders{
		Paths: []string{dir}, BuiltIn: []string{"exec"}, Allow: func(name string) bool { return name != "forbidden" },
		Registry: plugins.NewRegistry(), Commands: commands(t), Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: noTime})),
	}
	f.Registry.Register("Built", plugins.Func(nil))
	look := func(when, names, said string) {
		t.Helper()
		log.Reset()
		f.Look(t.Context())
		if got := strings.Join(f.Registry.Names(), " "); got != strings.TrimSpace("Built "+names) {
			t.Errorf("%s: the plugins are %s, want Built %s", when, got, names)
		}
		got := strings.ReplaceAll(log.String(), dir, "DIR")
		if (said == "") != (got == "") || !strings.Contains(got, said) {
			t.Errorf("%s: it said %q, want %q", when, got, said)
		}
	}
	file := func(name string) string { return filepath.Join(dir, name) }
	write(t, file("a"), "#!/bin/sh\n", 0o755)
	write(t, file("forbidden"), "#!/bin/sh\n", 0o755)
	look("at first", "a", `level=INFO msg="plugin found" plugin=a path=DIR/a`)
	look("again", "a", "")
	write(t, file("b"), "#!/bin/sh\n", 0o755)
	look("b may still be written", "a", "")
	write(t, file("b"), "#!/bin/sh\nexit\n", 0o755)
	look("b was", "a", "")
	look("b is there", "a b", `msg="plugin found" plugin=b`)
	write(t, file("b"), "#!/bin/sh\nexit 1\n", 0o755)
	look("b is another", "a b", `msg="plugin changed" plugin=b`)
	write(t, file("b"), "#!/bin/sh\nexit 1\n", 0o777)
	look("all can write b", "a", "is writable by users other")
	look("all still can", "a", "")
	if err := os.Remove(file("a")); err != nil {
		t.Fatal(err)
	}
	look("a went", "", `msg="plugin gone" plugin=a`)
	write(t, file("b"), "#!/bin/sh\n", 0o755)
	look("b is mended", "", "")
	look("b is as it was", "b", `msg="plugin found" plugin=b`)
	away := dir + ".away"
	if err := errors.Join(os.Rename(dir, away), os.Symlink(dir, dir)); err != nil { // what leads to itself cannot be read
		t.Fatal(err)
	}
	look("the folder cannot be read", "b", `msg="not a plugin" path=DIR`)
	if err := errors.Join(os.Remove(dir), os.Rename(away, dir)); err != nil {
		t.Fatal(err)
	}
	look("it can again", "b", "")
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	look("all can write the folder", "", "DIR is writable by users other")
}
