package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// asked are the functions of internal/rules that return a step and that a driver calls itself, with
// the reason. The engine asks all others. A rule that no driver calls any more leaves the list.
var asked = map[string]string{
	"InputFailed": "making items finds that it cannot; MongoDB fails tasks whose documents it cannot read or write",
	"NotKept":     "only MongoDB has documents of a limited size",
}

// TestDriversLeaveDecisionsToTheEngine finds the rules that the drivers ask what becomes of a task.
func TestDriversLeaveDecisionsToTheEngine(t *testing.T) {
	functions := map[string]bool{}
	eachFile(t, "../rules", func(_ *token.FileSet, f *ast.File) {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Type.Results != nil {
				for _, r := range fn.Type.Results.List {
					if word, ok := r.Type.(*ast.Ident); ok && word.Name == "Step" {
						functions[fn.Name.Name] = true
					}
				}
			}
		}
	})
	called := map[string]bool{}
	for _, driver := range []string{"storetest/model", "sqlite", "mongodb"} {
		eachFile(t, filepath.Join("../store", driver), func(set *token.FileSet, f *ast.File) {
			ast.Inspect(f, func(n ast.Node) bool {
				s, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "rules" && functions[s.Sel.Name] {
					if called[s.Sel.Name] = true; asked[s.Sel.Name] == "" {
						t.Errorf("%s: a driver decides by rules.%s: let the engine ask it, and the driver write the step", set.Position(s.Pos()), s.Sel.Name)
					}
				}
				return true
			})
		})
	}
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		if !called[name] {
			t.Errorf("no driver calls rules.%s any more: take it off the list", name)
		}
	}
}

// eachFile hands over the files of a package, without its tests.
func eachFile(t *testing.T, dir string, do func(*token.FileSet, *ast.File)) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%s has no files: %v", dir, err)
	}
	set := token.NewFileSet()
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		do(set, f)
	}
}
