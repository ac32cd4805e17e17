package planfile

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/textfile"
	"github.com/seed-1177d267/sluice/plan"
)

// An import reads these parts of WfFormat 1.5 (wfcommons.org): the graph from the specification,
// and the run times from the execution.
type wfInstance struct {
	Name          string `json:"name"`
	SchemaVersion string `json:"schemaVersion"`
	Workflow      struct {
		Specification struct {
			Tasks []wfTask `json:"tasks"`
		} `json:"specification"`
		Execution struct {
			Tasks []wfRun `json:"tasks"`
		} `json:"execution"`
	} `json:"workflow"`
}

type wfTask struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	Parents  []string `json:"parents"`
	Children []string `json:"children"`
}

type wfRun struct {
	ID      string   `json:"id"`
	Runtime *float64 `json:"runtimeInSeconds"`
}

const (
	wfVersion  = "1.5"
	wfSpecs    = "workflow.specification.tasks"
	wfRuns     = "workflow.execution.tasks"
	maxRuntime = math.MaxInt64 / 2
)

// ImportWfFormat makes a plan file of a recorded workflow in WfFormat 1.5, which is plain or
// gzipped JSON. Its tasks sleep (plugin demo) for the recorded time, multiplied by scale, which is
// above 0. That time, of at least 1 µs, is also their estimate: a task without an estimate would
// count as a second. Errors name the place in the input.
func ImportWfFormat(r io.Reader, scale float64) ([]byte, error) {
	if !(scale > 0) || math.IsInf(scale, 0) {
		return nil, fmt.Errorf("scale is %v; it is a number above 0, like 0.01 for a hundredth of the recorded times", scale)
	}
	data, err := uncompressed(r)
	if err != nil {
		return nil, fmt.Errorf("workflow: %w", err)
	}
	var in wfInstance
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, fmt.Errorf("workflow: %w", jsonPlace(data, err))
	}
	if in.SchemaVersion != wfVersion {
		return nil, fmt.Errorf("workflow: schemaVersion is %q; this reads WfFormat %s", in.SchemaVersion, wfVersion)
	}
	s, err := in.spec(scale)
	if err != nil {
		return nil, fmt.Errorf("workflow: %w", err)
	}
	if err := compiler.Validate(s); err != nil {
		return nil, fmt.Errorf("workflow: %s: %w", wfSpecs, err)
	}
	return in.write(s, scale), nil
}

// uncompressed reads all of r, through gzip if it is that.
func uncompressed(r io.Reader) ([]byte, error) {
	b := bufio.NewReader(r)
	r = b
	if magic, _ := b.Peek(2); string(magic) == "\x1f\x8b" {
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, err
		}
		defer z.Close()
		r = z
	}
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("it has more than %d MiB", maxFile>>20)
	}
	return data, err
}

// jsonPlace puts the line and the column before what a JSON decoder says.
func jsonPlace(data []byte, err error) error {
	at := int64(-1)
	var syntax *json.SyntaxError
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		at = max(0, syntax.Offset-1)
	case errors.As(err, &wrong):
		at = max(0, wrong.Offset-1)
		err = fmt.Errorf("%s is %s, where %s has to be", wrong.Field, wrong.Value, wrong.Type)
	}
	if at < 0 || at > int64(len(data)) {
		return err
	}
	src := textfile.Source{Text: data}
	line, column := src.Place(int(at))
	return fmt.Errorf("line %d, column %d: %w", line, column, err)
}

