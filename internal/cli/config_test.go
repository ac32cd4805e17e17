package cli

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/plugins"
)

var update = flag.Bool("update", false, "rewrite what golden files say")

// testdata/config/broken.txt holds cases, each a title, a configuration file, and what is said of it:
//
//	=== TITLE
//	FILE
//	--- says
//	STANDARD ERROR
func TestConfigCheckSaysWhatIsWrong(t *testing.T) {
	golden := "testdata/config/broken.txt"
	data, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	golden, err = filepath.Abs(golden)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir()) // so that the name in the errors is the same each time
	var all strings.Builder
	for _, c := range strings.Split("\n"+string(data), "\n=== ")[1:] {
		title, rest, _ := strings.Cut(c, "\n")
		text, want, _ := strings.Cut(rest+"\n", "--- says\n")
		if err := os.WriteFile("config.json", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		code := Program{Plugins: plugins.NewRegistry(), Stdout: &out, Stderr: &errs, Getenv: func(string) string { return "" }}.Run(context.Background(), []string{"config", "check", "config.json"})
		if code != exitUsage || out.Len() > 0 {
			t.Errorf("%s: ended with %d, and printed %q", title, code, &out)
		}
		if got := strings.TrimRight(errs.String(), "\n"); got != strings.TrimRight(want, "\n") && !*update {
			t.Errorf("%s:\n%s\ngot:\n%s\n\nwant:\n%s", title, text, got, want)
		}
		all.WriteString("=== " + title + "\n" + text + "--- says\n" + errs.String())
	}
	if *update {
		if err := os.WriteFile(golden, []byte(all.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
