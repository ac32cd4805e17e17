//go:build unix

package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/cli"
	"github.com/seed-1177d267/sluice/internal/hosttest"
	"github.com/seed-1177d267/sluice/internal/store/open"
	"github.com/seed-1177d267/sluice/plugins"
	"github.com/seed-1177d267/sluice/plugins/disco"
)

// discoProgram is the command line with a host that has the patience of a case.
func discoProgram(c *hosttest.Case, in io.Reader, out, errs io.Writer) cli.Program {
	return cli.Program{
		Open: open.Open, Existing: open.Existing, Private: open.Private, DefaultStore: open.Default, Redact: open.Redact, Plugins: plugins.NewRegistry(),
		Disco: disco.New(disco.Options{Grace: 300 * time.Millisecond, Times: c.Settings()}),
		Stdin: in, Stdout: out, Stderr: errs, Getenv: os.Getenv,
	}
}

// state gives the test a folder for state. It is not of t.Setenv, since what runs there runs at once.
func state(t *testing.T) {
	t.Helper()
	was, had := os.LookupEnv("XDG_STATE_HOME")
	if err := os.Setenv("XDG_STATE_HOME", t.TempDir()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _ = os.Unsetenv("XDG_STATE_HOME"); had {
			_ = os.Setenv("XDG_STATE_HOME", was)
		}
	})
}

// lines is the standard output of a command. It gives the next of the later inputs when the worker asks for it.
type discoLines struct {
	bytes.Buffer
	more func()
}

func (l *discoLines) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(hosttest.More)) {
		l.more()
	}
	return l.Buffer.Write(p)
}

// inputFlags are the flags for inputs as a case has them.
func inputFlags(lines []string) (flags []string) {
	for _, line := range lines {
		var in struct {
			Label json.RawMessage
			URLs  []string
		}
		if err := json.Unmarshal([]byte(line), &in); err != nil {
			panic(err)
		}
		label := strings.Trim(string(in.Label), `"`)
		if label == "" {
			label = "0"
		}
		flags = append(flags, "--input", label+"="+strings.Join(in.URLs, ","))
	}
	return flags
}

// playCase runs a case through "disco run", and returns what is wrong.
func playCase(c *hosttest.Case, worker, report string) (wrong []string) {
	fail := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	in, lines := io.Pipe()
	later := c.Later
	var feeding sync.WaitGroup
	feed := func(all ...string) {
		end := len(later) == 0 && !c.Open
		feeding.Go(func() {
			for _, line := range all {
				_, _ = io.WriteString(lines, line+"\n")
			}
			if end {
				_ = lines.Close()
			}
		})
	}
	out := &discoLines{more: func() {
		next := later[0]
		later = later[1:]
		feed(next)
	}}
	var errs bytes.Buffer
	args := []string{"disco", "run", worker}
	if len(c.Lines) > 0 && len(c.Later) == 0 && !c.Open {
		args = append(args, inputFlags(c.Lines)...) // a worker may be faster than a list that is read
	} else {
		feed(c.Lines...)
	}
	for _, v := range hosttest.Environ(c.Number, report) {
		args = append(args, "--env", v)
	}
	code := discoProgram(c, in, out, &errs).Run(context.Background(), args)
	_ = in.Close()
	feeding.Wait()
	if text, err := os.ReadFile(report); err == nil {
		fail("the worker: %s", text)
	}
	text := strings.TrimSpace(out.String())
	var e struct {
		End, Detail string
		Attempts    int
		Outputs     json.RawMessage
	}
	if err := json.Unmarshal([]byte(text[strings.LastIndexByte(text, '\n')+1:]), &e); err != nil {
		fail("the last line is not JSON: %v\n%s%s", err, out, &errs)
		return wrong
	}
	if e.End != c.End.String() || code != int(c.End)-1 || e.Attempts != 1 {
		fail("it ended as %s with %d after %d attempts, want %v: %s", e.End, code, e.Attempts, c.End, e.Detail)
	}
	for _, want := range c.Detail {
		if !strings.Contains(e.Detail, want) {
			fail("the detail is %.300q, want %q in it", e.Detail, want)
		}
	}
	if pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(c.Outputs), `\*`, ".*") + "$"; c.Outputs != "" && !regexp.MustCompile(pattern).Match(e.Outputs) {
		fail("the outputs are %s, want %s", e.Outputs, c.Outputs)
	}
	for _, left := range hosttest.Left(report) {
		fail("this process is alive after the attempt: %s", left)
	}
	return wrong
}

func TestDiscoConformance(t *testing.T) {
	state(t)
	worker, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var wg sync.WaitGroup
	free := make(chan struct{}, 8)
	for _, c := range hosttest.Cases() {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			for _, wrong := range playCase(&c, worker, filepath.Join(dir, fmt.Sprint(c.Number))) {
				t.Errorf("case %d, %s: %s", c.Number, c.Name, wrong)
			}
		})
	}
	wg.Wait()
}

