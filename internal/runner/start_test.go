//go:build unix

package runner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestACommandThatCannotBeStarted(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	script := file("plain", "#!/bin/sh\n", 0o644)
	dos := file("dos", "#!/bin/sh\r\necho\r\n", 0o755)
	data := file("data", "\x01\x02\x03", 0o755)
	for _, c := range []struct {
		name string
		cmd  Command
		want []string // what the error says: what is missing, and a remedy
	}{
		{"no command", Command{}, []string{"empty", "name a program"}},
		{"an empty name", Command{Args: []string{""}}, []string{"empty", "name a program"}},
		{"a name that is in no folder of the PATH", Command{Args: []string{"nosuch"}, Env: environment}, []string{`"nosuch"`, "/usr/local/bin:/usr/bin:/bin", "install"}},
		{"a file without the right to execute it, in the PATH", Command{Args: []string{"plain"}, Env: []string{"PATH=" + dir}}, []string{`"plain"`, dir, "install"}},
		{"a path where nothing is", Command{Args: []string{dir + "/nosuch"}}, []string{dir + "/nosuch", "no such file", "install"}},
		{"a relative path where nothing is", Command{Args: []string{"./nosuch"}, Dir: dir}, []string{dir + "/nosuch", "no such file", "install"}},
		{"a folder instead of a program", Command{Args: []string{dir}}, []string{dir, "is a folder", "name a program"}},
		{"a script that is not executable", Command{Args: []string{script}}, []string{script, "not executable", "chmod +x"}},
		{"a script whose interpreter is missing", Command{Args: []string{dos}}, []string{dos, `"/bin/sh\r"`, "first line"}},
		{"no program at all", Command{Args: []string{data}}, []string{data, "#!"}},
		{"a folder to run in that is missing", Command{Args: []string{"/bin/true"}, Dir: dir + "/gone"}, []string{dir + "/gone", "/bin/true", "no such file", "create it"}},
		{"a file to run in", Command{Args: []string{"/bin/true"}, Dir: script}, []string{script, "not a folder", "change dir"}},
		{"too many arguments", Command{Args: []string{"/bin/true", strings.Repeat("x", 3<<20)}}, []string{"/bin/true", "3145739 bytes", "files"}},
		{"a NUL in an argument", Command{Args: []string{"/bin/true", "a\x00b"}}, []string{"/bin/true", "NUL", "remove it"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := NewOutput(0)
			r, err := Run(t.Context(), c.cmd, out)
			if err == nil {
				t.Fatalf("it ran: %+v", r)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q says nothing of %q", err, part)
				}
			}
			if got := out.Drain(); got != nil {
				t.Errorf("it printed %q", texts(got))
			}
		})
	}
}

func TestWhereAProgramIsFound(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"one/greet", "two/greet", "three/greet/not-a-program"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\necho "+name+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, program, path, dir, want string
	}{
		{"the first folder that has it", "greet", dir + "/none:" + dir + "/two:" + dir + "/one", "", "two/greet\n"},
		{"folders of its name do not count", "greet", dir + "/three:" + dir + "/one", "", "one/greet\n"},
		{"a relative part of the PATH starts where the command runs", "greet", "one", dir, "one/greet\n"},
		{"an empty part of the PATH is where the command runs", "greet", "/none:", dir + "/two", "two/greet\n"},
		{"a relative path starts where the command runs", "./one/greet", "", dir, "one/greet\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, out := run(t, t.Context(), Command{Args: []string{c.program}, Env: []string{"PATH=" + c.path}, Dir: c.dir})
			if got := said(out, Stdout); got != c.want {
				t.Errorf("it printed %q, want %q", got, c.want)
			}
		})
	}
	t.Run("without a PATH, the system's folders", func(t *testing.T) {
		if r, _ := run(t, t.Context(), Command{Args: []string{"true"}}); r.Code != 0 {
			t.Errorf("%+v", r)
		}
	})
}
