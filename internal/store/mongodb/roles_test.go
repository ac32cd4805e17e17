package mongodb

import (
	"context"
	"encoding/json"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	gotypes "go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// asked is what a server wants to be allowed for a method of the driver's collection. An upsert inserts too, see actions.
var asked = map[string][]string{
	"Find": {"find"}, "Aggregate": {"find"}, "CountDocuments": {"find"}, "InsertMany": {"insert"}, "UpdateOne": {"update"}, "UpdateMany": {"update"}, "BulkWrite": {"update"},
	"FindOneAndUpdate": {"find", "update"}, "DeleteMany": {"remove"}, "Name": nil, "Indexes": nil,
}

// A touch is one call of a method of a collection, or a collection that is handed to a function of this package.
type touch struct {
	collection string // its name; "" if it is the function's own parameter
	param      gotypes.Object
	actions    []string
	to         *gotypes.Func // that it is handed to, as argument arg
	arg        int
}

// A source is the code of this package and those below it: who calls whom, and what each does to collections.
type source struct {
	*gotypes.Info
	t       *testing.T
	fields  map[string]string // of Store: name of the collection
	calls   map[*gotypes.Func][]*gotypes.Func
	touches map[*gotypes.Func][]touch
	params  map[*gotypes.Func][]gotypes.Object
}

func readSource(t *testing.T) *source {
	t.Helper()
	out, err := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}} {{.Dir}} {{join .GoFiles \" \"}}", ".").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	fset := token.NewFileSet()
	exports := map[string]string{}
	checked := importers{}
	type unit struct {
		path  string
		files []*ast.File
	}
	var units []unit // that another one imports comes before it
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		exports[f[0]] = f[1]
		if !isOurs(f[0]) {
			continue
		}
		u := unit{path: f[0]}
		for _, name := range f[3:] {
			file, err := parser.ParseFile(fset, filepath.Join(f[2], name), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			u.files = append(u.files, file)
		}
		units = append(units, u)
	}
	checked.other = importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	s := &source{
		t: t, fields: map[string]string{}, calls: map[*gotypes.Func][]*gotypes.Func{}, touches: map[*gotypes.Func][]touch{}, params: map[*gotypes.Func][]gotypes.Object{},
		Info: &gotypes.Info{Uses: map[*ast.Ident]gotypes.Object{}, Defs: map[*ast.Ident]gotypes.Object{}, Types: map[ast.Expr]gotypes.TypeAndValue{}},
	}
	var files []*ast.File
	for _, u := range units {
		p, err := (&gotypes.Config{Importer: &checked}).Check(u.path, fset, u.files, s.Info)
		if err != nil {
			t.Fatal(err)
		}
		checked.ours = append(checked.ours, p)
		files = append(files, u.files...)
	}
	var made *ast.FuncDecl
	for _, f := range files {
		for _, decl := range f.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Name.Name == "newStore" {
				made = fn
			}
		}
	}
	ast.Inspect(made, func(n ast.Node) bool {
		if kv, ok := n.(*ast.KeyValueExpr); ok {
			if name := literal(kv.Value); name != "" {
				s.fields[kv.Key.(*ast.Ident).Name] = name
			}
		}
		return true
	})
	for _, f := range files {
		for _, decl := range f.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Body != nil {
				s.read(fn)
			}
		}
	}
	return s
}

// importers imports the driver's packages as they were read, and others as they were compiled.
type importers struct {
	ours  []*gotypes.Package
	other gotypes.Importer
}

func (i *importers) Import(path string) (*gotypes.Package, error) {
	for _, p := range i.ours {
		if p.Path() == path {
			return p, nil
		}
	}
	return i.other.Import(path)
}

// isOurs reports whether a package is this one or below it.
func isOurs(path string) bool {
	own := reflect.TypeFor[Store]().PkgPath()
	return path == own || strings.HasPrefix(path, own+"/")
}

// literal returns NAME of db.Collection("NAME").
func literal(e ast.Expr) string {
	call, ok := e.(*ast.CallExpr)
	if !ok || len(call.Args) != 1 {
		return ""
	}
	fun, isMethod := call.Fun.(*ast.SelectorExpr)
	word, isWord := call.Args[0].(*ast.BasicLit)
	if !isMethod || !isWord || fun.Sel.Name != "Collection" {
		return ""
	}
	name, _ := strconv.Unquote(word.Value)
	return name
}

