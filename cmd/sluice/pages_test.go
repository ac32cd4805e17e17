//go:build unix

package main_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/planfile"
)

// A shown block is one of a page of Markdown.
type shown struct {
	line int
	kind string // the word behind the fence, else text; "": it is indented
	text string
}

// blocksOf returns the blocks of a page, in order: those in fences, and those that are indented by four columns.
func blocksOf(t *testing.T, page string) (all []shown) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	fenced, indented := false, false
	for i, line := range strings.Split(string(text), "\n") {
		kind, fence := strings.CutPrefix(line, "```")
		code, deep := strings.CutPrefix(line, "    ")
		switch {
		case fence && fenced:
			fenced = false
		case fence:
			fenced, indented = true, false
			all = append(all, shown{line: i + 2, kind: cmp.Or(kind, "text")})
		case fenced:
			all[len(all)-1].text += line + "\n"
		case deep && !indented:
			indented = true
			all = append(all, shown{line: i + 1, text: code + "\n"})
		case deep:
			all[len(all)-1].text += code + "\n"
		default:
			indented = false
		}
	}
	return all
}

// A standIn takes the place of a text in the blocks that needs what a machine for tests does not have.
type standIn struct{ text, instead, why string }

// pageTime is how long the commands of a page may take on a busy machine.
const pageTime = 2 * time.Minute

// programs stand in for those that a machine for tests may not have.
var programs = map[string]string{
	// A container is a shell that has the files which were mounted.
	"docker": `for a; do case $a in *:/output) output=${a%:/output};; esac; done
while [ "$1" != sh ]; do shift; done
shift 2; exec sh -c "$(printf '%s' "$1" | sed "s|/output|\"$output\"|")"`,
	"mail": `cat > "$HOME/mail-of-$2"`,
}

// Each block of these pages runs, in the order of the page, in one shell that begins in an empty folder. A block of YAML is written to
// the file that its first line names. A block of kind console prints the answer that is shown, but for numbers, times and ids.
func TestTheBlocksOfThePagesRun(t *testing.T) {
	for page, least := range map[string]int{"README.md": 8, "docs/tutorial.md": 15, "docs/recipes.md": 15} {
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			runBlocks(t, page, least)
		})
	}
}

func runBlocks(t *testing.T, page string, least int) {
	if os.Getenv("SLUICE_TEST_STORES") == "mongodb" {
		t.Skip("make test runs this on SQLite")
	}
	var said bytes.Buffer
	chat := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(&said, r.Body) // only the recipe's one task sends
	}))
	defer chat.Close()
	s := newSite(t, "sqlite:"+filepath.Join(t.TempDir(), "sluice.db"))
	url := s.server()
	standIns := []standIn{
		{"http://127.0.0.1:8080", url, "a port that is free; the server runs from the beginning"},
		{"https://chat.example.com", chat.URL, "a chat on this machine"},
		{"mongodb://db.example.com/sluice", s.store, "a store on this machine"},
		{"go install ./cmd/sluice", ":", "the program was built before"},
		{`"$HOME/go/bin/sluice"`, "sluice", "the same"},
		{"make release", ":", "it is a step of CI"},
	}
	blocks := blocksOf(t, filepath.Join("../..", page))
	if len(blocks) < least {
		t.Errorf("%s has %d blocks; it had %d", page, len(blocks), least)
	}
	home, bin := t.TempDir(), t.TempDir()
	for name, text := range programs {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	script, reach := blockScript(t, page, blocks, standIns), ""
	if page == "docs/recipes.md" {
		reach = "--allow-net 127.0.0.1" // the chat is there
	}
	ctx, end := context.WithTimeout(t.Context(), pageTime)
	defer end()
	sh := exec.CommandContext(ctx, "sh", "-c", fmt.Sprintf(prelude, binary, bin, home, reach)+script)
	sh.Env = append(s.command().Env, "NO_COLOR=1", "HOME="+home)
	sh.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	sh.Cancel = func() error { return syscall.Kill(-sh.Process.Pid, syscall.SIGKILL) }
	sh.WaitDelay = time.Second
	out, err := sh.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, m := range regexp.MustCompile(`(?m)^=== failed (.*)$`).FindAllStringSubmatch(string(out), -1) {
		t.Errorf("%s:%s", page, m[1])
	}
	compareAnswers(t, page, string(out))
	if t.Failed() {
		t.Logf("%s", out)
	}
	if page == "docs/tutorial.md" {
		drawn, err := os.ReadFile(filepath.Join(home, "empty/cards/graph.svg"))
		if shown, _ := os.ReadFile("../../docs/tutorial-graph.svg"); err != nil || !bytes.Equal(drawn, shown) {
			t.Errorf("docs/tutorial-graph.svg is not what the page draws; copy it from there, %v:\n%s", err, drawn)
		}
	}
	if page == "docs/recipes.md" {
		if want := `report failed: load failed, sum skipped`; !strings.Contains(said.String(), want) {
			t.Errorf("the chat was told %q, want %q", said.String(), want)
		}
		if mail, err := os.ReadFile(filepath.Join(home, "mail-of-orders were not loaded")); err != nil || !strings.Contains(string(mail), url+"/ui/plans/") {
			t.Errorf("the mail says %q, %v", mail, err)
		}
	}
	answer, err := http.Get(url + "/plan.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if got, err := io.ReadAll(answer.Body); err != nil || !bytes.Equal(got, planfile.Schema()) {
		t.Errorf("the server's schema has %d bytes, %v", len(got), err)
	}
}

