package layers

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mostInCycle is how many files of one package may refer to each other in a circle. A reader who wants to understand one of them has to
// read them all.
const mostInCycle = 12

// held are the folders whose packages are held to that. The other packages are small, or are one type with its methods.
var held = []string{"internal/cli", "internal/store"}

type checked struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// TestNoLongCycleOfFiles type-checks each package of the module. A file refers to another one if it names something that is declared there:
// a function, a type, a variable, a constant, a method or a field. With -v it prints the longest cycle of each package.
func TestNoLongCycleOfFiles(t *testing.T) {
	packages, exports := exported(t)
	for _, p := range packages {
		name := strings.TrimPrefix(p.ImportPath, module)
		cycle := longestCycle(fileGraph(t, &p, exports))
		if len(cycle) > 0 {
			t.Logf("%-32s %3d files, longest cycle %2d", name, len(p.GoFiles), len(cycle))
		}
		if slices.ContainsFunc(held, func(h string) bool { return name == h || strings.HasPrefix(name, h+"/") }) && len(cycle) > mostInCycle {
			t.Errorf("%s: %d files refer to each other in a circle, and at most %d may: part them, so that references go one way: %s",
				name, len(cycle), mostInCycle, strings.Join(cycle, " "))
		}
	}
}

// exported returns the packages of the module, and where the compiler keeps what they and all that they import export.
func exported(t *testing.T) (ours []checked, exports map[string]string) {
	t.Helper()
	out, err := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles", module+"...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	exports = map[string]string{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p checked
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		if strings.HasPrefix(p.ImportPath, module) {
			ours = append(ours, p)
		}
	}
	return ours, exports
}

// fileGraph returns which files of a package refer to which others.
func fileGraph(t *testing.T, p *checked, exports map[string]string) map[string][]string {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	open := func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		return os.Open(exports[path])
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: importer.ForCompiler(fset, "gc", open)}
	pkg, err := conf.Check(p.ImportPath, fset, files, info)
	if err != nil {
		t.Fatal(err)
	}
	refers := map[string]map[string]bool{}
	for ident, object := range info.Uses {
		if object.Pkg() != pkg || object.Parent() != nil && object.Parent() != pkg.Scope() { // another package's, or local
			continue
		}
		from, to := filepath.Base(fset.Position(ident.Pos()).Filename), filepath.Base(fset.Position(object.Pos()).Filename)
		if from == to {
			continue
		}
		if refers[from] == nil {
			refers[from] = map[string]bool{}
		}
		refers[from][to] = true
	}
	graph := make(map[string][]string, len(refers))
	for from, to := range refers {
		graph[from] = slices.Sorted(maps.Keys(to))
	}
	return graph
}

// longestCycle returns the largest set of files each of which leads to all others, in order; none if no two files do. It is the largest strongly
// connected component (R. Tarjan, "Depth-first search and linear graph algorithms", 1972).
func longestCycle(graph map[string][]string) (longest []string) {
	index, low, on := map[string]int{}, map[string]int{}, map[string]bool{}
	var stack []string
	var visit func(string)
	visit = func(file string) {
		index[file] = len(index) + 1
		low[file] = index[file]
		stack, on[file] = append(stack, file), true
		for _, next := range graph[file] {
			switch {
			case index[next] == 0:
				visit(next)
				low[file] = min(low[file], low[next])
			case on[next]:
				low[file] = min(low[file], index[next])
			}
		}
		if low[file] != index[file] {
			return
		}
		from := slices.Index(stack, file)
		cycle := slices.Sorted(slices.Values(stack[from:]))
		for _, f := range cycle {
			on[f] = false
		}
		if stack = stack[:from]; len(cycle) > max(1, len(longest)) {
			longest = cycle
		}
	}
	for _, file := range slices.Sorted(maps.Keys(graph)) {
		if index[file] == 0 {
			visit(file)
		}
	}
	return longest
}

func TestTheLongestCycleIsFound(t *testing.T) {
	for _, c := range []struct {
		name  string
		graph map[string][]string
		want  string
	}{
		{"a line has none", map[string][]string{"a": {"b"}, "b": {"c"}}, ""},
		{"two files are one", map[string][]string{"a": {"b"}, "b": {"a", "c"}}, "a b"},
		{"circles that share a file are one", map[string][]string{"a": {"b"}, "b": {"a", "c"}, "c": {"b"}, "d": {"a"}}, "a b c"},
		{"the larger of two is found", map[string][]string{"a": {"b"}, "b": {"a"}, "c": {"d", "a"}, "d": {"e"}, "e": {"c"}}, "c d e"},
	} {
		if got := strings.Join(longestCycle(c.graph), " "); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// imported matches the modules that a module of the pages imports.
var imported = regexp.MustCompile(`(?m)^(?:import|export) .*from '\./([a-z]+\.js)';`)

func TestNoCycleOfModulesOfThePages(t *testing.T) {
	modules, err := filepath.Glob("../web/static/*.js")
	if err != nil || len(modules) == 0 {
		t.Fatalf("there are no modules: %v", err)
	}
	graph := map[string][]string{}
	for _, path := range modules {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range imported.FindAllStringSubmatch(string(text), -1) {
			graph[filepath.Base(path)] = append(graph[filepath.Base(path)], m[1])
		}
	}
	if len(graph["app.js"]) == 0 {
		t.Error("app.js imports nothing: imports are written otherwise by now")
	}
	if cycle := longestCycle(graph); len(cycle) > 0 {
		t.Errorf("modules of the pages import each other in a circle: %s", strings.Join(cycle, " "))
	}
}
