package planfile

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite what golden files say")

// A file of testdata/errors holds cases, each a title, a plan file, and the errors that it gives:
//
//	=== TITLE
//	PLAN FILE
//	--- says
//	ERRORS
func TestErrorsNameThePlaceAndTheRemedy(t *testing.T) {
	files, err := filepath.Glob("testdata/errors/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			for _, c := range strings.Split("\n"+string(data), "\n=== ")[1:] {
				title, rest, _ := strings.Cut(c, "\n")
				text, want, _ := strings.Cut(rest+"\n", "--- says\n")
				want = strings.TrimRight(want, "\n")
				_, err := Parse("plan.yaml", []byte(text), Options{Dir: "/work"})
				if err == nil {
					t.Fatalf("%s: the file was taken", title)
				}
				if got := err.Error(); got != want && !*update {
					t.Errorf("%s:\n%s\ngot:\n%s\n\nwant:\n%s", title, text, got, want)
				}
				out.WriteString("=== " + title + "\n" + text + "--- says\n" + err.Error() + "\n")
			}
			if *update {
				if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// A value of a file may be a whole program that stands at the wrong key.
func TestErrorsCiteOnlyTheBeginningOfALongValue(t *testing.T) {
	const size = 500_000
	long, words := strings.Repeat("x", size), strings.Repeat("x y ", size/4)
	for name, task := range map[string]string{
		"a need": `needs: ["` + words + `"]`, "a rule": `when: "` + words + `"`, "a duration": `timeout: "` + words + `"`, "a count": `retry: {attempts: ` + strings.Repeat("9", size) + `}`,
		"a pattern": `foreach: {glob: "[` + long + `"}`, "a list": `foreach: "` + words + `"`, "a word": `on_lost: "` + words + `"`, "a variable": `env: {A: {from_env: "` + words + `"}}`,
		"an expression": `dir: "${{ ` + long + ` }}"`, "a param": `dir: "${{ params.` + long + ` }}"`, "a queue": `queue: "` + words + `"`, "a failure": `retry: {attempts: 2, on: ["` + words + `"]}`,
	} {
		_, err := Parse("plan.yaml", []byte("plan: p\ntasks:\n  a: {run: make, "+task+"}\n"), Options{Dir: "/work"})
		if err == nil || len(err.Error()) > 2000 || !strings.Contains(err.Error(), "…") {
			t.Errorf("%s: %.3000v", name, err)
		}
	}
}