// function is the function of these packages that an expression calls or names, nil if it is another one.
func (s *source) function(e ast.Expr) *gotypes.Func {
	switch f := e.(type) {
	case *ast.IndexExpr:
		return s.function(f.X)
	case *ast.SelectorExpr:
		return s.function(f.Sel)
	case *ast.Ident:
		fn, _ := s.Uses[f].(*gotypes.Func)
		if fn != nil && fn.Pkg() != nil && isOurs(fn.Pkg().Path()) {
			return fn.Origin()
		}
	}
	return nil
}

func (s *source) isCollection(e ast.Expr) bool { return s.isOfDriver(e, "Collection") }

// isOfDriver reports whether an expression is one of the driver's types, or points to it.
func (s *source) isOfDriver(e ast.Expr, name string) bool {
	t := s.Types[e].Type
	return t != nil && strings.TrimPrefix(t.String(), "*") == reflect.TypeFor[mongo.Collection]().PkgPath()+"."+name
}

func (s *source) read(decl *ast.FuncDecl) {
	self := s.Defs[decl.Name].(*gotypes.Func)
	for _, p := range decl.Type.Params.List {
		for _, name := range p.Names {
			s.params[self] = append(s.params[self], s.Defs[name])
		}
	}
	add := func(of ast.Expr, t touch) {
		if word, ok := of.(*ast.Ident); ok && slices.Contains(s.params[self], s.Uses[word]) {
			t.param = s.Uses[word]
		} else if t.collection = literal(of); t.collection == "" {
			field, isField := of.(*ast.SelectorExpr)
			if isField {
				t.collection = s.fields[field.Sel.Name]
			}
			if t.collection == "" && self.Name() == "CollectionDocuments" {
				return // of any collection: what the role may read is for a site to say
			}
			if t.collection == "" {
				s.t.Errorf("%s uses a collection that is neither a field of Store nor its own parameter: this test cannot tell which", self.Name())
			}
		}
		s.touches[self] = append(s.touches[self], t)
	}
	ast.Inspect(decl.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			if fn := s.function(n); fn != nil {
				s.calls[self] = append(s.calls[self], fn)
			}
		case *ast.CallExpr:
			if method, ok := n.Fun.(*ast.SelectorExpr); ok && s.isCollection(method.X) {
				actions, known := asked[method.Sel.Name]
				if !known {
					s.t.Errorf("%s calls %s of a collection: say in this test what that asks for", self.Name(), method.Sel.Name)
				}
				if s.upserts(n) {
					actions = []string{"insert", "update"}
				}
				if self.Name() == "Union" { // it names a collection that another one's Aggregate reads
					actions = []string{"find"}
				}
				add(method.X, touch{actions: actions})
			} else if ok && s.isOfDriver(method.X, "IndexView") { // of all that indexes returns, see Indexes
				actions, known := map[string][]string{"CreateMany": {"createIndex"}, "List": {"listIndexes"}}[method.Sel.Name]
				if !known {
					s.t.Errorf("%s calls %s of indexes: say in this test what that asks for", self.Name(), method.Sel.Name)
				}
				of := s.indexed()
				if c := s.fieldOf(method.X); c != "" {
					of = []string{c}
				}
				for _, c := range of {
					s.touches[self] = append(s.touches[self], touch{collection: c, actions: actions})
				}
			} else if ok && s.isOfDriver(method.X, "Database") && method.Sel.Name != "Collection" {
				// hello is for everybody; run sends an administrator's commands.
				if method.Sel.Name != "RunCommand" || self.Name() != "Hello" && self.Name() != "run" {
					s.t.Errorf("%s calls %s of a database: say in this test what that asks for", self.Name(), method.Sel.Name)
				}
			} else if ok && s.isOfDriver(method.X, "Client") && !slices.Contains([]string{"Database", "Disconnect"}, method.Sel.Name) {
				s.t.Errorf("%s calls %s of a client: say in this test what that asks for", self.Name(), method.Sel.Name)
			}
			s.calls[self] = append(s.calls[self], s.portsOf(n)...)
			if fn := s.function(n.Fun); fn != nil {
				for i, arg := range n.Args {
					if s.isCollection(arg) {
						add(arg, touch{to: fn, arg: i})
					}
				}
			}
		}
		return true
	})
}