// spec makes a plan of the workflow, its tasks in the order of the specification.
func (in *wfInstance) spec(scale float64) (*plan.Spec, error) {
	tasks := in.Workflow.Specification.Tasks
	times, err := in.times(scale)
	if err != nil {
		return nil, err
	}
	index := make(map[string]int, len(tasks))
	names := namer{taken: map[string]bool{}, next: map[string]int{}}
	s := plan.New(validName(in.Name, "workflow"))
	for i, t := range tasks {
		if t.ID == "" {
			return nil, fmt.Errorf("%s[%d] has no id", wfSpecs, i)
		}
		if first, twice := index[t.ID]; twice {
			return nil, fmt.Errorf("%s[%d]: the id %q is also that of [%d]", wfSpecs, i, t.ID, first)
		}
		index[t.ID] = i
		d, ok := times[t.ID]
		if !ok {
			return nil, fmt.Errorf("%s[%d]: task %q has no runtimeInSeconds in %s", wfSpecs, i, t.ID, wfRuns)
		}
		name := t.Name
		if name == "" {
			name = t.ID
		}
		s.Add(plan.TaskSpec{Name: names.unique(name), Plugin: "demo", Params: sleep{d.String()}, Estimate: max(d, time.Microsecond)})
	}
	if len(tasks) == 0 {
		return nil, fmt.Errorf("%s is empty", wfSpecs)
	}
	edges := make(map[[2]int]bool)
	edge := func(parent, child int) {
		if !edges[[2]int{parent, child}] {
			edges[[2]int{parent, child}] = true
			s.Tasks[child].Needs = append(s.Tasks[child].Needs, s.Tasks[parent].Name)
		}
	}
	for i, t := range tasks {
		for k, id := range t.Parents {
			parent, ok := index[id]
			if !ok {
				return nil, fmt.Errorf("%s[%d].parents[%d]: %q is not the id of a task", wfSpecs, i, k, id)
			}
			edge(parent, i)
		}
	}
	for i, t := range tasks {
		for k, id := range t.Children {
			child, ok := index[id]
			if !ok {
				return nil, fmt.Errorf("%s[%d].children[%d]: %q is not the id of a task", wfSpecs, i, k, id)
			}
			edge(i, child)
		}
	}
	return s, nil
}

// sleep is the params of a task that takes its time.
type sleep struct {
	Sleep string `json:"sleep"`
}

// times returns the scaled run times by the ids of tasks.
func (in *wfInstance) times(scale float64) (map[string]time.Duration, error) {
	times := make(map[string]time.Duration, len(in.Workflow.Execution.Tasks))
	for i, run := range in.Workflow.Execution.Tasks {
		if run.Runtime == nil {
			return nil, fmt.Errorf("%s[%d]: task %q has no runtimeInSeconds", wfRuns, i, run.ID)
		}
		d := *run.Runtime * scale * float64(time.Second)
		if d < 0 || d > maxRuntime {
			return nil, fmt.Errorf("%s[%d]: task %q ran for %v s, times %v; that cannot be slept", wfRuns, i, run.ID, *run.Runtime, scale)
		}
		if _, twice := times[run.ID]; twice {
			return nil, fmt.Errorf("%s[%d]: task %q is there twice", wfRuns, i, run.ID)
		}
		times[run.ID] = time.Duration(d).Round(time.Microsecond)
	}
	return times, nil
}

// write writes the plan file.
func (in *wfInstance) write(s *plan.Spec, scale float64) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s: %d tasks of a recorded workflow (WfFormat %s), which sleep for %v times the time that they ran.\n",
		strings.ToValidUTF8(strconv.QuoteToGraphic(in.Name), "?"), len(s.Tasks), wfVersion, scale)
	fmt.Fprintf(&b, "plan: %s\ndefaults: {plugin: demo}\ntasks:\n", plainName(s.Name))
	for i := range s.Tasks {
		t := &s.Tasks[i]
		fmt.Fprintf(&b, "  %s:\n    params: {sleep: %s}\n    estimate: %s\n", plainName(t.Name), t.Params.(sleep).Sleep, t.Estimate)
		for k, need := range t.Needs {
			if k == 0 {
				b.WriteString("    needs:\n")
			}
			fmt.Fprintf(&b, "    - %s\n", plainName(need))
		}
	}
	return b.Bytes()
}

// plainName writes a valid name so that YAML takes it for text.
func plainName(name string) string {
	if c := name[0]; c == '-' || c >= '0' && c <= '9' || plainKind(name) != text {
		return `"` + name + `"`
	}
	return name
}

// Longest name that an import makes, which leaves room for a number.
const maxImportedName = 180

// validName makes a name of any text, with _ for what a name cannot have.
func validName(s, empty string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, s)
	if name == "" {
		name = empty
	}
	if name[0] == '-' {
		name = "_" + name[1:]
	}
	if len(name) == 24 && strings.Trim(name, "0123456789abcdef") == "" {
		name = "_" + name // else it would be taken for an id
	}
	return name[:min(len(name), maxImportedName)]
}

// A namer makes names that differ.
type namer struct {
	taken map[string]bool
	next  map[string]int // the number to try with a name that is taken
}

func (n *namer) unique(s string) string {
	base := validName(s, "task")
	name := base
	for n.taken[name] {
		n.next[base]++
		name = base + "_" + strconv.Itoa(n.next[base]+1)
	}
	n.taken[name] = true
	return name
}
