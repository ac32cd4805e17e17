package disbatch_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/api/disbatch"
	"github.com/seed-1177d267/sluice/internal/config"
	"github.com/seed-1177d267/sluice/internal/mongotest"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/mongodb"
	"github.com/seed-1177d267/sluice/internal/store/sqlite"
	"github.com/seed-1177d267/sluice/internal/store/storetest/model"
	"github.com/seed-1177d267/sluice/plan"
)

var update = flag.Bool("update", false, "rewrite the answers in testdata by what the model gives")

// A bed is a store as nodes have it and as a server has it and, where it has one, the database below it.
type bed struct {
	store.Store
	server store.Store
	db     *mongo.Database
}

// beds are the stores that all requests are made to.
var beds = []struct {
	name string
	open func(t *testing.T) bed
}{
	{"memory", func(*testing.T) bed {
		s := model.New(model.Options{})
		return bed{Store: s, server: s}
	}},
	{"sqlite", func(t *testing.T) bed {
		s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "sluice.db"), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return bed{Store: s, server: s}
	}},
	{"mongodb", openMongoDB},
}

// openMongoDB has the server do no more than the role that docs/users.md gives its user.
func openMongoDB(t *testing.T) bed {
	uri, db := mongotest.Database(t)
	open := func(o mongodb.Options) *mongodb.Store {
		s, err := mongodb.Open(t.Context(), uri, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	const web = "disbatch_web"
	may := map[string][]string{"nothing": {"find"}, "users": {"find"}} // a site gives it that on what tasks are made from
	for _, r := range mongodb.Roles() {
		for _, p := range r.Privileges {
			if r.Name == web {
				may[p.Collection] = p.Actions
			}
		}
	}
	nodes := open(mongodb.Options{})
	return bed{nodes, open(mongodb.Options{Monitor: mongotest.Role(t, web, may)}), db}
}

const conf = `{
	"mongohost": "localhost", "database": "disbatch_test", "monitoring": 1, "balance": {"log": 1, "verbose": 0, "pretend": 0, "enabled": 0},
	"plugins": ["Disbatch::Plugin::Demo"],
	"web_extensions": {"Disbatch::Web::Tasks": null, "Disbatch::Web::V3": null},
}`

// serve makes a handler of a store and a file's text.
func serve(t testing.TB, s store.Store, file string) *disbatch.Handler {
	t.Helper()
	c, err := config.Parse("config.json", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	c.WebRoot = "" // what this host has there is nothing to a test
	h, err := disbatch.New(disbatch.Config{Store: s, Conf: c, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestRecorded makes the requests that are recorded in testdata to each store, and wants the recorded answers, byte for byte but for ids and
// instants. A file is a list of requests and answers:
//
//	=== POST /queues
//	Content-Type: application/json
//
//	{"name": "demo"}
//	--- 200 application/json
//	{"id": …}
//
// Every body is followed by one newline that is not its own. Ids are $1, $2, … as they first come up. A request for a method DO is something
// that nodes do.
func TestRecorded(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded requests: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range beds {
				t.Run(b.name, func(t *testing.T) {
					bed := b.open(t)
					p := player{t: t, bed: bed, h: serve(t, bed.server, conf)}
					got := p.play(string(text))
					switch {
					case *update && b.name == "memory":
						if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
							t.Fatal(err)
						}
						text = []byte(got)
					case got != string(text):
						t.Errorf("%s:\n%s", file, firstDifference(got, string(text)))
					}
				})
			}
		})
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	request := ""
	for i := range min(len(g), len(w)) {
		if strings.HasPrefix(w[i], "===") {
			request = w[i]
		}
		if g[i] != w[i] {
			return fmt.Sprintf("line %d, %s\ngot  %s\nwant %s", i+1, request, g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}

// A player makes recorded requests.
type player struct {
	t *testing.T
	bed
	h     http.Handler
	ids   []string
	nodes map[string]plan.InstanceID
}

func (p *player) play(text string) string {
	var out strings.Builder
	parts := strings.Split(text, "\n=== ")
	out.WriteString(strings.TrimSuffix(parts[0], "\n") + "\n") // the subject
	for _, part := range parts[1:] {
		request, _, _ := strings.Cut(part, "\n--- ")
		request = strings.TrimSuffix(request, "\n")
		line, rest, _ := strings.Cut(request, "\n")
		out.WriteString("=== " + request + "\n")
		if act, is := strings.CutPrefix(line, "DO "); is {
			p.do(strings.Fields(p.real(act)))
			continue
		}
		method, target, _ := strings.Cut(line, " ")
		headers, body, _ := strings.Cut(rest+"\n", "\n\n")
		r := httptest.NewRequest(method, p.real(target), strings.NewReader(p.real(strings.TrimSuffix(body, "\n"))))
		for h := range strings.SplitSeq(strings.TrimSpace(headers), "\n") {
			if name, value, is := strings.Cut(h, ": "); is {
				r.Header.Set(name, value)
			}
		}
		w := httptest.NewRecorder()
		p.h.ServeHTTP(w, r)
		fmt.Fprintf(&out, "--- %d %s\n%s\n", w.Code, w.Header().Get("Content-Type"), p.same(w.Body.String()))
	}
	return out.String()
}

var (
	idText    = regexp.MustCompile(`\b[0-9a-f]{24}\b`)
	reference = regexp.MustCompile(`\$[0-9]+`)
	changing  = []struct {
		what *regexp.Regexp
		as   string
	}{
		{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d`), "TIME"},
		{regexp.MustCompile(`("[cm]time" ?: ?)\d{10}(\.\d+)?`), "${1}EPOCH"},
		{regexp.MustCompile(`("timestamp" ?: ?)\d{13}`), "${1}MS"},
		{regexp.MustCompile(`("n[0-9]" ?: ?)\d+`), "${1}AGE"},
		{regexp.MustCompile(`not running for \d+s`), "not running for Ns"},
	}
)

// real puts ids in the place of their references.
func (p *player) real(text string) string {
	return reference.ReplaceAllStringFunc(text, func(ref string) string {
		var n int
		if _, err := fmt.Sscanf(ref, "$%d", &n); err != nil || n < 1 || n > len(p.ids) {
			p.t.Fatalf("%s did not come up before", ref)
		}
		return p.ids[n-1]
	})
}

// same replaces what is different each time.
func (p *player) same(text string) string {
	text = idText.ReplaceAllStringFunc(text, func(id string) string {
		if strings.Trim(id, "0") == "" {
			return id
		}
		for i, known := range p.ids {
			if known == id {
				return fmt.Sprintf("$%d", i+1)
			}
		}
		p.ids = append(p.ids, id)
		return fmt.Sprintf("$%d", len(p.ids))
	})
	return timeless(text)
}

func timeless(text string) string {
	for _, c := range changing {
		text = c.what.ReplaceAllString(text, c.as)
	}
	return text
}

// do is what a node does:
//
//	node NAME                           it is started
//	run NAME STATUS STDOUT STDERR       it claims a task and ends it so, with these results; - is null
//	claim NAME                          it claims a task and starts it
//	index FIELDS                        an index is made on tasks, where a database has any
func (p *player) do(act []string) {
	no := func(err error) {
		p.t.Helper()
		if err != nil {
			p.t.Fatalf("%v: %v", act, err)
		}
	}
	ctx := p.t.Context()
	switch act[0] {
	case "node":
		if p.nodes == nil {
			p.nodes = map[string]plan.InstanceID{}
		}
		i := plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: plan.NodeName(act[1]), Host: "h", Lease: time.Minute, Threads: 4, Plugins: []string{"Disbatch::Plugin::Demo"}}
		no(p.Register(ctx, i))
		p.nodes[act[1]] = i.ID
		if p.db != nil { // Sluice's fields of a node, which Disbatch does not have
			unset := bson.D{}
			for _, f := range []string{"version", "den_version", "spec_version", "queuetypes", "sluice"} {
				unset = append(unset, bson.E{Key: f, Value: 1})
			}
			_, err := p.db.Collection("nodes").UpdateOne(ctx, bson.D{{Key: "node", Value: act[1]}}, bson.D{{Key: "$unset", Value: unset}})
			no(err)
		}
	case "claim", "run":
		turn := protocol.Turn{Instance: p.nodes[act[1]], Plugins: []string{"Disbatch::Plugin::Demo"}, Slots: 1, Start: true}
		did, err := p.Turn(ctx, turn)
		no(err)
		if len(did.Claimed) != 1 {
			p.t.Fatalf("%v: claimed %d tasks", act, len(did.Claimed))
		}
		if act[0] == "claim" {
			return
		}
		c := did.Claimed[0].Claim
		section := func(text string) *io.SectionReader {
			if text == "-" {
				return nil
			}
			return io.NewSectionReader(strings.NewReader(text), 0, int64(len(text)))
		}
		var status int
		_, err = fmt.Sscan(act[2], &status)
		no(err)
		no(p.Store.(store.Results).PutResults(ctx, c, section(act[3]), section(act[4]), protocol.GFSAuto))
		_, err = p.Turn(ctx, protocol.Turn{Instance: turn.Instance, Plugins: turn.Plugins, Ended: []protocol.Ending{{Claim: c, Status: plan.Status(status)}}})
		no(err)
	default:
		p.t.Fatalf("%v: nobody does that", act)
	}
}

// send makes a request and returns the answer.
func send(t testing.TB, h http.Handler, method, target, kind, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, target, bytes.NewReader([]byte(body)))
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}
