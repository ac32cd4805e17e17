package listing

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/plan"
)

func TestItemsOfFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a [folder] {of} its own?*")
	for name, text := range map[string]string{
		"logs/b.log": "", "logs/a.log": "", "logs/.hidden.log": "", "logs/sub/c.log": "", "logs/sub/deep/d.log": "", "logs/.git/e.log": "",
		"logs/note.txt": "", "lines": "one\r\n\n  two\nthree", "long": "x\n" + strings.Repeat("y", maxLine+1), "bytes": "ok\n\xff\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	outside := filepath.Join(filepath.Dir(dir), "outside.log")
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		of   plan.Foreach
		want string // the items with a space between, or what the error says
	}{
		{"files, sorted, but none that is hidden", plan.Foreach{Glob: "logs/*.log"}, `"logs/a.log" "logs/b.log"`},
		{"files in any folder, but in none that is hidden", plan.Foreach{Glob: "logs/**/*.log"}, `"logs/a.log" "logs/b.log" "logs/sub/c.log" "logs/sub/deep/d.log"`},
		{"hidden files that are asked for", plan.Foreach{Glob: "logs/.*.log"}, `"logs/.hidden.log"`},
		{"files in a hidden folder that is named", plan.Foreach{Glob: "./logs/.git/*"}, `"logs/.git/e.log"`},
		{"either of two", plan.Foreach{Glob: "logs/{a.log,note.txt}"}, `"logs/a.log" "logs/note.txt"`},
		{"files beside the folder", plan.Foreach{Glob: "../*.log"}, `"../outside.log"`},
		{"an absolute pattern", plan.Foreach{Glob: filepath.Dir(outside) + "/*.log"}, `"` + outside + `"`},
		{"nothing that matches", plan.Foreach{Glob: "logs/none*"}, ""},
		{"a folder that is not there", plan.Foreach{Glob: "none/*"}, "none does not exist"},
		{"a pattern that is none", plan.Foreach{Glob: "logs/[a"}, `glob "logs/[a": syntax error in pattern`},
		{"lines", plan.Foreach{Lines: "lines"}, `"one" "  two" "three"`},
		{"a line that is too long", plan.Foreach{Lines: "long"}, "line 2 of "},
		{"a line that is not UTF-8", plan.Foreach{Lines: "bytes"}, `"\xff" is not UTF-8`},
	} {
		t.Run(c.name, func(t *testing.T) {
			items, err := Read(t.Context(), &c.of, dir)
			if err != nil {
				if !strings.Contains(err.Error(), c.want) || c.want == "" {
					t.Errorf("got error %v, want %s", err, c.want)
				}
				return
			}
			var got []string
			for _, item := range items {
				got = append(got, string(item))
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	if err := os.WriteFile(filepath.Join(dir, "logs", "caf\xe9.log"), nil, 0o600); err != nil {
		t.Skipf("this file system takes only UTF-8: %v", err)
	}
	if _, err := Read(t.Context(), &plan.Foreach{Glob: "logs/*.log"}, dir); err == nil || !strings.Contains(err.Error(), "not UTF-8") {
		t.Errorf("a name that is not UTF-8: %v, want it refused", err)
	}
}
