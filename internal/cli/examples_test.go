package cli_test

import (
	"io/fs"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/planfile"
)

// A sample is a plan file that the project shows somewhere.
type sample struct{ where, text string }

// samples returns every plan file that is shown in a page of Markdown, a page of the browser, a help text or an example.
func samples(t *testing.T) (all []sample) {
	t.Helper()
	for _, e := range planfile.Examples() {
		all = append(all, sample{"sluice plan example " + e.Name, string(e.Text())})
	}
	top := filepath.Join("..", "..")
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); strings.HasPrefix(name, ".") && name != ".." || name == "testdata" || strings.HasSuffix(filepath.ToSlash(path), "planfile/examples") { // they are above
				return fs.SkipDir
			}
			return nil
		}
		var find func(string) []string
		switch filepath.Ext(path) {
		case ".md":
			find = blocks
		case ".yaml":
			find = func(text string) []string { return []string{text} }
		default:
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		where, err := filepath.Rel(top, path)
		for _, s := range find(string(text)) {
			if isPlan.MatchString(s) {
				all = append(all, sample{where, s})
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var helps func(words ...string)
	helps = func(words ...string) {
		out, err := osexec.Command("sluice", append(words, "--help")...).Output()
		if err != nil {
			t.Fatalf("sluice %s --help: %v", strings.Join(words, " "), err)
		}
		for _, s := range blocks(string(out)) {
			if isPlan.MatchString(s) {
				all = append(all, sample{"sluice " + strings.Join(words, " ") + " --help", s})
			}
		}
		list, err := osexec.Command("sluice", append(append([]string{"__completeNoDesc"}, words...), "")...).Output()
		if err != nil || len(words) == 2 { // what follows two words is an argument
			return
		}
		for line := range strings.Lines(string(list)) {
			if word := strings.TrimSpace(line); command.MatchString(word) && word != "help" && word != "completion" {
				helps(append(words[:len(words):len(words)], word)...)
			}
		}
	}
	helps()
	return all
}

var (
	isPlan   = regexp.MustCompile(`(?m)^(plan|tasks):`)
	command  = regexp.MustCompile(`^[a-z][a-z-]*$`)
	fenced   = regexp.MustCompile("(?ms)^```[a-z]*\n(.*?)^```$")
	indented = regexp.MustCompile(`(?m)(^( {2,}\S.*|\s*)\n)+`)
)

// blocks returns the blocks of code of a text: those in fences, and those that are indented, without what they are indented by.
func blocks(text string) (all []string) {
	for _, m := range fenced.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	for _, block := range indented.FindAllString(fenced.ReplaceAllString(text, ""), -1) {
		first := strings.TrimLeft(block, "\n")
		by := len(first) - len(strings.TrimLeft(first, " "))
		all = append(all, regexp.MustCompile(`(?m)^ {0,`+string(rune('0'+min(by, 9)))+`}`).ReplaceAllString(block, ""))
	}
	return all
}

// outside matches what a plan needs that is not in an empty folder with a POSIX shell: programs of its own, and plugins.
var outside = regexp.MustCompile(`\./|(?m)(^ *|\{)plugin: |go (vet|build|test)|\bawk, -f`)

// inOrder are the pages whose blocks need each other. A test of cmd/sluice runs them.
var inOrder = map[string]bool{"README.md": true, "docs/tutorial.md": true, "docs/recipes.md": true}

func TestEverySampleIsValidAndRuns(t *testing.T) {
	all, ran, places := samples(t), 0, map[string]bool{}
	for _, s := range all {
		places[s.where] = true
		t.Run(s.where, func(t *testing.T) {
			text := s.text
			if !strings.Contains("\n"+text, "\nplan:") {
				text = "plan: sample\n" + text
			}
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "plan.yaml"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			words := []string{"validate", "plan.yaml"}
			if !outside.MatchString(text) && !inOrder[filepath.ToSlash(s.where)] {
				ran++
				words = []string{"run", "plan.yaml", "--store", "sqlite:" + filepath.Join(dir, "s.db"), "--quiet"}
			}
			cmd := osexec.Command("sluice", append([]string{"plan"}, words...)...)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("sluice plan %s: %v\n%s\nof\n%s", words[0], err, out, text)
			}
			if words[0] == "run" && len(out) > 0 {
				t.Errorf("a sample to copy is noted to be wrong:\n%s", out)
			}
		})
	}
	for _, place := range []string{"README.md", "docs/recipes.md", "docs/plan-files.md", "docs/plugins.md", "examples/ci/plan.yaml"} {
		if !places[filepath.FromSlash(place)] {
			t.Errorf("no sample was found in %s", place)
		}
	}
	if least := len(planfile.Examples()); ran < least {
		t.Errorf("%d of %d samples ran, want %d at least", ran, len(all), least)
	}
}