func TestBadInputOfDiscoRun(t *testing.T) {
	state(t)
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, stdin string
		args        []string
		want        string
	}{
		{"a worker that is not there", "", []string{filepath.Join(dir, "nosuch")}, "is not there: install it, or correct its path"},
		{"a worker that is no program", "", []string{text}, "is no program: chmod +x it"},
		{"a worker that is a folder", "", []string{dir}, "is a folder: name a program in it"},
		{"an unknown scheme", "", []string{"/bin/true", "--input", "0=gopher://a/b"}, `--input 0=gopher://a/b: replica "gopher://a/b": its scheme is unknown`},
		{"a URL of DDFS", "", []string{"/bin/true", "--input", "0=tag://data"}, "there is no DDFS here"},
		{"an input without replicas", "", []string{"/bin/true", "--input", "0="}, "--input 0=: an input without replicas"},
		{"a label that is no integer", "", []string{"/bin/true", "--input", "x=http://a/b"}, `label "x": a label is an integer from 0 to 2147483647, or all`},
		{"a label that is too large", "", []string{"/bin/true", "--input", "2147483648=http://a/b"}, "a label is an integer from 0 to 2147483647"},
		{"a label below 0", "", []string{"/bin/true", "--input", "-1=http://a/b"}, "a label is an integer from 0 to 2147483647"},
		{"a group without a label", "", []string{"/bin/true", "--group", "x,y"}, "--group x,y: write LABEL,HOST"},
		{"a variable without a value", "", []string{"/bin/true", "--env", "A"}, "--env A: write NAME=VALUE"},
		{"a job pack that is not there", "", []string{"/bin/true", "--jobfile", filepath.Join(dir, "nosuch")}, "--jobfile: "},
		{"a line that is no JSON", "x\n", []string{"/bin/cat"}, "line 1 of the inputs: "},
		{"a line with an unknown scheme", "{\"urls\":[\"http://a/\"]}\n{\"urls\":[\"ftp://a/b\"]}\n", []string{"/bin/cat"}, `line 2 of the inputs: replica "ftp://a/b": its scheme is unknown`},
		{"a line without replicas", "{\"label\":3}\n", []string{"/bin/cat"}, "line 1 of the inputs: an input without replicas"},
		{"a line with a label of 1.5", "{\"label\":1.5,\"urls\":[\"http://a/\"]}\n", []string{"/bin/cat"}, "line 1 of the inputs: label 1.5: a label is an integer"},
		{"a replica of no input", "{\"input\":3,\"urls\":[\"http://a/\"]}\n", []string{"/bin/cat"}, "line 1 of the inputs: there is no input 3"},
	} {
		var out, errs bytes.Buffer
		code := discoProgram(&hosttest.Case{}, strings.NewReader(c.stdin), &out, &errs).Run(t.Context(), append([]string{"disco", "run"}, c.args...))
		if code != 2 || !strings.Contains(errs.String(), c.want) || out.Len() > 0 {
			t.Errorf("%s: it ended with %d, %q and\n%swant %s", c.name, code, out.String(), &errs, c.want)
		}
	}
}

func TestAttemptsOfDiscoRun(t *testing.T) {
	state(t)
	dir := t.TempDir()
	worker := filepath.Join(dir, "worker")
	// It ends as an error until its file is there.
	script := "#!/bin/sh\nsay() { printf '%s %d %s\\n' \"$1\" \"${#2}\" \"$2\"; read -r reply; }\nsay WORKER '{\"version\":\"1.1\",\"pid\":1}'\n" +
		"[ -z \"$DISCO_X$DDFS_Y\" ] || say FATAL '\"a variable\"'\n[ -e " + dir + "/there ] || { touch " + dir + "/there; say ERROR '\"not yet\"'; }\n[ \"$GIVEN\" = 'a b' ] || say FATAL '\"no variable\"'\nsay DONE '\"\"'\n"
	if err := os.WriteFile(worker, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Setenv("DISCO_X", "1"); err != nil {
		t.Fatal(err)
	}
	defer os.Unsetenv("DISCO_X")
	var out, errs bytes.Buffer
	code := discoProgram(&hosttest.Case{}, strings.NewReader(""), &out, &errs).Run(t.Context(), []string{"disco", "run", worker, "--attempts", "3", "--env", "GIVEN=a b"})
	if want := `{"end":"done","attempts":2,"outputs":[],"detail":""}` + "\n"; code != 0 || out.String() != want {
		t.Errorf("it ended with %d, %q and %s, want %s", code, out.String(), &errs, want)
	}
}
