//go:build unix

package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A typed command of a page, with its answer there.
type typed struct {
	line    int
	command string
	answer  string
}

// typedIn reads the blocks of a page that are marked as console. A command begins with "$ " and
// continues with "> ", and its answer follows.
func typedIn(t *testing.T, page string) (all []typed) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	inside := false
	for i, line := range strings.Split(string(text), "\n") {
		command, begins := strings.CutPrefix(line, "$ ")
		more, goesOn := strings.CutPrefix(line, "> ")
		switch {
		case strings.HasPrefix(line, "```"):
			inside = line == "```console"
		case !inside:
		case begins:
			all = append(all, typed{line: i + 1, command: command})
		case goesOn:
			all[len(all)-1].command += "\n" + more
		default:
			all[len(all)-1].answer += line + "\n"
		}
	}
	return all
}

// Each command of docs/api.md gives the answer of the page.
func TestThePageOfTheAPIIsTrue(t *testing.T) { pageIsTrue(t, "api.md", 15) }

// Each command of docs/oste.md gives the answer of the page.
func TestThePageOfOSTEIsTrue(t *testing.T) {
	pageIsTrue(t, "oste.md", 15, "--allow", "http", "--allow-net", "127.0.0.1")
}

// pageIsTrue runs the commands of a page in one shell, on a server and a node of its own, and compares
// the answers. least is how many commands the page has at least.
func pageIsTrue(t *testing.T, page string, least int, node ...string) {
	t.Parallel()
	for _, needed := range []string{"curl", "jq"} {
		if _, err := exec.LookPath(needed); err != nil {
			t.Skipf("the page is for people who have %s", needed)
		}
	}
	s := newSite(t, "sqlite:"+filepath.Join(t.TempDir(), "sluice.db"))
	url := s.server()
	s.daemon(nil, node...)

	all := typedIn(t, "../../docs/"+page)
	var script strings.Builder
	fmt.Fprintf(&script, "sluice() { %q \"$@\"; }\ncd %q\n", binary, t.TempDir())
	for i, c := range all {
		fmt.Fprintf(&script, "%s\necho; echo '=== %d'\n", strings.ReplaceAll(c.command, "http://127.0.0.1:8080", url), i)
	}
	sh := exec.Command("sh", "-c", script.String())
	sh.Env = append(s.command().Env, "NO_COLOR=1")
	sh.WaitDelay = time.Second
	out, err := sh.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	rest := string(out)
	for i, c := range all {
		got, after, _ := strings.Cut(rest, fmt.Sprintf("\n=== %d\n", i))
		rest = after
		pattern := strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(c.answer)), "…", ".*?")
		if !regexp.MustCompile(`^` + pattern + `$`).MatchString(strings.TrimSpace(got)) {
			t.Errorf("docs/%s:%d: %s\nanswers\n%s\nand not\n%s", page, c.line, c.command, strings.TrimSpace(got), c.answer)
		}
	}
	if len(all) < least {
		t.Errorf("the page has %d commands; it had more", len(all))
	}
}