// portsOf returns the methods that a function of another package may call: those of the interfaces
// for which it takes values of the driver.
func (s *source) portsOf(call *ast.CallExpr) (methods []*gotypes.Func) {
	signature, ok := s.TypeOf(call.Fun).(*gotypes.Signature)
	if !ok || signature.Variadic() {
		return nil
	}
	for i, arg := range call.Args {
		if i >= signature.Params().Len() {
			break // a conversion
		}
		port, ok := signature.Params().At(i).Type().Underlying().(*gotypes.Interface)
		if !ok {
			continue
		}
		for k := range port.NumMethods() {
			m, _, _ := gotypes.LookupFieldOrMethod(s.TypeOf(arg), true, nil, port.Method(k).Name())
			if fn, ok := m.(*gotypes.Func); ok && fn.Pkg() != nil && isOurs(fn.Pkg().Path()) {
				methods = append(methods, fn)
			}
		}
	}
	return methods
}

// fieldOf returns the collection of s.FIELD.Indexes(), "" if it is another one's.
func (s *source) fieldOf(indexes ast.Expr) string {
	if call, ok := indexes.(*ast.CallExpr); ok {
		if method, ok := call.Fun.(*ast.SelectorExpr); ok {
			if field, ok := method.X.(*ast.SelectorExpr); ok {
				return s.fields[field.Sel.Name]
			}
		}
	}
	return ""
}

// upserts reports whether a call says that what is not there is made.
func (s *source) upserts(call *ast.CallExpr) (found bool) {
	ast.Inspect(call, func(n ast.Node) bool {
		if word, ok := n.(*ast.Ident); ok && word.Name == "SetUpsert" {
			found = true
		}
		return true
	})
	return found
}

func (s *source) indexed() (names []string) {
	client, err := mongo.Connect()
	noError(s.t)(err)
	defer func() { _ = client.Disconnect(context.Background()) }()
	all, err := newStore(client, "any", Options{}).indexes()
	noError(s.t)(err)
	for _, c := range all {
		names = append(names, c.Name())
	}
	return names
}

// onParam returns what a function does to a collection that it is given.
func (s *source) onParam(fn *gotypes.Func, arg int) (actions []string) {
	for _, t := range s.touches[fn] {
		switch {
		case t.param == nil || t.param != s.params[fn][arg]:
		case t.to != nil:
			actions = append(actions, s.onParam(t.to, t.arg)...)
		default:
			actions = append(actions, t.actions...)
		}
	}
	return actions
}

// uses returns what the methods of Store, and all that they may call, do: actions by collection.
func (s *source) uses(methods ...string) map[string][]string {
	var left []*gotypes.Func
	for fn := range s.params {
		if slices.Contains(methods, fn.Name()) && strings.Contains(fn.FullName(), "(*"+reflect.TypeFor[Store]().PkgPath()+".Store)") {
			left = append(left, fn)
		}
	}
	if len(left) == 0 {
		s.t.Errorf("Store has no method of %v", methods)
	}
	found, seen := map[string][]string{}, map[*gotypes.Func]bool{}
	for ; len(left) > 0; left = left[1:] {
		fn := left[0]
		if seen[fn] {
			continue
		}
		seen[fn] = true
		left = append(left, s.calls[fn]...)
		for _, t := range s.touches[fn] {
			if t.collection == "" {
				continue
			}
			actions := t.actions
			if t.to != nil {
				actions = s.onParam(t.to, t.arg)
			}
			all := append(found[t.collection], actions...)
			slices.Sort(all)
			found[t.collection] = slices.Compact(all)
		}
	}
	return found
}

func methodsOf[T any]() (names []string) {
	i := reflect.TypeFor[T]()
	for k := range i.NumMethod() {
		names = append(names, i.Method(k).Name)
	}
	return names
}

