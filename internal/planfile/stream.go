package planfile

import (
	"bytes"

	"go.yaml.in/yaml/v3"

	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/textfile"
	"github.com/seed-1177d267/sluice/plan"
)

// A file of this size or more is read in parts of about this size. The YAML nodes of a plan of
// 100,000 tasks would take up to a gigabyte.
const (
	streamFrom = 1 << 20
	partSize   = 256 << 10
)

// stream reads a file that it can cut between tasks, one part of about the given size at a time. It
// returns nil for any other file, and for a file with any mistake. The caller then reads the file
// as a whole, which alone gives places.
//
// A cut is before a line that is indented as the first task is. Such a line may be no task to YAML:
// it is inside quotes or brackets, or follows a key without a value. Then the part before is not
// YAML, or the part after is no mapping of texts to tasks. So no cut leads to a wrong reading.
func stream(name string, data []byte, o Options, size int) *plan.Spec {
	head, parts, count, tail := cut(data, size)
	if len(parts) == 0 {
		return nil
	}
	r := newReader(name, bytes.Join([][]byte{head, tail}, nil), o)
	root := parse(&r.faults)
	if root == nil || root.Kind != yaml.MappingNode || !sound(&r.faults, root, 0) {
		return nil
	}
	root.Content = append(root.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: "tasks"}, &yaml.Node{Kind: yaml.MappingNode})
	r.readPlan(root)
	last := r.spec.Tasks // those of finally
	r.spec.Tasks = make([]plan.TaskSpec, 0, count+len(last))
	for i := range parts {
		parts[i].first = len(r.spec.Tasks)
		f := faults{src: &source{textfile.Source{Name: name, Text: parts[i].text}}}
		tasks := parse(&f)
		if tasks == nil || tasks.Kind != yaml.MappingNode || merges(tasks) || !sound(&f, tasks, 1) {
			return nil
		}
		r.nodes = r.nodes[:0]
		r.readTasks(tasks)
		if len(r.list) > 0 {
			return nil
		}
	}
	tasks := len(r.spec.Tasks)
	r.spec.Tasks = append(r.spec.Tasks, last...)
	if compiler.Validate(r.spec) != nil || r.check != nil && len(r.check(r.spec)) > 0 {
		return nil
	}
	r.nodes = nil
	r.tellOfParts(data, len(head), parts, tasks)
	return r.spec
}

// A part is some of the tasks of a file.
type part struct {
	text  []byte
	at    int // where it begins in the file
	first int // task of the plan
}

// merges reports whether a mapping has a merge key, which would bring in only what its part does not have.
func merges(n *yaml.Node) bool {
	for i := 0; i < len(n.Content); i += 2 {
		if isMerge(follow(n.Content[i])) {
			return true
		}
	}
	return false
}

// cut finds the tasks of a file in block style. It returns parts of whole tasks, each of that size
// or a little more, the number of tasks, and the text before and after them. Without parts, the
// file is of another style.
func cut(data []byte, size int) (head []byte, parts []part, count int, tail []byte) {
	if bytes.Count(data, []byte("\r")) != bytes.Count(data, []byte("\r\n")) ||
		bytes.Contains(data, []byte("\u0085")) || bytes.Contains(data, []byte("\u2028")) || bytes.Contains(data, []byte("\u2029")) {
		return nil, nil, 0, nil // lines end where only YAML sees it
	}
	start := bytes.Index(data, []byte("\ntasks:")) + 1
	if start == 0 {
		return nil, nil, 0, nil
	}
	first := start + len("tasks:")
	rest, after := line(data, first)
	if rest = bytes.TrimLeft(rest, " "); len(rest) > 0 && rest[0] != '#' {
		return nil, nil, 0, nil
	}
	indent := 0
	from, at := after, after // of the part; of the line
	for at < len(data) {
		text, next := line(data, at)
		spaces := len(text) - len(bytes.TrimLeft(text, " "))
		blank := spaces == len(text) || text[spaces] == '#'
		switch {
		case blank:
		case spaces == 0:
			return data[:start], append(parts, part{text: data[from:at], at: from}), count, data[at:]
		case indent == 0 || spaces == indent:
			if indent = spaces; count > 0 && at-from >= size {
				parts, from = append(parts, part{text: data[from:at], at: from}), at
			}
			count++
		}
		at = next
	}
	if count == 0 {
		return nil, nil, 0, nil
	}
	return data[:start], append(parts, part{text: data[from:], at: from}), count, nil
}

// line returns the line at a byte, without its end, and where the next begins.
func line(data []byte, at int) (text []byte, next int) {
	end := bytes.IndexByte(data[at:], '\n')
	if end < 0 {
		return data[at:], len(data)
	}
	return bytes.TrimSuffix(data[at:at+end], []byte("\r")), at + end + 1
}
