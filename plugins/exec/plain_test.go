//go:build unix

package exec

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestWhichLinesNeedNoShell(t *testing.T) {
	for line, words := range map[string][]string{
		"/bin/true":                     {"/bin/true"},
		"  go test\t-count=1 ./...  \n": {"go", "test", "-count=1", "./..."},
		"./a-b_c +x %y @z q,r s:t":      {"./a-b_c", "+x", "%y", "@z", "q,r", "s:t"},
		"make A=1":                      {"make", "A=1"},
	} {
		if got := plainWords(line); !slices.Equal(got, words) {
			t.Errorf("%q: %q, want %q", line, got, words)
		}
	}
	for _, line := range []string{
		"", " ", "A=1 make", "a; b", "a\nb", "a &", "a|b", "a >b", "a <b", "a $b", "a `b`", `a "b"`, "a 'b'", `a \b`, "a *", "a ?", "a [b]", "a {b,c}", "~/a", "a ~",
		"a #b", "! a", "(a)", "true", "false", "echo a", "cd /", ": a", ". a", "exit 3", "test -f a", "exec a", "time a", "kill 1", "sleep 1", "if", "é", "a\x00b", "a\vb",
	} {
		if got := plainWords(line); got != nil {
			t.Errorf("%q needs a shell; taken for %q", line, got)
		}
	}
}

// A plain line does the same without a shell as with one.
func TestPlainLinesEndAsInAShell(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"says":        "#!/bin/sh\necho \"$0 $*\"\nexit 3\n",
		"bare":        "echo bare \"$@\"\nexit 4\n", // without #!, which only a shell starts
		"interpreter": "#!/no/such/interpreter\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "data"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"./says a b=c", dir + "/says", "./bare x", "./interpreter", "./data", ".", "./no-such", "no-such-program x", "says", "env -u PATH /bin/pwd", "uname",
	} {
		with, printedWith := run(t, object{"run": line, "dir": dir, "shell": "/bin/sh"})
		without, printed := run(t, object{"run": line, "dir": dir})
		if with.Status != without.Status || with.Detail != without.Detail || *with.Exit != *without.Exit || printed != printedWith {
			t.Errorf("%q: %+v %+v %q, with a shell %+v %+v %q", line, without, without.Exit, printed, with, with.Exit, printedWith)
		}
	}
}

// shellWords has every word that shells report as their own.
func TestWhatShellsDoThemselves(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash to ask for its built-in commands")
	}
	out, err := exec.Command(bash, "-c", "compgen -b; compgen -k").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range strings.Fields(string(out)) {
		if plainWords(word) != nil {
			t.Errorf("%s is taken for a program", word)
		}
	}
}
