package planfile

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestARecordedWorkflowBecomesAPlan(t *testing.T) {
	for _, c := range []struct {
		file, name    string
		tasks, needs  int
		levels, width int
		sum           time.Duration // of the estimates, at scale 0.001
	}{
		{"helloworld-forkjoin-10-chameleon", "forkjoin-10-5000-0_6-100000000-cascadelake-1-0-1683197671_json", 10, 16, 3, 8, 1028704 * time.Microsecond},
		{"montage-chameleon-2mass-01d-001", "montage", 103, 231, 8, 45, 362633 * time.Microsecond},
		{"epigenomics-chameleon-hep-2seq-100k-001", "genome-dax-0", 119, 144, 9, 28, 2898667 * time.Microsecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := os.Open(filepath.Join("testdata/workloads", c.file+".json.gz"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			text, err := ImportWfFormat(f, 0.001)
			if err != nil {
				t.Fatal(err)
			}
			s, err := Parse("import", text, Options{Dir: "/work"})
			if err != nil {
				t.Fatalf("what was imported cannot be read: %v", err)
			}
			level := map[string]int{}
			width := map[int]int{}
			needs, levels := 0, 0
			var sum time.Duration
			for len(level) < len(s.Tasks) {
				for _, task := range s.Tasks {
					if _, done := level[task.Name]; done {
						continue
					}
					at, ready := 1, true
					for _, n := range task.Needs {
						l, known := level[n]
						at, ready = max(at, l+1), ready && known
					}
					if ready {
						level[task.Name] = at
						width[at]++
						levels = max(levels, at)
						needs += len(task.Needs)
						sum += task.Estimate
						if got, want := string(task.Params.(json.RawMessage)), fmt.Sprintf(`{"sleep":"%s"}`, task.Estimate); got != want {
							t.Errorf("task %s has params %s, want %s", task.Name, got, want)
						}
					}
				}
			}
			widest := 0
			for _, w := range width {
				widest = max(widest, w)
			}
			if sum != c.sum {
				t.Errorf("the tasks sleep for %v in all, want %v", sum, c.sum)
			}
			if s.Name != c.name || len(s.Tasks) != c.tasks || needs != c.needs || levels != c.levels || widest != c.width {
				t.Errorf("plan %s: %d tasks, %d needs, %d levels, %d wide; want %s: %d, %d, %d, %d",
					s.Name, len(s.Tasks), needs, levels, widest, c.name, c.tasks, c.needs, c.levels, c.width)
			}
		})
	}
}

func workflow(specs, runs string) string {
	return `{"name":"w","schemaVersion":"1.5","workflow":{"specification":{"tasks":[` + specs + `]},"execution":{"tasks":[` + runs + `]}}}`
}

func TestAWorkflowThatCannotBeReadSaysWhere(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"no JSON", "{\n  \"name\": x}", `workflow: line 2, column 11: invalid character 'x' looking for beginning of value`},
		{"nothing", "", `workflow: line 1, column 1: unexpected end of JSON input`},
		{"a wrong type", `{"schemaVersion":"1.5","workflow":{"specification":{"tasks":[{"id":5}]}}}`,
			`workflow: line 1, column 68: workflow.specification.tasks.id is number, where string has to be`},
		{"another version", `{"schemaVersion":"1.3"}`, `workflow: schemaVersion is "1.3"; this reads WfFormat 1.5`},
		{"no tasks", workflow("", ""), `workflow: workflow.specification.tasks is empty`},
		{"no id", workflow(`{"id":"a"},{"name":"b"}`, `{"id":"a","runtimeInSeconds":1}`), `workflow: workflow.specification.tasks[1] has no id`},
		{"an id twice", workflow(`{"id":"a"},{"id":"a"}`, `{"id":"a","runtimeInSeconds":1}`),
			`workflow: workflow.specification.tasks[1]: the id "a" is also that of [0]`},
		{"no run time", workflow(`{"id":"a"}`, ``), `workflow: workflow.specification.tasks[0]: task "a" has no runtimeInSeconds in workflow.execution.tasks`},
		{"a run without time", workflow(`{"id":"a"}`, `{"id":"a"}`), `workflow: workflow.execution.tasks[0]: task "a" has no runtimeInSeconds`},
		{"a negative time", workflow(`{"id":"a"}`, `{"id":"a","runtimeInSeconds":-1}`),
			`workflow: workflow.execution.tasks[0]: task "a" ran for -1 s, times 0.5; that cannot be slept`},
		{"a time beyond all", workflow(`{"id":"a"}`, `{"id":"a","runtimeInSeconds":1e300}`),
			`workflow: workflow.execution.tasks[0]: task "a" ran for 1e+300 s, times 0.5; that cannot be slept`},
		{"a run twice", workflow(`{"id":"a"}`, `{"id":"a","runtimeInSeconds":1},{"id":"a","runtimeInSeconds":1}`),
			`workflow: workflow.execution.tasks[1]: task "a" is there twice`},
		{"an unknown parent", workflow(`{"id":"a","parents":["b"]}`, `{"id":"a","runtimeInSeconds":1}`),
			`workflow: workflow.specification.tasks[0].parents[0]: "b" is not the id of a task`},
		{"an unknown child", workflow(`{"id":"a","children":["b"]}`, `{"id":"a","runtimeInSeconds":1}`),
			`workflow: workflow.specification.tasks[0].children[0]: "b" is not the id of a task`},
		{"a cycle", workflow(`{"id":"a","children":["b"]},{"id":"b","children":["a"]}`, `{"id":"a","runtimeInSeconds":1},{"id":"b","runtimeInSeconds":1}`),
			`workflow: workflow.specification.tasks: the tasks need each other in a cycle: a → b → a; drop one of these needs`},
		{"half of a gzip file", "\x1f\x8b\x08\x00", `workflow: unexpected EOF`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ImportWfFormat(strings.NewReader(c.in), 0.5)
			if err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
	for _, scale := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if _, err := ImportWfFormat(strings.NewReader(workflow("", "")), scale); err == nil || !strings.HasPrefix(err.Error(), "scale is ") {
			t.Errorf("scale %v: got error %v", scale, err)
		}
	}
}