// prelude is what a page's script begins with. The server of a page runs already. A worker runs beside the commands that follow.
const prelude = `workers=; real=%q; PATH=%q:$PATH; cd %q
sluice() {
	case "$1 $2" in
	"serve "*) ;;
	"worker "*) "$real" "$@" > worker.log 2>&1 & workers="$workers $!"; until grep -q 'node started' worker.log; do sleep 0.1; done ;;
	"plan run") shift 2; "$real" plan run %s "$@" ;;
	*) "$real" "$@" ;;
	esac
}
trap 'kill $workers 2>/dev/null; wait' EXIT
mkdir empty; cd empty
`

// status matches the comment of a command that does not end with 0.
var status = regexp.MustCompile(`# .*\b(?:fails|ends with (\d+))\b`)

// crontab matches a line of cron: when, and the command.
var crontab = regexp.MustCompile(`^(?:\S+ ){5}(.*)$`)

// blockScript returns the blocks as a script. It marks the commands that end with another status than the page says, and the answers.
func blockScript(t *testing.T, page string, blocks []shown, standIns []standIn) string {
	var script strings.Builder
	step := func(line int, command string, code int) {
		fmt.Fprintf(&script, "%s\ncode=$?; [ $code = %d ] || echo \"=== failed %d: it ends with $code\"\n", command, code, line)
	}
	for _, b := range blocks {
		for _, s := range standIns {
			b.text = strings.ReplaceAll(b.text, s.text, s.instead)
		}
		switch b.kind {
		case "yaml":
			name, ok := strings.CutPrefix(b.text[:strings.Index(b.text, "\n")], "# ")
			if !ok {
				t.Errorf("%s:%d: the first line of the block does not name its file", page, b.line)
			}
			fmt.Fprintf(&script, "cat > %s <<'END OF FILE'\n%sEND OF FILE\n", name, b.text)
		case "crontab":
			for line := range strings.Lines(b.text) {
				m := crontab.FindStringSubmatch(strings.TrimSpace(line))
				if m == nil {
					t.Errorf("%s:%d: it is no line of cron: %s", page, b.line, line)
					continue
				}
				step(b.line, "mkdir -p \"$HOME/plans\"; cp *.yaml \"$HOME/plans/\"; mkdir -p \"$HOME/old\" \"$HOME/new\"; (cd \"$HOME\" && cp -r empty/old empty/new plans/ && "+m[1]+")", 0)
			}
		case "console":
			commands := strings.Split("\n"+b.text, "\n$ ")[1:]
			for i, c := range commands {
				command, answer, _ := strings.Cut(c, "\n")
				fmt.Fprintf(&script, "echo '=== answer %d.%d'\n", b.line, i)
				fmt.Fprintf(&script, "%s\necho '=== want'\ncat <<'END OF ANSWER'\n%s\nEND OF ANSWER\necho '=== end'\n", command, strings.TrimSpace(answer))
			}
		case "":
			for i, line := range strings.Split(strings.TrimRight(b.text, "\n"), "\n") {
				code := 0
				if m := status.FindStringSubmatch(line); m != nil {
					code, _ = strconv.Atoi(cmp.Or(m[1], "1"))
				}
				if strings.TrimSpace(line) != "" {
					step(b.line+i, line, code)
				}
			}
		case "go", "text":
		default:
			if b.kind != "" {
				t.Errorf("%s:%d: the test does not know blocks of %q", page, b.line, b.kind)
			}
		}
	}
	return script.String()
}

var (
	answered = regexp.MustCompile(`(?s)=== answer (\d+)\.\d+\n(.*?)\n?=== want\n(.*?)\n?=== end\n`)
	figure   = regexp.MustCompile(`\b\d+(\.\d+)?(µs|ms|s|m)\b|\b[0-9a-f]{24}\b|\d\d:\d\d:\d\d(\.\d+)?`)
	spaces   = regexp.MustCompile(`[ \t]+`)
)

// compareAnswers compares what the commands printed with what the page shows, where … stands for text that differs, and alone for lines
// that are left out. Tasks that run at the same time end in any order, so the order of the lines does not count.
func compareAnswers(t *testing.T, page, out string) {
	plain := func(s string) (lines []string) {
		for line := range strings.Lines(spaces.ReplaceAllString(figure.ReplaceAllString(s, "N"), " ")) {
			if line = strings.TrimSpace(line); line != "" {
				lines = append(lines, line)
			}
		}
		return lines
	}
	for _, m := range answered.FindAllStringSubmatch(out, -1) {
		got, some := plain(m[2]), false
		for _, line := range plain(m[3]) {
			if line == "…" {
				some = true
				continue
			}
			wanted := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*") + "$")
			if i := slices.IndexFunc(got, wanted.MatchString); i >= 0 {
				got = slices.Delete(got, i, i+1)
			} else {
				t.Errorf("%s: a command of the block at line %s does not answer %q", page, m[1], line)
			}
		}
		if len(got) > 0 && !some {
			t.Errorf("%s: a command of the block at line %s also answers %q", page, m[1], got)
		}
	}
}