// taskRunner is what a task runner asks a store for: it looks at its task, and has a session of its own, which claims nothing.
type taskRunner interface {
	Register(ctx context.Context, i plan.Instance) error
	Beat(ctx context.Context, b protocol.Beat) (protocol.Beaten, error)
	Leave(ctx context.Context, i plan.InstanceID) error
	Take(ctx context.Context, t protocol.Take) (protocol.ClaimedTask, error)
	Turn(ctx context.Context, t protocol.Turn) (protocol.Turned, error)
	Inputs(ctx context.Context, id plan.TaskID) ([]plan.Input, error)
	Parents(ctx context.Context, id plan.TaskID) ([]plan.Parent, error)
	Failures(ctx context.Context, id plan.TaskID) (json.RawMessage, error)
	Log(ctx context.Context, id plan.TaskID, after int64, limit int) ([]plan.LogEntry, int64, error)
	AppendLog(ctx context.Context, c protocol.Claim, entries []plan.LogEntry) error
	Rescue(ctx context.Context, i plan.InstanceID, beats int64) (int, error)
	Tasks(ctx context.Context, q store.TaskQuery) ([]plan.Task, error)
	Queues(ctx context.Context) ([]plan.Queue, error)
	Plan(ctx context.Context, id plan.PlanID) (plan.Plan, error)
	PutResults(ctx context.Context, c protocol.Claim, stdout, stderr *io.SectionReader, mode protocol.GFS) error
	OpenPack(ctx context.Context, id plan.PlanID) (io.ReadCloser, int64, error)
	store.Reporter
}

// A role has what its process can come to ask for, and nothing else: a call of another collection, or of another kind, that is added to this
// package or taken out of it, changes a role.
func TestRolesAreWhatTheCodeAsksFor(t *testing.T) {
	s := readSource(t)
	want := map[string]map[string][]string{
		// prepare makes indexes, which is for a node; the others find a database that was prepared, and only look.
		"disbatchd": s.uses(slices.Concat([]string{"prepare", "Indexes", "PutResults", "OpenPack", "Plan"}, methodsOf[store.Node](), methodsOf[den.Balancer](),
			[]string{"Schedules", "PutSchedules", "CreatePlan", "AddTasks", "Ready", "CancelPlan", "CancelTask", "EnsureQueue"},
			[]string{"Groups", "Tasks"}, methodsOf[store.Roller](),
			methodsOf[store.Reporter]())...),
		"disbatch_web": s.uses(slices.Concat([]string{"Balance", "SetBalance", "OpenResult", "PutPack"}, methodsOf[store.Admin](), methodsOf[store.Reader](), methodsOf[store.Documents](), []string{"Schedules", "PutSchedules", "DeleteSchedule", "ToRoll", "BeginBatch", "Batches", "Logs", "EndBatch"})...),
		"task_runner":  s.uses(methodsOf[taskRunner]()...),
		"queuebalance": {},
	}
	want["disbatch_web"]["meta"] = append([]string{"find"}, want["disbatch_web"]["meta"]...)
	for _, r := range Roles() {
		got := map[string][]string{}
		last := ""
		for _, p := range r.Privileges {
			if p.Collection <= last {
				t.Errorf("%s: %s is not in the order of the alphabet, or there twice", r.Name, p.Collection)
			}
			if last = p.Collection; len(p.Actions) > 0 {
				got[p.Collection] = p.Actions
			}
			for _, a := range p.Disbatch {
				if slices.Contains(p.Actions, a) {
					t.Errorf("%s: %s of %s is there for Disbatch's programs and for Sluice; leave it to Sluice", r.Name, a, p.Collection)
				}
			}
		}
		for _, c := range slices.Sorted(maps.Keys(want[r.Name])) {
			if !slices.Equal(got[c], want[r.Name][c]) {
				t.Errorf("%s may %v %s; its code asks for %v", r.Name, got[c], c, want[r.Name][c])
			}
			delete(got, c)
		}
		for c, actions := range got {
			t.Errorf("%s may %v %s, which its code asks for nothing", r.Name, actions, c)
		}
	}
}
