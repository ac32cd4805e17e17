package layers

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/seed-1177d267/sluice/"

// allowed says what each package may import of the module and of other modules, beside the standard library. A name that ends in /
// stands for all packages below it. A package that is not named may import anything but internal/cli.
var allowed = map[string][]string{
	"sluice":                         {"plan", "internal/approve", "internal/schedule", "den/protocol", "backoff", "den", "plugins", "internal/client", "internal/explain", "internal/failures", "internal/feed", "internal/forsaken", "internal/halt", "internal/items", "internal/mend", "internal/planfile", "internal/rules", "internal/secret", "internal/store", "internal/store/", "internal/submit", "internal/compiler"},
	"plan":                           {},
	"backoff":                        {"github.com/cenkalti/backoff/v4"},
	"plugins":                        {"plan", "internal/rules", "internal/secret"},
	"plugins/exec":                   {"plan", "internal/rules", "plugins", "internal/folders", "internal/hint", "internal/runner", "internal/runner/procid", "internal/secret", "internal/source", "internal/failures", "mvdan.cc/sh/v3/syntax", "internal/textfile"},
	"plugins/demo":                   {"plan", "plugins"},
	"plugins/disbatchdemo":           {"plan", "plugins"},
	"plugins/http":                   {"internal/duration", "plan", "plugins", "internal/failures", "internal/jsontext", "internal/secret", "internal/source", "code.dny.dev/ssrf", "github.com/std-uritemplate/std-uritemplate/go/v2", "golang.org/x/sync/semaphore", "internal/textfile"},
	"plugins/program":                {"plan", "plugins", "plugins/exec"},
	"den":                            {"plan", "den/protocol", "backoff", "plugins", "internal/rules", "internal/runner/procid", "internal/balance", "internal/compiler", "internal/secret", "internal/listing"},
	"den/protocol":                   {"plan"},
	"internal/states":                {"plan"},
	"internal/jsontext":              {},
	"internal/refusal":               {},
	"internal/expr":                  {"internal/jsontext"},
	"internal/secret":                {"plan", "den/protocol", "internal/jsontext", "internal/refusal"},
	"internal/compiler":              {"plan", "den/protocol", "internal/expr", "internal/jsontext", "internal/refusal", "internal/secret", "internal/rules", "github.com/bmatcuk/doublestar/v4", "github.com/dominikbraun/graph"},
	"internal/mend":                  {"plan", "internal/cells", "internal/jsontext", "internal/rules", "internal/secret"},
	"internal/timetable":             {"plan", "github.com/netresearch/go-cron"},
	"internal/balance":               {"plan", "internal/jsontext", "internal/refusal"},
	"internal/failures":              {"plan", "internal/states", "internal/store"},
	"internal/rules":                 {"plan", "internal/cells", "internal/states", "den/protocol", "internal/refusal", "internal/expr", "internal/jsontext"},
	"internal/store":                 {"plan", "den/protocol", "internal/rules"},
	"internal/store/docs":            {"plan", "den/protocol", "internal/store", "internal/jsontext"},
	"internal/store/engine":          {"plan", "den/protocol", "internal/refusal", "internal/rules"},
	"internal/store/hiding":          {"plan", "internal/rules", "internal/planfile", "internal/store", "internal/store/docs", "internal/secret"},
	"internal/store/failed":          {"plan", "internal/items", "internal/rules", "internal/store", "internal/store/hiding"},
	"internal/store/storetest/model": {"plan", "den/protocol", "internal/rules", "internal/store", "internal/store/docs", "internal/store/engine", "internal/store/failed", "internal/balance", "internal/secret"},
	"internal/store/sqlite":          {"plan", "den/protocol", "internal/folders", "internal/rules", "internal/store", "internal/store/docs", "internal/store/engine", "internal/store/failed", "internal/jsontext", "internal/refusal", "internal/balance", "internal/secret", "zombiezen.com/go/sqlite", "golang.org/x/sys/"},
	"internal/store/mongodb":         {"plan", "den/protocol", "internal/rules", "internal/store", "internal/store/mongodb/", "internal/store/docs", "internal/store/engine", "internal/store/failed", "internal/jsontext", "internal/refusal", "internal/balance", "internal/secret", "go.mongodb.org/mongo-driver/v2/", "golang.org/x/sync/"},
	"internal/store/storetest":       {"plan", "den/protocol", "internal/invariants", "internal/rules", "internal/store", "internal/balance", "internal/compiler"},
	"internal/folders":               {"golang.org/x/sys/"},
	"internal/textfile":              {},
	"internal/auth":                  {"internal/jsontext", "internal/textfile", "golang.org/x/crypto/", "golang.org/x/sys/"},
	"internal/config":                {"plan", "den/protocol", "internal/hint", "internal/textfile", "internal/balance"},
	"internal/planfile":              {"plan", "internal/timetable", "internal/hint", "internal/jsontext", "internal/textfile", "internal/duration", "internal/rules", "internal/compiler", "internal/expr", "internal/secret", "go.yaml.in/yaml/v3"},
	"internal/submit":                {"plan", "internal/rules", "internal/hint", "internal/store", "internal/jsontext", "internal/refusal", "internal/compiler", "internal/secret"},
	"internal/oste":                  {"plan", "internal/compiler", "internal/jsontext", "internal/rules", "internal/timetable"},
	"internal/roll":                  {"plan", "den/protocol", "internal/api", "internal/rules", "internal/secret", "internal/store", "plugins/http", "golang.org/x/sync/errgroup"},
	"internal/schedule":              {"plan", "den/protocol", "internal/rules", "internal/secret", "internal/store", "internal/submit", "internal/compiler", "internal/planfile", "internal/refusal", "internal/timetable"},
	"internal/api/disbatch":          {"internal/jsontext", "plan", "internal/store", "internal/store/hiding", "internal/config", "internal/auth", "internal/balance", "internal/textfile"},
	"internal/disbatchtest":          {"go.mongodb.org/mongo-driver/v2/"},
	"internal/closedport":            {},
	"internal/polltest":              {},
	"internal/mongotest":             {"go.mongodb.org/mongo-driver/v2/"},
	"internal/api":                   {"plan", "internal/explain", "internal/rules", "internal/store", "internal/balance", "internal/secret", "internal/textfile"},
	"internal/api/v1":                {"internal/jsontext", "internal/schedule", "internal/timetable", "plan", "internal/states", "den/protocol", "internal/rules", "internal/api", "internal/auth", "internal/store", "internal/store/hiding", "internal/explain", "internal/fold", "internal/approve", "internal/halt", "internal/hint", "internal/items", "internal/layout", "internal/planfile", "internal/submit", "internal/balance", "internal/compiler", "internal/secret", "internal/failures", "internal/bulk", "internal/oste", "github.com/danielgtaylor/huma/v2", "github.com/danielgtaylor/huma/v2/", "internal/textfile", "internal/jobpack"},
	"internal/dci":                   {"internal/api", "internal/api/v1", "internal/auth", "internal/store", "internal/telemetry"},
	"internal/client":                {"plan", "den/protocol", "internal/rules", "backoff", "internal/api", "internal/bulk", "internal/store", "internal/balance"},
	"internal/web":                   {},
	"internal/telemetry":             {"plan", "den/protocol", "den", "internal/duration", "internal/store", "github.com/prometheus/client_golang/", "go.opentelemetry.io/otel", "go.opentelemetry.io/otel/", "go.opentelemetry.io/proto/otlp/", "google.golang.org/protobuf/", "github.com/cenkalti/backoff/v4"},
	"internal/hint":                  {"plan", "internal/cells", "internal/duration"},
	"internal/cli/view":              {"plan", "internal/states", "internal/report", "internal/cells", "internal/duration", "internal/rules", "golang.org/x/term", "golang.org/x/sys/"},
	"internal/explain":               {"plan", "internal/states", "internal/rules", "internal/duration", "internal/hint", "internal/runner/procid", "internal/store"},
	"internal/invariants":            {"plan", "internal/rules", "internal/store"},
	"internal/forsaken":              {"plan", "den", "plugins", "internal/explain", "internal/runner", "internal/runner/procid", "internal/store"},
	"internal/bulk":                  {"plan", "internal/rules", "internal/store"},
	"internal/feed":                  {"plan", "internal/store"},
	"internal/approve":               {"plan", "internal/refusal", "internal/rules", "internal/store"},
	"internal/halt":                  {"plan", "den/protocol", "internal/rules", "internal/store"},
	"internal/listing":               {"plan", "plugins", "internal/rules", "internal/textfile", "github.com/bmatcuk/doublestar/v4"},
	"internal/layout":                {},
	"internal/cells":                 {"golang.org/x/text/"},
	"internal/fold":                  {},
	"internal/draw":                  {"internal/fold", "internal/layout", "internal/cells"},
	"internal/duration":              {},
	"internal/report":                {"plan", "internal/states", "internal/cells", "internal/duration", "internal/items", "internal/rules", "internal/failures"},
	"internal/items":                 {"plan", "internal/cells", "internal/jsontext", "internal/store", "internal/rules"},
	"internal/dtr":                   {"plan", "den/protocol", "plugins", "internal/runner"},
	"internal/runner":                {"plan", "plugins", "internal/runner/", "internal/secret", "golang.org/x/sys/"},
	"internal/runner/procid":         {"plan", "golang.org/x/sys/"},
	"internal/source":                {"plugins", "internal/jsontext", "internal/runner", "internal/textfile"},
	"internal/store/mongodb/wire":    {"plan", "internal/rules", "internal/store", "go.mongodb.org/mongo-driver/v2/", "golang.org/x/sync/"},
	"plugins/disco/host":             {"internal/jsontext"},
	"internal/hosttest":              {"plugins/disco/host"},
	"internal/jobpack":               {"plan", "internal/jsontext", "internal/rules", "plugins/disco/host"},
	"plugins/disco":                  {"plan", "internal/jobpack", "internal/rules", "plugins", "plugins/disco/host", "internal/runner", "internal/secret", "internal/source", "golang.org/x/sys/"},
}

