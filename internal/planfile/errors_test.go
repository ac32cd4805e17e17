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
