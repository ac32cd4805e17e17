package planfile

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestAFileInPartsIsReadAsAWhole(t *testing.T) {
	const head = "plan: x\nparams: {a: b}\ndefaults: {timeout: 3s}\n"
	for _, c := range []struct {
		name, file string
		parts      bool // it can be cut
	}{
		{"block style", head + "tasks:\n  a: {run: make}\n  b:\n    run: make\n    needs: [a]\n", true},
		{"keys after the tasks, comments, empty lines", head + "tasks: # all\n# one\n\n    a:\n      run: |\n        make\n\n       # in it\n    # two\n    b: {run: make}\n\nenv: {A: b}\n", true},
		{"lines that end as on Windows", strings.ReplaceAll(head+"tasks:\n  a: {run: make}\n  b: {run: make, needs: [a]}\n", "\n", "\r\n"), true},
		{"a text over several lines", head + "tasks:\n  a:\n    run: \"make\n      all\"\n  b: {run: make,\n    needs: [a]}\n", true},
		{"a text with a line that is like a task", head + "tasks:\n  a:\n    run: \"make\n  b: all\"\n  c: {run: make}\n", false},
		{"anchors", head + "tasks:\n  a: &a {run: make}\n  b: *a\n", false},
		{"a merge into the tasks", head + "tasks:\n  a: {run: make}\n  <<: {b: {run: make}}\n", false},
		{"a merge into a task", head + "tasks:\n  a: {run: make}\n  b: {<<: {run: make}, needs: [a]}\n", true},
		{"flow style", head + "tasks: {a: {run: make}}\n", false},
		{"tasks first", "tasks:\n  a: {run: make}\nplan: x\n", false},
		{"a line that ends where only YAML sees it", head + "tasks:\n  a:\n    run: |\n      make\u2028      all\n", false},
		{"an explicit key", head + "tasks:\n  ? a\n  : {run: make}\n", false},
		{"finally behind the tasks", head + "tasks:\n  a: {run: make}\n  b: {run: make}\nfinally:\n  c: {run: make}\n  d: {run: make, needs: c}\n", true},
		{"finally before the tasks", head + "finally:\n  c: {run: make}\ntasks:\n  a: {run: make}\n  b: {run: make}\n", true},
		{"the end of a document", head + "tasks:\n  a: {run: make}\n...\n", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			want, err := newReader("f", []byte(c.file), Options{Dir: "/d"}).load()
			if err != nil {
				t.Fatal(err)
			}
			got := stream("f", []byte(c.file), Options{Dir: "/d"}, 1)
			if (got != nil) != c.parts {
				t.Fatalf("read in parts: %v, want %v", got != nil, c.parts)
			}
			if got != nil && !reflect.DeepEqual(got, want) {
				t.Errorf("in parts it is\n%+v\nas a whole\n%+v", got, want)
			}
		})
	}
}

func TestAFileWithMistakesIsNotReadInParts(t *testing.T) {
	files, err := filepath.Glob("testdata/errors/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range strings.Split("\n"+string(data), "\n=== ")[1:] {
			title, rest, _ := strings.Cut(c, "\n")
			text, _, _ := strings.Cut(rest+"\n", "--- says\n")
			if s := stream("f", []byte(text), Options{Dir: "/work"}, 1); s != nil {
				t.Errorf("%s: the file was taken as %+v", title, s)
			}
		}
	}
}

func TestALargeFileTellsPlaces(t *testing.T) {
	var file strings.Builder
	file.WriteString("plan: x\ntasks:\n")
	for i := 0; file.Len() < streamFrom; i++ {
		fmt.Fprintf(&file, "  t%d: {run: make}\n", i)
	}
	good := file.String()
	s, err := Parse("f", []byte(good), Options{})
	if err != nil || len(s.Tasks) != strings.Count(good, "run") {
		t.Fatalf("%d tasks, error %v", len(s.Tasks), err)
	}
	lines := strings.Count(good, "\n")
	for _, c := range []struct{ line, want string }{
		{"  t5: {run: make}\n", fmt.Sprintf("f:%d:3: task \"t5\" is there twice; the first is on line 8\n", lines+1)},
		{"  x: {run: make, needs: [t]}\n", fmt.Sprintf("f:%d:26: task \"x\" needs \"t\", which is not in the plan", lines+1)},
		{"  x: [\n", fmt.Sprintf("f:%d:6: this is not YAML", lines+1)},
	} {
		if _, err := Parse("f", []byte(good+c.line), Options{}); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("with %q: got %v, want %s", c.line, err, c.want)
		}
	}
}
