//go:build unix

package exec

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/seed-1177d267/sluice/plan"
)

func TestWhatANodeLacksForACommand(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	script := file("fails.sh", "#!/bin/sh\nexit 127\n", 0o755)
	large := file("large", string(make([]byte, 200<<10)), 0o600)
	const nosuch = "sluice-test-no-such-program"
	for _, c := range []struct {
		name   string
		params object
		want   plan.Lack
	}{
		{"a variable that is not set", object{"run": "true", "env": object{"T": object{"from_env": "EXEC_TEST_NONE"}}}, plan.LacksMeans},
		{"a variable that no node gives", object{"run": "true", "env": object{"T": object{"from_env": "SLUICE_STORE"}}}, plan.LacksNothing},
		{"a file with a secret that is not there", object{"run": "true", "env": object{"T": object{"from_file": dir + "/none"}}}, plan.LacksMeans},
		{"a folder in its place", object{"run": "true", "env": object{"T": object{"from_file": dir}}}, plan.LacksMeans},
		{"a file that is too large for a variable", object{"run": "true", "env": object{"T": object{"from_file": large}}}, plan.LacksNothing},
		{"a program that is not in the PATH", object{"run": []string{nosuch}}, plan.LacksMeans},
		{"a program at a path where nothing is", object{"run": []string{dir + "/none"}}, plan.LacksMeans},
		{"a file that is not executable", object{"run": []string{large}}, plan.LacksMeans},
		{"a shell that is not there", object{"run": "echo $HOME", "shell": "/none/bash"}, plan.LacksMeans},
		{"a working directory that is not there", object{"run": "true", "dir": dir + "/none"}, plan.LacksMeans},
		{"a line of words whose program is not in the PATH", object{"run": nosuch + " x"}, plan.LacksMeans},
		{"a line with variables whose program is not in the PATH", object{"run": nosuch + ` "$HOME"`}, plan.LacksMeans},
		{"a line of words with a path where nothing is", object{"run": "./none", "dir": dir}, plan.LacksMeans},
		{"a line with a file that is not executable", object{"run": large + ` "$HOME"`}, plan.LacksMeans},
		{"the second command of a line", object{"run": "echo begun && " + nosuch}, plan.LacksNothing},
		{"a command in the arguments of a line", object{"run": nosuch + " $(echo begun)"}, plan.LacksNothing},
		{"a line that wrote to a file", object{"run": nosuch + " > " + dir + "/out"}, plan.LacksNothing},
		{"a program that ends as if it was not there", object{"run": script}, plan.LacksNothing},
		{"a command that is empty", object{"run": []string{""}}, plan.LacksNothing},
		{"arguments that are too large", object{"run": []string{"/bin/true", string(make([]byte, 3<<20))}}, plan.LacksNothing},
		{"a command that fails", object{"run": "exit 1"}, plan.LacksNothing},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, _ := run(t, c.params)
			if r.Lacks != c.want || r.Status != plan.Failed {
				t.Errorf("it is %v and lacks %q, want a failure that lacks %q (%s)", r.Status, r.Lacks, c.want, r.Detail)
			}
		})
	}
	t.Run("a folder for temporary files that is not there", func(t *testing.T) {
		p := New(Options{TempDir: dir + "/none"})
		if r := p.Run(t.Context(), task(t, object{"run": "true"})); r.Lacks != plan.LacksMeans || r.Status != plan.Failed {
			t.Errorf("%+v", r)
		}
	})
	t.Run("no file can be opened any more", func(t *testing.T) {
		p := newPlugin(t, Options{})
		var was syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 3, Max: was.Max}); err != nil {
			t.Fatal(err)
		}
		r := p.Run(t.Context(), task(t, object{"run": "true"}))
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
			t.Fatal(err)
		}
		if r.Lacks != plan.LacksRoom || r.Status != plan.Failed {
			t.Errorf("%+v", r)
		}
	})
}