func TestImportedNamesAreValidAndDiffer(t *testing.T) {
	var specs, runs []string
	for i, name := range []string{"a b", "a_b", "a.b", "true", "12", "-x", "", "0123456789abcdef01234567", strings.Repeat("é", 300), "a_b_2"} {
		specs = append(specs, fmt.Sprintf(`{"id":"i%d","name":%q}`, i, name))
		runs = append(runs, fmt.Sprintf(`{"id":"i%d","runtimeInSeconds":0}`, i))
	}
	specs[9] = `{"id":"i9","name":"a_b_2","parents":["i0","i3"]}`
	specs[0] = `{"id":"i0","name":"a b","children":["i9","i4"]}`
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := io.WriteString(z, workflow(strings.Join(specs, ","), strings.Join(runs, ","))); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := ImportWfFormat(&packed, 1)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Parse("import", text, Options{Dir: "/work"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a_b", "a_b_2", "a_b_3", "true", "12", "_x", "i6", "_0123456789abcdef01234567", strings.Repeat("_", 180), "a_b_2_2"}
	for i, task := range s.Tasks {
		if task.Name != want[i] || task.Plugin != "demo" || task.Estimate != time.Microsecond {
			t.Errorf("task %d: name %q, plugin %q, estimate %v; want name %q, plugin demo, 1µs", i, task.Name, task.Plugin, task.Estimate, want[i])
		}
	}
	if got := strings.Join(s.Tasks[9].Needs, " "); got != "a_b true" {
		t.Errorf("the needs of parents and children are %q, want each once: %q", got, "a_b true")
	}
	if got := strings.Join(s.Tasks[4].Needs, " "); got != "a_b" {
		t.Errorf("a task that only its parent knows as a child needs %q, want a_b", got)
	}
}

func FuzzImport(f *testing.F) {
	f.Add([]byte(workflow(`{"id":"a","name":"x y"},{"id":"b","parents":["a"]}`, `{"id":"a","runtimeInSeconds":1.5},{"id":"b","runtimeInSeconds":0}`)), 0.5)
	f.Add([]byte(workflow(`{"id":"\u0000"}`, `{"id":"\u0000","runtimeInSeconds":1e9}`)), 1e3)
	f.Add([]byte("\x1f\x8b"), 1.0)
	f.Fuzz(func(t *testing.T, in []byte, scale float64) {
		text, err := ImportWfFormat(bytes.NewReader(in), scale)
		if err != nil {
			return
		}
		s, err := Parse("import", text, Options{Dir: "/work"})
		if err != nil {
			t.Fatalf("what was imported cannot be read: %v\n%s", err, text)
		}
		for _, task := range s.Tasks {
			if task.Estimate <= 0 {
				t.Errorf("task %s has no estimate", task.Name)
			}
		}
	})
}
