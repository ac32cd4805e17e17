// Package examples_test uses the public packages as a program of another module does.
package examples_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const module = "github.com/seed-1177d267/sluice"

// public are the exported packages, by their folders.
var public = []string{".", "plan", "den", "den/protocol", "backoff", "plugins", "plugins/approval", "plugins/demo", "plugins/disbatchdemo", "plugins/disco", "plugins/disco/host", "plugins/exec", "plugins/http", "plugins/program"}

// guardMain is the TestMain of packages whose examples run commands.
const guardMain = `package main_test

import (
	"os"
	"testing"

	"github.com/seed-1177d267/sluice/plugins/exec"
)

func TestMain(m *testing.M) {
	exec.GuardMain()
	os.Exit(m.Run())
}
`

// The test copies the examples of the public packages, and the programs of this folder, into a module
// of their own, in which Go allows no import of an internal package. It compiles and runs them there.
// The module cache has all dependencies, so that the test asks no network.
func TestExamplesRunInAnotherModule(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	outside := t.TempDir()
	write := func(name string, data []byte) {
		t.Helper()
		path := filepath.Join(outside, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) []byte {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	mod := bytes.Replace(read("go.mod"), []byte("module "+module), []byte("module example.com/outside"), 1)
	mod = append(mod, "\nrequire "+module+" v0.0.0\n\nreplace "+module+" => "+root+"\n"...)
	write("go.mod", mod)
	write("go.sum", read("go.sum"))
	runsCommands := regexp.MustCompile(`\bGuardMain\b`)
	for _, dir := range public {
		example := read(filepath.Join(dir, "example_test.go"))
		write(filepath.Join("public", dir, "example_test.go"), example)
		if runsCommands.Match(example) {
			name := regexp.MustCompile(`(?m)^package \w+`).Find(example)
			write(filepath.Join("public", dir, "main_test.go"), []byte(strings.Replace(guardMain, "package main_test", string(name), 1)))
		}
	}
	for _, program := range []string{"embed", "fleet"} {
		write(filepath.Join(program, "main.go"), read(filepath.Join("examples", program, "main.go")))
	}
	write("folder/a.txt", []byte("a\n"))
	command := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("go", args...)
		cmd.Dir = outside
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod "+os.Getenv("GOFLAGS"), "GOWORK=off", "GOPROXY=off", "SLUICE_STORE=sqlite:"+filepath.Join(outside, "plans.db"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		t.Logf("go %s\n%s", strings.Join(args, " "), out)
		return string(out)
	}
	ran := command("test", "-count=1", "-vet=off", "-v", "./public/...")
	for _, dir := range public {
		if !regexp.MustCompile(`(?m)^ok\s+example.com/outside/public` + strings.TrimPrefix("/"+dir, "/.") + `\s`).MatchString(ran) {
			t.Errorf("no example of %s ran", dir)
		}
	}
	command("build", "-o", os.DevNull, "./fleet")
	if out := command("run", "./embed", "folder"); !strings.Contains(out, `"files":1`) {
		t.Errorf("examples/embed printed %s", out)
	}
}

// The test finds a public package without examples, and one that the list above leaves out.
func TestEveryPublicPackageHasExamples(t *testing.T) {
	out, err := exec.Command("go", "list", module+"/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, dir := range public {
		known[filepath.Clean(dir)] = true
	}
	for path := range strings.Lines(string(out)) {
		dir := filepath.Clean("./" + strings.TrimPrefix(strings.TrimSpace(path), module))
		first, _, _ := strings.Cut(dir, "/")
		if first != "internal" && first != "cmd" && first != "examples" && !known[dir] {
			t.Errorf("package %s is public, and has no examples that run in another module: add example_test.go, and name it here", dir)
		}
	}
}

// A function, method or field of a public package has no type of an internal package: a program could
// hold a value of it, and not name it. Variables are sentinels, and stand for themselves.
func TestNoPublicPackageShowsAnInternalType(t *testing.T) {
	for _, dir := range public {
		imports, err := exec.Command("go", "list", "-f", `{{join .Imports "\n"}}`, module+"/"+dir).Output()
		if err != nil {
			t.Fatal(err)
		}
		shown, err := exec.Command("go", "doc", "-all", module+"/"+dir).Output()
		if err != nil {
			t.Fatal(err)
		}
		for imported := range strings.FieldsSeq(string(imports)) {
			name, internal := strings.CutPrefix(imported, module+"/internal/")
			if !internal {
				continue
			}
			used := regexp.MustCompile(`(?m)^(func|\t[A-Z]\w*[ (]).*\b` + name[strings.LastIndexByte(name, '/')+1:] + `\.[A-Z].*`)
			for _, line := range used.FindAllString(string(shown), -1) {
				if !strings.Contains(line, " = ") {
					t.Errorf("package %s shows a type of internal/%s: %s", dir, name, line)
				}
			}
		}
	}
}
