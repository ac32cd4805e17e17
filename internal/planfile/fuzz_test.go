package planfile

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/plan"
)

// Whatever a file holds, it is loaded, into a plan that can be submitted, or refused with places that are in it.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/errors/*.txt")
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, c := range strings.Split("\n"+string(data), "\n=== ")[1:] {
			_, rest, _ := strings.Cut(c, "\n")
			text, _, _ := strings.Cut(rest+"\n", "--- says\n")
			f.Add([]byte(text))
		}
	}
	f.Add([]byte("plan: x\ntasks: {a: {run: make, foreach: \"${{ \\e[31m }}\"}}\n"))
	f.Add([]byte("{\"plan\": \"x\", \"params\": {\"a\": \"\\ud83d\\ude00\"}, \"tasks\": {\"a\": {\"run\": \"\\/\"}}}"))
	f.Add([]byte("plan: x\nparams: {l: [1, 0x1F, .5, 1e400]}\ntasks:\n  a: &a {plugin: demo, params: {x: \"${{ params.l }}\"}, foreach: \"${{ params.l }}\"}\n  b: {<<: *a, needs: a}\n"))
	f.Add([]byte("plan: x\r\nenv: {A: \"${{ plan.name }}\"}\r\ntasks: {a: {run: [a, \"${{ task.name }}\"], dir: \"${{ needs.b }}\", needs: b}, b: {run: |\r\n x\r\n}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse("f", data, Options{Dir: "/work"})
		if err == nil {
			s.File = plan.File{} // Parse adds it
		}
		if in := stream("f", data, Options{Dir: "/work"}, 1); in != nil && (err != nil || !reflect.DeepEqual(in, s)) {
			t.Errorf("in parts this is read as\n%+v\nand as a whole as\n%+v\n%v", in, s, err)
		}
		if err != nil {
			var errs Errors
			if !errors.As(err, &errs) || len(errs) == 0 {
				t.Fatalf("got %T, want Errors", err)
			}
			last := 0
			for _, e := range errs {
				if e.Line < 1 || e.Column < 1 || e.Message == "" || e.Caret > len([]rune(e.Text)) || e.Line < last {
					t.Errorf("this error has no place, or not its own: %+v", e)
				}
				if strings.ContainsAny(e.Text+e.Message, "\n\x00\x1b") {
					t.Errorf("an error is not fit for a terminal: %q %q", e.Message, e.Text)
				}
				last = e.Line
			}
			_ = err.Error()
			return
		}
		for _, task := range s.Tasks {
			if raw, ok := task.Params.(json.RawMessage); ok && !json.Valid(raw) {
				t.Fatalf("params of %s are not JSON: %s", task.Name, raw)
			}
		}
		if _, _, err := compiler.Compile(s, time.Now(), func(compiler.QueueNeed) (plan.QueueID, error) { return plan.QueueID{}, nil }); err != nil {
			t.Errorf("what was loaded cannot be compiled: %v", err)
		}
	})
}
