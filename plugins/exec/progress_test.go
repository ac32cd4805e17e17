//go:build unix

package exec

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/plan"
)

// The command continues when the test has seen its progress, so that nothing depends on the time of
// a look.
func TestACommandSaysHowFarItIs(t *testing.T) {
	heard := filepath.Join(t.TempDir(), "heard")
	k := task(t, object{"heard": heard, "token": "sesame77", "run": `
		say() { printf "$1" >> "$SLUICE_PROGRESS"; while ! test -e "$heard"; do sleep 0.02; done; rm "$heard"; }
		say '0.1 first\n0.4 copied 400 of 1000\n\n'
		say '2 without an end, by '$token`})
	k.Secrets = []string{"sesame77"}
	var said []string
	k.Reached = func(p plan.Progress) {
		said = append(said, p.String())
		if err := os.WriteFile(heard, nil, 0o600); err != nil {
			t.Error(err)
		}
	}
	r := newPlugin(t, Options{}).Run(t.Context(), k)
	want := "40% copied 400 of 1000; 100% without an end, by ***"
	if got := strings.Join(said, "; "); r.Status != plan.Succeeded || got != want {
		t.Errorf("it said %q, want %q: %+v", got, want, r)
	}
}

func TestWhatIsNoProgressIsRefusedOnce(t *testing.T) {
	k := task(t, object{})
	k.Reached = func(p plan.Progress) { t.Errorf("it said %v", p) }
	f := &follower{task: k, secrets: []string{"", "sesame77"}}
	for _, line := range []string{"sesame77% done", "40% done", "nan x"} {
		f.tell(line)
	}
	if got := f.shown("as sesame\\u0037\\u0037 does"); got != secret.Hidden {
		t.Errorf("a secret that is spelled otherwise is shown: %q", got)
	}
	const want = "$SLUICE_PROGRESS: \"***%\": the progress of a task begins with a number from 0 to 1, and a text may follow it, as in: 0.4 copied 400 of 1000\n"
	if log := k.Log.Drain(); len(log) != 1 || log[0].Text != want || log[0].Stream != plan.System {
		t.Errorf("the log has %+v, want %q once", log, want)
	}
}

func TestLastLine(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("x", 2*progressTail)
	for text, want := range map[string]string{
		"": "", "\n": "", "0.1 a": "0.1 a", "0.1 a\n": "0.1 a$", "0.1 a\r\n0.2 b\r\n": "0.2 b$", "0.1 a\n0.2 b": "0.2 b", long + "\n": "", long + "\n0.3 c\n": "0.3 c$",
	} {
		path := filepath.Join(dir, "progress")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		line, whole, _ := lastLine(path)
		if whole && line != "" {
			line += "$"
		}
		if line != want {
			t.Errorf("the last line of %d bytes is %q, want %q", len(text), line, want)
		}
	}
	for _, path := range []string{dir, "/dev/zero", filepath.Join(dir, "none")} {
		if line, _, _ := lastLine(path); line != "" {
			t.Errorf("%s has the last line %q", path, line)
		}
	}
}