type listed struct {
	ImportPath string
	Doc        string
	Imports    []string
	GoFiles    []string
}

func packages(t *testing.T) []listed {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Doc,Imports,GoFiles", module+"...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listed
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p listed
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		p.ImportPath, _ = ours(p.ImportPath)
		all = append(all, p)
	}
	if len(all) < len(allowed) {
		t.Fatalf("go list names %d packages; the map has %d", len(all), len(allowed))
	}
	return all
}

// ours returns the short name of a package of this module, and whether it is one.
func ours(path string) (string, bool) {
	if path+"/" == module {
		return "sluice", true
	}
	return strings.CutPrefix(path, module)
}

// driverOf returns the driver that a package is a part of, with a slash behind it; "" if it is no part of one.
func driverOf(path string) string {
	for _, driver := range []string{"internal/store/storetest/model/", "internal/store/mongodb/", "internal/store/sqlite/"} {
		if strings.HasPrefix(path, driver) {
			return driver
		}
	}
	return ""
}

func TestDependenciesPointToTheDomain(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range packages(t) {
		seen[p.ImportPath] = true
		rule, ruled := allowed[p.ImportPath]
		for _, imported := range p.Imports {
			imported, isOurs := ours(imported)
			first, _, _ := strings.Cut(imported, "/")
			standard := !isOurs && !strings.Contains(first, ".")
			switch {
			case strings.HasPrefix(p.ImportPath, "examples/") && strings.HasPrefix(imported, "internal/"):
				t.Errorf("%s imports %s; an example is what a program of another module can be", p.ImportPath, imported)
			case driverOf(imported) != "" && p.ImportPath+"/" != driverOf(imported) && driverOf(p.ImportPath) != driverOf(imported):
				t.Errorf("%s imports %s, which is a part of a driver: only the driver may", p.ImportPath, imported)
			case imported == "internal/cli" && !strings.HasPrefix(p.ImportPath, "cmd/"):
				t.Errorf("%s imports internal/cli, which only cmd may", p.ImportPath)
			case !ruled || standard:
			case !slices.ContainsFunc(rule, func(a string) bool {
				return imported == a || strings.HasSuffix(a, "/") && strings.HasPrefix(imported, a)
			}):
				t.Errorf("%s imports %s; it may import %v: let the dependency point to the domain", p.ImportPath, imported, rule)
			}
		}
	}
	for name := range allowed {
		if !seen[name] {
			t.Errorf("the map names %s, which is not there", name)
		}
	}
}

// The command is to be built and sent quickly. A program that links the templates keeps every exported
// method of every type, an eighth of the binary; gRPC with its generated code is another tenth.
func TestTheCommandLinksNothingLarge(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", `{{.ImportPath}} {{join .Imports " "}}`, module+"cmd/sluice").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		name, imports, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "google.golang.org/grpc" {
			t.Errorf("the command links %s: look for the package that brings it with go mod why", name)
		}
		for imported := range strings.FieldsSeq(imports) {
			if strings.HasPrefix(name, module) && strings.HasSuffix(imported, "/template") {
				t.Errorf("%s imports %s: write the text with fmt and package html", name, imported)
			}
		}
	}
}

func TestEveryPackageSaysWhatItOwns(t *testing.T) {
	for _, p := range packages(t) {
		if p.Doc == "" && len(p.GoFiles) > 0 {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
}
