package layers

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// statusFiles names the file of each driver that maps statuses to the schema of the driver. The model
// has no schema.
var statusFiles = map[string]string{"storetest/model": "", "sqlite": "statuses.go", "mongodb": "statuses.go", "mongodb/wire": ""}

var statusInSQL = regexp.MustCompile(`\bstatus\s*(=|<>|!=|<|>|IN)\s*\(?\s*-?\d`)

// TestDriversNameNoStatus finds the places where a driver decides something by a status. The rules
// decide it, once for all drivers.
func TestDriversNameNoStatus(t *testing.T) {
	statuses := map[string]bool{}
	eachFile(t, "../../plan", func(_ *token.FileSet, f *ast.File) {
		for _, d := range f.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.CONST {
				typ := ""
				for _, s := range g.Specs {
					s := s.(*ast.ValueSpec)
					if word, ok := s.Type.(*ast.Ident); ok {
						typ = word.Name
					} else if len(s.Values) > 0 {
						typ = ""
					}
					for _, name := range s.Names {
						statuses[name.Name] = statuses[name.Name] || typ == "Status"
					}
				}
			}
		}
	})
	if !statuses["Held"] || statuses["PlanRunning"] {
		t.Fatalf("the constants of plan are not found: %v", statuses)
	}
	for driver, maps := range statusFiles {
		eachFile(t, filepath.Join("../store", driver), func(set *token.FileSet, f *ast.File) {
			if filepath.Base(set.Position(f.Pos()).Filename) == maps {
				return
			}
			planName := nameOf(f, module+"plan", "plan")
			ast.Inspect(f, func(n ast.Node) bool {
				if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING && statusInSQL.MatchString(l.Value) {
					t.Errorf("%s: a statement has the number of a status: take it from the file that maps statuses to the schema", set.Position(l.Pos()))
				}
				if s, ok := n.(*ast.SelectorExpr); ok {
					if x, ok := s.X.(*ast.Ident); ok && x.Name == planName && statuses[s.Sel.Name] {
						t.Errorf("%s: a driver names plan.%s: let internal/rules say what the status means, or the file that maps statuses to the schema",
							set.Position(s.Pos()), s.Sel.Name)
					}
				}
				return true
			})
		})
	}
}

// nameOf returns how a file calls a package that it imports.
func nameOf(f *ast.File, path, name string) string {
	for _, i := range f.Imports {
		if p, _ := strconv.Unquote(i.Path.Value); p == path && i.Name != nil {
			return i.Name.Name
		}
	}
	return name
}
